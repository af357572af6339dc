#include "sim/network/aggregation/adding_switches.h"

#include <algorithm>
#include <string>

#include "sim/core/text.h"

namespace netsim {
namespace {

// Returns whether the list holds the name. Each entry must be one of `names`.
bool lists_switch(const ConfigNode& list, const std::string& name, const std::vector<std::string>& names) {
  if (!list.is_sequence()) list.fail("a list of names of switches is expected: [leaf0, spine0]");
  bool found = false;
  for (const ConfigNode& entry : list.items()) {
    const std::string given = read_text(entry);
    if (std::find(names.begin(), names.end(), given) == names.end())
      entry.fail("no switch of the fabric '" + given + "'" + did_you_mean(given, names));
    found = found || given == name;
  }
  return found;
}

}  // namespace

std::vector<bool> adding_switches(const FabricState& state) {
  const Graph& graph = state.graph;
  std::vector<bool> adds(graph.node_count(), false);
  std::vector<std::string> names;
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    if (is_switch(graph, node)) names.push_back(graph.node(node).name);
  }
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    if (!is_switch(graph, node)) continue;
    const SwitchParameters& rules = state.of_switch(node);
    const ConfigNode& list = rules.aggregation_switches;
    adds[node] = (list.is_null() || lists_switch(list, graph.node(node).name, names)) && rules.aggregation;
  }
  return adds;
}

}  // namespace netsim
