// Routing policies: which paths packets take, and what that does to queues and order.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "sim/core/registry.h"
#include "sim/network/policies.h"
#include "tests/support/packet_fixture.h"

namespace netsim::routing_test {
namespace {

using test::PacketFixture;

std::string fat_tree(const std::string& routing,
                     const std::string& reliability = "{kind: irn, reorder_tolerance: 100000}") {
  return "topology: {kind: fat_tree, k: 4, rate: 100 Gbps, delay: 1 us}\ntransport: {congestion_control: "
         "none, reliability: " +
         reliability + "}\nnetwork: {switch: {marker: none, routing: " + routing + "}}\n";
}

// How many of the links from aggregation switches to cores carry data.
std::size_t core_links(const PacketFixture& f) {
  std::size_t count = 0;
  for (PortId port = 0; port < f.cluster.graph.port_count(); ++port) {
    const PortSpec& spec = f.cluster.graph.port(port);
    const bool up =
        f.cluster.graph.node(spec.node).tier == 1 && f.cluster.graph.node(spec.peer_node).tier == 2;
    if (up && f.network->port_counters(port).data_packets > 0) ++count;
  }
  return count;
}

// With one hash everywhere an aggregation switch repeats the edge's choice: half of the cores are left out.
TEST(Ecmp, WithoutSeedsPerSwitchTrafficPolarises) {
  for (const bool seeds : {true, false}) {
    PacketFixture f(fat_tree(std::string("{kind: ecmp, per_switch_seed: ") + (seeds ? "true}" : "false}")));
    for (std::uint32_t i = 0; i < 16; ++i) {
      for (std::uint32_t channel = 0; channel < 4; ++channel) f.send(i, (i + 8) % 16, 1, 0, channel);
    }
    f.loop.run();
    EXPECT_EQ(core_links(f), seeds ? 16u : 8u);
  }
}

struct Permutation {
  Time end = 0;
  Bytes max_queue = 0;
  NetworkCounters counters;
  std::uint64_t packets = 0, events = 0;
};

Permutation permutation(const std::string& yaml, std::uint64_t seed = 1, Bytes bytes = 2'000'000) {
  PacketFixture f(yaml, seed);
  for (std::uint32_t i = 0; i < 16; ++i) f.send(i, (i + 8) % 16, bytes);
  f.loop.run();
  EXPECT_TRUE(f.all_delivered());
  EXPECT_EQ(f.delivery_order.size(), 16u) << "each exactly once";
  EXPECT_EQ(f.network->counters().bytes_delivered, 16 * bytes);
  Permutation p;
  p.end = *std::max_element(f.delivered.begin(), f.delivered.end());
  p.max_queue = f.network->counters().max_queue;
  p.counters = f.network->counters();
  p.packets = f.network->packets_fingerprint();
  p.events = f.network->events_fingerprint();
  return p;
}

class PerPacket : public ::testing::TestWithParam<const char*> {};

TEST_P(PerPacket, UsesAllPathsAndNeedsNoRepeats) {
  const Permutation spread = permutation(fat_tree(GetParam())), ecmp = permutation(fat_tree("ecmp"));
  EXPECT_EQ(spread.counters.retransmissions, 0u);
  EXPECT_EQ(spread.counters.drops, 0u);
  EXPECT_LT(spread.end, ecmp.end);
  EXPECT_LT(static_cast<double>(spread.end), 1.4 * 2e6 * 8 / 100e9 * 1e12) << "near line rate";
}

TEST_P(PerPacket, IsDeterministic) {
  const Permutation one = permutation(fat_tree(GetParam())), two = permutation(fat_tree(GetParam()));
  EXPECT_EQ(one.packets, two.packets);
  EXPECT_EQ(one.events, two.events);
}

// Go-back-N takes reordering for loss; the report says so.
TEST_P(PerPacket, GoBackNSuffersAndIsTold) {
  const Permutation p = permutation(fat_tree(GetParam(), "go_back_n"), 1, 300'000);
  EXPECT_GT(p.counters.retransmissions, 0u);
  const PacketFixture f(fat_tree(GetParam(), "go_back_n"));
  ASSERT_EQ(f.network->notes().size(), 1u);
  EXPECT_NE(f.network->notes()[0].find("go_back_n"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Policies, PerPacket,
                         ::testing::Values("{kind: spray, choice: random}",
                                           "{kind: spray, choice: round_robin}", "adaptive"));

TEST(PerPacketRouting, ChancesDependOnTheSeed) {
  EXPECT_NE(permutation(fat_tree("spray"), 1).packets, permutation(fat_tree("spray"), 2).packets);
  EXPECT_NE(permutation(fat_tree("spray")).packets,
            permutation(fat_tree("{kind: spray, choice: round_robin}")).packets);
}

TEST(PerPacketRouting, LookingAtQueuesKeepsThemShorterThanChance) {
  EXPECT_LT(permutation(fat_tree("adaptive")).max_queue, permutation(fat_tree("spray")).max_queue);
}

// Adaptive routing avoids a slow uplink; chance does not.
TEST(PerPacketRouting, AdaptiveAvoidsASlowLink) {
  Time end[2];
  for (const int adaptive : {0, 1}) {
    PacketFixture f(
        "topology: {kind: fat_tree, k: 4, rate: 100 Gbps, delay: 1 us}\n"
        "transport: {congestion_control: none, reliability: {kind: irn, reorder_tolerance: 100000, bdp_cap: "
        "4}}\n"
        "network: {switch: {marker: none, routing: " +
        std::string(adaptive != 0 ? "adaptive" : "spray") +
        "}, faults: [{link: edge0->agg0, rate: 10 Gbps, at: 0 s}]}\n");
    f.send(0, 8, 5'000'000);
    f.loop.run();
    EXPECT_TRUE(f.all_delivered());
    end[adaptive] = f.delivered[0];
    if (adaptive != 0) {
      EXPECT_LT(f.at("edge0", "agg0").data_packets, f.at("edge0", "agg1").data_packets / 5);
    }
  }
  EXPECT_LT(2 * end[1], end[0]);
}

TEST(PerPacketRouting, WorksOverPcie) {
  PacketFixture f(
      "topology: {kind: fat_tree, k: 4, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 2\n"
      "transport: {reliability: {kind: irn, reorder_tolerance: 1000}}\nnetwork: {switch: {routing: "
      "spray}}\n");
  for (std::uint32_t i = 0; i < 8; ++i) {
    for (int message = 0; message < 5; ++message) f.send(i, 8 + (i + 3) % 8, 100'000 + message);
  }
  f.loop.run();
  EXPECT_TRUE(f.all_delivered());
  EXPECT_EQ(f.delivery_order.size(), 40u);
  EXPECT_EQ(f.network->counters().retransmissions, 0u);
}

// ---- By destination

constexpr const char* kByDestination =
    "transport: {congestion_control: none}\nnetwork: {switch: {marker: none, routing: d_mod_k}}\n";

// Every NIC sends to the NIC that is `shift` further on, and no data packet waits for another. Each message
// takes as long as alone but for the acknowledgements on its path, where two that meet take twice as long.
void expect_shift_without_contention(const std::string& topology, std::uint32_t nics, std::uint32_t shift) {
  SCOPED_TRACE(topology + ", shift " + std::to_string(shift));
  PacketFixture together(topology + kByDestination);
  for (std::uint32_t i = 0; i < nics; ++i) together.send(i, (i + shift) % nics, 200'000);
  together.loop.run();
  ASSERT_TRUE(together.all_delivered());
  for (std::uint32_t i = 0; i < nics; ++i) {
    PacketFixture alone(topology + kByDestination);
    alone.send(i, (i + shift) % nics, 200'000);
    alone.loop.run();
    EXPECT_NEAR(static_cast<double>(together.delivered[i] - alone.delivered[0]), 0,
                0.02 * static_cast<double>(alone.delivered[0]))
        << i;
  }
}

TEST(DModK, ShiftsMeetNowhereInATree) {
  for (std::uint32_t shift = 1; shift < 16; ++shift)
    expect_shift_without_contention("topology: {kind: fat_tree, k: 4, rate: 100 Gbps, delay: 1 us}\n", 16,
                                    shift);
}

// Two links between switches are taken in turn on the way down, too.
TEST(DModK, ParallelLinksAreTakenInTurn) {
  const std::string topology =
      "topology: {kind: rail_only, rails: 1, hosts_per_leaf: 8, units: 3, spines: 4, links: 2, rate: 100 "
      "Gbps}\n";
  for (const std::uint32_t shift : {1u, 5u, 8u, 13u, 16u, 23u})
    expect_shift_without_contention(topology, 24, shift);
}

// The NICs of a host are at different leaves, so they are numbered leaf by leaf. Numbered by host, those of a
// rail would share a few uplinks.
TEST(DModK, RailsHaveAllTheirUplinks) {
  for (const char* topology :
       {"kind: rail_only, hosts_per_leaf: 8, units: 2, spines: 8, links: 1",
        "kind: rail_optimized, hosts_per_leaf: 8, units: 1, spines: 8, links: 1, pods: 2, cores: 8"}) {
    PacketFixture f("hosts: 16\nhost: dgx_a100\ntopology: {" + std::string(topology) + ", rate: 200 Gbps}\n" +
                    kByDestination);
    for (std::uint32_t i = 0; i < 128; ++i) f.send(i, (i + 64) % 128, 40'960);
    f.loop.run();
    ASSERT_TRUE(f.all_delivered());
    const Graph& graph = f.cluster.graph;
    for (PortId port = 0; port < graph.port_count(); ++port) {
      const PortSpec& spec = graph.port(port);
      if (graph.node(spec.node).kind != NodeKind::fabric_switch) continue;
      if (graph.node(spec.peer_node).kind != NodeKind::fabric_switch) continue;
      EXPECT_EQ(f.network->port_counters(port).data_packets, 10u) << topology << graph.port_name(port);
    }
  }
}

// One port of each switch for each destination, whoever sends and on whichever queue pair.
TEST(DModK, ADestinationHasOnePortOfEachSwitch) {
  PacketFixture f("topology: {kind: fat_tree, k: 4, rate: 100 Gbps, delay: 1 us}\n" +
                  std::string(kByDestination));
  for (std::uint32_t i = 0; i < 15; ++i) {
    for (std::uint32_t channel = 0; channel < 4; ++channel) f.send(i, 15, 4'000, 0, channel);
  }
  f.loop.run();
  ASSERT_TRUE(f.all_delivered());
  std::set<NodeId> switches;
  for (PortId port = 0; port < f.cluster.graph.port_count(); ++port) {
    const PortSpec& spec = f.cluster.graph.port(port);
    if (f.cluster.graph.node(spec.node).kind != NodeKind::fabric_switch) continue;
    if (f.network->port_counters(port).data_packets > 0) {
      EXPECT_TRUE(switches.insert(spec.node).second) << f.cluster.graph.port_name(port);
    }
  }
  EXPECT_EQ(switches.size(), 8u + 4u + 1u) << "edges, an aggregation switch of each pod, a core";
}

TEST(DModK, GoesByWhatIsLeftOfBrokenLinks) {
  PacketFixture f(
      "topology: {kind: fat_tree, k: 4, rate: 100 Gbps, delay: 1 us}\ntransport: {congestion_control: none}\n"
      "network: {switch: {marker: none, routing: d_mod_k}, faults: [{link: edge0-agg0, down: 0 s}]}\n");
  for (std::uint32_t i = 2; i < 16; ++i) f.send(0, i, 100'000, 1 * kMillisecond);
  f.loop.run();
  EXPECT_TRUE(f.all_delivered());
  EXPECT_EQ(f.at("edge0", "agg1").data_packets, 14 * 25u);
}

// Fabrics that are no trees have a table for each destination, too.
TEST(DModK, OtherFabricsCarryEverything) {
  for (const char* topology :
       {"kind: torus, sizes: [4, 4]", "kind: hyperx, sizes: [4, 4], hosts_per_switch: 1",

        "kind: dragonfly_plus, p: 2, leaves: 2, spines: 2, h: 2, g: 4",
        "kind: jellyfish, switches: 8, degree: 3, hosts_per_switch: 2"}) {
    PacketFixture f("topology: {" + std::string(topology) + "}\n" + kByDestination);
    for (std::uint32_t i = 0; i < 16; ++i) {
      for (std::uint32_t to = 0; to < 16; ++to) {
        if (to != i) f.send(i, to, 20'000);
      }
    }
    f.loop.run();
    EXPECT_TRUE(f.all_delivered()) << topology;
  }
}

// ---- Static paths

constexpr const char* kDiamond =
    "topology:\n  kind: custom\n  switches: [a, b, c, d]\n  links:\n    - {from: host0, to: a}\n    - {from: "
    "host1, to: d}\n"
    "    - {from: a, to: b}\n    - {from: a, to: c}\n    - {from: b, to: d}\n    - {from: c, to: d}\n    - "
    "{from: b, to: c}\n";

TEST(Static, FlowsTakeThePrescribedWay) {
  PacketFixture f(std::string(kDiamond) +
                  "network: {switch: {routing: {kind: static, paths: [{from: host0, to: host1, through: [a, "
                  "b, c, d]}]}}}\n");
  for (std::uint32_t channel = 0; channel < 4; ++channel) f.send(0, 1, 40'960, 0, channel);
  f.send(1, 0, 40'960);
  f.loop.run();
  EXPECT_TRUE(f.all_delivered());
  EXPECT_EQ(f.at("b", "c").data_packets, 40u);
  EXPECT_EQ(f.at("c", "d").data_packets, 40u);
  EXPECT_EQ(f.at("a", "c").data_packets, 0u);
  EXPECT_EQ(f.at("b", "a").data_packets + f.at("c", "a").data_packets, 10u) << "the way back is free";
  EXPECT_EQ(f.at("c", "b").data_packets, 0u);
}

// A path may turn back. A packet that leaves by the port it came from does not make the port send two packets
// at once.
TEST(Static, AWayMayLeadBack) {
  for (const char* control : {"pfc", "credits"}) {
    PacketFixture f(
        std::string(kDiamond) +
        "transport: {congestion_control: none}\nnetwork: {switch: {marker: none, buffer: 400 KB, "
        "flow_control: " +
        control +
        ", routing: {kind: static, paths: [{from: host0, to: host1, through: [a, b, a, c, d]}]}}}\n");
    f.send(0, 1, 2'000'000);
    f.loop.run();
    EXPECT_TRUE(f.all_delivered());
    for (PortId port = 0; port < f.cluster.graph.port_count(); ++port)
      EXPECT_LE(transmission_time(f.network->port_counters(port).wire_bytes, 100 * kGbps), f.loop.now());
    EXPECT_EQ(f.at("b", "a").data_packets, 489u);
  }
}

// Where two cables join two switches the way takes the first, or the one that it names.
TEST(Static, AWayMayNameOneCableOfABundle) {
  for (const char* through : {"[a, b]", "[a, 'b#2']"}) {
    PacketFixture f(
        std::string(
            "topology:\n  kind: custom\n  switches: [a, b]\n  links:\n    - {from: host0, to: a}\n    - "
            "{from: host1, to: b}\n    - {from: a, to: b}\n    - {from: a, to: b}\n") +
        "network: {switch: {routing: {kind: static, paths: [{from: host0, to: host1, through: " + through +
        "}]}}}\n");
    f.send(0, 1, 40'960);
    f.loop.run();
    const std::uint64_t second = through == std::string("[a, b]") ? 0 : 10;
    for (PortId port = 0; port < f.cluster.graph.port_count(); ++port) {
      const std::string name = f.cluster.graph.port_name(port);
      const std::uint64_t packets = f.network->port_counters(port).data_packets;
      if (name == "a->b#1") {
        EXPECT_EQ(packets, 10 - second);
      } else if (name == "a->b#2") {
        EXPECT_EQ(packets, second);
      }
    }
  }
}

TEST(Static, WaysThatAreNoneAreRefused) {
  const auto error = [](const std::string& paths) -> std::string {
    try {
      PacketFixture f(std::string(kDiamond) + "network: {switch: {routing: {kind: static, paths: " + paths +
                      "}}}\n");
      f.send(0, 1, 1);
      f.loop.run();
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_NE(error("[{from: host0, to: host1, through: [a, d]}]").find("a has no link to 'd'"),
            std::string::npos);
  EXPECT_NE(error("[{from: host0, to: host1, through: [a, b]}]").find("b has no link to 'host1'"),
            std::string::npos);
  EXPECT_NE(error("[{from: host, to: host1, through: [a]}]").find("no NIC 'host', did you mean"),
            std::string::npos);
  EXPECT_NE(
      error("[{from: host0, to: host0, through: [a]}]").find("paths.0.to: a path from 'host0' to itself"),
      std::string::npos);
  EXPECT_NE(error("[{from: a, to: host1, through: [b, d]}]").find("paths.0.from: 'a' is no NIC"),
            std::string::npos);
  EXPECT_NE(error("[{from: host0, to: d, through: [a, b]}]").find("paths.0.to: 'd' is no NIC"),
            std::string::npos);
  EXPECT_NE(error("[{from: host0, to: host1, through: [a, host0, a, b, d]}]").find("'host0' is no switch"),
            std::string::npos);
  EXPECT_NE(error("[{from: host0, to: host1, through: [a, d]}]").find("routing.paths.0.through.1: "),
            std::string::npos);
  EXPECT_NE(error("[{from: host0, to: host1, through: []}]").find("expected a list of switches"),
            std::string::npos);
  EXPECT_NE(error("[{from: host0, to: host1}]").find("'through' is missing"), std::string::npos);
  EXPECT_NE(error("[{to: host1, through: [a]}]").find("'from' is missing"), std::string::npos);
  EXPECT_NE(error("[{from: host0, through: [a]}]").find("'to' is missing"), std::string::npos);
  EXPECT_NE(error("{from: host0}").find("expected a list of paths"), std::string::npos);
  EXPECT_NE(error("[{from: host0, to: host1, via: [a]}]").find("via"), std::string::npos);
  EXPECT_NE(
      error("[{from: host0, to: host1, through: [a, b, d]}, {from: host0, to: host1, through: [a, c, d]}]")
          .find("a second path from host0 to host1"),
      std::string::npos);
  EXPECT_EQ(error("[{from: host0, to: host1, through: [a, b, d]}]"), "accepted");
}

}  // namespace
}  // namespace netsim::routing_test
