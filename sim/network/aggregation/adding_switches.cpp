#include "sim/network/aggregation/adding_switches.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "sim/core/text.h"

namespace netsim {
namespace {

// Returns the names of a list, each of which must be that of a switch.
std::set<std::string> read_switches(const ConfigNode& list, const Graph& graph) {
  if (!list.is_sequence()) list.fail("a list of names of switches is expected: [leaf0, spine0]");
  std::vector<std::string> names;
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    if (is_switch(graph, node)) names.push_back(graph.node(node).name);
  }
  std::set<std::string> listed;
  for (const ConfigNode& entry : list.items()) {
    const std::string given = read_text(entry);
    if (std::find(names.begin(), names.end(), given) == names.end())
      entry.fail("no switch of the fabric '" + given + "'" + did_you_mean(given, names));
    listed.insert(given);
  }
  return listed;
}

}  // namespace

std::vector<bool> adding_switches(const FabricState& state) {
  const Graph& graph = state.graph;
  std::vector<bool> adds(graph.node_count(), false);
  const bool boxes = has_boxes(graph);
  std::map<const SwitchParameters*, std::set<std::string>> listed;  // of parameters with a list
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    if (!is_switch(graph, node)) continue;
    const SwitchParameters& rules = state.of_switch(node);
    const NumberFormats formats = read_formats(rules.aggregation_formats);
    if (!rules.aggregation_rates.is_null()) check_format_rates(rules.aggregation_rates, formats);
    adds[node] = rules.aggregation && (!boxes || graph.node(node).box);
    if (rules.aggregation_switches.is_null()) continue;
    const auto [entry, is_new] = listed.try_emplace(&rules);
    if (is_new) entry->second = read_switches(rules.aggregation_switches, graph);
    adds[node] = rules.aggregation && entry->second.contains(graph.node(node).name);
  }
  return adds;
}

NodeId switch_without_format(const FabricState& state, const std::vector<bool>& adds, NumberFormat format) {
  for (NodeId node = 0; node < adds.size(); ++node) {
    if (adds[node] && !read_formats(state.of_switch(node).aggregation_formats).has(format)) return node;
  }
  return kNoId;
}

}  // namespace netsim
