#include "sim/topology/matching.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/maximum_weighted_matching.hpp>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

namespace netsim {
namespace {

// Disables the leak checker. Boost's blossoms own one another in cycles and are never freed: some hundred
// bytes for each odd cycle that a matching meets. This happens once for each topology that is built.
struct BlossomsMayLeak {
#ifdef __SANITIZE_ADDRESS__
  __lsan::ScopedDisabler disabler;
#endif
};

using Weight = boost::property<boost::edge_weight_t, std::int64_t>;
using WeightedPairs =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, boost::no_property, Weight>;

}  // namespace

std::vector<std::pair<std::uint32_t, std::uint32_t>> heaviest_matching(std::uint32_t count,
                                                                       const PairWeights& weights) {
  if (weights.empty()) return {};  // Boost doubles the largest weight, which does not exist then
  WeightedPairs pairs(count);
  for (const auto& [ends, weight] : weights) boost::add_edge(ends.first, ends.second, Weight(weight), pairs);
  std::vector<boost::graph_traits<WeightedPairs>::vertex_descriptor> mate(count);
  {
    [[maybe_unused]] const BlossomsMayLeak blossoms;
    boost::maximum_weighted_matching(pairs, mate.data());
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> matching;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (mate[i] != boost::graph_traits<WeightedPairs>::null_vertex() && i < mate[i])
      matching.emplace_back(i, static_cast<std::uint32_t>(mate[i]));
  }
  return matching;
}

}  // namespace netsim
