// Builds a cluster from the sections `topology`, `fabrics`, `host` and `hosts` of the configuration:
// build_cluster() of topology.h.
#include <algorithm>
#include <string>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/parameters.h"
#include "sim/core/registry.h"
#include "sim/core/text.h"
#include "sim/topology/boxes.h"
#include "sim/topology/cluster_islands.h"
#include "sim/topology/joined_routes.h"
#include "sim/topology/nic_rates.h"
#include "sim/topology/topology.h"

namespace netsim {
namespace {

const ConfigNode* given(const ConfigNode& root, const char* key) {
  const ConfigNode* node = root.find(key);
  return node != nullptr && !node->is_null() ? node : nullptr;
}

void refuse_nothing(const ConfigNode* node, const std::string& type, const std::string& absent) {
  ParameterInfo info;
  info.type = type;
  info.default_text = absent;
  if (node != nullptr) refuse_empty(info, *node);
}

std::string in_words(std::uint32_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// A fabric of the configuration, and how many of its host ports are taken, while hosts are assigned to it.
struct ConfiguredFabric {
  std::string name;
  std::unique_ptr<Topology> topology;
  std::uint32_t taken = 0;  // host ports
  std::uint32_t left() const { return topology->host_ports() - taken; }
  // Returns "the topology has 16 host ports" or "fabric rack has 8 of its 72 host ports left".
  std::string room(bool only) const {
    const std::string ports = in_words(topology->host_ports(), "host port");
    const std::string who = only ? "the topology" : "fabric " + name;
    if (taken == 0) return who + " has " + ports;
    return who + " has " + std::to_string(left()) + " of its " + ports + " left";
  }
};

class ClusterBuilder {
 public:
  explicit ClusterBuilder(const ConfigNode& root) : root_(root) {}

  Cluster build() {
    create_fabrics();
    for (const ConfiguredFabric& configured : fabrics_)
      cluster_.fabrics.push_back(
          {.name = configured.name, .scale_up = configured.topology->scale_up(), .ports = {}});
    const auto packets =
        std::find_if(fabrics_.begin(), fabrics_.end(),
                     [](const ConfiguredFabric& configured) { return !configured.topology->scale_up(); });
    if (packets != fabrics_.end()) numbered_ = &*packets;
    if (numbered_ != nullptr) {
      cluster_.host_numbers = numbered_->topology->host_numbers();
      cluster_.gpu_ranks = numbered_->topology->gpu_ranks();
    }
    add_hosts();
    build_fabrics();
    limit_nics(cluster_, nic_rates_);
    find_islands(cluster_);
    check_gpus_joined(cluster_, places_);
    return std::move(cluster_);
  }

 private:
  void create_fabrics() {
    const ConfigNode* several = given(root_, "fabrics");
    const ConfigNode* one = given(root_, "topology");
    if (several == nullptr) {
      if (one == nullptr) missing_topology();
      fabrics_.push_back({kScaleOut, Registry<Topology>::instance().create(*one, ""), 0});
      return;
    }
    if (one != nullptr) {
      throw ConfigError(one->key_place(),
                        "'topology' is the short form of 'fabrics: {scale_out: ...}': give one of them");
    }
    if (!several->is_map() || several->entries().empty())
      several->fail("expected fabrics by name, {scale_out: {kind: ..., its parameters}, ...}");
    constexpr std::size_t kMostFabrics = 200;  // the number of a fabric is stored in one byte
    if (several->entries().size() > kMostFabrics) {
      several->fail(std::to_string(several->entries().size()) + " fabrics; allowed: 1 to " +
                    std::to_string(kMostFabrics));
    }
    for (const auto& [name, node] : several->entries())
      fabrics_.push_back({name, Registry<Topology>::instance().create(node, ""), 0});
  }

  [[noreturn]] void missing_topology() const {
    std::string known;
    for (const std::string& name : Registry<Topology>::instance().names()) {
      append_item(known, name);
    }
    root_.fail("'topology' is missing: {kind: ..., its parameters} (known: " + known + ")");
  }

  ConfiguredFabric* fabric_called(const std::string& name) {
    const auto found =
        std::find_if(fabrics_.begin(), fabrics_.end(),
                     [&](const ConfiguredFabric& configured) { return configured.name == name; });
    return found == fabrics_.end() ? nullptr : &*found;
  }

  // One group of hosts of the configuration. `where` is the place of errors about it.
  struct ConfiguredGroup {
    std::string kind;
    std::unique_ptr<Host> host;
    const ConfigNode* where;
    const ConfigNode* count;   // null: as many hosts as fit
    const ConfigNode* fabric;  // null: its fabrics have the names that the host gives
  };

  static ConfiguredGroup configured_group(const ConfigNode& node, const ConfigNode& where,
                                          const ConfigNode* count, const ConfigNode* fabric = nullptr) {
    return {Registry<Host>::instance().component_name(node, "single_nic"),
            Registry<Host>::instance().create(node, "single_nic"), &where, count, fabric};
  }

  void add_hosts() {
    const ConfigNode* hosts = root_.find("hosts");
    if (hosts != nullptr && hosts->is_sequence()) return add_groups(*hosts);
    refuse_nothing(root_.find("host"), "component", "single_nic");
    const ConfigNode absent;
    const ConfigNode* host = given(root_, "host");
    const ConfiguredGroup group =
        configured_group(host != nullptr ? *host : absent, host != nullptr ? *host : root_, hosts);
    refuse_nothing(hosts, "integer", "as many as fit, " + std::to_string(room_for(group)));
    add_group(group);
  }

  void add_groups(const ConfigNode& list) {
    if (const ConfigNode* host = given(root_, "host"); host != nullptr) {
      throw ConfigError(host->key_place(),
                        "'host' and a list of 'hosts' exclude each other: give {kind: ..., count: ...} for "
                        "each group there");
    }
    if (list.items().empty()) list.fail("expected at least one group, {kind: ..., count: ...}");
    for (const ConfigNode& item : list.items()) {
      if (!item.is_map()) item.fail("expected a group of hosts, {kind: ..., count: ..., its parameters}");
      const ConfigNode* count = item.find("count");
      if (given(item, "count") == nullptr && &item != &list.items().back())
        item.fail(
            "'count' is missing: only the last group may leave it out and take the remaining host ports");
      add_group(
          configured_group(item.without("count").without("fabric"), item, count, given(item, "fabric")));
    }
  }

  // Returns the configured fabrics of a group's hosts. Throws a ConfigError where one does not exist.
  std::vector<std::pair<ConfiguredFabric*, HostFabric>> fabrics_of(const ConfiguredGroup& group) {
    std::vector<std::pair<ConfiguredFabric*, HostFabric>> result;
    for (const HostFabric& fabric : group.host->fabrics()) {
      const ConfigNode* chosen = chosen_fabric(group, fabric.name);
      const std::string name = chosen != nullptr ? read_text(*chosen) : fabric.name;
      ConfiguredFabric* configured = fabric_called(name);
      if (configured == nullptr) {
        std::string known;
        for (const ConfiguredFabric& other : fabrics_) append_item(known, other.name);
        (chosen != nullptr ? *chosen : *group.where)
            .fail("host " + group.kind + " has " + in_words(fabric.ports, "port") + " for a fabric '" + name +
                  "', and there is none (fabrics: " + known + ")");
      }
      result.emplace_back(configured, fabric);
    }
    return result;
  }

  // Returns the group's entry for a fabric of its hosts: `fabric: NAME` for scale_out, or `fabric: {rack:
  // NAME, ...}`. Null: there is none.
  static const ConfigNode* chosen_fabric(const ConfiguredGroup& group, const std::string& name) {
    if (group.fabric == nullptr) return nullptr;
    const std::vector<HostFabric> own = group.host->fabrics();
    std::string known;
    for (const HostFabric& fabric : own) append_item(known, fabric.name);
    const auto has = [&](const std::string& key) {
      return std::any_of(own.begin(), own.end(),
                         [&](const HostFabric& fabric) { return fabric.name == key; });
    };
    if (!group.fabric->is_map()) {
      if (!has(kScaleOut)) {
        group.fabric->fail("hosts " + group.kind + " have no ports for " + kScaleOut +
                           (known.empty() ? "" : ", but for " + known));
      }
      return name == kScaleOut ? group.fabric : nullptr;
    }
    for (const auto& [key, node] : group.fabric->entries()) {
      if (!has(key)) node.fail("hosts " + group.kind + " have no ports for that; allowed: " + known);
    }
    return given(*group.fabric, name.c_str());
  }

  // Returns how many hosts of the group fit into the free host ports. A group without ports gets one host.
  std::uint32_t room_for(const ConfiguredGroup& group) {
    std::uint32_t room = kNoId;
    for (const auto& [configured, fabric] : fabrics_of(group)) {
      if (fabric.ports != 0) room = std::min(room, configured->left() / fabric.ports);
    }
    return room == kNoId ? 1 : room;
  }

  // Returns in words how many hosts fit.
  std::string capacity(const ConfiguredGroup& group, std::uint32_t room) {
    std::string text;
    for (const auto& [configured, fabric] : fabrics_of(group)) {
      if (fabric.ports != 0 && configured->left() / fabric.ports != room) continue;
      text = configured->room(fabrics_.size() == 1) + ", enough for " + in_words(room, "host") + " of " +
             in_words(fabric.ports, configured->topology->scale_up() ? "port" : "NIC");
      break;
    }
    return text.empty() ? "a host without NICs has to be the only one" : text;
  }

  std::uint32_t host_count(const ConfiguredGroup& group) {
    const std::uint32_t room = room_for(group);
    if (group.count == nullptr || group.count->is_null()) {
      if (room == 0) group.where->fail("no host fits: " + capacity(group, room));
      return room;
    }
    const std::int64_t wanted = read_integer(*group.count);
    if (wanted < 1 || wanted > std::int64_t{room}) {
      group.count->fail(std::to_string(wanted) +
                        " hosts; allowed: " + (room == 0 ? "none" : "1 to " + std::to_string(room)) + " (" +
                        capacity(group, room) + ")");
    }
    return static_cast<std::uint32_t>(wanted);
  }

  void add_group(const ConfiguredGroup& group) {
    HostGroup& made = cluster_.groups.emplace_back();
    made.kind = group.kind;
    made.role = group.host->role();
    made.gpu_model = group.host->gpu_model();
    made.compute_capability = group.host->compute_capability();
    made.acknowledge_every = group.host->acknowledge_every();
    for (const std::string& note : group.host->notes())
      cluster_.notes.push_back("host " + group.kind + ": " + note);
    made.gpus = group.host->gpus();
    made.hosts = host_count(group);
    for (const auto& [configured, fabric] : fabrics_of(group))
      made.fabrics.push_back(static_cast<std::uint32_t>(configured - fabrics_.data()));
    places_.push_back(group.where->place());
    for (std::uint32_t i = 0; i < made.hosts; ++i) add_host(group, made);
  }

  void add_host(const ConfiguredGroup& group, HostGroup& made) {
    const HostPlace place{static_cast<std::uint32_t>(cluster_.groups.size() - 1),
                          static_cast<NodeId>(cluster_.graph.node_count()),
                          static_cast<PortId>(cluster_.graph.port_count())};
    const std::uint32_t host = cluster_.host_count++;
    const HostBuild built = group.host->build(cluster_.graph, host, numbers_for(group));
    if (cluster_.hosts.empty() || cluster_.hosts.back().group != place.group)
      made.ways = HostRoutes(cluster_.graph, built, place.first_node, place.first_port);
    cluster_.hosts.push_back(place);
    for (std::uint32_t local = 0; local < built.gpus.size(); ++local) {
      const NodeId node = built.gpus[local];
      cluster_.gpus.push_back(
          {.node = node, .host = host, .local = local, .nic = default_nic(group, made, place, local, node)});
    }
    for (std::size_t i = 0; i < built.ports.size(); ++i) join(made.fabrics[i], host, built.ports[i]);
    for (std::size_t i = 0; i < built.nic_rates.size(); ++i) {
      if (built.nic_rates[i] != 0) nic_rates_.push_back({built.ports[0][i], built.nic_rates[i], place.group});
    }
  }

  // Returns the numbers of the next host's ports in the file of the first packet fabric.
  std::span<const std::uint32_t> numbers_for(const ConfiguredGroup& group) {
    if (cluster_.host_numbers.empty()) return {};
    for (const auto& [configured, fabric] : fabrics_of(group)) {
      if (configured != numbered_) continue;
      return std::span<const std::uint32_t>(cluster_.host_numbers).subspan(numbered_->taken, fabric.ports);
    }
    return {};
  }

  // Returns the GPU's nearest NIC in scale_out, or in the first packet fabric if it has none there. Without
  // NICs it is the GPU's node.
  NodeId default_nic(const ConfiguredGroup& configured, const HostGroup& group, const HostPlace& place,
                     std::uint32_t local, NodeId gpu) const {
    NodeId nic = kNoId;
    const std::vector<HostFabric> own = configured.host->fabrics();
    for (std::uint32_t i = 0; i < group.fabrics.size(); ++i) {
      const ClusterFabric& fabric = cluster_.fabrics[group.fabrics[i]];
      const auto ways = group.ways.nics(local, i);
      if (fabric.scale_up || ways.empty() || (nic != kNoId && own[i].name != kScaleOut)) continue;
      nic = place.first_node + ways.front().nic;
    }
    return nic == kNoId ? gpu : nic;
  }

  void join(std::uint32_t fabric, std::uint32_t host, const std::vector<NodeId>& nodes) {
    for (std::uint32_t rail = 0; rail < nodes.size(); ++rail)
      cluster_.fabrics[fabric].ports.push_back({.nic = nodes[rail], .host = host, .rail = rail});
    fabrics_[fabric].taken += static_cast<std::uint32_t>(nodes.size());
  }

  void build_fabrics() {
    std::vector<std::unique_ptr<Routes>> routes;
    for (std::size_t i = 0; i < fabrics_.size(); ++i) {
      ClusterFabric& fabric = cluster_.fabrics[i];
      fabric.first_switch = static_cast<NodeId>(cluster_.graph.node_count());
      if (fabrics_.size() > 1 && fabric.name != kScaleOut) cluster_.graph.set_name_prefix(fabric.name + "/");
      routes.push_back(fabrics_[i].topology->build(cluster_.graph, fabric.ports));
      if (const ConfigNode* boxes = given(root_, "boxes"); boxes != nullptr && !fabric.scale_up) {
        const auto end = static_cast<NodeId>(cluster_.graph.node_count());
        routes.back() =
            with_boxes(*boxes, cluster_.graph, fabric.first_switch, end, std::move(routes.back()));
      }
      for (const std::string& note : fabrics_[i].topology->notes())
        cluster_.notes.push_back((fabrics_.size() > 1 ? "fabric " + fabric.name + ": " : "") + note);
      cluster_.graph.set_name_prefix("");
      fabric.end_switch = static_cast<NodeId>(cluster_.graph.node_count());
      if (fabric.scale_up) {
        domains_ = find_domains(cluster_, fabric, domains_);
      } else {
        cluster_.nics.insert(cluster_.nics.end(), fabric.ports.begin(), fabric.ports.end());
      }
    }
    cluster_.routes = join_routes(cluster_, std::move(routes));
  }

  const ConfigNode& root_;
  std::vector<ConfiguredFabric> fabrics_;
  const ConfiguredFabric* numbered_ = nullptr;  // the first packet fabric
  std::vector<Place> places_;                   // by group
  std::vector<NicRate> nic_rates_;
  Cluster cluster_;
  std::uint32_t domains_ = 0;  // number of scale-up domains
};

}  // namespace

Cluster build_cluster(const ConfigNode& root) { return ClusterBuilder(root).build(); }

}  // namespace netsim
