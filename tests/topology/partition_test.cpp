// Are the sets whole, even and near, whatever the network's shape, and is the lookahead that of the links?
#include "sim/topology/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/topology/build.h"

namespace netsim::partition_test {
namespace {

const char* const kRing =
    "topology:\n"
    "  kind: custom\n"
    "  switches: [s0, s1, s2, s3, s4, s5]\n"
    "  delay: 2 us\n"
    "  links:\n"
    "    - {from: host0, to: s0, delay: 500 ns}\n"
    "    - {from: host1, to: s1}\n"
    "    - {from: host2, to: s2}\n"
    "    - {from: host3, to: s3}\n"
    "    - {from: host4, to: s4}\n"
    "    - {from: host5, to: s5}\n"
    "    - {from: s0, to: s1, delay: 99 ns}\n"  // never cut
    "    - {from: s1, to: s2}\n"
    "    - {from: s1, to: s2, delay: 700 ns}\n"
    "    - {from: s2, to: s3, delay: 100 ns}\n"
    "    - {from: s3, to: s4}\n"
    "    - {from: s4, to: s5}\n"
    "    - {from: s5, to: s0}\n";

struct Shape {
  const char* name;
  std::string yaml;
};

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all{
      {"star", "{topology: {kind: star, hosts: 100}, host: single_nic}"},
      {"pods", "{topology: {kind: fat_tree, k: 8}, host: single_nic}"},
      {"fat tree", "{topology: {kind: fat_tree, k: 16}, host: single_nic}"},
      {"oversubscribed", "{topology: {kind: fat_tree, k: 8, oversubscription: 4}, host: single_nic}"},
      {"dgx", "{topology: {kind: fat_tree, k: 8, rate: 200 Gbps}, host: dgx_a100, hosts: 16}"},
      {"line", "{topology: {kind: switch_line, switches: 12}, host: single_nic}"},
      {"ring", kRing},
  };
  return all;
}

std::vector<std::uint64_t> ports_of_sets(const Graph& graph, const Partition& p) {
  std::vector<std::uint64_t> ports(p.sets, 0);
  for (PortId id = 0; id < graph.port_count(); ++id) ++ports[p.set_of(graph.port(id).node)];
  return ports;
}

// Checks the properties of every partition.
void expect_sound(const Graph& graph, const Partition& p) {
  if (p.sets == 1) {
    EXPECT_TRUE(p.set_of_node.empty());
    return;
  }
  ASSERT_EQ(p.set_of_node.size(), graph.node_count());
  std::map<AtomId, std::uint32_t> set_of_atom;
  std::vector<std::uint32_t> nodes(p.sets, 0);
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    ASSERT_LT(p.set_of(id), p.sets);
    ++nodes[p.set_of(id)];
    const auto [known, fresh] = set_of_atom.emplace(graph.node(id).atom, p.set_of(id));
    EXPECT_EQ(known->second, p.set_of(id)) << "an atom is cut at " << graph.node(id).name;
  }
  EXPECT_EQ(std::count(nodes.begin(), nodes.end(), 0u), 0) << "a set is empty";
  // The least delay from set to set, counted anew.
  std::map<std::pair<std::uint32_t, std::uint32_t>, Time> least;
  for (PortId id = 0; id < graph.port_count(); ++id) {
    const PortSpec& port = graph.port(id);
    const std::uint32_t a = p.set_of(port.node), b = p.set_of(port.peer_node);
    if (a == b) continue;
    EXPECT_GE(port.link.delay, 100 * kNanosecond) << graph.port_name(id) << " is cut";
    const auto [known, fresh] = least.emplace(std::pair(a, b), port.link.delay);
    known->second = std::min(known->second, port.link.delay);
  }
  ASSERT_EQ(p.lookahead.size(), std::size_t{p.sets} * p.sets);
  for (std::uint32_t a = 0; a < p.sets; ++a) {
    for (std::uint32_t b = 0; b < p.sets; ++b) {
      if (a == b) continue;
      const auto known = least.find({a, b});
      EXPECT_EQ(p.lookahead[a * p.sets + b], known == least.end() ? kNever : known->second);
    }
  }
}

TEST(Partition, IsSoundForEveryShapeAndNumberOfSets) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(shape.name);
    const Cluster cluster = cluster_of(shape.yaml);
    for (const std::uint32_t sets : {0U, 1U, 2U, 3U, 5U, 8U, 16U, 40U, 500U}) {
      for (const std::uint32_t threads : {1U, 2U, 7U, 64U}) {
        SCOPED_TRACE(std::to_string(sets) + " sets, " + std::to_string(threads) + " threads");
        expect_sound(cluster.graph, partition(cluster.graph, threads, sets));
      }
    }
  }
}

TEST(Partition, IsTheSameAgain) {
  for (const Shape& shape : shapes()) {
    const Cluster first = cluster_of(shape.yaml), second = cluster_of(shape.yaml);
    const Partition a = partition(first.graph, 2, 7), b = partition(second.graph, 2, 7);
    EXPECT_EQ(a.sets, b.sets) << shape.name;
    EXPECT_EQ(a.set_of_node, b.set_of_node) << shape.name;
    EXPECT_EQ(a.lookahead, b.lookahead) << shape.name;
  }
}

TEST(Partition, OneSetIsNoPartition) {
  const Cluster cluster = cluster_of(shapes()[2].yaml);
  EXPECT_EQ(partition(cluster.graph, 8, 1).sets, 1u);
  const Cluster small = cluster_of(shapes()[0].yaml);
  EXPECT_EQ(partition(small.graph, 1).sets, 1u) << "it fits into a cache";
  EXPECT_EQ(Partition().set_of(17), 0u);
}

TEST(Partition, GivesEveryThreadSeveralSets) {
  for (const char* name : {"pods", "fat tree", "dgx"}) {
    const auto shape = std::find_if(shapes().begin(), shapes().end(),
                                    [&](const Shape& s) { return s.name == std::string(name); });
    const Cluster cluster = cluster_of(shape->yaml);
    for (const std::uint32_t threads : {2U, 3U})
      EXPECT_GE(partition(cluster.graph, threads).sets, 2 * threads) << name;
  }
}

TEST(Partition, HasAboutTheNumberOfSetsWanted) {
  for (const int k : {8, 16}) {
    const Cluster cluster =
        cluster_of("{topology: {kind: fat_tree, k: " + std::to_string(k) + "}, host: single_nic}");
    for (const std::uint32_t sets : {2U, 4U, 8U, 16U, 32U}) {
      const Partition p = partition(cluster.graph, 1, sets);
      EXPECT_GE(p.sets, sets);
      EXPECT_LE(p.sets, 2 * sets + 1) << k;
    }
  }
}

// Where it may cut anywhere, no set has much more than its part of the ports.
TEST(Partition, SetsAreEven) {
  for (const int k : {8, 16}) {
    const Cluster cluster =
        cluster_of("{topology: {kind: fat_tree, k: " + std::to_string(k) + "}, host: single_nic}");
    for (const std::uint32_t sets : {2U, 3U, 6U, 12U}) {
      const Partition p = partition(cluster.graph, 1, sets);
      const std::vector<std::uint64_t> ports = ports_of_sets(cluster.graph, p);
      const std::uint64_t part = (cluster.graph.port_count() + sets - 1) / sets;
      EXPECT_LE(*std::max_element(ports.begin(), ports.end()), part + part / 4 + 2 * static_cast<unsigned>(k))
          << k << ", " << sets;
    }
  }
}

std::string pod_of(const Cluster& cluster, NodeId node, int k) {
  const Node& n = cluster.graph.node(node);
  if (n.kind == NodeKind::fabric_switch) {
    if (n.tier == 2) return "";
    return std::to_string(std::stoi(n.name.substr(n.name.find_first_of("0123456789"))) / (k / 2));
  }
  const int host = std::stoi(n.name.substr(4));
  return std::to_string(host / (k * k / 4));
}

TEST(Partition, PodsStayWholeWhereTheyFit) {
  for (const int k : {8, 16}) {
    const Cluster cluster =
        cluster_of("{topology: {kind: fat_tree, k: " + std::to_string(k) + "}, host: single_nic}");
    // From two sets to two pods a set to a pod a set.
    for (const int sets : {2, k / 2, k}) {
      const Partition p = partition(cluster.graph, 1, static_cast<std::uint32_t>(sets));
      std::map<std::string, std::set<std::uint32_t>> sets_of_pod;
      for (NodeId id = 0; id < cluster.graph.node_count(); ++id) {
        const std::string pod = pod_of(cluster, id, k);
        if (!pod.empty()) sets_of_pod[pod].insert(p.set_of(id));
      }
      ASSERT_EQ(sets_of_pod.size(), static_cast<std::size_t>(k));
      for (const auto& [pod, in] : sets_of_pod)
        EXPECT_EQ(in.size(), 1u) << "pod " << pod << " of k = " << k << " in " << sets;
    }
  }
}

TEST(Partition, ShortLinksAreNeverCut) {
  const Cluster cluster = cluster_of(kRing);
  const Partition p = partition(cluster.graph, 1, 1000);
  std::map<std::string, std::uint32_t> set_of;
  for (NodeId id = 0; id < cluster.graph.node_count(); ++id)
    set_of[cluster.graph.node(id).name] = p.set_of(id);
  EXPECT_EQ(set_of.at("s0"), set_of.at("s1"));
  EXPECT_NE(set_of.at("s2"), set_of.at("s3")) << "100 ns are enough";
  EXPECT_LE(p.sets, 11u) << "12 atoms, of which two stay together";
  EXPECT_GE(p.sets, 6u);
  EXPECT_EQ(p.lookahead[set_of.at("s1") * p.sets + set_of.at("s2")], 700 * kNanosecond);
  const Cluster star = cluster_of("{topology: {kind: star, hosts: 100, delay: 50 ns}, host: single_nic}");
  EXPECT_EQ(partition(star.graph, 8, 50).sets, 1u);
}

TEST(Partition, HostsWithAllTheirGpusAreOne) {
  const Cluster cluster = cluster_of(shapes()[4].yaml);
  const Partition p = partition(cluster.graph, 1, 1000);
  for (const Gpu& gpu : cluster.gpus) EXPECT_EQ(p.set_of(gpu.node), p.set_of(gpu.nic));
  for (std::size_t i = 0; i < cluster.gpus.size(); ++i)
    EXPECT_EQ(p.set_of(cluster.gpus[i].node), p.set_of(cluster.gpus[i / 8 * 8].node));
}

// A message over NVLink ends at both ends at once, whatever the cable's delay.
TEST(Partition, HostsOfAnNvlinkRackAreOne) {
  const Cluster cluster = cluster_of(
      "fabrics:\n  rack: {kind: nvl_rack, racks: 3, gpus: 8, nvlink_delay: 1 us}\n"
      "  scale_out: {kind: star, hosts: 24, delay: 1 us}\nhost: gb200\n");
  const Partition p = partition(cluster.graph, 1, 1000);
  ASSERT_EQ(cluster.gpus.size(), 24u);
  std::set<std::uint32_t> sets;
  for (std::size_t i = 0; i < 24; ++i) {
    EXPECT_EQ(p.set_of(cluster.gpus[i].node), p.set_of(cluster.gpus[i / 8 * 8].node));
    sets.insert(p.set_of(cluster.gpus[i].node));
  }
  EXPECT_EQ(sets.size(), 3u);
}

}  // namespace
}  // namespace netsim::partition_test
