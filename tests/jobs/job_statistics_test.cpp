// Do the statistics follow from the records of every rank and operation, in any order of the members? Do they
// refuse members that disagree?
#include "sim/jobs/job_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "tests/support/scripted_source.h"

namespace netsim::job_statistics_test {
namespace {

using netsim::test::ScriptedSource;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Kind = JobRecord::Kind;

constexpr std::size_t kTp = static_cast<std::size_t>(Stream::tp), kPp = static_cast<std::size_t>(Stream::pp);
constexpr std::uint64_t kId = 42;  // of the only operation

// The statistics of a source, and the records that their observers received.
struct Books {
  explicit Books(const ScriptedSource& source_) : source(source_), statistics(source, 0, observer()) {
    statistics.open(0);
  }
  Books(const Books&) = delete;

  void begins(std::uint32_t rank, std::uint32_t id, Time time) {
    JobRecord record = of(rank, id, time);
    record.kind = record.task.kind() == TaskKind::compute ? Kind::compute_begins : Kind::communication_begins;
    statistics.apply(record);
  }
  void ends(std::uint32_t rank, std::uint32_t id, Time time, Time posted, Time start) {
    JobRecord record = of(rank, id, time);
    record.kind = record.task.kind() == TaskKind::compute ? Kind::compute_ends : Kind::communication_ends;
    record.posted = posted;
    record.start = start;
    std::vector<Task> ready;
    source.complete(rank, id, ready);
    record.open_iteration = source.open_iteration(rank);
    statistics.apply(record);
  }
  JobRecord of(std::uint32_t rank, std::uint32_t id, Time time) const {
    JobRecord record;
    record.rank = rank;
    record.time = time;
    record.communication = kId;
    record.task = source.task(rank, id);
    return record;
  }
  JobObserver observer() {
    return {[this](const TaskRecord& task) { tasks.push_back(task); },
            [this](const CommunicationRecord& record) { communications.push_back(record); },
            {},
            {}};
  }

  ScriptedSource source;
  std::vector<TaskRecord> tasks;
  std::vector<CommunicationRecord> communications;
  JobStatistics statistics;
};

ScriptedSource with_message() {
  ScriptedSource source(2);
  source.message(0, TaskKind::send, 1, 7);
  source.message(1, TaskKind::receive, 0, 7);
  return source;
}

TEST(JobStatistics, ACollectiveIsInFlightAtEachRankFromItsOwnStartToItsOwnEnd) {
  ScriptedSource source(2);
  const std::uint32_t group = source.add_group({1, 0});
  source.compute(0, 5);
  source.all_reduce(0, group, Stream::tp);
  source.all_reduce(1, group, Stream::tp);
  Books run(source);
  run.begins(0, 0, 0);
  run.begins(1, 0, 2);
  run.begins(0, 1, 3);
  run.ends(0, 0, 5, 0, 0);
  run.ends(1, 0, 9, 1, 2);
  EXPECT_FALSE(run.statistics.done());
  EXPECT_TRUE(run.communications.empty()) << "a member is not done";
  run.ends(0, 1, 12, 3, 3);
  EXPECT_TRUE(run.statistics.done());
  EXPECT_EQ(run.statistics.end_time(), 12);
  ASSERT_EQ(run.communications.size(), 1U);
  const CommunicationRecord& record = run.communications[0];
  EXPECT_EQ(record.id, kId);
  EXPECT_EQ(record.kind, CollectiveKind::all_reduce);
  EXPECT_EQ(record.first_rank, 1U);
  EXPECT_EQ(record.ranks, 2U);
  EXPECT_EQ(record.first_start, 2);
  EXPECT_EQ(record.last_start, 3);
  EXPECT_EQ(record.end, 12);
  ASSERT_EQ(run.tasks.size(), 3U);
  EXPECT_EQ(run.tasks[1].rank, 1U);
  EXPECT_EQ(run.tasks[1].posted, 1);
  EXPECT_EQ(run.tasks[1].start, 2);
  EXPECT_EQ(run.tasks[1].end, 9);
  const std::vector<RankTimes> times = run.statistics.rank_times(12);
  EXPECT_EQ(times[0].compute, 5);
  EXPECT_EQ(times[0].communication, 9);
  EXPECT_EQ(times[0].exposed_by[kTp], 7);
  EXPECT_EQ(times[0].idle, 0);
  EXPECT_EQ(times[1].exposed, 7);
  EXPECT_EQ(times[1].idle, 5);
}

TEST(JobStatistics, AMessageEndsForBothWhenTheReceiverIsToldAndTheAcknowledgementIsNotPartOfIt) {
  const ScriptedSource source = with_message();
  Books run(source);
  run.begins(1, 0, 1);
  EXPECT_FALSE(run.statistics.sender_began(kId));
  run.begins(0, 0, 4);
  EXPECT_TRUE(run.statistics.sender_began(kId));
  run.ends(1, 0, 10, 1, 4);
  run.ends(0, 0, 13, 4, 4);
  ASSERT_EQ(run.tasks.size(), 2U);
  for (const TaskRecord& task : run.tasks) {
    EXPECT_EQ(task.start, 4);
    EXPECT_EQ(task.end, 10);
  }
  EXPECT_EQ(run.statistics.end_time(), 10);
  ASSERT_EQ(run.communications.size(), 1U);
  EXPECT_EQ(run.communications[0].kind, CollectiveKind::point_to_point);
  EXPECT_EQ(run.communications[0].first_rank, 0U);
  EXPECT_EQ(run.communications[0].last_start, 4);
  EXPECT_EQ(run.communications[0].end, 10);
  for (const RankTimes& times : run.statistics.rank_times(13)) {
    EXPECT_EQ(times.exposed_by[kPp], 6) << "at both ends, from the sender's start";
    EXPECT_EQ(times.idle, 7);
  }
  EXPECT_FALSE(run.statistics.sender_began(kId)) << "the operation is over";
}

TEST(JobStatistics, AMessageEndsForBothWhenTheSenderIsToldWhereTheReceiverComesLater) {
  const ScriptedSource source = with_message();
  Books run(source);
  run.begins(0, 0, 4);
  run.ends(0, 0, 13, 4, 4);
  EXPECT_TRUE(run.communications.empty()) << "the receiver has not come";
  run.begins(1, 0, 20);
  run.ends(1, 0, 20, 20, 4);
  ASSERT_EQ(run.tasks.size(), 2U);
  for (const TaskRecord& task : run.tasks) {
    EXPECT_EQ(task.start, 4);
    EXPECT_EQ(task.end, 13);
  }
  EXPECT_EQ(run.tasks[1].posted, 20);
  ASSERT_EQ(run.communications.size(), 1U);
  EXPECT_EQ(run.communications[0].last_start, 20);
  EXPECT_EQ(run.communications[0].end, 13);
  EXPECT_EQ(run.statistics.rank_times(20)[1].communication, 9);
  EXPECT_TRUE(run.statistics.done());
  EXPECT_EQ(run.statistics.end_time(), 20) << "the receiver has come by then";
  EXPECT_THAT(run.statistics.iteration_ends(), ElementsAre(20));
}

TEST(JobStatistics, AMessageTakesTheKindOfItsSender) {
  ScriptedSource source(2);
  source.message(0, TaskKind::send, 1, 7);
  Task receive = source.task(0, 0);
  receive.stream = Stream::tp;
  receive.body = test::message(TaskKind::receive, 0, 8, 7);
  source.add(1, receive);
  Books run(source);
  run.begins(1, 0, 0);
  run.begins(0, 0, 0);
  run.ends(1, 0, 8, 0, 0);
  EXPECT_EQ(run.statistics.rank_times(8)[1].exposed_by[kPp], 8);
  EXPECT_EQ(run.statistics.rank_times(8)[1].exposed_by[kTp], 0);
}

TEST(JobStatistics, CountIterationsByTheirLastTask) {
  ScriptedSource source(1);
  for (std::uint32_t iteration = 0; iteration < 2; ++iteration) {
    Task task;
    task.iteration = iteration;
    source.add(0, task);
  }
  Books run(source);
  run.statistics.open(3);
  run.begins(0, 0, 3);
  run.ends(0, 0, 5, 3, 3);
  EXPECT_THAT(run.statistics.iteration_ends(), ElementsAre(5));
  EXPECT_EQ(run.statistics.tasks_done(), 1U);
  EXPECT_FALSE(run.statistics.done());
  EXPECT_EQ(run.statistics.begin_time(), 3);
}

// Iterations of two computations of 4 and 3, and a reduction of 7. The first computation of the next
// iteration runs beside the reduction, so an iteration takes 10 and 3 of it are exposed. The last reduction
// has nothing beside it, as the warm-up's has nothing of the warm-up.
TEST(JobStatistics, TheWarmUpIsCountedAsIfNothingCameAfterIt) {
  ScriptedSource source(1);
  const GroupId group = source.add_group({0});
  source.warm_up_iterations = 1;
  for (std::uint32_t iteration = 0; iteration < 3; ++iteration) {
    Task task;
    task.iteration = iteration;
    source.add(0, task);
    source.add(0, task);
    task.stream = Stream::dp;
    task.body = test::collective(CollectiveKind::all_reduce, group, 64);
    source.add(0, task);
  }
  Books run(source);
  run.begins(0, 0, 0);
  for (std::uint32_t iteration = 0; iteration < 3; ++iteration) {
    const std::uint32_t first = 3 * iteration, second = first + 1, reduction = first + 2, next = first + 3;
    const Time begin = 10 * Time{iteration};
    if (iteration == 0) run.ends(0, first, 4, 0, 0);
    run.begins(0, second, begin + 4);
    run.ends(0, second, begin + 7, begin + 4, begin + 4);
    run.begins(0, reduction, begin + 7);
    if (iteration < 2) run.begins(0, next, begin + 7);
    if (iteration < 2) run.ends(0, next, begin + 11, begin + 7, begin + 7);
    run.ends(0, reduction, begin + 14, begin + 7, begin + 7);
  }
  EXPECT_THAT(run.statistics.iteration_ends(), ElementsAre(14, 24, 34));
  const RankTimes all = run.statistics.rank_times(34)[0];
  EXPECT_EQ(all.compute, 21);
  EXPECT_EQ(all.exposed, 13);
  ASSERT_EQ(run.statistics.warm_up_times().size(), 1U);
  const RankTimes& warm_up = run.statistics.warm_up_times()[0];
  EXPECT_EQ(warm_up.compute, 7);
  EXPECT_EQ(warm_up.communication, 7);
  EXPECT_EQ(warm_up.exposed, 7);
  EXPECT_EQ(warm_up.idle, 0);
}

// The refusal of the second member's task, changed by `change`.
std::string refusal(ScriptedSource source, void (*change)(Task&)) {
  Books run(source);
  run.begins(0, 0, 0);
  JobRecord record = run.of(1, 0, 0);
  record.kind = Kind::communication_begins;
  change(record.task);
  try {
    run.statistics.apply(record);
  } catch (const InputError& error) {
    return error.what();
  }
  return "not refused";
}

TEST(JobStatistics, RefuseMembersThatDisagree) {
  EXPECT_EQ(refusal(with_message(), [](Task& task) { task.payload()->bytes = 9; }),
            "scripted: rank 1, stream pp: receive 'step' (task 0): 9 bytes, but 8 at rank 0, stream pp: send "
            "'step' (task 0)");
  EXPECT_THAT(refusal(with_message(), [](Task& task) { task.message().raw = true; }),
              HasSubstr("raw, but not raw at rank 0"));
  ScriptedSource source(2);
  const std::uint32_t group = source.add_group({0, 1});
  for (std::uint32_t rank = 0; rank < 2; ++rank) source.all_reduce(rank, group, Stream::dp);
  EXPECT_THAT(refusal(source, [](Task& task) { task.payload()->bytes = 9; }),
              HasSubstr("9 bytes, but 64 at rank 0, stream "));
  EXPECT_THAT(refusal(source, [](Task& task) { task.collective().collective = CollectiveKind::broadcast; }),
              HasSubstr("broadcast, but all_reduce at rank 0, stream "));
  EXPECT_THAT(refusal(source, [](Task& task) { task.collective().root = 1; }),
              HasSubstr("root 1, but 0 at rank 0, stream "));
  EXPECT_EQ(refusal(source, [](Task&) {}), "not refused");
}

}  // namespace
}  // namespace netsim::job_statistics_test
