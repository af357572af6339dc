// Are the shipped schedules right, lazy, and do they send the bytes that the closed forms say?
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>

#include "sim/collectives/algorithm.h"
#include "sim/core/errors.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

using Op = Instruction::Op;

struct Case {
  const char* algorithm;
  CollectiveKind kind;
};
constexpr Case kCases[] = {
    {"ring", CollectiveKind::all_reduce},     {"ring", CollectiveKind::all_gather},
    {"ring", CollectiveKind::reduce_scatter}, {"double_binary_tree", CollectiveKind::all_reduce},
    {"pairwise", CollectiveKind::all_to_all}, {"chain", CollectiveKind::broadcast},
    {"chain", CollectiveKind::reduce},
};

std::unique_ptr<Schedule> make(const std::string& algorithm, CollectiveKind kind, std::uint32_t ranks,
                               std::uint32_t root = 0) {
  return Registry<CollectiveAlgorithm>::instance().create(algorithm)->schedule(kind, ranks, root);
}

std::vector<std::uint32_t> group_sizes() {
  std::vector<std::uint32_t> sizes;
  for (std::uint32_t p = 2; p <= 33; ++p) sizes.push_back(p);
  sizes.insert(sizes.end(), {48, 64, 100, 128, 257});
  return sizes;
}

class EverySchedule : public testing::TestWithParam<Case> {};

TEST_P(EverySchedule, IsProvedForManyGroupSizes) {
  for (const std::uint32_t p : group_sizes()) {
    for (const std::uint32_t root : {0U, 1U, p / 2, p - 1}) {
      const auto schedule = make(GetParam().algorithm, GetParam().kind, p, root);
      ASSERT_EQ(prove(*schedule), "") << "p = " << p << ", root = " << root;
      EXPECT_EQ(schedule->ranks(), p);
      EXPECT_EQ(schedule->kind(), GetParam().kind);
      EXPECT_STREQ(schedule->algorithm(), GetParam().algorithm);
      if (!has_root(GetParam().kind)) break;
      EXPECT_EQ(schedule->root(), root);
    }
  }
}

TEST_P(EverySchedule, SendsWhatItReceives) {
  for (const std::uint32_t p : {2U, 3U, 8U, 13U}) {
    const auto schedule = make(GetParam().algorithm, GetParam().kind, p);
    std::multiset<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> sent, received;
    for (std::uint32_t rank = 0; rank < p; ++rank) {
      for (std::uint32_t thread = 0; thread < schedule->thread_blocks(); ++thread) {
        for (std::uint32_t i = 0; i < schedule->instructions(rank, thread); ++i) {
          const Instruction x = schedule->instruction(rank, thread, i);
          if (x.op == Op::send) sent.emplace(rank, x.peer, x.chunk);
          if (x.op == Op::receive || x.op == Op::reduce) received.emplace(x.peer, rank, x.chunk);
        }
      }
    }
    EXPECT_EQ(sent, received);
    EXPECT_FALSE(sent.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Shipped, EverySchedule, testing::ValuesIn(kCases), [](const auto& named) {
  return std::string(named.param.algorithm) + "_" + to_string(named.param.kind);
});

TEST(Direct, IsProved) {
  EXPECT_EQ(prove(*make("direct", CollectiveKind::point_to_point, 2)), "");
  EXPECT_EQ(bytes_sent(*make("direct", CollectiveKind::point_to_point, 2), 0, 77), 77);
  EXPECT_EQ(bytes_sent(*make("direct", CollectiveKind::point_to_point, 2), 1, 77), 0);
}

TEST(Ring, IsLazyAtHundredThousandRanks) {
  const std::uint32_t p = 100'000;
  const auto ring = make("ring", CollectiveKind::all_reduce, p);
  EXPECT_EQ(ring->instructions(7, 0), 4 * (p - 1));
  const Instruction first = ring->instruction(0, 0, 0), last = ring->instruction(0, 0, 4 * (p - 1) - 1);
  EXPECT_EQ(first.op, Op::send);
  EXPECT_EQ(first.peer, 1U);
  EXPECT_EQ(first.chunk, 0U);
  EXPECT_EQ(last.op, Op::receive);
  EXPECT_EQ(last.peer, p - 1);
  EXPECT_EQ(last.chunk, 2U);  // 0 - (2(p-1) - 1) - 1 = 2 mod p
  EXPECT_EQ(bytes_sent(*ring, 5, Bytes{p} * 1000), Bytes{2} * (p - 1) * 1000);
}

TEST(Ring, ReducesForHalfOfAnAllReduceOnly) {
  const auto ring = make("ring", CollectiveKind::all_reduce, 5);
  for (std::uint32_t i = 1; i < ring->instructions(3, 0); i += 2) {
    EXPECT_EQ(ring->instruction(3, 0, i).op, i < 8 ? Op::reduce : Op::receive) << i;
  }
}

TEST(Ring, OfAReduceScatterEndsWithTheOwnChunk) {
  for (const std::uint32_t p : {2U, 3U, 7U}) {
    const auto ring = make("ring", CollectiveKind::reduce_scatter, p);
    for (std::uint32_t r = 0; r < p; ++r) EXPECT_EQ(ring->instruction(r, 0, 2 * (p - 1) - 1).chunk, r);
  }
}

// Bytes of one rank: 2n(p-1)/p, n(p-1)/p, and so on (papers: Patarasuk & Yuan), exact where p divides n.
TEST(Bytes, EqualTheClosedForms) {
  for (const std::uint32_t p : {2U, 3U, 8U, 12U}) {
    const Bytes n = 7 * 24 * Bytes{p}, part = n / p;
    for (std::uint32_t r = 0; r < p; ++r) {
      EXPECT_EQ(bytes_sent(*make("ring", CollectiveKind::all_reduce, p), r, n), 2 * (n - part));
      EXPECT_EQ(bytes_sent(*make("ring", CollectiveKind::all_gather, p), r, n), n - part);
      EXPECT_EQ(bytes_sent(*make("ring", CollectiveKind::reduce_scatter, p), r, n), n - part);
      EXPECT_EQ(bytes_sent(*make("pairwise", CollectiveKind::all_to_all, p), r, n), n - part);
      EXPECT_EQ(bytes_sent(*make("chain", CollectiveKind::broadcast, p, 1), r, n), r == 0 ? 0 : n);
      EXPECT_EQ(bytes_sent(*make("chain", CollectiveKind::reduce, p, 1), r, n), r == 1 ? 0 : n);
      EXPECT_LE(bytes_sent(*make("double_binary_tree", CollectiveKind::all_reduce, p), r, n), 2 * n);
    }
  }
}

// Whatever n is: each edge of a tree carries its half once up and once down; each chunk of a ring is sent by
// all but one rank; each block of an all-to-all by its source.
TEST(Bytes, OfAllRanksAddUpExactly) {
  EXPECT_TRUE(rc::check("bytes of all ranks", [] {
    const auto p = *rc::gen::inRange<std::uint32_t>(2, 40);
    const auto n = *rc::gen::inRange<Bytes>(1, Bytes{1} << 40);
    const auto total = [&](const char* algorithm, CollectiveKind kind) {
      const auto schedule = make(algorithm, kind, p);
      Bytes sum = 0;
      for (std::uint32_t r = 0; r < p; ++r) sum += bytes_sent(*schedule, r, n);
      return sum;
    };
    RC_ASSERT(total("ring", CollectiveKind::all_reduce) == 2 * (p - 1) * n);
    RC_ASSERT(total("ring", CollectiveKind::all_gather) == (p - 1) * n);
    RC_ASSERT(total("ring", CollectiveKind::reduce_scatter) == (p - 1) * n);
    RC_ASSERT(total("double_binary_tree", CollectiveKind::all_reduce) == 2 * (p - 1) * n);
    RC_ASSERT(total("pairwise", CollectiveKind::all_to_all) == (p - 1) * n);
    RC_ASSERT(total("chain", CollectiveKind::broadcast) == (p - 1) * n);
    RC_ASSERT(total("chain", CollectiveKind::reduce) == (p - 1) * n);
  }));
}

TEST(Share, PiecesAddUpAndDifferByOneAtMost) {
  EXPECT_TRUE(rc::check("share", [] {
    const auto total = *rc::gen::inRange<Bytes>(0, Bytes{1} << 62);
    const auto parts = *rc::gen::inRange<std::uint64_t>(1, 100);
    Bytes sum = 0, least = INT64_MAX, most = 0;
    for (std::uint64_t i = 0; i < parts; ++i) {
      const Bytes piece = share(total, parts, i);
      sum += piece;
      least = std::min(least, piece);
      most = std::max(most, piece);
    }
    RC_ASSERT(sum == total);
    RC_ASSERT(most - least <= 1);
  }));
}

struct Children {
  std::uint32_t of_tree[2] = {0, 0};
};

std::vector<Children> children_of(const Schedule& tree) {
  std::vector<Children> result(tree.ranks());
  for (std::uint32_t rank = 0; rank < tree.ranks(); ++rank) {
    for (std::uint32_t t = 0; t < 2; ++t) {
      for (std::uint32_t i = 0; i < tree.instructions(rank, 2 * t); ++i) {
        if (tree.instruction(rank, 2 * t, i).op == Op::reduce) ++result[rank].of_tree[t];
      }
    }
  }
  return result;
}

TEST(DoubleBinaryTree, MakesEachRankInteriorInOneTree) {
  for (const std::uint32_t p : group_sizes()) {
    const auto children = children_of(*make("double_binary_tree", CollectiveKind::all_reduce, p));
    for (std::uint32_t rank = 0; rank < p; ++rank) {
      const auto [first, second] = children[rank].of_tree;
      EXPECT_LE(first + second, 2U) << "p " << p << " rank " << rank;
      const bool once = first == 0 || second == 0;
      EXPECT_TRUE(once || (p % 2 == 1 && rank == 0)) << "p " << p << " rank " << rank;
    }
  }
}

std::uint32_t depth_of(const Schedule& tree, std::uint32_t rank, std::uint32_t t) {
  std::uint32_t depth = 0;
  for (;; ++depth) {
    const Instruction last = tree.instruction(rank, 2 * t, tree.instructions(rank, 2 * t) - 1);
    if (last.op != Op::send) return depth;
    rank = last.peer;
  }
}

TEST(DoubleBinaryTree, HasLogarithmicDepth) {
  for (const std::uint32_t p : {2U, 3U, 4U, 8U, 16U, 100U, 257U, 1024U, 100'000U}) {
    const auto tree = make("double_binary_tree", CollectiveKind::all_reduce, p);
    std::uint32_t log = 0;
    while ((1U << log) < p) ++log;
    for (std::uint32_t rank = 0; rank < p; rank += 1 + p / 1000) {
      for (std::uint32_t t = 0; t < 2; ++t) EXPECT_LE(depth_of(*tree, rank, t), log) << p << " " << rank;
    }
  }
}

// The first tree of 8 ranks as ncclGetBtree draws it: 0 -> 4 -> {2 -> {1, 3}, 6 -> {5, 7}}; the second is its
// mirror.
TEST(DoubleBinaryTree, IsNcclsForEightRanks) {
  const auto tree = make("double_binary_tree", CollectiveKind::all_reduce, 8);
  const std::uint32_t parents[8] = {8, 2, 4, 2, 0, 6, 4, 6};
  for (std::uint32_t rank = 1; rank < 8; ++rank) {
    EXPECT_EQ(tree->instruction(rank, 0, tree->instructions(rank, 0) - 1).peer, parents[rank]);
    EXPECT_EQ(tree->instruction(7 - rank, 2, tree->instructions(7 - rank, 2) - 1).peer, 7 - parents[rank]);
  }
}

TEST(Pairwise, RefusesMoreRanksThanChunkNumbersAllow) {
  EXPECT_EQ(make("pairwise", CollectiveKind::all_to_all, 65'535)->chunks(), 65'535U * 65'535U);
  try {
    make("pairwise", CollectiveKind::all_to_all, 65'536);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("65535"), std::string::npos);
  }
}

TEST(Algorithms, AreRegisteredAndSayWhatTheySupport) {
  const auto names = Registry<CollectiveAlgorithm>::instance().names();
  for (const char* name : {"chain", "direct", "double_binary_tree", "pairwise", "ring"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
  const auto ring = Registry<CollectiveAlgorithm>::instance().create("ring");
  EXPECT_TRUE(ring->supports(CollectiveKind::all_gather));
  EXPECT_FALSE(ring->supports(CollectiveKind::all_to_all));
  EXPECT_EQ(ring->cost_family(), CostFamily::ring);
  EXPECT_EQ(Registry<CollectiveAlgorithm>::instance().create("double_binary_tree")->cost_family(),
            CostFamily::tree);
}

}  // namespace
}  // namespace netsim
