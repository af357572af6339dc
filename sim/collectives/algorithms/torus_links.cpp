#include "sim/collectives/algorithms/torus_links.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/collectives/algorithms/regular_plan.h"
#include "sim/collectives/algorithms/torus_trees.h"
#include "sim/core/text.h"

namespace netsim {
namespace {

using RankPair = std::pair<std::uint32_t, std::uint32_t>;

// Returns the first two neighbours on the torus that no link joins; nullopt: links join all.
std::optional<RankPair> pair_without_link(const Dimensions& sizes, const RankLinks& links) {
  std::uint32_t stride = 1;
  for (const std::uint32_t size : sizes) {
    for (std::uint32_t rank = 0; rank < links.size(); ++rank) {
      const std::uint32_t at = rank / stride % size;
      const std::uint32_t next = rank - at * stride + (at + 1) % size * stride;
      if (!std::binary_search(links[rank].begin(), links[rank].end(), next)) return RankPair{rank, next};
    }
    stride *= size;
  }
  return std::nullopt;
}

// Calls visit(sizes) for each way to write `ranks` as an ordered product of at most `most` factors above 1.
template <class Visit>
void each_product(std::uint32_t ranks, std::size_t most, Dimensions& sizes, const Visit& visit) {
  if (ranks == 1) visit(std::as_const(sizes));
  if (most == 0) return;
  for (std::uint32_t size = 2; size <= ranks; ++size) {
    if (ranks % size != 0) continue;
    sizes.push_back(size);
    each_product(ranks / size, most - 1, sizes, visit);
    sizes.pop_back();
  }
}

Dimensions without_ones(Dimensions dimensions) {
  dimensions.erase(std::remove(dimensions.begin(), dimensions.end(), 1U), dimensions.end());
  return dimensions;
}

Dimensions found_torus(std::uint32_t ranks, const RankLinks& links) {
  Dimensions best, sizes;
  std::uint32_t most = 0;
  each_product(ranks, kMostDimensionsOfTorus, sizes, [&](const Dimensions& torus) {
    const std::uint32_t trees = TorusTrees(torus).count();
    if (trees <= most || pair_without_link(torus, links)) return;
    most = trees;
    best = torus;
  });
  return best;
}

}  // namespace

Dimensions torus_of(const Dimensions& given, const char* algorithm, CollectiveKind kind,
                    const GroupShape& shape) {
  if (given.empty() && !shape.links.empty()) {
    Dimensions found = found_torus(shape.ranks, shape.links);
    if (found.empty()) {
      refuse(algorithm, kind, shape.ranks,
             "needs a torus of links that join the ranks directly, in their order: topology torus, closed in "
             "all dimensions, with one rank a host, and a group of all hosts or of whole rows");
    }
    return found;
  }
  Dimensions sizes = without_ones(dimensions_of(given, {shape.ranks}, algorithm, kind, shape.ranks));
  if (shape.links.empty()) return sizes;
  if (const auto pair = pair_without_link(sizes, shape.links)) {
    std::string text;
    for (const std::uint32_t size : sizes) append_item(text, std::to_string(size), " x ");
    refuse(algorithm, kind, shape.ranks,
           "needs a link between neighbours on the torus of its dimensions, " + text +
               ", and none joins ranks " + std::to_string(pair->first) + " and " +
               std::to_string(pair->second));
  }
  return sizes;
}

}  // namespace netsim
