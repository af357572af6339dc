// Tests data classes: their order, their shares, and their drops.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/packet_fixture.h"

namespace netsim::classes_test {
namespace {

using test::PacketFixture;

constexpr Bytes kPacket = 4096;

std::string star(std::uint32_t hosts, const std::string& classes_and_more,
                 const std::string& transport = "") {
  return "topology: {kind: star, hosts: " + std::to_string(hosts) +
         ", rate: 100 Gbps, delay: 1 us}\ntransport: {congestion_control: none" + transport +
         "}\nnetwork: {switch: {marker: none, " + classes_and_more + "}}\n";
}

// Hosts 0 and 1 send to host 2 in classes 0 and 1. Holds the bytes that class 1 has got when class 0 has
// finished.
struct Share {
  Time first_end;
  double ratio;  // class 0 : class 1
};
Share share(const std::string& scheduler, const std::string& more = "") {
  PacketFixture f(star(3, "classes: 2, scheduler: " + scheduler + more));
  const Bytes bytes = 3000 * kPacket;
  f.send_class(0, 2, bytes, 0);
  f.send_class(1, 2, bytes, 1);
  while (f.delivered[0] < 0) f.loop.run_some(1);
  EXPECT_LT(f.delivered[1], 0) << "class 1 is not done yet";
  const Bytes other = f.network->queue_pair_view(1).acknowledged;
  const Share result{f.delivered[0],
                     static_cast<double>(bytes) / static_cast<double>(std::max<Bytes>(other, 1))};
  f.loop.run();
  EXPECT_TRUE(f.all_delivered());
  EXPECT_EQ(f.network->counters().drops, 0u);
  return result;
}

TEST(Classes, StrictPriorityStarvesTheLower) {
  for (const char* more : {"", ", flow_control: credits"}) {
    const Share found = share("strict", more);
    EXPECT_GT(found.ratio, 1000);
    const Time packet = transmission_time(4096 + 98, 100 * kGbps);
    const Time alone = 16 * 80 * 2 + 3001 * transmission_time(4096 + 82, 100 * kGbps) + 2 * kMicrosecond;
    EXPECT_LE(found.first_end, alone + packet) << "at most one packet that had begun goes before";
  }
}

TEST(Classes, DeficitRoundRobinSharesByQuantum) {
  for (const char* more : {"", ", flow_control: credits"}) {
    EXPECT_NEAR(share("{kind: drr, quantum: [12 KB, 4 KB]}", more).ratio, 3, 0.06) << more;
    EXPECT_NEAR(share("{kind: drr, quantum: [3000 B, 1000 B]}", more).ratio, 3, 0.06)
        << "quanta below a packet";
    EXPECT_NEAR(share("{kind: drr, quantum: [300 KB, 200 KB]}", more).ratio, 1.5, 0.12) << "long rounds";
    EXPECT_NEAR(share("drr", more).ratio, 1, 0.02);
  }
}

TEST(Classes, VirtualLanesShareByWeight) {
  EXPECT_NEAR(share("{kind: vl_arbitration, low: [[0, 194], [1, 64]]}").ratio, 3, 0.06);
  EXPECT_NEAR(share("{kind: vl_arbitration, high: [[0, 129], [1, 64]]}").ratio, 2, 0.04);
  EXPECT_NEAR(share("vl_arbitration").ratio, 1, 0.02);
}

// After its limit (x 4096 B) the high-priority table lets one packet of the other through.
TEST(Classes, HighPriorityVirtualLanesHaveALimit) {
  const auto with_limit = [](int limit) {
    return share("{kind: vl_arbitration, high: [[0, 255]], low: [[1, 1]], limit_of_high_priority: " +
                 std::to_string(limit) + "}")
        .ratio;
  };
  EXPECT_NEAR(with_limit(0), 1, 0.02) << "one packet each";
  EXPECT_NEAR(with_limit(1), 1, 0.02) << "4096 B are reached by one packet";
  EXPECT_NEAR(with_limit(2), 2, 0.04);
  EXPECT_NEAR(with_limit(4), 4, 0.08);
  EXPECT_GT(with_limit(255), 1000) << "no limit";
}

// Class 1 is lossy and dropped under overload, class 0 is not.
TEST(Classes, OnlyTheLossyAreDropped) {
  PacketFixture f(star(9, "classes: 2, lossless: [0], scheduler: drr, buffer: 900 KB",
                       ", retransmission_timeout: 200 us, retries: 1000"));
  for (std::uint32_t i = 0; i < 8; ++i) f.send_class(i, 8, 500 * kPacket, i % 2 == 0 ? 0 : 1);
  f.loop.run();
  EXPECT_TRUE(f.all_delivered());
  EXPECT_GT(f.network->counters().drops, 0u);
  EXPECT_GT(f.network->counters().pfc_pauses, 0u);
  EXPECT_EQ(f.network->counters().pfc_pauses, f.network->counters().pfc_resumes);
  for (std::uint32_t i = 0; i < 8; ++i) {
    const std::uint64_t sent = f.at("host" + std::to_string(i), "switch0").data_packets;
    if (i % 2 == 0) {
      EXPECT_EQ(sent, 500u) << "nothing was sent twice";
    } else {
      EXPECT_GT(sent, 500u);
    }
  }
}

// A pause holds one class only.
TEST(Classes, APausedClassDoesNotHoldTheOther) {
  PacketFixture f(star(10, "classes: 2, buffer: 1200 KB"));
  for (std::uint32_t i = 0; i < 8; ++i) f.send_class(i, 8, 300 * kPacket, 0);
  f.send_class(0, 9, 300 * kPacket, 1);
  while (f.delivered[8] < 0) f.loop.run_some(1);
  EXPECT_GT(f.at("host0", "switch0").pauses, 0u);
  EXPECT_EQ(std::count(f.delivered.begin(), f.delivered.begin() + 8, -1), 8) << "the incast goes on";
  f.loop.run();
  EXPECT_TRUE(f.all_delivered());
}

// ---- The NIC serves its queue pairs by class, too

struct NicShares {
  Time first_end;
  double ratio;
};
NicShares nic(const std::string& scheduler, int queue_pairs_of_class_1 = 1) {
  PacketFixture f(star(3, "classes: 2, scheduler: " + scheduler));
  f.send_class(0, 1, 2000 * kPacket, 0);
  for (int i = 0; i < queue_pairs_of_class_1; ++i) f.send_class(0, 2, 2000 * kPacket, 1);
  while (f.delivered[0] < 0) f.loop.run_some(1);
  Bytes other = 1;
  for (int i = 0; i < queue_pairs_of_class_1; ++i)
    other += f.network->queue_pair_view(static_cast<std::uint32_t>(1 + i)).acknowledged;
  return {f.delivered[0], 2000 * static_cast<double>(kPacket) / static_cast<double>(other)};
}

TEST(NicClasses, StrictPriorityGoesFirst) { EXPECT_GT(nic("strict", 3).ratio, 400); }

TEST(NicClasses, SharesAreThoseOfTheScheduler) {
  EXPECT_NEAR(nic("drr", 3).ratio, 1, 0.03) << "by class, not by queue pair";
  EXPECT_NEAR(nic("{kind: drr, quantum: [12 KB, 4 KB]}", 3).ratio, 3, 0.1);
  EXPECT_NEAR(nic("{kind: vl_arbitration, low: [[0, 194], [1, 64]]}").ratio, 3, 0.1);
}

// Also where messages share queue pairs: none travels in the class of another.
TEST(Classes, EachHasQueuePairsOfItsOwn) {
  PacketFixture f(star(2, "classes: 2"));
  Message message;
  message.source = 0;
  message.destination = 1;
  message.bytes = 100 * kPacket;
  message.traits.traffic_class = 1;
  f.send(message, 0);
  message.traits.traffic_class = 0;
  f.send(message, kMicrosecond);
  f.loop.run();
  EXPECT_EQ(f.network->queue_pairs().size(), 2u);
  EXPECT_EQ(f.delivery_order, (std::vector<std::uint64_t>{1, 0})) << "class 0 overtakes";
  EXPECT_NE(f.flows[0].id, f.flows[1].id);
}

TEST(Classes, FlowsOfUnknownClassesAreRefused) {
  PacketFixture f(star(2, "classes: 2"));
  f.send_class(0, 1, 1, 2);
  EXPECT_THROW(f.loop.run(), ConfigError);
}

TEST(Classes, WhatIsLosslessIsAllNoneOrAList) {
  EXPECT_NO_THROW(PacketFixture(star(2, "classes: 3, lossless: none")));
  EXPECT_NO_THROW(PacketFixture(star(2, "classes: 3, lossless: all")));
  EXPECT_NO_THROW(PacketFixture(star(2, "classes: 3, lossless: [0, 2]")));
  EXPECT_THROW(PacketFixture(star(2, "classes: 3, lossless: [3]")), ConfigError);
  EXPECT_THROW(PacketFixture(star(2, "classes: 3, lossless: [-1]")), ConfigError);
  EXPECT_THROW(PacketFixture(star(2, "classes: 3, lossless: some")), ConfigError);
  EXPECT_THROW(PacketFixture(star(2, "classes: 7")), ConfigError);
  EXPECT_THROW(PacketFixture(star(2, "classes: 0")), ConfigError);
}

}  // namespace
}  // namespace netsim::classes_test
