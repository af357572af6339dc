// Do rings in hosts without NVSwitches use all NVLinks, each by its rate?
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "tests/collectives/packet_collectives.h"

namespace netsim::link_rings_test {
namespace {

using test::every;
using test::PacketCollectives;
using test::request_of;

struct DirectHost {
  const char* host;
  std::uint32_t gpus, rings;
  double bandwidth;  // of a GPU's NVLinks together, usable, GB/s
  double least;      // part of that which a ring reaches: the less the fewer channels each ring has
};
void PrintTo(const DirectHost& one, std::ostream* out) { *out << one.host; }

std::string two_of(const std::string& host) {
  return "topology: {kind: star, hosts: 32, rate: 100 Gbps}\nhost: " + host + "\nhosts: 2\n";
}

double bus_bandwidth(std::size_t ranks, Bytes bytes, Time time) {
  const auto p = static_cast<double>(ranks);
  return 2 * (p - 1) / p * static_cast<double>(bytes) / static_cast<double>(time) * 1e3;
}

class DirectHosts : public ::testing::TestWithParam<DirectHost> {};

// All NVLinks are equally busy in both directions. So the bus bandwidth comes near to that of all links of a
// GPU; the latencies between slices make the difference.
TEST_P(DirectHosts, ARingAllReduceUsesAllNvlinksAlike) {
  const DirectHost& one = GetParam();
  const auto members = every(1, one.gpus);
  PacketCollectives hosts(two_of(one.host));
  const Bytes bytes = kGibibyte;
  const auto request = request_of(CollectiveKind::all_reduce, members, bytes);
  EXPECT_EQ(hosts.executor->choice(request).channels % one.rings, 0U);  // each ring has as many
  const Time end = hosts.run(request);
  const double bus = bus_bandwidth(one.gpus, bytes, end);
  EXPECT_LT(bus, one.bandwidth);
  EXPECT_GT(bus, one.least * one.bandwidth);
  const Graph& graph = hosts.packets.cluster.graph;
  std::uint32_t nvlinks = 0;
  for (PortId port = 0; port < graph.port_count(); ++port) {
    const PortSpec& spec = graph.port(port);
    if (spec.link.kind != LinkKind::nvlink || graph.node(spec.node).name.rfind("host0/", 0) != 0) continue;
    ++nvlinks;
    const double part = static_cast<double>(spec.link.rate) / 8e9 / one.bandwidth;  // of its GPU's links
    const double all = 2.0 * (one.gpus - 1) / one.gpus * static_cast<double>(bytes);
    const auto carried = static_cast<double>(hosts.packets.network->port_counters(port).wire_bytes);
    EXPECT_NEAR(carried, part * all, 0.01 * part * all) << graph.port_name(port);
  }
  EXPECT_GT(nvlinks, 0U);
}

TEST_P(DirectHosts, SmallOnesCostNoMoreThanTheirSteps) {
  const DirectHost& one = GetParam();
  const auto members = every(1, one.gpus);
  PacketCollectives hosts(two_of(one.host) + "collectives: {base_latency_ring: 0}\n");
  const Time end = hosts.run(request_of(CollectiveKind::all_reduce, members, 1024));
  const Time hop = (3'400 + 100) * kNanosecond;  // NCCL's, and a link
  EXPECT_LT(end, 2 * (one.gpus - 1) * hop);
}

INSTANTIATE_TEST_SUITE_P(Kinds, DirectHosts,
                         ::testing::Values(DirectHost{"dgx_1", 8, 4, 4 * 18, .97},
                                           DirectHost{"dgx_1v", 8, 6, 6 * 20, .96},
                                           DirectHost{"full_mesh", 8, 7, 7 * 48, .93},
                                           DirectHost{"{kind: full_mesh, gpus: 4}", 4, 6, 3 * 48, .93},
                                           DirectHost{"{kind: full_mesh, gpus: 5}", 5, 4, 4 * 48, .93},
                                           DirectHost{"{kind: full_mesh, gpus: 16}", 16, 15, 15 * 48, .8}));

// With and without NVSwitches the bandwidth is NCCL's usable part of a link of the generation, times the
// links of a GPU. Latencies between slices reduce it, more so with faster links.
TEST(RingPlateau, FollowsOneNvlinkEfficiencyAGeneration) {
  const struct {
    const char* host;
    std::uint32_t gpus;
    double links, rate, least;
  } hosts[] = {{"dgx_1", 8, 4, 18, .98},       {"dgx_1v", 8, 6, 20, .97},      {"dgx_2", 16, 6, 20, .97},
               {"dgx_a100", 8, 12, 20, .95},   {"aws_p4de", 8, 12, 20, .95},   {"dgx_h100", 8, 18, 20.6, .93},
               {"dgx_h200", 8, 18, 20.6, .93}, {"dgx_b200", 8, 18, 40.1, .89}, {"full_mesh", 8, 7, 48, .93}};
  for (const auto& one : hosts) {
    const auto members = every(1, one.gpus);
    PacketCollectives host(
        "topology: {kind: star, hosts: 8, rate: 100 Gbps}\nhosts: 1\nhost: " + std::string(one.host) + "\n");
    const Bytes bytes = 4 * kGibibyte;
    const Time end = host.run(request_of(CollectiveKind::all_reduce, members, bytes));
    const double part = bus_bandwidth(one.gpus, bytes, end) / (one.links * one.rate);
    EXPECT_GT(part, one.least) << one.host;
    EXPECT_LT(part, 1) << one.host;
  }
}

// Channels that are not timed together fall out of step, and one's pause is filled by the others. Copies out
// of buffers are filled for the most part. On B200 the thread blocks themselves reach 0.95 of the links.
TEST(RingPlateau, IsWhatNcclCountsWhereChannelsAreApart) {
  const struct {
    const char* host;
    double links, rate, least;
  } hosts[] = {{"dgx_1v", 6, 20, .99},     {"dgx_a100", 12, 20, .955},   {"dgx_h100", 18, 20.6, .96},
               {"hgx_h800", 8, 20.6, .99}, {"dgx_b200", 18, 40.1, .885}, {"full_mesh", 7, 48, .99}};
  for (const auto& one : hosts) {
    const auto members = every(1, 8);
    PacketCollectives host("topology: {kind: star, hosts: 8, rate: 100 Gbps}\nhosts: 1\nhost: " +
                           std::string(one.host) + "\ncollectives: {channels_apart: true}\n");
    const auto request = request_of(CollectiveKind::all_reduce, members, kGibibyte);
    EXPECT_GE(host.executor->choice(request).channels, 21U);
    const double part = bus_bandwidth(8, request.bytes, host.run(request)) / (one.links * one.rate);
    EXPECT_GT(part, one.least) << one.host;
    EXPECT_LT(part, 1) << one.host;
  }
}

// Each message takes one link, so the prediction counts the bytes that the links carry.
TEST(RingsAlongLinks, CarryWhatThePredictionCounts) {
  const auto members = every(1, 8);
  for (const CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    PacketCollectives hosts(two_of("dgx_1v"));
    auto request = request_of(kind, members, 30'000'001);
    Bytes promised = 0, carried = 0;
    for (request.index = 0; request.index < members.size(); ++request.index) {
      hosts.executor->for_each_batch(members[request.index], request, [&](const MessageBatch& batch) {
        EXPECT_GT(hosts.packets.network->direct_rate(members[request.index], batch.destination), 0);
        promised += batch.bytes * static_cast<Bytes>(batch.count);
      });
    }
    EXPECT_EQ(hosts.executor->choice(request).channels, 24U);
    hosts.run(request);
    const Graph& graph = hosts.packets.cluster.graph;
    for (PortId port = 0; port < graph.port_count(); ++port) {
      if (graph.port(port).link.kind == LinkKind::nvlink)
        carried += hosts.packets.network->port_counters(port).wire_bytes;
    }
    EXPECT_EQ(carried, promised);
  }
}

TEST(RingsAlongLinks, HalvesOfAnAllReduceHaveThemToo) {
  const auto members = every(1, 8);
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    PacketCollectives hosts(two_of("dgx_1v"));
    const Bytes bytes = kGibibyte;
    const Time end = hosts.run(request_of(kind, members, bytes));
    const double bus = 7.0 / 8 * static_cast<double>(bytes) / static_cast<double>(end) * 1e3;
    EXPECT_GT(bus, 0.93 * 120);
    EXPECT_LT(bus, 120);
  }
}

// Blink's group of DGX-1V GPUs that no NVLink ring joins keeps its order. It goes over another GPU or PCIe,
// and there is no error.
TEST(RingsAlongLinks, AGroupWithoutARingKeepsItsOrder) {
  const std::vector<GpuId> members{0, 5, 6, 7};  // 0 has no link to any of the others
  PacketCollectives hosts(two_of("dgx_1v"));
  const Time end = hosts.run(request_of(CollectiveKind::all_reduce, members, 100 * kMebibyte));
  EXPECT_GT(bus_bandwidth(4, 100 * kMebibyte, end), 5);
}

// Two boards of MI300X have a NIC of 400 Gb/s a GPU. Eight rings that share the links of each board make the
// NICs the bottleneck. In the order of the group, six of them would share one link, and all together would
// reach 64 GB/s.
TEST(RingsAlongLinks, BetweenHostsTheyShareTheLinks) {
  const auto members = every(1, 16);
  PacketCollectives hosts("topology: {kind: star, hosts: 16, rate: 400 Gbps}\nhost: full_mesh\nhosts: 2\n");
  const Bytes bytes = kGibibyte;
  const Time end = hosts.run(request_of(CollectiveKind::all_reduce, members, bytes));
  EXPECT_GT(bus_bandwidth(16, bytes, end), 350);  // of 8 NICs' 392
}

}  // namespace
}  // namespace netsim::link_rings_test
