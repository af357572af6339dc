// Tests that the shipped plans are right and lazy, and send the bytes in the steps of the closed forms. The
// forms are those of Thakur, Rabenseifner, Gropp 2005, of Patarasuk & Yuan 2009, and of the papers that the
// algorithms name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/collectives/library/candidates.h"
#include "sim/collectives/library/nccl/nccl_traits.h"
#include "sim/core/errors.h"
#include "tests/collectives/algorithms/algorithm_cases.h"
#include "tests/collectives/algorithms/plan_run.h"
#include "tests/support/test_size.h"

namespace netsim::plan_test {
namespace {

using test::algorithm_cases;
using test::AlgorithmCase;
using test::make_plan;
using test::PlanRun;
using ::testing::HasSubstr;
using Kind = Step::Kind;

std::vector<std::uint32_t> group_sizes(const AlgorithmCase& c) { return test::group_sizes(c.suits); }
std::set<std::uint32_t> roots(CollectiveKind kind, std::uint32_t p) {
  return has_root(kind) ? std::set<std::uint32_t>{0, 1, p / 2, p - 1} : std::set<std::uint32_t>{0};
}

// In other cases a rank that stands aside need not be at both ends of the longest chain.
bool is_exact(const AlgorithmCase& c, std::uint32_t p) {
  return c.chain != test::doubling || test::power_of_two(p);
}

class EveryPlan : public ::testing::TestWithParam<AlgorithmCase> {};

TEST_P(EveryPlan, IsProvedForEveryGroupSize) {
  for (const std::uint32_t p : group_sizes(GetParam())) {
    for (const std::uint32_t root : roots(GetParam().kind, p)) {
      const auto plan = make_plan(GetParam().algorithm, GetParam().kind, p, root);
      ASSERT_EQ(prove(*plan), "") << "p = " << p << ", root = " << root;
      EXPECT_EQ(plan->ranks(), p);
      EXPECT_EQ(plan->kind(), GetParam().kind);
      EXPECT_THAT(GetParam().algorithm, HasSubstr(plan->algorithm()));
      EXPECT_EQ(plan->root(), root);
    }
  }
}

// With two slots and with many, by an executor that has nothing in common with the proof.
TEST_P(EveryPlan, ComputesTheResultInTheStepsOfItsForm) {
  for (const std::uint32_t p : group_sizes(GetParam())) {
    for (const std::uint32_t root : roots(GetParam().kind, p)) {
      const auto plan = make_plan(GetParam().algorithm, GetParam().kind, p, root);
      ASSERT_EQ(PlanRun(*plan, 1000).error(), "") << "p = " << p << ", root = " << root;
      const PlanRun run(*plan, kSlots);
      ASSERT_EQ(run.error(), "") << "p = " << p << ", root = " << root;
      if (GetParam().chain == nullptr) continue;
      EXPECT_LE(run.longest_chain(), GetParam().chain(p)) << "p = " << p;
      if (is_exact(GetParam(), p)) {
        EXPECT_EQ(run.longest_chain(), GetParam().chain(p)) << "p = " << p;
      }
    }
  }
}

// A connection leads from a rank, or through an aggregation group, to a thread block or into an aggregation
// group. Its counts are in the order of the steps.
using Connection = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
using Counts = std::map<Connection, std::vector<std::uint32_t>>;
Connection connection_of(const test::Ends& ends) {
  const auto [from, to] = ends;
  return {from.first, from.first == test::kInFan ? from.second : 0, to.first, to.second};
}

TEST_P(EveryPlan, SendsWhatItReceives) {
  for (const std::uint32_t p : group_sizes(GetParam())) {
    if (p > 20 && p < 60) continue;
    const auto plan = make_plan(GetParam().algorithm, GetParam().kind, p);
    Counts sent, received;
    std::map<Connection, std::set<std::uint32_t>> senders;
    for (std::uint32_t rank = 0; rank < p; ++rank) {
      for (std::uint32_t block = 0; block < plan->blocks(rank); ++block) {
        for (std::uint32_t i = 0; i < plan->steps(rank, block); ++i) {
          const Step x = plan->step(rank, block, i);
          if (sends(x.kind)) {
            for (const auto& ends : test::ends_of(*plan, rank, block, x.to, true)) {
              sent[connection_of(ends)].push_back(x.count);
              senders[connection_of(ends)].insert(block);
            }
          }
          if (!receives(x.kind)) continue;
          for (const auto& ends : test::ends_of(*plan, rank, block, x.from, false))
            received[connection_of(ends)].push_back(x.count);
        }
      }
    }
    EXPECT_EQ(sent, received);
    EXPECT_FALSE(sent.empty());
    for (const auto& [connection, blocks] : senders) EXPECT_EQ(blocks.size(), 1u) << "p = " << p;
  }
}

// A plan is arithmetic: of 65,536 ranks (or the most that suit it, beyond that) a few are asked.
TEST_P(EveryPlan, IsLazy) {
  const std::uint32_t p = GetParam().suits(65'532)   ? 65'532
                          : GetParam().suits(32'768) ? 32'768
                                                     : group_sizes(GetParam()).back();
  const auto plan = make_plan(GetParam().algorithm, GetParam().kind, p);
  for (const std::uint32_t rank :
       test::by_size<std::vector<std::uint32_t>>({0, 1, p / 3, p - 1}, {p / 3}, {p / 3})) {
    for (std::uint32_t block = 0; block < plan->blocks(rank); ++block) {
      const std::uint32_t steps = plan->steps(rank, block);
      for (const std::uint32_t index : {0U, 1U, steps / 2, steps - 1}) {
        if (index >= steps) continue;
        const Step step = plan->step(rank, block, index);
        if (sends(step.kind) && step.to.aggregation != kNoIndex) {
          ASSERT_TRUE(test::is_end(*plan, rank, block, step.to));
          EXPECT_LE(step.count, plan->largest_count());
        } else if (sends(step.kind)) {
          ASSERT_LT(step.to.rank, p);
          EXPECT_LT(step.to.block, plan->blocks(step.to.rank));
          EXPECT_LE(step.count, plan->largest_count());
        }
        const auto inside = [&](const ChunkAt& at) {
          return at.chunk + step.count <= chunks_of(*plan, rank, at.buffer);
        };
        EXPECT_TRUE(!reads_source(step.kind) || inside(step.source)) << rank << " " << index;
        EXPECT_TRUE(!writes_destination(step.kind) || inside(step.destination)) << rank << " " << index;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shipped, EveryPlan, ::testing::ValuesIn(algorithm_cases()),
                         [](const auto& named) { return test::name_of(named.param); });

TEST(Direct, OfTwoRanksIsProved) {
  const auto plan = make_plan("direct", CollectiveKind::point_to_point, 2);
  EXPECT_EQ(prove(*plan), "");
  EXPECT_EQ(bytes_sent(*plan, 0, 77), 77);
  EXPECT_EQ(bytes_sent(*plan, 1, 77), 0);
}

TEST(Ring, IsLazyAtHundredThousandRanks) {
  const std::uint32_t p = 100'000;
  const auto ring = make_plan("ring", CollectiveKind::all_reduce, p);
  EXPECT_EQ(ring->steps(7, 0), 2 * p - 1);
  const Step first = ring->step(0, 0, 0), last = ring->step(0, 0, 2 * p - 2);
  EXPECT_EQ(first.kind, Kind::send);
  EXPECT_EQ(first.to.rank, 1U);
  EXPECT_EQ(first.source.chunk, 0U);
  EXPECT_EQ(last.kind, Kind::receive);
  EXPECT_EQ(last.from.rank, p - 1);
  EXPECT_EQ(last.destination.chunk, 2U);  // 0 - (2p - 2) = 2 mod p
  EXPECT_EQ(bytes_sent(*ring, 5, Bytes{p} * 1000), Bytes{2} * (p - 1) * 1000);
}

TEST(Ring, ReducesForHalfOfAnAllReduceOnly) {
  const auto ring = make_plan("ring", CollectiveKind::all_reduce, 5);
  for (std::uint32_t i = 0; i < ring->steps(3, 0); ++i)
    EXPECT_EQ(reduces(ring->step(3, 0, i).kind), i >= 1 && i <= 4) << i;
}

TEST(Ring, OfAReduceScatterEndsWithTheOwnChunk) {
  for (const std::uint32_t p : {2U, 3U, 7U}) {
    const auto ring = make_plan("ring", CollectiveKind::reduce_scatter, p);
    for (std::uint32_t r = 0; r < p; ++r) EXPECT_EQ(ring->step(r, 0, p - 1).destination.chunk, r);
  }
}

Bytes busiest(const Plan& plan, Bytes n) {
  Bytes most = 0;
  for (std::uint32_t r = 0; r < plan.ranks(); ++r) most = std::max(most, bytes_sent(plan, r, n));
  return most;
}
Bytes total(const Plan& plan, Bytes n) {
  Bytes sum = 0;
  for (std::uint32_t r = 0; r < plan.ranks(); ++r) sum += bytes_sent(plan, r, n);
  return sum;
}

// No algorithm sends fewer bytes than n(p-1)/p at each rank, or twice that for an all-reduce (Patarasuk &
// Yuan 2009). Algorithms for large buffers send no more. The numbers are exact if n is divisible.
TEST(Bytes, OfTheBusiestRankAreTheLowerBoundWhereTheFormSaysSo) {
  const std::set<std::string> more = {"recursive_doubling", "binomial_tree", "binary_tree", "chained_trees",
                                      "double_binary_tree", "chain",         "tree",        "camdoop"};
  for (const AlgorithmCase& c : algorithm_cases()) {
    for (const std::uint32_t p : group_sizes(c)) {
      const auto plan = make_plan(c.algorithm, c.kind, p);
      if (c.kind == CollectiveKind::broadcast || c.kind == CollectiveKind::reduce) continue;
      const Bytes n = Bytes{24} * 64 * p,
                  bound = (n - n / p) * (c.kind == CollectiveKind::all_reduce ? 2 : 1);
      if (c.kind == CollectiveKind::gather) {
        EXPECT_GE(busiest(*plan, n), n / p);
        continue;
      }
      const std::string name = plan->algorithm();
      if (name == "nvls_tree") {  // the same in each host of 4, and between N of them N - 1 sums up and down
        const std::uint32_t k = std::min(p, 4U), hosts = p / k;
        EXPECT_EQ(total(*plan, n), p * (n + n / k) + 2 * (hosts - 1) * n) << p;
        continue;
      }
      const std::uint32_t in_host =
          std::string(c.algorithm).find("group: 4") != std::string::npos ? std::min(p, 4U) : 1U;
      const std::set<std::string> direct = {"sharp", "switchml", "atp", "netreduce", "netagg", "switchagg"};
      if (direct.contains(
              name)) {  // to the ranks of the host or from them, or both; and what goes up the trees
        const Bytes inside = n - n / in_host, up = p == in_host ? 0 : n / in_host;
        EXPECT_EQ(busiest(*plan, n), c.kind == CollectiveKind::all_reduce ? 2 * inside + up
                                     : c.kind == CollectiveKind::reduce_scatter
                                         ? inside + up
                                         : inside + (up == 0 ? 0 : n / p))
            << to_string(c.kind) << " of " << p;
        continue;
      }
      if (name ==
          "collnet_chain") {  // up and down, but at the chain's end; nothing to a tree that is not there
        EXPECT_EQ(busiest(*plan, n), in_host == 1 || p == 2 ? n : 2 * n) << p;
        continue;
      }
      if (plan->aggregations() > 0) {           // switches add up and copy: n, and the sum of the own part
        const Bytes part = n / plan->chunks();  // an all-reduce of more than 32 ranks has 32 heads
        EXPECT_EQ(busiest(*plan, n), c.kind == CollectiveKind::all_reduce       ? n + part
                                     : c.kind == CollectiveKind::reduce_scatter ? n
                                                                                : part);
        continue;
      }
      const bool butterfly = name == "halving_doubling" || name == "recursive_doubling";
      const bool least = !(more.contains(name) && c.kind == CollectiveKind::all_reduce) &&
                         name != "hierarchical" && name != "two_step" && name != "three_step" &&
                         name != "nccl_p2p" && !(name == "bruck" && c.kind == CollectiveKind::all_to_all) &&
                         (!butterfly || std::has_single_bit(p));
      if (name != "chained_trees" && name != "double_binary_tree" && name != "binary_tree" &&
          name != "binomial_tree") {
        EXPECT_GE(busiest(*plan, n), bound) << name << " " << to_string(c.kind) << " of " << p;
      }
      if (least) {
        EXPECT_EQ(busiest(*plan, n), bound) << name << " " << to_string(c.kind) << " of " << p;
      }
    }
  }
}

TEST(Bytes, EqualTheClosedForms) {
  const auto busiest_of = [](const char* algorithm, CollectiveKind kind, std::uint32_t p, Bytes n) {
    return busiest(*make_plan(algorithm, kind, p), n);
  };
  for (const std::uint32_t p : {2U, 4U, 8U, 16U, 32U, 64U}) {
    const Bytes n = Bytes{7} * 24 * 64 * p, log = test::floor_log2(p);
    EXPECT_EQ(busiest_of("recursive_doubling", CollectiveKind::all_reduce, p, n), log * n);
    EXPECT_EQ(busiest_of("bruck", CollectiveKind::all_to_all, p, n), log * n / 2);
    EXPECT_EQ(busiest_of("binomial_tree", CollectiveKind::broadcast, p, n), log * n);
    EXPECT_EQ(busiest_of("binomial_tree", CollectiveKind::reduce, p, n), n);
    EXPECT_EQ(busiest_of("binomial_tree", CollectiveKind::scatter, p, n), n - n / p);
    EXPECT_EQ(busiest_of("binomial_tree", CollectiveKind::gather, p, n), n / 2);
    EXPECT_EQ(total(*make_plan("binomial_tree", CollectiveKind::gather, p, p / 2), n), log * n / 2);
  }
  // Two ranks more than a power of two: the members that act for them send the buffer back.
  for (const std::uint32_t p : {6U, 10U, 18U, 34U}) {
    const Bytes n = Bytes{7} * 24 * 64 * p, m = std::bit_floor(p);
    EXPECT_EQ(busiest_of("halving_doubling", CollectiveKind::all_reduce, p, n), 2 * (n - n / m) + n);
    EXPECT_EQ(busiest_of("recursive_doubling", CollectiveKind::all_reduce, p, n),
              (test::floor_log2(p) + 1) * n);
  }
  // Half of each tree at its inner ranks, three times: up and to two children.
  EXPECT_EQ(busiest_of("double_binary_tree", CollectiveKind::all_reduce, 8, 8'000), 2 * 8'000);
  EXPECT_EQ(busiest_of("chained_trees", CollectiveKind::all_reduce, 15, 16'000), 2 * 16'000);
  EXPECT_EQ(busiest_of("binary_tree", CollectiveKind::broadcast, 15, 1'000), 2'000);
  // In the group 3/4 of n, between groups 12/16.
  EXPECT_EQ(busiest_of("{kind: two_step, group: 4}", CollectiveKind::all_to_all, 16, 16'000), 24'000);
  // With 20 blocks of 1 KB, each rank gathers and scatters the blocks for one of 4 other groups. Over NVLink
  // these are 3 x 4 blocks each, and 3 for its own group; between groups 4 x 4.
  EXPECT_EQ(busiest_of("{kind: three_step, group: 4}", CollectiveKind::all_to_all, 20, 20'000), 43'000);
  EXPECT_EQ(total(*make_plan("{kind: three_step, group: 4}", CollectiveKind::all_to_all, 20), 20'000),
            20 * 43'000);
  // 15/16 of n, and by PXN what the three others of the host send by its rail to 3 hosts, 9/16.
  EXPECT_EQ(busiest_of("{kind: nccl_p2p, group: 4}", CollectiveKind::all_to_all, 16, 16'000), 24'000);
  EXPECT_EQ(busiest_of("{kind: nccl_p2p, group: 4, pxn: false}", CollectiveKind::all_to_all, 16, 16'000),
            15'000);
  // A leader: k parts down its chain, and the ring of 4.
  EXPECT_EQ(busiest_of("{kind: hierarchical, group: 4}", CollectiveKind::all_reduce, 16, 16'000),
            16'000 + 24'000);
}

// These sums hold for any n. Each edge of a tree carries its part once up and once down. Each chunk of a ring
// is sent by all but one rank, and each block of an all-to-all by its source.
TEST(Bytes, OfAllRanksAddUpExactly) {
  EXPECT_TRUE(rc::check("bytes of all ranks", [] {
    const AlgorithmCase& c = algorithm_cases()[*rc::gen::inRange<std::size_t>(0, algorithm_cases().size())];
    const auto sizes = group_sizes(c);
    const std::uint32_t p = sizes[*rc::gen::inRange<std::size_t>(0, sizes.size())];
    const auto n = *rc::gen::inRange<Bytes>(1, Bytes{1} << 40);
    const auto plan = make_plan(c.algorithm, c.kind, p, has_root(c.kind) ? p - 1 : 0);
    const std::string name = plan->algorithm();
    if (plan->aggregations() > 0) return;  // OfTheBusiestRankAreTheLowerBoundWhereTheFormSaysSo has theirs
    if (name == "recursive_doubling" || name == "halving_doubling" || name == "bruck" || name == "two_step" ||
        name == "three_step" || name == "nccl_p2p" || name == "pat" || c.kind == CollectiveKind::gather ||
        c.kind == CollectiveKind::scatter || (name == "sharp" && c.kind == CollectiveKind::reduce))
      return;  // through other ranks, or in scratch, whose chunks are equally large
    const Bytes times = c.kind == CollectiveKind::all_reduce ? 2 : 1;
    RC_ASSERT(total(*plan, n) == times * (p - 1) * n);
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

std::vector<Children> children_of(const Plan& tree) {
  std::vector<Children> result(tree.ranks());
  for (std::uint32_t rank = 0; rank < tree.ranks(); ++rank) {
    for (std::uint32_t t = 0; t < 2; ++t) {
      for (std::uint32_t i = 0; i < tree.steps(rank, 2 * t); ++i) {
        if (reduces(tree.step(rank, 2 * t, i).kind)) ++result[rank].of_tree[t];
      }
    }
  }
  return result;
}

TEST(DoubleBinaryTree, MakesEachRankInteriorInOneTree) {
  for (std::uint32_t p = 2; p <= 257; p += p < 64 ? 1 : 37) {
    const auto children = children_of(*make_plan("double_binary_tree", CollectiveKind::all_reduce, p));
    for (std::uint32_t rank = 0; rank < p; ++rank) {
      const auto [first, second] = children[rank].of_tree;
      EXPECT_LE(first + second, 2U) << "p " << p << " rank " << rank;
      const bool once = first == 0 || second == 0;
      EXPECT_TRUE(once || (p % 2 == 1 && rank == 0)) << "p " << p << " rank " << rank;
    }
  }
}

// The step that goes up from a rank of tree t; the root's goes down instead.
Step step_up(const Plan& tree, std::uint32_t rank, std::uint32_t t) {
  return tree.step(rank, 2 * t, tree.steps(rank, 2 * t) - 1);
}
std::uint32_t depth_of(const Plan& tree, std::uint32_t rank, std::uint32_t t) {
  std::uint32_t depth = 0;
  for (;; ++depth) {
    const Step last = step_up(tree, rank, t);
    if (last.to.block != 2 * t) return depth;
    rank = last.to.rank;
  }
}

TEST(DoubleBinaryTree, HasLogarithmicDepth) {
  for (const std::uint32_t p : {2U, 3U, 4U, 8U, 16U, 100U, 257U, 1024U, 100'000U}) {
    const auto tree = make_plan("double_binary_tree", CollectiveKind::all_reduce, p);
    for (std::uint32_t rank = 0; rank < p; rank += 1 + p / 1000) {
      for (std::uint32_t t = 0; t < 2; ++t)
        EXPECT_LE(depth_of(*tree, rank, t), test::ceil_log2(p)) << p << " " << rank;
    }
  }
}

// The first tree of 8 ranks as ncclGetBtree draws it: 0 -> 4 -> {2 -> {1, 3}, 6 -> {5, 7}}; the second is its
// mirror.
TEST(DoubleBinaryTree, IsNcclsForEightRanks) {
  const auto tree = make_plan("double_binary_tree", CollectiveKind::all_reduce, 8);
  const std::uint32_t parents[8] = {8, 2, 4, 2, 0, 6, 4, 6};
  for (std::uint32_t rank = 1; rank < 8; ++rank) {
    EXPECT_EQ(step_up(*tree, rank, 0).to.rank, parents[rank]);
    EXPECT_EQ(step_up(*tree, 7 - rank, 1).to.rank, 7 - parents[rank]);
  }
}

// De Sensi et al. 2024: rho = 1, -1, 3; even ranks go up, odd ones down.
TEST(Swing, ExchangesWithThePapersPartners) {
  const auto plan = make_plan("swing", CollectiveKind::all_reduce, 8);
  const std::uint32_t of_rank_0[3] = {1, 7, 3}, of_rank_5[3] = {4, 6, 2};
  for (std::uint32_t s = 0; s < 3; ++s) {
    EXPECT_EQ(plan->step(0, 0, 2 * s).to.rank, of_rank_0[s]) << s;
    EXPECT_EQ(plan->step(5, 0, 2 * s).to.rank, of_rank_5[s]) << s;
    EXPECT_EQ(plan->step(0, 1, 2 * s).to.rank, (8 - of_rank_0[s]) % 8) << s;  // mirrored
    EXPECT_EQ(plan->step(0, 0, 2 * s).count, 4U >> s);
  }
}

// Every link of a torus carries the same: each rank sends a slice each way in each dimension, at all times.
TEST(TorusBucket, UsesAllDirectionsInEveryPhase) {
  const auto plan = make_plan("{kind: torus_bucket, dimensions: [4, 4]}", CollectiveKind::all_reduce, 16);
  ASSERT_EQ(plan->blocks(5), 4u);
  for (std::uint32_t index = 0; index < plan->steps(5, 0); ++index) {
    std::set<std::uint32_t> next;
    for (std::uint32_t block = 0; block < 4; ++block) {
      const Step step = plan->step(5, block, index);
      if (sends(step.kind)) next.insert(step.to.rank);
    }
    if (!next.empty()) {
      EXPECT_EQ(next, (std::set<std::uint32_t>{1, 4, 6, 9})) << index;
    }
  }
}

// Between two groups of 4 go 4 messages of 4 blocks.
TEST(TwoStep, SendsOneMessageToACounterpart) {
  const auto plan = make_plan("{kind: two_step, group: 4}", CollectiveKind::all_to_all, 16);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> between;
  for (std::uint32_t rank = 0; rank < 16; ++rank) {
    for (std::uint32_t block = 0; block < plan->blocks(rank); ++block) {
      for (std::uint32_t i = 0; i < plan->steps(rank, block); ++i) {
        const Step step = plan->step(rank, block, i);
        if (sends(step.kind) && step.to.rank / 4 != rank / 4)
          between[{rank / 4, step.to.rank / 4}].push_back(step.count);
      }
    }
  }
  EXPECT_EQ(between.size(), 12u);
  for (const auto& [groups, counts] : between) EXPECT_EQ(counts, (std::vector<std::uint32_t>{4, 4, 4, 4}));
}

// Each group sends each other group one message of 16 blocks. Groups are numbered so that the ranks of a
// group send equally many, or one more. The way back is between the same two ranks.
TEST(ThreeStep, SendsOneMessageBetweenTwoGroups) {
  for (const std::uint32_t groups : {2U, 4U, 5U, 8U, 9U, 16U}) {
    const auto plan = make_plan("{kind: three_step, group: 4}", CollectiveKind::all_to_all, 4 * groups);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> between;
    std::set<std::pair<std::uint32_t, std::uint32_t>> ends;
    std::vector<std::uint32_t> sent(4 * groups), received(4 * groups);
    for (std::uint32_t rank = 0; rank < plan->ranks(); ++rank) {
      for (std::uint32_t block = 0; block < plan->blocks(rank); ++block) {
        for (std::uint32_t i = 0; i < plan->steps(rank, block); ++i) {
          const Step step = plan->step(rank, block, i);
          if (!sends(step.kind) || step.to.rank / 4 == rank / 4) continue;
          between[{rank / 4, step.to.rank / 4}].push_back(step.count);
          ends.insert({rank, step.to.rank});
          ++sent[rank];
          ++received[step.to.rank];
        }
      }
    }
    EXPECT_EQ(between.size(), groups * (groups - 1));
    for (const auto& [pair, counts] : between) EXPECT_EQ(counts, std::vector<std::uint32_t>{16});
    for (const auto& [from, to] : ends) EXPECT_TRUE(ends.contains({to, from})) << from << " " << to;
    for (std::uint32_t rank = 0; rank < plan->ranks(); ++rank) {
      const std::uint32_t share = (groups - 1) / 4 + (rank % 4 < (groups - 1) % 4 ? 1 : 0);
      EXPECT_EQ(sent[rank], share) << groups << " " << rank;
      EXPECT_EQ(received[rank], share) << groups << " " << rank;
    }
  }
}

std::string refusal(const std::string& text, CollectiveKind kind, std::uint32_t ranks) {
  try {
    make_plan(text, kind, ranks);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Algorithms, RefuseGroupsThatTheyDoNotSuit) {
  const CollectiveKind sum = CollectiveKind::all_reduce, exchange = CollectiveKind::all_to_all;
  EXPECT_EQ(refusal("swing", sum, 12),
            "all_reduce of 12 ranks: 'swing' needs dimensions that are powers of two");
  EXPECT_EQ(refusal("{kind: torus_bucket, dimensions: [4, 4]}", sum, 12),
            "all_reduce of 12 ranks: 'torus_bucket' needs as many as its dimensions, 4 x 4, have");
  EXPECT_EQ(refusal("{kind: hierarchical, group: 8}", sum, 12),
            "all_reduce of 12 ranks: 'hierarchical' needs a multiple of its group, 8");
  for (const std::string algorithm : {"two_step", "three_step"}) {
    EXPECT_EQ(refusal("{kind: " + algorithm + ", group: 8}", exchange, 12),
              "all_to_all of 12 ranks: '" + algorithm + "' needs a multiple of its group, 8");
  }
  EXPECT_EQ(refusal("{kind: multi_ring, rings: 3}", sum, 6),
            "all_reduce of 6 ranks: 'multi_ring' of 3 rings was asked for, and there are at most 2");
  EXPECT_EQ(make_plan("pairwise", exchange, 65'535)->chunks(), 65'535U);
  for (const char* algorithm : {"pairwise", "direct", "bruck", "two_step", "three_step"}) {
    EXPECT_EQ(refusal(algorithm, exchange, 65'536),
              std::string("all_to_all of 65536 ranks: '") + algorithm + "' does at most 65535");
  }
}

TEST(Algorithms, RefuseWrongDimensions) {
  const CollectiveKind sum = CollectiveKind::all_reduce;
  EXPECT_EQ(refusal("{kind: torus_2d, dimensions: 4}", sum, 4),
            "test.yaml:1:30: dimensions: a list of 2 sizes is expected");
  EXPECT_EQ(refusal("{kind: torus_bucket, dimensions: [2, 2, 2, 2]}", sum, 16),
            "test.yaml:1:34: dimensions: a list of 1 to 3 sizes is expected");
  EXPECT_THAT(refusal("{kind: blueconnect, dimensions: [4, 0]}", sum, 16),
              ::testing::AllOf(HasSubstr("test.yaml:1:37"), HasSubstr("1 to 1048576")));
  EXPECT_THAT(refusal("{kind: hierarchical, group: 0}", sum, 16), HasSubstr("test.yaml:1:29"));
}

// Messages of a plan from one domain to another, by (sender, receiver), of a round.
std::map<std::pair<std::uint32_t, std::uint32_t>, int> between_domains(const Plan& plan,
                                                                       const std::vector<int>& domain_of) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> messages;
  for (std::uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    for (std::uint32_t block = 0; block < plan.blocks(rank); ++block) {
      for (std::uint32_t index = 0; index < plan.steps(rank, block); ++index) {
        const Step step = plan.step(rank, block, index);
        if (sends(step.kind) && domain_of[rank] != domain_of[step.to.rank]) ++messages[{rank, step.to.rank}];
      }
    }
  }
  return messages;
}

// A graph of NCCL's may say that a chain's first rank talks to both children, or its second.
TEST(Tree, TalksToOtherDomainsByTheRanksOfItsPattern) {
  const auto algorithm = test::make_algorithm("tree");
  std::vector<int> domain_of(28);
  for (int rank = 0; rank < 28; ++rank) domain_of[static_cast<std::size_t>(rank)] = rank / 4;
  const struct {
    TreePattern pattern;
    std::set<std::uint32_t> senders;
  } cases[] = {{TreePattern::balanced, {0, 1}}, {TreePattern::split, {0, 1}}, {TreePattern::plain, {0}}};
  std::vector<std::map<std::pair<std::uint32_t, std::uint32_t>, int>> all;
  for (const auto& one : cases) {
    const auto plan =
        algorithm->plan(CollectiveKind::all_reduce, {.ranks = 28, .sizes = {4}, .pattern = one.pattern});
    EXPECT_EQ(prove(*plan), "");
    std::set<std::uint32_t> senders;
    all.push_back(between_domains(*plan, domain_of));
    for (const auto& [ends, number] : all.back()) senders.insert(ends.first % 4);
    EXPECT_EQ(senders, one.senders);
    EXPECT_EQ(all.back().size(), 12U);
  }
  EXPECT_NE(all[0], all[1]);
  // Split pattern: data for a child always comes from a second rank.
  for (const auto& [ends, number] : all[1]) EXPECT_NE(ends.first % 4, ends.second % 4);
}

// Domains may have any sizes. Each edge of the tree over them is used once up and once down. At the child it
// ends at the chain's first rank, at the parent at the first or second.
TEST(Tree, JoinsChains) {
  const auto algorithm = test::make_algorithm("tree");
  EXPECT_TRUE(rc::check("tree over domains", [&] {
    const auto count = *rc::gen::inRange<std::uint32_t>(1, 18);
    const auto sizes = *rc::gen::container<DomainSizes>(count, rc::gen::inRange<std::uint32_t>(1, 9));
    std::vector<int> domain_of;
    std::vector<std::uint32_t> place;
    for (std::size_t domain = 0; domain < sizes.size(); ++domain) {
      for (std::uint32_t i = 0; i < sizes[domain]; ++i) {
        domain_of.push_back(static_cast<int>(domain));
        place.push_back(i);
      }
    }
    const auto ranks = static_cast<std::uint32_t>(domain_of.size());
    RC_PRE(ranks >= 2);
    const auto plan = algorithm->plan(CollectiveKind::all_reduce, {.ranks = ranks, .sizes = sizes});
    RC_ASSERT(prove(*plan).empty());
    int messages = 0;
    for (const auto& [ends, number] : between_domains(*plan, domain_of)) {
      RC_ASSERT(place[ends.first] == 0 || place[ends.second] == 0);
      RC_ASSERT(place[ends.first] <= 1 && place[ends.second] <= 1);
      messages += number;
    }
    RC_ASSERT(messages == 2 * (static_cast<int>(count) - 1));
  }));
}

// Four hosts of four: the inner host of a tree, which has two children, talks by two GPUs.
TEST(Tree, SpreadsANodesTrafficOverTwoGpus) {
  const auto plan =
      test::make_algorithm("tree")->plan(CollectiveKind::all_reduce, {.ranks = 16, .sizes = {4}});
  const std::vector<int> host_of = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
  std::map<std::uint32_t, int> sent;
  for (const auto& [ends, number] : between_domains(*plan, host_of)) sent[ends.first] += number;
  // Host 2 is below host 0 and has the children 1, below it, and 3.
  EXPECT_EQ(sent, (std::map<std::uint32_t, int>{{0, 1}, {4, 1}, {8, 2}, {9, 1}, {12, 1}}));
}

TEST(Tree, IsAChainInASingleDomain) {
  const auto plan =
      test::make_algorithm("tree")->plan(CollectiveKind::all_reduce, {.ranks = 8, .sizes = {8}});
  for (std::uint32_t rank = 1; rank < 8; ++rank) {
    const Step up = plan->step(rank, 0, plan->steps(rank, 0) - 1);
    EXPECT_EQ(up.to.rank, rank - 1);
  }
}

TEST(Nccl, OffersWhatItWasGiven) {
  const auto names = [](const std::string& text, CollectiveKind kind) {
    std::string all;
    const auto algorithm = test::make_algorithm(text);
    for (const CollectiveAlgorithm* one : candidates_of(*algorithm, kind))
      all += std::string(one->plan(kind, {4, 0})->algorithm()) + " ";
    return all;
  };
  EXPECT_EQ(names("nccl", CollectiveKind::all_reduce), "ring tree nvls nvls_tree sharp collnet_chain sharp ");
  EXPECT_EQ(names("nccl", CollectiveKind::all_gather), "ring nvls sharp sharp pat ");
  EXPECT_EQ(names("{kind: nccl, pat: false, collnet: false}", CollectiveKind::reduce_scatter), "ring nvls ");
  EXPECT_EQ(names("nccl", CollectiveKind::broadcast), "chain ");
  EXPECT_EQ(names("{kind: nccl, ring: false, nvls: false}", CollectiveKind::all_reduce),
            "tree sharp collnet_chain ");
  EXPECT_EQ(names("{kind: nccl, ring: false, collnet: false}", CollectiveKind::all_reduce),
            "tree nvls nvls_tree ");
  EXPECT_FALSE(test::make_algorithm("nccl")->supports(CollectiveKind::all_to_all));
}

TEST(Algorithms, AreRegisteredAndSayWhatTheySupport) {
  const auto& registry = Registry<CollectiveAlgorithm>::instance();
  const auto ring = registry.create("ring");
  EXPECT_TRUE(ring->supports(CollectiveKind::all_gather));
  EXPECT_FALSE(ring->supports(CollectiveKind::all_to_all));
  const std::set<std::string> trees = {"double_binary_tree", "binomial_tree", "binary_tree", "chained_trees",
                                       "tree"};
  std::set<std::string> tested;
  for (const AlgorithmCase& c : algorithm_cases()) {
    const auto algorithm = test::make_algorithm(c.algorithm);
    EXPECT_TRUE(algorithm->supports(c.kind)) << c.algorithm;
    tested.insert(std::string(make_plan(c.algorithm, c.kind, group_sizes(c).back())->algorithm()) + " " +
                  to_string(c.kind));
  }
  for (const std::string& name : registry.names()) {
    if (name.starts_with("test_")) continue;  // other tests' own
    const auto& info = *Catalogue::instance().find(CollectiveAlgorithm::kComponentKind, name);
    if (std::any_of(info.parameters.begin(), info.parameters.end(), [](const auto& p) { return p.required; }))
      continue;  // the content of a file
    const auto algorithm = registry.create(name);
    EXPECT_EQ(nccl_traits_of(*algorithm).family == CostFamily::tree, trees.contains(name)) << name;
    for (const CollectiveKindInfo& kind : kCollectiveKinds) {
      if (!is_collective(kind.kind) || !algorithm->supports(kind.kind)) continue;
      if (!candidates_of(*algorithm, kind.kind).empty()) continue;  // made of others
      EXPECT_TRUE(tested.contains(name + " " + kind.name)) << name << " " << kind.name;
    }
  }
}

}  // namespace
}  // namespace netsim::plan_test
