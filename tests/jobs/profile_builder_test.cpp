// Does the profile of a workload have its tasks, its communications and the order between them?
#include "sim/jobs/profile_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/scheduling/task/fusion.h"
#include "sim/scheduling/task/order_of_use.h"
#include "tests/support/scripted_source.h"
#include "tests/workload/program/small_programs.h"

namespace netsim::profile_builder_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Time estimate(RankId, const Task& task) { return task.kind() == TaskKind::send ? 7 : 100; }

std::optional<JobProfile> profile_of(const TaskSource& source) {
  const WorkDurations times(std::vector<Time>(source.works().size(), 10));
  return build_job_profile(source, times, estimate, {"job.yaml", 3, 5, "workload"});
}

TEST(TaskGraph, HasDependenciesAndTheOrderOfComputations) {
  const auto source = make_role_program_source(test::two_ranks(), "job.pb");
  const auto graph = source->graph(0, LaunchOrder::local);
  ASSERT_TRUE(graph);
  ASSERT_EQ(graph->tasks.size(), 4U);
  EXPECT_THAT(graph->successors.of(0), ElementsAre(1, 2));
  EXPECT_THAT(graph->successors.of(1), ElementsAre(2));
  EXPECT_THAT(graph->successors.of(2), ElementsAre(3));
  EXPECT_THAT(graph->after_iteration, ElementsAre(0));
}

TEST(TaskGraph, CommunicationsOfAQueueAreInNoOrder) {
  ProgramBuilder builder("one");
  const std::uint32_t axis = builder.axis("rank", 2);
  const std::uint32_t group = builder.group({{{axis, {}}}, {}, 0});
  BlockBuilder main(builder, "main");
  const auto first = main.compute(test::fixed_work("step", 10));
  for (const char* name : {"a", "b"})
    main.collective(name, CollectiveKind::all_reduce, Stream::dp, 0, group, 64, {first});
  builder.role({"all", {}, main.finish()});
  const auto source = make_role_program_source(builder.finish(), "job.pb");
  const auto graph = source->graph(1, LaunchOrder::local);
  ASSERT_TRUE(graph);
  EXPECT_THAT(graph->successors.of(0), ElementsAre(1, 2));
  EXPECT_THAT(graph->successors.of(1), IsEmpty());
}

// A communication without dependencies is handed out when the earlier tasks of its queue have ended.
TEST(TaskGraph, ACommunicationWithoutDependenciesKeepsItsPlace) {
  ProgramBuilder builder("one");
  const std::uint32_t axis = builder.axis("rank", 2);
  const std::uint32_t group = builder.group({{{axis, {}}}, {}, 0});
  BlockBuilder main(builder, "main");
  const auto first = main.compute(test::fixed_work("step", 10));
  main.collective("a", CollectiveKind::all_reduce, Stream::dp, 0, group, 64, {first});
  for (const char* name : {"b", "c"})
    main.collective(name, CollectiveKind::all_reduce, Stream::dp, 0, group, 64, {});
  builder.role({"all", {}, main.finish()});
  const auto source = make_role_program_source(builder.finish(), "job.pb");
  const auto graph = source->graph(1, LaunchOrder::local);
  ASSERT_TRUE(graph);
  EXPECT_THAT(graph->successors.of(0), ElementsAre(1));
  EXPECT_THAT(graph->successors.of(1), ElementsAre(2));
  EXPECT_THAT(graph->successors.of(2), ElementsAre(3));
}

TEST(ProfileBuilder, MembersShareACommunicationAndMessagesLeadToOtherRanks) {
  const auto source = make_role_program_source(test::two_ranks(), "job.pb");
  const auto profile = profile_of(*source);
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->ranks(), 2U);
  EXPECT_THAT(profile->first, ElementsAre(0, 5, 10));  // four tasks and the end of the iteration
  ASSERT_EQ(profile->communications(), 2U);
  EXPECT_THAT(profile->members.of(0), ElementsAre(1, 6));
  EXPECT_THAT(profile->members.of(1), ElementsAre(3, 8));
  EXPECT_THAT(profile->successors.of(1), ElementsAre(2, 6));  // the send
  const ProfileTask& receive = profile->tasks[profile->index(1, 1)];
  EXPECT_EQ(receive.kind, ProfileTaskKind::receive);
  EXPECT_EQ(receive.duration, 7);
  EXPECT_EQ(receive.bytes, 100);
  EXPECT_TRUE(profile->task_of(1).fusible);
  EXPECT_EQ(profile->tasks[0].duration, 10);
  EXPECT_THAT(profile->next_successors.of(4), ElementsAre(0));
  EXPECT_THAT(order_of_use(*profile),
              ElementsAre(0, 1));  // a computation of this iteration needs the message
}

// It is handed out after those before it in its queue, so it cannot be launched with one of them.
TEST(ProfileBuilder, ACollectiveThatWaitsForItsPlaceIsNotFusedWithThoseBeforeIt) {
  ProgramBuilder builder("places");
  const std::uint32_t axis = builder.axis("rank", 2);
  const std::uint32_t group = builder.group({{{axis, {}}}, {}, 0});
  BlockBuilder main(builder, "main");
  const auto step = main.compute(test::fixed_work("step", 10));
  main.collective("first", CollectiveKind::all_reduce, Stream::dp, 0, group, 64, {step});
  main.collective("second", CollectiveKind::all_reduce, Stream::dp, 0, group, 64, {});
  builder.role({"all", {}, main.finish()});
  const auto profile = profile_of(*make_role_program_source(builder.finish(), "job.pb"));
  ASSERT_TRUE(profile);
  EXPECT_THAT(profile->successors.of(1), ElementsAre(2));
  EXPECT_TRUE(fusible_sequences(*profile).empty());
}

TEST(ProfileBuilder, ASourceWithoutATaskGraphHasNoProfile) {
  test::ScriptedSource source(1);
  source.compute(0, 5);
  EXPECT_FALSE(profile_of(source));
}

TEST(ProfileBuilder, RefusesTasksThatWaitForOneAnother) {
  ProgramBuilder builder("circle");
  const std::uint32_t axis = builder.axis("rank", 2);
  for (const std::uint32_t rank : {0U, 1U}) {
    BlockBuilder main(builder, "main");
    const PeerExpression peer{PeerExpression::Kind::rank, false, 0, 0, 1 - rank, 0};
    const auto received = main.receive("receive", 1, peer, 7, 100);
    main.send("send", peer, 7, 100, {received});
    builder.role({"rank_" + std::to_string(rank), {{axis, {rank}}}, main.finish()});
  }
  const auto source = make_role_program_source(builder.finish(), "job.pb");
  try {
    profile_of(*source);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("job.yaml:3:5: workload: tasks wait for one another in a circle of 4"));
  }
}

}  // namespace
}  // namespace netsim::profile_builder_test
