// Tests links that go down, in one direction or both, under flow control. Losses are exact to the packet, no
// packet is dropped for lack of buffer, and outages of one link add up.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "sim/network/faults.h"
#include "tests/support/packet_fixture.h"

namespace netsim::outage_test {
namespace {

using test::PacketFixture;

constexpr Time kFull = 80 * (4096 + 82);  // ps of a full packet on 100 Gb/s

std::string at(Time time) { return std::to_string(time) + " ps"; }

// ---- What is lost

// Host 0 sends to host 1 back to back. If one direction of a link is down, packets on both directions are
// lost, because PFC needs both. Packets sent during the outage are lost too.
TEST(Outage, LosesWhatIsOnTheWire) {
  const std::string line =
      "topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 1 us}\n"
      "transport: {congestion_control: none, retransmission_timeout: 200 us}\nnetwork: {switch: {marker: "
      "none}";
  // Data packet i starts at i full ones and 16 B more; its ACK starts back at the switch three hops later.
  const auto data_start = [](Time i) { return i == 0 ? 0 : i * kFull + 16 * 80; };
  const Time ack = 80 * 86, delay = kMicrosecond;
  const auto ack_start = [&](Time i) {
    return data_start(i) + kFull + (i == 0 ? 16 * 80 : 0) + delay + kFull + (i == 0 ? 16 * 80 : 0) + delay +
           ack + delay;
  };
  for (const Time begin : {20 * kMicrosecond, 20'123'457L, 33'333'333L}) {
    for (const Time length : {100 * kNanosecond, 700 * kNanosecond}) {
      const Time end = begin + length;
      std::uint64_t data = 0, acks = 0;
      for (Time i = 0; i < 1000; ++i) {
        if (data_start(i) < end && data_start(i) + kFull + delay > begin) ++data;
        if (ack_start(i) < end && ack_start(i) + ack + delay > begin) ++acks;
      }
      for (const char* link : {"host0->switch0", "switch0->host0", "host0-switch0"}) {
        PacketFixture f(line + ", faults: [{link: " + link + ", down: " + at(begin) + ", up: " + at(end) +
                        "}]}\n");
        f.send(0, 1, 4096 * 1000);
        f.loop.run(end + delay);
        EXPECT_EQ(f.at("host0", "switch0").lost, data) << link << " " << begin;
        EXPECT_EQ(f.at("switch0", "host0").lost, acks) << link << " " << begin;
        f.loop.run();
        EXPECT_EQ(f.network->counters().lost, data + acks);
        EXPECT_EQ(f.network->counters().drops, 0u);
        EXPECT_TRUE(f.all_delivered());
      }
    }
  }
}

// Without flow control the other direction continues.
TEST(Outage, WithoutFlowControlEachDirectionIsByItself) {
  PacketFixture f(
      "topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 1 us}\n"
      "transport: {congestion_control: none, retransmission_timeout: 200 us}\nnetwork: {switch: {marker: "
      "none, flow_control: none}, faults: [{link: host0->switch0, down: 20 us, up: 21 us}]}\n");
  f.send(0, 1, 4096 * 1000);
  f.loop.run();
  EXPECT_GT(f.at("host0", "switch0").lost, 0u);
  EXPECT_EQ(f.at("switch0", "host0").lost, 0u);
}

// ---- PFC

std::string incast(const std::string& faults, const std::string& more = "") {
  return "topology: {kind: star, hosts: 9, rate: 100 Gbps, delay: 1 us}\n"
         "transport: {congestion_control: none, retransmission_timeout: 1 ms, retries: 100}\n"
         "network: {switch: {marker: none, buffer: 700 KB}" +
         more + ", faults: [" + faults + "]}\n";
}

struct IncastEnd {
  Time end = 0;
  NetworkCounters counters;
};
IncastEnd play(const std::string& yaml, Bytes bytes) {
  PacketFixture f(yaml);
  for (std::uint32_t i = 0; i < 8; ++i) f.send(i, 8, bytes);
  f.loop.run();
  EXPECT_TRUE(f.all_delivered()) << yaml;
  EXPECT_FALSE(f.network->deadlocked());
  const NetworkCounters n = f.network->counters();
  EXPECT_EQ(n.pfc_pauses, n.pfc_resumes) << yaml;
  std::uint64_t pauses = 0;
  for (PortId port = 0; port < f.cluster.graph.port_count(); ++port) {
    const PortCounters c = f.network->port_counters(port);
    EXPECT_EQ(f.network->queued(port), 0);
    EXPECT_LE(c.max_headroom_used, c.headroom);
    pauses += c.pauses;
  }
  EXPECT_EQ(n.pfc_pauses, pauses) << "one definition of pauses";
  return {*std::max_element(f.delivered.begin(), f.delivered.end()), n};
}

// 100 ns in the middle of an incast: nothing is dropped, and it takes hardly longer.
TEST(OutageUnderPfc, OfAMomentCostsAMoment) {
  const Bytes bytes = 4'000'000;
  const IncastEnd whole = play(incast(""), bytes);
  EXPECT_GT(whole.counters.pfc_pauses, 0u);
  for (const char* link : {"host0->switch0", "switch0->host0", "host0-switch0", "switch0->host8",
                           "host8->switch0", "switch0-host8"}) {
    const IncastEnd cut =
        play(incast(std::string("{link: ") + link + ", down: 1 ms, up: 1000100 ns}"), bytes);
    EXPECT_EQ(cut.counters.drops, 0u) << link;
    // On the wire: a delay's worth and what is sent meanwhile, each way.
    EXPECT_LE(cut.counters.lost, 2u * (1'000'000 + 100'000) / kFull + 40u) << link;
    EXPECT_LT(cut.end, whole.end + 50 * kMicrosecond) << link;
  }
}

// Host 0 is held back and nothing is on its link: an outage of it costs nothing at all.
TEST(OutageUnderPfc, WhatIsHeldBackIsNotLost) {
  Time held = 0;
  {
    PacketFixture f(incast(""));
    for (std::uint32_t i = 0; i < 8; ++i) f.send(i, 8, 4'000'000);
    // Long after the last packet left, and not about to continue.
    Time since = 0;
    std::uint64_t packets = 0;
    for (Time now = kMicrosecond; held == 0; now += 100 * kNanosecond) {
      ASSERT_LT(now, 2 * kMillisecond);
      f.loop.run(now);
      const std::uint64_t sent = f.at("host0", "switch0").data_packets;
      if (sent != packets) since = now;
      packets = sent;
      if (now - since > 3 * kMicrosecond && packets < 900) held = now;
    }
  }
  for (const char* link : {"host0->switch0", "host0-switch0"}) {
    PacketFixture f(incast(std::string("{link: ") + link + ", down: " + at(held) +
                           ", up: " + at(held + 100 * kNanosecond) + "}"));
    for (std::uint32_t i = 0; i < 8; ++i) f.send(i, 8, 4'000'000);
    f.loop.run();
    EXPECT_EQ(f.at("host0", "switch0").lost, 0u) << link;
    EXPECT_EQ(f.network->counters().drops, 0u) << link;
    EXPECT_TRUE(f.all_delivered());
  }
}

// The outage may come at any time: while a pause or a resume is in flight, or again before the ends know of
// the first. It may also last until routes have changed.
TEST(OutageUnderPfc, NeverDropsAnything) {
  const std::vector<std::string> links{"host0->switch0", "switch0->host0", "host0-switch0", "switch0->host8",
                                       "host8->switch0"};
  for (Time begin = 18 * kMicrosecond; begin < 60 * kMicrosecond; begin += 1'777'777) {
    for (const std::string& link : links) {
      const std::string one = "{link: " + link + ", down: ";
      for (const Time length : {100 * kNanosecond, 1'500 * kNanosecond, 30 * kMicrosecond}) {
        const Time end = begin + length;
        const IncastEnd cut =
            play(incast(one + at(begin) + ", up: " + at(end) + "}, " + one + at(end + 900 * kNanosecond) +
                            ", up: " + at(end + 1'000 * kNanosecond) + "}",
                        length > 2 * kMicrosecond ? ", detection_delay: 10 us" : ""),
                 400'000);
        ASSERT_EQ(cut.counters.drops, 0u) << link << " " << begin << " " << length;
      }
    }
  }
}

// Between switches, both of which pause: four senders on either side of a link, all to one host.
TEST(OutageUnderPfc, BetweenSwitches) {
  std::string topology = "topology:\n  kind: custom\n  switches: [a, b]\n  links: [{from: a, to: b}";
  for (int host = 0; host < 9; ++host)
    topology += ", {from: host" + std::to_string(host) + ", to: " + (host < 4 ? "a" : "b") + "}";
  topology +=
      "]\ntransport: {congestion_control: none, retransmission_timeout: 1 ms, retries: 100}\n"
      "network:\n  switch: {marker: none, buffer: 700 KB}\n  detection_delay: 5 us\n";
  for (const char* link : {"a->b", "b->a", "a-b"}) {
    for (const Time begin : {20 * kMicrosecond, 31 * kMicrosecond, 47 * kMicrosecond}) {
      for (const Time length : {100 * kNanosecond, 40 * kMicrosecond}) {
        const IncastEnd cut = play(topology + "  faults: [{link: " + link + ", down: " + at(begin) +
                                       ", up: " + at(begin + length) + "}]\n",
                                   400'000);
        EXPECT_EQ(cut.counters.drops, 0u) << link << " " << begin << " " << length;
        EXPECT_GT(cut.counters.pfc_pauses, 0u);
      }
    }
  }
}

// ---- One direction for ever

class OneDirection : public ::testing::TestWithParam<const char*> {};

// Routes leave the link in both directions, and no packet waits for it for ever.
TEST_P(OneDirection, DownForEverIsRoutedAround) {
  for (const char* link : {"agg0->core0", "core0->agg0", "edge0->agg0"}) {
    PacketFixture f(std::string("topology: {kind: fat_tree, k: 4, rate: 100 Gbps, delay: 1 us}\n"
                                "transport: {congestion_control: none, retransmission_timeout: 500 us, "
                                "retries: 100}\nnetwork:\n  switch: {marker: none, flow_control: ") +
                    GetParam() + "}\n  detection_delay: 20 us\n  faults: [{link: " + link +
                    ", down: 50 us}]\n");
    for (std::uint32_t i = 0; i < 16; ++i) {
      for (std::uint32_t channel = 0; channel < 4; ++channel) f.send(i, (i + 8) % 16, 1'000'000, 0, channel);
    }
    const std::string name = link;
    const std::string from = name.substr(0, name.find('-')), to = name.substr(name.find('>') + 1);
    f.loop.run(45 * kMicrosecond);
    const std::uint64_t there = f.at(from, to).data_packets, back = f.at(to, from).data_packets;
    EXPECT_GT(there, 0u);
    EXPECT_GT(back, 0u);
    f.loop.run(200 * kMicrosecond);  // known at 70 us; packets that waited for the link then are lost as well
    const std::uint64_t by_then = f.at(from, to).data_packets + f.at(to, from).data_packets;
    f.loop.run();
    EXPECT_EQ(f.at(from, to).data_packets + f.at(to, from).data_packets, by_then) << link;
    EXPECT_TRUE(f.all_delivered()) << link;
    EXPECT_FALSE(f.network->deadlocked());
    EXPECT_EQ(f.network->counters().drops, 0u);
    EXPECT_TRUE(f.network->waiting(100).empty());
    EXPECT_EQ(f.network->counters().pfc_pauses, f.network->counters().pfc_resumes);
  }
}

INSTANTIATE_TEST_SUITE_P(FlowControl, OneDirection, ::testing::Values("credits", "pfc"));

// ---- Outages of one link add up

// The plan's changes of one port as a step function, next to the outages looked at picosecond by picosecond.
TEST(Outages, OfOneLinkEndWithTheLast) {
  EXPECT_TRUE(rc::check([] {
    const PacketFixture f("topology: {kind: star, hosts: 2, rate: 100 Gbps}\n");
    constexpr Time kTimes = 40;
    std::array<bool, kTimes> down{};
    std::string faults = "[";
    const int outages = *rc::gen::inRange(1, 7);
    for (int i = 0; i < outages; ++i) {
      const Time begin = *rc::gen::inRange<Time>(0, kTimes - 1);
      const Time end = *rc::gen::inRange<Time>(begin + 1, kTimes + 5);
      const bool back = end < kTimes;
      faults += std::string(i == 0 ? "" : ", ") + "{link: host0->switch0, down: " + at(begin) +
                (back ? ", up: " + at(end) : "") + "}";
      for (Time t = begin; t < (back ? end : kTimes); ++t) down[static_cast<std::size_t>(t)] = true;
    }
    const ConfigNode root = parse_config(faults + "]", "faults.yaml");
    const FaultSchedule plan = read_faults(root, f.cluster.graph, 7);
    for (Time t = 0; t < kTimes; ++t) {
      bool now = false;
      Time latest = -1;
      for (const LinkChange& change : plan.changes) {
        RC_ASSERT(change.port == f.port("host0", "switch0"));
        if (change.kind == LinkChange::Kind::detected || change.at > t || change.at <= latest) continue;
        latest = change.at;
        now = change.kind == LinkChange::Kind::down;
      }
      RC_ASSERT(now == down[static_cast<std::size_t>(t)]);
    }
  }));
}

TEST(Outages, ALinkStaysDownUntilTheLastEnds) {
  PacketFixture f(
      "topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 1 us}\n"
      "transport: {congestion_control: none, retransmission_timeout: 10 us, retries: 100}\n"
      "network: {faults: [{link: host0-switch0, down: 10 us, up: 50 us}, {link: host0->switch0, down: 30 us, "
      "up: 80 us}]}\n");
  f.send(0, 1, 4096 * 1000);
  f.loop.run(11 * kMicrosecond);
  const std::uint64_t before = f.at("switch0", "host1").data_packets;
  f.loop.run(80 * kMicrosecond);
  EXPECT_LE(f.at("switch0", "host1").data_packets, before + 1);
  f.loop.run();
  EXPECT_TRUE(f.all_delivered());
}

// ---- Prescribed ways

std::string prescribed(const std::string& more) {
  return "topology: {kind: fat_tree, k: 4, rate: 100 Gbps, delay: 1 us}\n"
         "transport: {congestion_control: none, retransmission_timeout: 50 us, retries: 5}\n"
         "network:\n  switch:\n    marker: none\n    routing:\n      kind: static\n      paths: [{from: "
         "host0, "
         "to: host8, through: [edge0, agg0, core0, agg4, edge4]}]\n" +
         more + "  detection_delay: 10 us\n  faults: [{link: agg0-core0, down: 20 us}]\n";
}

TEST(StaticPaths, OverADeadLinkStayAndTheReportSaysSo) {
  PacketFixture f(prescribed(""));
  f.send(0, 8, 1'000'000);
  f.loop.run();
  EXPECT_FALSE(f.all_delivered());
  ASSERT_EQ(f.network->waiting(5).size(), 1u);
  const std::string line = f.network->waiting(5)[0];
  EXPECT_NE(line.find("its path uses agg0->core0, which is down"), std::string::npos) << line;
  EXPECT_NE(line.find("reroute: true"), std::string::npos) << line;
}

TEST(StaticPaths, AreLeftWhereThatIsAskedFor) {
  PacketFixture f(prescribed("      reroute: true\n"));
  f.send(0, 8, 1'000'000);
  f.loop.run();
  EXPECT_TRUE(f.all_delivered());
}

// A queue pair that has no other way names the link too.
TEST(StaticPaths, SoDoesOneWithoutAnotherWay) {
  PacketFixture f(
      "topology: {kind: switch_line, switches: 2, rate: 100 Gbps, delay: 1 us}\n"
      "transport: {congestion_control: none, retransmission_timeout: 100 us, retries: 3}\n"
      "network: {faults: [{link: switch0->switch1, down: 50 us}]}\n");
  f.send(0, 1, 10'000'000);
  f.loop.run();
  ASSERT_FALSE(f.network->waiting(5).empty());
  const std::string line = f.network->waiting(5)[0];
  EXPECT_NE(line.find("its path uses switch0->switch1, which is down"), std::string::npos) << line;
  EXPECT_EQ(line.find("static"), std::string::npos) << line;
}

// ---- Without a route

// All paths out of edge0 are down. Packets sprayed towards it find no route, which is no lack of buffer.
TEST(PartedNetwork, PacketsWithoutAWayAreCountedAsSuch) {
  for (const char* routing : {"spray", "adaptive"}) {
    PacketFixture f(
        std::string(
            "topology: {kind: fat_tree, k: 4, rate: 100 Gbps, delay: 1 us}\n"
            "transport: {congestion_control: none, reliability: {kind: irn, reorder_tolerance: 1000}, "
            "retransmission_timeout: 200 us, retries: 100}\nnetwork:\n  switch: {marker: none, routing: ") +
        routing +
        "}\n  detection_delay: 20 us\n  faults: [{link: edge0-agg0, down: 30 us, up: 3 ms}, {link: "
        "edge0-agg1, down: 30 us, up: 3 ms}]\n");
    for (std::uint32_t i = 0; i < 2; ++i) f.send(8 + i, i, 2'000'000);
    f.loop.run(40 * kMicrosecond);
    EXPECT_EQ(f.network->counters().no_route, 0u) << "not known yet";
    f.loop.run();
    EXPECT_GT(f.network->counters().no_route, 0u);
    EXPECT_EQ(f.network->counters().drops, 0u);
    EXPECT_TRUE(f.all_delivered());
    std::uint64_t sum = 0;
    for (PortId port = 0; port < f.cluster.graph.port_count(); ++port)
      sum += f.network->port_counters(port).no_route;
    EXPECT_EQ(sum, f.network->counters().no_route);
  }
}

}  // namespace
}  // namespace netsim::outage_test
