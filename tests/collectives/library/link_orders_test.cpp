// Do rings along direct links use them as well as can be, and only links that are there?
#include "sim/collectives/library/link_orders.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>

namespace netsim::link_orders_test {
namespace {

using Orders = LinkOrders::Orders;

constexpr std::uint32_t kMost = 32;

LinkLanes full_mesh(std::uint32_t count, std::uint32_t lanes = 1) {
  LinkLanes links{count, std::vector<std::uint32_t>(std::size_t{count} * count, lanes)};
  for (std::uint32_t gpu = 0; gpu < count; ++gpu) links.lanes[gpu * count + gpu] = 0;
  return links;
}

// Text of digits, row after row, spaces between rows.
LinkLanes links_of(const std::string& rows) {
  LinkLanes links;
  for (const char c : rows) {
    if (c != ' ') links.lanes.push_back(static_cast<std::uint32_t>(c - '0'));
  }
  while (links.count * links.count < links.lanes.size()) ++links.count;
  return links;
}

LinkLanes part_of(const LinkLanes& links, const std::vector<std::uint32_t>& gpus) {
  LinkLanes part{static_cast<std::uint32_t>(gpus.size()), {}};
  for (const std::uint32_t from : gpus) {
    for (const std::uint32_t to : gpus) part.lanes.push_back(links.lanes[from * links.count + to]);
  }
  return part;
}

// DGX-1 with V100, as SCCL numbers its GPUs (nvidia.py of its repository); with P100 each joint is one link.
constexpr const char* kDgx1V = "02112000 20120100 11020020 12200001 20000211 01002012 00201102 00011220";

bool is_an_order(const LinkOrders::Order& order, std::uint32_t count) {
  const std::set<std::uint32_t> gpus(order.begin(), order.end());
  return order.size() == count && gpus.size() == count && *gpus.rbegin() == count - 1;
}

// How many run over each link, by from * count + to.
std::vector<std::uint32_t> loads(const Orders& orders, std::uint32_t count, bool closed) {
  std::vector<std::uint32_t> loads(std::size_t{count} * count, 0);
  for (const LinkOrders::Order& order : orders) {
    for (std::size_t i = closed ? 0 : 1; i < order.size(); ++i)
      ++loads[order[i == 0 ? order.size() - 1 : i - 1] * count + order[i]];
  }
  return loads;
}

// Rings that the busiest lane carries; 1000 where a ring takes a link that is not there.
double busiest(const LinkLanes& links, const std::vector<std::uint32_t>& loads) {
  double most = 0;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    if (loads[i] > 0 && links.lanes[i] == 0) return 1000;
    if (loads[i] > 0) most = std::max(most, static_cast<double>(loads[i]) / links.lanes[i]);
  }
  return most;
}

// Returns how many lanes the rings use together, if each carries the same and the busiest lane is full.
double lanes_used(const LinkLanes& links, const Orders& rings) {
  if (rings.empty()) return 0;
  for (const LinkOrders::Order& ring : rings) EXPECT_TRUE(is_an_order(ring, links.count));
  return static_cast<double>(rings.size()) / busiest(links, loads(rings, links.count, true));
}

double found(const LinkLanes& links) {
  LinkOrders orders;
  return lanes_used(links, orders.rings(links, kMost));
}

TEST(LinkOrders, SixRingsUseUpAllLinksOfADgx1WithV100) {
  LinkOrders orders;
  const LinkLanes links = links_of(kDgx1V);
  const Orders& rings = orders.rings(links, kMost);
  EXPECT_EQ(rings.size(), 6U);
  EXPECT_EQ(loads(rings, 8, true), links.lanes);
}

TEST(LinkOrders, FourRingsUseUpAllLinksOfADgx1WithP100) {
  LinkOrders orders;
  LinkLanes links = links_of(kDgx1V);
  for (std::uint32_t& lanes : links.lanes) lanes = std::min(lanes, 1U);
  const Orders& rings = orders.rings(links, kMost);
  EXPECT_EQ(rings.size(), 4U);
  EXPECT_EQ(loads(rings, 8, true), links.lanes);
}

// Blink (Wang et al., MLSys 2020) counts what NCCL's rings have of parts of a DGX-1.
TEST(LinkOrders, OfPartsOfADgx1AreThoseOfNccl) {
  const LinkLanes links = links_of(kDgx1V);
  EXPECT_EQ(found(part_of(links, {0, 1, 2, 3})), 4);
  EXPECT_EQ(found(part_of(links, {0, 1, 2, 3, 4, 5})), 2);
  EXPECT_EQ(found(part_of(links, {1, 4, 5, 6})), 0) << "one of them has a single neighbour";
}

// A complete digraph falls into as many rings as a GPU has links (Tillson, J. Combinatorial Theory B 29,
// 1980), of 4 and of 6 GPUs only over twice the links.
TEST(LinkOrders, UseUpAllLinksOfAFullMesh) {
  LinkOrders orders;
  for (std::uint32_t count = 3; count <= LinkOrders::kMostGpus; ++count) {
    const LinkLanes links = full_mesh(count);
    const Orders& rings = orders.rings(links, kMost);
    EXPECT_EQ(lanes_used(links, rings), count - 1) << count;
    EXPECT_EQ(rings.size(), count == 4 || count == 6 ? 2 * (count - 1) : count - 1) << count;
  }
}

// Both ways round, and with links of two lanes twice.
TEST(LinkOrders, GoRoundARingBothWays) {
  LinkLanes links{5, std::vector<std::uint32_t>(25, 0)};
  for (std::uint32_t gpu = 0; gpu < 5; ++gpu)
    links.lanes[gpu * 5 + (gpu + 1) % 5] = links.lanes[(gpu + 1) % 5 * 5 + gpu] = 2;
  LinkOrders orders;
  EXPECT_EQ(orders.rings(links, kMost).size(), 4U);
  EXPECT_EQ(found(links), 4);
  EXPECT_EQ(orders.rings(links, 2).size(), 2U);
}

// A torus of 4 x 4: two rings and their reverses (Foregger, Discrete Mathematics 24, 1978).
TEST(LinkOrders, UseUpAllLinksOfATorus) {
  LinkLanes links{16, std::vector<std::uint32_t>(256, 0)};
  for (std::uint32_t at = 0; at < 16; ++at) {
    for (const std::uint32_t next : {at / 4 * 4 + (at + 1) % 4, (at + 4) % 16})
      links.lanes[at * 16 + next] = links.lanes[next * 16 + at] = 1;
  }
  EXPECT_EQ(found(links), 4);
}

TEST(LinkOrders, AreNoneWhereNoRingIs) {
  EXPECT_EQ(found(links_of("0111 1000 1000 1000")), 0) << "a star";
  EXPECT_EQ(found(links_of("01100 10100 11011 00101 00110")), 0) << "two triangles with a corner in common";
  EXPECT_EQ(found(links_of("01 10")), 0) << "two have one order";
  EXPECT_EQ(found(full_mesh(LinkOrders::kMostGpus + 1)), 0) << "not looked for";
}

// Links in one direction only.
TEST(LinkOrders, FollowDirections) {
  EXPECT_EQ(found(links_of("010 001 100")), 1);
  EXPECT_EQ(found(links_of("012 201 120")), 3) << "a ring of one lane and its reverse of two";
}

TEST(LinkOrders, KnowTheNarrowestCut) {
  EXPECT_EQ(narrowest_cut(full_mesh(8)), 7U);
  EXPECT_EQ(narrowest_cut(links_of("0110 1010 1101 0010")), 1U);
  // Two full meshes of four with two links between.
  LinkLanes links = full_mesh(8);
  for (std::uint32_t from = 0; from < 8; ++from) {
    for (std::uint32_t to = 0; to < 8; ++to) {
      if (from / 4 != to / 4 && (from % 4 != to % 4 || from % 4 > 1)) links.lanes[from * 8 + to] = 0;
    }
  }
  EXPECT_EQ(narrowest_cut(links), 2U);
  EXPECT_EQ(found(links), 2);
}

// With any links, rings use links that exist. They carry no more than the narrowest cut and no less than one
// ring. One is found wherever one exists.
TEST(LinkOrders, AreRingsOfAnyHost) {
  EXPECT_TRUE(rc::check("rings", [] {
    const auto count = *rc::gen::inRange<std::uint32_t>(3, 9);
    LinkLanes links{count,
                    *rc::gen::container<std::vector<std::uint32_t>>(
                        std::size_t{count} * count, rc::gen::element<std::uint32_t>(0, 0, 1, 1, 2, 3))};
    for (std::uint32_t gpu = 0; gpu < count; ++gpu) links.lanes[gpu * count + gpu] = 0;
    LinkOrders orders, again;
    const Orders& rings = orders.rings(links, kMost);
    RC_ASSERT(rings == again.rings(links, kMost));
    std::vector<std::uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0U);
    bool exists = false;
    do {
      bool whole = true;
      for (std::uint32_t i = 0; i < count; ++i)
        whole = whole && links.lanes[order[i] * count + order[(i + 1) % count]] > 0;
      exists = exists || whole;
    } while (!exists && std::next_permutation(order.begin() + 1, order.end()));
    RC_ASSERT(rings.empty() == !exists);
    if (!exists) return;
    const double used = lanes_used(links, rings);
    RC_ASSERT(used >= 1);
    RC_ASSERT(used <= narrowest_cut(links));
  }));
}

// ---- Ways from one GPU to another

TEST(LinkOrders, WaysBeginAndEndWhereTheyShould) {
  LinkOrders orders;
  const LinkLanes links = links_of(kDgx1V);
  const std::vector<WayEnds> ends{{0, 1}, {2, 3}, {4, 5}, {6, 7}};
  const Orders& ways = orders.ways(links, ends, false);
  ASSERT_EQ(ways.size(), 4U);
  for (std::size_t i = 0; i < ways.size(); ++i) {
    EXPECT_TRUE(is_an_order(ways[i], 8));
    EXPECT_EQ(ways[i].front(), ends[i].first);
    EXPECT_EQ(ways[i].back(), ends[i].last);
  }
  EXPECT_LE(busiest(links, loads(ways, 8, false)), 1);
}

TEST(LinkOrders, WaysShareOutTheLinksOfAFullMesh) {
  LinkOrders orders;
  const LinkLanes links = full_mesh(8);
  std::vector<WayEnds> ends, open;
  for (std::uint32_t gpu = 0; gpu < 8; ++gpu) {
    ends.push_back({gpu, gpu ^ 1U});
    open.push_back({gpu, kNoIndex});
  }
  EXPECT_LE(busiest(links, loads(orders.ways(links, ends, false), 8, false)), 2);
  EXPECT_EQ(busiest(links, loads(orders.ways(links, open, false), 8, false)), 1);
  EXPECT_TRUE(orders.ways(links_of("0111 1000 1000 1000"), {{1, 2}}, false).empty());
}

}  // namespace
}  // namespace netsim::link_orders_test
