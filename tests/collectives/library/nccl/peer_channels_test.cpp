// Do sends and receives have the channels that NCCL derives from the topology? Does a lone one leave its host
// by the rail of its receiver where NCCL uses PXN, with every byte of it and its credits?
#include "sim/collectives/library/nccl/peer_channels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "sim/collectives/library/nccl/nccl_tuning.h"
#include "tests/collectives/packet_collectives.h"

namespace netsim::peer_channels_test {
namespace {

using test::every;
using test::PacketCollectives;
using test::PacketFixture;
using test::request_of;

PeerChannels channels_of(const std::string& cluster, const std::vector<GpuId>& members) {
  const PacketFixture fixture(cluster);
  LinkOrders orders;
  const CommunicatorLayout layout = lay_out(members, *fixture.network, orders);
  return peer_channels(layout, static_cast<std::uint32_t>(members.size()), 24,
                       generation_of(layout.gpu_model));
}

std::pair<std::uint32_t, std::uint32_t> numbers(const PeerChannels& channels) {
  return {channels.all, channels.per_peer};
}
using Numbers = std::pair<std::uint32_t, std::uint32_t>;

// NCCL's log prints these as "32 p2p channels, 32 p2p channels per peer" and "16 ..., 2 ... per peer".
TEST(PeerChannels, AreThoseThatNcclDerives) {
  const auto star = [](const char* host, int hosts) {
    return "topology: {kind: star, hosts: 64, rate: 400 Gbps}\nhost: " + std::string(host) +
           "\nhosts: " + std::to_string(hosts) + "\n";
  };
  EXPECT_EQ(numbers(channels_of(star("dgx_a100", 1), every(1, 8))), Numbers(32, 32));
  EXPECT_EQ(numbers(channels_of(star("dgx_h100", 1), every(1, 8))), Numbers(32, 32));
  EXPECT_EQ(numbers(channels_of(star("dgx_h100", 2), every(1, 16))), Numbers(16, 2));
  // A GPU of a DGX-1 has no link to three others, and one or two to the rest.
  EXPECT_EQ(numbers(channels_of(star("dgx_1v", 1), every(1, 8))), Numbers(32, 2));
  // 64 ranks: eight batches of two are all channels; twice as many peers have one each.
  EXPECT_EQ(numbers(channels_of(star("dgx_h100", 8), every(1, 64))), Numbers(16, 2));
  EXPECT_EQ(numbers(channels_of("topology: {kind: star, hosts: 128, rate: 400 Gbps}\nhost: dgx_h100\nhosts: "
                                "16\n",
                                every(1, 128))),
            Numbers(16, 1));
  // A lone pair on two hosts.
  EXPECT_EQ(numbers(channels_of(star("dgx_h100", 2), {3, 12})), Numbers(4, 2));
}

// Each of 2, 4 and 8 ranks has its part of 32 channels; a channel has 64 KiB to 16 MiB.
TEST(PeerChannels, GiveAMessageWithinAHostItsPartOfThem) {
  const PeerChannels peers{32, 32};
  EXPECT_EQ(message_channels(peers, 2, 64 * kKibibyte), 1U);
  EXPECT_EQ(message_channels(peers, 2, 64 * kKibibyte + 1), 2U);
  EXPECT_EQ(message_channels(peers, 2, kMebibyte), 16U);
  EXPECT_EQ(message_channels(peers, 2, 256 * kMebibyte), 16U);
  EXPECT_EQ(message_channels(peers, 2, 256 * kMebibyte + 1), 32U);
  EXPECT_EQ(message_channels(peers, 4, 32 * kMebibyte), 8U);
  EXPECT_EQ(message_channels(peers, 8, 32 * kMebibyte), 4U);
  EXPECT_EQ(message_channels(peers, 64, 32 * kMebibyte), 2U);
  EXPECT_EQ(message_channels({32, 2}, 64, 64 * kMebibyte), 2U);
}

// Two B200 send by 16 thread blocks of 21.4 GB/s, with 0.5 us for each chunk; measured are 345 GB/s (NCCL
// 2.27.3). Chunk by chunk they are also copied out, on warps of their own.
TEST(PeerChannels, LimitAnAllToAllOfTwo) {
  const auto time = [](Bytes bytes) {
    PacketCollectives b200(
        "topology: {kind: star, hosts: 8, rate: 400 Gbps}\nhosts: 1\nhost: dgx_b200\n"
        "collectives: {all_to_all: nccl_p2p, protocol: simple}\n");
    return static_cast<double>(b200.run(request_of(CollectiveKind::all_to_all, {0, 1}, bytes)));
  };
  const double more = time(512 * kMebibyte) - time(256 * kMebibyte);
  const auto blocks = static_cast<double>(
      transmission_time(128 * kMebibyte, BitRate{16} * 21'400'000'000 * 8) + 16 * 500 * kNanosecond);
  EXPECT_NEAR(more, blocks, 0.01 * blocks);
}

// A peer has 32 channels. So NCCL's first rule ran up to 512 KiB for it by LL, on 16 channels of 8 KiB or
// more. Now LL ends at 16 KiB a channel, and a channel has at least 64 KiB.
TEST(PeerChannels, GiveLlByPeerOrByMessage) {
  const auto ran = [](const char* all_to_all, Bytes bytes) {
    PacketCollectives a100(
        "topology: {kind: star, hosts: 8, rate: 400 Gbps}\nhosts: 1\nhost: dgx_a100\n"
        "collectives: {protocol: auto, all_to_all: " +
        std::string(all_to_all) + "}\n");
    const auto choice = a100.executor->choice(request_of(CollectiveKind::all_to_all, {0, 1}, 2 * bytes));
    return std::pair(choice.protocol, choice.channels);
  };
  constexpr const char* kByPeer = "{kind: nccl_p2p, ll_by_peer: true}";
  EXPECT_EQ(ran(kByPeer, 512 * kKibibyte), std::pair(Protocol::ll, 16U));
  EXPECT_EQ(ran(kByPeer, 16 * kKibibyte), std::pair(Protocol::ll, 2U));
  EXPECT_EQ(ran(kByPeer, 512 * kKibibyte + 1), std::pair(Protocol::simple, 9U));
  EXPECT_EQ(ran("nccl_p2p", 512 * kKibibyte), std::pair(Protocol::simple, 8U));
  EXPECT_EQ(ran("nccl_p2p", 16 * kKibibyte), std::pair(Protocol::ll, 1U));
}

// An all-reduce of few bytes has n - 1 hops more than a gather, and a hop by LL is that of the generation. A
// latency that is given is the hop instead.
TEST(HostLatencies, AreThoseOfTheGeneration) {
  const auto hop = [](const std::string& host, const std::string& more, const std::string& protocol = "ll") {
    const auto time = [&](CollectiveKind kind) {
      PacketCollectives one("topology: {kind: star, hosts: 8, rate: 400 Gbps}\nhosts: 1\nhost: " + host +
                            "\ncollectives: {protocol: " + protocol + more + "}\n");
      return one.run(request_of(kind, test::every(1, 8), 512));
    };
    return static_cast<double>(time(CollectiveKind::all_reduce) - time(CollectiveKind::all_gather)) / 7;
  };
  const auto ns = [](double time) { return time * static_cast<double>(kNanosecond); };
  EXPECT_NEAR(hop("dgx_a100", ""), ns(1050), ns(30));
  EXPECT_NEAR(hop("dgx_h100", ""), ns(780), ns(30));
  EXPECT_NEAR(hop("dgx_b200", ""), ns(1250), ns(30));
  EXPECT_NEAR(hop("dgx_1v", ""), ns(600), ns(30)) << "NCCL's table";
  EXPECT_NEAR(hop("dgx_a100", "", "ll128"), ns(1500), ns(30));
  EXPECT_NEAR(hop("dgx_h100", "", "ll128"), ns(1900), ns(30)) << "NCCL's table";
  EXPECT_NEAR(hop("dgx_h100", ", ll: {hop_latency_nvlink_ring: 2 us}"), ns(2000), ns(30));
}

// With twice the bytes a gather by LL has two thread blocks instead of one, each with the same bytes.
TEST(HostLatencies, CountTheStartOfSeveralThreadBlocks) {
  const auto second_block = [](const std::string& host) {
    const auto time = [&](Bytes bytes) {
      PacketCollectives one("topology: {kind: star, hosts: 8, rate: 400 Gbps}\nhosts: 1\nhost: " + host +
                            "\ncollectives: {all_gather: nccl, protocol: ll}\n");
      return one.run(request_of(CollectiveKind::all_gather, {0, 1}, bytes));
    };
    return static_cast<double>(time(16 * kKibibyte) - time(8 * kKibibyte)) / static_cast<double>(kNanosecond);
  };
  EXPECT_NEAR(second_block("dgx_a100"), 1600, 100);
  EXPECT_NEAR(second_block("dgx_h100"), 200, 100);
  EXPECT_NEAR(second_block("dgx_b200"), 700, 100);
}

// Two ranks have two steps in an all-reduce, which wait for each other, unlike those of a broadcast.
TEST(HostLatencies, AreCountedForEachStepOfTwoRanks) {
  PacketCollectives h100(
      "topology: {kind: star, hosts: 8, rate: 400 Gbps}\nhosts: 1\nhost: dgx_h100\n"
      "collectives: {protocol: auto, all_reduce: nccl}\n");
  const auto choice = [&](Bytes bytes) {
    return h100.executor->choice(request_of(CollectiveKind::all_reduce, {0, 1}, bytes)).protocol;
  };
  EXPECT_EQ(choice(kMebibyte), Protocol::ll) << "6.6 + 2 x 0.6 + 7.4 us; Simple: 8.4 + 2 x 3.4 + 2.9 us";
  EXPECT_EQ(choice(2 * kMebibyte), Protocol::simple);
}

// Beside Grace, without a PCIe switch: a channel for each 14 GB/s of the NIC's 50.
TEST(PeerChannels, CountNicsOfGpusBesideTheirCpus) {
  const std::string racks =
      "fabrics:\n  rack: {kind: nvl_rack, racks: 2}\n  scale_out: {kind: star, hosts: 144, rate: 400 Gbps}\n"
      "host: gb200\nhosts: 36\n";
  EXPECT_EQ(numbers(channels_of(racks, {0, 1, 72, 73})), Numbers(8, 8));
}

// ---- By another GPU

constexpr const char* kRails =
    "topology: {kind: rail_only, hosts_per_leaf: 2, units: 1, spines: 0, link: infiniband, rate: 400 Gbps}\n"
    "host: dgx_h100\nhosts: 2\nnetwork: {switch: {flow_control: credits, marker: none}}\n"
    "transport: {framing: infiniband, congestion_control: none}\n";

TEST(Pxn, PassesByTheReceiversRail) {
  const PacketFixture rails(kRails);
  EXPECT_EQ(pxn_gpu(*rails.network, 0, 13), 5U);
  EXPECT_EQ(pxn_gpu(*rails.network, 13, 0), 8U);
  EXPECT_EQ(pxn_gpu(*rails.network, 3, 11), kNoIndex) << "the same rail";
  EXPECT_EQ(pxn_gpu(*rails.network, 3, 4), kNoIndex) << "the same host";
  // Two GPUs of a DGX-1 share a NIC, and no NVLink joins GPU 0 with GPU 5 but by way of another GPU.
  const PacketFixture dgx1("topology: {kind: star, hosts: 8, rate: 100 Gbps}\nhost: dgx_1v\nhosts: 2\n");
  EXPECT_EQ(pxn_gpu(*dgx1.network, 0, 9), kNoIndex);
  EXPECT_EQ(pxn_gpu(*dgx1.network, 0, 13), kNoIndex);
  EXPECT_EQ(pxn_gpu(*dgx1.network, 0, 11), 3U);
}

struct Lone {
  Lone(const std::string& algorithm, std::uint32_t from, std::uint32_t to, Bytes bytes)
      : members{from, to},
        endpoint(loop, 8, 4, {8 * kGbps, 100}, {8 * kGbps, 1000}),
        done(loop),
        executor(Executor::create(
            loop, endpoint, parse_config("point_to_point: " + algorithm + "\n", "test.yaml"), 100'000)) {
    executor->set_listener(&done);
    CommunicationRequest request = request_of(CollectiveKind::point_to_point, members, bytes);
    for (request.index = 0; request.index < 2; ++request.index) {
      executor->start(members[request.index], request);
      predicted += executor->scale_out_bytes(members[request.index], request);
    }
    loop.run();
  }
  EventLoop loop;
  std::vector<GpuId> members;
  FakeEndpoint endpoint;
  Completions done;
  std::unique_ptr<Executor> executor;
  Bytes predicted = 0;
};

TEST(Pxn, HandsOverEveryByteAndEveryCredit) {
  for (const Bytes bytes : {Bytes{1}, Bytes{100'000}, Bytes{33'333'333}}) {
    const Lone lone("nccl_p2p", 0, 6, bytes);
    EXPECT_EQ(lone.done.done.size(), 2U);
    EXPECT_TRUE(lone.executor->waiting(1).empty());
    std::map<std::pair<std::uint32_t, std::uint32_t>, Bytes> data, credits;
    std::set<std::uint32_t> channels;
    Bytes between = 0;
    for (const auto& [message, time] : lone.endpoint.sent) {
      auto& moved = message.credit ? credits : data;
      moved[{message.source, message.destination}] += message.bytes;
      if (message.source / 4 != message.destination / 4) between += message.bytes;
      channels.insert(message.traits.channel);
    }
    using Moved = std::map<std::pair<std::uint32_t, std::uint32_t>, Bytes>;
    EXPECT_EQ(data, (Moved{{{0, 2}, bytes}, {{2, 6}, bytes}}));
    ASSERT_EQ(credits.size(), 2U);
    EXPECT_EQ(credits.at({6, 2}), credits.at({2, 0}));
    EXPECT_EQ(channels.size(), bytes == 1 ? 1U : 2U);
    EXPECT_EQ(lone.predicted, between);
  }
}

TEST(Pxn, IsNotUsedWhereNcclDoesNot) {
  const auto ways = [](const std::string& algorithm, std::uint32_t to) {
    std::set<std::pair<std::uint32_t, std::uint32_t>> all;
    for (const auto& [message, time] : Lone(algorithm, 0, to, 1'000'000).endpoint.sent) {
      if (!message.credit) all.emplace(message.source, message.destination);
    }
    return all;
  };
  using Ways = std::set<std::pair<std::uint32_t, std::uint32_t>>;
  EXPECT_EQ(ways("nccl_p2p", 4), (Ways{{0, 4}}));
  EXPECT_EQ(ways("nccl_p2p", 3), (Ways{{0, 3}}));
  EXPECT_EQ(ways("{kind: nccl_p2p, pxn: false}", 6), (Ways{{0, 6}}));
  EXPECT_EQ(ways("direct", 6), (Ways{{0, 6}}));
}

// The receiver's NIC is busy all the time; small ones have one hop over NVLink more.
TEST(Pxn, TakesTheNicsTime) {
  const auto time_of = [](const char* algorithm, std::uint32_t to, Bytes bytes) {
    PacketCollectives rails(std::string(kRails) + "collectives: {slots: 8, point_to_point: " + algorithm +
                            "}\n");
    const std::vector<GpuId> members{0, to};
    rails.run(request_of(CollectiveKind::point_to_point, members, bytes));
    return static_cast<double>(
        rails.recorder.of(to, 5).ended);  // the receiver's: it needs no acknowledgement
  };
  const double nic = static_cast<double>(transmission_time(256 * kMegabyte, 400 * kGbps)) * 4122 / 4096;
  EXPECT_NEAR(time_of("nccl_p2p", 13, 256 * kMegabyte) / nic, 1, 0.05);
  const double straight = time_of("nccl_p2p", 8, 1000), by_another = time_of("nccl_p2p", 13, 1000);
  EXPECT_NEAR(by_another - straight, static_cast<double>(3'400 * kNanosecond), 1e6);
}

}  // namespace
}  // namespace netsim::peer_channels_test
