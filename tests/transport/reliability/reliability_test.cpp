// Go-back-N and selective repeat on links that lose packets, against what theory says of their goodput.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/packet_fixture.h"
#include "tests/support/paths.h"

namespace netsim::reliability_test {
namespace {

using test::PacketFixture;

constexpr Bytes kPayload = 4096, kWire = kPayload + 62 + 20, kAckWire = 66 + 20;
constexpr BitRate kRate = 100 * kGbps;

// Returns the delay of a link with which a full packet and its ACK back over two links take `window` packet
// times.
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

// A lost packet costs the round trip until the sender goes back: 1/(1 + W q/(1-q)), if a lost resend is
// noticed as soon.
TEST_P(Loss, GoBackNLosesARoundTripForEachLostPacket) {
  const auto [q, window] = GetParam();
  const Bytes packets = q > 5e-3 ? 200'000 : 100'000;
  const Goodput found = goodput("{kind: go_back_n, repeat_nack: true}", q, window, packets);
  const double expected = (1 - q) / (1 - q + q * window);
  EXPECT_NEAR(found.share, expected, 0.05 * expected) << "q " << q << " W " << window;
  EXPECT_GT(found.counters.lost, 0u);
}

TEST_P(Loss, SelectiveRepeatLosesLittleMoreThanTheLostPackets) {
  const auto [q, window] = GetParam();
  const Goodput found = goodput("{kind: irn, in_flight: selective}", q, window, 100'000);
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

// ---- Beside an independent model, reference/goodput.py

struct LossCase {
  std::string name, reliability;
  bool selective, cumulative, repeat_nack;
  double loss;
  Bytes packets;
};

// Links of 1 us, so that 14 packets fill the path.
constexpr Time kShort = kMicrosecond, kTimeout = 200 * kMicrosecond;
double in_packets(Time time) {
  return static_cast<double>(time) / static_cast<double>(transmission_time(kWire, kRate));
}
Time short_round_trip() {
  return 4 * kShort + 2 * transmission_time(kWire, kRate) + 2 * transmission_time(kAckWire, kRate);
}

std::string for_reference(const LossCase& c) {
  // IRN's timeouts and its cap of 1.25 bandwidth-delay products, whole packets.
  const double round_trip = in_packets(short_round_trip());
  const double timeout = in_packets(c.selective ? 320 * kMicrosecond : kTimeout);
  return fmt::format(
      R"({{"selective":{},"cumulative":{},"repeat_nack":{},"loss":{},"packets":{},"round_trip":{},"cap":{},)"
      R"("timeout":{},"low_timeout":{},"seed":1}})"
      "\n",
      c.selective, c.cumulative, c.repeat_nack, c.loss, c.packets, round_trip,
      c.selective ? std::ceil(1.25 * round_trip) : 1e9, timeout, in_packets(100 * kMicrosecond));
}

std::vector<double> ask_reference(const std::vector<LossCase>& cases) {
  const std::string in = ::testing::TempDir() + "netsim_goodput_cases", out = in + "_answers";
  {
    std::ofstream file(in);
    for (const LossCase& c : cases) file << for_reference(c);
  }
  const std::string command = "python3 '" + source_directory() +
                              "/tests/transport/congestion/reference/goodput.py' < '" + in + "' > '" + out +
                              "'";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  std::vector<double> shares;
  std::ifstream file(out);
  for (double share; file >> share;) shares.push_back(share);
  std::filesystem::remove(in);
  std::filesystem::remove(out);
  return shares;
}

double simulated(const LossCase& c) {
  PacketFixture f(
      fmt::format("topology: {{kind: star, hosts: 2, rate: 100 Gbps, delay: {} ps}}\n"
                  "transport: {{congestion_control: none, retransmission_timeout: {} ps, retries: "
                  "1000, reliability: {}}}\n"
                  "network: {{switch: {{marker: none}}, faults: [{{link: host0->switch0, loss: {}}}]}}\n",
                  kShort, kTimeout, c.reliability, c.loss));
  f.send(0, 1, c.packets * kPayload);
  f.loop.run();
  EXPECT_TRUE(f.all_delivered()) << c.name;
  return static_cast<double>(c.packets) / in_packets(f.delivered[0]);
}

TEST(Reliability, GoodputUnderLossIsThatOfAnIndependentModel) {
  if (std::system("python3 -c 'import json' >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "python3 runs the reference, and is not here";
  const std::vector<LossCase> cases = {
      {"one NACK for a gap", "go_back_n", false, true, false, 1e-2, 500'000},
      {"a NACK for each start", "{kind: go_back_n, repeat_nack: true}", false, true, true, 1e-2, 200'000},
      {"IRN", "irn", true, true, false, 1e-2, 500'000},
      {"IRN, rare losses", "irn", true, true, false, 1e-3, 200'000},
      {"IRN that counts selectively", "{kind: irn, in_flight: selective}", true, false, false, 1e-2,
       200'000}};
  const std::vector<double> expected = ask_reference(cases);
  ASSERT_EQ(expected.size(), cases.size());
  std::vector<double> found;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    found.push_back(simulated(cases[i]));
    EXPECT_NEAR(found[i], expected[i], 0.03 * expected[i]) << cases[i].name;
  }
  EXPECT_LT(found[0], 0.98 * found[1]) << "lost resends cost timeouts";
  EXPECT_LT(found[2], 0.85 * found[4]) << "what arrived behind a gap holds the sender back";
}

// Links take 10 ns and have no flow control, which would wait for the far end after an outage. Each outage
// takes one packet, packet 5 and its first resend. Three more leave until the NACK is back.
TEST(Reliability, ALostResendCostsATimeoutUnlessNacksAreRepeated) {
  const Time packet = transmission_time(kWire, kRate), delay = 10 * kNanosecond;
  const Time fifth = transmission_time(kWire + 16, kRate) + 4 * packet, resend = fifth + 4 * packet;
  const Time timeout = 50 * kMicrosecond, within = 100 * kNanosecond;
  for (const bool repeat : {false, true}) {
    PacketFixture f(
        fmt::format("topology: {{kind: star, hosts: 2, rate: 100 Gbps, delay: {} ps}}\n"
                    "transport: {{congestion_control: none, retransmission_timeout: {} ps, reliability: "
                    "{{kind: go_back_n, "
                    "repeat_nack: {}}}}}\n"
                    "network: {{switch: {{flow_control: none}}, faults: [{{link: host0->switch0, down: {} "
                    "ps, up: {} ps}}, {{link: "
                    "host0->switch0, down: {} "
                    "ps, up: {} ps}}]}}\n",
                    delay, timeout, repeat, fifth + within, fifth + within + 1000, resend + within,
                    resend + within + 1000));
    f.send(0, 1, 20 * kPayload);
    f.loop.run();
    ASSERT_TRUE(f.all_delivered());
    EXPECT_EQ(f.at("host0", "switch0").lost, 2u);
    const Time rest = 16 * packet + 2 * delay;  // packets 5 to 19 over two links
    if (repeat) {
      EXPECT_EQ(f.delivered[0], resend + 4 * packet + rest);
      EXPECT_EQ(f.network->counters().retransmissions, 4u + 4u);
    } else {
      EXPECT_EQ(f.delivered[0], resend + timeout + rest);
      EXPECT_EQ(f.network->counters().retransmissions, 4u + 15u);
    }
  }
}

// Two hosts at 100 Gb/s. The link to the switch loses what leaves at these times, and only that: links are so
// short that packets before have arrived.
constexpr Time kShortest = 10 * kNanosecond;
std::string losing(const std::string& transport, const std::vector<Time>& starts) {
  std::string faults;
  for (const Time start : starts) {
    const Time within = start + 100 * kNanosecond;
    faults += fmt::format("{}{{link: host0->switch0, down: {} ps, up: {} ps}}", faults.empty() ? "" : ", ",
                          within, within + 1000);
  }
  return "topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 10 ns}\ntransport: {congestion_control: "
         "none, " +
         transport + "}\nnetwork: {switch: {flow_control: none}, detection_delay: 1 s, faults: [" + faults +
         "]}\n";
}
const Time kFull = transmission_time(kWire, kRate), kFirst = transmission_time(kWire + 16, kRate);

// A user sets 50 us and measures 50 us, whatever was sent before: from the first packet that asks where
// nothing is in flight. The message before was sent 20 us earlier and needs the timer no more.
TEST(Reliability, ATimeoutComesItsValueAfterThePacketThatWasLost) {
  for (const char* reliability : {"go_back_n", "{kind: irn, timeout_high: 50 us, timeout_low: 50 us}"}) {
    for (const char* every : {"1", "256"}) {
      const Time second = 20 * kMicrosecond, timeout = 50 * kMicrosecond;
      PacketFixture f(
          losing(fmt::format("retransmission_timeout: 50 us, reliability: {}, acknowledge: {{every: {}}}",
                             reliability, every),
                 {second}));
      f.send(0, 1, kPayload);
      f.send(0, 1, kPayload, second);
      f.loop.run();
      ASSERT_TRUE(f.all_delivered());
      EXPECT_EQ(f.delivered[1], second + timeout + f.delivered[0]) << reliability << " " << every;
      EXPECT_EQ(f.network->counters().timeouts, 1u);
      EXPECT_EQ(f.network->counters().longest_timeouts, timeout);
    }
  }
}

// The last of three packets is lost: its timeout begins with the acknowledgement of the second. At the switch
// the second waits for the first, whose header is longer.
TEST(Reliability, ATimeoutComesItsValueAfterTheLastProgress) {
  for (const char* reliability : {"go_back_n", "{kind: irn, timeout_high: 50 us, timeout_low: 50 us}"}) {
    const Time timeout = 50 * kMicrosecond, third = kFirst + kFull;
    PacketFixture f(
        losing(fmt::format("retransmission_timeout: 50 us, reliability: {}", reliability), {third}));
    f.send(0, 1, 3 * kPayload);
    f.loop.run();
    ASSERT_TRUE(f.all_delivered());
    const Time acknowledged = third + kFirst + 2 * transmission_time(kAckWire, kRate) + 4 * kShortest;
    EXPECT_EQ(f.delivered[0], acknowledged + timeout + 2 * kFull + 2 * kShortest) << reliability;
  }
}

// A second timeout in a row is eight times as long. The first after progress is not, although its message is
// sent while the event of a longer one is pending.
TEST(Reliability, ProgressEndsTheBackoff) {
  const Time timeout = 50 * kMicrosecond, second = 480 * kMicrosecond;
  PacketFixture f(losing("retransmission_timeout: 50 us, retransmission_backoff: 8", {0, timeout, second}));
  f.send(0, 1, kPayload);
  f.send(0, 1, kPayload, second);
  f.loop.run();
  ASSERT_TRUE(f.all_delivered());
  const Time idle = kFirst * 2 + 2 * kShortest;
  EXPECT_EQ(f.delivered[0], 9 * timeout + idle);
  EXPECT_EQ(f.delivered[1], second + timeout + idle);
  EXPECT_EQ(f.network->counters().longest_timeouts, 10 * timeout);
}

// IRN's short timeout is for few packets in flight, and also applies when their number falls. The ninth and
// tenth of ten packets are lost; after the eighth's acknowledgement two are in flight.
TEST(Reliability, IrnsShortTimeoutAppliesWhenFewAreLeft) {
  const Time ninth = kFirst + 7 * kFull;
  PacketFixture f(losing("reliability: {kind: irn, bdp_cap: 0}", {ninth, ninth + kFull}));
  f.send(0, 1, 10 * kPayload);
  f.loop.run();
  ASSERT_TRUE(f.all_delivered());
  const Time acknowledged = ninth + kFirst + 2 * transmission_time(kAckWire, kRate) + 4 * kShortest;
  EXPECT_EQ(f.delivered[0], acknowledged + 100 * kMicrosecond + 3 * kFull + 2 * kShortest);
}

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

// Losses depend on the seed: equal seeds give equal runs, and different seeds give different ones.
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

// Everything is lost. The transport's three timeouts take 201 ms. IRN's last as long: 100 us for one packet
// in flight, 320 us for ten. The last one is the one that has begun by then.
TEST(Reliability, IrnGivesUpWhenTheTransportsTimeoutsWouldHaveGone) {
  const Time patience = 3 * 67'108'864 * kNanosecond;
  for (const Bytes packets : {1, 3, 10}) {
    const Time timeout = (packets > 3 ? 320 : 100) * kMicrosecond;
    PacketFixture f(
        "topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 1 us}\n"
        "transport: {congestion_control: none, reliability: irn, retries: 2}\n"
        "network: {faults: [{link: host0->switch0, loss: 1}]}\n");
    f.send(0, 1, packets * kPayload);
    f.loop.run();
    EXPECT_EQ(f.loop.now(), (patience + timeout - 1) / timeout * timeout) << packets;
    ASSERT_FALSE(f.network->waiting(10).empty());
    EXPECT_NE(f.network->waiting(10)[0].find("gave up"), std::string::npos) << f.network->waiting(10)[0];
  }
}

// 1 + 2 + 4 + 8 ms are those of the transport; 0.1 ms doubled each time are longer after eight of them.
// Timeouts that are longer than the transport's are counted.
TEST(Reliability, IrnsPatienceCountsBackoffAndRetries) {
  const auto gives_up = [](const std::string& reliability) {
    PacketFixture f(
        "topology: {kind: star, hosts: 2}\n"
        "transport: {congestion_control: none, retransmission_timeout: 1 ms, retransmission_backoff: 2, "
        "retries: "
        "3, reliability: " +
        reliability + "}\nnetwork: {faults: [{link: host0->switch0, loss: 1}]}\n");
    f.send(0, 1, kPayload);
    f.loop.run();
    EXPECT_FALSE(f.all_delivered());
    return f.loop.now();
  };
  EXPECT_EQ(gives_up("irn"), 25'500 * kMicrosecond) << "0.1 + 0.2 + ... + 12.8 ms";
  EXPECT_EQ(gives_up("{kind: irn, timeout_low: 10 ms}"), 150 * kMillisecond) << "10 + 20 + 40 + 80 ms";
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
}  // namespace netsim::reliability_test
