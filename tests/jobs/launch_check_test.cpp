// Does the check before the run refuse orders of launches that cannot be kept, with the tasks of the circle,
// and nothing else?
#include "sim/jobs/launch_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "sim/core/registry.h"
#include "tests/support/scripted_source.h"
#include "tests/workload/program/small_programs.h"

namespace netsim::launch_check_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const Place kPlace{"job.yaml", 3, 5, ""};

// Two ranks: step (0), all-reduce (1), step (2), all-reduce (3), each after the one before.
std::unique_ptr<TaskSource> chain() {
  ProgramBuilder builder("chain");
  const std::uint32_t axis = builder.axis("rank", 2);
  const std::uint32_t group = builder.group({{{axis, {}}}, {}, 0});
  BlockBuilder main(builder, "main");
  auto last = main.compute(test::fixed_work("step", 10));
  last = main.collective("first", CollectiveKind::all_reduce, Stream::dp, 0, group, 64, {last});
  last = main.compute(test::fixed_work("step", 10), {last});
  main.collective("second", CollectiveKind::all_reduce, Stream::dp, 0, group, 64, {last});
  builder.role({"all", {}, main.finish()});
  return make_role_program_source(builder.finish(), "job.pb");
}

std::shared_ptr<TaskScheduling> scheduling_of(const std::string& scheduler, bool agreed = true) {
  auto scheduling = std::make_shared<TaskScheduling>();
  scheduling->scheduler =
      Registry<TaskScheduler>::instance().create(parse_config(scheduler, "test.yaml"), "");
  scheduling->name = "fifo";
  scheduling->agreed = agreed;
  scheduling->latency = agreed ? kMicrosecond : 0;
  return scheduling;
}

void keep_second_before_first(TaskScheduling& scheduling) {
  scheduling.tables = LaunchTables({4, 4});
  scheduling.tables.set_sequence_size(0, 2);
  for (const std::uint32_t rank : {0U, 1U}) {
    scheduling.tables.set_turn(rank, 1, 0, 1);
    scheduling.tables.set_turn(rank, 3, 0, 0);
  }
}

std::string refusal(const TaskSource& source, const std::shared_ptr<const TaskScheduling>& scheduling) {
  try {
    check_launches(source, scheduling, kPlace);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(LaunchCheck, AcceptsEverySchedulerOnProgramsThatEnd) {
  for (const std::string& kind : Registry<TaskScheduler>::instance().names()) {
    EXPECT_EQ(refusal(*chain(), scheduling_of("{kind: " + kind + "}")), "") << kind;
    EXPECT_EQ(refusal(*make_role_program_source(test::two_ranks(), "job.pb"),
                      scheduling_of("{kind: " + kind + "}")),
              "")
        << kind;
  }
}

TEST(LaunchCheck, LeavesTheSourceAsItWas) {
  const std::unique_ptr<TaskSource> source = chain();
  check_launches(*source, scheduling_of("fifo"), kPlace);
  std::vector<Task> ready;
  source->start(0, ready);
  ASSERT_EQ(ready.size(), 1U);
  EXPECT_EQ(ready[0].id, 0U);
}

TEST(LaunchCheck, RefusesASequenceAgainstTheDependenciesWithItsTasks) {
  const auto scheduling = scheduling_of("fifo");
  keep_second_before_first(*scheduling);
  EXPECT_THAT(refusal(*chain(), scheduling),
              AllOf(StartsWith("job.yaml:3:5: "), HasSubstr("others, which cannot begin before it has ended"),
                    HasSubstr("rank 0"), HasSubstr("'first' (task 1)"), HasSubstr("of its sequence first")));
}

TEST(LaunchCheck, RefusesABucketOfATaskAndOneThatWaitsForIt) {
  const auto scheduling = scheduling_of("fifo");
  scheduling->tables = LaunchTables({4, 4});
  scheduling->tables.set_bucket_size(0, 2);
  for (const std::uint32_t rank : {0U, 1U}) {
    scheduling->tables.set_bucket(rank, 1, 0);
    scheduling->tables.set_bucket(rank, 3, 0);
  }
  EXPECT_THAT(refusal(*chain(), scheduling),
              AllOf(HasSubstr("'first' (task 1)"), HasSubstr("waits for the others that are launched with")));
}

// Without dependencies, the second all-reduce is handed out only when the first has ended.
TEST(LaunchCheck, RefusesABucketWithACollectiveThatWaitsForItsPlace) {
  ProgramBuilder builder("places");
  const std::uint32_t axis = builder.axis("rank", 2);
  const std::uint32_t group = builder.group({{{axis, {}}}, {}, 0});
  BlockBuilder main(builder, "main");
  const auto step = main.compute(test::fixed_work("step", 10));
  main.collective("first", CollectiveKind::all_reduce, Stream::dp, 0, group, 64, {step});
  main.collective("second", CollectiveKind::all_reduce, Stream::dp, 0, group, 64, {});
  builder.role({"all", {}, main.finish()});
  const auto source = make_role_program_source(builder.finish(), "job.pb");
  const auto scheduling = scheduling_of("fifo");
  EXPECT_EQ(refusal(*source, scheduling), "");
  scheduling->tables = LaunchTables({3, 3});
  scheduling->tables.set_bucket_size(0, 2);
  for (const std::uint32_t rank : {0U, 1U}) {
    for (const std::uint32_t task : {1U, 2U}) scheduling->tables.set_bucket(rank, task, 0);
  }
  EXPECT_THAT(refusal(*source, scheduling), HasSubstr("waits for the others that are launched with it"));
}

TEST(LaunchCheck, LeavesLocalOrdersAndSourcesWithoutAGraphToTheRun) {
  const auto local = scheduling_of("fifo", false);
  keep_second_before_first(*local);
  EXPECT_EQ(refusal(*chain(), local), "");
  test::ScriptedSource source(1);
  source.compute(0, 5);
  EXPECT_EQ(refusal(source, scheduling_of("fifo")), "");
}

// Launches nothing at all.
class Holder final : public TaskScheduler {
 public:
  Launch next(const RankView&, std::span<const Candidate>) const override { return {}; }
};

TEST(LaunchCheck, LeavesASchedulerThatLaunchesNothingToTheRun) {
  const auto scheduling = scheduling_of("fifo");
  scheduling->scheduler = std::make_shared<Holder>();
  EXPECT_EQ(refusal(*chain(), scheduling), "");
}

}  // namespace
}  // namespace netsim::launch_check_test
