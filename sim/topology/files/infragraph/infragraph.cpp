#include "sim/topology/files/infragraph/infragraph.h"

#include <map>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/parameters.h"
#include "sim/core/recognise.h"
#include "sim/topology/files/file_parameters.h"
#include "sim/topology/files/infragraph/infrastructure.h"
#include "sim/topology/files/infragraph/node_link.h"
#include "sim/topology/files/infragraph/readings.h"

namespace netsim {

namespace infragraph {
namespace {

// Sets what an attribute of a node states: `rank` and `sm` of xpus, and `speed` of NICs (Mb/s).
void annotate(const ConfigNode& attribute, DescribedCluster::Node& node) {
  const std::string what = text_in(attribute, "attribute");
  if (what == "rank") node.rank = rank_of(needed(attribute, "value"));
  if (what == "sm" && node.kind == DescribedCluster::Kind::xpu) {
    const ConfigNode& value = needed(attribute, "value");
    node.compute_capability = read_integer(value);
    if (node.compute_capability < 1 || node.compute_capability > 100'000) out_of_range(value, "1", "100000");
  }
  if (what == "speed" && node.kind == DescribedCluster::Kind::nic) {
    const ConfigNode& value = needed(attribute, "value");
    node.nic_rate = rate_of(value, static_cast<double>(read_integer(value)) * 1e6);
  }
}

// Reads the annotations of nodes, as the translator of NCCL's files writes them.
void read_annotations(const ConfigNode& annotations, DescribedCluster& cluster) {
  std::map<std::string, DescribedCluster::Node*> by_name;
  for (DescribedCluster::Node& node : cluster.nodes) by_name.emplace(node.name, &node);
  for (const ConfigNode& item : list_in(annotations, "nodes")) {
    const ConfigNode& name = needed(item, "name");
    const auto node = by_name.find(read_text(name));
    if (node == by_name.end()) name.fail("'" + read_text(name) + "' is no node of the infrastructure");
    for (const ConfigNode& attribute : list_in(item, "attributes")) annotate(attribute, *node->second);
  }
}

// Reads a Device alone: one instance of it, with its name.
DescribedCluster read_device(const ConfigNode& device, const std::string& file) {
  const Place& place = device.place();
  ConfigNode root = ConfigNode::map(place), devices = ConfigNode::sequence(place),
             instances = ConfigNode::sequence(place), instance = ConfigNode::map(place);
  devices.push_back(device);
  const std::string name = name_in(device);
  instance.at_or_add("name") = ConfigNode::scalar(name, place);
  instance.at_or_add("device") = ConfigNode::scalar(name, place);
  instance.at_or_add("count") = ConfigNode::scalar("1", place);
  instances.push_back(std::move(instance));
  root.at_or_add("devices") = std::move(devices);
  root.at_or_add("instances") = std::move(instances);
  return read_infrastructure(root, file);
}

}  // namespace
}  // namespace infragraph

DescribedCluster read_infragraph(const ConfigNode& document, const std::string& file) {
  const ConfigNode* inner = document.find("infrastructure");
  const ConfigNode& root = inner != nullptr ? *inner : document;
  if (const ConfigNode* old = root.find("connections")) infragraph::fail_as_old(*old, "edges");
  if (const ConfigNode* old = document.find("device")) infragraph::fail_as_old(*old, "devices");
  if (inner != nullptr) {
    document.allow_keys({"infrastructure", "annotations"});
    DescribedCluster cluster = infragraph::read_infrastructure(*inner, file);
    if (const ConfigNode* notes = document.find("annotations"); notes != nullptr && !notes->is_null())
      infragraph::read_annotations(*notes, cluster);
    infragraph::rate_by_capability(cluster);
    return cluster;
  }
  if (document.find("components") != nullptr) return infragraph::read_device(document, file);
  if (document.find("nodes") != nullptr) return infragraph::read_node_link(document, file);
  return infragraph::read_infrastructure(document, file);
}

DescribedCluster read_infragraph_file(const ConfigNode& where) {
  const InputText input = read_named_file(where);
  const Format* format = recognise(input.text, input.path);
  return as_input([&] {
    if (format != nullptr && format->name == "infragraph_pb")
      return read_infragraph(parse_infragraph_message(input.text, input.path), input.path);
    require_format(input.text, input.path, "infragraph");
    return read_infragraph(parse_config(input.text, input.path), input.path);
  });
}

}  // namespace netsim
