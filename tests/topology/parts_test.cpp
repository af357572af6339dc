// Tests the parts of a fabric that its lower switches join: pods of a fat tree, its racks, its hosts.
#include "sim/topology/parts.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "sim/core/config.h"
#include "sim/topology/topology.h"

namespace netsim::parts_test {
namespace {

// Hosts by part, of those parts that have any.
std::multiset<std::size_t> hosts_by_part(const Cluster& cluster, int tier) {
  const std::vector<std::uint32_t> parts = parts_below(cluster.graph, tier);
  std::map<std::uint32_t, std::set<AtomId>> hosts;
  for (const Gpu& gpu : cluster.gpus) hosts[parts[gpu.node]].insert(cluster.graph.node(gpu.node).atom);
  std::multiset<std::size_t> sizes;
  for (const auto& [part, atoms] : hosts) sizes.insert(atoms.size());
  return sizes;
}

TEST(Parts, AreTheRacksAndPodsOfAFatTree) {
  const ConfigNode root = parse_config("topology: {kind: fat_tree, k: 4}\nhost: single_nic\n", "test.yaml");
  const Cluster cluster = build_cluster(root);
  using Sizes = std::multiset<std::size_t>;
  EXPECT_EQ(hosts_by_part(cluster, 0), Sizes({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(hosts_by_part(cluster, 1), Sizes({2, 2, 2, 2, 2, 2, 2, 2}));
  EXPECT_EQ(hosts_by_part(cluster, 2), Sizes({4, 4, 4, 4}));
  EXPECT_EQ(hosts_by_part(cluster, 3), Sizes({16}));
}

}  // namespace
}  // namespace netsim::parts_test
