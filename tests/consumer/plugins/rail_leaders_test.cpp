// Does an algorithm that needs the hosts and rails of its ranks get them, as rail_leaders.cpp asks for them?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "tests/collectives/packet_collectives.h"

namespace netsim::rail_leaders_test {
namespace {

GroupShape shape_of(std::vector<RankSite> sites) {
  GroupShape shape;
  shape.ranks = static_cast<std::uint32_t>(sites.size());
  shape.sites = std::move(sites);
  return shape;
}

std::unique_ptr<Plan> plan_of(const GroupShape& shape) {
  return Registry<CollectiveAlgorithm>::instance()
      .create("rail_leaders")
      ->plan(CollectiveKind::all_reduce, shape);
}

std::string refusal(const GroupShape& shape) {
  try {
    plan_of(shape);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// Hosts of one to four ranks, two ranks on one rail, and ranks in any order.
TEST(RailLeaders, IsProvedAndKeepsToItsRails) {
  const std::vector<std::vector<RankSite>> groups{{{0, 0}, {0, 1}, {0, 2}, {0, 3}},
                                                  {{0, 0}, {1, 0}, {2, 0}},
                                                  {{0, 1}, {1, 0}, {0, 0}, {2, 1}, {2, 0}, {1, 1}},
                                                  {{0, 0}, {0, 0}, {0, 1}, {1, 1}, {1, 0}, {1, 1}}};
  for (const std::vector<RankSite>& sites : groups) {
    const auto plan = plan_of(shape_of(sites));
    EXPECT_EQ(prove(*plan), "");
    for (std::uint32_t rank = 0; rank < plan->ranks(); ++rank) {
      for (std::uint32_t block = 0; block < plan->blocks(rank); ++block) {
        for (std::uint32_t i = 0; i < plan->steps(rank, block); ++i) {
          const Step step = plan->step(rank, block, i);
          if (!sends(step.kind) || sites[rank].host == sites[step.to.rank].host) continue;
          EXPECT_EQ(sites[rank].rail, sites[step.to.rank].rail);
        }
      }
    }
  }
}

TEST(RailLeaders, RefusesGroupsWithoutTheRailsOfAllHosts) {
  GroupShape unknown;
  unknown.ranks = 4;
  EXPECT_THAT(refusal(unknown), testing::HasSubstr("needs the hosts and rails of a cluster"));
  EXPECT_THAT(refusal(shape_of({{0, 0}, {0, 1}, {1, 0}})), testing::HasSubstr("the same rails at all hosts"));
  EXPECT_THAT(refusal(shape_of({{0, 0}, {1, 0}, {1, 1}})), testing::HasSubstr("the same rails at all hosts"));
  EXPECT_THAT(refusal(shape_of({{0, 0}, {1, kNoIndex}})), testing::HasSubstr("needs a NIC near each rank"));
}

// The leaves of a rail-optimized fabric carry the sums of two hosts and the totals; no spine has to.
TEST(RailLeaders, SendsNothingOverTheSpines) {
  test::PacketCollectives cluster(
      "topology: {kind: rail_optimized, rails: 8, hosts_per_leaf: 2, units: 1, spines: 4, rate: 200 Gbps}\n"
      "host: dgx_a100\n"
      "collectives: {all_reduce: rail_leaders}");
  const std::vector<GpuId> members = test::every(1, 16);
  const auto request = test::request_of(CollectiveKind::all_reduce, members, 8 * kMebibyte);
  EXPECT_EQ(cluster.executor->choice(request).algorithm, "rail_leaders");
  EXPECT_GT(cluster.run(request), 0);
  const Graph& graph = cluster.packets.cluster.graph;
  Bytes to_leaves = 0, to_spines = 0;
  for (PortId port = 0; port < graph.port_count(); ++port) {
    const PortSpec& spec = graph.port(port);
    if (graph.node(spec.peer_node).kind != NodeKind::fabric_switch) continue;
    const bool from_switch = graph.node(spec.node).kind == NodeKind::fabric_switch;
    (from_switch ? to_spines : to_leaves) += cluster.packets.network->port_counters(port).wire_bytes;
  }
  EXPECT_EQ(to_spines, 0);
  EXPECT_GT(to_leaves, 2 * 8 * kMebibyte);
}

}  // namespace
}  // namespace netsim::rail_leaders_test
