// Collectives on the packet network: NVSwitch rings against NCCL's formula, and bytes over real queue pairs.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "sim/collectives/execution/executor.h"
#include "tests/collectives/fake_endpoint.h"
#include "tests/support/packet_fixture.h"

namespace netsim {
namespace {

class PacketCollectives {
 public:
  explicit PacketCollectives(const std::string& yaml) : packets(yaml), recorder(packets.loop.loop()) {
    const auto ports = static_cast<std::uint32_t>(packets.cluster.graph.port_count());
    executor = Executor::create(packets.loop.loop(), *packets.network, packets.section("collectives"), ports);
    executor->set_listener(&recorder);
  }
  Time run(CommunicationRequest request) {
    for (request.index = 0; request.index < request.members->size(); ++request.index) {
      executor->start((*request.members)[request.index], request);
    }
    packets.loop.run();
    EXPECT_EQ(recorder.done.size(), request.members->size());
    EXPECT_TRUE(executor->waiting(1).empty());
    return recorder.last();
  }

  testing::PacketFixture packets;
  Completions recorder;
  std::unique_ptr<Executor> executor;
};

CommunicationRequest request_of(CollectiveKind kind, const std::vector<std::uint32_t>& members, Bytes bytes) {
  CommunicationRequest request;
  request.kind = kind;
  request.members = &members;
  request.bytes = bytes;
  request.communication = 5;
  return request;
}

std::vector<std::uint32_t> every(std::uint32_t stride, std::uint32_t count) {
  std::vector<std::uint32_t> members;
  for (std::uint32_t i = 0; i < count; ++i) members.push_back(i * stride);
  return members;
}

// 2(p-1)(a + n/(pB)): a is NCCL's hop plus two NVLinks and the switch stage, B = 240 GB/s.
TEST(PacketExecutor, RingOnNvswitchFollowsTheClosedForm) {
  const auto members = every(1, 8);
  for (const Bytes piece : {64 * kKibibyte, 256 * kKibibyte, kMebibyte, 4 * kMebibyte}) {
    PacketCollectives dgx(
        "topology: {kind: star, hosts: 16, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 2\n"
        "collectives: {base_latency_ring: 0, slices_per_chunk: 1}\n");
    const Time end = dgx.run(request_of(CollectiveKind::all_reduce, members, 8 * piece));
    const Time hop = (3'400 + 25 + 100 + 25) * kNanosecond;
    const Time expected = 14 * (hop + transmission_time(piece, 8 * 240 * kGbps));
    EXPECT_NEAR(static_cast<double>(end), static_cast<double>(expected), 0.01 * static_cast<double>(expected))
        << piece;
    EXPECT_EQ(dgx.packets.network->counters().flows_started, 0U);
  }
}

TEST(PacketExecutor, SendsTheBytesThatItPromises) {
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                    CollectiveKind::all_to_all, CollectiveKind::broadcast}) {
    for (const std::uint32_t stride : {1U, 4U, 8U}) {  // 16, 4 and 2 members on two hosts
      PacketCollectives dgx("topology: {kind: star, hosts: 16, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 2\n");
      const auto members = every(stride, 16 / stride);
      auto request = request_of(kind, members, 3'000'001);
      Bytes promised = 0;
      for (request.index = 0; request.index < members.size(); ++request.index) {
        promised += dgx.executor->scale_out_bytes(members[request.index], request);
      }
      dgx.run(request);
      EXPECT_EQ(dgx.packets.network->counters().bytes_delivered, promised);
      EXPECT_GT(promised, 0);
    }
  }
}

// Two GPUs on two hosts: 2 steps, each at least n/2 over 200 Gb/s, and never faster than that.
TEST(PacketExecutor, RingBetweenHostsIsNearTheBandwidthBound) {
  const auto members = every(8, 2);
  PacketCollectives dgx("topology: {kind: star, hosts: 16, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 2\n");
  const Bytes bytes = 256 * kMebibyte;
  const Time end = dgx.run(request_of(CollectiveKind::all_reduce, members, bytes));
  const Time bound = transmission_time(bytes, 200 * kGbps);  // 2n(p-1)/p = n
  EXPECT_GT(end, bound);
  EXPECT_LT(end, bound + bound / 4);
  EXPECT_EQ(dgx.packets.network->counters().drops, 0U);
}

// Eight rings, each over other NICs, so that all sixteen are busy: NCCL's bus bandwidth on two such hosts is
// 170 to 195 GB/s of 200 with the ring.
TEST(PacketExecutor, RingOverTwoHostsUsesAllNics) {
  const auto members = every(1, 16);
  PacketCollectives dgx("topology: {kind: star, hosts: 16, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 2\n");
  const Bytes bytes = 256 * kMebibyte;
  const Time end = dgx.run(request_of(CollectiveKind::all_reduce, members, bytes));
  const double bus = 2.0 * 15 / 16 * static_cast<double>(bytes) / static_cast<double>(end) * 1e3;  // GB/s
  EXPECT_GT(bus, 170);
  EXPECT_LT(bus, 195);
  const Graph& graph = dgx.packets.cluster.graph;
  for (const HostPort& nic : dgx.packets.cluster.nics)
    EXPECT_GT(dgx.packets.network->port_counters(graph.port(nic.port).peer_port).bytes, bytes / 8)
        << nic.node;
}

TEST(PacketExecutor, RawTransferIsOneFlow) {
  const std::vector<std::uint32_t> pair{3, 11};
  PacketCollectives dgx("topology: {kind: star, hosts: 16, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 2\n");
  auto request = request_of(CollectiveKind::point_to_point, pair, 10 * kMegabyte);
  request.raw = true;
  dgx.run(request);
  EXPECT_EQ(dgx.packets.network->counters().flows_done, 1U);
  EXPECT_EQ(dgx.packets.flows.at(0).request.bytes, 10 * kMegabyte);
}

}  // namespace
}  // namespace netsim
