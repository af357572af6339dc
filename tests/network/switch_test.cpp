// A switch, to the picosecond: cut-through, latency, marking, limited queues. Closed forms and scenarios
// worked out by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/support/packet_fixture.h"

namespace netsim::switch_test {
namespace {

using test::PacketFixture;

constexpr BitRate kRate = 100 * kGbps;
constexpr Bytes kFirst = 4096 + 62 + 16, kFull = 4096 + 62, kGap = 20;

Time wire(Bytes bytes) { return transmission_time(bytes + kGap, kRate); }

std::string line(int switches, const std::string& of_switch, const std::string& rate = "100 Gbps",
                 const std::string& of_transport = "") {
  return "topology: {kind: switch_line, switches: " + std::to_string(switches) + ", rate: " + rate +
         ", delay: 1 us}\ntransport: {congestion_control: none" + of_transport +
         "}\nnetwork: {switch: {marker: none" + of_switch + "}}\n";
}

Time one_flow(const std::string& yaml, Bytes bytes) {
  PacketFixture f(yaml);
  f.send(0, 1, bytes);
  f.loop.run();
  EXPECT_EQ(f.delivered[0], f.flows[0].ideal);
  return f.delivered[0];
}

class Switches : public ::testing::TestWithParam<int> {};

// Each switch passes a packet on after its first 64 B and `latency`; only the last link's transmission counts
// whole.
TEST_P(Switches, CutThrough) {
  const int n = GetParam();
  const Time hop = transmission_time(64, kRate) + kMicrosecond + 700 * kNanosecond;
  const std::string yaml = line(n, ", forwarding: cut_through, latency: 700 ns");
  EXPECT_EQ(one_flow(yaml, 1), n * hop + wire(1 + 78) + kMicrosecond);
  EXPECT_EQ(one_flow(yaml, 4096), n * hop + wire(kFirst) + kMicrosecond);
  EXPECT_EQ(one_flow(yaml, 10 * 4096), n * hop + wire(kFirst) + 9 * wire(kFull) + kMicrosecond);
}

// A longer header, at a rate that does not divide; of a packet that has fewer bytes, all must be there:
// InfiniBand's ACK has 30.
TEST_P(Switches, CutThroughAfterAHeader) {
  const int n = GetParam();
  const BitRate rate = 37 * kGbps;
  for (const Bytes header : {1, 30, 31, 64, 65, 200, 4138, 4139, 65536}) {
    PacketFixture f(line(n, ", forwarding: cut_through, header: " + std::to_string(header) + " B", "37 Gbps",
                         ", framing: infiniband"));
    f.send(0, 1, 4096);
    f.loop.run();
    const auto way = [&](Bytes bytes) {
      return n * (transmission_time(std::min(header, bytes), rate) + kMicrosecond) +
             transmission_time(bytes + kGap, rate) + kMicrosecond;
    };
    const Bytes gap = f.cluster.graph.port(f.port("host0", "switch0")).link.overhead;
    ASSERT_EQ(gap, kGap);
    EXPECT_EQ(f.delivered[0], way(4096 + 26 + 16)) << header;
    EXPECT_EQ(f.delivered[0], f.flows[0].ideal) << header;
    EXPECT_EQ(f.sent[0] - f.delivered[0], way(30)) << header;
  }
}

TEST_P(Switches, StoreAndForwardWithLatency) {
  const int n = GetParam();
  const std::string yaml = line(n, ", latency: 350 ns");
  EXPECT_EQ(one_flow(yaml, 4096), (n + 1) * (wire(kFirst) + kMicrosecond) + n * 350 * kNanosecond);
  EXPECT_EQ(one_flow(yaml, 10 * 4096),
            (n + 1) * (wire(kFirst) + kMicrosecond) + 9 * wire(kFull) + n * 350 * kNanosecond);
}

INSTANTIATE_TEST_SUITE_P(Lines, Switches, ::testing::Values(1, 2, 5));

// A packet is cut through only if no link of the switch is faster than the one it came from. A faster one
// would run out of its bytes.
TEST(CutThrough, NotFromSlowLinksToFastOnes) {
  const auto two_rates = [](const std::string& first, const std::string& second) {
    return "topology:\n  kind: custom\n  switches: [a]\n  links: [{from: host0, to: a, rate: " + first +
           "}, {from: host1, to: a, rate: " + second +
           "}]\ntransport: {congestion_control: none}\nnetwork: {switch: {marker: none, forwarding: "
           "cut_through}}\n";
  };
  const auto time = [](Bytes bytes, BitRate rate) { return transmission_time(bytes + kGap, rate); };
  EXPECT_EQ(one_flow(two_rates("25 Gbps", "100 Gbps"), 4096),
            time(kFirst, 25 * kGbps) + time(kFirst, 100 * kGbps) + 2 * kMicrosecond);
  EXPECT_EQ(one_flow(two_rates("100 Gbps", "25 Gbps"), 4096),
            transmission_time(64, 100 * kGbps) + time(kFirst, 25 * kGbps) + 2 * kMicrosecond);
}

// ---- Marking: eight senders, two packets each, all at once, through one port. The first packet goes at
// once; seven firsts queue up behind it, then, a little before the first has been sent, eight seconds.

struct Marks {
  std::uint64_t arrived;  // marks when all packets have arrived and none that waited has left
  std::uint64_t total;
};
Marks marks(const std::string& marker) {
  PacketFixture f(
      "topology: {kind: star, hosts: 9, rate: 100 Gbps, delay: 1 us}\n"
      "transport: {congestion_control: none}\nnetwork: {switch: {marker: " +
      marker + "}}\n");
  for (std::uint32_t i = 0; i < 8; ++i) f.send(i, 8, 2 * 4096);
  f.loop.run(wire(kFirst) + kMicrosecond + wire(kFull));
  const std::uint64_t arrived = f.network->counters().ecn_marks;
  f.loop.run();
  return {arrived, f.network->counters().ecn_marks};
}

TEST(Step, AtEnqueueOnWhatWaitsBefore) {
  // Firsts find 0 to 6 x 4174 B: four more than 10 KB. Seconds find more.
  const Marks m = marks("{kind: step, threshold: 10 KB, at: enqueue}");
  EXPECT_EQ(m.arrived, 4u + 8u);
  EXPECT_EQ(m.total, 12u);
}

TEST(Step, AtDequeueOnWhatRemains) {
  // All of 15 packets that waited leave more than 10 KB behind except the last three (2 x 4158 B or less).
  const Marks m = marks("{kind: step, threshold: 10 KB, at: dequeue}");
  EXPECT_EQ(m.arrived, 0u);
  EXPECT_EQ(m.total, 12u);
}

TEST(Step, TheThresholdItselfIsNotAbove) {
  EXPECT_EQ(marks("{kind: step, threshold: 8348 B, at: enqueue}").total, 4u + 8u);
  EXPECT_EQ(marks("{kind: step, threshold: 8347 B, at: enqueue}").total, 5u + 8u);
}

TEST(Step, TheThresholdGoesWithTheLinksSpeed) {
  EXPECT_EQ(marks("{kind: step, threshold: 5 KB, reference_rate: 50 Gbps}").total, 12u);
  EXPECT_EQ(marks("{kind: step, threshold: 10 KB}").total, 12u) << "at 100 Gbps, at enqueue";
}

TEST(Red, AtEnqueueMarksAllAboveKmaxAndNoneUpToKmin) {
  EXPECT_EQ(marks("{kind: red, kmin: 10 KB, kmax: 10 KB, at: enqueue}").arrived, 12u);
  EXPECT_EQ(marks("{kind: red, kmin: 1 MB, kmax: 2 MB, at: enqueue}").total, 0u);
  const Marks between = marks("{kind: red, kmin: 0 B, kmax: 1 MB, pmax: 1, at: enqueue}");
  EXPECT_LT(between.total, 5u) << "some per cent at most";
  EXPECT_EQ(marks("{kind: red, kmin: 10 KB, kmax: 10 KB, at: dequeue}").arrived, 0u);
  EXPECT_EQ(marks("{kind: red, kmin: 10 KB, kmax: 10 KB}").total, 12u) << "at dequeue";
}

// Between kmin and kmax the share of marked packets is the mean of the line over the queue's lengths.
TEST(Red, MarksWithTheProbabilityOfTheLine) {
  PacketFixture f(
      "topology: {kind: star, hosts: 3, rate: 100 Gbps, delay: 1 us}\n"
      "transport: {congestion_control: none, window: 400 KB}\n"
      "network: {switch: {marker: {kind: red, kmin: 0 B, kmax: 2 MB, pmax: 0.5}}}\n");
  f.send(0, 2, 40'000'000);
  f.send(1, 2, 40'000'000);
  f.loop.run();
  // Two windows of 98 packets are 815 KB, of which a round trip's worth (15 packets) is not in the queue.
  const double queue = (2.0 * 98 - 15) * kFull;
  const double expected = 0.5 * queue / 2e6;
  const double packets = 2 * 40e6 / 4096;
  const double deviation = 4.5 / std::sqrt(packets * expected);
  EXPECT_NEAR(static_cast<double>(f.network->counters().ecn_marks) / packets, expected,
              expected * (deviation + 0.02));
}

TEST(QueueLimit, IsNotForCreditsWhichNeverDrop) {
  EXPECT_THROW(PacketFixture("topology: star\nnetwork: {switch: {flow_control: credits, queue_limit: 5}}\n"),
               ConfigError);
}

// ---- Limited queues: a burst of eight single packets; one is sent, `limit` wait, the others are dropped.
TEST(QueueLimit, DropsExactlyWhatDoesNotFit) {
  for (const char* control : {"pfc", "none"}) {
    for (const int limit : {1, 3, 7, 8}) {
      PacketFixture f(
          "topology: {kind: star, hosts: 9, rate: 100 Gbps, delay: 1 us}\ntransport: {congestion_control: "
          "none, "
          "retransmission_timeout: 100 us}\nnetwork: {switch: {marker: none, flow_control: " +
          std::string(control) + ", queue_limit: " + std::to_string(limit) + "}}\n");
      for (std::uint32_t i = 0; i < 8; ++i) f.send(i, 8, 4096);
      f.loop.run(50 * kMicrosecond);
      EXPECT_EQ(f.network->counters().drops, static_cast<std::uint64_t>(std::max(7 - limit, 0)));
      f.loop.run();
      EXPECT_TRUE(f.all_delivered());
    }
  }
}

}  // namespace
}  // namespace netsim::switch_test
