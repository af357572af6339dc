#include "sim/topology/files/infragraph/infrastructure.h"

#include <map>
#include <utility>
#include <vector>

#include "sim/topology/files/infragraph/devices.h"

namespace netsim::infragraph {
namespace {

class InfrastructureReader {
 public:
  InfrastructureReader(const ConfigNode& infrastructure, const std::string& file)
      : root_(infrastructure), devices_(list_in(infrastructure, "devices")) {
    cluster_.file = file;
    root_.allow_keys({"name", "description", "devices", "links", "instances", "edges"});
    devices_.read_all();
    wires_ = wires_of(root_);
    for (const ConfigNode& item : list_in(root_, "instances")) add_instances(item);
    for (const ConfigNode& item : list_in(root_, "edges")) {
      add_edges(
          item, wires_, "the infrastructure", [&](const char* end) { return end_of(item, end); }, edges_);
    }
    add_links();
  }

  DescribedCluster take() { return std::move(cluster_); }

 private:
  struct Instances {
    const Device* device;
    std::uint32_t first, count;  // index of the first node, and number of instances
    std::uint32_t size() const { return static_cast<std::uint32_t>(device->parts.size()); }
  };

  void add_instances(const ConfigNode& item) {
    const std::string name = name_in(item);
    item.allow_keys({"name", "description", "device", "count"});
    const ConfigNode& kind = needed(item, "device");
    const Device& device = devices_.get(read_text(kind), kind);
    const Instances instances{&device, static_cast<std::uint32_t>(cluster_.nodes.size()), count_in(item)};
    if (std::uint64_t{instances.count} * instances.size() + cluster_.nodes.size() > kMostNodes)
      item.fail("more than " + std::to_string(kMostNodes) + " components of instances");
    if (!instances_.emplace(name, instances).second) item.fail("a second instance '" + name + "'");
    for (std::uint32_t i = 0; i < instances.count; ++i)
      add_unit(name + "." + std::to_string(i), read_text(kind), device, item);
  }

  void add_unit(const std::string& name, const std::string& kind, const Device& device,
                const ConfigNode& item) {
    const auto unit = static_cast<std::uint32_t>(cluster_.units.size());
    const auto base = static_cast<std::uint32_t>(cluster_.nodes.size());
    cluster_.units.push_back({name, kind, base, static_cast<std::uint32_t>(device.parts.size())});
    for (std::size_t i = 0; i < device.parts.size(); ++i) {
      cluster_.nodes.push_back({.kind = device.parts[i].kind,
                                .name = name + "." + device.names[i],
                                .unit = unit,
                                .compute_capability = compute_capability_of(device.parts[i])});
      parts_.push_back(&device.parts[i]);
    }
    for (const Edge& edge : device.edges.edges())
      edges_.add({base + edge.a, base + edge.b, edge.wire, edge.place}, item);
  }

  std::vector<std::uint32_t> end_of(const ConfigNode& edge, const char* key) const {
    const ConfigNode& end = needed(edge, key);
    if (!end.is_map()) end.fail("{instance: NAME[index], component: NAME[index]} is expected");
    end.allow_keys({"instance", "component"});
    const ConfigNode &instance = needed(end, "instance"), &component = needed(end, "component");
    const std::vector<Step> steps = steps_of(instance, read_text(instance));
    if (steps.size() != 1)
      instance.fail("'" + read_text(instance) + "' is no instance; NAME[index] is expected");
    const auto found = instances_.find(steps[0].name);
    if (found == instances_.end()) unknown(instance, steps[0].name, instances_, "instance");
    const auto nodes =
        Devices::choose(*found->second.device, steps_of(component, read_text(component)), component);
    std::vector<std::uint32_t> result;
    for (const std::uint32_t index : indices_of(instance, steps[0], found->second.count)) {
      for (const std::uint32_t node : nodes)
        result.push_back(found->second.first + index * found->second.size() + node);
    }
    return result;
  }

  void add_links() {
    for (const Edge& edge : edges_.edges()) {
      const bool inside = cluster_.nodes[edge.a].unit == cluster_.nodes[edge.b].unit;
      cluster_.links.push_back(
          described(edge.a, edge.b, *edge.wire, *parts_[edge.a], *parts_[edge.b], inside, edge.place));
      learn_generation(cluster_.links.back(), *edge.wire, cluster_);
    }
  }

  const ConfigNode& root_;
  Devices devices_;
  Wires wires_;
  std::map<std::string, Instances> instances_;
  std::vector<const Part*> parts_;  // by node
  EdgeSet edges_;
  DescribedCluster cluster_;
};

}  // namespace

DescribedCluster read_infrastructure(const ConfigNode& infrastructure, const std::string& file) {
  return InfrastructureReader(infrastructure, file).take();
}

}  // namespace netsim::infragraph
