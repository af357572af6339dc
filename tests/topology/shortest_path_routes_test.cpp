// Are next hops the same whoever asks for them first, and do ways avoid links that are down?
#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "tests/topology/build.h"

namespace netsim::shortest_path_routes_test {
namespace {

constexpr const char* kGraph = "topology: {kind: jellyfish, switches: 40, degree: 5, hosts_per_switch: 2}";

// All next hops from everywhere to every host, in an order that begins at `first`.
std::uint64_t digest(const Cluster& cluster, const Routes& routes, std::size_t first) {
  std::uint64_t sum = 0;
  const std::vector<NodeId> nics = nic_nodes(cluster);
  for (std::size_t i = 0; i < nics.size(); ++i) {
    const NodeId to = nics[(first + i) % nics.size()];
    for (NodeId at = 0; at < cluster.graph.node_count(); ++at) {
      if (at == to) continue;
      for (const PortId port : routes.next_hops(at, to)) sum += (std::uint64_t{at} << 40) * (to + 1) + port;
    }
  }
  return sum;
}

// Named for the runs under ThreadSanitizer.
TEST(ShortestPathThreads, FindTheSameRoutesInAnyOrder) {
  const Cluster cluster = cluster_of(kGraph);
  const std::uint64_t expected = digest(cluster, *shortest_path_routes(cluster.graph, cluster.nics), 0);
  const auto shared = shortest_path_routes(cluster.graph, cluster.nics);
  std::vector<std::uint64_t> found(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < found.size(); ++i)
    threads.emplace_back([&, i] { found[i] = digest(cluster, *shared, 7 * i); });
  for (std::thread& thread : threads) thread.join();
  for (const std::uint64_t value : found) EXPECT_EQ(value, expected);
}

TEST(ShortestPathRoutes, AvoidWhatIsDown) {
  const Cluster cluster = cluster_of(kGraph);
  const NodeId from = cluster.nics[0].nic, to = cluster.nics[79].nic;
  const NodeId at = access_switch(cluster.graph, from);
  std::vector<bool> down(cluster.graph.port_count(), false);
  const auto whole = shortest_path_routes(cluster.graph, cluster.nics);
  for (const PortId port : whole->next_hops(at, to)) down[port] = true;
  const auto rest = shortest_path_routes(cluster.graph, cluster.nics, down);
  ASSERT_FALSE(rest->next_hops(at, to).empty());
  for (const PortId port : rest->next_hops(at, to)) EXPECT_FALSE(down[port]);
  for (const PortId port : cluster.graph.ports_of(at)) down[port] = true;
  EXPECT_TRUE(shortest_path_routes(cluster.graph, cluster.nics, down)->next_hops(at, to).empty());
}

}  // namespace
}  // namespace netsim::shortest_path_routes_test
