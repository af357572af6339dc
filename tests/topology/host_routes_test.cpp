// Tests that the paths inside a host are those that its links allow. Covers the nearest NICs, NVLink before
// PCIe, at most one GPU in between, and a path for every pair in any host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "sim/topology/host_routes.h"
#include "sim/topology/topology.h"

namespace netsim::host_ways_test {
namespace {

using ::testing::ElementsAre;

constexpr LinkSpec kNvlink{.kind = LinkKind::nvlink, .rate = 200 * kGbps};
constexpr LinkSpec kPcie{.kind = LinkKind::pcie, .rate = 100 * kGbps};

// A host by hand, behind other nodes and ports, as a later host of a cluster is.
class SmallHost {
 public:
  SmallHost() {
    const AtomId before = graph.add_atom();
    graph.add_link(graph.add_node(NodeKind::nic, before, "a"), graph.add_node(NodeKind::nic, before, "b"),
                   {});
    first_node = static_cast<NodeId>(graph.node_count());
    first_port = static_cast<PortId>(graph.port_count());
    atom = graph.add_atom();
    host.ports.emplace_back();
  }
  NodeId add(NodeKind kind) {
    const NodeId node = graph.add_node(kind, atom, std::to_string(graph.node_count()));
    if (kind == NodeKind::gpu) host.gpus.push_back(node);
    if (kind == NodeKind::nic) host.ports[0].push_back(node);
    return node;
  }
  HostRoutes ways() const { return HostRoutes(graph, host, first_node, first_port); }
  // The nodes of a way after the first.
  std::vector<NodeId> through(const std::vector<PortId>& ports) const {
    std::vector<NodeId> nodes;
    nodes.reserve(ports.size());
    for (const PortId port : ports) nodes.push_back(graph.port(first_port + port).peer_node);
    return nodes;
  }

  Graph graph;
  HostBuild host;
  NodeId first_node = 0;
  PortId first_port = 0;
  AtomId atom = 0;
};

// To the nearest CPU, over PCIe and not by way of another CPU; none without one.
TEST(HostRoutes, LeadToTheHostsMemory) {
  SmallHost h;
  const NodeId a = h.add(NodeKind::gpu), b = h.add(NodeKind::gpu), c = h.add(NodeKind::gpu),
               hub = h.add(NodeKind::pcie_switch), far = h.add(NodeKind::cpu), near = h.add(NodeKind::cpu);
  h.graph.add_link(a, b, kNvlink);
  h.graph.add_link(b, hub, kPcie);
  h.graph.add_link(hub, near, kPcie);
  h.graph.add_link(near, far, kPcie);
  h.graph.add_link(c, far, kPcie);
  const HostRoutes ways = h.ways();
  EXPECT_EQ(ways.between(0, 0).kind, HostWayKind::none);
  EXPECT_EQ(ways.between(1, 1).kind, HostWayKind::pcie);
  EXPECT_THAT(h.through(ways.between(1, 1).ports), ElementsAre(hub, near));
  EXPECT_THAT(h.through(ways.between(2, 2).ports), ElementsAre(far));
}

TEST(HostRoutes, TakeNvlinkThenAnotherGpuThenPcie) {
  SmallHost h;
  const NodeId a = h.add(NodeKind::gpu), b = h.add(NodeKind::gpu), c = h.add(NodeKind::gpu),
               d = h.add(NodeKind::gpu), hub = h.add(NodeKind::pcie_switch);
  for (const NodeId gpu : h.host.gpus) h.graph.add_link(gpu, hub, kPcie);
  h.graph.add_link(a, b, kNvlink);
  h.graph.add_link(b, c, kNvlink);
  h.graph.add_link(c, d, kNvlink);
  const HostRoutes ways = h.ways();
  EXPECT_EQ(ways.between(0, 1).kind, HostWayKind::nvlink);
  EXPECT_THAT(h.through(ways.between(0, 1).ports), ElementsAre(b));
  EXPECT_EQ(ways.between(0, 2).kind, HostWayKind::nvlink);
  EXPECT_THAT(h.through(ways.between(0, 2).ports), ElementsAre(b, c));
  EXPECT_EQ(ways.between(0, 3).kind, HostWayKind::pcie);  // two GPUs would have to forward
  EXPECT_THAT(h.through(ways.between(0, 3).ports), ElementsAre(hub, d));
  EXPECT_EQ(ways.between(0, 0).kind, HostWayKind::none);
}

TEST(HostRoutes, ForwardOverTheWidestGpuAndInTurns) {
  SmallHost h;
  for (int i = 0; i < 6; ++i) h.add(NodeKind::gpu);
  LinkSpec wide = kNvlink;
  wide.rate = 2 * kNvlink.rate;
  for (const std::uint32_t end : {0U, 1U, 5U}) {  // 0, 1 and 5 are joined by way of 2, 3 and 4 only
    h.graph.add_link(h.host.gpus[end], h.host.gpus[2], kNvlink);
    h.graph.add_link(h.host.gpus[end], h.host.gpus[3], wide);
    h.graph.add_link(h.host.gpus[end], h.host.gpus[4], wide);
  }
  const HostRoutes ways = h.ways();
  EXPECT_THAT(h.through(ways.between(0, 1).ports), ElementsAre(h.host.gpus[4], h.host.gpus[1]));
  EXPECT_THAT(h.through(ways.between(1, 5).ports), ElementsAre(h.host.gpus[3], h.host.gpus[5]));
  EXPECT_THAT(h.through(ways.between(0, 5).ports), ElementsAre(h.host.gpus[4], h.host.gpus[5]));
}

TEST(HostRoutes, CrossFromCpuToCpuAsSeldomAsTheyCan) {
  SmallHost h;
  const NodeId a = h.add(NodeKind::gpu), b = h.add(NodeKind::gpu), one = h.add(NodeKind::cpu),
               two = h.add(NodeKind::cpu), far = h.add(NodeKind::nic), near = h.add(NodeKind::nic);
  const NodeId outer = h.add(NodeKind::pcie_switch), inner = h.add(NodeKind::pcie_switch);
  h.graph.add_link(one, two, kPcie);
  h.graph.add_link(a, one, kPcie);
  h.graph.add_link(b, two, kPcie);
  h.graph.add_link(far, two, kPcie);  // three links from a, one crossing
  h.graph.add_link(one, outer, kPcie);
  h.graph.add_link(outer, inner, kPcie);
  h.graph.add_link(inner, near, kPcie);  // four links, none
  const HostRoutes ways = h.ways();
  ASSERT_EQ(ways.nics(0, 0).size(), 2u);
  EXPECT_EQ(h.first_node + ways.nics(0, 0)[0].nic, near);
  EXPECT_EQ(h.first_node + ways.nics(0, 0)[1].nic, far);
  EXPECT_EQ(ways.nearest(0, 0), 1u);
  EXPECT_THAT(h.through(ways.nics(0, 0)[0].ports), ElementsAre(one, outer, inner, near));
  EXPECT_THAT(h.through(ways.between(0, 1).ports), ElementsAre(one, two, b));
}

// Its own PCIe leads to none: over NVLink to the GPU that has one.
TEST(HostRoutes, AGpuWithoutANicUsesThatOfAnother) {
  SmallHost h;
  const NodeId a = h.add(NodeKind::gpu), b = h.add(NodeKind::gpu), nic = h.add(NodeKind::nic);
  h.graph.add_link(a, b, kNvlink);
  h.graph.add_link(a, nic, kPcie);
  const HostRoutes ways = h.ways();
  ASSERT_EQ(ways.nics(1, 0).size(), 1u);
  EXPECT_THAT(h.through(ways.nics(1, 0)[0].ports), ElementsAre(a, nic));
  EXPECT_EQ(ways.nearest(1, 0), 1u);
}

// Two GPUs and a NIC, each GPU at a switch of its own, the NIC at that of the first; both switches at a CPU.
// Messages of the second one go over NVLink and leave by the first one's port. Those to it take PCIe
// (ncclTopoComputePaths in src/graph/paths.cc, PXN from GPU to NIC).
TEST(HostRoutes, AGpuSendsByTheOneThatIsNearTheNic) {
  SmallHost h;
  const NodeId a = h.add(NodeKind::gpu), b = h.add(NodeKind::gpu), nic = h.add(NodeKind::nic);
  const NodeId one = h.add(NodeKind::pcie_switch), two = h.add(NodeKind::pcie_switch),
               cpu = h.add(NodeKind::cpu);
  h.graph.add_link(a, one, kPcie);
  h.graph.add_link(nic, one, kPcie);
  h.graph.add_link(b, two, kPcie);
  h.graph.add_link(one, cpu, kPcie);
  h.graph.add_link(two, cpu, kPcie);
  EXPECT_THAT(h.through(h.ways().nics(1, 0)[0].ports), ElementsAre(two, cpu, one, nic));
  h.graph.add_link(a, b, kNvlink);
  const HostRoutes ways = h.ways();
  EXPECT_THAT(h.through(ways.nics(0, 0)[0].ports), ElementsAre(one, nic));
  EXPECT_THAT(h.through(ways.nics(1, 0)[0].ports), ElementsAre(a, one, nic));
  EXPECT_THAT(h.through(ways.nics(1, 0)[0].back), ElementsAre(two, cpu, one, nic));
  EXPECT_EQ(ways.nearest(1, 0), 1u);
}

// A NIC at a CPU is not near any GPU.
TEST(HostRoutes, AGpuSendsOverItsOwnCpuWhereOthersAreNoNearer) {
  SmallHost h;
  const NodeId a = h.add(NodeKind::gpu), b = h.add(NodeKind::gpu), nic = h.add(NodeKind::nic),
               cpu = h.add(NodeKind::cpu);
  for (const NodeId node : {a, b, nic}) h.graph.add_link(node, cpu, kPcie);
  h.graph.add_link(a, b, kNvlink);
  EXPECT_THAT(h.through(h.ways().nics(1, 0)[0].ports), ElementsAre(cpu, nic));
}

TEST(HostRoutes, GpusTakeTurnsAmongEquallyNearNics) {
  SmallHost h;
  const NodeId hub = h.add(NodeKind::pcie_switch);
  for (int i = 0; i < 4; ++i) h.graph.add_link(h.add(NodeKind::gpu), hub, kPcie);
  for (int i = 0; i < 2; ++i) h.graph.add_link(h.add(NodeKind::nic), hub, kPcie);
  const HostRoutes ways = h.ways();
  for (std::uint32_t gpu = 0; gpu < 4; ++gpu) {
    EXPECT_EQ(ways.nearest(gpu, 0), 2u);
    EXPECT_EQ(h.first_node + ways.nics(gpu, 0)[0].nic, h.host.ports[0][gpu % 2]);
    EXPECT_EQ(h.first_node + ways.nics(gpu, 0)[1].nic, h.host.ports[0][1 - gpu % 2]);
  }
}

// Whether the ports are a way from one node to another that visits none twice and keeps to one kind of link.
void expect_way(const SmallHost& h, const std::vector<PortId>& ports, NodeId from, NodeId to, LinkKind kind) {
  NodeId at = from;
  std::set<NodeId> seen{from};
  for (const PortId port : ports) {
    const PortSpec& spec = h.graph.port(h.first_port + port);
    RC_ASSERT(spec.node == at);
    RC_ASSERT(spec.link.kind == kind);
    RC_ASSERT(seen.insert(spec.peer_node).second);
    at = spec.peer_node;
  }
  RC_ASSERT(at == to);
}

RC_GTEST_PROP(HostRoutes, AreWaysInAnyHost, ()) {
  SmallHost h;
  const auto gpus = *rc::gen::inRange<std::uint32_t>(1, 9), others = *rc::gen::inRange<std::uint32_t>(1, 7);
  std::vector<NodeId> tree{h.add(NodeKind::cpu)};
  for (std::uint32_t i = 0; i < others; ++i) {
    const auto kind = *rc::gen::element(NodeKind::cpu, NodeKind::pcie_switch, NodeKind::scale_up_switch);
    const NodeId node = h.add(kind);
    if (kind == NodeKind::scale_up_switch) continue;
    h.graph.add_link(node, *rc::gen::elementOf(tree), kPcie);
    tree.push_back(node);
  }
  for (std::uint32_t i = 0; i < gpus; ++i)
    h.graph.add_link(h.add(NodeKind::gpu), *rc::gen::elementOf(tree), kPcie);
  for (std::uint32_t i = *rc::gen::inRange(1, 4); i > 0; --i)
    h.graph.add_link(h.add(NodeKind::nic), *rc::gen::elementOf(tree), kPcie);
  const auto nodes = static_cast<NodeId>(h.graph.node_count());
  for (int i = *rc::gen::inRange(0, 20); i > 0; --i) {
    const NodeId a = *rc::gen::inRange(h.first_node, nodes), b = *rc::gen::inRange(h.first_node, nodes);
    if (a != b) h.graph.add_link(a, b, *rc::gen::arbitrary<bool>() ? kNvlink : kPcie);
  }
  const HostRoutes ways = h.ways();
  for (std::uint32_t from = 0; from < gpus; ++from) {
    for (std::uint32_t to = 0; to < gpus; ++to) {
      const HostRoutes::GpuRoute& way = ways.between(from, to);
      RC_ASSERT(way.kind != HostWayKind::none);
      if (from == to) {  // to the memory of the host
        RC_ASSERT(way.kind == HostWayKind::pcie);
        const NodeId cpu = h.graph.port(h.first_port + way.ports.back()).peer_node;
        RC_ASSERT(h.graph.node(cpu).kind == NodeKind::cpu);
        expect_way(h, way.ports, h.host.gpus[from], cpu, LinkKind::pcie);
        continue;
      }
      expect_way(h, way.ports, h.host.gpus[from], h.host.gpus[to],
                 way.kind == HostWayKind::nvlink ? LinkKind::nvlink : LinkKind::pcie);
      RC_ASSERT(ways.between(to, from).kind == way.kind);
      RC_ASSERT(ways.between(to, from).ports.size() == way.ports.size());
    }
    RC_ASSERT(ways.nics(from, 0).size() == h.host.ports[0].size());
    for (const HostRoutes::NicRoute& way : ways.nics(from, 0)) {
      const NodeId nic = h.first_node + way.nic;
      expect_way(h, way.back, h.host.gpus[from], nic, LinkKind::pcie);
      // Messages to the NIC may go over NVLink to a GPU first.
      const auto pcie = std::find_if(way.ports.begin(), way.ports.end(), [&](PortId port) {
        return h.graph.port(h.first_port + port).link.kind == LinkKind::pcie;
      });
      RC_ASSERT(pcie != way.ports.end());
      const NodeId middle = h.graph.port(h.first_port + *pcie).node;
      RC_ASSERT(std::count(h.host.gpus.begin(), h.host.gpus.end(), middle) == 1);
      expect_way(h, {way.ports.begin(), pcie}, h.host.gpus[from], middle, LinkKind::nvlink);
      expect_way(h, {pcie, way.ports.end()}, middle, nic, LinkKind::pcie);
    }
  }
}

}  // namespace
}  // namespace netsim::host_ways_test
