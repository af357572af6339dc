// Tests buckets of all gradients, and the optimizer that runs layer by layer. Compares bytes and parameters
// with those of the whole step, and times of chains over several iterations with their recurrence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "tests/support/tasks_of.h"
#include "tests/workload/program/small_programs.h"
#include "tests/workload/task_player.h"

namespace netsim::layer_optimizer_test {
namespace {

using netsim::test::parse_workload;
using netsim::test::PlayedTask;
using netsim::test::TaskPlayer;
using ::testing::HasSubstr;

constexpr std::int64_t kParameters = 138'357'544;  // VGG-16's
constexpr std::size_t kLayers = 16;

std::unique_ptr<WorkloadKind> workload(const std::string& rest) {
  return parse_workload("{kind: ptdp, recompute: none, " + rest + "}");
}
std::unique_ptr<TaskSource> vgg(const std::string& rest) {
  return workload("model: {kind: vgg}, " + rest)->tasks(64);
}
std::string refusal(const std::string& rest) {
  try {
    workload(rest)->tasks(64);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
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
// Returns the bytes that the optimizer's kernels of one iteration move, without those that serve clipping by
// the global norm.
Bytes updated(const TaskSource& source, std::uint32_t rank, bool clips) {
  Bytes all = 0;
  for (const Task& task : tasks(source, rank, "optimizer")) {
    if (task.iteration > 0) continue;
    for (const Kernel& kernel : source.works()[task.work()].kernels) {
      const bool of_clipping = kernel.name == "gradient_norm" || kernel.name == "gradient_clip";
      EXPECT_TRUE(clips || !of_clipping);
      if (!of_clipping) all += kernel.bytes;
    }
  }
  return all;
}

// ---- Buckets

TEST(GradientBuckets, HaveAllGradientsInTheOrderOfTheBackward) {
  for (const char* per : {"layer", "tensor"}) {
    SCOPED_TRACE(per);
    const auto source = vgg(std::string("parallel: {data: 4}, gradient: {bucket: 25 MiB, first_bucket: "
                                        "1 MiB, overlap: true, per: ") +
                            per + "}");
    const std::vector<Task> sums = tasks(*source, 1, "dp_gradients");
    EXPECT_EQ(bytes(sums), 2 * kParameters);
    // The classifier has 1000 biases and a matrix of 4096 x 1000 in half precision: more than 1 MiB.
    EXPECT_EQ(sums.front().bytes(), 2 * (1000 + 4096 * 1000));
    for (std::size_t i = 1; i + 1 < sums.size(); ++i) EXPECT_GE(sums[i].bytes(), 25 << 20);
    EXPECT_EQ(tasks(*source, 1, "optimizer").size(), 1U);
  }
}

TEST(GradientBuckets, OfTensorsAreSmallerThanLayers) {
  const std::string rest = "parallel: {data: 2}, gradient: {bucket: 1 B, overlap: true, per: ";
  EXPECT_EQ(tasks(*vgg(rest + "layer}"), 0, "dp_gradients").size(), kLayers);
  EXPECT_EQ(tasks(*vgg(rest + "tensor}"), 0, "dp_gradients").size(), 2 * kLayers);  // weights and biases
}

// Without the new keys the classifier follows after the backward. The first bucket is the last layer of the
// body.
TEST(GradientBuckets, OfTheBodyLeaveTheEnds) {
  const auto body = vgg("parallel: {data: 2}, gradient: {bucket: 25 MB, overlap: true}");
  const std::vector<Task> sums = tasks(*body, 0, "dp_gradients");
  EXPECT_EQ(bytes(sums), 2 * kParameters);
  EXPECT_EQ(sums.front().bytes(), 2 * (4096 * 4096 + 4096));
}

TEST(GradientBuckets, OfTiedEmbeddingsHaveThemWithTheFirstLayer) {
  const std::string model = "model: {layers: 4, hidden: 64, heads: 4, sequence: 64, vocabulary: 128}, ";
  const auto plain = workload(model + "parallel: {data: 2}")->tasks(64);
  const Bytes all = bytes(tasks(*plain, 0, "dp_gradients"));
  for (const char* per : {"body", "layer", "tensor"}) {
    const auto source =
        workload(model + "parallel: {data: 2}, gradient: {bucket: 1 KB, overlap: true, per: " + per + "}")
            ->tasks(64);
    EXPECT_EQ(bytes(tasks(*source, 0, "dp_gradients")), all) << per;
  }
  // On two stages the embedding is summed between them first. Each has a copy, which follows at the end.
  for (const std::uint32_t rank : {0U, 2U}) {
    const auto staged = workload(model + "parallel: {data: 2, pipeline: 2}")->tasks(64);
    const auto buckets = workload(model +
                                  "parallel: {data: 2, pipeline: 2}, gradient: {bucket: 1 KB, overlap: "
                                  "true, per: layer}")
                             ->tasks(64);
    EXPECT_EQ(bytes(tasks(*buckets, rank, "dp_gradients")), bytes(tasks(*staged, rank, "dp_gradients")));
  }
}

// ---- The optimizer cut into steps

// Times by layer.
struct Chain {
  std::vector<Time> forward, backward, sum, update;
};
Chain random_chain(std::uint64_t seed) {
  RandomStream random(seed, "chain");
  Chain chain;
  for (std::vector<Time>* times : {&chain.forward, &chain.backward, &chain.sum, &chain.update}) {
    for (std::size_t i = 0; i < kLayers; ++i)
      times->push_back(1 + static_cast<Time>(random.bits() % (times == &chain.sum ? 60 : 20)));
  }
  return chain;
}

// Plays a job whose layers have one forward, backward, sum and update each. Returns when it ends.
Time played(const std::string& more, const Chain& chain, std::uint32_t iterations, std::uint64_t seed) {
  const auto source =
      vgg("parallel: {data: 2}, iterations: " + std::to_string(iterations) +
          ", gradient: {bucket: 1 B, overlap: true, per: layer}, strategies: [layer_optimizer]" + more);
  const std::uint32_t size = test::task_count(*source, 0) / iterations;
  std::map<std::uint32_t, Time> duration;  // by task of an iteration
  std::map<std::string, std::size_t> backs;
  std::size_t forwards = 0, backwards = 0, sums = 0, updates = 0;
  for (const Task& task : test::tasks_of(*source, 0)) {
    if (task.iteration > 0) break;
    const std::string& name = source->names()[task.name];
    if (name.ends_with("_forward")) duration[task.id] = chain.forward[forwards++];
    if (name.ends_with("_backward")) duration[task.id] = chain.backward[kLayers - 1 - backwards++];
    if (name == "dp_gradients") duration[task.id] = chain.sum[kLayers - 1 - sums++];
    if (name == "optimizer") duration[task.id] = chain.update[kLayers - 1 - updates++];
  }
  EXPECT_EQ(forwards + backwards + sums + updates, 4 * kLayers);
  TaskPlayer player(*source, seed);
  const auto time = [&](const Task& task) {
    return duration.count(task.id % size) > 0 ? duration[task.id % size] : Time{0};
  };
  player.compute_time = [&](std::uint32_t, const Task& task) { return time(task); };
  player.transfer_time = time;
  player.run();
  EXPECT_TRUE(player.all_done());
  EXPECT_FALSE(player.mismatched);
  return player.end();
}

// The recurrence: computations in one stream, sums in one queue, and forward l behind update l.
Time expected(const Chain& chain, std::uint32_t iterations) {
  std::vector<Time> update(kLayers, 0);
  Time computed = 0, summed = 0;
  for (std::uint32_t i = 0; i < iterations; ++i) {
    for (std::size_t l = 0; l < kLayers; ++l) computed = std::max(computed, update[l]) + chain.forward[l];
    for (std::size_t l = kLayers; l-- > 0;) {
      computed += chain.backward[l];
      summed = std::max(summed, computed) + chain.sum[l];
      update[l] = summed + chain.update[l];
    }
  }
  return *std::max_element(update.begin(), update.end());
}

TEST(LayerOptimizer, RunsChainsAsTheRecurrenceSays) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const Chain chain = random_chain(seed);
    for (const std::uint32_t iterations : {1U, 2U, 5U})
      EXPECT_EQ(played("", chain, iterations, seed), expected(chain, iterations)) << seed;
  }
}

// Equal layers with sums in order. The last sum is that of layer 0, for which the next forward waits. So an
// iteration takes F + max(B + C / L, B / L + C).
TEST(LayerOptimizer, TakesTheTimeOfEqualLayers) {
  const auto layers = static_cast<Time>(kLayers);
  for (const Time sum : {1, 10, 20, 30, 40, 90}) {
    Chain chain;
    chain.forward.assign(kLayers, 10);
    chain.backward.assign(kLayers, 20);
    chain.sum.assign(kLayers, sum);
    chain.update.assign(kLayers, 0);
    const Time forward = 10 * layers, backward = 20 * layers;
    EXPECT_EQ(played("", chain, 3, 1) - played("", chain, 2, 1),
              forward + std::max(backward + sum, backward / layers + sum * layers));
  }
}

// Updates run beside each other and beside the backward. In one step at the end they would add up.
TEST(LayerOptimizer, HidesUpdatesBehindTheBackward) {
  Chain chain;
  chain.forward.assign(kLayers, 10);
  chain.backward.assign(kLayers, 20);
  chain.sum.assign(kLayers, 1);
  chain.update.assign(kLayers, 5);
  EXPECT_EQ(played("", chain, 1, 1), 30 * static_cast<Time>(kLayers) + 1 + 5);
}

TEST(LayerOptimizer, UpdatesAllParametersOnce) {
  for (const char* rest : {"parallel: {data: 2}", "parallel: {data: 1}",
                           "parallel: {data: 2, pipeline: 2, layers: {stages: [7, 7]}}"}) {
    SCOPED_TRACE(rest);
    const auto whole = vgg(rest);
    const std::string cut = std::string(rest) + ", gradient: {bucket: 1 MB, overlap: true, per: ";
    for (const char* per : {"layer", "tensor"}) {
      for (const char* step : {"layer", "bucket"}) {
        const auto source = vgg(cut + per + "}, strategies: [{kind: layer_optimizer, per: " + step + "}]");
        EXPECT_EQ(updated(*source, 0, false), updated(*whole, 0, true));
        EXPECT_GT(tasks(*source, 0, "optimizer").size(), 1U);
      }
    }
    const auto buckets = vgg(cut + "layer}, strategies: [{kind: layer_optimizer, per: bucket}]");
    const std::size_t sums = tasks(*buckets, 0, "dp_gradients").size();
    if (sums > 0) {
      EXPECT_EQ(tasks(*buckets, 0, "optimizer").size(), sums);
    }
  }
}

constexpr const char* kGpt =
    "model: {layers: 4, hidden: 64, heads: 4, sequence: 64, vocabulary: 128}, microbatches: 4, ";
constexpr const char* kCut =
    "gradient: {bucket: 20 KB, first_bucket: 1 KB, overlap: true, per: layer}, strategies: "
    "[layer_optimizer], ";

// Jobs of all kinds end in any order, and no forward begins before the updates of its iteration before.
TEST(LayerOptimizer, CombinesWithOtherStrategies) {
  for (const char* rest :
       {"parallel: {data: 2}", "parallel: {data: 2, tensor: 2}", "parallel: {data: 2, pipeline: 2}",
        "parallel: {data: 2, tensor: 2, pipeline: 2, virtual_stages: 2}",
        "parallel: {data: 2, pipeline: 2}, overlap_p2p: false",
        "parallel: {data: 2, pipeline: 2}, ordered_p2p: true",
        "parallel: {data: 2, pipeline: 2, schedule: zb_h1}", "parallel: {data: 2, tensor: 2, sequence: true}",
        "parallel: {data: 1, tensor: 2, sequence: true}",
        "parallel: {data: 2, pipeline: 2}, optimizer: distributed_adam, overlap_parameter_gather: true",
        "parallel: {data: 4}, optimizer: distributed_adam, overlap_parameter_gather: true"}) {
    SCOPED_TRACE(rest);
    const auto source = workload(kGpt + std::string(kCut) + "iterations: 3, " + rest)->tasks(64);
    TaskPlayer player(*source, 17);
    player.compute_time = [](std::uint32_t, const Task&) { return Time{10}; };
    player.transfer_time = [](const Task& task) { return task.stream == Stream::dp ? Time{70} : Time{1}; };
    player.run();
    ASSERT_TRUE(player.all_done());
    EXPECT_FALSE(player.mismatched);
    // Every update of an iteration ends before the first backward of the next: all forwards of the stage have
    // run by then at the latest.
    std::map<std::pair<std::uint32_t, std::uint32_t>, Time> updated, backward;
    for (const PlayedTask& task : player.played) {
      const std::string& name = source->names()[task.task.name];
      const std::pair<std::uint32_t, std::uint32_t> at{task.rank, task.task.iteration};
      if (name == "optimizer") updated[at] = std::max(updated[at], task.end);
      if (name.find("backward") == std::string::npos || task.task.kind() != TaskKind::compute) continue;
      const auto [first, added] = backward.try_emplace(at, task.ready);
      if (!added) first->second = std::min(first->second, task.ready);
    }
    for (const auto& [at, time] : updated) {
      const auto next = backward.find({at.first, at.second + 1});
      if (next != backward.end()) {
        EXPECT_LE(time, next->second) << at.first;
      }
    }
  }
}

// The parameters of a layer are gathered when its step is done, and the forward waits for them.
TEST(LayerOptimizer, GathersWhatItHasUpdated) {
  const auto source =
      workload(
          kGpt + std::string(kCut) +
          "iterations: 2, parallel: {data: 4}, optimizer: distributed_adam, overlap_parameter_gather: true")
          ->tasks(64);
  const auto plain = workload(kGpt + std::string("iterations: 2, parallel: {data: 4}, optimizer: "
                                                 "distributed_adam, overlap_parameter_gather: true"))
                         ->tasks(64);
  for (const char* name : {"dp_gradients", "dp_parameters"})
    EXPECT_EQ(bytes(tasks(*source, 0, name)), bytes(tasks(*plain, 0, name))) << name;
  TaskPlayer player(*source, 5);
  player.compute_time = [&](std::uint32_t, const Task& task) {
    return source->names()[task.name] == "optimizer" ? Time{500} : Time{10};
  };
  player.run();
  ASSERT_TRUE(player.all_done());
  Time updated = 0, gathered = -1;
  for (const PlayedTask& task : player.played) {
    const std::string& name = source->names()[task.task.name];
    if (task.rank != 0) continue;
    if (name == "optimizer" && task.task.iteration == 0) updated = std::max(updated, task.end);
    if (name == "dp_parameters" && task.task.iteration == 1) gathered = std::max(gathered, task.ready);
  }
  EXPECT_GE(gathered, updated);  // the last gather behind the last step
}

// Gradients of norms are summed over tensor-parallel ranks before the replicas sum them, bucket by bucket.
TEST(LayerOptimizer, SumsGradientsOfNormsFirst) {
  for (const char* data : {"1", "2"}) {
    const std::string rest = std::string("parallel: {tensor: 2, sequence: true, data: ") + data + "}";
    const auto plain = workload(kGpt + rest)->tasks(64);
    const auto cut = workload(kGpt + std::string(kCut) + rest)->tasks(64);
    const std::vector<Task> sums = tasks(*cut, 0, "tp_norm_gradients");
    EXPECT_GT(sums.size(), 1U);
    EXPECT_EQ(bytes(sums), bytes(tasks(*plain, 0, "tp_norm_gradients")));
    EXPECT_EQ(bytes(tasks(*cut, 0, "dp_gradients")), bytes(tasks(*plain, 0, "dp_gradients")));
    TaskPlayer player(*cut, 3);
    player.transfer_time = [](const Task& task) { return task.stream == Stream::tp ? Time{40} : Time{5}; };
    player.run();
    ASSERT_TRUE(player.all_done());
    Time normed = 0, last_sum = 0, last_update = 0;
    for (const PlayedTask& task : player.played) {
      const std::string& name = cut->names()[task.task.name];
      if (name == "tp_norm_gradients") normed = std::max(normed, task.end);
      if (name == "dp_gradients") last_sum = std::max(last_sum, task.ready);
      if (name == "optimizer") last_update = std::max(last_update, task.ready);
    }
    EXPECT_GE(last_update, normed);
    if (*data == '2') {
      EXPECT_GE(last_sum, normed);
    }
  }
}

TEST(LayerOptimizer, LeavesProgramsWithoutItAsTheyAre) {
  const std::string rest =
      kGpt +
      std::string("iterations: 2, parallel: {data: 2, pipeline: 2}, gradient: {bucket: 20 KB, overlap: true");
  EXPECT_EQ(workload(rest + "}")->compile(), workload(rest + ", per: body, first_bucket: 0 B}")->compile());
  EXPECT_NE(workload(rest + "}")->compile(), workload(rest + ", per: layer}")->compile());
}

TEST(LayerOptimizer, RefusesWhatItCannotCut) {
  const std::string gpt = kGpt;
  const std::string listed = "strategies: [layer_optimizer], ";
  EXPECT_THAT(refusal(gpt + listed + "parallel: {data: 2}"),
              HasSubstr("has to be true with layer_optimizer"));
  EXPECT_THAT(refusal(gpt + listed + "parallel: {data: 2}, gradient: {bucket: 1 MB, overlap: true}"),
              HasSubstr("has to be layer or tensor with layer_optimizer"));
  EXPECT_THAT(refusal(gpt + kCut + "parallel: {data: 2}, optimizer: none"),
              HasSubstr("layer_optimizer cuts its step"));
  EXPECT_THAT(refusal(gpt + kCut + "parallel: {data: 2}, optimizer: distributed_adam"),
              HasSubstr("a forward waits for the parameters of its own layers only"));
  EXPECT_THAT(refusal(gpt + kCut + "parallel: {data: 2}, offload: {optimizer: 0.5}"),
              HasSubstr("layer_optimizer runs on the GPUs only"));
  EXPECT_EQ(refusal(gpt + kCut + "parallel: {data: 2, servers: 2}"), "accepted");
  EXPECT_THAT(refusal(gpt + "strategies: [layer_optimizer, layer_optimizer], parallel: {data: 2}"),
              HasSubstr("listed twice"));
  EXPECT_THAT(refusal(gpt + "parallel: {data: 2}, gradient: {per: tensor}"),
              HasSubstr("gradient.overlap has to be true"));
  EXPECT_THAT(refusal(gpt + "parallel: {data: 2}, gradient: {bucket: 1 MB, first_bucket: 1 KB}"),
              HasSubstr("gradient.overlap has to be true"));
}

}  // namespace
}  // namespace netsim::layer_optimizer_test
