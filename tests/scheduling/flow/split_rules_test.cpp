// Tests the rule that divides messages, and the ways that a host's graph offers.
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/random.h"
#include "sim/scheduling/flow/host_ways.h"
#include "sim/scheduling/flow/rules/split.h"

namespace netsim::split_rules_test {
namespace {

SplitWay way(BitRate host, BitRate nic, std::uint32_t others = 0, BitRate measured = 0) {
  SplitWay result;
  result.host_rate = host;
  result.nic_rate = nic;
  result.others = others;
  result.measured = measured;
  return result;
}

std::vector<Bytes> divided(Bytes bytes, std::vector<BitRate> weights) {
  std::vector<Bytes> shares(weights.size(), 0);
  divide_bytes(bytes, weights, shares);
  return shares;
}

TEST(SplitRules, SharesAreInProportion) {
  using Shares = std::vector<Bytes>;
  EXPECT_EQ(divided(980373504, {100 * kGbps, 100 * kGbps}), (Shares{490186752, 490186752}));
  EXPECT_EQ(divided(1001, {1, 1}), (Shares{501, 500}));  // the own way gets the rest
  EXPECT_EQ(divided(600, {1, 2, 3}), (Shares{100, 200, 300}));
  EXPECT_EQ(divided(600, {0, 0}), (Shares{600, 0}));
  EXPECT_EQ(divided(kGigabyte * 1000, {INT64_MAX, INT64_MAX}), (Shares{500 * kGigabyte, 500 * kGigabyte}));
}

TEST(SplitRules, NoByteIsLost) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    RandomStream random(seed, "shares");
    std::vector<BitRate> weights(2 + random.below(7));
    for (BitRate& weight : weights)
      weight = static_cast<BitRate>(random.below(1000) * random.below(1'000'000'000));
    const auto bytes = static_cast<Bytes>(1 + random.below(1'000'000'000));
    const std::vector<Bytes> shares = divided(bytes, weights);
    EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), Bytes{0}), bytes);
    for (const Bytes share : shares) EXPECT_GE(share, 0);
  }
}

TEST(SplitRules, ANicIsSharedWithTheMessagesOfItsGpu) {
  EXPECT_EQ(rate_by_links(way(400, 100)), 100);
  EXPECT_EQ(rate_by_links(way(80, 100)), 80);
  EXPECT_EQ(rate_by_links(way(400, 100, 3)), 25);
}

TEST(SplitRules, RatesAreMeasured) {
  EXPECT_EQ(mean_with(0, 1000, kMicrosecond), 8 * kGbps);
  EXPECT_EQ(mean_with(4 * kGbps, 1000, kMicrosecond), 6 * kGbps);
  EXPECT_EQ(mean_with(0, 1, 9 * kSecond), 1);
}

TEST(SplitRules, WaysAreAlikeUntilAllAreMeasured) {
  std::array<BitRate, 2> weights{};
  weigh_ways(SplitBy::measured, std::array{way(1, 1, 0, 30), way(1, 1)}, weights);
  EXPECT_EQ(weights[0], weights[1]);
  weigh_ways(SplitBy::measured, std::array{way(1, 1, 0, 30), way(1, 1, 0, 10)}, weights);
  EXPECT_EQ(weights, (std::array<BitRate, 2>{30, 10}));
  weigh_ways(SplitBy::links, std::array{way(9, 8), way(7, 8)}, weights);
  EXPECT_EQ(weights, (std::array<BitRate, 2>{8, 7}));
  weigh_ways(SplitBy::equal, std::array{way(9, 8), way(7, 8)}, weights);
  EXPECT_EQ(weights[0], weights[1]);
}

// ---- The ways of a host

std::vector<HostWay> ways(const std::string& hosts, GpuId from, GpuId to, SplitSettings settings = {}) {
  const ConfigNode root =
      parse_config("topology: {kind: star, hosts: 8, rate: 100 Gbps}\nhosts: " + hosts + "\n", "ways.yaml");
  const Cluster cluster = build_cluster(root);
  return HostWays(cluster).between(from, to, 0, settings);
}

// Returns the GPUs at which each way enters and leaves the fabric.
std::vector<std::pair<std::uint32_t, std::uint32_t>> ends(const std::vector<HostWay>& ways) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> result;
  for (const HostWay& one : ways) result.emplace_back(one.view.via, one.at);
  return result;
}

using Ends = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

TEST(HostWays, ANicAlonePassesTheMessageWhole) {
  EXPECT_EQ(ends(ways("[{kind: single_nic}]", 0, 1)), (Ends{{0, 1}}));
}

TEST(HostWays, RelaysShareTheNicOfTheDestination) {
  const auto found = ways("[{kind: full_mesh, count: 1, gpus: 2}, {kind: single_nic}]", 0, 2);
  ASSERT_EQ(ends(found), (Ends{{0, 2}, {1, 2}}));
  EXPECT_EQ(found[0].view.kind, WayKind::own);
  EXPECT_EQ(found[1].view.kind, WayKind::nvlink);
  EXPECT_EQ(found[0].view.host_rate, 504 * kGbps * 256 / 280);
  EXPECT_EQ(found[1].view.host_rate, 8 * 64 * kGbps * 3 / 4);
  EXPECT_EQ(found[0].view.nic_rate, 50 * kGbps);
  EXPECT_EQ(found[1].view.nic_rate, 50 * kGbps);
}

// The way of the destination's rail ends at the rail that the own way leaves free.
TEST(HostWays, WaysKeepToTheirRails) {
  const std::string hosts = "[{kind: full_mesh, count: 2, gpus: 4}]";
  EXPECT_EQ(ends(ways(hosts, 0, 4)), (Ends{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  const auto crossed = ways(hosts, 0, 5);
  EXPECT_EQ(ends(crossed), (Ends{{0, 5}, {2, 6}, {3, 7}, {1, 4}}));
  for (const HostWay& one : crossed) EXPECT_EQ(one.view.nic_rate, 100 * kGbps);
}

// Both NICs of a GPU are behind its only PCIe link, which the ways share.
TEST(HostWays, AGpuReachesOtherNicsOverPcie) {
  const std::string hosts = "[{kind: pcie_server, count: 2, cpus: 1, switches: 1, gpus: 1, nics: 2}]";
  const auto found = ways(hosts, 0, 1);
  ASSERT_EQ(ends(found), (Ends{{0, 1}, {0, 1}}));
  EXPECT_EQ(found[1].view.kind, WayKind::pcie);
  EXPECT_EQ(found[0].lane, kNoIndex);
  EXPECT_NE(found[1].lane, kNoIndex);
  EXPECT_EQ(found[1].view.host_rate, 252 * kGbps * 256 / 280 / 2);
  SplitSettings relays;
  relays.pcie = false;
  EXPECT_EQ(ways(hosts, 0, 1, relays).size(), 1U);
}

}  // namespace
}  // namespace netsim::split_rules_test
