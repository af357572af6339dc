// Tests how much of a GPU's memory a training job needs. Saved activations add up to the closed forms of the
// papers, and so do parameters, gradients and states. Activations in flight are those of the schedules, and
// everything is released again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>

#include "sim/training/memory/memory_ledger.h"
#include "sim/training/strategy/scheduled_pipeline.h"
#include "tests/support/memory_of.h"
#include "tests/support/tasks_of.h"
#include "tests/workload/program/small_programs.h"

namespace netsim::memory_test {
namespace {

using netsim::test::parse_workload;

// A GPT whose sizes nothing cancels out of.
constexpr std::int64_t kS = 32, kB = 2, kH = 48, kA = 4, kV = 64;
constexpr std::int64_t kSbh = kS * kB * kH;

std::unique_ptr<TaskSource> job(const std::string& model, const std::string& more, std::uint32_t gpus) {
  return parse_workload("{kind: ptdp, model: {" + model + "}, " + more + "}")->tasks(gpus);
}
std::string gpt(int layers) {
  return fmt::format("layers: {}, hidden: {}, heads: {}, sequence: {}, vocabulary: {}", layers, kH, kA, kS,
                     kV);
}
std::string llama(int layers) {
  return fmt::format(
      "kind: llama, layers: {}, hidden: {}, heads: {}, groups: 2, inner: 80, sequence: {}, vocabulary: {}",
      layers, kH, kA, kS, kV);
}

// The most of a rank in the order of the program.
MemoryUse planned(const TaskSource& source, std::uint32_t rank = 0) {
  return source.memory()->planned()[source.memory()->role(rank)].use;
}
Bytes activations(const std::string& model, const std::string& more, std::uint32_t gpus) {
  return planned(*job(model, "optimizer: none, microbatch: 2, " + more, gpus))[MemoryKind::activations];
}
// Returns the memory of one more layer.
Bytes of_layer(const std::string& more, std::uint32_t gpus) {
  return activations(gpt(3), more, gpus) - activations(gpt(2), more, gpus);
}

// Korthikanti et al., arXiv 2205.05198, table 2: bytes of a layer.
TEST(ActivationMemory, IsThatOfKorthikanti) {
  for (const std::int64_t t : {1, 2, 4}) {
    SCOPED_TRACE(t);
    const auto gpus = static_cast<std::uint32_t>(t);
    const std::string tensor = fmt::format("parallel: {{tensor: {}", t);
    const std::string plain = tensor + "}, recompute: ", sequence = tensor + ", sequence: true}, recompute: ";
    const std::int64_t core = 5 * kA * kS * kSbh / kH;
    EXPECT_EQ(of_layer(plain + "none", gpus), 10 * kSbh + (24 * kSbh + core) / t);
    EXPECT_EQ(of_layer(sequence + "none", gpus), (34 * kSbh + core) / t);
    EXPECT_EQ(of_layer(plain + "selective", gpus), 10 * kSbh + 24 * kSbh / t);
    EXPECT_EQ(of_layer(sequence + "selective", gpus), 34 * kSbh / t);
    EXPECT_EQ(of_layer(plain + "full", gpus), 2 * kSbh);
    EXPECT_EQ(of_layer(sequence + "full", gpus), 2 * kSbh / t);
  }
}

// Section 4.3: the mask of the embedding's dropout, inputs of the last norm and of the logits, and logits in
// fp32. With full recomputation it is one whole layer.
TEST(ActivationMemory, OfTheEndsIsThatOfKorthikanti) {
  const Bytes layer = 34 * kSbh + 5 * kA * kS * kSbh / kH, ends = kSbh + 4 * kSbh + 4 * kS * kB * kV;
  EXPECT_EQ(activations(gpt(2), "recompute: none", 1), 2 * layer + ends);
  // A backward begins when the logits are gone.
  EXPECT_EQ(activations(gpt(9), "recompute: full", 1), 9 * 2 * kSbh + layer - 2 * kSbh + kSbh);
}

// The inputs of norms and GEMMs are saved, as are queries, keys and values, and gate and up of the MLP. The
// projection reads the output of attention. The softmax's sums are fp32, one a head and token.
TEST(ActivationMemory, OfALlama) {
  const std::int64_t tokens = kS * kB, keys = 2 * (kH / kA), inner = 80;
  const Bytes layer = 2 * (4 * kH + 2 * kH + 2 * keys + 2 * inner + inner) * tokens + 4 * kA * tokens;
  const auto of = [](const std::string& more, std::uint32_t gpus) {
    return activations(llama(3), more, gpus) - activations(llama(2), more, gpus);
  };
  EXPECT_EQ(of("recompute: none", 1), layer);
  EXPECT_EQ(of("parallel: {tensor: 2, sequence: true}, recompute: none", 2), layer / 2);
  EXPECT_EQ(of("parallel: {context: 2}, recompute: none", 2), layer / 2);
  EXPECT_EQ(of("parallel: {context: 2, context_exchange: all_to_all}, recompute: none", 2), layer / 2);
  EXPECT_EQ(of("recompute: selective", 1), layer - 4 * kA * tokens);
  // In FP8 the four GEMMs keep 8 bits of what they read, and the projection something of its own.
  EXPECT_EQ(of("precision: fp8, recompute: none", 1), layer - (2 * kH + inner) * tokens + kH * tokens);
}

// Two blocks of keys and values, the one attended to and the one that comes; with gradients backward.
TEST(ActivationMemory, HasTheBlocksOfARing) {
  const auto most = [](const char* exchange) {
    const auto source = job(
        llama(2), fmt::format("parallel: {{context: 2, context_exchange: {}}}, microbatch: 2", exchange), 2);
    return test::most_of(*source, 0, MemoryKind::communication);
  };
  const Bytes block = 2 * 2 * (kH / kA) * 2 * (kS * kB / 2);
  EXPECT_EQ(most("ring"), 2 * 2 * block);
  EXPECT_EQ(most("all_gather"), 2 * 2 * block);
  EXPECT_EQ(most("all_to_all"), 0);
}

// ---- Parameters, gradients, states

const MemoryUse& resident(const TaskSource& source) { return source.memory()->resident(0); }
std::int64_t parameters_of(const TaskSource& source) { return resident(source)[MemoryKind::parameters] / 2; }

// Rajbhandari et al., SC'20: 2 + 2 + 12 bytes a parameter; Megatron-Core's table for gradients in fp32: 18,
// and 6 + 12/d with its distributed optimizer.
TEST(ModelMemory, IsThatOfZero) {
  const std::string d4 = "parallel: {data: 4}, recompute: none, ";
  const std::int64_t p = parameters_of(*job(gpt(4), d4 + "optimizer: adam", 4)), part = (p + 3) / 4;
  EXPECT_EQ(p, 4 * (12 * kH * kH + 13 * kH) + kV * kH + kS * kH + 2 * kH);
  const auto expect = [&](const std::string& more, std::int64_t parameters, std::int64_t gradients,
                          std::int64_t states) {
    SCOPED_TRACE(more);
    const auto source = job(gpt(4), d4 + more, 4);
    EXPECT_EQ(resident(*source)[MemoryKind::parameters], parameters);
    EXPECT_EQ(resident(*source)[MemoryKind::gradients], gradients);
    EXPECT_EQ(resident(*source)[MemoryKind::optimizer], states);
  };
  expect("optimizer: adam", 2 * p, 2 * p, 12 * p);
  expect("optimizer: adam, gradient: {dtype: fp32}", 2 * p, 4 * p, 12 * p);
  expect("optimizer: distributed_adam, gradient: {dtype: fp32}", 2 * p, 4 * p, 12 * part);
  expect("optimizer: distributed_adam, sharding: {what: gradients}", 2 * p, 2 * part, 12 * part);
  expect("optimizer: distributed_adam, sharding: {what: parameters}", 2 * part, 2 * part, 12 * part);
  expect("optimizer: distributed_adam, sharding: {what: parameters, group: 2}", p / 2 * 2, p / 2 * 2,
         12 * p / 2);
  expect("optimizer: none", 2 * p, 2 * p, 0);
}

// Gradients in half precision are there in fp32 while the optimizer runs: Megatron-Core's 20 bytes.
TEST(ModelMemory, HasTheOptimizersCopyOfGradients) {
  const auto source =
      job("layers: 2, hidden: 256, heads: 4, sequence: 8, vocabulary: 64", "recompute: full", 1);
  const std::int64_t p = parameters_of(*source);
  EXPECT_EQ(planned(*source).total(), 20 * p);
}

// In reduced precision each weight of the layers, and its transpose.
TEST(ModelMemory, HasTheWeightsInReducedPrecision) {
  const std::int64_t plain = resident(*job(gpt(4), "recompute: none", 1))[MemoryKind::parameters];
  EXPECT_EQ(resident(*job(gpt(4), "precision: fp8", 1))[MemoryKind::parameters],
            plain + 4 * 2 * 12 * kH * kH);
}

// A buffer for what is gathered before GEMMs, the largest.
TEST(ModelMemory, HasTheBufferOfSequenceParallelism) {
  const auto source = job(gpt(2), "parallel: {tensor: 2, sequence: true}, microbatch: 2", 2);
  EXPECT_EQ(resident(*source)[MemoryKind::communication], 2 * kSbh);
}

// ---- Over the steps of a rank

TEST(TaskMemory, ReleasesAllThatItAllocates) {
  const std::string moe = ", experts: {count: 8, top_k: 2, inner: 40, shared: 1}";
  const struct {
    std::string model, more;
    std::uint32_t gpus;
  } jobs[] = {
      {gpt(4), "recompute: none, microbatches: 3", 1},
      {gpt(4), "recompute: full, parallel: {pipeline: 2, tensor: 2, schedule: zb_h1}, microbatches: 4", 4},
      {gpt(4),
       "recompute: selective, parallel: {pipeline: 2, virtual_stages: 2, schedule: zb_v}, microbatches: 4",
       2},
      {llama(4), "parallel: {pipeline: 2, schedule: dual_pipe}, microbatches: 4", 2},
      {llama(8),
       "recompute: none, parallel: {pipeline: 2, virtual_stages: 2, schedule: dual_pipe_v}, microbatches: 4",
       2},
      {llama(4), "parallel: {pipeline: 2, virtual_stages: 2, context: 2}, microbatches: 4", 4},
      {llama(4),
       "parallel: {data: 4}, optimizer: distributed_adam, sharding: {what: parameters}, microbatches: 2", 4},
      {llama(4),
       "parallel: {data: 4}, optimizer: distributed_adam, sharding: {what: gradients}, microbatches: 2", 4},
      {llama(4),
       "parallel: {data: 2, pipeline: 2}, optimizer: distributed_adam, sharding: {what: parameters, reshard: "
       "nothing}, "
       "microbatches: 4",
       4},
      {llama(4) + moe, "parallel: {data: 4, expert: 4}, router: zipf, microbatches: 2, iterations: 2", 4},
      {llama(4) + moe,
       "parallel: {data: 4, expert: 2}, optimizer: distributed_adam, sharding: {what: parameters}, "
       "microbatches: 2",
       4}};
  for (const auto& [model, more, gpus] : jobs) {
    SCOPED_TRACE(more);
    const auto source = job(model, more, gpus);
    for (std::uint32_t rank = 0; rank < source->ranks(); ++rank)
      EXPECT_GT(test::most_of(*source, rank, MemoryKind::activations), 0);
  }
}

// ZeRO-3 holds the first end, which stays, the layer that is computed, and the next one, whose gather has
// begun. The last end is smaller than a layer here, and is present when no other is computed.
TEST(TaskMemory, GathersALayerAhead) {
  const auto most = [](const std::string& more) {
    const auto source =
        job(gpt(6),
            "parallel: {data: 2}, optimizer: distributed_adam, sharding: {what: parameters" + more + "}", 2);
    return test::most_of(*source, 0, MemoryKind::gathered);
  };
  const Bytes layer = 2 * (12 * kH * kH + 13 * kH), first = 2 * (kV * kH + kS * kH), last = 2 * 2 * kH;
  EXPECT_EQ(most(""), first + 2 * layer);
  EXPECT_EQ(most(", ahead: 0"), first + layer);
  EXPECT_EQ(most(", reshard: nothing"), first + last + 6 * layer);
}

// A layer's gradients, whole until they are summed and divided: one layer's, and the next one's if they are
// still on their way.
TEST(TaskMemory, HasTheGradientsOfALayerUntilTheyAreDivided) {
  const std::string more = "parallel: {data: 2}, optimizer: distributed_adam, sharding: {what: gradients}";
  const auto source = job(gpt(6), more, 2);
  const Bytes part = source->memory()->resident(0)[MemoryKind::gradients];
  const Bytes layer = 2 * (12 * kH * kH + 13 * kH);
  EXPECT_EQ(test::most_of(*source, 0, MemoryKind::gradients), part + layer);
}

// ---- Pipelines

struct Known {
  const char* name;
  PipelineShape shape;
};

// Returns the peak memory of a stage, replayed from the schedule's steps. A forward keeps `saved`; the
// backward of the input leaves `operands` for the gradients of weights.
Bytes replayed(const ScheduledPipeline& plan, std::uint32_t stage, Bytes saved, Bytes operands) {
  Bytes now = 0, most = 0;
  for (const PipelineStep& step : plan.steps[stage]) {
    const bool overlapped = step.kind == PipelineStepKind::overlapped;
    if (step.kind == PipelineStepKind::forward || overlapped) most = std::max(most, now += saved);
    if (step.kind == PipelineStepKind::backward || overlapped) now -= saved;
    if (step.kind == PipelineStepKind::input_backward) most = std::max(most, now += operands - saved);
    if (step.kind == PipelineStepKind::weight_backward) now -= operands;
  }
  return most;
}

TEST(PipelineMemory, HasTheActivationsInFlightOfItsSchedule) {
  constexpr std::uint32_t kStages = 4;
  // Whole layers, and the memory of the four GEMMs' weights and their outputs' gradients (Qi et al., ICLR
  // 2024, table 1).
  const Bytes layer = 34 * kSbh + 5 * kA * kS * kSbh / kH, operands = 32 * kSbh;
  const Known all[] = {
      {"gpipe", {kStages, 1, 6}},       {"one_f_one_b", {kStages, 1, 6}}, {"eager_1f1b", {kStages, 1, 9}},
      {"interleaved", {kStages, 3, 8}}, {"depth_first", {kStages, 2, 8}}, {"breadth_first", {kStages, 2, 4}},
      {"zb_h1", {kStages, 1, 9}},       {"zb_h2", {kStages, 1, 9}},       {"zb_v", {kStages, 2, 8}},
      {"chimera", {kStages, 1, 8}},     {"dual_pipe", {kStages, 1, 8}},   {"dual_pipe_v", {kStages, 2, 8}}};
  for (const Known& known : all) {
    SCOPED_TRACE(known.name);
    const ScheduledPipeline plan =
        schedule_pipeline(parse_config(known.name, "schedule.yaml"), ConfigNode(), known.shape);
    const std::vector<std::uint32_t> in_flight = prove_pipeline(plan).in_flight;
    const auto source =
        job(gpt(static_cast<int>(kStages * known.shape.chunks)),
            fmt::format(
                "optimizer: none, recompute: none, microbatch: 2, microbatches: {}, parallel: {{pipeline: "
                "{}, virtual_stages: {}, schedule: {}}}",
                known.shape.microbatches, kStages, known.shape.chunks, known.name),
            kStages);
    for (std::uint32_t stage = 0; stage < kStages; ++stage) {
      bool ends = false;
      for (std::uint32_t chunk = 0; chunk < plan.placement.chunks(stage); ++chunk)
        ends = ends || plan.placement.first(stage, chunk) || plan.placement.last(stage, chunk);
      if (ends) continue;
      EXPECT_EQ(planned(*source, stage)[MemoryKind::activations], replayed(plan, stage, layer, operands));
      if (plan.splits_backward()) continue;
      EXPECT_EQ(planned(*source, stage)[MemoryKind::activations], in_flight[stage] * layer);
    }
  }
}

// Stages have what they have layers for.
TEST(PipelineMemory, FollowsUnevenStages) {
  const auto source =
      job(gpt(8),
          "optimizer: none, recompute: none, microbatch: 2, microbatches: 8, parallel: {pipeline: 4, "
          "layers: {stages: [2, 3, 1, 2]}}",
          4);
  const Bytes layer = 34 * kSbh + 5 * kA * kS * kSbh / kH;
  EXPECT_EQ(planned(*source, 1)[MemoryKind::activations], 3 * 3 * layer);
  EXPECT_EQ(planned(*source, 2)[MemoryKind::activations], 2 * 1 * layer);
}

// ---- What does not know it

TEST(ModelMemory, IsUnknownForProgramsThatDoNotSay) {
  EXPECT_EQ(parse_workload("{kind: pipeline, stages: 2}")->tasks(2)->memory(), nullptr);
}

TEST(MemoryUse, IsWritten) {
  MemoryUse use;
  use[MemoryKind::parameters] = kGibibyte;
  use[MemoryKind::activations] = kGibibyte / 2;
  EXPECT_EQ(use.text(), "1.50 GiB: parameters 1.00 GiB, activations 0.50 GiB");
}

}  // namespace
}  // namespace netsim::memory_test
