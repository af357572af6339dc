// Tests weights in slices of columns: Domino's closed form, bytes and FLOPs, and products with all other
// parallelism.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "tests/training/strategy/played_jobs.h"
#include "tests/workload/program/small_programs.h"
#include "tests/workload/task_player.h"

namespace netsim::column_slices_test {
namespace {

using netsim::test::parse_workload;
using netsim::test::TaskPlayer;
using netsim::test::Totals;
using netsim::test::totals;
using ::testing::HasSubstr;

std::string gpt(int layers, const std::string& more) {
  return "{kind: ptdp, model: {layers: " + std::to_string(layers) +
         ", hidden: 64, heads: 4, sequence: 16, vocabulary: 128}, optimizer: none, " + more + "}";
}
std::string slices(int count) {
  return count < 2 ? "" : ", strategies: [{kind: column_slices, count: " + std::to_string(count) + "}]";
}

// Returns the end of an iteration on two ranks. Each GEMM before a sum takes `gemm`, each sum `sum`, and all
// other kernels of the pass take `rest` a part of a layer. `pass` is the one that takes time.
Time end_of(int layers, int count, Time gemm, Time sum, Time rest, const std::string& pass) {
  const auto source =
      parse_workload(gpt(layers, "microbatch: 2, recompute: none, parallel: {tensor: 2}" + slices(count)))
          ->tasks(2);
  const bool forward = pass == "forward";
  TaskPlayer player(*source, 3);
  player.compute_time = [&](std::uint32_t, const Task& task) {
    Time time = 0;
    for (const Kernel& kernel : source->works()[task.work()].kernels) {
      const bool before_sum = forward ? kernel.name == "projection_gemm" || kernel.name == "mlp_down_gemm"
                                      : kernel.name == "qkv_gemm_dgrad" || kernel.name == "mlp_up_gemm_dgrad";
      const bool first = forward
                             ? kernel.name == "qkv_gemm" || kernel.name == "mlp_up_gemm"
                             : kernel.name == "projection_gemm_dgrad" || kernel.name == "mlp_down_gemm_dgrad";
      time += before_sum ? gemm / std::max(count, 1) : first ? rest : 0;
    }
    return time;
  };
  player.transfer_time = [&](const Task& task) {
    return source->names()[task.name] == "tp_" + pass ? sum / std::max(count, 1) : 0;
  };
  test::expect_done(player);
  return player.end();
}

// A GEMM of g and a sum of x in k slices take k max(g/k, x/k) + min(g/k, x/k). Parts of layers do not
// overlap.
TEST(ColumnSlices, TakeWhatTheirClosedFormSays) {
  for (const std::string pass : {"forward", "backward"}) {
    for (const auto& [gemm, sum] :
         std::vector<std::pair<Time, Time>>{{4800, 2400}, {2400, 4800}, {2400, 2400}}) {
      for (const int layers : {1, 3}) {
        const Time parts = 2 * layers;
        EXPECT_EQ(end_of(layers, 1, gemm, sum, 700, pass), parts * (700 + gemm + sum)) << pass;
        for (const int count : {2, 4, 8}) {
          EXPECT_EQ(end_of(layers, count, gemm, sum, 700, pass),
                    parts * (700 + std::max(gemm, sum) + std::min(gemm, sum) / count))
              << pass << " " << count;
        }
      }
    }
  }
}

struct Product {
  std::uint32_t ranks;
  std::string text;
};
// Slices move and compute as much as whole GEMMs, and jobs end in any order of events.
TEST(ColumnSlices, MoveAndComputeTheSame) {
  const std::vector<Product> products{
      {2, gpt(4, "parallel: {tensor: 2}, recompute: full, strategies: [")},
      {2, gpt(4, "parallel: {tensor: 2, sequence: true}, recompute: selective, strategies: [")},
      {2, gpt(4, "microbatch: 2, recompute: none, parallel: {tensor: 2}, strategies: [sub_batches, ")},
      {2, gpt(4, "recompute: full, parallel: {tensor: 2}, strategies: [recompute_windows, ")},
      {8,
       gpt(4,
           "microbatches: 4, parallel: {tensor: 2, pipeline: 2, data: 2}, gradient: {bucket: 20 KB, overlap: "
           "true}, strategies: [")},
      {4, gpt(4, "parallel: {tensor: 2, context: 2, context_exchange: all_gather}, strategies: [")},
      {4, gpt(4, "microbatches: 4, parallel: {tensor: 2, pipeline: 2, schedule: zb_h1}, strategies: [")},
      {4, gpt(4, "microbatches: 4, parallel: {tensor: 2, pipeline: 2, schedule: dual_pipe}, strategies: [")},
      {8,
       "{kind: ptdp, model: {kind: llama, layers: 4, hidden: 64, heads: 4, groups: 4, inner: 128, sequence: "
       "32, vocabulary: 128, experts: {count: 4, top_k: 2, inner: 64}}, optimizer: none, microbatches: 2, "
       "parallel: {tensor: 2, sequence: true, pipeline: 2, data: 2, expert: 2}, strategies: [}"},
  };
  for (const Product& product : products) {
    SCOPED_TRACE(product.text);
    const std::string begin = product.text.substr(0, product.text.size() - 1);
    const auto whole = parse_workload(begin + "]}")->tasks(product.ranks);
    const auto cut = parse_workload(begin + "{kind: column_slices, count: 4}]}")->tasks(product.ranks);
    const Totals expected = totals(*whole, product.ranks), found = totals(*cut, product.ranks);
    EXPECT_EQ(found.bytes, expected.bytes);
    EXPECT_DOUBLE_EQ(found.products, expected.products);
    EXPECT_GT(test::task_count(*cut, 0), test::task_count(*whole, 0));
    test::expect_done_in_any_order(begin + "{kind: column_slices, count: 4}]}", product.ranks);
  }
}

TEST(ColumnSlices, RefuseWhatTheyCannotCut) {
  const auto refusal = [](const std::string& more) -> std::string {
    try {
      parse_workload(gpt(4, more))->tasks(4);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal("parallel: {tensor: 2}, strategies: [{kind: column_slices, count: 3}]"),
              HasSubstr("cannot be divided into 3 column_slices"));
  EXPECT_THAT(refusal("parallel: {tensor: 2, sequence: true, tensor_overlap: {gathers: pipelined}}, "
                      "strategies: [column_slices]"),
              HasSubstr("cuts the same GEMMs, along their tokens"));
  EXPECT_THAT(refusal("microbatches: 2, parallel: {tensor: 2, pipeline: 2}, strategies: [column_slices, "
                      "sliced_boundaries]"),
              HasSubstr("no column_slices"));
  EXPECT_THAT(refusal("parallel: {tensor: 2}, strategies: [column_slices, column_slices]"),
              HasSubstr("is listed twice"));
}

}  // namespace
}  // namespace netsim::column_slices_test
