// Tests losslessness by PFC headroom and by credits. Nothing is dropped, and the buffer set aside is neither
// too small nor much too large.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>

#include "tests/support/packet_fixture.h"

namespace netsim::lossless_test {
namespace {

using test::PacketFixture;

constexpr Bytes kReserve = 4096;
constexpr Bytes kShared = 400'000;

std::string star(std::uint32_t hosts) {
  return "topology: {kind: star, hosts: " + std::to_string(hosts) + ", rate: 100 Gbps, delay: 1 us}\n";
}

// Returns the headroom that a switch sets aside for one link of a star.
Bytes computed_headroom() {
  const PacketFixture f(star(2) +
                        "transport: {congestion_control: none}\nnetwork: {switch: {marker: none}}\n");
  return f.at("host0", "switch0").headroom;
}

struct IncastResult {
  std::uint64_t drops, pauses;
  Bytes most_headroom;  // of any sender's link
  bool all_delivered;
  std::vector<std::string> notes;
};

// Senders 0 .. n-1 to n, all at 0. The buffer holds headroom and reserves and a shared pool of kShared.
IncastResult incast(std::uint32_t n, Bytes bytes, Bytes headroom, Bytes given_headroom) {
  const Bytes buffer = (n + 1) * (headroom + kReserve) + kShared;
  PacketFixture f(star(n + 1) +
                  "transport: {congestion_control: none}\nnetwork: {switch: {marker: none, buffer: " +
                  std::to_string(buffer) + " B, headroom: " + std::to_string(given_headroom) + " B}}\n");
  for (std::uint32_t i = 0; i < n; ++i) f.send(i, n, bytes);
  f.loop.run();
  IncastResult result{f.network->counters().drops, f.network->counters().pfc_pauses, 0, f.all_delivered(),
                      f.network->notes()};
  for (std::uint32_t i = 0; i < n; ++i) {
    const PortCounters c = f.at("host" + std::to_string(i), "switch0");
    EXPECT_EQ(c.headroom, headroom);
    result.most_headroom = std::max(result.most_headroom, c.max_headroom_used);
  }
  return result;
}

TEST(Headroom, TheComputedOneIsTheFormula) {
  // 100 Gb/s is 12.5 B/ns. The headroom covers two delays of 1 us and two full packets (4174 B). In the other
  // direction it covers a full packet (4096 + 62 + 16 + 20 B) and a PFC frame (64 + 20 B).
  EXPECT_EQ(computed_headroom(), 25'000 + 4194 + 84 + 2 * 4174);
}

TEST(Headroom, TheComputedOneIsEnoughForIncastsOf2To128) {
  const Bytes headroom = computed_headroom();
  for (std::uint32_t n = 2; n <= 128; n += n < 20 ? 1 : 12) {
    const IncastResult r = incast(n, 400'000, headroom, 0);
    EXPECT_EQ(r.drops, 0u) << n;
    EXPECT_GT(r.pauses, 0u) << n;
    EXPECT_TRUE(r.all_delivered) << n;
    EXPECT_LE(r.most_headroom, headroom) << n;
    if (n == 16) {
      EXPECT_GE(4 * r.most_headroom, 3 * headroom) << "the headroom is not much more than what is needed";
      RecordProperty("headroom_percent", static_cast<int>(100 * r.most_headroom / headroom));
    }
  }
}

TEST(Headroom, HalfOfItDropsAndGoBackNRepairs) {
  const Bytes half = computed_headroom() / 2;
  const IncastResult r = incast(16, 1'000'000, half, half);
  EXPECT_GT(r.drops, 0u);
  EXPECT_TRUE(r.all_delivered);
  ASSERT_EQ(r.notes.size(), 1u);
  EXPECT_NE(r.notes[0].find("headroom"), std::string::npos) << r.notes[0];
}

TEST(Headroom, WithReservesBeyondTheBufferIsRefused) {
  const Bytes needed = 17 * (computed_headroom() + kReserve);
  const auto build = [&](Bytes buffer) {
    PacketFixture f(star(17) + "network: {switch: {buffer: " + std::to_string(buffer) + " B}}\n");
  };
  EXPECT_THROW(build(needed), ConfigError);
  EXPECT_NO_THROW(build(needed + 1));
}

// With any alpha, a switch never holds more than its buffer. Queues hold all waiting packets.
TEST(SharedBuffer, IsNeverExceeded) {
  for (const char* alpha : {"1/16", "1", "8", "1024"}) {
    for (const char* control : {"pfc", "none"}) {
      PacketFixture f(
          star(9) +
          "transport: {congestion_control: none}\nnetwork: {switch: {marker: none, buffer: 500 KB, alpha: " +
          alpha + ", flow_control: " + control + "}}\n");
      for (std::uint32_t i = 0; i < 8; ++i) f.send(i, 8, 300'000);
      f.loop.run();
      EXPECT_TRUE(f.all_delivered());
      EXPECT_LE(f.at("switch0", "host8").max_queue, 500'000) << alpha << control;
    }
  }
}

// ---- Credits

std::string random_topology() {
  switch (*rc::gen::inRange(0, 3)) {
    case 0:
      return star(6);
    case 1:
      return "topology: {kind: switch_line, switches: 3, rate: 100 Gbps, delay: 1 us}\n";
    default:
      return "topology: {kind: fat_tree, k: 4, rate: 100 Gbps, delay: 600 ns}\n";
  }
}

// The fabric itself checks that no credit buffer overflows.
TEST(Credits, NothingIsDroppedOrStuckAtAnyLoad) {
  EXPECT_TRUE(rc::check([] {
    const int classes = *rc::gen::inRange(1, 5);
    const std::string room = *rc::gen::element<std::string>("0 B", "9 KB", "10 KB", "30 KB");
    PacketFixture f(random_topology() + "transport: {congestion_control: none, framing: " +
                    *rc::gen::element<std::string>("infiniband", "roce_v2") +
                    ", acknowledge: {every: " + std::to_string(1 << *rc::gen::inRange(0, 9)) +
                    "}}\nnetwork: {switch: {marker: none, flow_control: credits, credit_buffer: " + room +
                    ", classes: " + std::to_string(classes) +
                    ", scheduler: " + *rc::gen::element<std::string>("strict", "drr", "vl_arbitration") +
                    ", forwarding: " + *rc::gen::element<std::string>("cut_through", "store_and_forward") +
                    "}}\n");
    const auto gpus = static_cast<std::uint32_t>(f.cluster.gpus.size());
    const int flows = *rc::gen::inRange(1, 60);
    for (int i = 0; i < flows; ++i) {
      const auto from = *rc::gen::inRange<std::uint32_t>(0, gpus);
      const auto to = (from + *rc::gen::inRange<std::uint32_t>(1, gpus)) % gpus;
      f.send_class(from, to, *rc::gen::inRange<Bytes>(1, 300'000),
                   static_cast<std::uint8_t>(*rc::gen::inRange(0, classes)),
                   *rc::gen::inRange<Time>(0, 20 * kMicrosecond));
    }
    f.loop.run();
    const NetworkCounters c = f.network->counters();
    RC_ASSERT(f.all_delivered());
    RC_ASSERT(c.drops == 0u);
    RC_ASSERT(c.retransmissions == 0u);
    RC_ASSERT(c.bytes_sent == c.bytes_delivered);
    RC_ASSERT(!f.network->deadlocked());
    for (PortId port = 0; port < f.cluster.graph.port_count(); ++port)
      RC_ASSERT(f.network->port_counters(port).max_headroom_used <= f.network->port_counters(port).headroom);
  }));
}

// With the computed buffer no sender on the path is ever blocked. The wire carries a few more frames, which
// return the credits of ACKs.
TEST(Credits, TheComputedBufferKeepsALongLinkBusy) {
  for (const char* delay : {"100 ns", "1 us", "20 us"}) {
    for (const char* forwarding : {"store_and_forward", "cut_through"}) {
      PacketFixture f(std::string("topology: {kind: switch_line, switches: 3, rate: 100 Gbps, delay: ") +
                      delay +
                      "}\ntransport: {congestion_control: none, framing: infiniband}\n"
                      "network: {switch: {marker: none, flow_control: credits, forwarding: " +
                      forwarding + "}}\n");
      f.send(0, 1, 4'000'000);
      f.loop.run();
      for (PortId port = 0; port < f.cluster.graph.port_count(); ++port)
        EXPECT_EQ(f.network->port_counters(port).pauses, 0u) << f.cluster.graph.port_name(port);
      EXPECT_GE(f.delivered[0], f.flows[0].ideal + f.flows[0].start);
      EXPECT_LE(f.delivered[0], f.flows[0].ideal + 10 * transmission_time(8 + 20, 100 * kGbps));
    }
  }
}

// Half a round trip's worth of credits is half the rate.
TEST(Credits, ASmallBufferLimitsTheRate) {
  PacketFixture f(
      "topology: {kind: switch_line, switches: 2, rate: 100 Gbps, delay: 10 us}\n"
      "transport: {congestion_control: none, framing: infiniband}\n"
      "network: {switch: {marker: none, flow_control: credits, credit_buffer: 64 KB}}\n");
  f.send(0, 1, 20'000'000);
  f.loop.run();
  const double goodput = 20e6 / to_seconds(f.delivered[0]);
  EXPECT_LT(goodput, 64e3 / 20e-6) << "at most a buffer for each round trip of 20 us";
  EXPECT_GT(goodput, 0.6 * 64e3 / 20e-6) << "a quarter may be owed";
  const PortCounters port = f.at("host0", "switch0");
  EXPECT_GT(port.credit_stalls, 0u) << "counted where the sender runs out of credits";
  EXPECT_GT(port.credit_stalled, 0);
  EXPECT_LE(port.credit_stalled, f.loop.now());
  EXPECT_EQ(port.pauses, 0u) << "those of PFC";
  EXPECT_EQ(port.paused, 0);
  EXPECT_EQ(f.network->counters().pfc_pauses, 0u);
  EXPECT_EQ(f.network->counters().credit_stalls,
            port.credit_stalls + f.at("switch0", "switch1").credit_stalls);
}

TEST(Credits, WhatMakesNoSenseIsRefused) {
  EXPECT_THROW(PacketFixture(star(2) + "network: {switch: {flow_control: credits, credit_buffer: 8000 B}}\n"),
               ConfigError)
      << "less than two packets";
  EXPECT_THROW(PacketFixture(star(2) + "network: {switch: {flow_control: credits, lossless: all}}\n"),
               ConfigError);
  EXPECT_THROW(PacketFixture(star(2) + "network: {switch: {flow_control: credit}}\n"), ConfigError);
}

// A queue limited in packets drops even with credits; the credits of what it drops come back.

}  // namespace
}  // namespace netsim::lossless_test
