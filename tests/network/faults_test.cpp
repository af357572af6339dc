// Tests links that go down, come back, slow down or lose packets. Covers losses, routes around them, and
// refused descriptions of faults.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/network/faults.h"
#include "tests/support/packet_fixture.h"

namespace netsim::faults_test {
namespace {

using test::PacketFixture;

constexpr const char* kFatTree = "topology: {kind: fat_tree, k: 4, rate: 100 Gbps, delay: 1 us}\n";

struct Kind {
  const char* reliability;
  const char* flow_control;
};
class LinkDown : public ::testing::TestWithParam<Kind> {};

// edge0-agg0 is down from 100 us on, known after 100 us more, up again at 600 us and used again from 700 us
// on.
TEST_P(LinkDown, IsRoutedAroundAndUsedAgain) {
  PacketFixture f(
      std::string(kFatTree) +
      "transport: {congestion_control: none, retransmission_timeout: 500 us, retries: 100, reliability: " +
      GetParam().reliability +
      "}\nnetwork:\n  switch: {marker: none, flow_control: " + GetParam().flow_control +
      "}\n  faults: [{link: edge0-agg0, down: 100 us, up: 600 us}]\n  detection_delay: 100 us\n");
  for (std::uint32_t i = 0; i < 16; ++i) {
    for (std::uint32_t channel = 0; channel < 4; ++channel) f.send(i, (i + 8) % 16, 3'000'000, 0, channel);
  }
  const auto data = [&] { return f.at("edge0", "agg0").data_packets + f.at("agg0", "edge0").data_packets; };
  f.loop.run(95 * kMicrosecond);
  EXPECT_GT(data(), 0u);
  EXPECT_EQ(f.network->counters().lost, 0u);
  f.loop.run(350 * kMicrosecond);  // known at 200 us; packets that were queued by then are lost as well
  const std::uint64_t lost = f.at("edge0", "agg0").lost;
  EXPECT_GT(lost, 0u);
  EXPECT_GT(f.at("agg0", "edge0").lost, 0u);
  EXPECT_EQ(f.at("edge1", "agg0").lost, 0u);
  const std::uint64_t before = data();
  f.loop.run(690 * kMicrosecond);
  EXPECT_EQ(data(), before);
  const std::uint64_t lost_until_up = f.network->counters().lost;
  const std::uint64_t until_up = data();
  f.loop.run();
  EXPECT_GT(data(), until_up) << "the old paths are back";
  EXPECT_EQ(f.network->counters().lost, lost_until_up);
  EXPECT_TRUE(f.all_delivered());
  EXPECT_EQ(f.delivery_order.size(), f.messages.size());
  EXPECT_EQ(f.network->counters().drops, 0u);
  EXPECT_EQ(f.network->counters().pfc_pauses, f.network->counters().pfc_resumes);
}

// A core switch fails with all that waits in it, and comes back: ways lead around it meanwhile, at three
// quarters of the middle's rate.
TEST_P(LinkDown, SoIsASwitchWithAllItsLinks) {
  PacketFixture f(
      std::string(kFatTree) +
      "transport: {congestion_control: none, retransmission_timeout: 500 us, retries: 100, reliability: " +
      GetParam().reliability +
      "}\nnetwork:\n  switch: {marker: none, flow_control: " + GetParam().flow_control +
      "}\n  faults: [{switch: core0, down: 100 us, up: 600 us}]\n  detection_delay: 100 us\n");
  for (std::uint32_t i = 0; i < 16; ++i) {
    for (std::uint32_t channel = 0; channel < 4; ++channel) f.send(i, (i + 8) % 16, 3'000'000, 0, channel);
  }
  const auto data = [&] {
    std::uint64_t packets = 0;
    for (const char* agg : {"agg0", "agg2", "agg4", "agg6"})
      packets += f.at("core0", agg).data_packets + f.at(agg, "core0").data_packets;
    return packets;
  };
  f.loop.run(95 * kMicrosecond);
  EXPECT_GT(data(), 0u);
  f.loop.run(350 * kMicrosecond);
  EXPECT_GT(f.network->counters().lost, 0u);
  EXPECT_EQ(f.at("core1", "agg0").lost, 0u);
  const std::uint64_t before = data();
  f.loop.run(690 * kMicrosecond);
  EXPECT_EQ(data(), before);
  f.loop.run();
  EXPECT_GT(data(), before) << "the old paths are back";
  EXPECT_TRUE(f.all_delivered());
}

INSTANTIATE_TEST_SUITE_P(Kinds, LinkDown,
                         ::testing::Values(Kind{"go_back_n", "pfc"}, Kind{"irn", "pfc"},
                                           Kind{"go_back_n", "credits"}, Kind{"irn", "credits"}));

// One packet on a link at each moment: those that would arrive after the link went down are lost, to the
// picosecond.
TEST(LinkDown, WhatIsOnTheLinkIsLost) {
  const Time arrival = transmission_time(4096 + 98, 100 * kGbps) + kMicrosecond;  // of the first packet
  for (const Time early : {0, 1}) {
    PacketFixture f(
        "topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 1 us}\n"
        "transport: {congestion_control: none, retransmission_timeout: 50 us}\n"
        "network: {faults: [{link: host0->switch0, down: " +
        std::to_string(arrival - early) + " ps, up: 20 us}]}\n");
    f.send(0, 1, 4096);
    f.loop.run();
    EXPECT_EQ(f.at("host0", "switch0").lost, static_cast<std::uint64_t>(early));
    EXPECT_TRUE(f.all_delivered());
  }
}

// Flow control survives: pauses and credits that were lost or held back when the link went down are made
// good.
TEST(LinkDown, FlowControlStartsAgainOnALinkThatComesUp) {
  for (const char* control : {"pfc", "credits"}) {
    for (const char* link :
         {"host0-switch0", "host0->switch0", "switch0->host0", "switch0->host4", "switch0-host4"}) {
      PacketFixture f(
          std::string("topology: {kind: star, hosts: 5, rate: 100 Gbps, delay: 1 us}\n"
                      "transport: {congestion_control: none, retransmission_timeout: 300 us, retries: 100}\n"
                      "network: {switch: {marker: none, buffer: 300 KB, flow_control: ") +
          control + "}, faults: [{link: " + link + ", down: 31 us, up: 150 us}, {link: " + link +
          ", down: 222 us, up: 300 us}]}\n");
      for (std::uint32_t i = 0; i < 4; ++i) f.send(i, 4, 2'000'000);
      f.loop.run();
      EXPECT_TRUE(f.all_delivered()) << control << " " << link;
      EXPECT_FALSE(f.network->deadlocked());
      for (std::uint32_t i = 0; i < 4; ++i) {
        // No sender stays blocked: another message goes at line rate.
        const Time start = f.loop.now();
        f.send(i, 4, 400'000, start);
        f.loop.run();
        const Time late = f.flows.back().end - f.flows.back().start - f.flows.back().ideal;
        const Time credit_frame = transmission_time(8 + 20, 100 * kGbps);  // those of ACKs share the wire
        EXPECT_GE(late, 0);
        EXPECT_LE(late, 3 * credit_frame) << control << " " << link << " " << i;
      }
    }
  }
}

TEST(LinkDown, WithoutAnotherWayTheQueuePairGivesUp) {
  PacketFixture f(
      "topology: {kind: switch_line, switches: 2, rate: 100 Gbps, delay: 1 us}\n"
      "transport: {congestion_control: none, retransmission_timeout: 100 us, retries: 3}\n"
      "network: {faults: [{link: switch0-switch1, down: 50 us}]}\n");
  f.send(0, 1, 10'000'000);
  f.loop.run();
  EXPECT_FALSE(f.all_delivered());
  EXPECT_FALSE(f.network->deadlocked());
  ASSERT_FALSE(f.network->waiting(5).empty());
}

// Packets that are routed one by one avoid the link as well.
TEST(LinkDown, SprayedPacketsGoAround) {
  PacketFixture f(
      std::string(kFatTree) +
      "transport: {congestion_control: none, reliability: {kind: irn, reorder_tolerance: 1000}}\n"
      "network:\n  switch: {marker: none, routing: spray}\n  faults: [{link: agg0-core0, down: 50 us}]\n"
      "  detection_delay: 50 us\n");
  for (std::uint32_t i = 0; i < 4; ++i) f.send(i, 8 + i, 5'000'000);
  f.loop.run(110 * kMicrosecond);
  const std::uint64_t by_then = f.at("agg0", "core0").data_packets;
  EXPECT_GT(f.at("agg0", "core0").lost, 0u);
  f.loop.run();
  EXPECT_EQ(f.at("agg0", "core0").data_packets, by_then);
  EXPECT_TRUE(f.all_delivered());
}

// Half the rate from the beginning is twice the time; from half-time on it is one and a half.
TEST(Degraded, HalfTheRateIsHalfTheThroughput) {
  const auto run = [](const std::string& faults) {
    PacketFixture f(
        "topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 1 us}\ntransport: {congestion_control: "
        "none}\n"
        "network: {switch: {marker: none}, faults: [" +
        faults + "]}\n");
    f.send(0, 1, 4096 * 1000);
    f.loop.run();
    EXPECT_TRUE(f.all_delivered());
    return f.delivered[0];
  };
  const Time packet = transmission_time(4096 + 82, 100 * kGbps);
  const Time full = run("");
  EXPECT_NEAR(static_cast<double>(run("{link: switch0->host1, rate: 50 Gbps, at: 0 s}")),
              static_cast<double>(full + 1000 * packet), static_cast<double>(packet));
  EXPECT_NEAR(static_cast<double>(
                  run("{link: host0-switch0, rate: 50 Gbps, at: " + std::to_string(500 * packet) + " ps}")),
              static_cast<double>(full + 500 * packet), 2 * static_cast<double>(packet));
  EXPECT_NEAR(
      static_cast<double>(
          run("{link: host0-switch0, rate: 50 Gbps, at: 0 s}, {link: host0-switch0, rate: 100 Gbps, at: " +
              std::to_string(500 * packet) + " ps}")),
      static_cast<double>(full + 250 * packet), 2 * static_cast<double>(packet));
}

// A slowed link is not cut through into a faster one, which would run out of the packet.
TEST(Degraded, ASlowedLinkStoresAndForwards) {
  PacketFixture f(
      "topology: {kind: switch_line, switches: 1, rate: 100 Gbps, delay: 1 us}\ntransport: "
      "{congestion_control: none}\n"
      "network: {switch: {marker: none, forwarding: cut_through}, faults: [{link: host0-switch0, rate: 10 "
      "Gbps, at: 0 s}]}\n");
  f.send(0, 1, 4096, kMicrosecond);
  f.loop.run();
  EXPECT_EQ(f.delivered[0] - kMicrosecond, transmission_time(4096 + 98, 10 * kGbps) +
                                               transmission_time(4096 + 98, 100 * kGbps) + 2 * kMicrosecond);
}

// ---- The description

class FaultPlans : public ::testing::Test {
 protected:
  FaultPlans() : f("topology: {kind: star, hosts: 3, rate: 100 Gbps}\n") {}
  FaultSchedule read(const std::string& yaml) {
    root = parse_config(yaml, "faults.yaml");
    return read_faults(root, f.cluster.graph, 5 * kMicrosecond);
  }
  std::string error(const std::string& yaml) {
    try {
      read(yaml);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  }
  PacketFixture f;
  ConfigNode root;
};

TEST_F(FaultPlans, LinksInOneDirectionOrBoth) {
  const FaultSchedule plan =
      read("- {link: host1->switch0, loss: 0.25}\n- {link: switch0-host2, down: 1 ms, up: 2 ms}\n");
  ASSERT_EQ(plan.losses.size(), 1u);
  EXPECT_EQ(plan.losses[0].port, f.port("host1", "switch0"));
  EXPECT_EQ(plan.losses[0].probability, 0.25);
  ASSERT_EQ(plan.changes.size(), 8u) << "both directions, down and up, each detected";
  EXPECT_EQ(plan.changes[0].at, kMillisecond);
  EXPECT_EQ(plan.changes[0].kind, LinkChange::Kind::down);
  EXPECT_EQ(plan.changes[1].at, kMillisecond + 5 * kMicrosecond);
  EXPECT_EQ(plan.changes[1].kind, LinkChange::Kind::detected);
}

// The name of a bundle means both its cables, a cable's own name one; a single cable may be called the first.
TEST(FaultsOfBundles, NameAllCablesOrOne) {
  PacketFixture f("topology: {kind: fat_tree, tiers: 2, k: 4, links: 2, rate: 100 Gbps}\n");
  const auto ports = [&](const std::string& name) {
    const ConfigNode root = parse_config("- {link: '" + name + "', loss: 0.1}\n", "faults.yaml");
    std::vector<std::string> names;
    for (const FaultSchedule::Loss& loss : read_faults(root, f.cluster.graph, 0).losses)
      names.push_back(f.cluster.graph.port_name(loss.port));
    std::sort(names.begin(), names.end());
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(ports("edge0->core0"), (Names{"edge0->core0#1", "edge0->core0#2"}));
  EXPECT_EQ(ports("edge0-core0#2"), (Names{"core0->edge0#2", "edge0->core0#2"}));
  EXPECT_EQ(ports("core0->edge0#1"), (Names{"core0->edge0#1"}));
  EXPECT_EQ(ports("host0->edge0"), (Names{"host0->edge0"}));
  EXPECT_EQ(ports("host0-edge0#1"), (Names{"edge0->host0", "host0->edge0"}));
  EXPECT_THROW(ports("edge0->core0#3"), ConfigError);
  EXPECT_THROW(ports("host0->edge0#2"), ConfigError);
  EXPECT_THROW(ports("edge0->core0#"), ConfigError);
}

// One cable of a bundle goes down before the first packet is there. All traffic goes over the other one, and
// the dead one carries nothing.
TEST(FaultsOfBundles, OneCableLeavesTheOther) {
  PacketFixture f(
      "topology: {kind: fat_tree, tiers: 2, k: 4, links: 2, rate: 100 Gbps, delay: 1 us}\n"
      "transport: {congestion_control: none, reliability: go_back_n, retransmission_timeout: 1 ms}\n"
      "network: {detection_delay: 20 us, faults: [{link: edge0->core0#2, down: 0 s}]}\n");
  for (std::uint32_t channel = 0; channel < 8; ++channel) {
    f.send(0, 2, 1'000'000, 0, channel);
    f.send(1, 3, 1'000'000, 0, channel);
  }
  f.loop.run();
  EXPECT_TRUE(f.all_delivered());
  for (PortId port = 0; port < f.cluster.graph.port_count(); ++port) {
    const std::string name = f.cluster.graph.port_name(port);
    const PortCounters c = f.network->port_counters(port);
    if (name == "edge0->core0#1") {
      EXPECT_GT(c.busy, 0);
    }
    if (name == "edge0->core0#2") {
      EXPECT_GT(c.lost, 0u);
      EXPECT_EQ(c.busy, 0);
    }
    EXPECT_LE(c.busy, c.last_end) << name;
  }
}

TEST_F(FaultPlans, WhatIsWrongIsToldWithItsPlace) {
  const auto expect = [&](const std::string& yaml, const std::string& message) {
    const std::string found = error(yaml);
    EXPECT_NE(found.find(message), std::string::npos) << yaml << "\n" << found;
    EXPECT_NE(found.find("faults.yaml:1:"), std::string::npos) << found;
  };
  expect("link: a-b", "expected a list of faults");
  expect("- {loss: 0.1}", "'link' is missing");
  expect("- {switch: switch7, loss: 0.1}", "no switch of the fabric 'switch7'");
  expect("- {switch: switch0, link: host0-switch0, loss: 0.1}", "exclude each other");
  expect("- {link: host0-switch0}", "no fault is given");
  expect("- {link: host0-switch0, rate: 1 Gbps}", "'rate' and 'at' belong together");
  expect("- {link: host0-switch0, loss: 0, at: 1 us}", "'rate' and 'at' belong together");
  expect("- {link: host0-switch0, up: 1 us}", "'up' without 'down'");
  expect("- {link: host0-switch0, down: 2 us, up: 2 us}", "'up' must be later than 'down'");
  expect("- {link: host0-switch0, loss: 1.5}", "out of range: 0 to 1");
  expect("- {link: host0-switch0, loss: -0.1}", "out of range: 0 to 1");
  expect("- {link: host0-switch0, rate: 1 bps, at: 0 s}", "out of range: 1 Mbps to 100 Tbps");
  expect("- {link: host0-switch0, down: -1 us}", "");
  expect("- {link: host0-swich0, loss: 0.1}", "did you mean");
  expect("- {link: host0-host1, loss: 0.1}", "no link of the fabric 'host0-host1'");
  expect("- {link: host0-switch0, lost: 0.1}", "lost");
}

TEST_F(FaultPlans, LinksWithinHostsHaveNoFaults) {
  EXPECT_THROW(PacketFixture("topology: {kind: star, hosts: 8, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 1\n"
                             "network: {faults: [{link: host0/gpu0-host0/nic0, loss: 0.1}]}\n"),
               ConfigError);
}

}  // namespace
}  // namespace netsim::faults_test
