// Do the rings of a group visit domain after domain, and use every NIC once each way?
#include "sim/collectives/library/communicator_layout.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "sim/collectives/library/channel_orders.h"
#include "tests/collectives/fake_endpoint.h"

namespace netsim::communicator_layout_test {
namespace {

// `direct`: of links between any two GPUs of a host.
CommunicatorLayout layout_of(const std::vector<GpuId>& members, std::uint32_t per_host, BitRate direct = 0) {
  EventLoop loop;
  const std::uint32_t gpus = *std::max_element(members.begin(), members.end()) + 1;
  FakeEndpoint endpoint(loop, gpus, per_host, {}, {});
  endpoint.direct = direct;
  LinkOrders orders;
  return lay_out(members, endpoint, orders);
}

// The ring that NCCL prints first on two hosts of 8 GPUs enters at GPU 0. It leaves by its neighbour on the
// same PCIe switch, GPU 1. It traverses the other host in the opposite order.
TEST(CommunicatorLayout, OfTwoHostsOfEightIsEightRings) {
  const CommunicatorLayout layout = layout_of(everyone(16), 8);
  EXPECT_EQ(layout.farthest, Reach::scale_out);
  ASSERT_EQ(layout.rings.size(), 8U);
  EXPECT_EQ(layout.rings[0],
            (std::vector<std::uint32_t>{0, 2, 3, 4, 5, 6, 7, 1, 9, 10, 11, 12, 13, 14, 15, 8}));
  EXPECT_EQ(layout.rings[5],
            (std::vector<std::uint32_t>{5, 6, 7, 0, 1, 2, 3, 4, 12, 14, 15, 8, 9, 10, 11, 13}));
}

// Each chain begins near its own NIC, on both hosts near the same one. Chains of the second tree visit the
// hosts in the opposite order.
TEST(CommunicatorLayout, OfTwoHostsOfFourIsEightChains) {
  const CommunicatorLayout layout = layout_of(everyone(8), 4);
  EXPECT_EQ(layout.sizes, DomainSizes{4});
  ASSERT_EQ(layout.chains.size(), 8U);
  EXPECT_EQ(layout.chains[0], (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(layout.chains[2], (std::vector<std::uint32_t>{2, 3, 0, 1, 6, 7, 4, 5}));
  EXPECT_EQ(layout.chains[6], (std::vector<std::uint32_t>{6, 7, 4, 5, 2, 3, 0, 1}));
}

// A group on one host keeps only its own order. A group with one member a host has two orders.
TEST(CommunicatorLayout, HasChainsWhereThereAreTwoTrees) {
  EXPECT_TRUE(layout_of(everyone(8), 8).chains.empty());
  const CommunicatorLayout apart = layout_of({3, 11, 19}, 8);
  EXPECT_EQ(apart.chains, (std::vector<std::vector<std::uint32_t>>{{0, 1, 2}, {1, 2, 0}}));
  EXPECT_EQ(layout_of({0, 1, 2, 8}, 8).sizes, (DomainSizes{3, 1}));
}

TEST(ChannelOrders, AreTheGroupsWithoutRings) {
  const ChannelOrders orders;
  EXPECT_TRUE(orders.of(3).empty());
  EXPECT_EQ(orders.number(3), 3U);
  ASSERT_EQ(orders.sets(5).size(), 1U);
  EXPECT_EQ(orders.sets(5)[0].count, 5U);
}

// Channel after channel another ring; of chains the first half of the channels has the first tree.
TEST(ChannelOrders, TakeTurns) {
  const CommunicatorLayout layout = layout_of(everyone(8), 4);
  const ChannelOrders rings(layout, RankOrder::rings, 8), chains(layout, RankOrder::chains, 16);
  EXPECT_EQ(rings.of(1).data(), layout.rings[1].data());
  EXPECT_EQ(rings.of(5).data(), layout.rings[1].data());
  EXPECT_EQ(chains.of(5).data(), layout.chains[1].data());
  EXPECT_EQ(chains.of(9).data(), layout.chains[5].data());
}

// Whatever part of the channels is used: each is in one set, with its order and its number.
TEST(ChannelOrders, HaveEachChannelInOneSet) {
  EXPECT_TRUE(rc::check("sets", [] {
    const auto per_host = *rc::gen::inRange<std::uint32_t>(1, 9);
    const auto all = *rc::gen::inRange<std::uint32_t>(1, 65);
    const auto used = *rc::gen::inRange<std::uint32_t>(1, all + 1);
    const RankOrder order = *rc::gen::element(RankOrder::rings, RankOrder::chains);
    const CommunicatorLayout layout = layout_of(everyone(3 * per_host), per_host);
    const ChannelOrders orders(layout, order, all);
    std::set<std::uint32_t> channels, numbers;
    for (const ChannelOrders::Channels& set : orders.sets(used)) {
      for (std::uint32_t i = 0; i < set.count; ++i) {
        const std::uint32_t channel = set.first + i * set.step;
        RC_ASSERT(channel < used);
        RC_ASSERT(channels.insert(channel).second);
        RC_ASSERT(orders.of(channel).data() == set.order.data());
        RC_ASSERT(orders.number(channel) == orders.number(set.first) + i * orders.number_step());
        RC_ASSERT(numbers.insert(orders.number(channel)).second);
      }
    }
    RC_ASSERT(channels.size() == used);
  }));
}

TEST(CommunicatorLayout, HasNoRingsWhereTheGroupIsAsGood) {
  EXPECT_TRUE(layout_of(everyone(8), 8).rings.empty());
  EXPECT_EQ(layout_of(everyone(8), 8).farthest, Reach::scale_up);
  EXPECT_TRUE(layout_of({3, 11, 19}, 8).rings.empty());
}

// ---- Along direct links

// Places in the group, not numbers of GPUs.
TEST(CommunicatorLayout, InAHostWithDirectLinksIsAsManyRingsAsUseThem) {
  const CommunicatorLayout layout = layout_of({10, 9, 15, 8, 11}, 8, 48 * kGbps);
  EXPECT_EQ(layout.rings.size(), 4U);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> hops;
  for (const std::vector<std::uint32_t>& ring : layout.rings) {
    EXPECT_EQ(std::set<std::uint32_t>(ring.begin(), ring.end()), (std::set<std::uint32_t>{0, 1, 2, 3, 4}));
    for (std::size_t i = 0; i < 5; ++i) ++hops[{ring[i], ring[(i + 1) % 5]}];
  }
  EXPECT_EQ(hops.size(), 20U) << "each link once each way";
  EXPECT_TRUE(layout.chains.empty());
}

// The NICs are the same as without such links. Within the hosts no link carries more than two of the eight
// rings, or more than four of the sixteen chains up and down.
TEST(CommunicatorLayout, BetweenHostsWithDirectLinksSharesThemOut) {
  const CommunicatorLayout plain = layout_of(everyone(24), 8),
                           layout = layout_of(everyone(24), 8, 48 * kGbps);
  ASSERT_EQ(layout.rings.size(), 8U);
  ASSERT_EQ(layout.chains.size(), 16U);
  const auto busiest = [](const std::vector<std::vector<std::uint32_t>>& orders, bool both_ways) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> loads;
    std::uint32_t most = 0;
    for (const std::vector<std::uint32_t>& order : orders) {
      for (std::size_t i = 1; i < order.size(); ++i) {
        const std::uint32_t from = order[i - 1], to = order[i];
        if (from / 8 != to / 8) continue;
        most = std::max(most, ++loads[{from, to}]);
        if (both_ways) most = std::max(most, ++loads[{to, from}]);
      }
    }
    return most;
  };
  EXPECT_LE(busiest(layout.rings, false), 2U);
  EXPECT_LE(busiest(layout.chains, true), 5U);
  EXPECT_GE(busiest(plain.rings, false), 5U);
  for (std::size_t c = 0; c < 8; ++c) {
    const std::vector<std::uint32_t>&ring = layout.rings[c], &before = plain.rings[c];
    for (std::size_t host = 0; host < 3; ++host) {
      EXPECT_EQ(ring[8 * host], before[8 * host]);
      EXPECT_EQ(ring[8 * host + 7], before[8 * host + 7]);
      EXPECT_EQ(layout.chains[c][8 * host], plain.chains[c][8 * host]);
    }
  }
}

// A group that jumps between hosts is put in order.
TEST(CommunicatorLayout, KeepsHostsTogether) {
  const CommunicatorLayout layout = layout_of({0, 4, 1, 5}, 4);
  ASSERT_EQ(layout.rings.size(), 2U);
  EXPECT_EQ(layout.rings[0], (std::vector<std::uint32_t>{0, 2, 3, 1}));
}

TEST(CommunicatorLayout, StopsWhereNcclsSearchDoes) {
  EXPECT_EQ(layout_of(everyone(144), 72).rings.size(), kMaxRings);
}

TEST(CommunicatorLayout, UsesEachNicOnceInAndOnceOut) {
  EXPECT_TRUE(rc::check("rings", [] {
    const auto hosts = *rc::gen::inRange<std::uint32_t>(2, 9);
    const auto per_host = *rc::gen::inRange<std::uint32_t>(2, 17);
    const CommunicatorLayout layout = layout_of(everyone(hosts * per_host), per_host);
    RC_ASSERT(layout.rings.size() == per_host);
    std::map<std::uint32_t, std::uint32_t> in, out;  // by GPU, each with a NIC of its own
    for (const std::vector<std::uint32_t>& ring : layout.rings) {
      RC_ASSERT(std::set<std::uint32_t>(ring.begin(), ring.end()).size() == std::size_t{hosts} * per_host);
      std::uint32_t crossings = 0, on_rail = 0;
      for (std::size_t i = 0; i < ring.size(); ++i) {
        const std::uint32_t from = ring[i], to = ring[(i + 1) % ring.size()];
        if (from / per_host == to / per_host) continue;
        ++out[from];
        ++in[to];
        ++crossings;
        if (from % per_host == to % per_host) ++on_rail;
      }
      RC_ASSERT(crossings == hosts);
      // An odd number of hosts leaves one hop between rails; an odd number of NICs as many as hosts that are
      // entered near the neighbour.
      if (hosts % 2 == 0 || per_host == 1) RC_ASSERT(on_rail == hosts);
      if (hosts % 2 == 1) RC_ASSERT(on_rail == hosts - 1);
    }
    for (std::uint32_t gpu = 0; gpu < hosts * per_host; ++gpu) RC_ASSERT(in[gpu] == 1 && out[gpu] == 1);
  }));
}

}  // namespace
}  // namespace netsim::communicator_layout_test
