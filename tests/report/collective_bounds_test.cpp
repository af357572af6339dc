// Tests the lower bounds of collectives: against the links of two DGX A100, and against times of runs.
#include "sim/report/collective_bounds.h"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "sim/core/config.h"
#include "tests/collectives/algorithms/algorithm_cases.h"
#include "tests/collectives/packet_collectives.h"

namespace netsim::collective_bounds_test {
namespace {

using Help = LibraryChoice::Help;
using test::every;

constexpr const char* kTwoDgx =
    "topology: {kind: star, hosts: 16, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 2\n";
// Bytes a second that leave a GPU (12 NVLinks and its PCIe link) and a host (eight NICs).
double gpu_rate(const Cluster& cluster) {
  double rate = 0;
  for (PortId port = 0; port < cluster.graph.port_count(); ++port) {
    if (cluster.graph.port(port).node == cluster.gpus[0].node)
      rate += static_cast<double>(cluster.graph.port(port).link.rate) / 8;
  }
  return rate;
}
constexpr double kHostRate = 8 * 25e9;

TEST(CollectiveBounds, AreTheBusiestGpusAndHosts) {
  const ConfigNode root = parse_config(kTwoDgx, "test.yaml");
  const Cluster cluster = build_cluster(root);
  CollectiveBounds bounds(cluster);
  const double gpu = gpu_rate(cluster);
  EXPECT_GT(gpu, 240e9);
  const Bytes n = kGibibyte;
  const std::vector<GpuId> host = every(1, 8), both = every(1, 16), uneven = every(1, 11);
  using K = CollectiveKind;
  // The NICs of a host bound data that crosses them unreduced, data that switches add up, and groups with few
  // members in a host. The links of a GPU bound all else.
  const std::tuple<K, const std::vector<GpuId>*, Help, double> cases[] = {
      {K::all_reduce, &host, Help::none, 2.0 * 7 / 8 / gpu},
      {K::all_reduce, &host, Help::switches, 1 / gpu},
      {K::all_reduce, &host, Help::servers, 1 / gpu},
      {K::all_gather, &host, Help::none, 7.0 / 8 / gpu},
      {K::broadcast, &host, Help::none, 1 / gpu},
      {K::all_reduce, &both, Help::none, 2.0 * 15 / 16 / gpu},
      {K::all_reduce, &both, Help::switches, 1 / kHostRate},
      {K::all_reduce, &both, Help::servers, 1 / gpu},
      {K::all_gather, &both, Help::none, 15.0 / 16 / gpu},
      {K::reduce_scatter, &uneven, Help::none, 8.0 / 11 / kHostRate},
      {K::all_gather, &uneven, Help::none, 8.0 / 11 / kHostRate},
      {K::reduce, &both, Help::none, 1 / kHostRate},
      {K::broadcast, &both, Help::none, 1 / kHostRate},
      {K::all_to_all, &both, Help::none, 8 * 8.0 / 16 / kHostRate},
      {K::all_to_all, &uneven, Help::none, 3 * 8.0 / 11 / kHostRate},
      {K::gather, &both, Help::none, 15.0 / 16 / gpu},
      {K::barrier, &both, Help::none, 0},
      {K::custom, &both, Help::none, 0}};
  for (const auto& [kind, members, help, seconds] : cases) {
    const double least = static_cast<double>(bounds.least(kind, n, *members, help)) / 1e12;
    EXPECT_NEAR(least, seconds * static_cast<double>(n), 1e-8 * static_cast<double>(n) / gpu)
        << to_string(kind) << " of " << members->size();
  }
}

// Two racks of four hosts have a quarter of their hosts' rate towards each other. The cut between them is the
// bound if all ranks send equally much to all. If a ring passes by, the bound is their hosts' links.
TEST(CollectiveBounds, AreThoseOfTheNarrowestCut) {
  const ConfigNode root = parse_config(
      "topology: {kind: leaf_spine, leaves: 2, hosts_per_leaf: 4, spines: 1, rate: 100 Gbps, delay: 2 us}\n"
      "host: single_nic\n",
      "test.yaml");
  const Cluster cluster = build_cluster(root);
  CollectiveBounds bounds(cluster);
  const std::vector<GpuId> all = every(1, 8), one_rack = every(1, 4);
  const Bytes n = kGibibyte;
  const auto seconds = [&](CollectiveKind kind, const std::vector<GpuId>& members) {
    return static_cast<double>(bounds.least(kind, n, members, Help::none)) / 1e12 * 12.5e9 /
           static_cast<double>(n);
  };
  EXPECT_NEAR(seconds(CollectiveKind::all_to_all, all), 4 * 4.0 / 8, 1e-6);
  EXPECT_NEAR(seconds(CollectiveKind::all_to_all, one_rack), 3.0 / 4, 1e-6);
  EXPECT_NEAR(seconds(CollectiveKind::all_reduce, all), 2 * 7.0 / 8, 1e-6);
  EXPECT_NEAR(seconds(CollectiveKind::all_gather, all), 7.0 / 8, 1e-6);
}

// However little there is, it has to leave a host; servers that have nothing to say need not.
TEST(CollectiveBounds, AreDelaysWhereBytesAreFew) {
  const ConfigNode root = parse_config(
      "topology: {kind: star, hosts: 4, rate: 100 Gbps, delay: 2 us}\nhost: single_nic\n", "test.yaml");
  const Cluster cluster = build_cluster(root);
  CollectiveBounds bounds(cluster);
  const std::vector<GpuId> all = every(1, 4);
  using K = CollectiveKind;
  for (const K kind : {K::all_reduce, K::all_gather, K::reduce_scatter, K::broadcast, K::reduce})
    EXPECT_EQ(bounds.least(kind, 1, all, Help::none), 2 * kMicrosecond) << to_string(kind);
  for (const K kind : {K::all_to_all, K::gather, K::scatter, K::barrier})
    EXPECT_LT(bounds.least(kind, 1, all, Help::none), kMicrosecond) << to_string(kind);
  EXPECT_LT(bounds.least(K::all_reduce, 1, all, Help::servers), kMicrosecond);
}

// A ring has the fewest bytes there can be: with all NICs it comes near.
TEST(CollectiveBounds, ARingComesNear) {
  const ConfigNode root = parse_config(kTwoDgx, "test.yaml");
  const Cluster cluster = build_cluster(root);
  CollectiveBounds bounds(cluster);
  test::PacketCollectives dgx(kTwoDgx);
  const std::vector<GpuId> members = every(1, 16);
  const Bytes n = 512 * kMebibyte;
  const Time takes = dgx.run(test::request_of(CollectiveKind::all_reduce, members, n));
  const Time least = bounds.least(CollectiveKind::all_reduce, n, members, Help::none);
  EXPECT_GE(takes, least);
  EXPECT_LE(static_cast<double>(takes), 2.2 * static_cast<double>(least));
}

}  // namespace
}  // namespace netsim::collective_bounds_test
