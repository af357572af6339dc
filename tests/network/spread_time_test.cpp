// Is the ideal time of a message a lower bound of its time, whatever ways its packets take, and exact where
// there is one way?
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

#include "tests/support/packet_fixture.h"

namespace netsim::spread_time_test {
namespace {

using test::PacketFixture;

const std::string kAnyOrder =
    "transport: {congestion_control: none, reliability: {kind: irn, reorder_tolerance: 1000}}\n";

std::string network(const std::string& routing, const std::string& more = "") {
  return "network: {switch: {marker: none, routing: " + routing + "}" + more + "}\n";
}

double slowdown(const FlowRecord& flow) {
  return static_cast<double>(flow.end - flow.start) / static_cast<double>(flow.ideal);
}

// From (0, 0) to (1, 1) two ways of 400 Gb/s lead, so 1 MB takes half of what one way takes.
TEST(SpreadTime, CountsBothWaysRoundASquare) {
  for (const char* routing : {"adaptive", "spray"}) {
    PacketFixture f("topology: {kind: torus, sizes: [4, 4], rate: 400 Gbps, delay: 500 ns}\nhost: tpu_v4\n" +
                    network(routing) + kAnyOrder);
    f.send(0, 5, 1'000'000);
    f.loop.run();
    ASSERT_EQ(f.flows.size(), 1u);
    EXPECT_GE(slowdown(f.flows[0]), 1) << routing;
    EXPECT_LT(slowdown(f.flows[0]), routing == std::string("adaptive") ? 1.1 : 2.1) << routing;
    const Time both = transmission_time(1'000'000, 800 * kGbps);
    EXPECT_GT(f.flows[0].ideal, both);
    EXPECT_LT(f.flows[0].ideal, both + 3 * kMicrosecond);
  }
}

// Along one dimension there is one shortest way; so there is in a fat tree within a switch.
TEST(SpreadTime, IsExactWhereRoutesLeaveOneWay) {
  for (const char* routing : {"adaptive", "spray"}) {
    for (const Bytes bytes : {1, 4096, 100'000}) {
      PacketFixture torus("topology: {kind: torus, sizes: [5, 5], rate: 400 Gbps, delay: 500 ns}\n" +
                          network(routing) + kAnyOrder);
      torus.send(0, 2, bytes);
      torus.loop.run();
      EXPECT_EQ(torus.flows.at(0).end - torus.flows[0].start, torus.flows[0].ideal) << routing << bytes;
      PacketFixture tree("topology: {kind: fat_tree, k: 4, rate: 100 Gbps}\n" + network(routing) + kAnyOrder);
      tree.send(0, 1, bytes);
      tree.loop.run();
      EXPECT_EQ(tree.flows.at(0).end - tree.flows[0].start, tree.flows[0].ideal) << routing << bytes;
    }
  }
}

// Where all ways are alike and the NIC is the slowest link, the bound is what one way takes. A message of one
// packet takes it; packets of a longer one may meet where chance sends them the same way.
TEST(SpreadTime, IsWhatOneWayTakesInAFatTree) {
  for (const Bytes bytes : {1, 4096, 40'960, 999'999}) {
    PacketFixture f("topology: {kind: fat_tree, k: 4, rate: 100 Gbps}\n" + network("spray") + kAnyOrder);
    f.send(0, 13, bytes);
    f.loop.run();
    EXPECT_GE(slowdown(f.flows.at(0)), 1) << bytes;
    EXPECT_LT(slowdown(f.flows[0]), bytes <= 4096 ? 1.0001 : 1.03) << bytes;
  }
}

// Two links of 10 Gb/s and 30 Gb/s between two switches carry 40 Gb/s together.
TEST(SpreadTime, AddsUpABundleOfUnlikeRates) {
  const std::string bundle =
      "topology:\n  kind: custom\n  switches: [a, b]\n  links:\n"
      "    - {from: host0, to: a, rate: 400 Gbps}\n    - {from: host1, to: b, rate: 400 Gbps}\n"
      "    - {from: a, to: b, rate: 10 Gbps}\n    - {from: a, to: b, rate: 30 Gbps}\n";
  PacketFixture f(bundle + network("adaptive") + kAnyOrder);
  f.send(0, 1, 10'000'000);
  f.loop.run();
  const Time together = 10'000'000 * 8 * (kSecond / (40 * kGbps));
  EXPECT_GT(f.flows.at(0).ideal, together);
  EXPECT_LT(f.flows[0].ideal, together + together / 20);
  EXPECT_GE(slowdown(f.flows[0]), 1);
  EXPECT_LT(slowdown(f.flows[0]), 1.06)
      << "the queues are equally long at the end, so the slow link ends last";
}

// The new routes lead over the same links in another virtual channel. The last packet, which is small,
// overtakes the others at the first router, whose queue is long because its links are slower than the NIC's.
TEST(SpreadTime, AllowsForAnotherVirtualChannelAfterAChangeOfRoutes) {
  for (const std::string fault :
       {"", ", detection_delay: 1 us, faults: [{link: router2_0->router2_3, down: 1 us}]"}) {
    PacketFixture f("topology: {kind: torus, sizes: [4, 4], rate: 100 Gbps}\n" +
                    network("{kind: valiant, per: flow}", fault) + kAnyOrder);
    f.send(4, 8, 40'961, 1'164'080);
    f.loop.run();
    EXPECT_EQ(f.flows.at(0).end - f.flows[0].start, fault.empty() ? 4'427'240 : 4'350'320);
    EXPECT_LE(f.flows[0].ideal, f.flows[0].end - f.flows[0].start);
    EXPECT_LT(slowdown(f.flows[0]), 1.1);
  }
}

// ---- Whatever the topology, routing, load and faults

struct Case {
  std::string topology, routing;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.topology << ' ' << c.routing; }

rc::Gen<Case> cases() {
  return rc::gen::element<Case>(
      Case{"{kind: torus, sizes: [4, 4], rate: 100 Gbps}", "adaptive"},
      Case{"{kind: torus, sizes: [3, 4, 2], rate: 100 Gbps}", "spray"},
      Case{"{kind: torus, sizes: [5, 3], rate: 100 Gbps}", "valiant"},
      Case{"{kind: torus, sizes: [4, 4], rate: 100 Gbps}", "ugal"},
      Case{"{kind: torus, sizes: [4, 4], rate: 100 Gbps}", "{kind: valiant, per: flow}"},
      Case{"{kind: hyperx, sizes: [3, 3], rate: 100 Gbps}", "ugal"},
      Case{"{kind: hyperx, sizes: [3, 3], rate: 100 Gbps}", "adaptive"},
      Case{"{kind: dragonfly, rate: 100 Gbps}", "valiant"}, Case{"{kind: dragonfly, rate: 100 Gbps}", "ugal"},
      Case{"{kind: dragonfly, rate: 100 Gbps}", "adaptive"},
      Case{"{kind: fat_tree, k: 4, rate: 100 Gbps, uplink_rate: 40 Gbps}", "spray"},
      Case{"{kind: fat_tree, tiers: 2, k: 4, links: 2, rate: 100 Gbps, uplink_rate: 25 Gbps}", "adaptive"},
      Case{"{kind: fat_tree, k: 4, rate: 100 Gbps}", "ecmp"},
      Case{"{kind: jellyfish, switches: 6, hosts_per_switch: 2, degree: 3, rate: 100 Gbps}", "adaptive"},
      Case{"{kind: jellyfish, switches: 6, hosts_per_switch: 2, degree: 3, rate: 100 Gbps}", "spray"},
      Case{"{kind: jellyfish, switches: 6, hosts_per_switch: 2, degree: 3, rate: 100 Gbps}", "ecmp"});
}

// A switch-to-switch link of the cluster, by chance.
std::string some_link(const std::string& topology) {
  const Cluster cluster = build_cluster(parse_config("topology: " + topology + "\n", "test.yaml"));
  std::vector<std::string> names;
  for (PortId port = 0; port < cluster.graph.port_count(); ++port) {
    const PortSpec& spec = cluster.graph.port(port);
    if (cluster.graph.node(spec.node).kind == NodeKind::fabric_switch &&
        cluster.graph.node(spec.peer_node).kind == NodeKind::fabric_switch)
      names.push_back(cluster.graph.port_name(port));
  }
  return *rc::gen::elementOf(names);
}

TEST(SpreadTime, NoMessageIsFasterThanIdeal) {
  EXPECT_TRUE(rc::check([] {
    const Case c = *cases();
    std::string faults;
    const int kind = *rc::gen::inRange(0, 4);
    const auto us = [](int low, int high) { return std::to_string(*rc::gen::inRange(low, high)) + " us"; };
    if (kind == 1)
      faults = ", detection_delay: 1 us, faults: [{link: " + some_link(c.topology) + ", down: " + us(1, 10) +
               ", up: " + us(11, 40) + "}]";
    if (kind == 2)
      faults = ", faults: [{link: " + some_link(c.topology) + ", rate: 200 Gbps, at: " + us(0, 20) + "}]";
    if (kind == 3)
      faults = ", faults: [{link: " + some_link(c.topology) + ", rate: 10 Gbps, at: " + us(0, 20) + "}]";
    const bool cut = *rc::gen::arbitrary<bool>();
    PacketFixture f("topology: " + c.topology + "\nnetwork: {switch: {marker: none, routing: " + c.routing +
                    (cut ? ", forwarding: cut_through" : "") + "}" + faults + "}\n" + kAnyOrder);
    const auto gpus = static_cast<std::uint32_t>(f.cluster.gpus.size());
    for (int i = *rc::gen::inRange(1, 20); i > 0; --i) {
      const auto from = *rc::gen::inRange<std::uint32_t>(0, gpus);
      f.send(from, (from + *rc::gen::inRange<std::uint32_t>(1, gpus)) % gpus,
             *rc::gen::inRange<Bytes>(1, 200'000), *rc::gen::inRange<Time>(0, 20 * kMicrosecond));
    }
    f.loop.run(kSecond);
    for (const FlowRecord& flow : f.flows) {
      RC_ASSERT(flow.ideal > 0);
      RC_ASSERT(flow.end - flow.start >= flow.ideal);
    }
  }));
}

}  // namespace
}  // namespace netsim::spread_time_test
