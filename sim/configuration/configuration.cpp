#include "sim/configuration/configuration.h"

#include <algorithm>
#include <vector>

#include "sim/collectives/execution/executor.h"
#include "sim/compute/compute_devices.h"
#include "sim/configuration/component_node.h"
#include "sim/core/registry.h"
#include "sim/report/output_parameters.h"
#include "sim/scheduling/placement.h"
#include "sim/scheduling/scheduling_parameters.h"
#include "sim/topology/boxes.h"
#include "sim/topology/partition.h"
#include "sim/transport/packet_network.h"

namespace netsim {
namespace {

ParameterInfo hosts_info() {
  ParameterInfo info;
  info.name = "hosts";
  info.type = "groups";
  info.component_kind = "host";
  info.minimum_text = "1";
  info.doc =
      "how many hosts of the kind `host`, by default as many as the fabrics' host ports hold; or a list of "
      "groups, {kind: ..., count: ..., parameters}, that take host ports one after the other";
  return info;
}

ParameterInfo fabrics_info() {
  ParameterInfo info;
  info.name = "fabrics";
  info.type = "components";
  info.component_kind = "topology";
  info.doc =
      "several fabrics by name, {scale_out: {kind: ...}, rack: {kind: ...}}; `topology` is the short form of "
      "one that is called scale_out";
  return info;
}

// Registers the two networks for --list and --describe. They are no components with a factory, because their
// makers need the cluster.
bool add_network_kinds() {
  Catalogue& catalogue = Catalogue::instance();
  catalogue.add({"network", "packet", "simulates every packet in NICs, links and switches",
                 PacketNetwork::network_parameters()});
  catalogue.add({"network", "ideal",
                 "every transfer takes a constant time: for studies of schedules and pipelines alone",
                 ideal_parameters().table()});
  return true;
}
[[maybe_unused]] const bool kNetworkKindsAdded = add_network_kinds();

ParameterTable make_table() {
  return {
      component_info("topology", "topology", "", "the fabric: switches and links"),
      fabrics_info(),
      component_info("host", "host", "single_nic", "hosts at the fabric's host ports"),
      hosts_info(),
      section_info("boxes", box_parameter_table(),
                   "servers at the switches of packet fabrics that add up for them"),
      component_info("network", "network", "packet",
                     "network that carries messages: queues, marking, flow control"),
      section_info("transport", PacketNetwork::transport_parameters(), "queue pairs and congestion control"),
      section_info("collectives", Executor::parameter_table(),
                   "algorithms, channels and costs of the collective library"),
      component_info("compute", "compute_model", "", "time of kernels; default: the host's GPU"),
      section_info("gpus", gpu_parameters().table(),
                   "mutual slowdown of computing and communication, variation and failures of GPUs"),
      component_info("placement", "placement", "packed", "which GPU each rank of a job runs on"),
      section_info("scheduling", scheduling_parameters().table(),
                   "the schedulers of jobs, tasks and flows, and the times at which they decide; the queue "
                   "discipline of "
                   "switches is network.switch.scheduler"),
      section_info("output", output_parameters().table(), "tables"),
      section_info("engine", engine_parameters().table(), "parameters of the simulator itself")};
}

}  // namespace

const Parameters<IdealParameters>& ideal_parameters() {
  static const auto parameters = Parameters<IdealParameters>().time(
      "delay", &IdealParameters::delay, {0, kSecond}, "time from the start of a transfer to its end");
  return parameters;
}

const ParameterTable& configuration_table() {
  static const ParameterTable table = make_table();
  return table;
}

void check_sections(const ConfigNode& root) {
  std::vector<std::string> names;
  for (const ParameterInfo& info : configuration_table()) names.push_back(info.name);
  root.allow_keys(names);
}

std::string network_kind(const ConfigNode& root) {
  const ConfigNode* network = root.find("network");
  if (network == nullptr || network->is_null()) return "packet";
  if (network->is_sequence()) network->fail("a map or one of: packet, ideal");
  const ConfigNode* kind = network->is_map() ? network->find("kind") : network;
  if (kind == nullptr || kind->is_null()) return "packet";
  std::string name = read_text(*kind);
  if (name != "packet" && name != "ideal") kind->fail("'" + name + "' is not one of: packet, ideal");
  return name;
}

std::string configured(const ConfigNode& root, const std::string& path) {
  const ConfigNode* node = &root;
  const ParameterTable* table = &configuration_table();
  for (std::size_t from = 0;;) {
    const std::size_t dot = path.find('.', from);
    const std::string name = path.substr(from, dot == std::string::npos ? dot : dot - from);
    const auto info = std::find_if(table->begin(), table->end(),
                                   [&](const ParameterInfo& candidate) { return candidate.name == name; });
    if (info == table->end()) return "";
    node = node != nullptr ? node->find(name) : nullptr;
    if (node != nullptr && node->is_null()) node = nullptr;
    std::string text = info->default_text;
    table = &info->children;
    if (info->type == "sections" && dot != std::string::npos) {  // the next name is that of one section
      const std::size_t end = path.find('.', dot + 1);
      if (end == std::string::npos) return "";
      if (node != nullptr) node = node->find(path.substr(dot + 1, end - dot - 1));
      if (node != nullptr && node->is_null()) node = nullptr;
      from = end + 1;
      continue;
    }
    if (info->type == "component") {
      if (const ConfigNode* kind = component_kind(node); kind != nullptr) text = kind->text();
      const ComponentInfo* known = Catalogue::instance().find(info->component_kind, text);
      table = known != nullptr ? &known->parameters : &info->children;
    } else if (node != nullptr) {
      text = node->is_scalar() ? node->text() : "";
    }
    if (dot == std::string::npos) return text;
    from = dot + 1;
  }
}

std::string configured_in(const ConfigNode& root, const std::string& fabric, const std::string& section,
                          const std::string& path) {
  const ConfigNode* node = root.find(section);
  for (const std::string& name : {std::string("fabrics"), fabric}) {
    if (node != nullptr) node = node->find(name);
  }
  for (std::size_t from = 0; node != nullptr && from < path.size();) {
    const std::size_t end = std::min(path.find('.', from), path.size());
    node = node->find(path.substr(from, end - from));
    from = end + 1;
  }
  return configured(root, section + (node != nullptr ? ".fabrics." + fabric : "") + "." + path);
}

std::string common_gpu_model(const Cluster& cluster) {
  const std::string& first = cluster.groups.front().gpu_model;
  const bool common = std::all_of(cluster.groups.begin(), cluster.groups.end(),
                                  [&](const HostGroup& group) { return group.gpu_model == first; });
  return common ? first : "";
}

}  // namespace netsim
