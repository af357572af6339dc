// Tests communication of tensor parallelism in pieces beside the GEMMs. It moves and computes the same as in
// one piece, and hides as the papers state.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "sim/core/errors.h"
#include "tests/support/tasks_of.h"
#include "tests/workload/program/small_programs.h"
#include "tests/workload/task_player.h"

namespace netsim::tensor_overlap_test {
namespace {

using netsim::test::parse_workload;
using netsim::test::TaskPlayer;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr Bytes kLayers = 2, kSequence = 64, kHidden = 64, kActivation = 2 * kSequence * kHidden;

std::unique_ptr<TaskSource> job(std::uint32_t tensor, const std::string& overlap,
                                const std::string& more = "", Bytes layers = kLayers) {
  return parse_workload(
             "{kind: ptdp, model: {kind: llama, groups: 8, inner: 96, layers: " + std::to_string(layers) +
             ", hidden: 64, heads: 8, sequence: 64, vocabulary: 128}, recompute: none, optimizer: none, "
             "parallel: "
             "{tensor: " +
             std::to_string(tensor) + ", sequence: true" +
             (overlap.empty() ? "" : ", tensor_overlap: {" + overlap + "}") + "}" + more + "}")
      ->tasks(tensor);
}

// Returns the bytes that a rank sends, by name. Gathers and reduce-scatters send (t - 1)/t of the bytes.
std::map<std::string, Bytes> sent(const TaskSource& source, Bytes tensor) {
  std::map<std::string, Bytes> result;
  for (const Task& task : test::tasks_of(source, 1)) {
    if (!is_communication(task) || task.kind() == TaskKind::receive) continue;
    result[source.names()[task.name]] +=
        task.kind() == TaskKind::collective ? task.bytes() * (tensor - 1) / tensor : task.bytes();
    result["all"] +=
        task.kind() == TaskKind::collective ? task.bytes() * (tensor - 1) / tensor : task.bytes();
  }
  return result;
}

double products(const TaskSource& source) {
  double sum = 0;
  for (const Task& task : test::tasks_of(source, 0)) {
    if (task.kind() != TaskKind::compute) continue;
    for (const Kernel& k : source.works()[task.work()].kernels) {
      if (k.kind != Kernel::Kind::memory && k.slice.index == 0)
        sum += static_cast<double>(k.m) * static_cast<double>(k.n) * static_cast<double>(k.k) *
               static_cast<double>(k.batch);
    }
  }
  return sum;
}

// Two gathers and two reduce-scatters of a layer forward, two gathers backward; the rest overlaps as before.
TEST(TensorOverlap, MovesAndComputesTheSame) {
  for (const std::uint32_t tensor : {2U, 4U, 8U}) {
    const auto plain = job(tensor, "");
    auto whole = sent(*plain, tensor);
    for (const char* overlap :
         {"gathers: ring_exchange", "reduce_scatters: ring_exchange", "gathers: pipelined",
          "reduce_scatters: pipelined, pieces: 8", "gathers: ring_exchange, reduce_scatters: pipelined",
          "gathers: ring_exchange, reduce_scatters: ring_exchange",
          "gathers: direct, reduce_scatters: direct, pieces: 2, kernels: sliced, sums: memory",
          "gathers: direct, reduce_scatters: pipelined, kernels: sliced",
          "gathers: ring_exchange, reduce_scatters: direct, transfers: stores, pieces: 1"}) {
      SCOPED_TRACE(overlap);
      const auto source = job(tensor, overlap);
      auto cut = sent(*source, tensor);
      EXPECT_EQ(cut["all"], whole["all"]);
      EXPECT_DOUBLE_EQ(products(*source), products(*plain));
      const std::string text = overlap;
      const Bytes ring = kLayers * 2 * kActivation * (tensor - 1) / tensor;
      const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
      const bool passes = has("gathers: ring") || has("gathers: direct");
      const bool adds = has("scatters: ring") || has("scatters: direct");
      EXPECT_EQ(cut["tp_send_forward"], ring * (int{passes} + int{adds}));
      EXPECT_EQ(cut["tp_send_backward"], passes ? ring : 0);
      EXPECT_EQ(cut["tp_gather_input"], whole["tp_gather_input"]);
      EXPECT_EQ(cut["tp_backward"], whole["tp_backward"]);
      TaskPlayer player(*source, 5);
      player.run();
      EXPECT_TRUE(player.all_done());
      EXPECT_FALSE(player.mismatched);
    }
  }
}

// GEMMs that run beside forward communication take `compute`, whole or in pieces. Their communication takes
// `transfer` as a whole, and all else takes no time.
Time forward_time(TaskSource& source, Time compute, Time transfer) {
  std::vector<Time> durations;
  for (const Work& work : source.works()) {
    Time time = 0;
    for (const Kernel& k : work.kernels) {
      for (const char* name : {"qkv_gemm", "projection_gemm", "mlp_up_gemm", "mlp_down_gemm"}) {
        if (k.name == name) time += compute * k.m / kSequence;
      }
    }
    durations.push_back(time);
  }
  TaskPlayer player(source, 1, durations);
  player.transfer_time = [&](const Task& task) {
    const std::string& name = source.names()[task.name];
    const bool forward = name == "tp_forward" || name == "tp_gather_forward" || name == "tp_send_forward";
    return forward ? transfer * task.bytes() / kActivation : 0;
  };
  player.run();
  EXPECT_TRUE(player.all_done());
  return player.end();
}

// Wang et al.: pieces of compute c and transfer x take t max(c/t, x/t) + x/t instead of c + x. That is a
// speedup of 1.4/1.05 for x = 0.4 c and t = 8. There are four GEMMs of a layer; the logits' gather is not
// overlapped.
TEST(TensorOverlap, PiecesHideAsWangSaysTheyDo) {
  for (const auto& [compute, transfer] :
       std::vector<std::pair<Time, Time>>{{4000, 1600}, {4000, 4000}, {1600, 4000}}) {
    const Time plain = forward_time(*job(8, "", "", 1), compute, transfer) - transfer;
    EXPECT_EQ(plain, 4 * (compute + transfer));
    const Time cut = forward_time(*job(8, "gathers: pipelined, reduce_scatters: pipelined, pieces: 8", "", 1),
                                  compute, transfer) -
                     transfer;
    EXPECT_EQ(cut, 4 * (8 * std::max(compute / 8, transfer / 8) + std::min(compute / 8, transfer / 8)));
    if (transfer * 10 != compute * 4) continue;
    EXPECT_EQ(cut, 4 * (compute + transfer / 8));
    EXPECT_EQ(plain * 105, cut * 140);
  }
}

// Each rank has a piece to begin with: t - 1 transfers for t pieces of a GEMM.
TEST(TensorOverlap, ARingExchangeHidesAllButWhatIsLongerThanTheGemm) {
  for (const std::uint32_t tensor : {2U, 4U, 8U}) {
    for (const auto& [compute, transfer] :
         std::vector<std::pair<Time, Time>>{{800, 320}, {800, 800}, {320, 1600}}) {
      const Time time =
          forward_time(*job(tensor, "gathers: ring_exchange, reduce_scatters: ring_exchange", "", 1), compute,
                       transfer) -
          transfer;
      const Time pieces = tensor;
      EXPECT_EQ(time, 4 * (compute / pieces + (pieces - 1) * std::max(compute, transfer) / pieces));
    }
  }
}

TEST(TensorOverlap, IsRecomputedAndReducedInPrecision) {
  const auto source =
      parse_workload(
          "{kind: ptdp, model: {kind: llama, groups: 8, inner: 96, layers: 2, hidden: 64, heads: 8, "
          "sequence: 64, vocabulary: 128}, precision: fp8, parallel: {tensor: 2, context: 2, "
          "sequence: true, tensor_overlap: {gathers: ring_exchange, reduce_scatters: pipelined}}}")
          ->tasks(4);
  auto bytes = sent(*source, 2);
  EXPECT_EQ(bytes["tp_send_recompute"], bytes["tp_send_forward"]);
  EXPECT_EQ(bytes["tp_send_forward"],
            kLayers * 2 * kActivation / 2 / 2 / 2);  // a byte, half of the tokens, one of two
}

// Transformer Engine's communication kernels hold multiprocessors beside these GEMMs, and no others.
TEST(TensorOverlap, HoldsMultiprocessorsBesideGemms) {
  const auto source =
      job(4,
          "gathers: ring_exchange, reduce_scatters: pipelined, multiprocessors: {projection: 24, mlp_down: "
          "16, qkv_dgrad: 4, qkv_wgrad: 6, mlp_up_dgrad: 2, mlp_up_wgrad: 8}");
  std::map<std::string, std::int64_t> held;
  for (const Work& work : source->works()) {
    for (const Kernel& k : work.kernels) {
      const auto [it, added] = held.emplace(k.name, k.held_multiprocessors);
      EXPECT_EQ(it->second, k.held_multiprocessors) << k.name;
      if (k.held_multiprocessors == 0) held.erase(it);
    }
  }
  EXPECT_EQ(held, (std::map<std::string, std::int64_t>{{"projection_gemm", 24},
                                                       {"mlp_down_gemm", 16},
                                                       {"qkv_gemm_dgrad", 4},
                                                       {"qkv_gemm_wgrad", 6},
                                                       {"mlp_up_gemm_dgrad", 2},
                                                       {"mlp_up_gemm_wgrad", 8}}));
}

// The number of kernels of a rank by name, their bytes, and whether their GEMMs accumulate exactly.
struct Counted {
  int kernels = 0, backward = 0;
  Bytes bytes = 0;
};
std::map<std::string, Counted> counted(const std::string& more) {
  const auto source = job(4, "", ", precision: fp8" + more, 1);
  std::map<std::string, Counted> result;
  for (const Task& task : test::tasks_of(*source, 0)) {
    if (task.kind() != TaskKind::compute) continue;
    for (const Kernel& k : source->works()[task.work()].kernels) {
      ++result[k.name].kernels;
      result[k.name].bytes += k.bytes;
      if (k.backward) ++result[k.name].backward;
    }
  }
  return result;
}

// Forward the attention's output and the activation are cast; backward the gradients of four GEMMs' results.
// What sequence parallelism gathers backward is transposed: two inputs, and the gradients of two results.
TEST(ReducedPrecision, MegatronFusesCastsIntoNormsOnly) {
  auto fused = counted(""), norms = counted(", fused_casts: norms");
  EXPECT_EQ(fused["transpose"].kernels, 0);
  EXPECT_EQ(norms["transpose"].kernels, 4);
  EXPECT_EQ(norms["cast"].kernels, 6);
  EXPECT_EQ(fused["cast"].kernels, 2) << "behind attention, and where the backward begins";
  auto blackwell = counted(", fused_casts: norms, transposed_operands: false");
  EXPECT_EQ(blackwell["transpose"].kernels, 0);
  EXPECT_EQ(blackwell["cast"].kernels, 6);
  EXPECT_EQ(4 * blackwell["cast"].bytes, 3 * norms["cast"].bytes);
  for (const char* gemm : {"qkv_gemm", "projection_gemm", "mlp_up_gemm", "mlp_down_gemm"}) {
    EXPECT_EQ(norms[gemm].backward, 0) << gemm;
    EXPECT_EQ(norms[std::string(gemm) + "_dgrad"].backward, 1) << gemm;
    EXPECT_EQ(norms[std::string(gemm) + "_wgrad"].backward, 1) << gemm;
  }
}

// Two ranks divide each expert. Megatron-Core gathers the copies of tokens in half precision and casts all.
TEST(ReducedPrecision, MegatronGathersTokensOfExpertsBeforeTheCast) {
  const auto of_experts = [](const std::string& more) {
    return parse_workload(
               "{kind: ptdp, model: {kind: llama, groups: 8, inner: 96, layers: 1, hidden: 64, heads: 8, "
               "sequence: 64, vocabulary: 128, experts: {count: 8, top_k: 2}}, recompute: none, optimizer: "
               "none, parallel: {tensor: 2, sequence: true}, precision: fp8" +
               more + "}")
        ->tasks(2);
  };
  const auto cast = [](const TaskSource& source) {
    Bytes sum = 0;
    for (const Task& task : test::tasks_of(source, 0)) {
      const bool computes = task.kind() == TaskKind::compute;
      if (!computes || source.names()[task.name].find("experts_") != 0) continue;
      for (const Kernel& k : source.works()[task.work()].kernels) sum += k.name == "cast" ? k.bytes : 0;
    }
    return sum;
  };
  const auto all = of_experts(""), norms = of_experts(", fused_casts: norms");
  auto reduced = sent(*all, 2), half = sent(*norms, 2);
  constexpr Bytes kCopies = 2 * kSequence * kHidden;  // elements
  for (const char* gather : {"etp_gather_forward", "etp_gather_backward"}) {
    EXPECT_EQ(reduced[gather], kCopies / 2) << gather;
    EXPECT_EQ(half[gather], 2 * kCopies / 2) << gather;
  }
  EXPECT_EQ(half["etp_forward"], reduced["etp_forward"]);
  // Casts read all channels of the input and of the output's gradient, and half of those in between.
  EXPECT_EQ(cast(*norms), 4 * (2 * kCopies + 2 * kSequence * (96 + 2 * 96) / 2));
}

TEST(TensorOverlap, RefusesWhatCannotBeCut) {
  EXPECT_THAT(
      [] { parse_workload("{kind: ptdp, parallel: {tensor: 2, tensor_overlap: {gathers: pipelined}}}"); },
      ThrowsMessage<ConfigError>(HasSubstr("of tensor_overlap need parallel.sequence")));
  EXPECT_THAT([] { job(8, "gathers: pipelined, pieces: 16"); },
              ThrowsMessage<ConfigError>(HasSubstr("cannot be divided by 16 pieces x tensor")));
}

}  // namespace
}  // namespace netsim::tensor_overlap_test
