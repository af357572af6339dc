// Tests parts of a microbatch in turns. They take the times of Oases' closed form, and compute and move the
// same as whole microbatches in products with all other parallelism.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/errors.h"
#include "tests/training/strategy/played_jobs.h"
#include "tests/workload/program/small_programs.h"
#include "tests/workload/task_player.h"

namespace netsim::sub_batches_test {
namespace {

using netsim::test::parse_workload;
using netsim::test::TaskPlayer;
using netsim::test::Totals;
using netsim::test::totals;
using ::testing::HasSubstr;

constexpr const char* kTwoParts = ", strategies: [{kind: sub_batches}]";
constexpr const char* kDomino = ", strategies: [{kind: sub_batches, weight_gradients: behind_communication}]";

std::string gpt(int layers, const std::string& more) {
  return "{kind: ptdp, model: {layers: " + std::to_string(layers) +
         ", hidden: 64, heads: 4, sequence: 16, vocabulary: 128}, optimizer: none, " + more + "}";
}

bool is_part_of_layer(const std::string& name) {
  return name == "attention_forward" || name == "mlp_forward" || name == "attention_backward" ||
         name == "mlp_backward";
}

// Returns the end of one iteration on two ranks. The attention and the MLP take `compute` a microbatch, and
// each of their all-reduces `transfer`. All else takes no time. `direction` is the pass that takes time.
Time end_of(const std::string& yaml, int parts, Time compute, Time transfer, const std::string& direction) {
  const auto source = parse_workload(yaml)->tasks(2);
  TaskPlayer player(*source, 3);
  player.compute_time = [&](std::uint32_t, const Task& task) {
    const std::string& name = source->names()[task.name];
    return is_part_of_layer(name) && name.ends_with(direction) ? compute / parts : 0;
  };
  player.transfer_time = [&](const Task& task) {
    return source->names()[task.name] == "tp_" + direction ? transfer / parts : 0;
  };
  player.run();
  EXPECT_TRUE(player.all_done());
  EXPECT_FALSE(player.mismatched);
  return player.end();
}

// Oases: L parts of c and x take L max(c, x) + min(c, x) / 2, forward and backward.
TEST(SubBatches, TakeWhatOasesSays) {
  const std::string common = "microbatch: 2, recompute: none, parallel: {tensor: 2}";
  for (const char* direction : {"forward", "backward"}) {
    for (const auto& [compute, transfer] :
         std::vector<std::pair<Time, Time>>{{5200, 4800}, {4800, 5200}, {4000, 4000}, {9000, 1000}}) {
      for (const int layers : {1, 2, 12}) {
        const Time count = 2 * layers;
        EXPECT_EQ(end_of(gpt(layers, common), 1, compute, transfer, direction), count * (compute + transfer));
        EXPECT_EQ(end_of(gpt(layers, common + kTwoParts), 2, compute, transfer, direction),
                  count * std::max(compute, transfer) + std::min(compute, transfer) / 2);
      }
    }
  }
  // 24 parts of a model with a share of 0.48 of communication: 1.887.
  const Time whole = end_of(gpt(12, common), 1, 5200, 4800, "forward"),
             halves = end_of(gpt(12, common + kTwoParts), 2, 5200, 4800, "forward");
  EXPECT_EQ(1272 * whole, 2400 * halves);
}

// The parts of n follow each other; the first communication hides behind the n - 1 others.
TEST(SubBatches, TakeTheTimeOfALongerTurnWithMoreParts) {
  const auto yaml = [](int parts) {
    return gpt(
        3, "microbatch: 4, recompute: none, parallel: {tensor: 2}, strategies: [{kind: sub_batches, count: " +
               std::to_string(parts) + "}]");
  };
  for (const int parts : {2, 4}) {
    EXPECT_EQ(end_of(yaml(parts), parts, 8000, 4000, "forward"), 6 * 8000 + 4000 / parts);
    EXPECT_EQ(end_of(yaml(parts), parts, 4000, 8000, "forward"), 6 * 8000 + 4000 / parts);
  }
}

// Domino: gradients of weights hide the communication of gradients of inputs, that of the last part too.
TEST(SubBatches, PutOffGradientsOfWeights) {
  const auto end = [](const std::string& more) {
    const auto source =
        parse_workload(gpt(1, "microbatch: 2, recompute: none, parallel: {tensor: 2}" + more))->tasks(2);
    TaskPlayer player(*source, 3);
    player.compute_time = [&](std::uint32_t, const Task& task) {
      const std::string& name = source->names()[task.name];
      if (name == "attention_backward" || name == "mlp_backward") {
        const auto& kernels = source->works()[task.work()].kernels;
        const bool whole = std::any_of(kernels.begin(), kernels.end(),
                                       [](const Kernel& k) { return k.name.ends_with("_wgrad"); });
        return whole ? Time{2000} : Time{1000};
      }
      return name == "attention_weights" || name == "mlp_weights" ? Time{1000} : Time{0};
    };
    player.transfer_time = [&](const Task& task) {
      return source->names()[task.name] == "tp_backward" ? Time{1500} : 0;
    };
    player.run();
    EXPECT_TRUE(player.all_done());
    return player.end();
  };
  EXPECT_EQ(end(kTwoParts), 4 * 2000 + 1500);
  // The last gradients of weights of both parts, 2000, cover the last communication.
  EXPECT_EQ(end(kDomino), 4 * 2000);
}

struct Product {
  const char* name;
  std::uint32_t ranks;
  std::string text;
};
std::vector<Product> products() {
  const std::string experts =
      "{kind: ptdp, model: {kind: llama, layers: 4, hidden: 64, heads: 4, groups: 4, inner: 128, sequence: "
      "32, "
      "vocabulary: 128, experts: {count: 4, top_k: 2, inner: 64}}, optimizer: none, microbatch: 2, "
      "recompute: none, ";
  return {
      {"tensor", 2, gpt(4, "microbatch: 2, parallel: {tensor: 2}")},
      {"recomputation of the core", 2,
       gpt(4, "microbatch: 2, recompute: selective, parallel: {tensor: 2, sequence: true}")},
      {"overlap with GEMMs", 2,
       gpt(4,
           "microbatch: 4, recompute: none, parallel: {tensor: 2, sequence: true, tensor_overlap: {gathers: "
           "pipelined, reduce_scatters: ring_exchange, pieces: 2}}")},
      {"tensor, pipeline and data", 8,
       gpt(4,
           "microbatch: 2, microbatches: 4, recompute: none, parallel: {tensor: 2, pipeline: 2, data: 2}, "
           "gradient: {bucket: 20 KB, overlap: true}")},
      {"without scatter and gather", 4,
       gpt(4, "microbatch: 2, microbatches: 2, scatter_gather: false, parallel: {tensor: 2, pipeline: 2}")},
      {"context", 4,
       gpt(4,
           "microbatch: 2, recompute: none, parallel: {tensor: 2, context: 2, context_exchange: "
           "all_gather}")},
      {"zero bubbles", 4,
       gpt(4,
           "microbatch: 2, microbatches: 4, recompute: none, parallel: {tensor: 2, pipeline: 2, schedule: "
           "zb_h1}")},
      {"divided parameters", 4,
       "{kind: ptdp, model: {layers: 4, hidden: 64, heads: 4, sequence: 16, vocabulary: 128}, microbatch: 2, "
       "microbatches: 2, recompute: full, parallel: {tensor: 2, data: 2}, optimizer: distributed_adam, "
       "sharding: {what: parameters}}"},
      {"experts", 4, experts + "parallel: {data: 4, expert: 4}}"},
      {"experts, tensor and pipeline", 8,
       experts + "microbatches: 2, parallel: {tensor: 2, sequence: true, pipeline: 2, data: 2, expert: 2}}"},
      {"an optimizer in steps", 4,
       "{kind: ptdp, model: {layers: 4, hidden: 64, heads: 4, sequence: 16, vocabulary: 128}, microbatch: 2, "
       "iterations: 2, recompute: none, parallel: {tensor: 2, data: 2}, gradient: {bucket: 20 KB, overlap: "
       "true, per: layer}, strategies: [{kind: layer_optimizer}]}"},
  };
}

std::string with_parts(const std::string& text, const std::string& parts) {
  const std::size_t list = text.find("strategies: [");
  if (list != std::string::npos) return std::string(text).insert(list + 13, "{kind: " + parts + "}, ");
  return text.substr(0, text.size() - 1) + ", strategies: [{kind: " + parts + "}]}";
}

// Parts compute and move as much as whole microbatches, in every product, and run in any order of events.
TEST(SubBatches, MoveAndComputeTheSame) {
  for (const Product& product : products()) {
    SCOPED_TRACE(product.name);
    const auto whole = parse_workload(product.text)->tasks(product.ranks);
    Totals expected = totals(*whole, product.ranks);
    // Each part tells how many copies of tokens come.
    const auto numbers = expected.bytes.find("ep_numbers_forward");
    if (numbers != expected.bytes.end()) numbers->second *= 2;
    for (const char* parts : {"sub_batches", "sub_batches, weight_gradients: behind_communication"}) {
      const auto source = parse_workload(with_parts(product.text, parts))->tasks(product.ranks);
      const Totals found = totals(*source, product.ranks);
      EXPECT_EQ(found.bytes, expected.bytes);
      EXPECT_DOUBLE_EQ(found.products, expected.products);
      test::expect_done_in_any_order(with_parts(product.text, parts), product.ranks);
    }
  }
}

// Activations of the parts together are those of the microbatch.
TEST(SubBatches, NeedTheMemoryOfAMicrobatch) {
  const auto most = [](const std::string& more) {
    const auto source =
        parse_workload(gpt(4, "microbatch: 2, recompute: none, parallel: {tensor: 2}" + more))->tasks(2);
    return source->memory()->planned()[source->memory()->role(0)].use[MemoryKind::activations];
  };
  EXPECT_EQ(most(kTwoParts), most(""));
}

TEST(SubBatches, RefuseWhatCannotBeDivided) {
  const auto refusal = [](const std::string& more) -> std::string {
    try {
      parse_workload(gpt(4, more));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal(std::string("microbatch: 3, parallel: {tensor: 2}") + kTwoParts),
              HasSubstr("the 3 sequences of a microbatch cannot be divided into 2 sub_batches"));
  EXPECT_THAT(refusal(std::string("microbatch: 2, microbatches: 8, parallel: {pipeline: 2, schedule: "
                                  "dual_pipe}") +
                      kTwoParts),
              HasSubstr("each hides the other's communication: no sub_batches"));
  EXPECT_THAT(refusal(std::string("microbatch: 2, offload: {activations: 0.5}") + kTwoParts),
              HasSubstr("offload.activations: has to be 0 with sub_batches"));
  EXPECT_THAT(refusal("microbatch: 2, strategies: [sub_batches, sub_batches]"), HasSubstr("is listed twice"));
  EXPECT_THAT(refusal("microbatch: 2, strategies: [{kind: sub_batches, count: 1}]"), HasSubstr("count"));
}

}  // namespace
}  // namespace netsim::sub_batches_test
