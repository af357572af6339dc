// Tests sums in slices before the boundaries of stages. NICs carry 1/t of the boundary tensors as before. The
// ranks of a stage move 2 (t - 1)/t of them instead of 3 (t - 1)/t.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "tests/support/tasks_of.h"
#include "tests/training/strategy/played_jobs.h"
#include "tests/workload/program/small_programs.h"
#include "tests/workload/task_player.h"

namespace netsim::sliced_boundaries_test {
namespace {

using netsim::test::parse_workload;
using netsim::test::TaskPlayer;
using ::testing::HasSubstr;

constexpr const char* kSliced = ", strategies: [sliced_boundaries]";
constexpr Bytes kBoundary = 2 * 16 * 64;  // h = 64, s = 16

std::string gpt(const std::string& more) {
  return "{kind: ptdp, model: {layers: 8, hidden: 64, heads: 8, sequence: 16, vocabulary: 128}, optimizer: "
         "none, " +
         more + "}";
}

struct Moved {
  Bytes between = 0;   // bytes that a rank sends to other stages
  Bytes within = 0;    // t times the bytes that a rank sends to others of its stage
  Bytes computed = 0;  // bytes of memory-bound kernels
};
Moved moved(const std::string& text, std::uint32_t tensor, std::uint32_t ranks) {
  const auto source = parse_workload(text)->tasks(ranks);
  Moved all;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (const Task& task : test::tasks_of(*source, rank)) {
      if (task.kind() == TaskKind::send) all.between += task.bytes();
      if (task.kind() == TaskKind::compute) {
        for (const Kernel& kernel : source->works()[task.work()].kernels) all.computed += kernel.bytes;
      }
      if (task.kind() != TaskKind::collective) continue;
      const bool twice = task.collective().collective == CollectiveKind::all_reduce;
      all.within += (twice ? 2 : 1) * task.bytes() * (tensor - 1);
    }
  }
  return all;
}

TEST(SlicedBoundaries, SaveAGatherOfEachBoundary) {
  for (const std::uint32_t tensor : {2U, 4U, 8U}) {
    for (const Bytes stages : {2, 4}) {
      for (const Bytes chunks : {1, 2}) {
        for (const Bytes microbatches : {4, 8}) {
          const std::string text =
              gpt("recompute: none, microbatches: " + std::to_string(microbatches) +
                  ", parallel: {tensor: " + std::to_string(tensor) + ", pipeline: " + std::to_string(stages) +
                  ", virtual_stages: " + std::to_string(chunks) + "}");
          SCOPED_TRACE(text);
          const auto ranks = static_cast<std::uint32_t>(tensor * stages);
          const Moved before = moved(text, tensor, ranks),
                      sliced = moved(text.substr(0, text.size() - 1) + kSliced + "}", tensor, ranks);
          const Bytes tensors = 2 * microbatches * (stages * chunks - 1);  // of both directions
          EXPECT_EQ(before.between, tensors * kBoundary);
          EXPECT_EQ(sliced.between, tensors * kBoundary);
          EXPECT_EQ(before.within - sliced.within, tensors * kBoundary * tensor * (tensor - 1));
          EXPECT_LT(sliced.computed, before.computed);
        }
      }
    }
  }
}

// A reduce-scatter of x, a slice and a gather replace an all-reduce of 2 x.
TEST(SlicedBoundaries, TakeAReduceScatterLess) {
  const auto end = [](const std::string& more) {
    const auto source =
        parse_workload(gpt("recompute: none, parallel: {tensor: 2, pipeline: 2}" + more))->tasks(4);
    TaskPlayer player(*source, 1);
    player.transfer_time = [&](const Task& task) -> Time {
      if (task.kind() != TaskKind::collective || source->names()[task.name] == "pp_embedding_gradients")
        return 0;
      if (source->names()[task.name].find("tp_") != 0 || task.bytes() != kBoundary) return 0;
      return task.collective().collective == CollectiveKind::all_reduce ? 2000 : 1000;
    };
    player.run();
    EXPECT_TRUE(player.all_done());
    EXPECT_FALSE(player.mismatched);
    return player.end();
  };
  // One microbatch crosses the boundary forward and back.
  EXPECT_EQ(end("") - end(kSliced), 2 * 1000);
}

TEST(SlicedBoundaries, RunInProductsWithOthers) {
  const std::vector<std::pair<std::uint32_t, std::string>> products{
      {8,
       "microbatches: 4, parallel: {tensor: 2, pipeline: 2, data: 2}, gradient: {bucket: 20 KB, overlap: "
       "true}"},
      {8, "microbatches: 4, parallel: {tensor: 2, pipeline: 2, context: 2, context_exchange: all_gather}"},
      {4, "microbatches: 8, parallel: {tensor: 2, pipeline: 2, schedule: dual_pipe}"},
      {4, "microbatches: 8, parallel: {tensor: 2, pipeline: 2, virtual_stages: 2, schedule: zb_v}"},
      {4, "microbatches: 4, recompute: selective, parallel: {tensor: 2, pipeline: 2, schedule: zb_h1}"},
      {8, "microbatches: 4, overlap_p2p: false, parallel: {tensor: 2, pipeline: 4}"}};
  for (const auto& [ranks, text] : products) {
    SCOPED_TRACE(text);
    const Moved before = moved(gpt(text), 2, ranks), sliced = moved(gpt(text + kSliced), 2, ranks);
    EXPECT_EQ(sliced.between, before.between);
    EXPECT_LT(sliced.within, before.within);
    test::expect_done_in_any_order(gpt(text + kSliced), ranks);
  }
}

// Parts of a microbatch leave their sums in slices, too.
TEST(SlicedBoundaries, RunBesideSubBatches) {
  const std::string text =
      "microbatch: 2, microbatches: 4, recompute: none, parallel: {tensor: 2, pipeline: 2}";
  const Moved whole = moved(gpt(text + kSliced), 2, 4),
              parts = moved(gpt(text + ", strategies: [sliced_boundaries, sub_batches]"), 2, 4);
  EXPECT_EQ(parts.between, whole.between);
  EXPECT_EQ(parts.within, whole.within);
}

TEST(SlicedBoundaries, RefuseWhatHasNoSlices) {
  const auto refusal = [](const std::string& more) -> std::string {
    try {
      parse_workload(gpt(more + kSliced));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal("parallel: {tensor: 2, pipeline: 2, sequence: true}"), HasSubstr("in slices already"));
  EXPECT_THAT(refusal("scatter_gather: false, parallel: {tensor: 2, pipeline: 2}"),
              HasSubstr("scatter_gather: has to be true"));
}

}  // namespace
}  // namespace netsim::sliced_boundaries_test
