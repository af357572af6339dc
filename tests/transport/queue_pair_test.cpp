// Queue pairs: framing, acknowledgements, pacing, arbitration, go-back-N.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/packet_fixture.h"

namespace netsim::queue_pair_test {
namespace {

using test::PacketFixture;

constexpr const char* kStar = "topology: {kind: star, hosts: 4, rate: 100 Gbps, delay: 1 us}\n";
constexpr const char* kQuiet = "network: {switch: {marker: none}}\n";

// Every byte on the wire: data 4096 + 62 + 20 (+ 16 first), one ACK of 66 + 20 for a fixed number of packets,
// and the last.
TEST(QueuePair, WireBytesAreTheFramingsAndTheAcks) {
  for (const int every : {1, 4, 16, 1024}) {
    PacketFixture f(std::string(kStar) + kQuiet +
                    "transport: {congestion_control: none, acknowledge: {every: " + std::to_string(every) +
                    "}}\n");
    const int packets = 100;
    f.send(0, 1, packets * 4096);
    f.loop.run();
    const Bytes data = packets * (4096 + 62 + 20) + 16;
    const Bytes acks = packets / every + (packets % every != 0 ? 1 : 0);
    for (PortId port = 0; port < f.cluster.graph.port_count(); ++port) {
      const PortSpec& spec = f.cluster.graph.port(port);
      const Bytes wire = f.network->port_counters(port).wire_bytes;
      const bool forward = spec.node == f.cluster.nics[0].nic || spec.peer_node == f.cluster.nics[1].nic;
      const bool back = spec.node == f.cluster.nics[1].nic || spec.peer_node == f.cluster.nics[0].nic;
      EXPECT_EQ(wire, forward ? data : back ? acks * 86 : 0);
    }
    const NetworkCounters c = f.network->counters();
    EXPECT_EQ(c.packets, 100u);
    EXPECT_EQ(c.packet_hops[0], 200u) << "ACKs are not counted";
  }
}

// Two queue pairs of one NIC take turns, packet by packet; a third that starts later joins the round.
TEST(QueuePair, TheWireIsSharedRoundRobin) {
  PacketFixture f(std::string(kStar) + kQuiet + "transport: {congestion_control: none}\n");
  const Bytes bytes = 1'000 * 4096;
  f.send(0, 1, bytes);
  f.send(0, 2, bytes);
  f.send(0, 3, bytes / 2, 10 * kMicrosecond);
  f.loop.run();
  EXPECT_NEAR(static_cast<double>(f.delivered[0]), static_cast<double>(f.delivered[1]), 2 * 334'240);
  const auto wire = static_cast<double>(transmission_time(4178, 100 * kGbps));
  EXPECT_NEAR(static_cast<double>(f.delivered[2]), 1500 * wire, 70 * wire)
      << "a third of the wire from 10 us on";
}

// Queue pairs of GPUs that share a NIC behind PCIe also take turns. Four messages end within a round of each
// other, and the NIC is as busy as with one.
TEST(QueuePair, GpusThatShareANicTakeTurns) {
  PacketFixture f(
      "topology: {kind: star, hosts: 2, rate: 10 Gbps}\nhosts: 2\n"
      "host: {kind: pcie_server, gpus: 4, nics: 1, cpus: 1, switches: 1}\n" +
      std::string(kQuiet) + "transport: {congestion_control: none}\n");
  constexpr std::uint32_t kPackets = 500;
  for (std::uint32_t gpu = 0; gpu < 4; ++gpu) f.send(gpu, 4 + gpu, kPackets * 4096);
  f.loop.run();
  const Time wire = transmission_time(4178, 10 * kGbps);
  for (std::uint32_t message = 0; message < 4; ++message) {
    EXPECT_GE(f.delivered[message], (4 * kPackets - 3) * wire) << message;
    EXPECT_LE(f.delivered[message], (4 * kPackets + 10) * wire) << message;
  }
}

// Messages of one queue pair keep their order even when a later one is tiny; other queue pairs overtake.
TEST(QueuePair, OrderWithinAndOvertakingBetweenQueuePairs) {
  PacketFixture f(std::string(kStar) + kQuiet + "transport: {congestion_control: none, queue_pairs: 2}\n");
  f.send(0, 1, 1'000'000, 0, 0);
  f.send(0, 1, 1, 0, 2);  // channel 2 is queue pair 0 again
  f.send(0, 1, 1, 0, 1);
  f.loop.run();
  EXPECT_EQ(f.delivery_order, (std::vector<std::uint64_t>{2, 0, 1}));
}

// Congestion: marks make CNPs, CNPs make the senders slow down, and with them the queue stays short of the
// pauses.
TEST(QueuePair, DcqcnKeepsTheQueueShorterThanPfcAlone) {
  Bytes queue[2];
  for (const int with : {0, 1}) {
    PacketFixture f(
        "topology: {kind: star, hosts: 9, rate: 100 Gbps, delay: 1 us}\ntransport: {congestion_control: " +
        std::string(with != 0 ? "dcqcn" : "none") + "}\n");
    for (std::uint32_t i = 0; i < 8; ++i) f.send(i, 8, 20'000'000);
    f.loop.run();
    const NetworkCounters c = f.network->counters();
    queue[with] = c.max_queue;
    EXPECT_EQ(c.drops, 0u);
    EXPECT_EQ(c.cnps > 0, with != 0);
    EXPECT_EQ(c.pfc_pauses == 0, with != 0);
  }
  EXPECT_LT(queue[1], queue[0]);
}

// A receiver that never answers (a lossy, tiny buffer drops all it sends) cannot be built from YAML. But a
// lossy switch drops tails of messages, which only the retransmission timer can repair.
TEST(QueuePair, LostTailsAreRepairedByTheTimer) {
  PacketFixture f(
      "topology: {kind: star, hosts: 9, rate: 100 Gbps, delay: 1 us}\n"
      "network: {switch: {marker: none, buffer: 40 KB, flow_control: none}}\n"
      "transport: {congestion_control: none, retransmission_timeout: 100 us, retries: 1000}\n");
  for (std::uint32_t i = 0; i < 8; ++i) f.send(i, 8, 3 * 4096);
  f.loop.run();
  EXPECT_GT(f.network->counters().drops, 0u);
  for (Time delivered : f.delivered) EXPECT_GE(delivered, 0);
  EXPECT_GT(*std::max_element(f.delivered.begin(), f.delivered.end()), 100 * kMicrosecond);
}

TEST(QueuePair, UnknownKeysAndValuesOutOfRangeAreRefused) {
  EXPECT_THROW(PacketFixture(std::string(kStar) + "transport: {acknowlege: {every: 2}}\n"), ConfigError);
  EXPECT_THROW(PacketFixture(std::string(kStar) + "transport: {acknowledge: {every: 0}}\n"), ConfigError);
  EXPECT_THROW(PacketFixture(std::string(kStar) + "transport: {mtu: 4096 Gbps}\n"), ConfigError);
  EXPECT_THROW(PacketFixture(std::string(kStar) + "transport: {congestion_control: dcqn}\n"), ConfigError);
  EXPECT_THROW(PacketFixture(std::string(kStar) + "network: {switch: {marker: rad}}\n"), ConfigError);
}

}  // namespace
}  // namespace netsim::queue_pair_test
