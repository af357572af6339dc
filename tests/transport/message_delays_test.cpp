// Is the time of a message divided among the ports where it was spent, to the picosecond? Closed forms where
// there are any; else what must hold of every message.
#include "sim/transport/message_delays.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/packet_fixture.h"
#include "tests/support/star.h"

namespace netsim::message_delays_test {
namespace {

using test::PacketFixture;

constexpr BitRate kRate = 100 * kGbps;
// No pauses, no marks.
constexpr const char* kRoomy = "switch: {marker: none, buffer: 64 MB, alpha: 16}";

struct Told {
  Time propagation = -1, transmission = 0, queueing = 0, paused = 0;
  std::vector<PortDelay> ports;
};

struct Traced : PacketFixture {
  explicit Traced(const std::string& yaml) : PacketFixture(yaml) { network->tell_delays(); }
  void message_delivered(const Delivery& delivery) override {
    PacketFixture::message_delivered(delivery);
    told.resize(messages.size());
    Told& t = told[delivery.message.tag];
    ASSERT_NE(delivery.delays, nullptr);
    const MessageDelays delays = delivery.delays->tell();
    t.propagation = delays.propagation;
    for (const PortDelay& delay : delays.ports) {
      t.ports.push_back(delay);
      t.transmission += delay.transmission;
      t.queueing += delay.queueing;
      t.paused += delay.paused;
    }
  }
  const FlowRecord& flow(std::size_t message) const {
    return *std::find_if(flows.begin(), flows.end(),
                         [message](const FlowRecord& f) { return f.message.tag == message; });
  }
  Time took(std::size_t message) const { return flow(message).end - flow(message).start; }
  // Returns how long the message waited at the sender, for which no port accounts.
  Time at_sender(std::size_t message) const {
    const Told& t = told[message];
    return took(message) - t.propagation - t.transmission - t.queueing - t.paused;
  }
  PortDelay delay(std::size_t message, const std::string& from, const std::string& to) const {
    for (const PortDelay& delay : told[message].ports) {
      if (delay.port == port(from, to)) return delay;
    }
    return {};
  }
  std::vector<Told> told;  // by message
};

class Alone : public ::testing::TestWithParam<Bytes> {};

// All that is not its first byte's way is transmission at the slowest port, however its packets wait for each
// other.
TEST_P(Alone, NothingWaits) {
  for (const char* yaml :
       {"topology: {kind: switch_line, switches: 3, rate: 100 Gbps}\n",
        "topology: {kind: custom, switches: [s, t, u], links: [{from: host0, to: s}, {from: s, to: t, rate: "
        "25 Gbps}, {from: t, to: u, rate: 25 Gbps}, {from: u, to: host1}]}\n",
        "topology: {kind: star, hosts: 16, rate: 400 Gbps}\nhost: dgx_a100\n",
        "topology: {kind: star, hosts: 2, rate: 100 Gbps}\nnetwork: {switch: {forwarding: cut_through}}\n"}) {
    Traced f(std::string(yaml) + "transport: {congestion_control: none}\n");
    const std::uint32_t last = f.network->gpu_count() - 1;
    f.send(0, last, GetParam());
    f.loop.run();
    const Told& told = f.told[0];
    EXPECT_EQ(f.took(0), f.flow(0).ideal) << yaml;
    EXPECT_EQ(told.propagation + told.transmission, f.took(0)) << yaml;
    ASSERT_EQ(told.ports.size(), 1U) << yaml;
    const PortId slowest = told.ports[0].port;
    for (PortId port = 0; port < f.cluster.graph.port_count(); ++port) {
      if (f.network->port_counters(port).data_packets == 0) continue;
      EXPECT_GE(f.cluster.graph.port(port).link.rate, f.cluster.graph.port(slowest).link.rate);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Alone, ::testing::Values(1, 4096, 4097, 10'000, 1'000'000));

class IncastDelays : public ::testing::TestWithParam<int> {};

// The receiver's link is never idle from the first packet on. A message waits at the switch's port to the
// receiver for all of its additional time.
TEST_P(IncastDelays, AreQueueingAtTheReceiversPort) {
  const int n = GetParam();
  const Bytes bytes = 500'000;
  Traced f(test::star(n + 1, kRoomy));
  const auto receiver = static_cast<std::uint32_t>(n);
  for (std::uint32_t i = 0; i < receiver; ++i) f.send(i, receiver, bytes);
  f.loop.run();
  ASSERT_EQ(f.network->counters().pfc_pauses, 0U);
  Time alone = 0, last = 0, all = 0;
  for (Bytes at = 0; at < bytes; at += 4096) {
    const Bytes packet = std::min<Bytes>(4096, bytes - at) + 82 + (at == 0 ? 16 : 0);
    last = transmission_time(packet, kRate);
    alone += last;
  }
  all = n * alone;  // the receiver's link is busy with it
  const Time first = transmission_time(4096 + 98, kRate);
  Time longest = 0;
  for (std::uint32_t i = 0; i < receiver; ++i) {
    const PortDelay at_switch = f.delay(i, "switch0", "host" + std::to_string(n));
    EXPECT_EQ(at_switch.queueing, f.took(i) - f.flow(i).ideal);
    EXPECT_EQ(at_switch.paused, 0);
    EXPECT_EQ(f.told[i].queueing, at_switch.queueing);
    EXPECT_EQ(f.at_sender(i), 0);
    longest = std::max(longest, at_switch.queueing);
  }
  // The last one ends when all have been sent, a first packet and two delays after the beginning.
  EXPECT_EQ(longest, first + all + 2 * kMicrosecond - f.flow(0).ideal);
}

INSTANTIATE_TEST_SUITE_P(Senders, IncastDelays, ::testing::Values(1, 2, 8));

// Four packets meet at leaf0's port to the spine and leave it one after the other. One from leaf1 comes with
// the first of them. From then on the spine's port to leaf2 is one packet behind.
TEST(MessageDelays, AreTwoQueuesInARow) {
  std::string links;
  const auto link = [&links](const std::string& from, const std::string& to) {
    links += (links.empty() ? "" : ", ") + ("{from: " + from + ", to: " + to + "}");
  };
  for (int host = 0; host < 10; ++host) {
    const char* leaf = host < 4 ? "leaf0" : host == 4 ? "leaf1" : "leaf2";
    link("host" + std::to_string(host), leaf);
  }
  for (int leaf = 0; leaf < 3; ++leaf) link("leaf" + std::to_string(leaf), "spine");
  Traced f("topology: {kind: custom, rate: 100 Gbps, switches: [leaf0, leaf1, leaf2, spine], links: [" +
           links + "]}\ntransport: {congestion_control: none}\nnetwork: {" + kRoomy + "}\n");
  for (std::uint32_t host = 0; host < 5; ++host) f.send(host, host + 5, 4096);
  f.loop.run();
  const Time packet = transmission_time(4096 + 98, kRate);
  std::vector<Time> leaf, spine;
  for (std::uint32_t i = 0; i < 5; ++i) {
    if (i < 4) leaf.push_back(f.delay(i, "leaf0", "spine").queueing);
    spine.push_back(f.delay(i, "spine", "leaf2").queueing);
    EXPECT_EQ(f.at_sender(i), 0);
  }
  std::sort(leaf.begin(), leaf.end());
  std::sort(spine.begin(), spine.end());
  EXPECT_EQ(leaf, (std::vector<Time>{0, packet, 2 * packet, 3 * packet}));
  EXPECT_EQ(spine, (std::vector<Time>{0, packet, packet, packet, packet}));
}

// One message after the other on one NIC: the second waits for the first, at its sender.
TEST(MessageDelays, OfAMessageBehindAnotherAreItsSenders) {
  Traced f(test::star(3, kRoomy));
  f.send(0, 1, 1'000'000);
  f.send(0, 2, 4096, 100);
  f.loop.run();
  EXPECT_GT(f.took(1), f.flow(1).ideal);
  EXPECT_EQ(f.at_sender(1), f.took(1) - f.flow(1).ideal);
}

// Two senders fill the buffer of a switch, which pauses them. A packet to another host is handed over during
// a pause. It waits for the rest of the pause, according to the port's own counter, and then for its turn.
TEST(MessageDelays, OfAPauseAreThePortsPause) {
  const std::string yaml = test::star(4, "switch: {marker: none, buffer: 400 KB}");
  const auto start = [](Traced& f) {
    f.send(0, 2, 2'000'000);
    f.send(1, 2, 2'000'000);
  };
  const auto paused = [](const Traced& f) { return f.at("host0", "switch0").paused; };
  Time at = 0;  // a microsecond before which the port was paused, and after which it is
  {
    Traced f(yaml);
    start(f);
    std::vector<Time> held(400);
    for (std::size_t i = 0; i < held.size(); ++i)
      f.loop.call_at(static_cast<Time>(i) * kMicrosecond, [&, i] { held[i] = paused(f); });
    f.loop.run();
    for (std::size_t i = 1; at == 0 && i + 1 < held.size(); ++i) {
      if (held[i + 1] - held[i - 1] == 2 * kMicrosecond) at = static_cast<Time>(i) * kMicrosecond;
    }
    ASSERT_GT(at, 0) << "no pause was long enough";
  }
  Time made = 0, before = 0, after = 0;
  PortDelay wire;
  Time waited = 0, at_sender = 0;
  {
    Traced f(yaml);
    start(f);
    f.send(0, 3, 1000, at);
    f.loop.call_at(at, [&] { before = paused(f); });
    f.loop.run();
    made = f.flow(2).end - f.flow(2).ideal;
    wire = f.delay(2, "host0", "switch0");
    waited = f.took(2) - f.flow(2).ideal;
    at_sender = f.at_sender(2);
  }
  Traced f(yaml);
  start(f);
  f.send(0, 3, 1000, at);
  f.loop.call_at(made, [&] { after = paused(f); });
  f.loop.run();
  EXPECT_GE(wire.paused, kMicrosecond);
  EXPECT_EQ(wire.paused, after - before);
  EXPECT_EQ(wire.queueing, 0);
  EXPECT_EQ(at_sender, waited - wire.paused);
}

// Time that a sender's port waits for credits counts as paused time of that port.
TEST(MessageDelays, OfMissingCreditsAreTheirPorts) {
  Traced f(test::star(3, "switch: {marker: none, flow_control: credits}"));
  f.send(0, 2, 2'000'000);
  f.send(1, 2, 2'000'000);
  f.loop.run();
  for (std::uint32_t i = 0; i < 2; ++i) {
    const PortDelay wire = f.delay(i, "host" + std::to_string(i), "switch0");
    EXPECT_GT(wire.paused, 0);
    EXPECT_LE(wire.paused, f.at("host" + std::to_string(i), "switch0").credit_stalled);
    EXPECT_EQ(wire.queueing, 0);
    EXPECT_EQ(f.at_sender(i), 0);
  }
}

// One message a host, no congestion control, and no ACK or credit frame leaves by a sender's port: nothing
// waits there but for pauses. All parts are there, none is negative, and no port is charged that sent no
// data.
TEST(MessageDelays, AreAllAtPortsWhereNothingWaitsAtTheSender) {
  EXPECT_TRUE(rc::check([] {
    const bool pcie = *rc::gen::arbitrary<bool>();
    const std::string buffer = *rc::gen::element<std::string>("500 KB", "2 MB", "32 MB");
    const std::string control = *rc::gen::element<std::string>("pfc", "credits");
    const std::string buffers = control == "pfc" ? "buffer: " + buffer : "flow_control: credits";
    Traced f(std::string("topology: {kind: fat_tree, k: 4, rate: 100 Gbps}\n") +
             (pcie ? "host: dgx_a100\n" : "host: single_nic\n") +
             "transport: {congestion_control: none}\nnetwork: {switch: {marker: none, " + buffers + "}}\n");
    for (std::uint32_t host = 0; host < 8; ++host) {
      const auto to = *rc::gen::inRange<std::uint32_t>(8, 16);
      f.send(host, to, *rc::gen::inRange<Bytes>(1, 300'000), *rc::gen::inRange<Time>(0, 2) * kMicrosecond);
    }
    f.loop.run();
    RC_ASSERT(f.network->counters().drops == 0U);
    for (std::size_t i = 0; i < f.told.size(); ++i) {
      if (!pcie && control == "pfc") RC_ASSERT(f.at_sender(i) == 0);
      RC_ASSERT(f.at_sender(i) >= 0);
      RC_ASSERT(f.told[i].propagation > 0);
      for (const PortDelay& delay : f.told[i].ports) {
        RC_ASSERT(delay.transmission >= 0 && delay.queueing >= 0 && delay.paused >= 0);
        RC_ASSERT(f.network->port_counters(delay.port).data_packets > 0);
      }
    }
  }));
}

// If packets overtake each other or are lost, the parts add up to no more than the whole. The idle path has
// the highest rates of the run (docs/reference/results.md, the ideal time of a message). So the additional
// time of a slower link is no propagation. The message takes longer, and its parts do not cover that time.
TEST(MessageDelays, CountASlowerLinkBesideTheIdleWay) {
  Traced f(
      "topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 1 us}\n"
      "transport: {congestion_control: none}\n"
      "network: {switch: {forwarding: cut_through}, faults: [{link: host0-switch0, rate: 50 Gbps, at: 1 "
      "ms}]}\n");
  for (const Time time : {Time{0}, 2 * kMillisecond}) f.send(0, 1, 10'000, time);
  f.loop.run();
  EXPECT_EQ(f.told[1].propagation, f.told[0].propagation);
  EXPECT_EQ(f.told[1].transmission, f.told[0].transmission);
  EXPECT_EQ(f.at_sender(0), 0);
  EXPECT_GT(f.took(1), f.took(0));
  EXPECT_EQ(f.at_sender(1) + f.told[1].queueing, f.took(1) - f.took(0));
}

TEST(MessageDelays, AddUpWherePacketsAreLost) {
  for (const char* reliability : {"go_back_n", "irn"}) {
    Traced f(
        "topology: {kind: fat_tree, k: 4, rate: 100 Gbps}\nhost: single_nic\n"
        "transport: {congestion_control: dcqcn, reliability: " +
        std::string(reliability) +
        "}\nnetwork: {switch: {routing: " + (std::string(reliability) == "irn" ? "spray" : "ecmp") +
        "}, faults: [{link: agg0-core0, loss: 1e-2}, {link: edge0-agg0, loss: 1e-2}]}\n");
    for (std::uint32_t host = 0; host < 16; ++host)
      f.send(host, (host + 6) % 16, 300'000 + static_cast<Bytes>(host));
    f.loop.run();
    ASSERT_TRUE(f.all_delivered()) << reliability;
    ASSERT_GT(f.network->counters().retransmissions, 0U);
    for (std::size_t i = 0; i < f.told.size(); ++i) EXPECT_GE(f.at_sender(i), 0) << reliability;
  }
}

}  // namespace
}  // namespace netsim::message_delays_test
