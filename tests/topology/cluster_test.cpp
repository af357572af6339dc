// Is any host kind joined to any fabric as configured, and is what does not fit refused with what would?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "sim/core/registry.h"
#include "tests/topology/build.h"

namespace netsim::cluster_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

const std::string kMainJob = "topology: {kind: fat_tree, k: 8, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 16\n";

TEST(Cluster, HostsAreSingleNicAndFillTheFabricByDefault) {
  const Cluster cluster = cluster_of("topology: {kind: star, hosts: 5}\n");
  EXPECT_EQ(cluster.host_count, 5u);
  EXPECT_EQ(cluster.groups[0].gpu_model, "");
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
  EXPECT_EQ(cluster.groups[0].gpu_model, "a100_80gb");
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

TEST(Cluster, IsMadeOfGroupsOfHosts) {
  const Cluster cluster = cluster_of(
      "topology: {kind: star, hosts: 40}\n"
      "hosts:\n  - {kind: dgx_a100, count: 2, nvlink_piece: 64 KiB}\n  - {kind: pcie_server, count: 1}\n"
      "  - {kind: single_nic}\n");
  ASSERT_EQ(cluster.groups.size(), 3u);
  EXPECT_EQ(cluster.groups[0].kind, "dgx_a100");
  EXPECT_EQ(cluster.groups[0].gpu_model, "a100_80gb");
  EXPECT_EQ(cluster.groups[1].acknowledge_every, 256);
  EXPECT_EQ(cluster.groups[2].acknowledge_every, 1);
  EXPECT_EQ(cluster.groups[2].hosts, 20u);  // the host ports that are left
  EXPECT_EQ(cluster.host_count, 23u);
  EXPECT_EQ(cluster.gpus.size(), 2u * 8 + 8 + 20);
  ASSERT_EQ(cluster.nics.size(), 40u);
  for (std::uint32_t i = 0; i < 16; ++i) EXPECT_EQ(cluster.gpus[i].nic, cluster.nics[i].nic);
  for (std::uint32_t i = 16; i < 24; ++i) EXPECT_EQ(cluster.gpus[i].nic, cluster.nics[16 + (i - 16) / 2].nic);
  for (std::uint32_t i = 24; i < 44; ++i) EXPECT_EQ(cluster.gpus[i].nic, cluster.nics[20 + i - 24].nic);
  EXPECT_EQ(cluster.graph.port(cluster.way_inside(8, 9)[0]).link.mtu, 64 * kKibibyte);
  EXPECT_EQ(cluster.way(8, 9), HostRouteKind::nvlink);
  EXPECT_EQ(cluster.way(16, 17), HostRouteKind::pcie);
  EXPECT_EQ(cluster.way(15, 16), HostRouteKind::packets);
}

// A way's ports are those of the host that it is in, whichever it is.
TEST(Cluster, FindsTheWaysOfEveryHost) {
  const Cluster cluster = cluster_of("topology: {kind: star, hosts: 12}\nhost: pcie_server\nhosts: 3\n");
  for (std::uint32_t from = 0; from < 24; ++from) {
    const Cluster::NicEnd end = cluster.nic_ends(from, (from + 8) % 24, 0).from;
    EXPECT_EQ(end.nic, cluster.gpus[from].nic);
    NodeId at = cluster.gpus[from].node;
    for (const PortId port : end.ports) {
      EXPECT_EQ(cluster.graph.port(port).node, at);
      at = cluster.graph.port(port).peer_node;
    }
    EXPECT_EQ(at, end.nic);
    const std::uint32_t peer = from / 8 * 8 + (from + 3) % 8;
    at = cluster.gpus[from].node;
    for (const PortId port : cluster.way_inside(from, peer)) {
      EXPECT_EQ(cluster.graph.port(port).node, at);
      at = cluster.graph.port(port).peer_node;
    }
    EXPECT_EQ(at, cluster.gpus[peer].node);
  }
}

TEST(Cluster, HasSeveralFabrics) {
  const Cluster cluster = cluster_of(
      "fabrics:\n  rack: {kind: nvl_rack, racks: 2}\n  scale_out: {kind: star, hosts: 100}\n"
      "hosts:\n  - {kind: gb200, count: 20}\n  - {kind: single_nic, count: 4}\n");
  ASSERT_EQ(cluster.fabrics.size(), 2u);
  EXPECT_TRUE(cluster.fabrics[0].scale_up);
  EXPECT_EQ(cluster.fabrics[0].ports.size(), 80u);
  EXPECT_EQ(cluster.fabrics[1].ports.size(), 84u);
  EXPECT_EQ(cluster.nics.size(), 84u);
  EXPECT_EQ(cluster.way(0, 71), HostRouteKind::nvlink_fabric);
  EXPECT_EQ(cluster.delay_inside(0, 71), (25 + 100 + 25) * kNanosecond);  // NVLinks and the NVSwitch
  EXPECT_EQ(cluster.way(71, 72), HostRouteKind::packets);                 // the other rack
  EXPECT_EQ(cluster.way(72, 79), HostRouteKind::nvlink_fabric);
  EXPECT_EQ(cluster.way(0, 80), HostRouteKind::packets);
  EXPECT_EQ(cluster.way(80, 81), HostRouteKind::packets);
  std::vector<std::string> switches;
  for (NodeId node = 0; node < cluster.graph.node_count(); ++node) {
    const NodeKind kind = cluster.graph.node(node).kind;
    if (kind == NodeKind::scale_up_switch || kind == NodeKind::fabric_switch)
      switches.push_back(cluster.graph.node(node).name);
  }
  EXPECT_THAT(switches, ::testing::ElementsAre("rack/nvswitch0", "rack/nvswitch1", "switch0"));
  for (std::uint32_t i = 0; i < 83; ++i)
    EXPECT_EQ(walk(cluster, cluster.gpus[i].nic, cluster.gpus[83].nic, 0), 2u);
}

TEST(Cluster, KnowsHowLongTheWaysInAHostAre) {
  for (const auto& [host, expected] :
       {std::pair{"dgx_a100", 150}, std::pair{"dgx_1v", 25}, std::pair{"pcie_server", -1}}) {
    const Cluster cluster =
        cluster_of("topology: {kind: star, hosts: 8}\nhost: " + std::string(host) + "\nhosts: 1\n");
    Time sum = 0;
    for (const PortId port : cluster.way_inside(0, 1)) sum += cluster.graph.port(port).link.delay;
    EXPECT_GT(sum, 0) << host;
    EXPECT_EQ(cluster.delay_inside(0, 1), sum) << host;
    if (expected > 0) {
      EXPECT_EQ(sum, expected * kNanosecond) << host;
    }
  }
}

// Groups in separate fabrics, one of them with its own racks. Numbers begin anew in each island.
TEST(Cluster, MayFallIntoIslands) {
  const std::string one = "{kind: fat_tree, k: 4}",
                    two = "{kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 8}";
  const Cluster cluster =
      cluster_of("fabrics: {racks: {kind: nvl_rack, gpus: 8, racks: 1}, a: " + one + ", b: " + two +
                 "}\nhosts: [{kind: single_nic, count: 16, fabric: a}, {kind: gb200, count: 2, fabric: "
                 "{rack: racks, scale_out: "
                 "b}}, {kind: dgx_a100, count: 1, fabric: b}]\n");
  ASSERT_EQ(cluster.gpus.size(), 32u);
  EXPECT_NE(cluster.island_of_group[0], cluster.island_of_group[1]);
  EXPECT_EQ(cluster.island_of_group[1], cluster.island_of_group[2]);
  const Cluster alone =
      cluster_of("fabrics: {racks: {kind: nvl_rack, gpus: 8, racks: 1}, b: " + two +
                 "}\nhosts: [{kind: gb200, count: 2, fabric: {rack: racks, scale_out: b}}, {kind: "
                 "dgx_a100, count: 1, fabric: b}]\n");
  EXPECT_TRUE(alone.gpu_numbers.empty());
  // Node by node and port by port the second island is what it is alone.
  std::vector<NodeId> nodes(alone.graph.node_count(), kNoId);
  std::size_t of_second = 0;
  for (NodeId id = 0; id < cluster.graph.node_count(); ++id) {
    const std::string& name = cluster.graph.node(id).name;
    if (name.starts_with("a/") || (name.starts_with("host") && std::stoi(name.substr(4)) < 16)) continue;
    const std::uint32_t number = cluster.graph.node_number(id);
    ASSERT_LT(number, nodes.size()) << name;
    EXPECT_EQ(nodes[number], kNoId) << name;
    nodes[number] = id;
    ++of_second;
    EXPECT_EQ(cluster.graph.node(id).kind, alone.graph.node(number).kind);
    ASSERT_EQ(cluster.graph.ports_of(id).size(), alone.graph.ports_of(number).size()) << name;
    for (std::size_t i = 0; i < cluster.graph.ports_of(id).size(); ++i)
      EXPECT_EQ(cluster.graph.port_number(cluster.graph.ports_of(id)[i]), alone.graph.ports_of(number)[i]);
  }
  EXPECT_EQ(of_second, alone.graph.node_count());
  for (std::uint32_t gpu = 0; gpu < 32; ++gpu) EXPECT_EQ(cluster.gpu_number(gpu), gpu < 16 ? gpu : gpu - 16);
  for (std::uint32_t gpu = 16; gpu < 32; ++gpu) {
    EXPECT_EQ(cluster.nearest_nics(gpu).size(), alone.nearest_nics(gpu - 16).size());
    EXPECT_EQ(cluster.way(16, gpu), alone.way(0, gpu - 16));
  }
  EXPECT_THROW(cluster.nic_ends(3, 20, 0), ConfigError);
}

// Figures of NVL72: 18 NVLinks of 50 GB/s, of which NCCL counts 40.1.
TEST(NvlRack, GivesEachGpuItsLinks) {
  const Cluster cluster =
      cluster_of("fabrics:\n  rack: {kind: nvl_rack}\n  scale_out: {kind: star, hosts: 72}\nhost: gb200\n");
  EXPECT_EQ(cluster.host_count, 18u);
  for (const Gpu& gpu : cluster.gpus) {
    BitRate rate = 0;
    for (const PortId port : cluster.graph.ports_of(gpu.node)) {
      const PortSpec& spec = cluster.graph.port(port);
      if (spec.link.kind == LinkKind::nvlink) rate += spec.link.rate;
      if (cluster.graph.node(spec.node).atom != cluster.graph.node(spec.peer_node).atom) {
        EXPECT_GE(spec.link.delay, kNanosecond);
      }
    }
    EXPECT_EQ(rate, 18 * 8 * 40'100 * kMbps);
    EXPECT_EQ(gpu.domain, 0u);
  }
}

TEST(Cluster, RefusesGroupsAndFabricsThatDoNotFit) {
  const std::string star = "topology: {kind: star, hosts: 10}\n";
  EXPECT_THAT(cluster_error(star + "host: dgx_a100\nhosts: [{kind: single_nic, count: 1}]\n"),
              AllOf(HasSubstr("test.yaml:2:1"), HasSubstr("'host' and a list of 'hosts'")));
  EXPECT_THAT(
      cluster_error(star + "hosts:\n  - {kind: dgx_a100, count: 1}\n  - {kind: single_nic, count: 3}\n"),
      AllOf(HasSubstr("test.yaml:4:"), HasSubstr("3 hosts; allowed: 1 to 2"),
            HasSubstr("2 of its 10 host ports left")));
  EXPECT_THAT(cluster_error(star + "hosts:\n  - {kind: dgx_a100}\n  - {kind: single_nic}\n"),
              AllOf(HasSubstr("test.yaml:3:"), HasSubstr("'count' is missing")));
  EXPECT_THAT(cluster_error(star + "hosts: []\n"), HasSubstr("at least one group"));
  EXPECT_THAT(cluster_error(star + "hosts: [dgx_a100]\n"), HasSubstr("expected a group"));
  EXPECT_THAT(cluster_error(star + "hosts: [{kind: dgx_a100, count: 1, cuont: 2}]\n"), HasSubstr("cuont"));
  EXPECT_THAT(cluster_error(star + "hosts: [{kind: dgx_a10, count: 1}]\n"),
              HasSubstr("did you mean 'dgx_a100'"));
  EXPECT_THAT(cluster_error(star + "host: gb200\n"),
              AllOf(HasSubstr("4 ports for a fabric 'rack'"), HasSubstr("fabrics: scale_out")));
  EXPECT_THAT(cluster_error(star + "fabrics: {scale_out: {kind: star, hosts: 2}}\n"),
              AllOf(HasSubstr("test.yaml:1:1"), HasSubstr("give one of them")));
  EXPECT_THAT(cluster_error("fabrics: {}\n"), HasSubstr("expected fabrics by name"));
  EXPECT_THAT(
      cluster_error("fabrics: {scale_out: {kind: star, hosts: 4}, rack: {kind: nvl_rack}}\nhost: gb200\n"
                    "hosts: 2\n"),
      AllOf(HasSubstr("1 to 1"), HasSubstr("fabric scale_out has 4 host ports"), HasSubstr("4 NICs")));
  EXPECT_THAT(cluster_error("topology: {kind: nvl_rack, gpus: 8, racks: 2}\nhost: dgx_a100\n"),
              HasSubstr("GPU 0 of host dgx_a100 has no path to a NIC, but there are other hosts"));
  const std::string two = "fabrics: {a: {kind: star, hosts: 4}, b: {kind: star, hosts: 4}}\n";
  EXPECT_THAT(cluster_error(two + "hosts: [{kind: single_nic, count: 2}]\n"),
              AllOf(HasSubstr("1 port for a fabric 'scale_out'"), HasSubstr("fabrics: a, b")));
  EXPECT_THAT(cluster_error(two + "hosts: [{kind: single_nic, count: 2, fabric: c}]\n"),
              AllOf(HasSubstr("test.yaml:2:"), HasSubstr("hosts.0.fabric"), HasSubstr("a fabric 'c'")));
  EXPECT_THAT(cluster_error(two + "hosts: [{kind: single_nic, count: 2, fabric: {rack: a}}]\n"),
              AllOf(HasSubstr("hosts.0.fabric.rack"), HasSubstr("no ports for that; allowed: scale_out")));
  EXPECT_THAT(cluster_error(two + "hosts: [{kind: single_nic, count: 5, fabric: b}]\n"),
              HasSubstr("fabric b has 4 host ports"));
  EXPECT_THAT(cluster_error("fabrics: {rack: {kind: nvl_rack, nvlink_delay: 0}, scale_out: {kind: star}}\n"),
              HasSubstr("at least 1 ns"));
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
}  // namespace netsim::cluster_test
