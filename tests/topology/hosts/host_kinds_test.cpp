// Has each kind of host the links that its data sheet says, and a way between any two of its GPUs?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "tests/topology/build.h"

namespace netsim::host_kinds_test {
namespace {

constexpr BitRate kGBps = 8 * kGbps;

// One host of the kind in a star.
Cluster one(const std::string& host) {
  return cluster_of("topology: {kind: star, hosts: 64}\nhosts: 1\nhost: " + host + "\n");
}

std::map<NodeId, BitRate> neighbours(const Graph& graph, NodeId node, LinkKind kind) {
  std::map<NodeId, BitRate> rates;
  for (const PortId port : graph.ports_of(node)) {
    if (graph.port(port).link.kind == kind) rates[graph.port(port).peer_node] += graph.port(port).link.rate;
  }
  return rates;
}

std::size_t count(const Graph& graph, NodeKind kind) {
  std::size_t number = 0;
  for (NodeId node = 0; node < graph.node_count(); ++node) number += graph.node(node).kind == kind ? 1 : 0;
  return number;
}

struct Nvswitched {
  const char* kind;
  std::size_t gpus, nics, stages;
  BitRate nvlink;  // of a GPU, usable
  BitRate pcie;    // raw
};
void PrintTo(const Nvswitched& host, std::ostream* out) { *out << host.kind; }
class NvswitchHosts : public ::testing::TestWithParam<Nvswitched> {};

TEST_P(NvswitchHosts, HaveTheLinksOfTheirDataSheet) {
  const Nvswitched& expected = GetParam();
  const Cluster cluster = one(expected.kind);
  const Graph& graph = cluster.graph;
  ASSERT_EQ(cluster.gpus.size(), expected.gpus);
  EXPECT_EQ(cluster.nics.size(), expected.nics);
  EXPECT_EQ(count(graph, NodeKind::scale_up_switch), expected.stages);
  for (const Gpu& gpu : cluster.gpus) {
    const auto nvlinks = neighbours(graph, gpu.node, LinkKind::nvlink);
    ASSERT_EQ(nvlinks.size(), 1u);
    EXPECT_EQ(graph.node(nvlinks.begin()->first).kind, NodeKind::scale_up_switch);
    EXPECT_EQ(nvlinks.begin()->second, expected.nvlink);
    const auto pcie = neighbours(graph, gpu.node, LinkKind::pcie);
    ASSERT_EQ(pcie.size(), 1u);
    EXPECT_EQ(pcie.begin()->second, expected.pcie * 256 / 280);
    const std::uint32_t index = gpu.local;
    EXPECT_EQ(gpu.nic, cluster.nics[index * expected.nics / expected.gpus].nic);
    for (std::uint32_t peer = 0; peer < expected.gpus; ++peer) {
      if (peer == index) continue;
      EXPECT_EQ(cluster.way(index, peer), HostRouteKind::nvlink);
      const bool other_board =
          index * expected.stages / expected.gpus != peer * expected.stages / expected.gpus;
      EXPECT_EQ(cluster.way_inside(index, peer).size(), other_board ? 3u : 2u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, NvswitchHosts,
    ::testing::Values(Nvswitched{"dgx_a100", 8, 8, 1, 240 * kGBps, 252 * kGbps},
                      Nvswitched{"dgx_h100", 8, 8, 1, 18 * 206 * kGBps / 10, 504 * kGbps},
                      Nvswitched{"dgx_h200", 8, 8, 1, 18 * 206 * kGBps / 10, 504 * kGbps},
                      Nvswitched{"hgx_h20", 8, 8, 1, 18 * 206 * kGBps / 10, 504 * kGbps},
                      Nvswitched{"{kind: dgx_h100, nics: 4}", 8, 4, 1, 18 * 206 * kGBps / 10, 504 * kGbps},
                      Nvswitched{"dgx_b200", 8, 8, 1, 18 * 401 * kGBps / 10, 504 * kGbps},
                      Nvswitched{"dgx_2", 16, 8, 2, 120 * kGBps, 126 * kGbps},
                      Nvswitched{"aws_p4de", 8, 4, 1, 240 * kGBps, 126 * kGbps}));

// NICs are divided among four PCIe switches with two GPUs each. A GPU whose switch has none uses the others'
// in turn, over NVLink to a GPU there. With two NICs a GPU both are at its switch.
TEST(Nics, AreAsManyAsAsked) {
  const Cluster two = one("{kind: dgx_h100, nics: 2}");
  ASSERT_EQ(two.nics.size(), 2u);
  EXPECT_EQ(two.nearest_nics(1), (std::vector<NodeId>{two.nics[0].nic}));
  EXPECT_EQ(two.nearest_nics(4), (std::vector<NodeId>{two.nics[1].nic}));
  EXPECT_EQ(two.nearest_nics(2).size(), 2u);
  EXPECT_EQ(two.links_to_nic(1), 2u);
  EXPECT_EQ(two.links_to_nic(2), 4u);
  const Cluster sixteen = one("{kind: dgx_h100, nics: 16}");
  EXPECT_EQ(sixteen.nearest_nics(3), (std::vector<NodeId>{sixteen.nics[6].nic, sixteen.nics[7].nic}));
  EXPECT_THAT(cluster_error("topology: {kind: star, hosts: 64}\nhost: {kind: dgx_h100, nics: 0}\n"),
              ::testing::HasSubstr("1 to 64"));
}

// With CPUs a GPU's PCIe reaches all NICs, but it sends by a GPU that is near one.
TEST(Nics, AreReachedOverNvlinkRatherThanCpus) {
  const Cluster cluster =
      cluster_of("topology: {kind: star, hosts: 64}\nhosts: 2\nhost: {kind: dgx_h100, nics: 1, cpus: 2}\n");
  const auto ends = cluster.nic_ends(7, 15, 0);
  ASSERT_EQ(ends.from.ports.size(), 4u);
  EXPECT_EQ(cluster.graph.port(ends.from.ports[0]).link.kind, LinkKind::nvlink);
  EXPECT_EQ(cluster.graph.port(ends.from.ports[1]).peer_node, cluster.gpus[0].node);
  for (const PortId port : ends.to.ports) EXPECT_EQ(cluster.graph.port(port).link.kind, LinkKind::pcie);
}

// 48 trunks of NVLink2, as many as the GPUs of a board have: 2.4 TB/s both ways, raw.
TEST(Dgx2, HasHalfOfItsBandwidthBetweenTheBoards) {
  const Cluster cluster = one("{kind: dgx_2, nvlink_efficiency: 1}");
  for (PortId port = 0; port < cluster.graph.port_count(); ++port) {
    const PortSpec& spec = cluster.graph.port(port);
    if (cluster.graph.node(spec.node).kind != NodeKind::scale_up_switch ||
        cluster.graph.node(spec.peer_node).kind != NodeKind::scale_up_switch)
      continue;
    EXPECT_EQ(2 * spec.link.rate, 2400 * kGBps);
  }
}

struct Cube {
  const char* kind;
  std::int64_t links;  // of a GPU
  BitRate rate;        // of one, usable
};
void PrintTo(const Cube& host, std::ostream* out) { *out << host.kind; }
class CubeMeshes : public ::testing::TestWithParam<Cube> {};

TEST_P(CubeMeshes, JoinEachGpuWithFourAndForwardToThree) {
  const Cluster cluster = one(GetParam().kind);
  ASSERT_EQ(cluster.gpus.size(), 8u);
  EXPECT_EQ(cluster.nics.size(), 4u);
  EXPECT_EQ(count(cluster.graph, NodeKind::cpu), 2u);
  EXPECT_EQ(count(cluster.graph, NodeKind::pcie_switch), 4u);
  for (std::uint32_t gpu = 0; gpu < 8; ++gpu) {
    const auto nvlinks = neighbours(cluster.graph, cluster.gpus[gpu].node, LinkKind::nvlink);
    EXPECT_EQ(nvlinks.size(), 4u);
    BitRate sum = 0;
    for (const auto& [peer, rate] : nvlinks) sum += rate;
    EXPECT_EQ(sum, GetParam().links * GetParam().rate);
    EXPECT_EQ(cluster.gpus[gpu].nic, cluster.nics[gpu / 2].nic);
    std::size_t far = 0;
    for (std::uint32_t peer = 0; peer < 8; ++peer) {
      if (peer == gpu) continue;
      const bool direct = nvlinks.contains(cluster.gpus[peer].node);
      EXPECT_EQ(direct, peer / 4 == gpu / 4 || peer % 4 == gpu % 4);
      EXPECT_EQ(cluster.way(gpu, peer), HostRouteKind::nvlink);
      EXPECT_EQ(cluster.way_inside(gpu, peer).size(), direct ? 1u : 2u);
      far += direct ? 0 : 1;
    }
    EXPECT_EQ(far, 3u);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, CubeMeshes,
                         ::testing::Values(Cube{"dgx_1", 4, 18 * kGBps}, Cube{"dgx_1v", 6, 20 * kGBps}));

}  // namespace
}  // namespace netsim::host_kinds_test
