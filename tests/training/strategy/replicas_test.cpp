// Tests parameter servers and local SGD: the data between workers and servers, the waits, and refused
// parameters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "tests/support/tasks_of.h"
#include "tests/workload/program/small_programs.h"
#include "tests/workload/task_player.h"

namespace netsim::replicas_test {
namespace {

using netsim::test::parse_workload;
using netsim::test::PlayedTask;
using netsim::test::TaskPlayer;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr std::int64_t kParameters = 138'357'544;  // VGG-16's

std::unique_ptr<TaskSource> job(const std::string& rest, std::uint32_t gpus = 64) {
  return parse_workload("{kind: ptdp, recompute: none, model: {kind: vgg}, " + rest + "}")->tasks(gpus);
}
std::vector<Task> tasks(const TaskSource& source, std::uint32_t rank, const std::string& name) {
  std::vector<Task> found;
  for (const Task& task : test::tasks_of(source, rank)) {
    if (source.names()[task.name] == name) found.push_back(task);
  }
  return found;
}
Bytes bytes(const std::vector<Task>& tasks) {
  Bytes all = 0;
  for (const Task& task : tasks) all += task.bytes();
  return all;
}

TEST(ParameterServers, TakePartInTheAllReducesOfSynchronousWorkers) {
  for (const bool overlap : {false, true}) {
    const auto source = job(
        std::string("parallel: {data: 6, servers: 2}, iterations: 2, gradient: {bucket: 25 MB, overlap: ") +
        (overlap ? "true}" : "false}"));
    ASSERT_EQ(source->ranks(), 8U);
    const std::vector<Task> worker = tasks(*source, 0, "dp_gradients"),
                            server = tasks(*source, 7, "dp_gradients");
    EXPECT_EQ(bytes(worker), 2 * 2 * kParameters);
    ASSERT_EQ(worker.size(), server.size());
    for (std::size_t i = 0; i < worker.size(); ++i) {
      EXPECT_EQ(worker[i].bytes(), server[i].bytes());
      EXPECT_EQ(source->group(worker[i].group()).size(), 8U);
    }
    EXPECT_EQ(test::task_count(*source, 7), server.size());  // and nothing else
    EXPECT_FALSE(tasks(*source, 0, "optimizer").empty());
    EXPECT_THAT(source->notes(), Each(HasSubstr("{kind: parameter_server, servers: 2}")));
    EXPECT_EQ(source->notes().size(), 1U);
    TaskPlayer player(*source, 9);
    player.run();
    EXPECT_TRUE(player.all_done());
  }
}

// Each clock a worker pulls all parameters in half precision and pushes all gradients; a server has its part
// of them.
TEST(ParameterServers, ArePushedGradientsAndPulledParametersFrom) {
  for (const char* more :
       {"staleness: 1", "asynchronous: true", "bucket: 25 MB, overlap: true, staleness: 0"}) {
    SCOPED_TRACE(more);
    const auto source = job(
        std::string("parallel: {data: 3, servers: 4}, iterations: 2, gradient: {dtype: fp32, ") + more + "}");
    ASSERT_EQ(source->ranks(), 7U);
    const std::vector<Task> pushed = tasks(*source, 1, "push"), pulled = tasks(*source, 1, "pull");
    EXPECT_NEAR(static_cast<double>(bytes(pushed)), 2.0 * 4 * kParameters, 1e-6 * kParameters);
    EXPECT_NEAR(static_cast<double>(bytes(pulled)), 2.0 * 2 * kParameters, 1e-6 * kParameters);
    EXPECT_TRUE(tasks(*source, 1, "optimizer").empty());  // it runs at the servers, for each push
    for (const std::uint32_t server : {3U, 6U}) {
      EXPECT_EQ(tasks(*source, server, "push").size(), tasks(*source, server, "update").size());
      EXPECT_NEAR(static_cast<double>(bytes(tasks(*source, server, "push"))), 2.0 * 3 * kParameters,
                  1e-6 * kParameters);
      EXPECT_NEAR(static_cast<double>(bytes(tasks(*source, server, "pull"))), 2.0 * 3 * kParameters / 2,
                  1e-6 * kParameters);
    }
    EXPECT_TRUE(source->notes().empty());
    TaskPlayer player(*source, 11);
    player.run();
    EXPECT_TRUE(player.all_done());
  }
}

// Durations of the clocks of workers, drawn at random.
constexpr std::uint32_t kWorkers = 5, kClocks = 14;
using Clocks = std::vector<std::vector<Time>>;  // by worker and clock
Clocks random_durations(std::uint64_t seed) {
  RandomStream random(seed, "clocks");
  Clocks durations(kWorkers, std::vector<Time>(kClocks));
  for (std::vector<Time>& of_worker : durations) {
    for (Time& duration : of_worker) duration = 10 + static_cast<Time>(random.bits() % 100);
  }
  return durations;
}

// When each clock of each worker begins to be computed; only the classifier takes time, and no message.
Clocks begins(const std::string& gradient, const Clocks& durations) {
  const auto source = job("parallel: {data: " + std::to_string(kWorkers) + ", servers: 2}, iterations: " +
                          std::to_string(kClocks) + ", gradient: {" + gradient + "}");
  TaskPlayer player(*source, 5);
  player.compute_time = [&](std::uint32_t rank, const Task& task) {
    return source->names()[task.name] == "classifier_forward" ? durations[rank][task.iteration] : Time{0};
  };
  player.run();
  EXPECT_TRUE(player.all_done());
  EXPECT_FALSE(player.mismatched);
  Clocks begins(kWorkers, std::vector<Time>(kClocks, -1));
  for (const PlayedTask& task : player.played) {
    if (task.rank < kWorkers && source->names()[task.task.name] == "classifier_forward")
      begins[task.rank][task.task.iteration] = task.ready;
  }
  return begins;
}

// The definition: a clock begins when the worker's own one before is over, and the clock s + 1 before of all.
Clocks expected(const Clocks& durations, std::optional<std::uint32_t> staleness) {
  Clocks begins(kWorkers, std::vector<Time>(kClocks, 0));
  for (std::uint32_t clock = 1; clock < kClocks; ++clock) {
    for (std::uint32_t worker = 0; worker < kWorkers; ++worker) {
      Time& begin = begins[worker][clock];
      begin = begins[worker][clock - 1] + durations[worker][clock - 1];
      if (!staleness || clock < *staleness + 1) continue;
      const std::uint32_t awaited = clock - *staleness - 1;
      for (std::uint32_t other = 0; other < kWorkers; ++other)
        begin = std::max(begin, begins[other][awaited] + durations[other][awaited]);
    }
  }
  return begins;
}

TEST(ParameterServers, LetWorkersBeAheadByTheStaleness) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const Clocks durations = random_durations(seed);
    for (const std::uint32_t staleness : {0U, 1U, 2U, 5U}) {
      for (const char* buckets : {"", ", bucket: 25 MB, overlap: true"})
        EXPECT_EQ(begins("staleness: " + std::to_string(staleness) + buckets, durations),
                  expected(durations, staleness))
            << seed << " " << staleness << buckets;
    }
    EXPECT_EQ(begins("asynchronous: true", durations), expected(durations, std::nullopt)) << seed;
  }
}

// One worker is ten times as slow as the others, which run ahead by the largest number of clocks allowed.
TEST(ParameterServers, KeepFastWorkersToTheBound) {
  Clocks durations(kWorkers, std::vector<Time>(kClocks, 10));
  durations[2].assign(kClocks, 100);
  const Clocks begin = begins("staleness: 3", durations);
  for (std::uint32_t clock = 0; clock < kClocks; ++clock) {
    EXPECT_EQ(begin[0][clock], clock <= 3 ? 10 * clock : 100 * (clock - 3)) << clock;
    EXPECT_EQ(begin[2][clock], 100 * clock) << clock;
  }
}

TEST(LocalSteps, AverageOnceAnIteration) {
  const auto source =
      job("parallel: {data: 4, pipeline: 2, layers: {stages: [7, 7]}}, microbatches: 3, iterations: 2, "
          "gradient: {local_steps: 5, bucket: 100 MB}");
  Bytes averaged = 0;
  for (const std::uint32_t rank : {0U, 4U}) {
    EXPECT_TRUE(tasks(*source, rank, "dp_gradients").empty());
    EXPECT_EQ(tasks(*source, rank, "optimizer").size(), 2U * 5);
    EXPECT_THAT(
        tasks(*source, rank, "dp_average"),
        Each(::testing::ResultOf([](const Task& t) { return t.bytes(); }, ::testing::Le(100'000'000))));
    averaged += bytes(tasks(*source, rank, "dp_average"));
  }
  EXPECT_EQ(tasks(*source, 0, "first_convolution_forward").size(), 2U * 5 * 3);
  EXPECT_EQ(averaged, 2 * 2 * kParameters);
  const auto plain = job("parallel: {data: 4}, microbatches: 3");
  EXPECT_DOUBLE_EQ(source->model_flops(), 5 * plain->model_flops());

  TaskPlayer player(*source, 13);
  player.compute_time = [](std::uint32_t, const Task&) { return Time{10}; };
  player.transfer_time = [](const Task& task) { return task.stream == Stream::dp ? Time{1000} : Time{1}; };
  player.run();
  ASSERT_TRUE(player.all_done());
  // All steps of an iteration, then the averages, one after the other, then the next iteration's steps.
  for (const std::uint32_t iteration : {0U, 1U}) {
    Time stepped = 0, first = -1, last = 0, begun = -1;
    for (const PlayedTask& task : player.played) {
      if (task.rank != 4 || task.task.iteration != iteration) continue;
      const std::string& name = source->names()[task.task.name];
      if (name == "optimizer") stepped = std::max(stepped, task.end);
      if (name == "dp_average") first = first < 0 ? task.ready : std::min(first, task.ready);
      if (name == "dp_average") last = std::max(last, task.end);
      if (task.task.kind() == TaskKind::compute) begun = begun < 0 ? task.ready : std::min(begun, task.ready);
    }
    EXPECT_EQ(first, stepped);
    EXPECT_EQ(last - first, 1000 * static_cast<Time>(tasks(*source, 4, "dp_average").size() / 2));
    EXPECT_GE(first, begun + 5 * 3 * 2 * 10);
  }
}

std::string refusal(const std::string& rest) {
  try {
    job(rest);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Replicas, AreRefusedWhatDoesNotCombine) {
  EXPECT_THAT(refusal("gradient: {staleness: 2}"), HasSubstr("it needs parallel.servers"));
  EXPECT_THAT(refusal("gradient: {asynchronous: true}"), HasSubstr("it needs parallel.servers"));
  EXPECT_THAT(refusal("parallel: {data: 4, servers: 1}, gradient: {staleness: 2, asynchronous: true}"),
              HasSubstr("give one of the two"));
  EXPECT_THAT(refusal("parallel: {data: 4, servers: 1, pipeline: 2}"),
              HasSubstr("for data parallelism alone"));
  EXPECT_THAT(refusal("parallel: {data: 1, servers: 1}"), HasSubstr("2 workers at least"));
  EXPECT_THAT(refusal("parallel: {data: 4, servers: 2}, optimizer: distributed_adam"),
              HasSubstr("no use for parameter servers"));
  EXPECT_THAT(refusal("parallel: {data: 4, servers: 2}, gradient: {local_steps: 2}"),
              HasSubstr("average among themselves"));
  EXPECT_THAT(refusal("parallel: {data: 4}, gradient: {local_steps: 2}, optimizer: distributed_adam"),
              HasSubstr("an optimizer of their own"));
  EXPECT_THAT(refusal("parallel: {data: 4}, gradient: {local_steps: 2, bucket: 1 MB, overlap: true}"),
              HasSubstr("nothing to overlap"));
  EXPECT_THAT(refusal("parallel: {data: 4, pipeline: 2, layers: {stages: [[7, 7], [7, 7]]}, schedule: "
                      "chimera}, microbatches: 2, "
                      "gradient: {local_steps: 2}"),
              HasSubstr("two copies of the model"));
}

}  // namespace
}  // namespace netsim::replicas_test
