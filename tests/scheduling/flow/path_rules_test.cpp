// Tests the rules that give slots and paths: Fastpass' arbiter, and Hedera's demands and placement.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "sim/core/random.h"
#include "sim/scheduling/flow/rules/fastpass.h"
#include "sim/scheduling/flow/rules/hedera.h"
#include "sim/scheduling/flow/rules/max_min.h"

namespace netsim::path_rules_test {
namespace {

using Numbers = std::vector<std::uint32_t>;

Numbers permutation(std::uint32_t count, RandomStream& random) {
  Numbers result(count);
  std::iota(result.begin(), result.end(), 0U);
  for (std::uint32_t i = count - 1; i > 0; --i) std::swap(result[i], result[random.below(i + 1)]);
  return result;
}

TEST(PathRules, MatchingsAreMaximal) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    RandomStream random(seed, "matching");
    const auto interfaces = static_cast<std::uint32_t>(1 + random.below(12));
    std::vector<SlotDemand> demands(random.below(40));
    for (SlotDemand& demand : demands) {
      demand = {static_cast<std::uint32_t>(random.below(interfaces)),
                static_cast<std::uint32_t>(random.below(interfaces)), random.below(4), random.below(10)};
    }
    std::set<std::uint32_t> sends, receives;
    const SlotOrder order = seed % 2 == 0 ? SlotOrder::least_recent : SlotOrder::fewest_left;
    for (const std::uint32_t served : maximal_matching(demands, interfaces, order)) {
      EXPECT_TRUE(sends.insert(demands[served].source).second);
      EXPECT_TRUE(receives.insert(demands[served].destination).second);
      EXPECT_GT(demands[served].slots, 0U);
    }
    for (const SlotDemand& demand : demands)
      EXPECT_TRUE(demand.slots == 0 || sends.contains(demand.source) ||
                  receives.contains(demand.destination));
  }
}

// Two sources share a destination slot by slot, or the shorter demand goes first.
TEST(PathRules, SlotsAreShared) {
  const std::vector<SlotDemand> demands{{0, 2, 4, 0}, {1, 2, 2, 0}};
  std::vector<SlotDemand> fair = demands, shortest = demands;
  using Slots = std::vector<Numbers>;
  EXPECT_EQ(allocate_slots(fair, 3, 1, 7, SlotOrder::least_recent),
            (Slots{{0}, {1}, {0}, {1}, {0}, {0}, {}}));
  EXPECT_EQ(allocate_slots(shortest, 3, 1, 7, SlotOrder::fewest_left),
            (Slots{{1}, {1}, {0}, {0}, {0}, {0}, {}}));
  EXPECT_EQ(fair[0].last_slot, 6U);
  EXPECT_EQ(fair[1].last_slot, 4U);
}

// A permutation needs as many slots as a flow has packets: every slot serves all flows.
TEST(PathRules, APermutationIsServedInEverySlot) {
  RandomStream random(1, "permutation");
  const Numbers to = permutation(16, random);
  std::vector<SlotDemand> demands;
  for (std::uint32_t from = 0; from < 16; ++from) demands.push_back({from, to[from], 5, 0});
  for (const Numbers& slot : allocate_slots(demands, 16, 1, 5, SlotOrder::least_recent))
    EXPECT_EQ(slot.size(), 16U);
}

TEST(PathRules, ColoursOfANodeDiffer) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    RandomStream random(seed, "colours");
    const auto nodes = static_cast<std::uint32_t>(1 + random.below(10));
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges(random.below(60));
    std::vector<std::uint32_t> left(nodes, 0), right(nodes, 0);
    for (auto& [from, to] : edges) {
      ++left[from = static_cast<std::uint32_t>(random.below(nodes))];
      ++right[to = static_cast<std::uint32_t>(random.below(nodes))];
    }
    const std::uint32_t degree =
        std::max(*std::max_element(left.begin(), left.end()), *std::max_element(right.begin(), right.end()));
    const Numbers colours = edge_colours(edges, nodes);
    std::set<std::array<std::uint32_t, 3>> used;
    for (std::size_t i = 0; i < edges.size(); ++i) {
      EXPECT_LT(colours[i], degree);
      EXPECT_TRUE(used.insert({0, edges[i].first, colours[i]}).second);
      EXPECT_TRUE(used.insert({1, edges[i].second, colours[i]}).second);
    }
  }
}

// In fat trees of k = 4, 6 and 8 no two packets of a permutation share a link.
TEST(PathRules, PacketsOfAPermutationShareNoLink) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    RandomStream random(seed, "clos");
    const auto up = static_cast<std::uint32_t>(2 + seed % 3);  // uplinks of each switch, racks of a pod
    const std::uint32_t racks = 2 * up * up;
    const Numbers to = permutation(racks * up, random);
    Numbers pods;
    for (std::uint32_t rack = 0; rack < racks; ++rack) pods.push_back(rack / up);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> packets;
    for (std::uint32_t host = 0; host < to.size(); ++host) packets.emplace_back(host / up, to[host] / up);
    const std::vector<ClosPath> paths = clos_paths(packets, pods);
    std::set<std::array<std::uint32_t, 4>> used;
    for (std::size_t i = 0; i < packets.size(); ++i) {
      const auto [from, into] = packets[i];
      if (from == into) continue;
      EXPECT_LT(std::max(paths[i].aggregation, paths[i].core), up);
      EXPECT_TRUE(used.insert({0, from, paths[i].aggregation, 0}).second);
      EXPECT_TRUE(used.insert({1, into, paths[i].aggregation, 0}).second);
      if (pods[from] == pods[into]) continue;
      EXPECT_TRUE(used.insert({2, pods[from], paths[i].aggregation, paths[i].core}).second);
      EXPECT_TRUE(used.insert({3, pods[into], paths[i].aggregation, paths[i].core}).second);
    }
  }
}

// The estimate is the max-min fair rate where only interfaces limit flows.
TEST(PathRules, DemandsAreMaxMinFair) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    RandomStream random(seed, "demands");
    const auto hosts = static_cast<std::uint32_t>(2 + random.below(8));
    const std::vector<BitRate> rate(hosts, kGbps), capacity(std::size_t{2} * hosts, kGbps);
    std::vector<HostPair> pairs(1 + random.below(30));
    std::vector<std::array<std::uint32_t, 2>> links;
    for (HostPair& pair : pairs) {
      pair = {static_cast<std::uint32_t>(random.below(hosts)),
              static_cast<std::uint32_t>(random.below(hosts))};
      links.push_back({pair.source, hosts + pair.destination});
    }
    std::vector<RuleFlow> flows(pairs.size());
    for (std::size_t i = 0; i < flows.size(); ++i) flows[i].links = links[i];
    MaxMin max_min;
    const auto fair = max_min.fair(capacity, flows);
    const auto demands = estimate_demands(rate, pairs);
    for (std::size_t i = 0; i < fair.size(); ++i)
      EXPECT_LE(std::abs(demands[i] - fair[i]), 100) << seed << " flow " << i;
  }
}

// Three hosts send to one, and one of them to another host, too.
TEST(PathRules, ReceiversLimitTheirSenders) {
  const std::vector<BitRate> rate(5, 300);
  const std::vector<HostPair> pairs{{0, 3}, {1, 3}, {2, 3}, {2, 4}};
  EXPECT_EQ(estimate_demands(rate, pairs), (std::vector<BitRate>{100, 100, 100, 200}));
}

// FatTree: the paths of a permutation of 16 hosts on a fat tree with k = 4. All links have the rate 1.
struct FatTree {
  std::vector<Numbers> links;  // of all paths
  std::vector<RoutedFlow> flows;

  explicit FatTree(const Numbers& to) {
    links.reserve(to.size() * 4);
    for (std::uint32_t from = 0; from < to.size(); ++from) add(from, to[from]);
  }

  void add(std::uint32_t from, std::uint32_t to) {
    RoutedFlow& flow = flows.emplace_back();
    flow.demand = 1;
    const std::uint32_t rack = from / 2, other_rack = to / 2, pod = from / 4, other_pod = to / 4;
    for (std::uint32_t up = 0; up < (rack == other_rack ? 1U : 2U); ++up) {
      for (std::uint32_t core = 0; core < (pod == other_pod ? 1U : 2U); ++core) {
        Numbers& path = links.emplace_back(Numbers{from, 16 + to});
        if (rack != other_rack) path.insert(path.end(), {32 + rack * 2 + up, 48 + other_rack * 2 + up});
        if (pod != other_pod) {
          path.push_back(64 + (pod * 2 + up) * 2 + core);
          path.push_back(80 + (other_pod * 2 + up) * 2 + core);
        }
        flow.paths.emplace_back(path);
      }
    }
  }
};

TEST(PathRules, FlowsOfAPermutationShareNoLink) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    RandomStream random(seed, "fat tree");
    const FatTree tree(permutation(16, random));
    const Numbers path = place_on_paths(std::vector<BitRate>(96, 1), tree.flows, {});
    std::vector<std::uint32_t> crossing(96, 0);
    for (std::size_t i = 0; i < path.size(); ++i) {
      for (const std::uint32_t link : tree.flows[i].paths[path[i]]) EXPECT_EQ(++crossing[link], 1U) << seed;
    }
  }
}

// A link carries at most ceil(flows / paths) of equal flows, and large flows are placed before small ones.
TEST(PathRules, FlowsSpreadOverPaths) {
  const std::vector<Numbers> links{{0}, {1}, {2}};
  std::vector<RoutedFlow> flows(7);
  for (RoutedFlow& flow : flows) {
    flow.demand = 10;
    flow.paths.assign(links.begin(), links.end());
  }
  std::vector<std::uint32_t> crossing(3, 0);
  for (const std::uint32_t path : place_on_paths(std::vector<BitRate>(3, 100), flows, {})) ++crossing[path];
  EXPECT_EQ(*std::max_element(crossing.begin(), crossing.end()), 3U);
  flows.resize(3);
  flows[1].demand = 50;
  EXPECT_EQ(place_on_paths(std::vector<BitRate>(3, 100), flows, std::vector<BitRate>{20, 0, 15}),
            (Numbers{2, 1, 0}));
  EXPECT_EQ(place_on_paths(std::vector<BitRate>{100, 200, 100}, flows, {}), (Numbers{0, 1, 2}));
  flows[0].paths.clear();
  EXPECT_EQ(place_on_paths(std::vector<BitRate>(3, 100), flows, {})[0], 0U);
}

}  // namespace
}  // namespace netsim::path_rules_test
