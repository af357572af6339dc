// Does the table of collective kinds fit what else speaks of kinds: workload files, algorithms, nccl-tests?
#include "sim/collectives/collective_kind.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

#include "sim/collectives/algorithm.h"
#include "sim/core/registry.h"
#include "sim/workload/program/workload.pb.h"
#include "tests/collectives/table_plan.h"

namespace netsim::collective_kind_test {
namespace {

std::string upper(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return name;
}

TEST(CollectiveKinds, AreTheCollectivesOfWorkloadFiles) {
  const auto* values = pb::Op_Collective_descriptor();
  std::set<int> numbers{0};
  for (const CollectiveKindInfo& info : kCollectiveKinds) {
    if (!is_collective(info.kind)) continue;
    const auto* value = values->FindValueByNumber(info.protobuf);
    ASSERT_NE(value, nullptr) << info.name;
    EXPECT_EQ(value->name(), upper(info.name));
    numbers.insert(info.protobuf);
  }
  EXPECT_EQ(static_cast<int>(numbers.size()), values->value_count());
}

TEST(CollectiveKinds, HaveADefaultAlgorithmThatDoesWhatTheGoalSays) {
  for (const CollectiveKindInfo& info : kCollectiveKinds) {
    if (*info.default_algorithm == '\0') continue;  // a custom one has none, a barrier all_reduce's
    const auto algorithm = Registry<CollectiveAlgorithm>::instance().create(info.default_algorithm);
    ASSERT_TRUE(algorithm->supports(info.kind)) << info.name;
    for (const std::uint32_t ranks : {2U, 3U, 8U, 9U}) {
      if (!is_collective(info.kind) && ranks != 2) continue;
      for (std::uint32_t root = 0; root < (has_root(info.kind) ? ranks : 1); ++root)
        EXPECT_EQ(prove(*algorithm->plan(info.kind, {ranks, root})), "") << info.name;
    }
  }
}

// A plan under the name of another kind, of which it does not do enough.
std::string proof_as(const Plan& plan, CollectiveKind kind) {
  TablePlan renamed(kind, plan.ranks(), plan.blocks(0), plan.chunks(), plan.in_place());
  for (std::uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    for (std::uint32_t block = 0; block < plan.blocks(rank); ++block) {
      for (std::uint32_t i = 0; i < plan.steps(rank, block); ++i)
        renamed.list(rank, block).push_back(plan.step(rank, block, i));
    }
  }
  return prove(renamed);
}

TEST(CollectiveKinds, HaveGoalsThatDiffer) {
  const auto& registry = Registry<CollectiveAlgorithm>::instance();
  const auto scattered = registry.create("ring")->plan(CollectiveKind::reduce_scatter, {4, 0});
  EXPECT_EQ(proof_as(*scattered, CollectiveKind::reduce_scatter), "");
  EXPECT_NE(proof_as(*scattered, CollectiveKind::all_reduce), "");
  EXPECT_NE(proof_as(*scattered, CollectiveKind::reduce), "");
  const auto reduced = registry.create("chain")->plan(CollectiveKind::reduce, {4, 0});
  EXPECT_EQ(proof_as(*reduced, CollectiveKind::reduce), "");
  EXPECT_NE(proof_as(*reduced, CollectiveKind::all_reduce), "");
  EXPECT_NE(proof_as(*reduced, CollectiveKind::broadcast), "");
  const auto parts = registry.create("direct")->plan(CollectiveKind::gather, {4, 0});
  EXPECT_EQ(proof_as(*parts, CollectiveKind::gather), "");
  EXPECT_NE(proof_as(*parts, CollectiveKind::all_gather), "");
  EXPECT_NE(proof_as(*parts, CollectiveKind::scatter), "");
}

// doc/PERFORMANCE.md of nccl-tests.
TEST(CollectiveKinds, HaveTheBusBandwidthOfNcclTests) {
  const auto bus = [](CollectiveKind kind, double ranks) { return info_of(kind).bus_bandwidth(80, ranks); };
  EXPECT_DOUBLE_EQ(bus(CollectiveKind::all_reduce, 8), 140);
  EXPECT_DOUBLE_EQ(bus(CollectiveKind::all_gather, 8), 70);
  EXPECT_DOUBLE_EQ(bus(CollectiveKind::reduce_scatter, 8), 70);
  EXPECT_DOUBLE_EQ(bus(CollectiveKind::all_to_all, 8), 70);
  EXPECT_DOUBLE_EQ(bus(CollectiveKind::all_to_all_v, 8), 80);  // of what crosses the busiest port
  EXPECT_DOUBLE_EQ(bus(CollectiveKind::barrier, 8), 0);
  EXPECT_DOUBLE_EQ(bus(CollectiveKind::broadcast, 8), 80);
  EXPECT_DOUBLE_EQ(bus(CollectiveKind::reduce, 8), 80);
  EXPECT_DOUBLE_EQ(bus(CollectiveKind::gather, 8), 70);
  EXPECT_DOUBLE_EQ(bus(CollectiveKind::scatter, 8), 70);
  EXPECT_DOUBLE_EQ(bus(CollectiveKind::point_to_point, 2), 80);
}

}  // namespace
}  // namespace netsim::collective_kind_test
