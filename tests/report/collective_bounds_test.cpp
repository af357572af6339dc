// What no collective can be faster than: against the links of two DGX A100, and what runs take beside it.
#include "sim/report/collective_bounds.h"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "sim/core/config.h"
#include "tests/collectives/algorithms/algorithm_cases.h"
#include "tests/collectives/packet_collectives.h"

namespace netsim {
namespace {

using Help = LibraryChoice::Help;
using testing::every;

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
  const std::vector<std::uint32_t> host = every(1, 8), both = every(1, 16), uneven = every(1, 11);
  using K = CollectiveKind;
  // A broadcast and a reduction of both hosts by their NICs, all else by the links of a GPU.
  const std::tuple<K, const std::vector<std::uint32_t>*, Help, double> cases[] = {
      {K::all_reduce, &host, Help::none, 2.0 * 7 / 8 / gpu},
      {K::all_reduce, &host, Help::switches, 1 / gpu},
      {K::all_reduce, &host, Help::servers, 1 / gpu},
      {K::all_gather, &host, Help::none, 7.0 / 8 / gpu},
      {K::broadcast, &host, Help::none, 1 / gpu},
      {K::all_reduce, &both, Help::none, 2.0 * 15 / 16 / gpu},
      {K::all_reduce, &both, Help::switches, 1 / kHostRate},
      {K::all_reduce, &both, Help::servers, 1 / gpu},
      {K::all_gather, &both, Help::none, 15.0 / 16 / gpu},
      {K::reduce_scatter, &uneven, Help::none, 10.0 / 11 / gpu},
      {K::reduce, &both, Help::none, 1 / kHostRate},
      {K::broadcast, &both, Help::none, 1 / kHostRate},
      {K::all_to_all, &both, Help::none, 15.0 / 16 / gpu},
      {K::gather, &both, Help::none, 15.0 / 16 / gpu},
      {K::barrier, &both, Help::none, 0},
      {K::custom, &both, Help::none, 0}};
  for (const auto& [kind, members, help, seconds] : cases) {
    const double least = static_cast<double>(bounds.least(kind, n, *members, help)) / 1e12;
    EXPECT_NEAR(least, seconds * static_cast<double>(n), 1e-8 * static_cast<double>(n) / gpu)
        << to_string(kind) << " of " << members->size();
  }
}

// A ring has the fewest bytes there can be: with all NICs it comes near.
TEST(CollectiveBounds, ARingComesNear) {
  const ConfigNode root = parse_config(kTwoDgx, "test.yaml");
  const Cluster cluster = build_cluster(root);
  CollectiveBounds bounds(cluster);
  testing::PacketCollectives dgx(kTwoDgx);
  const std::vector<std::uint32_t> members = every(1, 16);
  const Bytes n = 512 * kMebibyte;
  const Time takes = dgx.run(testing::request_of(CollectiveKind::all_reduce, members, n));
  const Time least = bounds.least(CollectiveKind::all_reduce, n, members, Help::none);
  EXPECT_GE(takes, least);
  EXPECT_LE(static_cast<double>(takes), 2.2 * static_cast<double>(least));
}

}  // namespace
}  // namespace netsim
