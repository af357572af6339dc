#include "sim/core/adjacency_list.h"

#include <algorithm>

namespace netsim {

void AdjacencyList::build(std::size_t sources, const std::vector<Edge>& edges) {
  begin_.assign(sources + 1, 0);
  for (const Edge& edge : edges) ++begin_[edge.first + 1];
  for (std::size_t i = 0; i < sources; ++i) begin_[i + 1] += begin_[i];
  targets_.resize(edges.size());
  std::vector<std::uint32_t> cursor(begin_.begin(), begin_.end() - 1);
  for (const Edge& edge : edges) targets_[cursor[edge.first]++] = edge.second;
  for (std::size_t i = 0; i < sources; ++i) {
    std::sort(targets_.begin() + begin_[i], targets_.begin() + begin_[i + 1]);
  }
}

}  // namespace netsim
