// Tests that the critical path of an iteration is the chain that its end waited for, from task to task and
// rank to rank. It takes exactly as long as the iteration.
#include "sim/jobs/critical_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/collectives/execution/transfer_record.h"
#include "sim/core/random.h"
#include "sim/jobs/job_statistics.h"
#include "sim/transport/ideal_endpoint.h"
#include "tests/support/scripted_source.h"
#include "tests/support/single_job.h"

namespace netsim::critical_path_test {
namespace {

using netsim::test::ScriptedSource;
using netsim::test::SingleJob;
using ::testing::ElementsAre;

// Rank, task, begin, end.
using Step = std::tuple<std::uint32_t, std::uint32_t, Time, Time>;
constexpr Time kLink = 7;  // delay of every message

struct PlayedJob {
  explicit PlayedJob(ScriptedSource source_, std::shared_ptr<const TaskScheduling> scheduling = nullptr)
      : source(std::move(source_)) {
    EventLoop loop;
    IdealEndpoint endpoint(loop, source.ranks(), kLink, 0);
    const auto executor = Executor::create(loop, endpoint, ConfigNode(), 100);
    std::vector<GpuId> gpus;
    for (std::uint32_t rank = 0; rank < source.ranks(); ++rank) gpus.push_back(rank);
    JobObserver observer;
    observer.path = [this](std::uint32_t, std::uint32_t iteration, const PathStep& step) {
      if (steps.size() <= iteration) {
        steps.resize(iteration + 1);
        kinds.resize(iteration + 1);
        ways.resize(iteration + 1);
      }
      steps[iteration].emplace_back(step.rank, step.task, step.begin, step.end);
      kinds[iteration].push_back(step.kind);
      ways[iteration].emplace_back(step.source, step.destination);
    };
    SingleJob job(loop, *executor, source, gpus, source.durations(), 200, observer, std::move(scheduling));
    job.start();
    loop.run();
    done = job->done();
    ends = job->iteration_ends();
    paths = job->paths();
  }
  ScriptedSource source;
  std::vector<std::vector<Step>> steps;
  std::vector<std::vector<PathStep::Kind>> kinds;
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> ways;
  std::vector<Time> ends;
  std::vector<PathSummary> paths;
  bool done = false;
};

TEST(CriticalPath, OfAChainIsTheChain) {
  ScriptedSource source(1);
  source.compute(0, 3);
  source.compute(0, 5);
  source.compute(0, 2);
  const PlayedJob run(source);
  EXPECT_THAT(run.steps.at(0), ElementsAre(Step(0, 0, 0, 3), Step(0, 1, 3, 8), Step(0, 2, 8, 10)));
  EXPECT_EQ(run.paths.at(0).compute, 10);
}

// Two transfers leave one task and meet in another: the path goes through the peer that takes longer.
TEST(CriticalPath, OfADiamondIsItsLongerSide) {
  ScriptedSource source(3);
  const std::uint32_t begin = source.compute(0, 4);
  source.message(0, TaskKind::send, 1, 0, {begin});
  source.message(0, TaskKind::send, 2, 0, {begin});
  for (std::uint32_t peer : {1U, 2U}) {
    const std::uint32_t received = source.message(peer, TaskKind::receive, 0, 0);
    const std::uint32_t computed = source.compute(peer, peer == 1 ? 10 : 30, {received});
    source.message(peer, TaskKind::send, 0, 1, {computed});
  }
  Task receive;
  receive.body = test::message(TaskKind::receive, 1, 8, 1);
  receive.stream = Stream::dp;
  const std::uint32_t first = source.add(0, receive);
  receive.message().peer = 2;
  receive.stream = Stream::ep;
  const std::uint32_t second = source.add(0, receive);
  const std::uint32_t end = source.compute(0, 6, {first, second});
  const PlayedJob run(source);
  ASSERT_TRUE(run.done);
  // The send to rank 2 waits in its stream until that to rank 1 is delivered.
  EXPECT_THAT(run.steps.at(0),
              ElementsAre(Step(0, begin, 0, 4), Step(0, 1, 4, 11), Step(2, 0, 11, 18), Step(2, 1, 18, 48),
                          Step(0, second, 48, 55), Step(0, end, 55, 61)));
  EXPECT_EQ(run.paths.at(0).compute, 40);
  EXPECT_EQ(run.paths.at(0).communication[static_cast<std::size_t>(Stream::pp)], 14);
  EXPECT_EQ(run.paths.at(0).communication[static_cast<std::size_t>(Stream::ep)], 7);
}

// A pipeline has two stages and two microbatches; its second stage is slower. The bubble at the beginning is
// the first stage's forward and the link.
TEST(CriticalPath, OfAPipelineGoesThroughItsSlowestStage) {
  ScriptedSource source(2);
  for (std::uint32_t microbatch = 0; microbatch < 2; ++microbatch) {
    const std::uint32_t forward = source.compute(0, 10);
    Task send;
    send.stream = microbatch == 0 ? Stream::pp : Stream::dp;  // do not wait for each other
    send.body = test::message(TaskKind::send, 1, 8);
    source.add(0, send, {forward});
    Task receive = send;
    receive.body = test::message(TaskKind::receive, 0, 8);
    source.compute(1, 20, {source.add(1, receive)});
  }
  const PlayedJob run(source);
  EXPECT_THAT(run.steps.at(0),
              ElementsAre(Step(0, 0, 0, 10), Step(1, 0, 10, 17), Step(1, 1, 17, 37), Step(1, 3, 37, 57)));
}

// All wait for the rank that comes last: the ring's four steps go from neighbour to neighbour, beginning
// there.
TEST(CriticalPath, OfACollectiveGoesFromMessageToMessageBackToItsLastMember) {
  ScriptedSource source(3);
  const std::uint32_t group = source.add_group({0, 1, 2});
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    source.all_reduce(rank, group, Stream::tp, {source.compute(rank, rank == 1 ? 50 : 5)});
  const PlayedJob run(source);
  ASSERT_EQ(run.steps.at(0).size(), 5U);
  EXPECT_EQ(run.steps[0][0], Step(1, 0, 0, 50));
  for (std::uint32_t step = 1; step < 5; ++step) {
    EXPECT_EQ(run.kinds[0][step], PathStep::Kind::transfer);
    EXPECT_EQ(run.ways[0][step], std::pair(step % 3, (step + 1) % 3));
    EXPECT_EQ(std::get<3>(run.steps[0][step]), 50 + kLink * step);
  }
  EXPECT_EQ(run.ends.at(0), 50 + 4 * kLink);
}

// A rank is released by fifty messages, each sent as the other one began: only the last matters.
void play_collective(CriticalPath& path, std::uint64_t number, Time begin) {
  JobRecord task;
  task.communication = task.operation = number;
  task.task.body = CollectiveTask();
  task.cause = JobRecord::Cause::task_ended;
  task.time = begin;
  for (task.rank = 0; task.rank < 2; ++task.rank) path.begins(task);
  TransferRecord release;
  release.communication = number;
  release.gpu = 1;
  for (release.time = begin + 1; release.time <= begin + 50; ++release.time)
    path.released(release, std::vector<PortDelay>{{3, 0, 1, 0}});
  task.time = begin + 50;
  for (task.rank = 0; task.rank < 2; ++task.rank) path.ends(task, task.time);
}

TEST(CriticalPath, ForgetsReleasesWhenTheirCommunicationIsOver) {
  constexpr Time kCollectives = 10;
  CriticalPath path({0, 1});
  path.open(0);
  for (Time number = 1; number <= kCollectives; ++number) {
    play_collective(path, number, 50 * (number - 1));
    EXPECT_GE(path.steps_held(), 50U);
    path.is_over(number);
    EXPECT_LE(path.steps_held(), 2U * number);  // a step of each rank
  }
  std::vector<PathStep::Kind> kinds;
  path.close_iteration(0, 400, 500, [&](const PathStep& step) { kinds.push_back(step.kind); });
  EXPECT_EQ(kinds, std::vector(2, PathStep::Kind::communication));
  EXPECT_LE(path.steps_held(), 4U);
}

TEST(CriticalPath, OfAnEarliestStartIsHeldUntilThen) {
  ScriptedSource source(2);
  Task task;
  task.body = test::message(TaskKind::send, 1, 8);
  task.not_before = 100;
  source.add(0, task);
  source.message(1, TaskKind::receive, 0, 0);
  const PlayedJob run(source);
  EXPECT_THAT(run.kinds.at(0), ElementsAre(PathStep::Kind::held, PathStep::Kind::transfer));
  EXPECT_EQ(run.paths.at(0).held, 100);
}

// Tasks in one global order, so that no order of streams can deadlock.
ScriptedSource random_source(RandomStream& random) {
  ScriptedSource source(static_cast<std::uint32_t>(2 + random.below(3)));
  std::vector<RankId> everyone;
  for (std::uint32_t rank = 0; rank < source.ranks(); ++rank) everyone.push_back(rank);
  const std::uint32_t group = source.add_group(everyone);
  for (std::uint32_t iteration = 0; iteration < 3; ++iteration) {
    for (std::uint64_t step = 3 + random.below(10); step > 0; --step) {
      Task task;
      task.iteration = iteration;
      const auto rank = static_cast<std::uint32_t>(random.below(source.ranks()));
      if (random.below(3) == 0) {
        task.stream = Stream::tp;
        task.body = test::collective(CollectiveKind::all_reduce, group, 64);
        for (const RankId member : everyone) {
          const std::uint32_t tasks = source.task_count(member);
          source.add(member, task,
                     tasks > 0 ? std::vector<std::uint32_t>{tasks - 1} : std::vector<std::uint32_t>{});
        }
      } else {
        task.body = ComputeTask{source.add_work(static_cast<Time>(random.below(30)))};
        source.add(rank, task);
      }
    }
  }
  return source;
}

// Late: launches nothing before 30.
class Late final : public TaskScheduler {
 public:
  Launch next(const RankView& rank, std::span<const Candidate>) const override {
    Launch launch;
    if (rank.now < 30) {
      launch.call_again = 30;
    } else {
      launch.candidate = 0;
    }
    return launch;
  }
};

TEST(CriticalPath, TellsWhatASchedulerHeldFromAnEarliestStart) {
  ScriptedSource source(2);
  const std::uint32_t computed = source.compute(0, 10);
  const std::uint32_t send = source.message(0, TaskKind::send, 1, 0, {computed});
  source.message(1, TaskKind::receive, 0, 0);
  auto scheduling = std::make_shared<TaskScheduling>();
  scheduling->scheduler = std::make_shared<Late>();
  scheduling->name = "late";
  const PlayedJob run(source, scheduling);
  EXPECT_THAT(run.kinds.at(0),
              ElementsAre(PathStep::Kind::compute, PathStep::Kind::scheduler, PathStep::Kind::transfer));
  EXPECT_EQ(run.steps.at(0).at(1), Step(0, send, 10, 30));
  EXPECT_EQ(run.paths.at(0).held, 20);
  EXPECT_EQ(run.paths.at(0).scheduler, 20);
}

TEST(CriticalPath, TakesExactlyAsLongAsItsIteration) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) {
    RandomStream random(seed, "path");
    const PlayedJob run(random_source(random));
    RC_ASSERT(run.done);
    RC_ASSERT(run.paths.size() == run.ends.size());
    Time before = 0;
    for (std::size_t iteration = 0; iteration < run.ends.size(); ++iteration) {
      const PathSummary& path = run.paths[iteration];
      Time sum = path.compute + path.held;
      for (const Time time : path.communication) sum += time;
      RC_ASSERT(sum == run.ends[iteration] - before);
      RC_ASSERT(path.held == 0);
      if (iteration < run.steps.size()) {
        for (const auto& [rank, task, begin, end] : run.steps[iteration]) {
          RC_ASSERT(begin == before);
          before = end;
        }
      }
      RC_ASSERT(before == run.ends[iteration]);
    }
  }));
}

}  // namespace
}  // namespace netsim::critical_path_test
