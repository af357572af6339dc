// Is any host kind joined to any fabric as configured, and is what does not fit refused with what would?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "sim/core/registry.h"
#include "tests/topology/build.h"

namespace netsim {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsSupersetOf;

const std::string kMainJob = "topology: {kind: fat_tree, k: 8, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 16\n";

TEST(Cluster, HostsAreSingleNicAndFillTheFabricByDefault) {
  const Cluster cluster = cluster_of("topology: {kind: star, hosts: 5}\n");
  EXPECT_EQ(cluster.host_count, 5u);
  EXPECT_EQ(cluster.gpu_model, "");
  ASSERT_EQ(cluster.gpus.size(), 5u);
  for (std::uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(cluster.gpus[i].node, cluster.gpus[i].nic);
    EXPECT_EQ(cluster.gpus[i].nic, cluster.nics[i].nic);
    EXPECT_EQ(cluster.gpus[i].host, i);
    EXPECT_EQ(cluster.graph.node(cluster.nics[i].nic).kind, NodeKind::nic);
    EXPECT_EQ(cluster.graph.node(cluster.nics[i].nic).name, "host" + std::to_string(i));
  }
}

TEST(Cluster, OfTheMainJobHas128GpusOnOneFatTree) {
  const Cluster cluster = cluster_of(kMainJob);
  EXPECT_EQ(cluster.host_count, 16u);
  EXPECT_EQ(cluster.gpus.size(), 128u);
  EXPECT_EQ(cluster.nics.size(), 128u);
  EXPECT_EQ(cluster.gpu_model, "a100_80gb");
  EXPECT_EQ(cluster.graph.atom_count(), 16u + 80u);
  EXPECT_EQ(cluster.graph.port_count(), 2u * (384 + 16 * 16));
  EXPECT_TRUE(cluster.same_host(8, 15));
  EXPECT_FALSE(cluster.same_host(7, 8));
}

TEST(Cluster, GpuGOfNodeNUsesHostPort8NPlusG) {
  const Cluster cluster = cluster_of(kMainJob);
  for (std::uint32_t i = 0; i < 128; ++i) {
    const Gpu& gpu = cluster.gpus[i];
    EXPECT_EQ(gpu.host, i / 8);
    EXPECT_EQ(gpu.local, i % 8);
    EXPECT_EQ(gpu.nic, cluster.nics[i].nic);
    const std::string name = "host" + std::to_string(i / 8) + "/gpu" + std::to_string(i % 8);
    EXPECT_EQ(cluster.graph.node(gpu.node).name, name);
    const PortId up = cluster.graph.ports_of(gpu.nic).back();
    EXPECT_EQ(cluster.graph.node(cluster.graph.port(up).peer_node).name, "edge" + std::to_string(i / 4));
  }
}

TEST(Cluster, NodesNAndNPlusOneShareAPodForEvenN) {
  const Cluster cluster = cluster_of(kMainJob);
  for (std::uint32_t i = 0; i < 128; ++i) {
    const auto links = cluster.graph.fabric_distances(
        cluster.graph.port(cluster.graph.ports_of(cluster.nics[i].nic).back()).peer_node);
    for (std::uint32_t j = 0; j < 128; ++j) {
      const NodeId edge = cluster.graph.port(cluster.graph.ports_of(cluster.nics[j].nic).back()).peer_node;
      EXPECT_EQ(links[edge] <= 2, i / 16 == j / 16) << i << " " << j;
    }
  }
}

TEST(Cluster, FabricNextHopsOfHostsWithSeveralNicsStayInTheFabric) {
  const Cluster cluster = cluster_of("topology: {kind: fat_tree, k: 4}\nhost: dgx_a100\n");
  EXPECT_EQ(cluster.host_count, 2u);
  const auto search = shortest_path_routes(cluster.graph, cluster.nics);
  for (NodeId from : nic_nodes(cluster)) {
    for (NodeId to : nic_nodes(cluster)) {
      if (from == to) continue;
      const auto hops = cluster.routes->next_hops(from, to);
      ASSERT_EQ(hops.size(), 1u);
      EXPECT_EQ(cluster.graph.node(cluster.graph.port(hops[0]).peer_node).kind, NodeKind::fabric_switch);
      EXPECT_EQ(next_hop_set(*search, from, to), next_hop_set(*cluster.routes, from, to));
      EXPECT_GE(walk(cluster, from, to, 0), 2u);
    }
  }
}

TEST(Cluster, RoutesSurviveAMove) {
  Cluster first = cluster_of("topology: {kind: fat_tree, k: 4}\n");
  const Cluster moved = std::move(first);
  EXPECT_EQ(walk(moved, moved.nics[0].nic, moved.nics[15].nic, 1), 6u);
}

TEST(Star, AllNicsAreTwoLinksApart) {
  const Cluster cluster = cluster_of("topology: {kind: star, hosts: 9, rate: 25 Gbps, delay: 2 us}\n");
  EXPECT_EQ(cluster.graph.node_count(), 10u);
  for (NodeId from : nic_nodes(cluster)) {
    for (NodeId to : nic_nodes(cluster)) {
      if (from == to) continue;
      EXPECT_EQ(walk(cluster, from, to, 0), 2u);
    }
  }
  EXPECT_EQ(cluster.graph.port(0).link.rate, 25 * kGbps);
  EXPECT_EQ(cluster.graph.port(0).link.delay, 2 * kMicrosecond);
}

TEST(SwitchLine, HasOneHostAtEachEnd) {
  for (std::uint32_t switches : {1u, 2u, 5u}) {
    const Cluster cluster =
        cluster_of("topology: {kind: switch_line, switches: " + std::to_string(switches) + "}\n");
    ASSERT_EQ(cluster.nics.size(), 2u);
    EXPECT_EQ(walk(cluster, cluster.nics[0].nic, cluster.nics[1].nic, 0), switches + 1);
    EXPECT_EQ(walk(cluster, cluster.nics[1].nic, cluster.nics[0].nic, 0), switches + 1);
    EXPECT_EQ(cluster.graph.distances(cluster.nics[0].nic)[cluster.nics[1].nic], switches + 1);
  }
}

TEST(Cluster, LinksBetweenAtomsHaveADelay) {
  for (const char* host : {"single_nic", "dgx_a100"}) {
    const Cluster cluster =
        cluster_of("topology: {kind: fat_tree, k: 4, delay: 1 ns}\nhost: " + std::string(host) + "\n");
    for (PortId p = 0; p < cluster.graph.port_count(); ++p) {
      const PortSpec& port = cluster.graph.port(p);
      if (cluster.graph.node(port.node).atom == cluster.graph.node(port.peer_node).atom) continue;
      EXPECT_GE(port.link.delay, 1 * kNanosecond);
    }
  }
}

TEST(DgxA100, HasItsLinks) {
  const Cluster cluster = cluster_of("topology: {kind: star, hosts: 8}\nhost: dgx_a100\n");
  const Graph& graph = cluster.graph;
  std::set<NodeId> nvswitches;
  for (const Gpu& gpu : cluster.gpus) {
    ASSERT_EQ(graph.ports_of(gpu.node).size(), 2u);
    const PortId up = graph.ports_of(gpu.node)[0];
    const PortId pcie = graph.ports_of(gpu.node)[1];
    nvswitches.insert(graph.port(up).peer_node);
    EXPECT_EQ(graph.port(up).link.kind, LinkKind::nvlink);
    EXPECT_EQ(graph.port(up).link.rate, 8 * 240 * kGbps);
    EXPECT_EQ(graph.port(up).link.mtu, 512 * kKibibyte);
    EXPECT_EQ(graph.port(up).link.overhead, 0);
    EXPECT_TRUE(graph.port(up).link.cut_through);
    EXPECT_FALSE(graph.port(up ^ 1).link.cut_through);
    EXPECT_EQ(graph.port(up).link.delay - graph.port(up ^ 1).link.delay, 100 * kNanosecond);
    EXPECT_EQ(graph.port(pcie).peer_node, gpu.nic);
    EXPECT_EQ(graph.port(pcie).link.kind, LinkKind::pcie);
    EXPECT_EQ(graph.port(pcie).link.rate, 230'400'000'000);  // 252 Gb/s x 256 / 280
    EXPECT_EQ(graph.port(pcie ^ 1).link.rate, graph.port(pcie).link.rate);
    EXPECT_EQ(graph.node(gpu.node).atom, graph.node(gpu.nic).atom);
  }
  ASSERT_EQ(nvswitches.size(), 1u);
  EXPECT_EQ(graph.node(*nvswitches.begin()).kind, NodeKind::scale_up_switch);
  EXPECT_EQ(graph.node(*nvswitches.begin()).name, "host0/nvswitch");
  EXPECT_EQ(graph.ports_of(*nvswitches.begin()).size(), 8u);
}

TEST(DgxA100, TakesItsParameters) {
  const Cluster cluster = cluster_of(
      "topology: {kind: star, hosts: 8}\n"
      "host: {kind: dgx_a100, nvlink_rate: 100 GB/s, nvlink_efficiency: 1/2, nvlink_piece: 64 KiB, "
      "nvlink_delay: 0,\n"
      "       nvswitch_latency: 7 ns, pcie_rate: 128 Gbps, pcie_tlp_overhead: 0, pcie_delay: 1 us}\n");
  const LinkSpec nvlink = cluster.graph.port(cluster.graph.ports_of(cluster.gpus[3].node)[0]).link;
  const LinkSpec pcie = cluster.graph.port(cluster.graph.ports_of(cluster.gpus[3].node)[1]).link;
  EXPECT_EQ(nvlink.rate, 400 * kGbps);
  EXPECT_EQ(nvlink.mtu, 64 * kKibibyte);
  EXPECT_EQ(nvlink.delay, 7 * kNanosecond);
  EXPECT_EQ(pcie.rate, 128 * kGbps);
  EXPECT_EQ(pcie.delay, 1 * kMicrosecond);
}

TEST(Cluster, RefusesWhatDoesNotFit) {
  const std::string tree = "topology: {kind: fat_tree, k: 4}\n";
  EXPECT_THAT(cluster_error(tree + "hosts: 17\n"),
              AllOf(HasSubstr("test.yaml:2:"), HasSubstr("17 hosts"), HasSubstr("1 to 16")));
  EXPECT_THAT(cluster_error(tree + "hosts: 0\n"), HasSubstr("1 to 16"));
  EXPECT_THAT(cluster_error(tree + "hosts: -1\n"), HasSubstr("1 to 16"));
  EXPECT_THAT(cluster_error(tree + "hosts: many\n"), HasSubstr("hosts"));
  EXPECT_THAT(cluster_error(tree + "host: dgx_a100\nhosts: 3\n"),
              AllOf(HasSubstr("1 to 2"), HasSubstr("16 host ports"), HasSubstr("8 NICs")));
  EXPECT_THAT(cluster_error("topology: {kind: star, hosts: 7}\nhost: dgx_a100\n"), HasSubstr("no host fits"));
  EXPECT_THAT(cluster_error("topology: {kind: star, hosts: 7}\nhost: dgx_a100\nhosts: 1\n"),
              HasSubstr("none"));
}

TEST(Cluster, RefusesUnknownKindsWithTheNearestName) {
  EXPECT_THAT(cluster_error("topology: {kind: fat_tre, k: 4}\n"),
              AllOf(HasSubstr("'fat_tre'"), HasSubstr("'fat_tree'")));
  EXPECT_THAT(cluster_error("topology: {kind: fat_tree, k: 4}\nhost: dgx_a10\n"),
              AllOf(HasSubstr("'dgx_a10'"), HasSubstr("'dgx_a100'")));
  EXPECT_THAT(cluster_error("host: dgx_a100\n"),
              AllOf(HasSubstr("'topology' is missing"), HasSubstr("fat_tree")));
  EXPECT_THAT(cluster_error("topology: {k: 4}\n"), HasSubstr("'kind' is missing"));
  EXPECT_THAT(cluster_error("topology: {kind: star, hosts: 8}\nhost: {kind: dgx_a100, nvlink_pice: 4 KiB}\n"),
              HasSubstr("nvlink_piece"));
}

TEST(Cluster, EveryTopologyAndHostIsDescribed) {
  for (const char* kind : {"topology", "host"}) {
    for (const std::string& name : Catalogue::instance().names(kind)) {
      const ComponentInfo* info = Catalogue::instance().find(kind, name);
      ASSERT_NE(info, nullptr);
      EXPECT_FALSE(info->summary.empty()) << name;
      for (const ParameterInfo& parameter : info->parameters)
        EXPECT_FALSE(parameter.doc.empty()) << parameter.name;
    }
  }
  EXPECT_THAT(Catalogue::instance().names("topology"), IsSupersetOf({"fat_tree", "star", "switch_line"}));
  EXPECT_THAT(Catalogue::instance().names("host"), IsSupersetOf({"dgx_a100", "single_nic"}));
}

}  // namespace
}  // namespace netsim
