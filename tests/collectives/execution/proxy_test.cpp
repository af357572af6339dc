// Tests that a GPU's proxy thread posts messages to the network one after the other if the cost of posting is
// given.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/collectives/execution/executor.h"
#include "tests/collectives/algorithms/algorithm_cases.h"
#include "tests/collectives/fake_endpoint.h"
#include "tests/collectives/packet_collectives.h"
#include "tests/support/test_size.h"

namespace netsim::proxy_test {
namespace {

using test::PacketCollectives;
using test::request_of;

// When GPU 0 hands its messages to other hosts over; those within its host leave at once.
std::vector<Time> times_at(const std::string& collectives) {
  constexpr std::uint32_t kRanks = 8, kPerHost = 2;
  EventLoop loop;
  FakeEndpoint endpoint(loop, kRanks, kPerHost, {8 * kGbps, 0}, {8 * kGbps, 1000});
  Completions done(loop);
  const std::unique_ptr<Executor> executor =
      Executor::create(loop, endpoint, parse_config(collectives, "test.yaml"), 100'000);
  executor->set_listener(&done);
  const std::vector<GpuId> members = everyone(kRanks);
  auto request = request_of(CollectiveKind::all_to_all, members, 8 * kRanks);
  for (request.index = 0; request.index < kRanks; ++request.index) executor->start(request.index, request);
  loop.run();
  EXPECT_EQ(done.done.size(), kRanks);
  std::vector<Time> times;
  for (const auto& [message, time] : endpoint.sent) {
    if (message.source == 0 && message.destination >= kPerHost && !message.credit) times.push_back(time);
  }
  return times;
}

constexpr const char* kDirect =
    "all_to_all: direct\nscale_out_channels: 1\nbase_latency_ring: 0\nhop_latency_net_ring: 5 us\n"
    "ll: {base_latency_ring: 0, hop_latency_net_ring: 5 us}\n";

TEST(Proxy, PostsOneMessageAfterTheOther) {
  const Time us = kMicrosecond;
  const std::string direct = kDirect;
  EXPECT_EQ(times_at(direct + "protocol: ll"), std::vector<Time>(6, 5 * us));
  EXPECT_EQ(times_at(direct + "protocol: ll\nnet_overhead: 1 us"),
            (std::vector<Time>{5 * us, 6 * us, 7 * us, 8 * us, 9 * us, 10 * us}));
  EXPECT_EQ(times_at(direct + "net_overhead: 1 us"),  // thrice by Simple
            (std::vector<Time>{5 * us, 8 * us, 11 * us, 14 * us, 17 * us, 20 * us}));
}

// 16 DGX A100 with AMD CPUs exchange 1 MB a GPU. There are 120 messages of 8 KB to other hosts, or 15 of 64
// KB, or 2 of 512 KB. Posting the latter costs almost nothing, but all bytes cross NVLink twice.
TEST(Proxy, IsWhyTwoAndThreeStepsOfAnAllToAllGain) {
  const auto members = everyone(128);
  std::map<std::pair<std::string, std::string>, double> known;  // each run serves several comparisons
  const auto time_of = [&](const std::string& algorithm, const std::string& overhead) {
    double& time = known[{algorithm, overhead}];
    if (time > 0) return time;
    PacketCollectives cluster(
        "topology: {kind: rail_optimized, rate: 200 Gbps, hosts_per_leaf: 16, units: 1, spines: 16}\n"
        "host: dgx_a100\nhosts: 16\ncollectives: {protocol: auto, all_to_all: " +
        algorithm + ", net_overhead: " + overhead + "}\n");
    time = static_cast<double>(cluster.run(request_of(CollectiveKind::all_to_all, members, 1'000'000)));
    return time;
  };
  const auto gain = [&](const char* steps, const std::string& overhead) {
    return time_of("{kind: nccl_p2p, pxn: false}", overhead) / time_of(steps, overhead);
  };
  EXPECT_GT(gain("two_step", "2 us"), 1.2);
  EXPECT_GT(gain("three_step", "2 us"), 1.2);
  if (test::full_size()) {
    EXPECT_LT(gain("two_step", "0 us"), 1.2);
    EXPECT_LT(gain("three_step", "0 us"), 1);
  }
  EXPECT_NEAR(time_of("three_step", "2 us") / time_of("three_step", "0 us"), 1, 0.1);
}

}  // namespace
}  // namespace netsim::proxy_test
