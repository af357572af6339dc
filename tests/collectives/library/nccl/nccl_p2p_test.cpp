// Tests NCCL's all-to-all. PXN keeps traffic between hosts on its rail, with the same bytes in all. No more
// operations are in progress than the channels allow. It also suits a fabric of rails only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "sim/collectives/execution/executor.h"
#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "tests/collectives/algorithms/algorithm_cases.h"
#include "tests/collectives/fake_endpoint.h"
#include "tests/collectives/packet_collectives.h"

namespace netsim::nccl_p2p_test {
namespace {

using test::make_plan;
using test::PacketCollectives;
using test::request_of;

constexpr BitRate kRate = 8 * kGbps;  // 1 ns a byte

struct Played {
  Played(std::uint32_t ranks, std::uint32_t per_host, Bytes bytes, const std::string& algorithm,
         FakeEndpoint::Link inside = {kRate, 0}, FakeEndpoint::Link between = {kRate, 1000},
         const BlockCounts* counts = nullptr)
      : members(everyone(ranks)),
        endpoint(loop, ranks, per_host, inside, between),
        done(loop),
        executor(Executor::create(loop, endpoint,
                                  parse_config("all_to_all: " + algorithm + "\nall_to_all_v: " + algorithm +
                                                   "\nslots: 0\nbase_latency_ring: 0\n"
                                                   "hop_latency_net_ring: 0\nhop_latency_nvlink_ring: 0\n",
                                               "test.yaml"),
                                  100'000)) {
    executor->set_listener(&done);
    auto request = request_of(counts == nullptr ? CollectiveKind::all_to_all : CollectiveKind::all_to_all_v,
                              members, bytes);
    request.counts = counts;
    for (request.index = 0; request.index < ranks; ++request.index) executor->start(request.index, request);
    loop.run();
  }
  EventLoop loop;
  std::vector<GpuId> members;
  FakeEndpoint endpoint;
  Completions done;
  std::unique_ptr<Executor> executor;
};

// Bytes that do not divide: pieces differ by one.
TEST(NcclP2p, PxnLeavesByTheNicOfTheReceiversRail) {
  constexpr std::uint32_t kRanks = 16, kPerHost = 4;
  constexpr Bytes kBytes = 16 * 100'000 + 7;
  for (const bool pxn : {true, false}) {
    const Played played(kRanks, kPerHost, kBytes,
                        std::string("{kind: nccl_p2p, group: 4, pxn: ") + (pxn ? "true}" : "false}"));
    EXPECT_EQ(played.done.done.size(), kRanks);
    EXPECT_TRUE(played.executor->waiting(1).empty());
    std::map<std::pair<std::uint32_t, std::uint32_t>, Bytes> moved, expected;
    for (const auto& [message, time] : played.endpoint.sent)
      moved[{message.source, message.destination}] += message.bytes;
    for (std::uint32_t from = 0; from < kRanks; ++from) {
      for (std::uint32_t to = 0; to < kRanks; ++to) {
        if (from == to) continue;
        // The size of the block, added up over the two channels' shares of the buffer.
        Bytes block = 0;
        for (std::uint32_t channel = 0; channel < 2; ++channel)
          block += share(share(kBytes, 2, channel), kRanks, to);
        const bool direct = from / kPerHost == to / kPerHost || from % kPerHost == to % kPerHost || !pxn;
        const std::uint32_t by = direct ? from : from / kPerHost * kPerHost + to % kPerHost;
        if (!direct) expected[{from, by}] += block;
        expected[{by, to}] += block;
      }
    }
    EXPECT_EQ(moved, expected);
    for (const auto& [ends, bytes] : moved) {
      const bool between = ends.first / kPerHost != ends.second / kPerHost;
      EXPECT_TRUE(!between || !pxn || ends.first % kPerHost == ends.second % kPerHost) << bytes;
    }
  }
}

// Blocks of different sizes, some of them empty, take the paths of PXN as well, in channels that they share.
TEST(NcclP2p, PxnTakesBlocksAsTheyAre) {
  constexpr std::uint32_t kRanks = 12, kPerHost = 4;
  RandomStream random(3, "blocks");
  std::vector<Bytes> rows;
  for (std::uint32_t i = 0; i < kRanks * kRanks; ++i)
    rows.push_back(random.below(4) == 0 ? 0 : static_cast<Bytes>(random.below(9'000'000)));
  const BlockCounts counts(kRanks, rows);
  for (const char* limits : {"channels: 32", "channels: 1", "channels: 1, per_peer: 8"}) {
    const Played played(kRanks, kPerHost, counts.busiest(),
                        std::string("{kind: nccl_p2p, group: 4, ") + limits + "}", {kRate, 0}, {kRate, 1000},
                        &counts);
    EXPECT_EQ(played.done.done.size(), kRanks);
    EXPECT_TRUE(played.executor->waiting(1).empty());
    std::map<std::pair<std::uint32_t, std::uint32_t>, Bytes> moved, expected;
    for (const auto& [message, time] : played.endpoint.sent)
      moved[{message.source, message.destination}] += message.bytes;
    for (std::uint32_t from = 0; from < kRanks; ++from) {
      for (std::uint32_t to = 0; to < kRanks; ++to) {
        const Bytes block = counts.of(from, to);
        if (from == to || block == 0) continue;
        const bool inside = from / kPerHost == to / kPerHost;
        const std::uint32_t by = inside ? from : from / kPerHost * kPerHost + to % kPerHost;
        if (by != from) expected[{from, by}] += block;
        expected[{by, to}] += block;
      }
    }
    EXPECT_EQ(moved, expected) << limits;
  }
}

// In each round every rank sends to one rank and receives from one. Over all rounds each pair meets once.
TEST(NcclP2p, RoundsArePermutations) {
  for (const auto& [ranks, group] : {std::pair{8U, 8U}, {24U, 8U}, {15U, 3U}, {7U, 7U}, {64U, 8U}}) {
    const auto plan = make_plan(
        "{kind: nccl_p2p, pxn: false, channels: 1, per_peer: 8, group: " + std::to_string(group) + "}",
        CollectiveKind::all_to_all, ranks);
    ASSERT_EQ(plan->steps(0, 0), ranks - 1);
    std::vector<std::vector<bool>> met(ranks, std::vector<bool>(ranks, false));
    for (std::uint32_t index = 0; index + 1 < ranks; ++index) {
      std::vector<bool> taken(ranks, false);
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const std::uint32_t to = plan->step(rank, 0, index).to.rank;
        EXPECT_FALSE(taken[to]);
        EXPECT_FALSE(met[rank][to]);
        taken[to] = met[rank][to] = true;
        EXPECT_EQ(plan->step(to, 1 + index, 0).from.rank, rank);
      }
    }
  }
}

// The rounds of NCCL (p2pSchedule in src/init.cc) over four ranks of a host: 1, 3, 2 behind.
TEST(NcclP2p, GoesByNcclsDistances) {
  const auto plan = make_plan("{kind: nccl_p2p, channels: 1, per_peer: 8}", CollectiveKind::all_to_all, 4);
  EXPECT_EQ(plan->step(0, 0, 0).to.rank, 1U);
  EXPECT_EQ(plan->step(0, 0, 1).to.rank, 3U);
  EXPECT_EQ(plan->step(0, 0, 2).to.rank, 2U);
}

// With a lane the operations go one after the other, with as many as there are peers all at once.
TEST(NcclP2p, ChannelsLimitWhatIsUnderWay) {
  constexpr Time kLatency = 50 * kMicrosecond;
  const auto time_of = [](const char* limits) {
    return Played(8, 1, 8'000, std::string("{kind: nccl_p2p, group: 1, ") + limits + "}", {},
                  {kRate, kLatency})
        .done.last();
  };
  EXPECT_EQ(time_of("channels: 1, per_peer: 1"), kLatency + 7 * 1000 * kNanosecond);
  // Each operation is divided among eight channels. Each lane waits for its own eighth, so operations run one
  // after the other.
  EXPECT_GE(time_of("channels: 1, per_peer: 8"), 7 * kLatency + 1000 * kNanosecond);
  EXPECT_LE(time_of("channels: 1, per_peer: 8"), 7 * (kLatency + 1000 * kNanosecond));
  // Seven operations on four lanes: two after each other.
  const Time half = time_of("channels: 1, per_peer: 2");
  EXPECT_GE(half, 2 * kLatency + 7 * 1000 * kNanosecond - 3000 * kNanosecond);
  EXPECT_LT(half, 2 * kLatency + 8 * 1000 * kNanosecond);
}

// Rails that nothing joins: with PXN nothing crosses NVLink packet by packet, and the NICs are busy.
TEST(NcclP2p, RailsOnlyNeedNoCore) {
  const auto time_of = [](const char* algorithm) {
    PacketCollectives rails(
        std::string(
            "topology: {kind: rail_only, hosts_per_leaf: 2, units: 1, spines: 0, link: infiniband, rate: "
            "400 Gbps}\nhost: dgx_h100\nhosts: 2\nnetwork: {switch: {flow_control: credits, marker: "
            "none}}\ntransport: {framing: infiniband, congestion_control: none}\ncollectives: "
            "{all_to_all: ") +
        algorithm + "}\n");
    const auto members = everyone(16);
    return static_cast<double>(rails.run(request_of(CollectiveKind::all_to_all, members, 64 * kMegabyte)));
  };
  const double pxn = time_of("nccl_p2p");
  // Half of a rank's buffer crosses its NIC, 4,096 B of payload in 4,122.
  const double nic = static_cast<double>(transmission_time(32 * kMegabyte, 400 * kGbps)) * 4122 / 4096;
  EXPECT_GE(pxn, nic);
  EXPECT_LE(pxn, 1.2 * nic);  // latencies, and the time until relayed data has come over NVLink
}

}  // namespace
}  // namespace netsim::nccl_p2p_test
