// Tests windows, ideal times and base round trips, to the picosecond.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>

#include "tests/support/packet_fixture.h"

namespace netsim::ideal_test {
namespace {

using test::PacketFixture;

struct Shape {
  const char* name;
  const char* cluster;
  std::uint32_t from, to;
};

const Shape kShapes[] = {
    {"star", "topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 1 us}\n", 0, 1},
    {"line", "topology: {kind: switch_line, switches: 4, rate: 37 Gbps, delay: 300 ns}\n", 0, 1},
    {"fat_tree", "topology: {kind: fat_tree, k: 4, rate: 100 Gbps}\n", 0, 13},
    {"fat_tree_fast_core", "topology: {kind: fat_tree, k: 4, rate: 25 Gbps, uplink_rate: 100 Gbps}\n", 0, 13},
    {"fat_tree_slow_core", "topology: {kind: fat_tree, k: 4, rate: 100 Gbps, uplink_rate: 40 Gbps}\n", 0, 13},
    {"down_and_up",
     "topology:\n  kind: custom\n  switches: [a, b, c]\n  links:\n    - {from: host0, to: a, rate: 400 "
     "Gbps}\n"
     "    - {from: a, to: b, rate: 10 Gbps}\n    - {from: b, to: c, rate: 100 Gbps, delay: 3 us}\n"
     "    - {from: host1, to: c, rate: 33 Gbps}\n",
     0, 1},
    {"two_dgx", "topology: {kind: star, hosts: 16, rate: 200 Gbps}\nhost: dgx_a100\n", 1, 14},
    {"two_dgx_slow", "topology: {kind: star, hosts: 16, rate: 25 Gbps}\nhost: dgx_a100\n", 1, 14},
};

class Ideal : public ::testing::TestWithParam<std::tuple<Shape, const char*>> {};

// A flow alone takes its ideal time, whatever its size.
TEST_P(Ideal, IsWhatAFlowAloneTakes) {
  const auto& [shape, of_switch] = GetParam();
  for (const char* framing : {"roce_v2", "infiniband"}) {
    for (const Bytes bytes : {1, 4096, 4097, 8192, 8193, 12'288, 12'289, 100'000, 3'000'001}) {
      for (const char* mtu : {"4096 B", "1000 B"}) {
        PacketFixture f(std::string(shape.cluster) + "transport: {congestion_control: none, mtu: " + mtu +
                        ", framing: " + framing + "}\nnetwork: {switch: {marker: none" + of_switch + "}}\n");
        f.send(shape.from, shape.to, bytes, 5 * kMicrosecond);
        f.loop.run();
        ASSERT_EQ(f.flows.size(), 1u);
        EXPECT_EQ(f.flows[0].end - f.flows[0].start, f.flows[0].ideal)
            << shape.name << of_switch << " " << bytes << " " << mtu;
        EXPECT_EQ(f.flows[0].start, 5 * kMicrosecond);
        EXPECT_GT(f.flows[0].acknowledged, f.flows[0].end - kMicrosecond);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Ideal,
                         ::testing::Combine(::testing::ValuesIn(kShapes),
                                            ::testing::Values("",
                                                              ", forwarding: cut_through, latency: 300 ns")));

// No message is faster than the ideal.
TEST(Ideal, IsALowerBoundUnderLoad) {
  EXPECT_TRUE(rc::check([] {
    PacketFixture f(
        "topology: {kind: fat_tree, k: 4, rate: 100 Gbps}\ntransport: {congestion_control: none}\n");
    for (int i = *rc::gen::inRange(1, 30); i > 0; --i) {
      const auto from = *rc::gen::inRange<std::uint32_t>(0, 16);
      f.send(from, (from + *rc::gen::inRange<std::uint32_t>(1, 16)) % 16,
             *rc::gen::inRange<Bytes>(1, 100'000), *rc::gen::inRange<Time>(0, 10 * kMicrosecond));
    }
    f.loop.run();
    for (const FlowRecord& flow : f.flows) RC_ASSERT(flow.end - flow.start >= flow.ideal);
  }));
}

// Messages of one queue pair are sent alone: one size, another, and the first again. Then they take the other
// direction around a ring that is cut, which is longer, and the old path again.
TEST(Ideal, FollowsSizeAndWayOfTheMessagesOfAQueuePair) {
  PacketFixture f(
      "topology:\n  kind: custom\n  switches: [a, b, c]\n  links:\n    - {from: host0, to: a, rate: 100 "
      "Gbps}\n"
      "    - {from: host1, to: b, rate: 100 Gbps}\n    - {from: a, to: b, rate: 100 Gbps, delay: 1 us}\n"
      "    - {from: a, to: c, rate: 100 Gbps, delay: 2 us}\n    - {from: c, to: b, rate: 100 Gbps, delay: 2 "
      "us}\n"
      "transport: {congestion_control: none}\nnetwork:\n  switch: {marker: none}\n  detection_delay: 100 us\n"
      "  faults: [{link: a-b, down: 3500 us, up: 5500 us}]\n");
  const Bytes sizes[] = {20'000, 40'000, 20'000, 20'000, 20'000, 20'000};
  for (int i = 0; i < 6; ++i) f.send(0, 1, sizes[i], (i + 1) * 1000 * kMicrosecond);
  f.loop.run();
  ASSERT_EQ(f.flows.size(), 6u);
  for (const FlowRecord& flow : f.flows) EXPECT_EQ(flow.end - flow.start, flow.ideal) << flow.start;
  const Time straight = f.flows[0].ideal, around = f.flows[3].ideal;
  EXPECT_GT(f.flows[1].ideal, straight);
  EXPECT_EQ(f.flows[2].ideal, straight);
  EXPECT_GT(around, straight + 3 * kMicrosecond);
  EXPECT_EQ(f.flows[4].ideal, around);
  EXPECT_EQ(f.flows[5].ideal, straight);
}

// ---- Windows

constexpr BitRate kRate = 100 * kGbps;
Time wire(Bytes bytes) { return transmission_time(bytes + 20, kRate); }

// A window has w packets, and the round trip is longer. In each round w packets leave, and the next round
// starts when the first one's ACK is back.
TEST(Window, LimitsThroughputToAWindowARoundTrip) {
  const Time delay = 10 * kMicrosecond;
  const Bytes full = 4096 + 62, first = full + 16, ack = 66;
  const Time one_way = 2 * (wire(full) + delay), round_trip = one_way + 2 * (wire(ack) + delay);
  for (const Bytes window : {1, 4, 10}) {
    for (const Bytes odd :
         {0, 1, 4095}) {  // a packet may be started while less than the window is unacknowledged
      PacketFixture f(
          "topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 10 us}\n"
          "transport: {congestion_control: none, window: " +
          std::to_string(window * 4096 - odd) + " B}\nnetwork: {switch: {marker: none}}\n");
      const Bytes rounds = 50;
      f.send(0, 1, rounds * window * 4096);
      f.loop.run();
      const Time first_round = round_trip + 2 * (wire(first) - wire(full));
      EXPECT_EQ(f.delivered[0], first_round + (rounds - 2) * round_trip + (window - 1) * wire(full) + one_way)
          << window;
    }
  }
}

TEST(Window, LargerThanARoundTripDoesNotLimit) {
  PacketFixture f(
      "topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 1 us}\n"
      "transport: {congestion_control: none, window: 64 KB}\nnetwork: {switch: {marker: none}}\n");
  f.send(0, 1, 4'000'000);
  f.loop.run();
  EXPECT_EQ(f.flows[0].end - f.flows[0].start, f.flows[0].ideal);
}

// With window_scales the window shrinks with the rate that congestion control allows, and so do the queues.
TEST(Window, MayScaleWithTheRate) {
  Bytes queue[2] = {0, 0};
  for (const int scales : {0, 1}) {
    PacketFixture f(
        "topology: {kind: star, hosts: 9, rate: 100 Gbps, delay: 1 us}\n"
        "transport: {congestion_control: dcqcn, window: 100 KB, window_scales: " +
        std::string(scales != 0 ? "true" : "false") +
        "}\nnetwork: {switch: {marker: {kind: red, kmin: 50 KB, kmax: 200 KB}}}\n");
    for (std::uint32_t i = 0; i < 8; ++i) f.send(i, 8, 20'000'000);
    const PortId port = f.port("switch0", "host8");
    for (int sample = 1; sample <= 100; ++sample) {
      f.loop.run(500 * kMicrosecond + sample * 20 * kMicrosecond);
      queue[scales] += f.network->queued(port);
    }
    f.loop.run();
    EXPECT_TRUE(f.all_delivered());
  }
  EXPECT_LT(queue[1], queue[0]);
}

}  // namespace
}  // namespace netsim::ideal_test
