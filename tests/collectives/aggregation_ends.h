// The connections that a step of a plan sends on or receives from, by the definition of aggregation groups in
// sim/collectives/plan.h, for executors of tests.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/collectives/plan.h"

namespace netsim::test {

// A thread block, by rank and number; an aggregation group is {kInFan, its number}.
using BlockOrFan = std::pair<std::uint32_t, std::uint32_t>;
inline constexpr std::uint32_t kInFan = UINT32_MAX;
using Ends = std::pair<BlockOrFan, BlockOrFan>;  // from, to

// Returns the ends of thread block `block` of `rank` between it and `partner`, which it sends to or else
// receives from.
inline std::vector<Ends> ends_of(const Plan& plan, std::uint32_t rank, std::uint32_t block, Partner partner,
                                 bool sends) {
  const auto one = [&](BlockOrFan own, BlockOrFan other) {
    return sends ? Ends{own, other} : Ends{other, own};
  };
  if (partner.aggregation == kNoIndex) return {one({rank, block}, {partner.rank, partner.block})};
  const AggregationGroup aggregation = plan.aggregation(partner.aggregation);
  const BlockOrFan middle{kInFan, partner.aggregation};
  if (!aggregation.is_head(rank, block)) return {one({rank, block}, middle)};
  std::vector<Ends> all;
  for (std::uint32_t i = 0; i < aggregation.members; ++i) {
    const BlockOrFan member{aggregation.member(i), aggregation.block};
    all.push_back(sends ? Ends{middle, member} : Ends{member, middle});
  }
  return all;
}

inline bool is_end(const Plan& plan, std::uint32_t rank, std::uint32_t block, Partner partner) {
  if (partner.aggregation >= plan.aggregations()) return false;
  const AggregationGroup aggregation = plan.aggregation(partner.aggregation);
  return aggregation.is_head(rank, block) || (aggregation.block == block && aggregation.has_member(rank));
}

}  // namespace netsim::test
