// Helpers with which tests of programs inspect plans.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "sim/collectives/plan.h"

namespace netsim::test {

// A step by what it does: without the chunks that its kind has no use for.
inline auto meaning(const Step& step) {
  const auto chunk = [&](bool used, ChunkAt at) {
    return used ? std::pair(static_cast<int>(at.buffer), std::int64_t{at.chunk})
                : std::pair(-1, std::int64_t{-1});
  };
  const auto partner = [](bool used, Partner of) {
    return used ? std::pair(of.rank, of.block) : std::pair(kNoIndex, kNoIndex);
  };
  const bool waits = step.after_block != kNoIndex;
  return std::tuple(std::string(to_string(step.kind)), step.kind == Step::Kind::nothing ? 0 : step.count,
                    chunk(reads_source(step.kind), step.source),
                    chunk(writes_destination(step.kind), step.destination),
                    partner(sends(step.kind), step.to), partner(receives(step.kind), step.from),
                    step.after_block, waits ? step.after_step : 0);
}

// Thread block by thread block and step by step.
inline void expect_equal(const Plan& a, const Plan& b) {
  EXPECT_EQ(a.kind(), b.kind());
  EXPECT_STREQ(a.algorithm(), b.algorithm());
  ASSERT_EQ(a.ranks(), b.ranks());
  EXPECT_EQ(a.root(), b.root());
  EXPECT_EQ(a.chunks(), b.chunks());
  EXPECT_EQ(a.channels(), b.channels());
  EXPECT_EQ(a.in_place(), b.in_place());
  EXPECT_EQ(a.largest_count(), b.largest_count());
  for (std::uint32_t rank = 0; rank < a.ranks(); ++rank) {
    EXPECT_EQ(a.scratch_chunks(rank), b.scratch_chunks(rank));
    ASSERT_EQ(a.blocks(rank), b.blocks(rank)) << rank;
    for (std::uint32_t block = 0; block < a.blocks(rank); ++block) {
      EXPECT_EQ(a.channel(rank, block), b.channel(rank, block)) << rank << " " << block;
      ASSERT_EQ(a.steps(rank, block), b.steps(rank, block)) << rank << " " << block;
      for (std::uint32_t i = 0; i < a.steps(rank, block); ++i) {
        EXPECT_EQ(meaning(a.step(rank, block, i)), meaning(b.step(rank, block, i)))
            << "rank " << rank << ", thread block " << block << ", step " << i;
      }
    }
  }
}

// The chunks of each message, by its two ranks; of a pair of ranks in no order, because their connections
// have none.
inline std::map<std::pair<std::uint32_t, std::uint32_t>, std::multiset<std::uint32_t>> messages(
    const Plan& plan) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::multiset<std::uint32_t>> result;
  for (std::uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    for (std::uint32_t block = 0; block < plan.blocks(rank); ++block) {
      for (std::uint32_t i = 0; i < plan.steps(rank, block); ++i) {
        const Step step = plan.step(rank, block, i);
        if (sends(step.kind)) result[{rank, step.to.rank}].insert(step.count);
      }
    }
  }
  return result;
}

}  // namespace netsim::test
