// Do the trees of a torus share no link, and does each reach every rank once? Does Camdoop take its links
// from the fabric?
#include "sim/collectives/algorithms/torus_trees.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/collectives/algorithms/torus_links.h"
#include "sim/collectives/library/link_jumps.h"
#include "sim/collectives/schedule.h"
#include "sim/core/errors.h"
#include "sim/topology/linked_gpus.h"
#include "tests/collectives/algorithms/algorithm_cases.h"
#include "tests/collectives/packet_collectives.h"
#include "tests/support/test_size.h"

namespace netsim::torus_trees_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<Dimensions>& tori() {
  static const std::vector<Dimensions> all = {
      {2},    {3},    {7},       {2, 2},    {2, 2, 2}, {3, 3},    {4, 4},    {4, 5},       {6, 3},
      {2, 3}, {5, 2}, {3, 3, 3}, {3, 4, 5}, {4, 4, 4}, {5, 5, 5}, {2, 3, 4}, {3, 3, 3, 3}, {2, 2, 2, 2},
  };
  return all;
}
std::uint32_t largest(const Dimensions& sizes) { return *std::max_element(sizes.begin(), sizes.end()); }
std::uint32_t smallest(const Dimensions& sizes) { return *std::min_element(sizes.begin(), sizes.end()); }
// Returns the sum of the sizes, each less one.
std::uint32_t longest_way(const Dimensions& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), 0U) - static_cast<std::uint32_t>(sizes.size());
}
// Returns whether a link of the torus joins two ranks, by their coordinates alone.
bool are_neighbours(const Dimensions& sizes, std::uint32_t a, std::uint32_t b) {
  std::uint32_t steps = 0;
  for (const std::uint32_t size : sizes) {
    const std::uint32_t apart = (a % size + size - b % size) % size;
    steps += std::min(apart, size - apart);
    a /= size;
    b /= size;
  }
  return steps == 1;
}

TEST(TorusTrees, AreTwoForEachDimension) {
  for (const Dimensions& sizes : tori()) {
    const auto d = static_cast<std::uint32_t>(sizes.size());
    EXPECT_EQ(TorusTrees(sizes).count(), smallest(sizes) > 2 ? 2 * d : d);
  }
}

// A directed link is an ordered pair of neighbours.
TEST(TorusTrees, ShareNoLink) {
  for (const Dimensions& sizes : tori()) {
    const TorusTrees trees(sizes);
    std::set<std::pair<std::uint32_t, std::uint32_t>> up, down;
    for (std::uint32_t tree = 0; tree < trees.count(); ++tree) {
      for (std::uint32_t at = 1; at < trees.positions(); ++at) {
        const std::uint32_t parent = trees.node(at, tree).parent;
        EXPECT_TRUE(are_neighbours(sizes, at, parent)) << at << " " << parent;
        EXPECT_TRUE(up.insert({at, parent}).second) << at << " " << parent << " of " << trees.positions();
        EXPECT_TRUE(down.insert({parent, at}).second);
      }
    }
    EXPECT_EQ(up.size(), std::size_t{trees.count()} * (trees.positions() - 1));
  }
}

TEST(TorusTrees, HaveEveryRankOnceBelowTheRoot) {
  for (const Dimensions& sizes : tori()) {
    const TorusTrees trees(sizes);
    for (std::uint32_t tree = 0; tree < trees.count(); ++tree) {
      std::set<std::uint32_t> reached = {0};
      std::vector<std::uint32_t> next = {0};
      while (!next.empty()) {
        const std::uint32_t at = next.back();
        next.pop_back();
        const TreeNode node = trees.node(at, tree);
        for (std::uint32_t i = 0; i < node.child_count; ++i) {
          EXPECT_EQ(trees.node(node.children[i], tree).parent, at);
          EXPECT_TRUE(reached.insert(node.children[i]).second) << node.children[i];
          next.push_back(node.children[i]);
        }
      }
      EXPECT_EQ(reached.size(), trees.positions());
    }
  }
}

TEST(TorusTrees, HavePathsOfAtMostOneLinkMoreThanTheTorusWithoutClosingLinks) {
  for (const Dimensions& sizes : tori()) {
    const TorusTrees trees(sizes);
    std::uint32_t most = 0;
    for (std::uint32_t tree = 0; tree < trees.count(); ++tree) {
      for (std::uint32_t at = 1; at < trees.positions(); ++at) most = std::max(most, trees.depth(at, tree));
    }
    EXPECT_EQ(most, longest_way(sizes) + (sizes.size() > 1 ? 1 : 0));
  }
}

TEST(TorusTrees, MoveWithTheRoot) {
  const TorusTrees trees({3, 4, 5});
  for (std::uint32_t root = 0; root < 60; ++root) {
    EXPECT_EQ(trees.absolute(0, root), root);
    for (std::uint32_t rank = 0; rank < 60; ++rank)
      EXPECT_EQ(trees.absolute(trees.relative(rank, root), root), rank);
  }
}

// A link sends a piece in each slot of time, but for a few slots in which none is complete.
TEST(Camdoop, KeepsItsLinksBusyInAReduceScatter) {
  for (const Dimensions& sizes : tori()) {
    const auto ranks = TorusTrees(sizes).positions();
    if (ranks > test::by_size(625U, 64U, 27U)) continue;
    std::string text = "{kind: camdoop, dimensions: [";
    for (std::size_t d = 0; d < sizes.size(); ++d) text += (d == 0 ? "" : ", ") + std::to_string(sizes[d]);
    const auto plan = test::make_plan(text + "]}", CollectiveKind::reduce_scatter, ranks);
    ASSERT_EQ(prove(*plan), "") << text;
    const PlanSchedule schedule = schedule_of(*plan);
    EXPECT_GE(schedule.times, ranks - 1) << text;
    EXPECT_LE(schedule.times, ranks - 1 + 2 * largest(sizes)) << text;
  }
}

RankLinks links_of(const std::string& topology, const std::vector<GpuId>& members) {
  const Cluster cluster = build_cluster(parse_config("topology: " + topology + "\n", "test.yaml"));
  return rank_links(linked_gpus(cluster), members);
}
Dimensions torus_in(const std::string& topology, const std::vector<GpuId>& members,
                    const Dimensions& given = {}) {
  return torus_of(
      given, "camdoop", CollectiveKind::reduce,
      {.ranks = static_cast<std::uint32_t>(members.size()), .links = links_of(topology, members)});
}

TEST(Camdoop, FindsTheTorusOfTheFabric) {
  using test::every;
  EXPECT_THAT(torus_in("{kind: torus, sizes: [3, 4, 5]}", every(1, 60)), ElementsAre(3, 4, 5));
  EXPECT_THAT(torus_in("{kind: torus, sizes: [4, 4]}", every(1, 16)), ElementsAre(4, 4));
  EXPECT_THAT(torus_in("{kind: torus, sizes: [2, 2, 2]}", every(1, 8)), ElementsAre(2, 2, 2));
  EXPECT_THAT(torus_in("{kind: torus, sizes: [6]}", every(1, 6)), ElementsAre(6));
  EXPECT_THAT(torus_in("{kind: torus, sizes: [4, 1, 3]}", every(1, 12)), ElementsAre(4, 3));
  EXPECT_THAT(torus_in("{kind: torus, sizes: [4, 1, 3]}", every(1, 12), {4, 1, 3}), ElementsAre(4, 3));
  // A plane and a column of a torus.
  EXPECT_THAT(torus_in("{kind: torus, sizes: [3, 4, 5]}", every(1, 12)), ElementsAre(3, 4));
  EXPECT_THAT(torus_in("{kind: torus, sizes: [3, 5]}", {1, 4, 7, 10, 13}), ElementsAre(5));
  EXPECT_THAT(torus_in("{kind: topoopt, servers: 7, degree: 2}", every(1, 7)), ElementsAre(7));
}

std::string refusal(const std::string& topology, const std::vector<GpuId>& members,
                    const Dimensions& given = {}) {
  try {
    torus_in(topology, members, given);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Camdoop, RefusesRanksThatNoTorusJoins) {
  using test::every;
  const char* const none = "'camdoop' needs a torus of links that join the ranks directly";
  EXPECT_THAT(refusal("{kind: star, hosts: 8}", every(1, 8)), HasSubstr(none));
  EXPECT_THAT(refusal("{kind: torus, sizes: [4, 4], wrap: false}", every(1, 16)), HasSubstr(none));
  EXPECT_THAT(refusal("{kind: torus, sizes: [3, 3, 6], twist: true}", every(1, 54)), HasSubstr(none));
  EXPECT_THAT(refusal("{kind: torus, sizes: [4, 4]}", {0, 1, 2, 3, 5}), HasSubstr(none));
  EXPECT_THAT(refusal("{kind: torus, sizes: [4, 4]}", every(1, 16), {8, 2}),
              HasSubstr("the torus of its dimensions, 8 x 2, and none joins ranks 3 and 4"));
  EXPECT_THAT(refusal("{kind: torus, sizes: [4, 4]}", every(1, 16), {5, 3}),
              HasSubstr("'camdoop' needs as many as its dimensions, 5 x 3, have"));
}

// Costa et al., NSDI 2012: n / (6 B) in three dimensions, whatever the number of servers. Packets of 8 KiB
// have 62 B of headers; the path of at most 14 messages of 16 KiB takes the rest.
class CamdoopTime : public ::testing::TestWithParam<Dimensions> {};

TEST_P(CamdoopTime, IsThatOfAllLinksOfTheRoot) {
  const TorusTrees trees(GetParam());
  std::string text;
  for (const std::uint32_t size : GetParam()) text += (text.empty() ? "" : ", ") + std::to_string(size);
  test::PacketCollectives servers(
      "topology: {kind: torus, sizes: [" + text +
      "], rate: 1 Gbps, delay: 1 us, overhead: 0}\nhost: single_nic\n"
      "network: {switch: {marker: none}}\ntransport: {congestion_control: none, mtu: 8192 B}\n"
      "collectives: {library: as_configured, reduce: camdoop, reduce_scatter: camdoop, all_reduce: camdoop, "
      "slice: 16 KiB, slices_per_chunk: 1, scale_out_channels: 1, base_latency_ring: 0, "
      "hop_latency_net_ring: 0}\n");
  const auto members = test::every(1, trees.positions());
  const Bytes each = 6 * kMegabyte;
  const double least = 6e6 * 8 / 1e9;
  const auto time = [&](CollectiveKind kind) {
    const Bytes whole = each * trees.count() / trees.positions() * trees.positions();
    const Time begin = servers.packets.loop.now();
    const Time end = servers.run(test::request_of(kind, members, whole));
    return static_cast<double>(end - begin) / kSecond;
  };
  const double share = (trees.positions() - 1.0) / trees.positions();
  for (const auto& [kind, times] : {std::pair(CollectiveKind::reduce, 1.0),
                                    {CollectiveKind::all_reduce, 2.0},
                                    {CollectiveKind::reduce_scatter, share}}) {
    const double taken = time(kind);
    EXPECT_GE(taken, 0.999 * times * least) << to_string(kind);
    EXPECT_LE(taken, 1.15 * times * least) << to_string(kind);
  }
}

INSTANTIATE_TEST_SUITE_P(Tori, CamdoopTime,
                         ::testing::Values(Dimensions{8}, Dimensions{3, 5}, Dimensions{2, 2, 2},
                                           Dimensions{3, 3, 3}));

}  // namespace
}  // namespace netsim::torus_trees_test
