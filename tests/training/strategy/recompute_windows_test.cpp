// Tests recomputations in windows of communication. They save the sum of min(r, x) over the windows. They
// compute and move the same as recomputations before their backwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "tests/support/tasks_of.h"
#include "tests/training/strategy/played_jobs.h"
#include "tests/workload/program/small_programs.h"
#include "tests/workload/task_player.h"

namespace netsim::recompute_windows_test {
namespace {

using netsim::test::parse_workload;
using netsim::test::TaskPlayer;
using ::testing::HasSubstr;

constexpr const char* kWindows = ", strategies: [recompute_windows]";

std::string gpt(int layers, const std::string& more) {
  return "{kind: ptdp, model: {layers: " + std::to_string(layers) +
         ", hidden: 64, heads: 4, sequence: 16, vocabulary: 128}, optimizer: none, " + more + "}";
}

// Returns the end of one iteration on two ranks. The recomputation of a layer takes `again`, its backward
// `backward`, each of its two all-reduces `window`. All else takes no time. The operators that cost most of a
// recomputation are the up-projections of the MLP, which take all of `again`.
Time end_of(int layers, const std::string& more, Time again, Time backward, Time window) {
  const auto source = parse_workload(gpt(layers, "parallel: {tensor: 2}" + more))->tasks(2);
  TaskPlayer player(*source, 3);
  player.compute_time = [&](std::uint32_t, const Task& task) -> Time {
    const std::string& name = source->names()[task.name];
    if (name == "attention_recompute") return 0;
    if (name == "mlp_recompute" || name == "mlp_recompute.mlp_up_gemm") return again;
    return name == "attention_backward" ? backward : 0;
  };
  player.transfer_time = [&](const Task& task) {
    return source->names()[task.name] == "tp_backward" ? window : 0;
  };
  player.run();
  EXPECT_TRUE(player.all_done());
  EXPECT_FALSE(player.mismatched);
  return player.end();
}

// One window of each layer but the last in the order of backwards has the next layer's recomputation.
TEST(RecomputeWindows, SaveTheLesserOfRecomputationAndWindow) {
  for (const int layers : {1, 2, 5, 12}) {
    for (const auto& [again, window] :
         std::vector<std::pair<Time, Time>>{{250, 125}, {125, 250}, {200, 200}, {700, 100}}) {
      const Time plain = end_of(layers, "", again, 500, window),
                 filled = end_of(layers, kWindows, again, 500, window);
      EXPECT_EQ(plain, layers * (again + 500 + 2 * window));
      EXPECT_EQ(plain - filled, (layers - 1) * std::min(again, window)) << again << " " << window;
    }
  }
}

// Lynx's example: a recomputation of 0.25 in windows of 0.25 of a layer's time saves a third: 1.333. With two
// equal windows a layer, the one recomputation of 0.25 is in one of 0.25.
TEST(RecomputeWindows, SaveAThirdOfALayer) {
  const auto layer = [](const char* more) {
    return end_of(6, more, 250, 250, 250) - end_of(5, more, 250, 250, 250);
  };
  EXPECT_EQ(layer(""), 1000);
  EXPECT_EQ(layer(kWindows), 750);
}

std::map<std::string, Bytes> bytes_of(const TaskSource& source, std::uint32_t ranks) {
  std::map<std::string, Bytes> all;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (const Task& task : test::tasks_of(source, rank)) {
      if (is_communication(task)) all[source.names()[task.name]] += task.bytes();
    }
  }
  return all;
}
std::map<std::string, std::int64_t> kernels_of(const TaskSource& source, std::uint32_t ranks) {
  std::map<std::string, std::int64_t> all;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (const Task& task : test::tasks_of(source, rank)) {
      if (task.kind() != TaskKind::compute) continue;
      for (const Kernel& kernel : source.works()[task.work()].kernels) ++all[kernel.name];
    }
  }
  return all;
}

struct Product {
  std::uint32_t ranks;
  std::string text;
};
std::vector<Product> products() {
  return {
      {2, gpt(4, "parallel: {tensor: 2, sequence: true}")},
      {8,
       gpt(4,
           "microbatches: 4, parallel: {tensor: 2, pipeline: 2, data: 2}, gradient: {bucket: 20 KB, overlap: "
           "true}")},
      {4, gpt(4, "parallel: {tensor: 2, context: 2, context_exchange: all_gather}")},
      {4, gpt(4, "microbatches: 4, parallel: {tensor: 2, pipeline: 2, schedule: zb_h1}")},
      {4,
       "{kind: ptdp, model: {layers: 4, hidden: 64, heads: 4, sequence: 16, vocabulary: 128}, microbatches: "
       "2, "
       "parallel: {tensor: 2, data: 2}, optimizer: distributed_adam, sharding: {what: parameters}}"},
      {4, gpt(4, "microbatches: 2, parallel: {tensor: 2, pipeline: 2}, offload: {activations: 0.5}")},
      {8,
       "{kind: ptdp, model: {kind: llama, layers: 4, hidden: 64, heads: 4, groups: 4, inner: 128, sequence: "
       "32, "
       "vocabulary: 128, experts: {count: 4, top_k: 2, inner: 64}}, optimizer: none, microbatches: 2, "
       "parallel: {tensor: 2, sequence: true, pipeline: 2, data: 2, expert: 2}}"},
  };
}

TEST(RecomputeWindows, MoveAndComputeTheSame) {
  for (const Product& product : products()) {
    SCOPED_TRACE(product.text);
    const std::string text = product.text.substr(0, product.text.size() - 1) + kWindows + "}";
    const auto plain = parse_workload(product.text)->tasks(product.ranks);
    const auto filled = parse_workload(text)->tasks(product.ranks);
    EXPECT_EQ(bytes_of(*filled, product.ranks), bytes_of(*plain, product.ranks));
    EXPECT_EQ(kernels_of(*filled, product.ranks), kernels_of(*plain, product.ranks));
    test::expect_done_in_any_order(text, product.ranks);
  }
}

// With kept sums a recomputation repeats neither them nor the GEMMs before them. A forward keeps two sums of
// n bytes a layer.
TEST(RecomputeWindows, NeedNotSumUpAgain) {
  const std::string kept = ", strategies: [{kind: recompute_windows, communication: kept}]";
  for (const char* sequence : {"", ", sequence: true"}) {
    const std::string job = std::string("parallel: {tensor: 2") + sequence + "}";
    const auto plain = parse_workload(gpt(4, job + kWindows))->tasks(2);
    const auto with_sums = parse_workload(gpt(4, job + kept))->tasks(2);
    auto bytes = bytes_of(*plain, 2);
    auto kernels = kernels_of(*plain, 2);
    const bool scatters = *sequence != 0;
    // Gathers of sequence parallelism remain, and the logits have sums of their own.
    const auto sums = [&](const TaskSource& source) {
      int count = 0;
      for (const Task& task : test::tasks_of(source, 0)) {
        if (task.kind() != TaskKind::collective) continue;
        const CollectiveKind kind = task.collective().collective;
        count += kind == (scatters ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce) ? 1 : 0;
      }
      return count;
    };
    EXPECT_EQ(sums(*plain) - sums(*with_sums), 2 * 4) << sequence;
    kernels["projection_gemm"] -= 2 * 4;
    kernels["mlp_down_gemm"] -= 2 * 4;
    EXPECT_EQ(kernels_of(*with_sums, 2), kernels) << sequence;
    test::expect_done_in_any_order(gpt(4, job + kept), 2);
  }
  const auto most = [](const std::string& more) {
    const auto source = parse_workload(gpt(4, "parallel: {tensor: 2}" + more))->tasks(2);
    return source->memory()->planned()[source->memory()->role(0)].use[MemoryKind::activations];
  };
  EXPECT_EQ(most(kept) - most(kWindows), 4 * 2 * 2 * 16 * 64);
}

// Activations that a layer's backward needs are computed while the layer behind it is in its backward.
TEST(RecomputeWindows, KeepTheActivationsOfTwoLayers) {
  const auto most = [](int layers, const char* more) {
    const auto source = parse_workload(gpt(layers, std::string("parallel: {tensor: 2}") + more))->tasks(2);
    return source->memory()->planned()[source->memory()->role(0)].use[MemoryKind::activations];
  };
  EXPECT_GT(most(4, kWindows), most(4, ""));
  // A layer has 34 sbh + 5 a s^2 b of which its input is kept; h = 64, s = 16, a = 4, t = 2.
  const Bytes activations = 10 * 16 * 64 + (24 * 16 * 64 + 5 * 4 * 16 * 16) / 2, kept = 2 * 16 * 64;
  EXPECT_LE(most(4, kWindows) - most(4, ""), activations - kept);
}

TEST(RecomputeWindows, RefuseWhatHasNoRecomputationToMove) {
  const auto refusal = [](const std::string& more) -> std::string {
    try {
      parse_workload(gpt(4, more));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal(std::string("recompute: none") + kWindows), HasSubstr("has to be full"));
  EXPECT_THAT(refusal("microbatch: 2, strategies: [recompute_windows, sub_batches]"),
              HasSubstr("sub_batches fill the windows"));
}

}  // namespace
}  // namespace netsim::recompute_windows_test
