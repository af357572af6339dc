// Tests context parallelism: the data and computation of each form of attention to other ranks' keys and
// values, and the part that a ring hides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/core/errors.h"
#include "tests/support/tasks_of.h"
#include "tests/workload/program/small_programs.h"
#include "tests/workload/task_player.h"

namespace netsim::context_parallel_test {
namespace {

using netsim::test::parse_workload;
using netsim::test::TaskPlayer;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// 8 heads of 8, in 4 groups.
constexpr Bytes kLayers = 2, kSequence = 64, kHidden = 64, kKeys = 32, kMicrobatches = 3;

std::unique_ptr<TaskSource> job(const std::string& more,
                                const std::string& model = "kind: llama, groups: 4, inner: 96",
                                Bytes layers = kLayers) {
  return parse_workload("{kind: ptdp, model: {" + model + ", layers: " + std::to_string(layers) +
                        ", hidden: 64, heads: 8, sequence: 64, vocabulary: 128}, " + more + "}")
      ->tasks(64);
}
std::unique_ptr<TaskSource> exchanged(const std::string& how, std::uint32_t size,
                                      const std::string& more = "") {
  return job("parallel: {tensor: 2, context: " + std::to_string(size) + ", context_exchange: " + how +
             "}, microbatches: 3, recompute: none" + more);
}

struct Tally {
  Bytes tasks = 0, bytes = 0;
};
std::map<std::string, Tally> tally(const TaskSource& source, std::uint32_t rank) {
  std::map<std::string, Tally> result;
  for (const Task& task : test::tasks_of(source, rank)) {
    if (!is_communication(task)) continue;
    const std::string kind =
        to_string(task.kind() == TaskKind::collective ? TaskKind::collective : task.kind());
    Tally& entry =
        result[(task.kind() == TaskKind::collective ? to_string(task.collective().collective) : kind) + " " +
               source.names()[task.name]];
    ++entry.tasks;
    entry.bytes += task.bytes();
  }
  return result;
}
Bytes cp_bytes(const TaskSource& source, std::uint32_t rank) {
  Bytes bytes = 0;
  for (const Task& task : test::tasks_of(source, rank)) {
    if (task.stream == Stream::cp && task.kind() != TaskKind::receive) bytes += task.bytes();
  }
  return bytes;
}

// Products of the attention of a rank, forward and backward; and rows of all other GEMMs.
struct Computed {
  double attention = 0, gemm = 0;
};
Computed computed(const TaskSource& source, std::uint32_t rank) {
  Computed sum;
  for (const Task& task : test::tasks_of(source, rank)) {
    if (task.kind() != TaskKind::compute) continue;
    for (const Kernel& k : source.works()[task.work()].kernels) {
      const double products = static_cast<double>(k.m) * static_cast<double>(k.n) * static_cast<double>(k.k) *
                              static_cast<double>(k.batch);
      if (k.kind == Kernel::Kind::attention) sum.attention += products;
      if (k.kind == Kernel::Kind::gemm) sum.gemm += products;
    }
  }
  return sum;
}

constexpr Bytes kEach = kLayers * kMicrobatches;  // attentions of a rank, forward
constexpr std::uint32_t kSizes[] = {2, 4, 8};

// A rank's keys and values, b s k / (t c) each, go to the next rank c - 1 times; backward the gradients, too.
TEST(ContextParallel, ARingPassesBlocksOfKeysAndValuesOn) {
  for (const std::uint32_t size : kSizes) {
    SCOPED_TRACE(size);
    const auto source = exchanged("ring", size);
    auto tasks = tally(*source, 3);
    const Bytes block = 2 * 2 * kSequence * kKeys / 2 / size;
    for (const char* end : {"send", "receive"}) {
      const std::string name = std::string(end) + " cp_" + end;
      EXPECT_EQ(tasks[name + "_forward"].bytes, kEach * (size - 1) * block);
      EXPECT_EQ(tasks[name + "_forward"].tasks, kEach * (size - 1));
      EXPECT_EQ(tasks[name + "_backward"].bytes, kEach * 2 * (size - 1) * block);
      EXPECT_EQ(tasks[name + "_backward"].tasks, kEach * size);
    }
    EXPECT_EQ(cp_bytes(*source, 3), kEach * 3 * (size - 1) * block);
  }
}

// Neighbours along "cp", which lies behind "tp": the next one forward, the one before backward.
TEST(ContextParallel, ARingRunsAlongItsAxis) {
  const auto source = exchanged("ring", 4);
  std::set<std::uint32_t> forward, backward;
  for (const Task& task : test::tasks_of(*source, 1)) {
    if (task.kind() != TaskKind::send) continue;
    (source->names()[task.name] == "cp_send_forward" ? forward : backward).insert(task.message().peer);
  }
  EXPECT_THAT(forward, ElementsAre(3));
  EXPECT_THAT(backward, ElementsAre(7));
}

TEST(ContextParallel, GathersKeysAndValuesAndScattersTheirGradients) {
  for (const std::uint32_t size : kSizes) {
    const auto source = exchanged("all_gather", size);
    auto tasks = tally(*source, 0);
    const Bytes all = 2 * 2 * kSequence * kKeys / 2;
    for (const char* name : {"all_gather cp_gather_forward", "all_gather cp_gather_backward",
                             "reduce_scatter cp_scatter_backward"}) {
      EXPECT_EQ(tasks[name].bytes, kEach * all) << name;
      EXPECT_EQ(tasks[name].tasks, kEach) << name;
    }
    EXPECT_EQ(cp_bytes(*source, 0), kEach * 3 * all);
  }
}

// Queries, keys and values go there, and the output back: 2 s (h + 2 k + h) / (t c) bytes of a rank. The
// backward moves as much for the gradients.
TEST(ContextParallel, AllToAllsDivideHeadsInsteadOfTokens) {
  constexpr Bytes kSize = 2, kInputs = 2 * kSequence * (kHidden + 2 * kKeys) / 2 / kSize;
  constexpr Bytes kOutput = 2 * kSequence * kHidden / 2 / kSize;
  const auto source = exchanged("all_to_all", kSize);
  auto tasks = tally(*source, 1);
  EXPECT_EQ(tasks["all_to_all cp_to_heads_forward"].bytes, kEach * kInputs);
  EXPECT_EQ(tasks["all_to_all cp_to_tokens_forward"].bytes, kEach * kOutput);
  EXPECT_EQ(tasks["all_to_all cp_to_heads_backward"].bytes, kEach * kOutput);
  EXPECT_EQ(tasks["all_to_all cp_to_tokens_backward"].bytes, kEach * kInputs);
  EXPECT_EQ(cp_bytes(*source, 1), kEach * 2 * (kInputs + kOutput));
  for (const Task& task : test::tasks_of(*source, 1)) {
    if (task.kind() != TaskKind::compute) continue;
    for (const Kernel& k : source->works()[task.work()].kernels) {
      if (k.kind != Kernel::Kind::attention) continue;
      EXPECT_EQ(k.m, kSequence);
      EXPECT_EQ(k.batch, 8 / 2 / kSize);
    }
  }
}

// Two neighbours divide the heads; a ring of four such pairs passes on half of the heads of twice the tokens.
TEST(ContextParallel, AHybridIsARingOfAllToAlls) {
  const auto source = exchanged("hybrid", 8);
  ASSERT_EQ(source->ranks(), 16U);
  auto tasks = tally(*source, 5);
  const Bytes block = 2 * 2 * kSequence * kKeys / 2 / 8;
  EXPECT_EQ(tasks["send cp_send_forward"].bytes, kEach * 3 * block);
  EXPECT_EQ(tasks["send cp_send_backward"].bytes, kEach * 6 * block);
  EXPECT_EQ(tasks["all_to_all cp_to_heads_forward"].bytes,
            kEach * 2 * kSequence * (kHidden + 2 * kKeys) / 2 / 8);
  for (const Task& task : test::tasks_of(*source, 5)) {
    const std::string& name = source->names()[task.name];
    if (name == "cp_to_heads_forward") {
      EXPECT_THAT(source->group(task.group()), ElementsAre(5, 7));
    }
    if (name == "cp_send_forward") {
      EXPECT_EQ(task.message().peer, 9U);
    }
  }
}

// Attention and GEMMs of all ranks together are those of the whole model, however they are exchanged.
TEST(ContextParallel, EachRankDoesItsPart) {
  const Computed whole = computed(*job("parallel: {tensor: 2}, microbatches: 3, recompute: none"), 0);
  for (const char* how : {"ring", "all_gather", "all_to_all", "hybrid"}) {
    SCOPED_TRACE(how);
    const std::uint32_t size = std::string(how) == "hybrid" ? 8 : 2;
    const Computed part = computed(*exchanged(how, size), 1);
    EXPECT_DOUBLE_EQ(part.attention * size, whole.attention);
    EXPECT_DOUBLE_EQ(part.gemm * size, whole.gemm);
  }
  const std::string gpt = "kind: gpt";
  const Computed whole_gpt = computed(*job("parallel: {tensor: 2}, recompute: none", gpt), 0);
  for (const char* how : {"all_gather", "all_to_all"}) {
    const auto source =
        job(std::string("parallel: {tensor: 2, context: 4, context_exchange: ") + how + "}, recompute: none",
            gpt);
    EXPECT_DOUBLE_EQ(computed(*source, 3).gemm * 4, whole_gpt.gemm);
  }
}

// Each step has one attention of c and blocks that travel for x: (n - 1) max(c, x) + c forward. In the
// backward the block goes alone at first, then with its gradient, and at last only the gradient. That is 2
// max(c, x) + (n - 2) max(c, 2 x).
TEST(ContextParallel, ARingHidesBehindTheAttention) {
  for (const std::uint32_t size : kSizes) {
    for (const auto& [compute, transfer] :
         std::vector<std::pair<Time, Time>>{{100, 40}, {100, 80}, {100, 100}, {60, 100}, {0, 50}}) {
      const auto source =
          job("parallel: {context: " + std::to_string(size) + "}, recompute: none, optimizer: none",
              "kind: llama, groups: 4, inner: 96", 1);
      std::vector<Time> durations;
      for (const Work& work : source->works()) {
        const bool attention = !work.kernels.empty() && work.kernels.front().kind == Kernel::Kind::attention;
        durations.push_back(attention ? compute : 0);
      }
      TaskPlayer player(*source, 1, durations);
      const Bytes block = 2 * 2 * kSequence * kKeys / size;
      const Time travel = transfer;
      player.transfer_time = [block, travel](const Task& task) {
        return task.stream == Stream::cp ? task.bytes() / block * travel : 0;
      };
      player.run();
      ASSERT_TRUE(player.all_done());
      const Time steps = size, slower = std::max(compute, transfer);
      EXPECT_EQ(player.end(),
                (steps - 1) * slower + compute + 2 * slower + (steps - 2) * std::max(compute, 2 * transfer));
    }
  }
}

// Where all is gathered or exchanged before and after, nothing hides.
TEST(ContextParallel, WhatIsGatheredIsExposed) {
  for (const auto& [how, transfers] :
       std::vector<std::pair<std::string, Time>>{{"all_gather", 3}, {"all_to_all", 4}}) {
    const auto source =
        job("parallel: {context: 4, context_exchange: " + how + "}, recompute: none, optimizer: none",
            "kind: llama, groups: 4, inner: 96", 1);
    std::vector<Time> durations;
    for (const Work& work : source->works())
      durations.push_back(!work.kernels.empty() && work.kernels.front().kind == Kernel::Kind::attention ? 100
                                                                                                        : 0);
    TaskPlayer player(*source, 1, durations);
    player.transfer_time = [](const Task& task) { return Time{task.stream == Stream::cp ? 40 : 0}; };
    player.run();
    EXPECT_EQ(player.end(), 200 + transfers * 40) << how;
  }
}

// All ranks of a sequence hold the same parameters: gradients are summed and optimizer states divided among
// them, too.
TEST(ContextParallel, RanksOfASequenceAreReplicas) {
  const std::string more = "microbatches: 2, optimizer: distributed_adam";
  const auto one = job("parallel: {data: 8}, " + more),
             both = job("parallel: {context: 4, data: 2}, " + more);
  EXPECT_EQ(tally(*one, 0)["reduce_scatter dp_gradients"].bytes,
            tally(*both, 0)["reduce_scatter dp_gradients"].bytes);
  for (const Task& task : test::tasks_of(*both, 5)) {
    if (both->names()[task.name] != "dp_gradients") continue;
    EXPECT_THAT(both->group(task.group()), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  }
  EXPECT_EQ(tally(*both, 0)["reduce_scatter dp_gradients"].tasks, 1);
}

TEST(ContextParallel, StagesSendTheirTokens) {
  const std::string more = "pipeline: 2, context: 4";
  EXPECT_EQ(tally(*job("parallel: {" + more + "}"), 0)["send send_forward"].bytes,
            2 * kSequence * kHidden / 4);
  EXPECT_EQ(tally(*job("parallel: {tensor: 2, sequence: true, " + more + "}"), 0)["send send_forward"].bytes,
            2 * kSequence * kHidden / 8);
  // Without sequence parallelism tensor-parallel ranks have the same and gather it.
  auto scattered = tally(*job("parallel: {tensor: 2, " + more + "}"), 8);
  EXPECT_EQ(scattered["all_gather gather_forward"].bytes, 2 * kSequence * kHidden / 4);
  EXPECT_EQ(
      tally(*job("parallel: {tensor: 2, sequence: true, context: 4}"), 0)["reduce_scatter tp_forward"].bytes,
      2 * kLayers * 2 * kSequence * kHidden / 4);
}

TEST(ContextParallel, IsRecomputedWithItsCommunication) {
  auto tasks = tally(*job("parallel: {context: 4}, recompute: full"), 0);
  EXPECT_EQ(tasks["send cp_send_recompute"].bytes, tasks["send cp_send_forward"].bytes);
  EXPECT_GT(tasks["send cp_send_forward"].bytes, 0);
}

// Halves of a backward, and pairs that are overlapped, have the same communication and end.
TEST(ContextParallel, WorksWithEverySchedule) {
  const auto with = [](const std::string& schedule, int chunks) {
    return job("parallel: {context: 4, tensor: 2, sequence: true, pipeline: 2, virtual_stages: " +
                   std::to_string(chunks) + ", schedule: " + schedule + "}, microbatches: 8",
               "kind: llama, groups: 4, inner: 96", 4);
  };
  const auto reference = with("one_f_one_b", 1);
  for (const auto& [schedule, chunks] : std::vector<std::pair<std::string, int>>{
           {"zb_h1", 1}, {"zb_v", 2}, {"interleaved", 2}, {"dual_pipe", 1}}) {
    SCOPED_TRACE(schedule);
    const auto source = with(schedule, chunks);
    Bytes bytes = 0, expected = 0;
    for (std::uint32_t rank = 0; rank < 16; ++rank) {
      bytes += cp_bytes(*source, rank);
      expected += cp_bytes(*reference, rank);
    }
    EXPECT_EQ(bytes, expected);
    TaskPlayer player(*source, 3);
    player.run();
    EXPECT_TRUE(player.all_done());
    EXPECT_FALSE(player.mismatched);
  }
}

// A layer gathers the gradient from the next layer, whose last kernel has ended by then.
TEST(ContextParallel, LayersThatBeginWithCommunicationWaitForTheLayerBefore) {
  for (const char* parallel : {"{tensor: 2, sequence: true}", "{tensor: 2, context: 2, sequence: true}"}) {
    const auto source = job(std::string("recompute: none, parallel: ") + parallel);
    TaskPlayer player(*source, 1, std::vector<Time>(source->works().size(), 10));
    player.run();
    std::vector<Time> ends, gathers;
    for (const auto& played : player.played) {
      if (played.rank != 0) continue;
      const std::string& name = source->names()[played.task.name];
      if (name.rfind("layer_begin_backward", 0) == 0) ends.push_back(played.end);
      if (name == "tp_gather_backward") gathers.push_back(played.ready);
    }
    ASSERT_EQ(ends.size(), 2U);
    EXPECT_EQ(std::count(gathers.begin(), gathers.end(), ends.front()), 1);
  }
}

TEST(ContextParallel, RefusesWhatCannotBeDivided) {
  const auto refused = [](const std::string& parallel, const std::string& model, const std::string& why) {
    EXPECT_THAT([&] { job("parallel: {" + parallel + "}", model); },
                ThrowsMessage<ConfigError>(HasSubstr(why)));
  };
  const std::string llama = "kind: llama, groups: 4, inner: 96";
  refused("context: 3", llama, "model.sequence (64) cannot be divided by 2 x context");
  refused("context: 64", llama, "cannot be divided by 2 x context");
  refused("context: 8, context_exchange: all_to_all", llama,
          "model.groups (4) cannot be divided by tensor x context (8)");
  refused("context: 4, tensor: 4, context_exchange: hybrid", llama, "tensor x context_heads (8)");
  refused("context: 4, context_exchange: hybrid, context_heads: 4", llama, "has to be a divisor of context");
  refused("context: 8, context_exchange: hybrid, context_heads: 3", llama, "has to be a divisor of context");
  refused("context: 4", "kind: gpt", "a ring needs an attention that is one kernel");
  refused("context: 32, tensor: 4, sequence: true", llama, "cannot be divided by context x tensor (128)");
  refused("context: 4, context_exchange: p2p", llama,
          "'p2p' is not one of: ring, all_gather, all_to_all, hybrid");
}

}  // namespace
}  // namespace netsim::context_parallel_test
