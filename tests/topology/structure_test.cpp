// Are the figures of a fabric those of the textbook: switches, distances, bisection, oversubscription,
// cables?
#include "sim/topology/structure.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "tests/topology/build.h"

namespace netsim::structure_test {
namespace {

Structure structure(const std::string& topology, const std::string& more = "") {
  return structure_of(cluster_of("topology: {" + topology + "}\n" + more));
}

// Al-Fares et al., section 3: k^3/4 hosts, 5k^2/4 switches, full bisection. A fat tree of k = 4 without one
// of its four cores has three quarters of its bisection. Without all links of a host it loses that host's
// part.
TEST(Structure, SaysWhatFailuresLeave) {
  const Cluster cluster = cluster_of("topology: {kind: fat_tree, k: 4, rate: 100 Gbps}\n");
  std::vector<bool> failing(cluster.graph.port_count(), false);
  EXPECT_EQ(structure_of(cluster, failing).failing_links, 0u);
  for (NodeId id = 0; id < cluster.graph.node_count(); ++id) {
    if (cluster.graph.node(id).name != "core0") continue;
    for (const PortId port : cluster.graph.ports_of(id)) failing[port] = true;
  }
  const Structure s = structure_of(cluster, failing);
  EXPECT_EQ(s.failing_links, 4u);
  EXPECT_EQ(s.bisection, 800 * kGbps);
  EXPECT_EQ(s.bisection_left, 600 * kGbps);
}

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
    // k/2 - 1 of a host's partners are at its edge switch, and k/2 (k/2 - 1) elsewhere in its pod.
    const auto half = k / 2;
    const auto near = static_cast<double>(half - 1), pod = static_cast<double>(half * (half - 1));
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

// The halves are {0, 1} and {2, 3}; the slower direction of the middle is the bisection.
TEST(Structure, OfLinksWithARateForEachDirection) {
  const std::string hosts =
      "{from: host0, to: a}, {from: host1, to: a}, {from: host2, to: b}, {from: host3, to: b, rate_back: 10 "
      "Gbps}";
  const auto of = [&](const std::string& middle) {
    return structure("kind: custom, switches: [a, b], links: [" + hosts + ", {from: a, to: b, " + middle +
                     "}]");
  };
  const Structure s = of("rate: 40 Gbps, rate_back: 80 Gbps");
  EXPECT_EQ(s.bisection, 40 * kGbps);
  EXPECT_EQ(of("rate: 80 Gbps, rate_back: 40 Gbps").bisection, 40 * kGbps);
  EXPECT_EQ(of("rate: 400 Gbps, rate_back: 400 Gbps").bisection, 110 * kGbps) << "host3 receives at 10 Gb/s";
  for (const Structure::Links& links : s.links) EXPECT_EQ(links.count, links.rate == 80 * kGbps ? 1u : 4u);
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

// Returns the least of the halvings by the closed form: the uplinks of the leaves of one half, or their
// hosts' links.
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

// ---- Bisections by closed forms

// In links of 100 Gb/s.
std::int64_t bisection(const std::string& topology, const std::string& more = "") {
  const Structure s = structure(topology, more);
  EXPECT_EQ(s.bisection % (100 * kGbps), 0) << topology;
  return s.bisection / (100 * kGbps);
}

std::int64_t power_of_two(int low, int high) { return std::int64_t{1} << *rc::gen::inRange(low, high); }

// A cut across the longest dimension of k: two links of each of the n / k rings there, one of a line.
TEST(Structure, BisectionOfToriAndMeshes) {
  EXPECT_TRUE(rc::check("2 n / k, mesh n / k", [] {
    std::vector<std::int64_t> sizes;
    std::int64_t routers = 1, longest = 1;
    std::string text;
    for (int d = *rc::gen::inRange(1, 4); d > 0; --d) {
      sizes.push_back(power_of_two(2, 4));
      routers *= sizes.back();
      longest = std::max(longest, sizes.back());
      text += (text.empty() ? "" : ", ") + std::to_string(sizes.back());
    }
    RC_PRE(routers <= 256);
    RC_ASSERT(bisection("kind: torus, sizes: [" + text + "]") == 2 * routers / longest);
    RC_ASSERT(bisection("kind: torus, sizes: [" + text + "], wrap: false") == routers / longest);
  }));
}

// The cut across the long dimension of k x k x 2k also crosses the short rings if they are twisted. So of the
// halvings that are tried it has twice the links.
TEST(Structure, ATwistDoublesTheBisection) {
  for (const auto& [sizes, regular] :
       {std::pair{"[2, 4]", 4}, {"[4, 8]", 8}, {"[4, 4, 8]", 32}, {"[4, 8, 8]", 64}}) {
    EXPECT_EQ(bisection("kind: torus, sizes: " + std::string(sizes)), regular) << sizes;
  }
  EXPECT_EQ(bisection("kind: torus, sizes: [4, 4, 8], twist: true"), 64);
  EXPECT_EQ(bisection("kind: torus, sizes: [4, 8, 8], twist: true"), 128);
}

// Across a dimension of k: k^2 / 4 links of each of the n / k rows, or half of all hosts.
TEST(Structure, BisectionOfHyperX) {
  EXPECT_TRUE(rc::check("min over dimensions of n k / 4 links, or hosts", [] {
    std::string text;
    std::int64_t switches = 1, shortest = INT64_MAX;
    for (int d = *rc::gen::inRange(1, 4); d > 0; --d) {
      const std::int64_t k = power_of_two(1, 4);
      switches *= k;
      shortest = std::min(shortest, k);
      text += (text.empty() ? "" : ", ") + std::to_string(k);
    }
    RC_PRE(switches <= 128);
    const std::int64_t hosts = power_of_two(0, 3), links = *rc::gen::inRange(1, 3);
    RC_ASSERT(bisection("kind: hyperx, sizes: [" + text + "], hosts_per_switch: " + std::to_string(hosts) +
                        ", links: " + std::to_string(links)) ==
              std::min(switches * shortest / 4 * links, switches * hosts / 2));
  }));
}

// Groups of one half have a cable to each group of the other: g^2 / 4 in all, or their hosts' links.
TEST(Structure, BisectionOfDragonflies) {
  for (const int g : {2, 4, 8}) {
    for (const int p : {1, 4}) {
      const std::string groups =
          ", p: " + std::to_string(p) + ", h: 2, g: " + std::to_string(g) + ", links: 1";
      const std::int64_t cables = g * g / 4, hosts = g / 2 * 4 * p;
      EXPECT_EQ(bisection("kind: dragonfly, a: 4" + groups), std::min(cables, hosts)) << groups;
      EXPECT_EQ(bisection("kind: dragonfly_plus, leaves: 4, spines: 4" + groups), std::min(cables, hosts))
          << groups;
    }
  }
}

// The halving by the first digit cuts one of the two links from each switch: n at most. Paths that shift one
// digit in with every hop load all 2 n links with n D / 2 of the n^2 pairs. Any halving is crossed by n^2 / 4
// of the pairs each way: n / (2 D) at least, D = ceil(log2 n).
TEST(Structure, BisectionOfDeBruijnAndKautzGraphs) {
  for (const char* kind : {"de_bruijn", "kautz"}) {
    for (const std::int64_t n : {8, 12, 16, 24, 32, 64}) {
      const std::int64_t links = bisection(
          "kind: " + std::string(kind) + ", degree: 2, hosts_per_switch: 8, switches: " + std::to_string(n));
      EXPECT_LE(links, n) << kind << n;
      EXPECT_GE(2 * links * std::bit_width(static_cast<std::uint64_t>(n - 1)), n) << kind << n;
    }
  }
}

// For a power q of an odd prime, the halving separates the two kinds of switches. Each has q links to the
// other kind, q^3 in all. For q = 5, the Hoffman-Singleton graph, any halving has at least (7 - 2) 50 / 4
// (Fiedler's bound; degree 7, second eigenvalue 2).
TEST(Structure, BisectionOfSlimFly) {
  for (const std::int64_t q : {3, 5, 7, 9, 11}) {
    const std::string graph = "kind: slim_fly, q: " + std::to_string(q) + ", hosts_per_switch: ";
    EXPECT_EQ(bisection(graph + std::to_string(q + 1)), q * q * q) << q;
    EXPECT_EQ(bisection(graph + "2"), 2 * q * q) << q;
  }
}

// The dimensions' own cuts: 2 links of a ring, k^2 / 4 of a full mesh, half of the links to a switch.
TEST(Structure, BisectionOfGridsOfRingsMeshesAndSwitches) {
  const auto grid = [](const std::string& a, int k, const std::string& b, int l) {
    return bisection("kind: multi_dimensional, dimensions: [{shape: " + a + ", size: " + std::to_string(k) +
                     "}, {shape: " + b + ", size: " + std::to_string(l) + "}]");
  };
  const auto cut = [](const std::string& shape, int k) {
    return shape == "ring" ? 2 : shape == "full_mesh" ? k * k / 4 : k / 2;
  };
  for (const std::string a : {"ring", "full_mesh", "switch"}) {
    for (const std::string b : {"ring", "full_mesh", "switch"}) {
      for (const auto& [k, l] : {std::pair{4, 4}, {4, 8}, {8, 4}}) {
        EXPECT_EQ(grid(a, k, b, l), std::min(l * cut(a, k), k * cut(b, l))) << a << k << b << l;
      }
    }
  }
}

// Rails that spines join: half of the NICs, or half of the uplinks.
TEST(Structure, BisectionOfRails) {
  for (const auto& [spines, links] : {std::pair{4, 1}, {2, 1}, {2, 2}, {1, 1}}) {
    const std::string fabric =
        "kind: rail_optimized, rails: 8, hosts_per_leaf: 4, units: 2, spines: " + std::to_string(spines) +
        ", links: " + std::to_string(links);
    EXPECT_EQ(bisection(fabric, "host: dgx_h100\n"), 8 * std::min(4, spines * links)) << fabric;
  }
}

// Tiers written down: at each the links upward of a half, of which the least counts.
TEST(Structure, BisectionOfClosNetworks) {
  for (const int lower : {1, 2, 4}) {
    for (const int upper : {1, 2, 4}) {
      const std::string up = std::to_string(lower) + ", " + std::to_string(upper);
      // 4 groups of 4 switches of 4 hosts: a half has 32 hosts, 8 `lower` links, 2 `lower` `upper` links.
      EXPECT_EQ(bisection("kind: clos, down: [4, 4, 4], up: [" + up + "]"),
                std::min({32, 8 * lower, 2 * lower * upper}))
          << up;
    }
  }
}

TEST(Structure, SamplesLargeFabrics) {
  const Structure s = structure("kind: fat_tree, k: 34");
  EXPECT_TRUE(s.sampled);
  EXPECT_EQ(s.diameter, 6u);
  EXPECT_EQ(s.bisection, s.injection / 2);
}

}  // namespace
}  // namespace netsim::structure_test
