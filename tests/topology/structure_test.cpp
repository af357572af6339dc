// Are the figures of a fabric those of the textbook: switches, distances, bisection, oversubscription,
// cables?
#include "sim/topology/structure.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>

#include "tests/topology/build.h"

namespace netsim {
namespace {

Structure structure(const std::string& topology, const std::string& more = "") {
  return structure_of(cluster_of("topology: {" + topology + "}\n" + more));
}

// Al-Fares et al., section 3: k^3/4 hosts, 5k^2/4 switches, full bisection.
TEST(Structure, OfAFatTree) {
  for (const std::int64_t k : {2, 4, 6, 8, 16}) {
    const Structure s = structure("kind: fat_tree, k: " + std::to_string(k));
    const std::int64_t hosts = k * k * k / 4;
    EXPECT_EQ(s.hosts, static_cast<std::uint64_t>(hosts));
    ASSERT_EQ(s.tiers.size(), 3u);
    EXPECT_EQ(s.tiers[2].switches, static_cast<std::uint64_t>(k * k / 4));
    EXPECT_EQ(s.tiers[0].radix, k);
    EXPECT_EQ(s.tiers[0].oversubscription(), 1);
    EXPECT_EQ(s.bisection, hosts / 2 * 100 * kGbps);
    EXPECT_EQ(s.cables, static_cast<std::uint64_t>(3 * hosts));
    EXPECT_EQ(s.transceivers(), static_cast<std::uint64_t>(6 * hosts));
    EXPECT_EQ(s.diameter, 6u);
    // Of a host's partners k/2 - 1 are at its edge, k/2 (k/2 - 1) elsewhere in its pod.
    const double near = static_cast<double>(k / 2 - 1), pod = static_cast<double>(k / 2 * (k / 2 - 1));
    const double others = static_cast<double>(hosts - 1);
    EXPECT_DOUBLE_EQ(s.mean_hops, k == 2 ? 6 : (2 * near + 4 * pod + 6 * (others - near - pod)) / others);
  }
}

TEST(Structure, OversubscriptionDividesTheBisection) {
  const Structure s = structure("kind: fat_tree, k: 8, oversubscription: 2, core_oversubscription: 2");
  EXPECT_EQ(s.tiers[0].oversubscription(), 2);
  EXPECT_EQ(s.tiers[1].oversubscription(), 2);
  EXPECT_EQ(s.bisection, s.injection / 2 / 4);
}

TEST(Structure, OfAStarAndALine) {
  const Structure star = structure("kind: star, hosts: 6");
  EXPECT_EQ(star.diameter, 2u);
  EXPECT_EQ(star.bisection, 300 * kGbps);
  const Structure line = structure("kind: switch_line, switches: 5");
  EXPECT_EQ(line.diameter, 6u);
  EXPECT_EQ(line.mean_hops, 6);
  EXPECT_EQ(line.bisection, 100 * kGbps);
  EXPECT_EQ(line.tiers[0].across, 800 * kGbps);
}

// A ring of switches: two links leave each half, however it lies.
TEST(Structure, OfARingWrittenDown) {
  std::string links;
  for (int i = 0; i < 8; ++i) {
    links += "{from: host" + std::to_string(i) + ", to: s" + std::to_string(i) + "}, ";
    links += "{from: s" + std::to_string(i) + ", to: s" + std::to_string((i + 1) % 8) + "}, ";
  }
  const Structure ring =
      structure("kind: custom, switches: [s0, s1, s2, s3, s4, s5, s6, s7], links: [" + links + "]");
  EXPECT_EQ(ring.diameter, 6u);
  EXPECT_DOUBLE_EQ(ring.mean_hops, 2 + (1 + 2 + 3 + 4 + 3 + 2 + 1) / 7.0);
  EXPECT_EQ(ring.bisection, 200 * kGbps);
}

TEST(Structure, CountsTheLinksOfHostsApart) {
  const Structure s = structure("kind: star, hosts: 16, rate: 200 Gbps", "host: dgx_a100\n");
  EXPECT_EQ(s.gpus, 16u);
  std::uint64_t nvlink = 0, pcie = 0, ethernet = 0;
  for (const Structure::Links& links : s.links) {
    EXPECT_EQ(links.in_host, links.kind != LinkKind::ethernet);
    (links.kind == LinkKind::nvlink ? nvlink : links.kind == LinkKind::pcie ? pcie : ethernet) += links.count;
  }
  EXPECT_EQ(nvlink, 16u);
  EXPECT_EQ(pcie, 16u);
  EXPECT_EQ(ethernet, 16u);
  EXPECT_EQ(s.cables, 16u);
}

TEST(Structure, CountsPairsWithoutAWay) {
  const Structure s =
      structure("kind: rail_only, hosts_per_leaf: 2, units: 1, spines: 0", "host: dgx_a100\n");
  EXPECT_EQ(s.nics, 16u);
  EXPECT_EQ(s.unreachable_pairs, 16u * 14u);
  EXPECT_EQ(s.diameter, 2u);
  EXPECT_EQ(s.bisection, 0);  // the halving by rails
}

// The least of the halvings by the closed form: what the leaves of one half have upward, or their hosts.
TEST(Structure, BisectionOfLeavesAndSpines) {
  EXPECT_TRUE(rc::check("min(hosts, uplinks) of half the leaves", [] {
    const int leaves = 2 * *rc::gen::inRange(1, 4), spines = *rc::gen::inRange(1, 6);
    const int hosts = *rc::gen::inRange(1, 9), links = *rc::gen::inRange(1, 3);
    const Structure s = structure(
        "kind: leaf_spine, leaves: " + std::to_string(leaves) + ", spines: " + std::to_string(spines) +
        ", hosts_per_leaf: " + std::to_string(hosts) + ", links: " + std::to_string(links));
    RC_ASSERT(s.bisection == leaves / 2 * std::min(hosts, spines * links) * 100 * kGbps);
  }));
}

TEST(Structure, SamplesLargeFabrics) {
  const Structure s = structure("kind: fat_tree, k: 34");
  EXPECT_TRUE(s.sampled);
  EXPECT_EQ(s.diameter, 6u);
  EXPECT_EQ(s.bisection, s.injection / 2);
}

}  // namespace
}  // namespace netsim
