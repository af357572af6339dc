// Tests transport.acknowledge: which packets ask for acknowledgements, that no queue pair waits for one that
// was not asked for, and the default.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/configuration/configuration.h"
#include "tests/support/packet_fixture.h"

namespace netsim::acknowledge_test {
namespace {

using test::PacketFixture;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kPair = "topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 1 us}\n";
constexpr const char* kQuiet = "network: {switch: {marker: none}}\n";
constexpr Bytes kAckWire = 66 + 20;

// Returns the number of ACKs for one message of this many packets of 4096 B.
Bytes acks(const std::string& transport, Bytes packets) {
  PacketFixture f(std::string(kPair) + kQuiet + "transport: " + transport + "\n");
  f.send(0, 1, packets * 4096);
  f.loop.run();
  return f.at("host1", "switch0").wire_bytes / kAckWire;
}

TEST(Acknowledge, TheLastPacketAndOneOfSoManyAsk) {
  for (const Bytes every : {1, 2, 16, 64, 65536}) {
    for (const Bytes packets : {1, 63, 64, 65, 1000}) {
      EXPECT_EQ(
          acks("{congestion_control: none, acknowledge: {every: " + std::to_string(every) + "}}", packets),
          (packets + every - 1) / every)
          << packets << " packets, every " << every;
    }
  }
}

TEST(Acknowledge, ANoteSaysThatCongestionControlNeedsEveryAck) {
  const auto notes = [](const std::string& transport) {
    return PacketFixture(std::string(kPair) + kQuiet + "transport: " + transport + "\n").network->notes();
  };
  const auto late = Contains(HasSubstr("an ACK answers up to 16 packets"));
  EXPECT_THAT(notes("{congestion_control: hpcc, acknowledge: {every: 16}}"), late);
  EXPECT_THAT(notes("{congestion_control: hpcc}"), Not(late));
  EXPECT_THAT(notes("{congestion_control: none, acknowledge: {every: 16}}"), Not(late));
}

// The last packet of each message asks, and the next message counts from there.
TEST(Acknowledge, EachMessageOfAQueuePairEndsWithARequest) {
  PacketFixture f(std::string(kPair) + kQuiet +
                  "transport: {congestion_control: none, acknowledge: {every: 64}}\n");
  for (int i = 0; i < 5; ++i) f.send(0, 1, 100 * 4096);
  f.loop.run();
  EXPECT_EQ(f.at("host1", "switch0").wire_bytes, 5 * 2 * kAckWire);
}

// 8 packets go out, the eighth asks, its ACK lets the next eight out.
TEST(Acknowledge, ThePacketThatClosesTheWindowAsks) {
  EXPECT_EQ(acks("{congestion_control: none, window: 32768 B, acknowledge: {every: 1024}}", 80), 10);
}

// Such a flow used to take 26,224 (HPCC) and 83 times as long. The receiver waited for packets that no window
// allowed.
TEST(Acknowledge, AnIdleFlowNeedsNoTimeout) {
  for (const char* transport : {"{congestion_control: hpcc, acknowledge: {every: 16}}",
                                "{congestion_control: swift, acknowledge: {every: 16}}",
                                "{congestion_control: dctcp, acknowledge: {every: 16}}",
                                "{congestion_control: timely, acknowledge: {every: 16}}",
                                "{congestion_control: none, reliability: irn, acknowledge: {every: 64}}",
                                "{congestion_control: none, window: 4 KB, acknowledge: {every: 65536}}"}) {
    const std::string text = transport;
    PacketFixture f(std::string(kPair) + "transport: " + text + "\n");
    f.send(0, 1, 10'000'000);
    f.loop.run();
    // A window that is one round trip of the path moves once a round trip: half the wire stays idle. A window
    // of one packet is idle for the whole round trip.
    const double factor = text.find("4 KB") != std::string::npos ? 16 : 2.5;
    EXPECT_EQ(f.network->counters().retransmissions, 0u) << text;
    EXPECT_LT(static_cast<double>(f.sent[0]), factor * static_cast<double>(f.flows.at(0).ideal)) << text;
  }
}

// A flow that shares its NIC with others has less in flight than its window, and mostly nothing that asked.
// Incast cuts its window below that, and only ACKs could open it again: one more packet goes out and asks.
// Whoever waited for its timer would take 100 s.
TEST(Acknowledge, AWindowThatShrinksStallsNobody) {
  for (const char* control : {"hpcc", "swift", "dctcp"}) {
    PacketFixture f(
        std::string("topology: {kind: star, hosts: 8, rate: 100 Gbps, delay: 5 us}\n"
                    "transport: {mtu: 1000 B, acknowledge: {every: 64}, retransmission_timeout: 100 s, "
                    "queue_pairs: 8, congestion_control: ") +
        control + "}\nnetwork: {switch: {marker: {kind: step, threshold: 20 KB}}}\n");
    for (std::uint32_t i = 1; i < 8; ++i) {
      for (std::uint32_t channel = 0; channel < 8; ++channel)
        f.send(i, 0, 400'000, (i + channel % 3) * 30 * kMicrosecond, channel);
      f.send(i, i % 7 + 1, 1'000'000);
    }
    f.loop.run(kSecond);
    EXPECT_EQ(f.network->counters().retransmissions, 0u) << control;
    EXPECT_EQ(std::count(f.sent.begin(), f.sent.end(), -1), 0) << control;
  }
}

// Timeouts of 100 s: whoever waits for one is seen. No combination does, be the windows scaled, closed by
// congestion control or by marks while packets are in flight.
TEST(Acknowledge, NoQueuePairWaitsForWhatNobodyAsked) {
  EXPECT_TRUE(rc::check([] {
    const auto any = [](std::vector<std::string> of) { return *rc::gen::elementOf(std::move(of)); };
    const std::string irn = "{kind: irn, timeout_high: 100 s, timeout_low: 100 s, ";
    const bool tree = *rc::gen::arbitrary<bool>();
    const std::string reliability =
        any({"go_back_n", irn + "bdp_cap: 1.25}", irn + "bdp_cap: 0}", irn + "reorder_tolerance: 10000}"});
    const bool spray = tree && reliability != "go_back_n" && *rc::gen::arbitrary<bool>();
    const std::string yaml =
        std::string(tree ? "topology: {kind: fat_tree, k: 4, rate: 100 Gbps, delay: 600 ns}\n"
                         : "topology: {kind: star, hosts: 6, rate: 100 Gbps, delay: 1 us}\n") +
        "transport: {congestion_control: " +
        any({"none", "dcqcn", "{kind: dcqcn, profile: sigcomm15, byte_counter: 20 KB}", "hpcc",
             "{kind: hpcc, rates: per_hop, fast_reaction: false}", "swift", "timely", "dctcp",
             "{kind: dctcp, form: rate}", "ib_cct", "{kind: ib_cct, table: exponential, delay_step: 0.5}"}) +
        ", ecn_echo: " + any({"cnp", "ack"}) + ", mtu: " + any({"1000 B", "4096 B"}) +
        ", window: " + any({"0 B", "1 B", "5 KB", "40 KB", "300 KB"}) +
        ", window_scales: " + any({"true", "false"}) + ", reliability: " + reliability +
        ", acknowledge: {every: " + std::to_string(1 << *rc::gen::inRange(0, 17)) +
        "}, retransmission_timeout: 100 s}\nnetwork: {switch: {marker: {kind: red, kmin: 20 KB, kmax: 100 "
        "KB}" +
        (spray ? ", routing: spray" : "") + "}}\n";
    RC_LOG() << yaml;
    PacketFixture f(yaml, *rc::gen::arbitrary<std::uint64_t>());
    const auto hosts = static_cast<std::uint32_t>(f.cluster.gpus.size());
    const int messages = *rc::gen::inRange(1, 40);
    for (int i = 0; i < messages; ++i) {
      f.send(*rc::gen::inRange<std::uint32_t>(1, hosts), 0, *rc::gen::inRange<Bytes>(1, 400'000),
             *rc::gen::inRange<Time>(0, 20 * kMicrosecond), *rc::gen::inRange<std::uint32_t>(0, 2));
    }
    f.loop.run();
    for (const Time sent : f.sent) {
      RC_ASSERT(sent >= 0);
      RC_ASSERT(sent < 100 * kSecond);
    }
    if (!spray) RC_ASSERT(f.network->counters().retransmissions == 0u);
  }));
}

// Losses of data and of ACKs: every message arrives once and its sender learns of it, whatever asks.
TEST(Acknowledge, LossesAreRepairedHoweverRarelyASenderAsks) {
  for (const char* reliability : {"go_back_n", "irn", "{kind: irn, bdp_cap: 0}"}) {
    for (const int every : {1, 16, 256, 65536}) {
      PacketFixture f(
          "topology: {kind: star, hosts: 4, rate: 100 Gbps, delay: 1 us}\n"
          "transport: {congestion_control: none, retransmission_timeout: 200 us, retries: 1000, "
          "acknowledge: {every: " +
          std::to_string(every) + "}, reliability: " + reliability +
          "}\nnetwork: {faults: [{link: host0-switch0, loss: 0.02}]}\n");
      for (std::uint32_t i = 0; i < 30; ++i)
        f.send(0, 1 + i % 3, 1 + 37'000 * static_cast<Bytes>(i), i * kMicrosecond, i % 2);
      f.loop.run();
      EXPECT_EQ(f.delivery_order.size(), 30u) << reliability << every;
      EXPECT_EQ(std::count(f.sent.begin(), f.sent.end(), -1), 0) << reliability << every;
      EXPECT_GT(f.network->counters().lost, 0u);
    }
  }
}

// Its packets take longer than the timeout before the first one asks: nothing was missed, nothing is sent
// again.
TEST(Acknowledge, ASlowSenderThatAsksRarelyDoesNotTimeOut) {
  PacketFixture slow(
      "topology: {kind: star, hosts: 2, rate: 10 Mbps, delay: 1 us}\n"
      "transport: {congestion_control: none, acknowledge: {every: 256}}\n");
  slow.send(0, 1, 400 * 4096);
  slow.loop.run();
  EXPECT_GT(slow.delivered[0], kSecond) << "many times the 67 ms of the timer";
  EXPECT_EQ(slow.network->counters().retransmissions, 0u);
  PacketFixture irn(
      "topology: {kind: star, hosts: 2, rate: 1 Gbps, delay: 1 us}\n"
      "transport: {congestion_control: none, reliability: {kind: irn, bdp_cap: 0}, acknowledge: {every: "
      "256}}\n");
  irn.send(0, 1, 400 * 4096);
  irn.loop.run();
  EXPECT_GT(irn.delivered[0], 10 * kMillisecond) << "many times the 320 us of the timer";
  EXPECT_EQ(irn.network->counters().retransmissions, 0u);
}

// A lost request is missed, and repeated a timeout later: the hundredth packet asks, its message's last.
TEST(Acknowledge, ALostRequestTimesOut) {
  PacketFixture f(
      "topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 1 us}\n"
      "transport: {congestion_control: none, acknowledge: {every: 256}, retransmission_timeout: 1 ms, "
      "retries: 2}\n"
      "network: {faults: [{link: host0->switch0, loss: 1}]}\n");
  f.send(0, 1, 100 * 4096);
  f.loop.run();
  EXPECT_FALSE(f.all_delivered());
  const Time hundredth = transmission_time(4096 + 62 + 16 + 20, 100 * kGbps) +
                         98 * transmission_time(4096 + 62 + 20, 100 * kGbps);
  EXPECT_EQ(f.loop.now(), hundredth + 3 * kMillisecond);
}

// ---- The default

Acknowledging holds(const std::string& yaml) {
  const ConfigNode root =
      parse_config("topology: {kind: star, hosts: 8, rate: 200 Gbps}\n" + yaml, "test.yaml");
  const Cluster cluster = build_cluster(root);
  const ConfigNode* transport = root.find("transport");
  return PacketNetwork::acknowledging(cluster, transport != nullptr ? *transport : ConfigNode());
}

TEST(AcknowledgeDefault, IsTheNicsUnlessCongestionControlOrMarksNeedEveryAck) {
  EXPECT_EQ(holds("host: single_nic\n").every, 1);
  EXPECT_EQ(holds("host: dgx_a100\n").every, 256);
  EXPECT_EQ(holds("host: dgx_a100\n").because, "the host's NIC");
  for (const char* control : {"hpcc", "swift", "timely", "dctcp"}) {
    const Acknowledging a =
        holds(std::string("host: dgx_a100\ntransport: {congestion_control: ") + control + "}\n");
    EXPECT_EQ(a.every, 1) << control;
    EXPECT_EQ(a.because, "congestion control needs every ACK");
  }
  for (const char* control : {"none", "dcqcn", "ib_cct"})
    EXPECT_EQ(holds(std::string("host: dgx_a100\ntransport: {congestion_control: ") + control + "}\n").every,
              256);
  EXPECT_EQ(holds("host: dgx_a100\ntransport: {ecn_echo: ack}\n").because, "marks come back in ACKs");
  const Acknowledging given =
      holds("host: dgx_a100\ntransport: {congestion_control: hpcc, acknowledge: {every: 64}}\n");
  EXPECT_EQ(given.every, 64) << "the user's word counts";
  EXPECT_EQ(given.because, "");
}

TEST(AcknowledgeDefault, DgxHostsSendOneAckFor256Packets) {
  PacketFixture f(
      "topology: {kind: star, hosts: 16, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 2\n"
      "network: {switch: {marker: none}}\n");
  f.send(0, 8, 1000 * 4096);
  f.loop.run();
  EXPECT_EQ(f.at("host1/nic0", "switch0").wire_bytes, 4 * kAckWire);
}

TEST(AcknowledgeDefault, IsShownWithItsReason) {
  const auto shown = [](const std::string& yaml) {
    const ConfigNode root = parse_config(
        "topology: {kind: star, hosts: 8, rate: 200 Gbps}\nhost: dgx_a100\n" + yaml, "test.yaml");
    return resolved_configuration(root, build_cluster(root));
  };
  EXPECT_THAT(shown(""), HasSubstr("every: 256  # default: the host's NIC\n"));
  EXPECT_THAT(shown("transport: {congestion_control: hpcc}\n"),
              HasSubstr("every: 1  # default: congestion control needs every ACK\n"));
  EXPECT_THAT(shown("transport: {acknowledge: {every: 16}}\n"), HasSubstr("every: 16  # test.yaml:3\n"));
  EXPECT_THAT(describe_subject("transport", 200), HasSubstr("dgx_a100 256, single_nic 1"));
}

// ---- Wrong values

std::string refusal(const std::string& transport) {
  try {
    PacketFixture f(std::string(kPair) + "transport: " + transport + "\n");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Acknowledge, OnlyPowersOfTwoAreTaken) {
  EXPECT_EQ(refusal("{acknowledge: {every: 65536}}"), "");
  for (const char* wrong : {"3", "100", "65535"})
    EXPECT_THAT(refusal(std::string("{acknowledge: {every: ") + wrong + "}}"),
                HasSubstr("test.yaml:2:34: transport.acknowledge.every: " + std::string(wrong) +
                          " is no power of two (allowed: 1, 2, 4, ... 65536)"));
  for (const char* wrong : {"0", "-1", "131072"})
    EXPECT_THAT(refusal(std::string("{acknowledge: {every: ") + wrong + "}}"), HasSubstr("1 to 65536"));
  EXPECT_THAT(refusal("{acknowledge: 16}"), HasSubstr("allowed: every"));
}

TEST(Acknowledge, TheOldKeysErrorNamesTheNewOne) {
  EXPECT_THAT(refusal("{ack_every: 16}"), HasSubstr("test.yaml:2:13: transport.ack_every: unknown key "
                                                    "'ack_every': it is `acknowledge: {every: N}` now"));
}

}  // namespace
}  // namespace netsim::acknowledge_test
