#include "sim/topology/parts.h"

#include <boost/pending/disjoint_sets.hpp>
#include <numeric>

namespace netsim {

std::vector<std::uint32_t> parts_below(const Graph& graph, int tier) {
  std::vector<std::uint32_t> rank(graph.node_count()), parent(graph.node_count());
  std::iota(parent.begin(), parent.end(), 0U);
  boost::disjoint_sets sets(rank.data(), parent.data());
  const auto stays = [&](NodeId node) {
    return graph.node(node).kind != NodeKind::fabric_switch || graph.node(node).tier < tier;
  };
  for (PortId port = 0; port < graph.port_count(); port += 2) {
    const PortSpec& spec = graph.port(port);
    if (stays(spec.node) && stays(spec.peer_node)) sets.union_set(spec.node, spec.peer_node);
  }
  std::vector<std::uint32_t> parts(graph.node_count());
  for (NodeId node = 0; node < graph.node_count(); ++node) parts[node] = sets.find_set(node);
  return parts;
}

}  // namespace netsim
