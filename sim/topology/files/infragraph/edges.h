// Edges between nodes of a device or of the infrastructure, and their schemes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/core/config.h"
#include "sim/topology/files/infragraph/descriptions.h"
#include "sim/topology/files/infragraph/readings.h"

namespace netsim::infragraph {

// Edge: a link between two nodes. `wire` belongs to the Wires that the edge's entry refers to.
struct Edge {
  std::uint32_t a, b;
  const Wire* wire;
  Place place;
};

// EdgeSet: a set of edges. Edges between the same two nodes are one; the last one counts.
class EdgeSet {
 public:
  // Adds an edge. Throws a ConfigError at `at` where there are too many.
  void add(Edge edge, const ConfigNode& at);
  const std::vector<Edge>& edges() const { return edges_; }

 private:
  std::vector<Edge> edges_;
  std::unordered_map<std::uint64_t, std::size_t> known_;
};

// Adds the edges of an entry of `edges`. `nodes_of` returns the nodes that its end "ep1" or "ep2" selects,
// and `owner` says whose links `wires` are ("this device").
void add_edges(const ConfigNode& item, const Wires& wires, const std::string& owner,
               const std::function<std::vector<std::uint32_t>(const char* end)>& nodes_of, EdgeSet& edges);

}  // namespace netsim::infragraph
