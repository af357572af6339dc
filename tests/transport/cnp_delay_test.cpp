// Tests transport.cnp_delay, the time of a NIC from a marked packet to the CNP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/support/packet_fixture.h"

namespace netsim::cnp_delay_test {
namespace {

using test::PacketFixture;

// Returns when the first of two senders that share a port receives a mark. No ACKs delay the CNPs.
Time first_decrease(const std::string& transport) {
  PacketFixture f(
      "topology: {kind: star, hosts: 3, rate: 100 Gbps, delay: 1 us}\n"
      "transport: {acknowledge: {every: 65536}, congestion_control: {kind: dcqcn, profile: sigcomm15}, " +
      transport + "}\nnetwork: {switch: {marker: {kind: step, threshold: 20 KB}}}\n");
  f.send(0, 2, 4 * kMegabyte);
  f.send(1, 2, 4 * kMegabyte);
  const auto slower = [&] {
    for (const std::uint32_t id : f.network->queue_pairs()) {
      if (f.network->queue_pair_view(id).rate < 100 * kGbps) return true;
    }
    return false;
  };
  while (!slower()) {
    if (f.loop.run_some(1) == 0) return kNever;
  }
  return f.loop.now();
}

TEST(CnpDelay, TheSenderHearsOfMarksSoMuchLater) {
  const Time at_once = first_decrease("cnp_delay: 0");
  ASSERT_NE(at_once, kNever);
  EXPECT_EQ(first_decrease("mtu: 4 KiB"), at_once) << "the default";
  for (const Time delay : {Time{1}, 700 * kNanosecond, 55 * kMicrosecond})
    EXPECT_EQ(first_decrease("cnp_delay: " + format_time(delay)), at_once + delay);
}

// A sender at 100 Gb/s has a receiver at 25 Gb/s; ECN thresholds are 400 and 1,625 cells of 256 B at 20 %. A
// user found no pauses in ns-3, which sends CNPs at once. With a NIC's 55 us there were some, as on his
// switches (aliyun/ns-3-alibabacloud, issue 12).
NetworkCounters mismatch(const std::string& buffer, const std::string& delay) {
  PacketFixture f(
      "topology:\n  kind: custom\n  rate: 100 Gbps\n  delay: 500 ns\n  switches: [tor]\n"
      "  links: [{from: host0, to: tor}, {from: host1, to: tor, rate: 25 Gbps}]\n"
      "host: single_nic\n"
      "network: {switch: {buffer: " +
      buffer +
      ", marker: {kind: red, kmin: 102400 B, kmax: 416000 B, pmax: 0.2}}}\n"
      "transport: {congestion_control: dcqcn, cnp_delay: " +
      delay + "}\n");
  f.send(0, 1, 10 * kMegabyte);
  f.loop.run();
  EXPECT_TRUE(f.all_delivered());
  EXPECT_EQ(f.network->counters().drops, 0u);
  return f.network->counters();
}

// The queue grows by 75 Gb/s for 55 us more. 4,158 B of a packet wait, which takes 4,178 B on the wire.
TEST(CnpDelay, TheQueueGrowsMeanwhile) {
  const NetworkCounters at_once = mismatch("32 MB", "0"), slow = mismatch("32 MB", "55 us");
  EXPECT_NEAR(static_cast<double>(slow.max_queue - at_once.max_queue), 75e9 / 8 * 55e-6 * 4158 / 4178, 5'000);
}

// A link may use an eighth of what is free, some 0.45 MB of 4 MB: between the longest queues without and with
// the delay.
TEST(CnpDelay, PausesAreSeenWhereTheNicIsSlow) {
  EXPECT_EQ(mismatch("4 MB", "0").pfc_pauses, 0u);
  EXPECT_GT(mismatch("4 MB", "55 us").pfc_pauses, 0u);
}

// It is part of the way from a mark to the sender, which DCQCN's decreases must not outrun.
TEST(CnpDelay, CountsAsPartOfTheRoundTripThatDcqcnMustFit) {
  const auto notes = [](const std::string& delay) {
    PacketFixture f("topology: {kind: star, hosts: 2}\ntransport: {congestion_control: dcqcn, cnp_delay: " +
                    delay + "}\n");
    f.send(0, 1, kMegabyte);
    f.loop.run();
    return f.network->notes();
  };
  EXPECT_THAT(notes("0"), ::testing::Not(::testing::Contains(::testing::HasSubstr("does not fit"))));
  EXPECT_THAT(notes("55 us"), ::testing::Contains(::testing::HasSubstr("DCQCN decreases every 4 us")));
}

}  // namespace
}  // namespace netsim::cnp_delay_test
