// Go-back-N and selective repeat on links that lose packets, against what theory says of their goodput.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/support/packet_fixture.h"

namespace netsim {
namespace {

using testing::PacketFixture;

constexpr Bytes kPayload = 4096, kWire = kPayload + 62 + 20, kAckWire = 66 + 20;
constexpr BitRate kRate = 100 * kGbps;

// Of the link such that a full packet there and its ACK back over two links take `window` packet times.
Time delay_for(int window) {
  const Time packet = transmission_time(kWire, kRate), ack = transmission_time(kAckWire, kRate);
  return (window * packet - 2 * packet - 2 * ack) / 4;
}

struct Goodput {
  double share;  // of what the wire could carry
  NetworkCounters counters;
};

// One long message; a second behind it lets its last packets' losses be noticed without a timeout.
Goodput goodput(const std::string& reliability, double loss, int window, Bytes packets) {
  PacketFixture f(
      "topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: " + std::to_string(delay_for(window)) +
      " ps}\ntransport: {congestion_control: none, reliability: " + reliability +
      "}\nnetwork: {switch: {marker: none}, faults: [{link: host0->switch0, loss: " + std::to_string(loss) +
      "}]}\n");
  f.send(0, 1, packets * kPayload);
  f.send(0, 1, 2 * window * kPayload);
  f.loop.run();
  EXPECT_TRUE(f.all_delivered());
  const double useful = static_cast<double>(packets * transmission_time(kWire, kRate));
  return {useful / static_cast<double>(f.delivered[0] - 2 * delay_for(window)), f.network->counters()};
}

class Loss : public ::testing::TestWithParam<std::tuple<double, int>> {};

// A lost packet costs the round trip that goes by until the sender starts again: 1/(1 + W q/(1-q)).
TEST_P(Loss, GoBackNLosesARoundTripForEachLostPacket) {
  const auto [q, window] = GetParam();
  const Bytes packets = q > 5e-3 ? 200'000 : 100'000;
  const Goodput found = goodput("go_back_n", q, window, packets);
  const double expected = (1 - q) / (1 - q + q * window);
  EXPECT_NEAR(found.share, expected, 0.05 * expected) << "q " << q << " W " << window;
  EXPECT_GT(found.counters.lost, 0u);
}

TEST_P(Loss, SelectiveRepeatLosesLittleMoreThanTheLostPackets) {
  const auto [q, window] = GetParam();
  const Goodput found = goodput("irn", q, window, 100'000);
  EXPECT_GE(found.share, 1 - q - 0.01) << "q " << q << " W " << window;
  EXPECT_LE(found.share, 1.0);
  EXPECT_GE(found.counters.retransmissions, found.counters.lost);
  EXPECT_LE(found.counters.retransmissions,
            found.counters.lost * 11 / 10 + 2 * static_cast<std::uint64_t>(window))
      << "hardly anything is sent again in vain";
}

INSTANTIATE_TEST_SUITE_P(Rates, Loss,
                         ::testing::Combine(::testing::Values(1e-4, 1e-3, 1e-2),
                                            ::testing::Values(37, 150, 305)));

// ACKs and NACKs that are lost: timers repair, nothing is delivered twice.
TEST(Reliability, LostAcknowledgementsAreRepaired) {
  for (const char* reliability : {"go_back_n", "irn"}) {
    for (const char* loss : {"0.02", "0.3"}) {
      PacketFixture f(std::string("topology: {kind: star, hosts: 4, rate: 100 Gbps, delay: 1 us}\n"
                                  "transport: {congestion_control: none, retransmission_timeout: 100 us, "
                                  "retries: 1000, reliability: ") +
                      reliability + "}\nnetwork: {faults: [{link: host0-switch0, loss: " + loss + "}]}\n");
      for (std::uint32_t i = 0; i < 30; ++i)
        f.send(0, 1 + i % 3, 1 + 37'000 * static_cast<Bytes>(i), i * kMicrosecond, i % 2);
      f.loop.run();
      EXPECT_TRUE(f.all_delivered()) << reliability << loss;
      EXPECT_EQ(f.delivery_order.size(), 30u) << "each exactly once";
      EXPECT_EQ(f.flows.size(), 30u);
      EXPECT_GT(f.network->counters().lost, 0u);
      EXPECT_EQ(f.network->counters().bytes_delivered, f.network->counters().bytes_sent);
    }
  }
}

// The same loss rate on another link or with another seed is another run; the same one is the same.
TEST(Reliability, LossesAreDrawnFromTheSeed) {
  const auto print = [](std::uint64_t seed) {
    PacketFixture f(
        "topology: {kind: star, hosts: 2}\ntransport: {reliability: irn}\n"
        "network: {faults: [{link: host0->switch0, loss: 0.01}]}\n",
        seed);
    f.send(0, 1, 4'000'000);
    f.loop.run();
    return f.network->packets_fingerprint();
  };
  EXPECT_EQ(print(1), print(1));
  EXPECT_NE(print(1), print(2));
}

// With everything lost a queue pair gives up after its retries, each a timeout later, doubled each time.
TEST(Reliability, AQueuePairGivesUpAfterItsRetries) {
  PacketFixture f(
      "topology: {kind: star, hosts: 2}\n"
      "transport: {congestion_control: none, retransmission_timeout: 1 ms, retransmission_backoff: 2, "
      "retries: 3}\n"
      "network: {faults: [{link: host0->switch0, loss: 1}]}\n");
  f.send(0, 1, 4096);
  f.loop.run();
  EXPECT_FALSE(f.all_delivered());
  EXPECT_EQ(f.loop.now(), 15 * kMillisecond) << "1 + 2 + 4 + 8 ms";
  ASSERT_FALSE(f.network->waiting(10).empty());
  EXPECT_NE(f.network->waiting(10)[0].find("gave up"), std::string::npos) << f.network->waiting(10)[0];
  EXPECT_EQ(f.at("host0", "switch0").lost, 4u);
}

// IRN's short timeout is for few packets in flight: the tail of a message.
TEST(Reliability, IrnRepairsALostTailAfterItsShortTimeout) {
  for (const Bytes packets : {2, 200}) {
    PacketFixture f(
        "topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 1 us}\n"
        "transport: {congestion_control: none, reliability: irn}\n"
        "network: {faults: [{link: host0-switch0, down: 0 us, up: 50 us}]}\n");
    f.send(0, 1, packets * 4096);
    f.loop.run();
    ASSERT_TRUE(f.all_delivered());
    EXPECT_GT(f.delivered[0], 100 * kMicrosecond);
    EXPECT_LT(f.delivered[0], packets == 2 ? 110 * kMicrosecond : 420 * kMicrosecond);
  }
}

// Its timeouts are short, but it does not give up sooner for that: 5 ms are 15 of them.
TEST(Reliability, IrnIsAsPatientAsGoBackN) {
  PacketFixture f(
      "topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 1 us}\n"
      "transport: {congestion_control: none, reliability: irn, retries: 7}\n"
      "network: {faults: [{link: host0-switch0, down: 10 us, up: 5 ms}]}\n");
  f.send(0, 1, 1'000'000);
  f.loop.run();
  EXPECT_TRUE(f.all_delivered());
}

// bdp_cap bounds what is in flight, so goodput falls in proportion below one.
TEST(Reliability, IrnsCapBoundsWhatIsInFlight) {
  const Goodput half = goodput("{kind: irn, bdp_cap: 0.5}", 0, 100, 20'000);
  EXPECT_NEAR(half.share, 0.5, 0.01);
  EXPECT_NEAR(goodput("{kind: irn, bdp_cap: 1}", 0, 100, 20'000).share, 1, 0.01);
}

// The bandwidth-delay product is that of the path's own round trip, unless base_rtt says otherwise.
TEST(Reliability, TheCapIsOfTheBaseRoundTrip) {
  Time end[2];
  for (const int given : {0, 1}) {
    PacketFixture f(
        "topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 10 us}\n"
        "transport: {congestion_control: none, reliability: {kind: irn, bdp_cap: 1}, base_rtt: " +
        std::string(given != 0 ? "10 us" : "0 s") + "}\nnetwork: {switch: {marker: none}}\n");
    f.send(0, 1, 40'000'000);
    f.loop.run();
    end[given] = f.delivered[0];
  }
  // 10 us are 30 packets of 334 ns; a round trip takes 40 us and the packet's and its ACK's times.
  const double round_trip =
      40e6 + 2.0 * static_cast<double>(transmission_time(kWire, kRate) + transmission_time(kAckWire, kRate));
  EXPECT_NEAR(static_cast<double>(end[1]), 40e6 / 4096 / 30 * round_trip, 0.01 * static_cast<double>(end[1]));
  EXPECT_NEAR(static_cast<double>(end[0]), 40e6 / 4096 * static_cast<double>(transmission_time(kWire, kRate)),
              0.02 * static_cast<double>(end[0]));
}

}  // namespace
}  // namespace netsim
