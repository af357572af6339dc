// Does a job launch what its task scheduler says: in parts, fused, in sequences, later, or never? Do its
// statistics say so?
#include "sim/jobs/task_scheduling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "sim/scheduling/task/task_scheduler.h"
#include "sim/transport/ideal_endpoint.h"
#include "sim/workload/traffic/simple_source.h"
#include "tests/support/scripted_source.h"
#include "tests/support/single_job.h"

namespace netsim::task_scheduling_test {
namespace {

using netsim::test::ScriptedSource;
using netsim::test::SingleJob;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr Time kDelay = 7;  // of each message

using Rule = std::function<Launch(const RankView&, std::span<const Candidate>)>;

// Launches by a rule of the test, in parts of a given size.
class RuleScheduler final : public TaskScheduler {
 public:
  explicit RuleScheduler(Rule rule, Bytes part = 0) : rule_(std::move(rule)), part_(part) {}
  Bytes part_bytes(const CommunicationFacts&) const override { return part_; }
  Launch next(const RankView& rank, std::span<const Candidate> candidates) const override {
    return rule_(rank, candidates);
  }

 private:
  Rule rule_;
  Bytes part_;
};

Launch first_decided_here(std::span<const Candidate> candidates) {
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].decided_here) return {i};
  }
  return {};
}
Launch at_once(const RankView&, std::span<const Candidate> candidates) {
  return first_decided_here(candidates);
}
Launch one_by_one(const RankView& rank, std::span<const Candidate> candidates) {
  return rank.parts_in_flight() > 0 ? Launch() : first_decided_here(candidates);
}
Launch nothing(const RankView&, std::span<const Candidate>) { return {}; }

std::shared_ptr<TaskScheduling> scheduling_by(Rule rule, Bytes part = 0) {
  auto scheduling = std::make_shared<TaskScheduling>();
  scheduling->scheduler = std::make_shared<RuleScheduler>(std::move(rule), part);
  scheduling->name = "rule";
  scheduling->agreed = false;
  return scheduling;
}

// Runs a source on the executor and an ideal network.
struct ScheduledRun {
  ScheduledRun(TaskSource& source, std::vector<Time> durations, std::shared_ptr<TaskScheduling> scheduling)
      : endpoint(loop, source.ranks(), kDelay, 0),
        executor(Executor::create(loop, endpoint, ConfigNode(), 100)),
        job(loop, *executor, source, everyone(source.ranks()), std::move(durations), 200,
            {[this](const TaskRecord& task) {
               records[{task.rank, task.task.id}] = task;
             },
             [this](const CommunicationRecord& record) { communications.push_back(record); },
             {},
             {}},
            std::move(scheduling)) {
    job.start();
  }
  ScheduledRun(ScriptedSource& source, std::shared_ptr<TaskScheduling> scheduling)
      : ScheduledRun(source, source.durations(), std::move(scheduling)) {}
  static std::vector<GpuId> everyone(std::uint32_t ranks) {
    std::vector<GpuId> gpus;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) gpus.push_back(rank);
    return gpus;
  }
  void run() { job.run(loop); }
  Time start_of(std::uint32_t rank, std::uint32_t task) const { return records.at({rank, task}).start; }
  Time end_of(std::uint32_t rank, std::uint32_t task) const { return records.at({rank, task}).end; }

  EventLoop loop;
  IdealEndpoint endpoint;
  std::unique_ptr<Executor> executor;
  std::map<std::pair<std::uint32_t, std::uint32_t>, TaskRecord> records;
  std::vector<CommunicationRecord> communications;
  SingleJob job;
};

// A message of 8 bytes from rank 0 to rank 1.
ScriptedSource one_message() {
  ScriptedSource source(2);
  source.message(0, TaskKind::send, 1, 0);
  source.message(1, TaskKind::receive, 0, 0);
  return source;
}

TEST(TaskScheduling, PartsThatAreInFlightTogetherTakeTheTimeOfOne) {
  ScriptedSource source = one_message();
  ScheduledRun run(source, scheduling_by(at_once, 3));
  run.run();
  ASSERT_TRUE(run.job->done());
  for (const std::uint32_t rank : {0U, 1U}) {
    EXPECT_EQ(run.start_of(rank, 0), 0);
    EXPECT_EQ(run.end_of(rank, 0), kDelay);
    EXPECT_EQ(run.records.at({rank, 0}).parts, 3U);
  }
  ASSERT_EQ(run.communications.size(), 1U);
  EXPECT_EQ(run.communications[0].parts, 3U);
  EXPECT_EQ(run.communications[0].bytes, 8);
  const SchedulingSummary summary = run.job->scheduling();
  EXPECT_EQ(summary.launches, 1U);
  EXPECT_EQ(summary.parts, 3U);
  EXPECT_EQ(summary.cut, 1U);
}

TEST(TaskScheduling, PartsOneByOneFollowEachOtherAndAreOneTask) {
  ScriptedSource source = one_message();
  ScheduledRun run(source, scheduling_by(one_by_one, 3));
  run.run();
  ASSERT_TRUE(run.job->done());
  EXPECT_EQ(run.start_of(1, 0), 0);
  EXPECT_GE(run.end_of(1, 0), 3 * kDelay);
  EXPECT_EQ(run.end_of(0, 0), run.end_of(1, 0));
  EXPECT_EQ(run.records.size(), 2U);
  const RankTimes times = run.job->rank_times(run.job->end_time())[0];
  EXPECT_EQ(times.communication + times.idle, run.job->end_time());
  EXPECT_EQ(run.job->scheduling().held, 0U) << "only the first part counts";
}

TEST(TaskScheduling, AHeldCommunicationIsLaunchedAtTheTimeAtWhichItsSchedulerIsCalledAgain) {
  ScriptedSource source = one_message();
  ScheduledRun run(source, scheduling_by([](const RankView& rank, std::span<const Candidate>) {
                     Launch launch;
                     launch.call_again = 50;
                     return rank.now < 50 ? launch : Launch{0};
                   }));
  run.run();
  ASSERT_TRUE(run.job->done());
  EXPECT_EQ(run.start_of(0, 0), 50);
  EXPECT_EQ(run.end_of(1, 0), 50 + kDelay);
  const SchedulingSummary summary = run.job->scheduling();
  EXPECT_EQ(summary.held, 1U);
  EXPECT_EQ(summary.held_by_scheduler, 50);
  EXPECT_EQ(summary.held_by_agreement, 0);
}

TEST(TaskScheduling, TheFirstOfAGroupDecidesAndTheOthersFollowAfterTheLatency) {
  ScriptedSource source(2);
  const GroupId group = source.add_group({1, 0});
  for (const std::uint32_t rank : {0U, 1U}) source.all_reduce(rank, group, Stream::dp);
  auto scheduling = scheduling_by(at_once);
  scheduling->agreed = true;
  scheduling->latency = 5;
  ScheduledRun run(source, scheduling);
  run.run();
  ASSERT_TRUE(run.job->done());
  EXPECT_EQ(run.start_of(1, 0), 0);
  EXPECT_EQ(run.start_of(0, 0), 5);
  EXPECT_EQ(run.job->scheduling().held_by_agreement, 5);
  EXPECT_EQ(run.job->scheduling().held_by_scheduler, 0);
}

// Two all-reduces of each rank, the second of which becomes ready 20 later.
ScriptedSource two_reductions() {
  ScriptedSource source(2);
  const GroupId group = source.add_group({0, 1});
  for (const std::uint32_t rank : {0U, 1U}) {
    const std::uint32_t early = source.compute(rank, 10), late = source.compute(rank, 20, {early});
    source.all_reduce(rank, group, Stream::dp, {early});
    source.all_reduce(rank, group, Stream::dp, {late});
  }
  return source;
}

TEST(TaskScheduling, FusedCollectivesAreOneOperationThatBeginsWhenAllAreReady) {
  ScriptedSource source = two_reductions();
  auto scheduling = scheduling_by(at_once);
  scheduling->tables = LaunchTables({4, 4});
  scheduling->tables.set_bucket_size(0, 2);
  for (const std::uint32_t rank : {0U, 1U}) {
    for (const std::uint32_t task : {2U, 3U}) scheduling->tables.set_bucket(rank, task, 0);
  }
  ScheduledRun run(source, scheduling);
  run.run();
  ASSERT_TRUE(run.job->done());
  for (const std::uint32_t rank : {0U, 1U}) {
    for (const std::uint32_t task : {2U, 3U}) {
      EXPECT_EQ(run.start_of(rank, task), 30);
      EXPECT_EQ(run.end_of(rank, task), run.end_of(0, 2));
    }
  }
  EXPECT_EQ(run.communications.size(), 2U);
  const SchedulingSummary summary = run.job->scheduling();
  EXPECT_EQ(summary.launches, 4U);
  EXPECT_EQ(summary.fused, 4U);
  EXPECT_EQ(summary.parts, 2U) << "each rank starts one operation";
}

TEST(TaskScheduling, ASequenceIsKeptWhateverIsReadyFirst) {
  ScriptedSource source = two_reductions();
  auto scheduling = scheduling_by(at_once);
  scheduling->tables = LaunchTables({4, 4});
  scheduling->tables.set_sequence_size(0, 2);
  for (const std::uint32_t rank : {0U, 1U}) {
    scheduling->tables.set_turn(rank, 2, 0, 1);
    scheduling->tables.set_turn(rank, 3, 0, 0);
  }
  ScheduledRun run(source, scheduling);
  run.run();
  ASSERT_TRUE(run.job->done());
  EXPECT_EQ(run.start_of(0, 3), 30);
  EXPECT_EQ(run.start_of(0, 2), 30) << "it was ready at 10 and waited for its turn";
  EXPECT_EQ(run.job->scheduling().held_by_scheduler, 2 * 20);
}

TEST(TaskScheduling, ASchedulerThatLaunchesNothingIsNamedAndMakesNoCircle) {
  ScriptedSource source = two_reductions();
  ScheduledRun run(source, scheduling_by(nothing));
  run.run();
  run.job.jobs().call_schedulers();
  run.run();
  EXPECT_FALSE(run.job->done());
  EXPECT_THAT(run.job->circle(), IsEmpty());
  const std::vector<std::string> lines = run.job->waiting(10);
  ASSERT_EQ(lines.size(), 4U);
  for (const std::string& line : lines) EXPECT_THAT(line, HasSubstr("task scheduler 'rule' holds it"));
  EXPECT_THAT(lines[0], HasSubstr("rank 0"));
}

// Rank 0 has the first all-reduce ready and launches it, rank 1 the second one.
TEST(TaskScheduling, RanksThatWaitForOneAnotherAreACircle) {
  ScriptedSource source(2);
  const GroupId group = source.add_group({0, 1});
  for (const std::uint32_t rank : {0U, 1U}) {
    const std::uint32_t early = source.compute(rank, 10), late = source.compute(rank, 20, {early});
    source.all_reduce(rank, group, Stream::dp, {rank == 0 ? early : late});
    source.all_reduce(rank, group, Stream::dp, {rank == 0 ? late : early});
  }
  ScheduledRun run(source, scheduling_by(one_by_one));
  run.run();
  EXPECT_FALSE(run.job->done());
  const std::vector<std::string> circle = run.job->circle();
  ASSERT_EQ(circle.size(), 5U);
  EXPECT_THAT(circle[0], HasSubstr("task scheduler 'rule' with scheduling.order local"));
  EXPECT_THAT(circle[0], HasSubstr("a circle of 4"));
  EXPECT_THAT(circle[1], HasSubstr("1 of 4: rank 0"));
  EXPECT_THAT(circle[1], HasSubstr("(task 2) waits for rank 1"));
  EXPECT_THAT(circle[2], HasSubstr("2 of 4: rank 1"));
  EXPECT_THAT(circle[2], HasSubstr("(task 2) is ready"));
  EXPECT_THAT(circle[2], HasSubstr("holds it while task 3 is in flight"));
  EXPECT_THAT(circle[3], HasSubstr("(task 3) waits for rank 0"));
  EXPECT_THAT(circle[4], HasSubstr("holds it while task 2 is in flight"));
  EXPECT_EQ(run.job->waiting(10).size(), 5U) << "a task of the circle has one line";
}

// The send of a grouped call waits for its receive to be ready, not to be chosen. The other end is in no
// call, and posts the same parts.
TEST(TaskScheduling, TheSendsOfAGroupedCallLeaveInThePartsThatTheirReceiversPost) {
  SimpleSource source("exchange", 2);
  Task task;
  task.stream = Stream::pp;
  task.name = source.add_name("block");
  task.body = test::message(TaskKind::send, 1, 8);
  source.add_task(0, task);
  task.body = test::message(TaskKind::receive, 1, 8);
  source.join_task(0, task);
  task.body = test::message(TaskKind::receive, 0, 8);
  source.add_task(1, task);
  task.body = test::message(TaskKind::send, 0, 8);
  source.add_task(1, task);
  ScheduledRun run(source, {}, scheduling_by(one_by_one, 3));
  run.run();
  ASSERT_TRUE(run.job->done());
  EXPECT_EQ(run.end_of(1, 0), kDelay) << "all parts of a grouped call are launched at once";
  EXPECT_EQ(run.records.at({1, 0}).parts, 3U);
  EXPECT_GE(run.end_of(0, 1), 4 * kDelay) << "the other message runs part by part";
}

TEST(TaskScheduling, AHaltedRankLeavesNoPartsAndWaitsForNothing) {
  ScriptedSource source = two_reductions();
  ScheduledRun run(source, scheduling_by(at_once, 16));
  run.loop.run(12);
  run.job.jobs().halt(0, 0, run.loop.now());
  run.run();
  EXPECT_FALSE(run.job->done());
  for (const std::string& line : run.job->waiting(20)) EXPECT_THAT(line, Not(StartsWith("rank 0")));
  EXPECT_THAT(run.job->circle(), IsEmpty());
  EXPECT_EQ(run.records.count({0, 2}), 0U);
  run.job.jobs().stop(0, run.loop.now(), false);
  EXPECT_TRUE(run.job->done());
}

TEST(LaunchTurns, TurnsAndOrdersCountOverIterations) {
  LaunchTables tables({3, 2});
  tables.set_order(1, 1, 4);
  tables.set_sequence_size(0, 2);
  tables.set_turn(1, 1, 0, 1);
  EXPECT_LT(tables.order(1, 1), tables.order(1, 3)) << "task 3 is the same of the next iteration";
  EXPECT_EQ(tables.turn(1, 3).sequence, 0U);
  EXPECT_EQ(tables.turn(1, 3).number, 3U);
  EXPECT_EQ(tables.turn(0, 1).sequence, kNoIndex);
  EXPECT_EQ(tables.bucket(0, 0), kNoIndex);
}

}  // namespace
}  // namespace netsim::task_scheduling_test
