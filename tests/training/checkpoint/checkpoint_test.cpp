// Tests checkpoints of a job: how much each rank writes, when training continues, and that the drives get
// every byte. The plan before the run agrees with the run.
#include "sim/training/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <numeric>
#include <set>

#include "sim/core/errors.h"
#include "sim/simulation/simulation.h"
#include "tests/report/fixtures.h"
#include "tests/support/scripted_source.h"
#include "tests/support/task_bodies.h"
#include "tests/support/tasks_of.h"
#include "tests/workload/program/small_programs.h"
#include "tests/workload/task_player.h"

namespace netsim::checkpoint_test {
namespace {

using netsim::test::parse_workload;
using netsim::test::PlayedTask;
using netsim::test::TaskPlayer;
using ::testing::HasSubstr;

// Two ranks that compute for 10 us an iteration and then meet.
std::unique_ptr<TaskSource> two_ranks(std::uint32_t iterations) {
  Program program;
  ProgramBuilder builder("pair");
  const std::uint32_t axis = builder.axis("dp", 2);
  const std::uint32_t group = builder.group({{{axis, {}}}, {}, 0});
  BlockBuilder main(builder, "rank");
  const auto step = main.compute(test::fixed_work("step", 10 * kMicrosecond));
  main.collective("sum", CollectiveKind::all_reduce, Stream::dp, 0, group, 64, {step});
  builder.role({"rank", {}, main.finish()});
  program = builder.finish();
  program.iterations = iterations;
  return make_role_program_source(std::move(program), "pair.pb");
}

CheckpointParameters written(std::int64_t every, bool asynchronous) {
  CheckpointParameters p;
  p.every = every;
  p.asynchronous = asynchronous;
  p.piece = 1000;
  p.write_rate = 8 * kGbps;      // 1000 bytes: 1 us
  p.snapshot_rate = 80 * kGbps;  // 0.1 us
  return p;
}

struct Played {
  Played(const CheckpointParameters& p, const std::vector<Bytes>& bytes, std::uint32_t iterations,
         std::uint32_t servers = 1, Time transfer = 2 * kMicrosecond)
      : source(with_checkpoints({two_ranks, iterations, p, {}, bytes, {0, 0}, servers})) {
    std::vector<Time> durations;
    for (const Work& work : source->works()) durations.push_back(work.kernels.front().duration);
    TaskPlayer player(*source, 1, durations);
    player.transfer_time = [transfer](const Task& task) { return task.stream == Stream::io ? transfer : 0; };
    player.run();
    EXPECT_TRUE(player.all_done());
    EXPECT_FALSE(player.mismatched);
    tasks = player.played;
    end = player.end();
  }
  std::vector<PlayedTask> named(const std::string& name, std::uint32_t rank) const {
    std::vector<PlayedTask> all;
    for (const PlayedTask& played : tasks) {
      if (played.rank == rank && source->names()[played.task.name] == name) all.push_back(played);
    }
    return all;
  }
  std::unique_ptr<TaskSource> source;
  std::vector<PlayedTask> tasks;
  Time end = 0;
};

// A piece's way takes 2 us and its write 1 us, which runs beside the next piece's way; then the word, 2 us.
TEST(Checkpoints, AreWaitedFor) {
  const Played run(written(2, false), {2500, 1000}, 4);
  const auto steps = run.named("step", 0);
  ASSERT_EQ(steps.size(), 4U);
  constexpr Time kUs = kMicrosecond;
  EXPECT_EQ(steps[1].end, 20 * kUs);
  // Pieces arrive after 2, 4, 6 us, the last, of half the size, is written in half a microsecond.
  EXPECT_EQ(steps[2].ready, 20 * kUs + 6 * kUs + kUs / 2 + 2 * kUs);
  // The other rank continues when its own part is written.
  EXPECT_EQ(run.named("step", 1)[2].ready, 20 * kUs + 2 * kUs + 1 * kUs + 2 * kUs);
  EXPECT_EQ(run.named("checkpoint", 2).size(), 2U * 4);  // received by the drives
  EXPECT_EQ(run.named("checkpoint_snapshot", 0).size(), 0U);
}

// Only for the copy in the host's memory.
TEST(Checkpoints, AreWrittenBesideTraining) {
  const Played run(written(2, true), {2500, 1000}, 4);
  constexpr Time kUs = kMicrosecond;
  EXPECT_EQ(run.named("step", 0)[2].ready, 20 * kUs + kUs / 4);
  EXPECT_EQ(run.named("step", 1)[2].ready, 20 * kUs + kUs / 10);
  EXPECT_EQ(run.named("checkpoint", 2).size(), 2U * 4);
}

// A snapshot waits until the one before is written: its memory is in use.
TEST(Checkpoints, WaitForTheOneBefore) {
  const Played run(written(1, true), {4000, 0}, 3, 1, 10 * kMicrosecond);
  const auto snapshots = run.named("checkpoint_snapshot", 0), words = run.named("checkpoint_written", 0);
  ASSERT_EQ(snapshots.size(), 3U);
  ASSERT_EQ(words.size(), 3U);
  for (std::size_t i = 1; i < 3; ++i) EXPECT_GE(snapshots[i].ready, words[i - 1].end);
  EXPECT_EQ(snapshots[1].ready, words[0].end);
}

// The run executes exactly the tasks of for_each_task(), to the byte and the iteration. It uses all servers.
TEST(Checkpoints, AreWhatThePlanSays) {
  for (const bool asynchronous : {false, true}) {
    const Played run(written(2, asynchronous), {2500, 3999}, 7, 2);
    for (std::uint32_t rank = 0; rank < run.source->ranks(); ++rank) {
      std::map<std::uint32_t, Task> expected;
      for (const Task& task : test::tasks_of(*run.source, rank))
        EXPECT_TRUE(expected.emplace(task.id, task).second);
      std::size_t played = 0;
      for (const PlayedTask& done : run.tasks) {
        if (done.rank != rank) continue;
        ++played;
        ASSERT_TRUE(expected.contains(done.task.id));
        const Task& task = expected.at(done.task.id);
        EXPECT_TRUE(test::same_body(task, done.task));
        EXPECT_EQ(task.iteration, done.task.iteration);
        EXPECT_EQ(task.sequence, done.task.sequence);
      }
      EXPECT_EQ(played, expected.size());
    }
    EXPECT_EQ(run.named("checkpoint", 2).size(), 3U * 3);
    EXPECT_EQ(run.named("checkpoint", 3).size(), 3U * 4);
  }
}

// ---- Of a ptdp job

Bytes bytes_of(const TaskSource& source, std::uint32_t rank) {
  Bytes bytes = 0;
  for (const Task& task : test::tasks_of(source, rank)) {
    if (task.kind() == TaskKind::send && source.names()[task.name] == "checkpoint") bytes += task.bytes();
  }
  return bytes;
}

constexpr std::int64_t kParameters = 4 * (12 * 64 * 64 + 13 * 64) + 128 * 64 + 16 * 64 + 2 * 64;

std::vector<Bytes> parts(const std::string& more, std::uint32_t ranks) {
  WorkloadContext context(ranks + 1);
  context.drives = {ranks};
  const auto source = parse_workload(
                          "{kind: ptdp, model: {layers: 4, hidden: 64, heads: 4, sequence: 16, "
                          "vocabulary: 128}, " +
                          more + "}")
                          ->tasks(context);
  EXPECT_EQ(source->ranks(), ranks + 1);
  EXPECT_EQ(source->storage_ranks(), 1U);
  std::vector<Bytes> bytes;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) bytes.push_back(bytes_of(*source, rank));
  return bytes;
}

// Every parameter and its states once: 14 bytes.
TEST(Checkpoints, HaveEveryParameterOnce) {
  const Bytes all = 14 * kParameters;
  const std::string d4 = "parallel: {data: 4}, ";
  EXPECT_THAT(parts(d4 + "checkpoint: {every: 1}", 4), ::testing::Each(all / 4));
  EXPECT_EQ(parts(d4 + "checkpoint: {every: 1, divided: false}", 4), (std::vector<Bytes>{all, 0, 0, 0}));
  const Bytes states = 3 * kParameters;
  EXPECT_EQ(parts(d4 + "optimizer: distributed_adam, checkpoint: {every: 1, divided: false}", 4),
            (std::vector<Bytes>{states + 2 * kParameters, states, states, states}));
  EXPECT_THAT(
      parts(d4 + "optimizer: distributed_adam, sharding: {what: parameters}, checkpoint: {every: 1, divided: "
                 "false}",
            4),
      ::testing::Each(all / 4));
  // In two groups with a copy each the first writes.
  EXPECT_EQ(
      parts(d4 +
                "optimizer: distributed_adam, sharding: {what: parameters, group: 2}, checkpoint: {every: 1, "
                "divided: false}",
            4),
      (std::vector<Bytes>{all / 2, all / 2, 0, 0}));
  // Stages have what they have.
  const std::vector<Bytes> stages = parts("parallel: {pipeline: 2}, checkpoint: {every: 1}", 2);
  // Tied embeddings are on both.
  EXPECT_EQ(stages[0] + stages[1], all + 14 * 128 * 64);
  // Twice.
  EXPECT_EQ(parts("iterations: 5, checkpoint: {every: 2}", 1), (std::vector<Bytes>{2 * all}));
}

TEST(Checkpoints, NeedStorage) {
  const auto kind =
      parse_workload("{kind: ptdp, model: {layers: 2, hidden: 64, heads: 4}, checkpoint: {every: 1}}");
  EXPECT_THAT([&] { kind->tasks(1); },
              ::testing::ThrowsMessage<ConfigError>(HasSubstr("has no storage_server")));
  WorkloadContext context(3);
  context.drives = {2};
  const auto more = parse_workload(
      "{kind: ptdp, model: {layers: 2, hidden: 64, heads: 4}, checkpoint: {every: 1, servers: 2}}");
  EXPECT_THAT([&] { more->tasks(context); },
              ::testing::ThrowsMessage<ConfigError>(HasSubstr("2 were asked for, the cluster has 1")));
}

// ---- Over the network

struct Trained {
  explicit Trained(const std::string& checkpoint) {
    const test::Directory directory;
    const std::string path = directory.path() + "/job.yaml";
    std::ofstream(path)
        << "{kind: ptdp, model: {layers: 2, hidden: 512, heads: 8, sequence: 128, vocabulary: 1024}, "
           "parallel: {data: 4}, optimizer: distributed_adam, iterations: 4"
        << checkpoint << "}";
    SimulationSetup setup;
    setup.config = parse_config(
        "{topology: {kind: star, hosts: 6, rate: 100 Gbps}, hosts: [{kind: storage_server, count: 1, nics: "
        "1}, {kind: "
        "single_nic, count: 4}], compute: h100_sxm}",
        "cluster.yaml");
    setup.workload = path;
    setup.threads = 1;
    Simulation simulation(std::move(setup));
    placement = simulation.placement(0);
    results = simulation.run({});
  }
  std::vector<GpuId> placement;
  Results results;
};

// The drives are the cluster's, wherever they stand; they are not counted among the GPUs.
TEST(Checkpoints, TravelOverTheNetwork) {
  const Trained none(""), waits(", checkpoint: {every: 2, piece: 1 MB}"),
      beside(", checkpoint: {every: 2, piece: 1 MB, asynchronous: true}");
  EXPECT_EQ(waits.placement, (std::vector<GpuId>{1, 2, 3, 4, 0}));
  const Bytes all = 14 * (2 * (12 * 512 * 512 + 13 * 512) + 1024 * 512 + 128 * 512 + 2 * 512);
  for (const Trained* run : {&waits, &beside}) {
    ASSERT_EQ(run->results.outcome, Outcome::done);
    EXPECT_EQ(run->results.jobs[0].gpus.size(), 4U);
    EXPECT_EQ(run->results.jobs[0].iteration_ends.size(), 4U);
    EXPECT_EQ(run->results.network.bytes_delivered - none.results.network.bytes_delivered,
              2 * all + 2 * 4 * 64);
  }
  // Its NIC of 100 Gb/s is what all of it has to pass.
  const auto io = static_cast<std::size_t>(Stream::io);
  const Time least = all * 8 * (kSecond / (100 * kGbps));
  EXPECT_GE(waits.results.jobs[0].end, none.results.jobs[0].end + 2 * least);
  EXPECT_GT(waits.results.jobs[0].rank_times[0].exposed_by[io], 0);
  EXPECT_LT(beside.results.jobs[0].end, waits.results.jobs[0].end);
}

}  // namespace
}  // namespace netsim::checkpoint_test
