// Fabrics of optical switches: matchings, rings, patch panels, cubes.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "sim/topology/circuit_fabric.h"
#include "sim/topology/structure.h"
#include "tests/topology/build.h"

namespace netsim::circuit_fabric_test {
namespace {

// Returns the pairs of node names that a configuration of an optical switch joins.
std::set<std::pair<std::string, std::string>> pairs_of(const Cluster& cluster,
                                                       const OpticalSwitch::Configuration& configuration) {
  std::set<std::pair<std::string, std::string>> pairs;
  for (const PortId port : configuration.circuits) {
    const PortSpec& spec = cluster.graph.port(port);
    pairs.insert({cluster.graph.node(spec.node).name, cluster.graph.node(spec.peer_node).name});
  }
  return pairs;
}

TEST(RoundRobin, JoinsEveryPairOnceInMatchings) {
  for (std::uint32_t n = 2; n < 40; ++n) {
    const std::vector<Circuits> rounds = round_robin(n);
    EXPECT_EQ(rounds.size(), n % 2 == 0 ? n - 1 : n);
    std::set<std::pair<std::uint32_t, std::uint32_t>> met;
    for (const Circuits& round : rounds) {
      std::set<std::uint32_t> busy;
      for (const auto& [a, b] : round) {
        EXPECT_LT(a, b);
        EXPECT_TRUE(busy.insert(a).second && busy.insert(b).second) << n;
        EXPECT_TRUE(met.insert({a, b}).second) << n;
      }
      EXPECT_EQ(round.size(), n / 2);
    }
    EXPECT_EQ(met.size(), std::size_t{n} * (n - 1) / 2);
  }
}

TEST(Rotor, DealsTheMatchingsOut) {
  for (const int rotors : {1, 2, 4, 7}) {
    const Cluster cluster = cluster_of("topology: {kind: rotor, switches: 8, hosts_per_switch: 2, rotors: " +
                                       std::to_string(rotors) + "}\n");
    const auto& switches = cluster.graph.optical_switches();
    ASSERT_EQ(switches.size(), static_cast<std::size_t>(rotors));
    std::size_t configurations = 0;
    std::set<std::pair<std::string, std::string>> pairs;
    for (const OpticalSwitch& one : switches) {
      EXPECT_TRUE(one.waits);
      configurations += one.configurations.size();
      for (const auto& configuration : one.configurations) pairs.merge(pairs_of(cluster, configuration));
    }
    EXPECT_EQ(configurations, 7u);
    EXPECT_EQ(pairs.size(), 28u);
    const Structure structure = structure_of(cluster);
    EXPECT_EQ(structure.circuits, 4u * static_cast<std::size_t>(rotors));
    EXPECT_EQ(structure.possible_circuits, 28u);
    EXPECT_EQ(structure.cables, 16u + structure.circuits);
    EXPECT_EQ(structure.diameter, 3u) << "each pair has a circuit of its own";
    expect_shortest_paths(cluster);
  }
}

TEST(Rotor, OverWhatIsLitHasTheWaysOfTheGraph) {
  const Cluster cluster = cluster_of("topology: {kind: rotor, switches: 8, rotors: 3, ways: lit}\n");
  const std::vector<bool> down = cluster.graph.circuits_down();
  EXPECT_EQ(down, cluster.graph.avoided());
  for (const HostPort& from : cluster.nics) {
    for (const HostPort& to : cluster.nics) {
      if (from.nic == to.nic) continue;
      NodeId at = from.nic;
      for (int links = 0; at != to.nic; ++links) {
        ASSERT_LT(links, 8);
        const PortId port = cluster.routes->next_hops(at, to.nic).front();
        EXPECT_FALSE(down[port]);
        at = cluster.graph.port(port).peer_node;
      }
    }
  }
}

// The jumps of a ring have no divisor in common with the servers; links are at most the ports.
TEST(TopooptFabric, IsRegularAndJoined) {
  rc::check("degree, rings", [] {
    const int servers = *rc::gen::inRange(3, 120), degree = *rc::gen::inRange(2, 9);
    const Cluster cluster = cluster_of("topology: {kind: topoopt, servers: " + std::to_string(servers) +
                                       ", degree: " + std::to_string(degree) + "}\n");
    const OpticalSwitch& panel = cluster.graph.optical_switches().at(0);
    RC_ASSERT(panel.configurations.size() == 1u);
    std::map<NodeId, int> ports;
    std::set<int> seen;
    const auto first = static_cast<int>(cluster.graph.port(panel.configurations[0].circuits[0]).node);
    for (const PortId circuit : panel.configurations[0].circuits) {
      const PortSpec& spec = cluster.graph.port(circuit);
      ++ports[spec.node];
      ++ports[spec.peer_node];
      seen.insert(std::abs(static_cast<int>(spec.peer_node) - static_cast<int>(spec.node)));
    }
    RC_ASSERT(first >= 0);
    for (const auto& [node, count] : ports) {
      RC_ASSERT(count <= degree);
      RC_ASSERT(count == ports.begin()->second);
    }
    for (const int jump : seen) RC_ASSERT(std::gcd(jump, servers) == 1 || servers == 2 * jump);
    RC_ASSERT(seen.contains(1));
  });
}

// More rings make shorter ways; about n^(1/rings) as Chord's fingers do.
TEST(TopooptFabric, MoreRingsMakeShorterWays) {
  std::uint32_t before = UINT32_MAX;
  for (const int degree : {2, 4, 6, 8}) {
    const Structure s = structure_of(
        cluster_of("topology: {kind: topoopt, servers: 128, degree: " + std::to_string(degree) + "}\n"));
    EXPECT_LT(s.diameter, before) << degree;
    before = s.diameter;
  }
  EXPECT_LE(before, 9u);
}

TEST(TopooptFabric, GivesPortsToThePairsThatSayMost) {
  const std::string yaml =
      "topology: {kind: topoopt, servers: 8, degree: 4, all_reduce: 10 MB, demand: [[0, 4, 100 MB], [4, 1, "
      "60 "
      "MB], [1, 5, 90 MB], [2, 6, 10 MB]]}\n";
  const Cluster cluster = cluster_of(yaml);
  const auto pairs = pairs_of(cluster, cluster.graph.optical_switches().at(0).configurations[0]);
  const auto joined = [&](int a, int b) {
    return pairs.contains({"server" + std::to_string(a), "server" + std::to_string(b)});
  };
  // There are one ring and two matchings. The heaviest matching is (0 4)(1 5)(2 6). These then count half, so
  // (4 1) beats none of them: 50 + 45 against 60.
  EXPECT_TRUE(joined(0, 1) && joined(0, 7));
  EXPECT_TRUE(joined(0, 4) && joined(1, 5) && joined(2, 6));
  EXPECT_FALSE(joined(1, 4));
  EXPECT_EQ(cluster.graph.optical_switches().at(0).configurations[0].circuits.size(), 8u + 3 + 3);
  EXPECT_NE(cluster_error("topology: {kind: topoopt, servers: 8, degree: 4, rings: 3}\n")
                .find("3 rings take 6 ports"),
            std::string::npos);
  EXPECT_NE(cluster_error("topology: {kind: topoopt, servers: 8, demand: [[0, 8, 1 MB]]}\n")
                .find("'8' is no server"),
            std::string::npos);
}

// Slices of TPU v4: 48 optical switches whatever the slice, and 48 circuits for each cube, twisted or not.
TEST(TorusOfCubes, HasTheOpticalSwitchesOfTpuV4) {
  for (const std::string sizes : {"[4, 4, 4]", "[4, 4, 8]", "[4, 8, 8]", "[8, 8, 12]"}) {
    for (const bool twist : {false, true}) {
      if (twist && (sizes == "[4, 4, 4]" || sizes == "[8, 8, 12]")) continue;
      const Cluster cluster = cluster_of("topology: {kind: torus, sizes: " + sizes +
                                         ", cube: 4, optical_delay: 300 ns, delay: 50 ns" +
                                         (twist ? ", twist: true" : "") + "}\n");
      const std::size_t cubes = cluster.gpus.size() / 64;
      EXPECT_EQ(cluster.graph.optical_switches().size(), 48u) << sizes;
      std::size_t circuits = 0;
      for (const OpticalSwitch& one : cluster.graph.optical_switches()) {
        ASSERT_EQ(one.configurations.size(), 1u);
        EXPECT_EQ(one.configurations[0].circuits.size(), cubes) << "each cube has a port on both sides";
        circuits += one.configurations[0].circuits.size();
        for (const PortId port : one.configurations[0].circuits)
          EXPECT_EQ(cluster.graph.port(port).link.delay, 300 * kNanosecond);
      }
      EXPECT_EQ(circuits, 48 * cubes);
    }
  }
  EXPECT_NE(
      cluster_error("topology: {kind: torus, sizes: [4, 6, 8], cube: 4}\n").find("no multiple of the 4"),
      std::string::npos);
}

TEST(OpticalCircuits, SaysWhatIsWrongWithThem) {
  const auto with = [](const std::string& configurations, const std::string& more = "") {
    return cluster_error("topology: {kind: optical_circuits, switches: 4, degree: 2" + more +
                         ", configurations: " + configurations + "}\n");
  };
  EXPECT_EQ(with("[{name: a, jumps: [1]}]"), "");
  EXPECT_NE(with("[{name: a, jumps: [4]}]").find("'4' is out of range: 1 to 3"), std::string::npos);
  EXPECT_NE(with("[{name: a, matchings: [3]}]").find("0 to 2"), std::string::npos);
  EXPECT_NE(with("[{name: a, circuits: [[0, 1, 2]]}]").find("a pair of switches"), std::string::npos);
  EXPECT_NE(with("[{name: a, circuits: [[1, 1]]}]").find("to itself"), std::string::npos);
  EXPECT_NE(with("[{name: a, jumps: [1, 1]}]").find("needs 4 ports of switch 0, which has 2"),
            std::string::npos);
  EXPECT_NE(with("[{name: a, jumps: [1]}, {name: a, jumps: [1]}]").find("a second configuration 'a'"),
            std::string::npos);
  EXPECT_NE(with("[{jumps: [1]}]").find("'name' is missing"), std::string::npos);
  EXPECT_NE(with("[]").find("at least one configuration"), std::string::npos);
  EXPECT_NE(with("[{name: a, circuits: [[0, 1], [2, 3]]}]").find("do not join all switches"),
            std::string::npos);
  EXPECT_EQ(with("[{name: a, circuits: [[0, 1], [2, 3]]}, {name: b, jumps: [1]}]", ", ways: direct"), "");
  EXPECT_NE(with("[{name: a, jumps: [1]}]", ", servers: true, hosts_per_switch: 2").find("one host port"),
            std::string::npos);
  EXPECT_NE(
      cluster_error("topology: {kind: rotor, switches: 4, rotors: 4}\n").find("4 rotors for the 3 matchings"),
      std::string::npos);
}

}  // namespace
}  // namespace netsim::circuit_fabric_test
