// Are the operations that are planned for a task scheduler those that its job launches?
#include "sim/jobs/planned_operations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "sim/scheduling/task/task_scheduler.h"
#include "tests/support/scripted_source.h"

namespace netsim::planned_operations_test {
namespace {

using netsim::test::ScriptedSource;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// Cuts everything into parts of one size; 0: nothing.
class Cutter final : public TaskScheduler {
 public:
  explicit Cutter(Bytes part) : part_(part) {}
  Bytes part_bytes(const CommunicationFacts&) const override { return part_; }
  Launch next(const RankView&, std::span<const Candidate>) const override { return {0}; }

 private:
  Bytes part_;
};

TaskScheduling cutting_into(Bytes part) {
  TaskScheduling scheduling;
  scheduling.scheduler = std::make_shared<Cutter>(part);
  scheduling.name = "cutter";
  return scheduling;
}

using Operations = std::vector<std::pair<Bytes, std::uint64_t>>;  // bytes and count

Operations operations_of(PlannedOperations& planned, const Task& task) {
  Operations operations;
  for (const PlannedOperation& operation : planned.add(task))
    operations.emplace_back(operation.task.bytes(), operation.count);
  return operations;
}

// A message of 8 bytes from rank 0 to rank 1.
ScriptedSource one_message() {
  ScriptedSource source(2);
  source.message(0, TaskKind::send, 1, 0);
  source.message(1, TaskKind::receive, 0, 0);
  return source;
}

// Two all-reduces of 64 bytes at each of two ranks.
ScriptedSource two_reductions() {
  ScriptedSource source(2);
  const GroupId group = source.add_group({0, 1});
  for (const std::uint32_t rank : {0U, 1U}) {
    source.all_reduce(rank, group, Stream::dp);
    source.all_reduce(rank, group, Stream::dp);
  }
  return source;
}

TEST(PlannedOperations, ArePartsWithAShorterLastOne) {
  const ScriptedSource source = one_message();
  const TaskScheduling scheduling = cutting_into(3);
  PlannedOperations sender(scheduling, 0), receiver(scheduling, 1);
  EXPECT_THAT(operations_of(sender, source.task(0, 0)), ElementsAre(Pair(3, 2U), Pair(2, 1U)));
  EXPECT_THAT(operations_of(receiver, source.task(1, 0)), ElementsAre(Pair(3, 2U), Pair(2, 1U)));
  EXPECT_EQ(sender.counts().launches, 1U);
  EXPECT_EQ(sender.counts().parts, 3U);
  EXPECT_EQ(sender.counts().cut, 1U);
  EXPECT_EQ(receiver.counts().parts, 0U) << "receives are posted, not launched";
}

TEST(PlannedOperations, AreOneWhereNothingIsCut) {
  const ScriptedSource source = one_message();
  for (const Bytes part : {0, 8, 9}) {
    const TaskScheduling scheduling = cutting_into(part);
    PlannedOperations planned(scheduling, 0);
    EXPECT_THAT(operations_of(planned, source.task(0, 0)), ElementsAre(Pair(8, 1U))) << part;
    EXPECT_EQ(planned.counts().cut, 0U);
  }
}

TEST(PlannedOperations, OfABucketComeWithItsLastTask) {
  const ScriptedSource source = two_reductions();
  TaskScheduling scheduling = cutting_into(100);
  scheduling.tables = LaunchTables({2, 2});
  scheduling.tables.set_bucket_size(0, 2);
  for (const std::uint32_t task : {0U, 1U}) scheduling.tables.set_bucket(0, task, 0);
  PlannedOperations planned(scheduling, 0);
  EXPECT_THAT(operations_of(planned, source.task(0, 0)), IsEmpty());
  EXPECT_THAT(operations_of(planned, source.task(0, 1)), ElementsAre(Pair(100, 1U), Pair(28, 1U)));
  EXPECT_EQ(planned.counts().launches, 2U);
  EXPECT_EQ(planned.counts().fused, 2U);
  EXPECT_EQ(planned.counts().parts, 2U);
}

TEST(PlannedOperations, AreNotKnownWithoutASchedulerOrACensus) {
  ScriptedSource source = two_reductions();
  const TaskScheduling scheduling = cutting_into(32);
  EXPECT_FALSE(planned_launches("job", source, nullptr));
  const std::optional<PlannedLaunches> planned = planned_launches("job", source, &scheduling);
  ASSERT_TRUE(planned && planned->counts);
  EXPECT_EQ(planned->counts->launches, 4U);
  EXPECT_EQ(planned->counts->parts, 8U);
  EXPECT_FALSE(planned->checked) << "the source has no graph";
  source.census = false;
  EXPECT_FALSE(planned_launches("job", source, &scheduling)->counts);
}

}  // namespace
}  // namespace netsim::planned_operations_test
