// Do packets take exactly the time that their sizes, rates and delays say? Closed forms, to the picosecond.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/packet_fixture.h"

namespace netsim::exact_test {
namespace {

using test::PacketFixture;

constexpr const char* kNoControl =
    "transport: {congestion_control: none}\nnetwork: {switch: {marker: none}}\n";

// Wire sizes of a message's packets: payload + 62 B headers (+ 16 B in the first) + 20 B preamble and gap.
std::vector<Bytes> wire_sizes(Bytes message, Bytes mtu) {
  std::vector<Bytes> sizes;
  for (Bytes at = 0; at < message; at += mtu)
    sizes.push_back(std::min(mtu, message - at) + 82 + (at == 0 ? 16 : 0));
  return sizes;
}

// Completion at the end of a line of `hops` store-and-forward links: the max-plus recurrence of a tandem of
// FIFOs.
Time tandem(const std::vector<Bytes>& sizes, int hops, BitRate rate, Time delay) {
  std::vector<Time> arrival(sizes.size(), 0);
  for (int hop = 0; hop < hops; ++hop) {
    Time free = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      free = std::max(free, arrival[i]) + transmission_time(sizes[i], rate);
      arrival[i] = free + delay;
    }
  }
  return arrival.back();
}

class OneFlow : public ::testing::TestWithParam<std::tuple<int, Bytes>> {};

TEST_P(OneFlow, OverStoreAndForwardHops) {
  const auto [switches, bytes] = GetParam();
  PacketFixture f(std::string(kNoControl) + "topology: {kind: switch_line, switches: " +
                  std::to_string(switches) + ", rate: 100 Gbps, delay: 1 us}\n");
  f.send(0, 1, bytes);
  f.loop.run();
  EXPECT_EQ(f.delivered[0], tandem(wire_sizes(bytes, 4096), switches + 1, 100 * kGbps, kMicrosecond));
  EXPECT_GT(f.sent[0], f.delivered[0]);
}

INSTANTIATE_TEST_SUITE_P(Hops, OneFlow,
                         ::testing::Combine(::testing::Values(1, 2, 3, 5, 8),
                                            ::testing::Values(1, 4096, 4097, 10'000, 1'000'000)));

TEST(ExactTimes, OneFlowAtARateThatDoesNotDivide) {
  PacketFixture f(std::string(kNoControl) +
                  "topology: {kind: switch_line, switches: 2, rate: 37 Gbps, delay: 1 us}\n");
  f.send(0, 1, 100'000);
  f.loop.run();
  EXPECT_EQ(f.delivered[0], tandem(wire_sizes(100'000, 4096), 3, 37 * kGbps, kMicrosecond));
}

class Incast : public ::testing::TestWithParam<int> {};

// All first packets reach the switch together; from then on the receiver's link never rests.
TEST_P(Incast, DrainsAtLineRate) {
  const int n = GetParam();
  const Bytes bytes = 500'000;
  PacketFixture f(std::string(kNoControl) + "topology: {kind: star, hosts: " + std::to_string(n + 1) +
                  ", rate: 100 Gbps, delay: 1 us}\n");
  for (int i = 0; i < n; ++i) f.send(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(n), bytes);
  f.loop.run();
  Time total = 0;
  for (Bytes size : wire_sizes(bytes, 4096)) total += n * transmission_time(size, 100 * kGbps);
  const Time first = transmission_time(wire_sizes(bytes, 4096)[0], 100 * kGbps) + kMicrosecond;
  EXPECT_EQ(*std::max_element(f.delivered.begin(), f.delivered.end()), first + total + kMicrosecond);
  EXPECT_EQ(f.network->counters().drops, 0u);
}

INSTANTIATE_TEST_SUITE_P(Senders, Incast, ::testing::Values(1, 2, 8, 31));

// ACKs come back one round trip later: last data at the receiver + ACK over the same links.
TEST(ExactTimes, TheSenderKnowsWhenTheLastAckIsBack) {
  PacketFixture f(std::string(kNoControl) +
                  "topology: {kind: switch_line, switches: 3, rate: 100 Gbps, delay: 1 us}\n");
  f.send(0, 1, 4096);
  f.loop.run();
  EXPECT_EQ(f.sent[0] - f.delivered[0], 4 * (transmission_time(86, 100 * kGbps) + kMicrosecond));
}

// A message over NVLink: cut into pieces, the switch stage passes them on one latency after they started.
TEST(ExactTimes, NvlinkPiecesPassTheSwitchCutThrough) {
  for (const char* piece : {"64 KiB", "256 KiB", "1 MiB", "4 MiB"}) {
    PacketFixture f(std::string(kNoControl) + "topology: {kind: star, hosts: 8, rate: 200 Gbps}\nhosts: 1\n" +
                    "host: {kind: dgx_a100, nvlink_piece: " + piece + "}\n");
    const Bytes bytes = 6'291'456;
    f.send(0, 5, bytes);
    f.loop.run();
    const PortSpec up = f.cluster.graph.port(f.cluster.graph.ports_of(f.cluster.gpus[0].node)[0]);
    ASSERT_EQ(up.link.kind, LinkKind::nvlink);
    PortSpec down{};
    for (PortId port : f.cluster.graph.ports_of(up.peer_node)) {
      if (f.cluster.graph.port(port).peer_node == f.cluster.gpus[5].node) down = f.cluster.graph.port(port);
    }
    const Time expected = up.link.delay + down.link.delay + transmission_time(bytes, up.link.rate);
    EXPECT_NEAR(static_cast<double>(f.delivered[0]), static_cast<double>(expected), 100)
        << piece;  // 1 ps a piece
  }
}

// GPU to GPU of another host: over PCIe into the NIC, the fabric, PCIe out of the NIC. One packet, so no
// pipelining.
TEST(ExactTimes, OnePacketBetweenDgxHosts) {
  PacketFixture f(std::string(kNoControl) +
                  "topology: {kind: star, hosts: 16, rate: 200 Gbps, delay: 1 us}\nhosts: 2\n" +
                  "host: {kind: dgx_a100}\n");
  f.send(3, 11, 4096);
  f.loop.run();
  const auto& graph = f.cluster.graph;
  PortSpec pcie{};
  for (PortId port : graph.ports_of(f.cluster.gpus[3].node)) {
    if (graph.port(port).link.kind == LinkKind::pcie) pcie = graph.port(port);
  }
  const Bytes counted = 4096 + 78;
  const Time expected =
      2 * (transmission_time(counted + pcie.link.overhead, pcie.link.rate) + pcie.link.delay) +
      2 * (transmission_time(counted + 20, 200 * kGbps) + kMicrosecond);
  EXPECT_EQ(f.delivered[0], expected);
}

// PCIe is faster than the wire: a long message runs at the wire's rate although it is fetched packet by
// packet.
TEST(ExactTimes, PcieFetchKeepsTheWireBusy) {
  PacketFixture f(std::string(kNoControl) +
                  "topology: {kind: star, hosts: 16, rate: 200 Gbps, delay: 1 us}\nhosts: 2\n" +
                  "host: {kind: dgx_a100}\n");
  const Bytes bytes = 10'000'000;
  f.send(0, 8, bytes);
  f.loop.run();
  Time wire = 0;
  for (Bytes size : wire_sizes(bytes, 4096)) wire += transmission_time(size, 200 * kGbps);
  EXPECT_GT(f.delivered[0], wire);
  EXPECT_LT(f.delivered[0], wire + 5 * kMicrosecond);
}

}  // namespace
}  // namespace netsim::exact_test
