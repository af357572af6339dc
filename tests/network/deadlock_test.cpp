// Deadlocks are found where there are any, soon and by name, and nowhere else.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "sim/core/random.h"
#include "tests/support/packet_fixture.h"

namespace netsim::deadlock_test {
namespace {

using test::PacketFixture;

// Four switches in a ring, a host each; flows from i to i + 2 go clockwise.
std::string ring(const std::string& host_rate, const std::string& more_switch,
                 const std::string& transport = "") {
  std::string links, paths;
  for (int i = 0; i < 4; ++i) {
    const auto name = [](int n) { return "s" + std::to_string(n % 4); };
    links += "    - {from: host" + std::to_string(i) + ", to: " + name(i) + ", rate: " + host_rate +
             "}\n    - {from: " + name(i) + ", to: " + name(i + 1) + "}\n";
    paths += "        - {from: host" + std::to_string(i) + ", to: host" + std::to_string((i + 2) % 4) +
             ", through: [" + name(i) + ", " + name(i + 1) + ", " + name(i + 2) + "]}\n";
  }
  return "topology:\n  kind: custom\n  channels: 1\n  rate: 100 Gbps\n  delay: 1 us\n  switches: [s0, s1, "
         "s2, s3]\n  "
         "links:\n" +
         links + "transport: {congestion_control: none" + transport +
         "}\nnetwork:\n  deadlock_check: off\n  switch:\n    buffer: 4 MB\n    marker: none\n" + more_switch +
         "    routing:\n      kind: static\n      paths:\n" + paths;
}

struct RingRun {
  explicit RingRun(const std::string& yaml) : f(yaml) {
    for (std::uint32_t i = 0; i < 4; ++i) f.send(i, (i + 2) % 4, 10'000'000);
    std::uint64_t packets = 0;
    while (!f.network->deadlocked() && f.loop.run_some(64) > 0) {
      if (f.network->counters().packets == packets) continue;
      packets = f.network->counters().packets;
      last_progress = f.loop.now();
    }
  }
  PacketFixture f;
  Time last_progress = 0;  // when a packet last arrived, at most 64 events too late
};

class Ring : public ::testing::TestWithParam<const char*> {};

TEST_P(Ring, DeadlocksAreFoundWithinTwoMilliseconds) {
  RingRun run(ring("100 Gbps", GetParam()));
  ASSERT_TRUE(run.f.network->deadlocked());
  EXPECT_TRUE(run.f.loop.stopped());
  EXPECT_FALSE(run.f.all_delivered());
  EXPECT_LE(run.f.loop.now() - run.last_progress, 2 * kMillisecond);
  std::vector<std::string> lines = run.f.network->waiting(100);
  ASSERT_GE(lines.size(), 4u);
  lines.resize(4);
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines,
            (std::vector<std::string>{"deadlock: port s0->s1 is held back by s1 until port s1->s2 moves",
                                      "deadlock: port s1->s2 is held back by s2 until port s2->s3 moves",
                                      "deadlock: port s2->s3 is held back by s3 until port s3->s0 moves",
                                      "deadlock: port s3->s0 is held back by s0 until port s0->s1 moves"}));
}

TEST_P(Ring, AtFortyPercentLoadAllEnds) {
  RingRun run(ring("40 Gbps", GetParam()));
  EXPECT_FALSE(run.f.network->deadlocked());
  EXPECT_TRUE(run.f.all_delivered());
  EXPECT_EQ(run.f.network->counters().drops, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    FlowControl, Ring,
    ::testing::Values("", "    flow_control: credits\n", "    alpha: 1\n", "    classes: 3\n",
                      "    flow_control: credits\n    classes: 2\n    credit_buffer: 64 KB\n"));

// Timers that continue do not hide a deadlock: they only fill the event queue.
TEST(Deadlock, IsFoundWhileRetransmissionTimersRun) {
  for (const char* transport : {", retransmission_timeout: 100 us, retries: 1000",
                                ", reliability: {kind: irn, bdp_cap: 0}, retries: 1000"}) {
    RingRun run(ring("100 Gbps", "", transport));
    ASSERT_TRUE(run.f.network->deadlocked()) << transport;
    EXPECT_GT(run.f.loop.pending(), 0u);
    EXPECT_LE(run.f.loop.now() - run.last_progress, 2 * kMillisecond);
  }
}

// Lossy classes cannot deadlock.
TEST(Deadlock, NeedsFlowControl) {
  RingRun run(ring("100 Gbps", "    flow_control: none\n", ", reliability: irn, retries: 1000"));
  EXPECT_FALSE(run.f.network->deadlocked());
  EXPECT_TRUE(run.f.all_delivered());
}

// Up-down routes have no cycles. So there is no deadlock, whatever pauses for however long.
TEST(Deadlock, IsNeverReportedOnAFatTree) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    RandomStream random(seed, "deadlock");
    const std::string control = seed % 2 == 0 ? "pfc, buffer: 600 KB" : "credits, credit_buffer: 10 KB";
    PacketFixture f(
        "topology: {kind: fat_tree, k: 4, rate: 100 Gbps, delay: 1 us}\n"
        "transport: {congestion_control: none}\nnetwork: {switch: {marker: none, flow_control: " +
        control + "}}\n");
    const auto victim = static_cast<std::uint32_t>(random.below(16));
    const auto shift = 1 + static_cast<std::uint32_t>(random.below(15));
    for (std::uint32_t i = 0; i < 16; ++i) {
      if (i != victim) f.send(i, victim, 3'000'000, static_cast<Time>(random.below(10 * kMicrosecond)));
      f.send(i, (i + shift) % 16, 1'000'000);
    }
    while (f.loop.run_some(1 << 20) > 0) ASSERT_FALSE(f.network->deadlocked()) << seed;
    EXPECT_TRUE(f.all_delivered());
    EXPECT_EQ(f.network->counters().drops, 0u);
  }
}

// A pause of many milliseconds, because the receiver's link is slow, is none either.
TEST(Deadlock, ALongPauseIsNone) {
  PacketFixture f(
      "topology:\n  kind: custom\n  switches: [a, b, c]\n  links:\n    - {from: host0, to: a}\n"
      "    - {from: a, to: b}\n    - {from: b, to: c}\n    - {from: host1, to: c, rate: 100 Mbps}\n"
      "transport: {congestion_control: none}\nnetwork: {switch: {marker: none, buffer: 300 KB}}\n");
  f.send(0, 1, 1'000'000);
  while (f.loop.run_some(1 << 20) > 0) EXPECT_FALSE(f.network->deadlocked());
  EXPECT_TRUE(f.all_delivered());
  EXPECT_GT(f.at("a", "b").paused, 10 * kMillisecond);
}

}  // namespace
}  // namespace netsim::deadlock_test
