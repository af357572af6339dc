// Can a job be paused between two iterations, moved to another GPU, and freed when it has ended?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "sim/core/event_loop.h"
#include "sim/jobs/job_set.h"
#include "sim/transport/ideal_endpoint.h"
#include "sim/workload/deferred_source.h"
#include "sim/workload/traffic/busy_source.h"
#include "sim/workload/traffic/simple_source.h"
#include "tests/support/scripted_source.h"

namespace netsim::job_pause_test {
namespace {

using ::testing::ElementsAre;

std::unique_ptr<TaskSource> busy() { return std::make_unique<BusySource>("busy", 1, 40, 4); }

// A job of four iterations of 10 ps, whose source and state are made when it begins.
struct OneJob {
  OneJob() {
    jobs.add({"busy", &source, nullptr, {}, 0, 0});
    source.open();
    jobs.place(0, {0}, times, 5);
    loop.advance(5);
    jobs.start(0);
  }
  const Job& job() const { return jobs.job(0); }

  EventLoop loop;
  IdealEndpoint endpoint{loop, 2, 7, 0};
  std::unique_ptr<Executor> executor = Executor::create(loop, endpoint, ConfigNode(), 10);
  ComputeDevices devices{{&loop}, {0, 0}, {}, 20};
  WorkDurations times{{10, 11}};
  DeferredSource source{"busy", std::make_shared<const DeferredSource::Facts>(*busy()), busy};
  JobSet jobs{{&loop}, {0, 0}, *executor, devices, 30, {}};
};

TEST(JobPause, HoldsTheNextIterationAndGoesOnElsewhere) {
  OneJob run;
  run.loop.run(17);
  EXPECT_EQ(run.jobs.hold(0), 2U) << "the second iteration has begun";
  run.loop.run();
  EXPECT_THAT(run.job().iteration_ends(), ElementsAre(15, 25));
  run.loop.advance(60);
  run.jobs.move(0, {1}, run.times);
  run.jobs.go_on(0);
  run.loop.run();
  EXPECT_TRUE(run.jobs.done());
  EXPECT_THAT(run.job().iteration_ends(), ElementsAre(15, 25, 70, 80));
  EXPECT_EQ(run.job().plan().gpus, std::vector<GpuId>{1});
  EXPECT_EQ(run.job().rank_times(80).at(0).compute, 40);
  EXPECT_EQ(run.job().rank_times(80).at(0).idle, 35);
}

TEST(JobPause, DoesNotHoldAJobInItsLastIteration) {
  OneJob run;
  run.loop.run(36);
  EXPECT_EQ(run.jobs.hold(0), std::nullopt);
  run.loop.run();
  EXPECT_TRUE(run.jobs.done());
  EXPECT_EQ(run.job().end_time(), 45);
}

TEST(JobPause, KeepsTheResultsOfAJobThatIsFreed) {
  OneJob run;
  EXPECT_TRUE(run.source.is_open());
  run.loop.run();
  const std::vector<RankTimes> before = run.job().rank_times(45);
  run.jobs.release(0);
  EXPECT_FALSE(run.source.is_open());
  EXPECT_TRUE(run.jobs.done());
  EXPECT_EQ(run.job().rank_times(45).at(0).compute, before.at(0).compute);
  EXPECT_EQ(run.job().tasks_done(), 4U);
  EXPECT_EQ(run.source.ranks(), 1U);
  EXPECT_EQ(run.source.total_tasks(), 4U);
  EXPECT_EQ(run.source.name(0), "busy");
}

TEST(JobPause, AJobThatNeverBeginsIsLeftOut) {
  OneJob run;
  run.jobs.add({"never", &run.source, nullptr, {}, 0, 0});
  run.loop.run();
  EXPECT_FALSE(run.jobs.done());
  run.jobs.drop(1);
  EXPECT_TRUE(run.jobs.done());
}

// Tasks that became ready before keep what they had.
TEST(JobPause, SetsTheTrafficOfLaterTasks) {
  EventLoop loop;
  IdealEndpoint endpoint(loop, 2, 7, 0);
  const auto executor = Executor::create(loop, endpoint, ConfigNode(), 10);
  ComputeDevices devices({&loop}, {0, 0}, {}, 20);
  const WorkDurations times(std::vector<Time>{});
  SimpleSource source("two", 2);
  const GroupId group = source.add_group({0, 1});
  Task task;
  task.stream = Stream::dp;
  task.body = test::collective(CollectiveKind::all_reduce, group, 64);
  for (int i = 0; i < 2; ++i) source.add_task_everywhere(task);
  std::vector<std::pair<int, int>> traffic;
  JobObserver observer;
  observer.task = [&](const TaskRecord& record) {
    const TransferTraits& traits = record.task.payload()->traits;
    traffic.emplace_back(traits.priority, traits.traffic_class);
  };
  JobSet jobs({&loop}, {0, 0}, *executor, devices, 30, observer);
  jobs.add({"two", &source, &times, {0, 1}, 0, 0});
  jobs.start(0);
  jobs.set_traffic(0, 3, 1);
  loop.run();
  ASSERT_TRUE(jobs.done());
  EXPECT_THAT(traffic, ElementsAre(std::pair{0, 0}, std::pair{0, 0}, std::pair{3, 1}, std::pair{3, 1}));
}

TEST(BusySource, SpreadsTheRemainderOverItsFirstIterations) {
  BusySource source("busy", 2, 11, 4);
  std::vector<std::uint32_t> works;
  source.for_each_task(0, [&](const Task& task) { works.push_back(task.work()); });
  EXPECT_THAT(works, ElementsAre(1, 1, 1, 0));
  EXPECT_EQ(source.works().at(0).kernels.at(0).duration, 2);
  EXPECT_EQ(source.works().at(1).kernels.at(0).duration, 3);
  EXPECT_EQ(source.total_tasks(), 8U);
}

}  // namespace
}  // namespace netsim::job_pause_test
