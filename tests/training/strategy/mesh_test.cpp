// Tests that a mesh's arithmetic is that of a mixed radix number, and that its groups are the ranks that
// agree on all other axes. Combined axes work as plain ones.
#include "sim/training/strategy/mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace netsim::mesh_test {
namespace {

using ::testing::ElementsAre;

TEST(Mesh, NumbersRanksFirstAxisFastest) {
  const Mesh mesh({{"tp", 2}, {"dp", 3}, {"pp", 4}});
  EXPECT_EQ(mesh.ranks(), 24U);
  EXPECT_EQ(mesh.coordinate(17, "tp"), 1U);
  EXPECT_EQ(mesh.coordinate(17, "dp"), 2U);
  EXPECT_EQ(mesh.coordinate(17, "pp"), 2U);
  EXPECT_THAT(mesh.group_of(17, "dp"), ElementsAre(13, 15, 17));
  EXPECT_EQ(mesh.moved(17, "pp", 0), 5U);
  EXPECT_EQ(mesh.size("cp"), 1U);  // axes that a mesh does not have do not divide
}

// Experts divided among four of the eight copies: two groups of experts in each data-parallel group.
TEST(Mesh, CombinedAxesAreOneAxis) {
  Mesh mesh({{"tp", 2}, {"ep", 4}, {"edp", 2}, {"pp", 2}});
  mesh.combine("dp", {"ep", "edp"});
  EXPECT_EQ(mesh.size("dp"), 8U);
  EXPECT_THAT(mesh.group_of(1, "dp"), ElementsAre(1, 3, 5, 7, 9, 11, 13, 15));
  EXPECT_THAT(mesh.group_of(11, "ep"), ElementsAre(9, 11, 13, 15));
  EXPECT_EQ(mesh.coordinate(11, "dp"), 5U);
  const GroupExpression dp = mesh.along({"dp"});
  ASSERT_EQ(dp.axes.size(), 2U);
  EXPECT_EQ(dp.axes[0].axis, 1U);
  EXPECT_EQ(dp.axes[1].axis, 2U);
}

// Stages 0 and 3 of a job; its other stages have other meshes.
TEST(Mesh, OfSomeStagesDeclaresTheRanksOfTheJob) {
  ProgramBuilder builder("job");
  builder.axis("rank", 20);
  Mesh mesh({{"tp", 2}, {"dp", 3}, {"pp", 2}});
  mesh.lay_out({{0, 0}, {3, 14}});
  mesh.declare(builder);
  EXPECT_EQ(builder.program().axes.size(), 1U);
  EXPECT_EQ(mesh.job_rank(7), 15U);
  EXPECT_EQ(mesh.stage(5), 0U);
  EXPECT_EQ(mesh.stage(6), 3U);
  EXPECT_TRUE(mesh.has_stage(3));
  EXPECT_FALSE(mesh.has_stage(1));
  using Lists = std::vector<std::vector<RankId>>;
  const GroupExpression data = mesh.along({"dp"}, 7);
  EXPECT_EQ(data.communicator, 7U);
  EXPECT_TRUE(data.axes.empty());
  EXPECT_EQ(data.lists, (Lists{{0, 2, 4}, {1, 3, 5}, {14, 16, 18}, {15, 17, 19}}));
  EXPECT_EQ(mesh.along({}, std::vector<std::uint32_t>{0, 3}).lists,
            (Lists{{0, 14}, {1, 15}, {2, 16}, {3, 17}, {4, 18}, {5, 19}}));
  const PeerExpression next = mesh.next(builder, "dp", 1);
  ASSERT_EQ(next.kind, PeerExpression::Kind::table);
  EXPECT_THAT(builder.program().tables[next.table],
              ElementsAre(2, 3, 4, 5, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 16, 17, 18, 19, 14, 15));
}

std::vector<std::string> names(const Mesh& mesh) {
  std::vector<std::string> names;
  for (const ProgramAxis& axis : mesh.axes()) names.push_back(axis.name + " " + std::to_string(axis.size));
  return names;
}

// Sixteen ranks of a stage are arranged as 4 x 4 and as 1 x 8 x 2. The experts span all of tp and half of dp.
TEST(Mesh, FoldedAxesCountTheSameRanksAnew) {
  const auto mesh = folded_mesh({{"tp", 4}, {"dp", 4}}, {{"etp", 1}, {"ep", 8}, {"edp", 2}}, {"pp", 2});
  ASSERT_TRUE(mesh);
  EXPECT_THAT(names(*mesh), ElementsAre("tp 4", "dp_ep 2", "edp 2", "pp 2"));
  EXPECT_THAT(mesh->group_of(9, "ep"), ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));
  EXPECT_THAT(mesh->group_of(9, "edp"), ElementsAre(1, 9));
  EXPECT_THAT(mesh->group_of(9, "dp"), ElementsAre(1, 5, 9, 13));
  EXPECT_THAT(mesh->group_of(9, "etp"), ElementsAre(9));
  EXPECT_EQ(mesh->coordinate(30, "ep"), 6U);
  EXPECT_EQ(mesh->ranks(), 32U);
  const auto alike = folded_mesh({{"tp", 4}, {"dp", 4}}, {{"etp", 4}, {"ep", 4}, {"edp", 1}}, {"pp", 1});
  ASSERT_TRUE(alike);
  EXPECT_EQ(alike->along({"tp"}), alike->along({"etp"}));
  EXPECT_EQ(alike->along({"dp"}), alike->along({"ep"}));
  EXPECT_FALSE(folded_mesh({{"tp", 4}, {"dp", 9}}, {{"ep", 6}, {"edp", 6}}, {"pp", 1}));
}

// The groups of a program are those of the mesh.
TEST(Mesh, GroupsOfProgramsAreItsGroups) {
  EXPECT_TRUE(rc::check([] {
    std::vector<ProgramAxis> axes;
    for (const char* name : {"a", "b", "c"}) axes.push_back({name, *rc::gen::inRange(1U, 5U)});
    Mesh mesh(axes);
    mesh.combine("ca", {"c", "a"});
    Program program;
    program.axes = axes;
    const std::string axis = *rc::gen::element<std::string>("a", "b", "c", "ca");
    program.groups = {mesh.along({axis})};
    const RankGrid grid(axes);
    const std::string file = "program";
    const GroupTable groups(program, grid, file);
    const RankId rank = *rc::gen::inRange(0U, mesh.ranks());
    const std::vector<RankId> group = mesh.group_of(rank, axis);
    RC_ASSERT(groups.members(groups.id(0, rank)) == std::vector<RankId>(group.begin(), group.end()));
    RC_ASSERT(mesh.group_of(rank, axis)[mesh.coordinate(rank, axis)] == rank);
  }));
}

}  // namespace
}  // namespace netsim::mesh_test
