// Do messages inside hosts, and to NICs behind PCIe switches, take the time of their links, and all links
// that they may?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "sim/network/path.h"
#include "tests/support/packet_fixture.h"

namespace netsim::host_ways_test {
namespace {

using test::PacketFixture;

const std::string kNoControl = "transport: {congestion_control: none}\nnetwork: {switch: {marker: none}}\n";

PacketFixture fixture(const std::string& host, const std::string& more = "hosts: 1\n") {
  return PacketFixture(kNoControl + "topology: {kind: star, hosts: 64, rate: 100 Gbps, delay: 1 us}\nhost: " +
                       host + "\n" + more);
}

// Pieces of a message over store-and-forward links: the max-plus recurrence of a tandem.
Time tandem(const Graph& graph, const std::vector<PortId>& ports, Bytes message) {
  const Bytes mtu = graph.port(ports.front()).link.mtu;
  std::vector<Time> arrival(static_cast<std::size_t>((message + mtu - 1) / mtu), 0);
  for (const PortId port : ports) {
    const LinkSpec& link = graph.port(port).link;
    Time free = 0;
    for (std::size_t i = 0; i < arrival.size(); ++i) {
      const Bytes bytes = std::min(mtu, message - static_cast<Bytes>(i) * mtu);
      free = std::max(free, arrival[i]) + transmission_time(bytes, link.rate);
      arrival[i] = free + link.delay;
    }
  }
  return arrival.back();
}

struct Inside {
  const char* host;
  std::uint32_t from, to;
  std::size_t links;
};
void PrintTo(const Inside& way, std::ostream* out) { *out << way.host << " " << way.from << "->" << way.to; }
class WaysInside : public ::testing::TestWithParam<Inside> {};

TEST_P(WaysInside, TakeTheTimeOfTheirLinks) {
  const auto [host, from, to, links] = GetParam();
  for (const Bytes bytes : {1LL, 131'072LL, 3'000'000LL}) {
    PacketFixture f = fixture(host);
    const std::vector<PortId> ports = scale_up_path(f.cluster, from, to);
    ASSERT_EQ(ports.size(), links);
    f.send(from, to, bytes);
    f.loop.run();
    EXPECT_EQ(f.delivered[0], tandem(f.cluster.graph, ports, bytes)) << bytes;
    EXPECT_EQ(f.sent[0], f.delivered[0]);
    const auto mtu = f.cluster.graph.port(ports[0]).link.mtu;
    EXPECT_EQ(f.network->counters().packets, static_cast<std::uint64_t>((bytes + mtu - 1) / mtu));
  }
}

INSTANTIATE_TEST_SUITE_P(Hosts, WaysInside,
                         ::testing::Values(Inside{"dgx_1v", 0, 3, 1},         // two NVLinks
                                           Inside{"dgx_1v", 0, 5, 2},         // by way of GPU 4
                                           Inside{"dgx_1", 3, 4, 2},          // by way of GPU 0 or 7
                                           Inside{"full_mesh", 2, 6, 1},      // one xGMI link
                                           Inside{"pcie_server", 0, 1, 2},    // one PCIe switch
                                           Inside{"pcie_server", 0, 2, 4},    // two and a CPU
                                           Inside{"pcie_server", 1, 7, 5}));  // and the other CPU

TEST(WaysInside, OfADgx2PassBothSwitchStagesCutThrough) {
  PacketFixture f = fixture("dgx_2");
  const std::vector<PortId> ports = scale_up_path(f.cluster, 0, 15);
  ASSERT_EQ(ports.size(), 3u);
  const Bytes bytes = 16 * 512 * kKibibyte;
  f.send(0, 15, bytes);
  f.loop.run();
  Time expected = transmission_time(bytes, f.cluster.graph.port(ports[0]).link.rate);
  for (const PortId port : ports) expected += f.cluster.graph.port(port).link.delay;
  EXPECT_NEAR(static_cast<double>(f.delivered[0]), static_cast<double>(expected), 100);  // 1 ps a piece
}

// Sends along the rings of a hybrid cube mesh: each GPU sends to every neighbour by as many links as join
// them. All links are busy from the beginning to the end.
TEST(Dgx1, NeighbourRingsSaturateAllNvlinks) {
  for (const char* host : {"dgx_1", "dgx_1v"}) {
    PacketFixture f = fixture(host);
    const Graph& graph = f.cluster.graph;
    const Bytes bytes = 64 * 512 * kKibibyte;
    const BitRate one = graph.port(scale_up_path(f.cluster, 0, 1)[0]).link.rate;
    for (std::uint32_t from = 0; from < 8; ++from) {
      for (std::uint32_t to = 0; to < 8; ++to) {
        if (from == to || scale_up_path(f.cluster, from, to).size() != 1) continue;
        f.send(from, to, bytes * (graph.port(scale_up_path(f.cluster, from, to)[0]).link.rate / one));
      }
    }
    ASSERT_EQ(f.messages.size(), 32u);
    f.loop.run();
    const Time expected = transmission_time(bytes, one) + 25 * kNanosecond;
    for (const Time delivered : f.delivered)
      EXPECT_NEAR(static_cast<double>(delivered), static_cast<double>(expected), 200) << host;
    for (PortId port = 0; port < graph.port_count(); ++port) {
      if (graph.port(port).link.kind == LinkKind::nvlink) {
        EXPECT_NEAR(static_cast<double>(f.network->port_counters(port).busy),
                    static_cast<double>(transmission_time(bytes, one)), 200);
      }
    }
  }
}

// Two NICs behind one PCIe link: queue pairs take them in turns, and both wires are busy.
TEST(SharedNics, OfOneGpuAreUsedByItsQueuePairs) {
  PacketFixture f = fixture("storage_server", "hosts: 2\n");
  const Bytes bytes = 5'000'000;
  for (std::uint32_t channel = 0; channel < 4; ++channel) f.send(0, 1, bytes, 0, channel);
  f.loop.run();
  ASSERT_TRUE(f.all_delivered());
  const Bytes sent = f.at("host0/nic0", "switch0").wire_bytes;
  EXPECT_EQ(sent, f.at("host0/nic1", "switch0").wire_bytes);
  EXPECT_EQ(sent, f.at("switch0", "host1/nic0").wire_bytes);
  EXPECT_EQ(sent, f.at("switch0", "host1/nic1").wire_bytes);
  const Time wire = transmission_time(sent, 100 * kGbps);
  const Time last = *std::max_element(f.delivered.begin(), f.delivered.end());
  EXPECT_GE(last, wire);
  EXPECT_LT(last, wire + 5 * kMicrosecond);
}

constexpr const char* kTwoRails =
    "topology: {kind: rail_only, hosts_per_leaf: 2, units: 1, spines: 0, rate: 100 Gbps, delay: 1 us}\n"
    "host: dgx_a100\n";

// Between rails that nothing joins a message leaves its host by the NIC of the receiver's rail, over NVLink
// and the GPU there.
TEST(SharedNics, OfAnotherRailAreReachedOverNvlink) {
  PacketFixture f(kNoControl + kTwoRails);
  f.send(0, 9, 4096);
  f.loop.run();
  const auto [from, to] = f.cluster.nic_ends(0, 9, 0);
  EXPECT_EQ(from.nic, f.cluster.gpus[1].nic);
  EXPECT_EQ(to.nic, f.cluster.gpus[9].nic);
  ASSERT_EQ(from.ports.size(), 3u);  // into the NVSwitch, to GPU 1, to its NIC
  Time expected = 2 * (transmission_time(4096 + 78 + 20, 100 * kGbps) + kMicrosecond);
  for (const PortId port : {from.ports[0], from.ports[1], from.ports[2], to.ports[0]}) {
    const LinkSpec& link = f.cluster.graph.port(port).link;
    expected += link.delay + (link.cut_through ? 0 : transmission_time(4096 + 78, link.rate));
  }
  EXPECT_EQ(f.delivered[0], expected);
}

TEST(SharedNics, OfAllRailsCarryAnAllToAll) {
  PacketFixture f(kNoControl + kTwoRails);
  for (std::uint32_t from = 0; from < 16; ++from) {
    for (std::uint32_t to = 0; to < 16; ++to) {
      if (from != to) f.send(from, to, 100'000);
    }
  }
  f.loop.run();
  EXPECT_TRUE(f.all_delivered());
  for (std::uint32_t gpu = 0; gpu < 16; ++gpu) {
    const PortId into_fabric = f.cluster.graph.ports_of(f.cluster.gpus[gpu].nic).back();
    EXPECT_EQ(f.network->port_counters(into_fabric).data_packets, 8u * 25u) << gpu;  // as many on each rail
  }
}

// One packet from a GPU to one of another host, over all the links between.
TEST(SharedNics, BehindPcieSwitchesTakeTheTimeOfTheirLinks) {
  PacketFixture f = fixture("pcie_server", "hosts: 2\n");
  f.send(0, 13, 4096);
  f.loop.run();
  const Graph& graph = f.cluster.graph;
  const auto [from, to] = f.cluster.nic_ends(0, 13, 0);
  ASSERT_EQ(from.ports.size(), 2u);
  ASSERT_EQ(to.ports.size(), 2u);
  Time expected = 2 * (transmission_time(4096 + 78 + 20, 100 * kGbps) + kMicrosecond);
  for (const auto* ports : {&from.ports, &to.ports}) {
    for (const PortId port : *ports)
      expected += transmission_time(4096 + 78, graph.port(port).link.rate) + graph.port(port).link.delay;
  }
  EXPECT_EQ(f.delivered[0], expected);
}

// GPUs that share a NIC, a GPU that sends by PCIe and by NIC at once: everything arrives.
TEST(SharedNics, AreSharedWithWhatGoesOverPcie) {
  PacketFixture f = fixture("pcie_server", "hosts: 3\n");
  for (std::uint32_t from = 0; from < 24; ++from) {
    for (std::uint32_t to = 0; to < 24; ++to) {
      if (from != to) f.send(from, to, 300'000, 0, from);
    }
  }
  f.loop.run();
  EXPECT_TRUE(f.all_delivered());
  EXPECT_EQ(f.network->counters().bytes_delivered, Bytes{24} * 16 * 300'000);
}

const std::string kRack =
    "fabrics:\n  rack: {kind: nvl_rack, racks: 2}\n"
    "  scale_out: {kind: star, hosts: 144, rate: 400 Gbps, delay: 1 us}\nhost: gb200\n";

TEST(RoutesInNvlRack, CarriesMessagesBetweenHostsAsNvlinkDoes) {
  PacketFixture f(kNoControl + kRack + "hosts: 36\n");
  const Bytes bytes = 36 * 512 * kKibibyte;
  f.send(0, 71, bytes);   // another host of the rack
  f.send(1, 2, bytes);    // another GPU of the host
  f.send(3, 72, 10'000);  // another rack
  f.loop.run();
  const std::vector<PortId> ports = scale_up_path(f.cluster, 0, 71);
  ASSERT_EQ(ports.size(), 2u);
  Time expected = transmission_time(bytes, f.cluster.graph.port(ports[0]).link.rate);
  for (const PortId port : ports) expected += f.cluster.graph.port(port).link.delay;
  EXPECT_NEAR(static_cast<double>(f.delivered[0]), static_cast<double>(expected), 100);
  EXPECT_EQ(f.delivered[0], f.delivered[1]);
  EXPECT_EQ(f.network->reach(0, 71), Reach::scale_up);
  EXPECT_EQ(f.network->reach(3, 72), Reach::scale_out);
  EXPECT_EQ(f.flows.size(), 1u);
}

TEST(Reach, TellsNvlinkFromPcie) {
  PacketFixture f = fixture("pcie_server", "hosts: 2\n");
  EXPECT_EQ(f.network->reach(0, 7), Reach::pcie);
  EXPECT_EQ(f.network->reach(0, 8), Reach::scale_out);
  EXPECT_EQ(fixture("dgx_1v").network->reach(0, 7), Reach::scale_up);
}

// Chips of one board have nothing but the fabric between them.
TEST(Reach, IsTheFabricBetweenChipsOfABoard) {
  PacketFixture f = fixture("tpu_v4");
  EXPECT_EQ(f.network->reach(0, 1), Reach::scale_out);
  f.send(0, 1, 100'000);
  f.loop.run();
  EXPECT_TRUE(f.all_delivered());
}

TEST(Acknowledging, GoesByTheSendersHost) {
  PacketFixture f(kNoControl + "topology: {kind: star, hosts: 9, rate: 100 Gbps, delay: 1 us}\n" +
                  "hosts: [{kind: dgx_a100, count: 1}, {kind: single_nic, count: 1}]\n");
  const Bytes bytes = 100 * 4096;
  f.send(0, 8, bytes);
  f.loop.run();
  const Bytes seldom = f.at("host1", "switch0").wire_bytes;
  f.send(8, 0, bytes, f.loop.now() + kMicrosecond);
  f.loop.run();
  const Bytes each = f.at("host0/nic0", "switch0").wire_bytes - (bytes + 100 * 82 + 16);
  EXPECT_EQ(seldom, 86);      // of the last packet
  EXPECT_EQ(each, 100 * 86);  // of every packet
}

}  // namespace
}  // namespace netsim::host_ways_test
