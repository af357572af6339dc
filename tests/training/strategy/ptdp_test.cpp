// Tests that the PTD-P workload has the communications, bytes and FLOPs of the paper and of Megatron-LM. All
// its ends match for any degrees, and degrees that do not fit are refused.
#include "sim/training/strategy/strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/output.h"
#include "sim/workload/program/program_file.h"
#include "tests/support/paths.h"
#include "tests/support/resident.h"
#include "tests/support/sanitizers.h"
#include "tests/support/task_bodies.h"
#include "tests/support/tasks_of.h"
#include "tests/workload/program/small_programs.h"
#include "tests/workload/task_player.h"

namespace netsim::ptdp_test {
namespace {

using netsim::test::parse_workload;
using netsim::test::TaskPlayer;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::unique_ptr<TaskSource> main_job() {
  return parse_workload(read_file(source_directory() + "/configs/workloads/gpt3_ptdp.yaml"))->tasks(128);
}

struct Tally {
  std::uint64_t tasks = 0;
  Bytes bytes = 0;
};

// Tasks of a rank by "kind stream name".
std::map<std::string, Tally> tally(const TaskSource& source, std::uint32_t rank) {
  std::map<std::string, Tally> result;
  for (const Task& task : test::tasks_of(source, rank)) {
    Tally& entry = result[std::string(to_string(task.kind())) + " " + to_string(task.stream) + " " +
                          source.names()[task.name]];
    ++entry.tasks;
    entry.bytes += task.bytes();
  }
  return result;
}

// Returns the FLOPs of GEMMs; fused attention is not one.
double gemm_flops(const TaskSource& source) {
  std::vector<double> of_work;
  for (const Work& work : source.works()) {
    double flops = 0;
    for (const Kernel& k : work.kernels) {
      if (k.kind != Kernel::Kind::gemm) continue;
      flops += 2.0 * static_cast<double>(k.m) * static_cast<double>(k.n) * static_cast<double>(k.k) *
               static_cast<double>(k.batch);
    }
    of_work.push_back(flops);
  }
  double total = 0;
  for (std::uint32_t rank = 0; rank < source.ranks(); ++rank) {
    for (const Task& task : test::tasks_of(source, rank)) {
      if (task.kind() == TaskKind::compute) total += of_work[task.work()];
    }
  }
  return total;
}

// Rank = tp + 8 dp + 16 pp. Each GPU has 12 layers, 16 microbatches, b s h = 2048 x 12288 halves.
TEST(Ptdp, MainJobHasTheCommunicationsOfThePaper) {
  const auto source = main_job();
  ASSERT_EQ(source->ranks(), 128U);
  const Bytes activation = 2LL * 2048 * 12288;
  for (const std::uint32_t rank : {0U, 9U, 50U, 127U}) {
    auto tasks = tally(*source, rank);
    const std::uint32_t stage = rank / 16;
    for (const char* name :
         {"collective tp tp_forward", "collective tp tp_recompute", "collective tp tp_backward"}) {
      EXPECT_EQ(tasks[name].tasks, 2U * 12 * 16) << name;
      EXPECT_EQ(tasks[name].bytes, 2 * 12 * 16 * activation) << name;
    }
    EXPECT_EQ(tasks["collective tp tp_embedding"].tasks, stage == 0 ? 16U : 0U);
    EXPECT_EQ(tasks["collective tp tp_loss"].tasks, stage == 7 ? 48U : 0U);
    EXPECT_EQ(tasks["collective tp tp_loss"].bytes, stage == 7 ? 48 * 4 * 2048 : 0);
    EXPECT_EQ(tasks["collective tp tp_logits_backward"].tasks, stage == 7 ? 16U : 0U);
    // Two chunks: 32 boundaries of a stage in each direction, but for the ends of the model.
    EXPECT_EQ(tasks["send pp send_forward"].tasks, stage == 7 ? 16U : 32U);
    EXPECT_EQ(tasks["receive pp receive_forward"].tasks, stage == 0 ? 16U : 32U);
    EXPECT_EQ(tasks["send pp send_backward"].tasks, stage == 0 ? 16U : 32U);
    EXPECT_EQ(tasks["receive pp receive_backward"].tasks, stage == 7 ? 16U : 32U);
    EXPECT_EQ(tasks["send pp send_forward"].bytes, (stage == 7 ? 16 : 32) * activation / 8);
    EXPECT_EQ(tasks["collective pp gather_forward"].bytes, (stage == 0 ? 16 : 32) * activation);
    EXPECT_EQ(tasks["collective pp pp_embedding_gradients"].bytes,
              stage == 0 || stage == 7 ? 2 * 6400 * 12288 : 0);
    EXPECT_EQ(tasks["collective dp dp_gradients"].tasks, 1U);
    EXPECT_EQ(tasks["compute compute optimizer"].tasks, 1U);
  }
}

// Equation 2 of the paper: P = 12 l h^2 (1 + 13/12h + (V+s)/12lh); its fp16 gradients are 5.46 GB per GPU.
TEST(Ptdp, MainJobHasTheGradientsOfThePaper) {
  const auto source = main_job();
  double parameters = 0;
  for (std::uint32_t rank = 0; rank < 128; rank += 16) {
    const auto tasks = tally(*source, rank);
    const Bytes bytes = tasks.at("collective dp dp_gradients").bytes;
    EXPECT_GT(bytes, 5'430'000'000);
    EXPECT_LT(bytes, 5'660'000'000);
    parameters += static_cast<double>(bytes) / 2;
  }
  const double h = 12288, l = 96, v = 51200, s = 2048;
  const double equation = 12 * l * h * h * (1 + 13 / (12 * h) + (v + s) / (12 * l * h));
  EXPECT_NEAR(equation * 2 / 64, 5.46e9, 0.005e9);
  // Memory of a tensor rank over all stages: its share of the divided parts and the second copy of the
  // embedding. Biases, norms and positions are on every tensor rank.
  const double second_embedding = v / 8 * h;
  EXPECT_NEAR(parameters, equation / 8 + second_embedding, equation / 8 * 0.002);
}

TEST(Ptdp, FlopsAreThePapersFormula) {
  EXPECT_DOUBLE_EQ(main_job()->model_flops(), gemm_flops(*main_job()));
  for (const char* recompute : {"full", "none"}) {
    const auto source =
        parse_workload(std::string("{kind: ptdp, model: {layers: 4, hidden: 256, heads: 4, sequence: "
                                   "128, vocabulary: 1024}, parallel: {tensor: 2, pipeline: 2, data: "
                                   "3}, microbatch: 2, microbatches: 4, recompute: ") +
                       recompute + "}")
            ->tasks(12);
    EXPECT_DOUBLE_EQ(source->model_flops(), gemm_flops(*source)) << recompute;
    const double b = 24, sequence = 128, l = 4, h = 256, v = 1024;
    const double full = 96 * b * sequence * l * h * h * (1 + sequence / (6 * h) + v / (16 * l * h));
    const double none = 72 * b * sequence * l * h * h * (1 + sequence / (6 * h) + v / (12 * l * h));
    EXPECT_DOUBLE_EQ(source->model_flops(), std::string(recompute) == "full" ? full : none);
  }
}

TEST(Ptdp, MainJobPlaysToItsEnd) {
  const auto source = main_job();
  TaskPlayer player(*source, 11);
  player.run();
  EXPECT_TRUE(player.all_done());
  EXPECT_FALSE(player.mismatched);
}

std::string small(const std::string& more) {
  return "{kind: ptdp, model: {layers: 4, hidden: 64, heads: 4, sequence: 16, vocabulary: 128}, " + more +
         "}";
}

TEST(Ptdp, WithoutScatterGatherMessagesAreWhole) {
  const std::string parallel = "parallel: {tensor: 2, pipeline: 2}, microbatches: 3";
  const auto with = tally(*parse_workload(small(parallel))->tasks(4), 0);
  const auto without = tally(*parse_workload(small(parallel + ", scatter_gather: false"))->tasks(4), 0);
  EXPECT_EQ(with.at("send pp send_forward").bytes, 3 * 2 * 16 * 64 / 2);
  EXPECT_EQ(without.at("send pp send_forward").bytes, 3 * 2 * 16 * 64);
  EXPECT_EQ(with.count("collective pp gather_backward"), 1U);
  EXPECT_EQ(without.count("collective pp gather_backward"), 0U);
}

TEST(Ptdp, OverlappedBucketsAddUpToAllGradients) {
  for (const char* gradient : {"{bucket: 50 kB, overlap: true}", "{bucket: 50 kB}", "{}", "{dtype: fp32}"}) {
    const auto source =
        parse_workload(small("parallel: {data: 2, pipeline: 2, virtual_stages: 2}, microbatches: 4, "
                             "gradient: " +
                             std::string(gradient)))
            ->tasks(4);
    const Tally reduced = tally(*source, 0).at("collective dp dp_gradients");
    const std::int64_t layer = 12 * 64 * 64 + 13 * 64, parameters = 2 * layer + 128 * 64 + 16 * 64;
    EXPECT_EQ(reduced.bytes, parameters * (std::string(gradient) == "{dtype: fp32}" ? 4 : 2)) << gradient;
    EXPECT_EQ(reduced.tasks > 1, std::string(gradient).find("bucket") != std::string::npos) << gradient;
  }
}

// In the overlapped job the first bucket is ready before the last backward ends.
TEST(Ptdp, OverlappedBucketsStartDuringTheBackward) {
  const auto source =
      parse_workload(small("parallel: {data: 2}, microbatches: 2, gradient: {bucket: 50 kB, overlap: "
                           "true}"))
          ->tasks(2);
  TaskPlayer player(*source, 1, std::vector<Time>(source->works().size(), 10));
  player.run();
  Time first_bucket = kNever, last_backward = 0;
  for (const auto& played : player.played) {
    const std::string& name = source->names()[played.task.name];
    if (name == "dp_gradients") first_bucket = std::min(first_bucket, played.ready);
    if (name == "layer_begin_backward") last_backward = std::max(last_backward, played.end);
  }
  EXPECT_LT(first_bucket, last_backward);
}

// Where the buckets hold all gradients, the optimizer still waits for the last of them.
TEST(Ptdp, TheOptimizerWaitsForBucketsThatWereReducedDuringTheBackward) {
  const auto source = parse_workload(small("parallel: {data: 2, pipeline: 4}, microbatches: 4, gradient: "
                                           "{bucket: 50 kB, overlap: true}"))
                          ->tasks(8);
  TaskPlayer player(*source, 1, std::vector<Time>(source->works().size(), 10));
  player.run();
  std::map<std::uint32_t, Time> reduced;
  for (const auto& played : player.played) {
    const std::string& name = source->names()[played.task.name];
    if (name == "dp_gradients") reduced[played.rank] = played.end;
    if (name != "optimizer") continue;
    ASSERT_EQ(reduced.count(played.rank), 1U);
    EXPECT_GE(played.ready, reduced[played.rank]);
  }
  // Rank 2 is in the second stage, which has nothing left to reduce: its optimizer names the bucket.
  std::map<std::string, std::uint32_t> count;
  for (const Task& task : test::tasks_of(*source, 2)) ++count[source->names()[task.name]];
  EXPECT_EQ(count["dp_gradients"], 1U);
}

// Split or overlapped backwards, other placements: the same FLOPs, the same bytes over tensor and data
// parallel groups, and all of it ends.
TEST(Ptdp, EveryScheduleDoesTheSameWork) {
  struct Case {
    const char* schedule;
    int chunks;
    std::uint32_t copies;
  };
  const auto job = [](const std::string& schedule, int chunks) {
    return small("parallel: {tensor: 2, data: 2, pipeline: 2, virtual_stages: " + std::to_string(chunks) +
                 ", schedule: " + schedule + "}, microbatches: 8");
  };
  const auto reference = parse_workload(job("one_f_one_b", 1))->tasks(8);
  for (const Case& c : {Case{"gpipe", 1, 1},
                        {"eager_1f1b", 1, 1},
                        {"breadth_first", 2, 1},
                        {"fold3d", 2, 1},
                        {"zb_h1", 1, 1},
                        {"zb_h2", 1, 1},
                        {"zb_v", 2, 1},
                        {"dual_pipe_v", 2, 1},
                        {"chimera", 1, 2},
                        {"dual_pipe", 1, 2}}) {
    SCOPED_TRACE(c.schedule);
    const auto source = parse_workload(job(c.schedule, c.chunks))->tasks(8);
    EXPECT_DOUBLE_EQ(gemm_flops(*source), gemm_flops(*reference));
    for (const char* name : {"tp_forward", "tp_recompute", "tp_backward", "tp_loss", "tp_logits_backward"}) {
      const std::string key = std::string("collective tp ") + name;
      Bytes bytes = 0, expected = 0;
      for (std::uint32_t rank = 0; rank < 8; ++rank) {
        bytes += tally(*source, rank)[key].bytes;
        expected += tally(*reference, rank)[key].bytes;
      }
      EXPECT_EQ(bytes, expected) << name;
    }
    // Each copy's gradients once, shared embeddings where both ends of the model are.
    const std::int64_t layer = (12 * 64 * 64 + 7 * 64) / 2 + 6 * 64, words = 128 * 64 / 2;
    const bool ends_meet = c.copies > 1;
    const std::int64_t stage_0 = 2 * layer * c.copies + words + 16 * 64 + (ends_meet ? 2 * 64 : 0);
    const bool v = std::string(c.schedule) == "zb_v" || std::string(c.schedule) == "dual_pipe_v";
    EXPECT_EQ(tally(*source, 0)["collective dp dp_gradients"].bytes, 2 * (stage_0 + (v ? 2 * 64 : 0)));
    EXPECT_EQ(tally(*source, 0).count("collective pp pp_embedding_gradients"), v || ends_meet ? 0U : 1U);
    TaskPlayer player(*source, 5);
    player.run();
    EXPECT_TRUE(player.all_done());
    EXPECT_FALSE(player.mismatched);
  }
}

// Each of the four layers has two sums of its forward, recomputation and backward for each microbatch. They
// are on all four ranks of tensor and data parallelism. Forward and backward of a pair have microbatches of
// their own.
TEST(Ptdp, MarksNameTheLayerOfEachOperationInTheBody) {
  for (const char* schedule : {"interleaved, virtual_stages: 2", "zb_h1", "zb_v, virtual_stages: 2",
                               "dual_pipe_v, virtual_stages: 2", "dual_pipe", "chimera"}) {
    SCOPED_TRACE(schedule);
    const auto source = parse_workload(small("parallel: {tensor: 2, data: 2, pipeline: 2, schedule: " +
                                             std::string(schedule) + "}, microbatches: 8"))
                            ->tasks(8);
    std::map<std::string, std::map<std::pair<std::uint32_t, std::uint32_t>, int>> sums;  // layer, microbatch
    for (std::uint32_t rank = 0; rank < 8; ++rank) {
      for (const Task& task : test::tasks_of(*source, rank)) {
        const std::string& name = source->names()[task.name];
        const auto mark = source->pipeline_mark(rank, task.id);
        if (name == "tp_embedding" || name == "tp_loss" || is_point_to_point(task)) {
          EXPECT_TRUE(mark && !mark->layer) << name;
        } else if (name == "tp_forward" || name == "tp_recompute" || name == "tp_backward") {
          ASSERT_TRUE(mark && mark->layer) << name;
          const bool backward = mark->paired && name != "tp_forward";
          ++sums[name][{*mark->layer, backward ? mark->backward_microbatch : mark->microbatch}];
        }
      }
    }
    for (const char* name : {"tp_forward", "tp_recompute", "tp_backward"}) {
      EXPECT_EQ(sums[name].size(), 4U * 8) << name;
      for (const auto& [place, count] : sums[name]) {
        EXPECT_LT(place.first, 4U) << name;
        EXPECT_EQ(count, 2 * 4) << name << " of layer " << place.first;
      }
    }
  }
}

// A stage that waits for its sends begins no computation before they have arrived.
TEST(Ptdp, StagesWaitForTheirSendsWhereTransfersDoNotOverlap) {
  const auto source =
      parse_workload(small("parallel: {tensor: 2, pipeline: 2}, microbatches: 4, overlap_p2p: false"))
          ->tasks(4);
  bool sent = false;
  std::uint32_t checked = 0, at = 0;
  for (const Task& task : test::tasks_of(*source, 0)) {
    if (sent && task.kind() == TaskKind::compute) {
      ++checked;
      sent = false;
    }
    sent = sent || task.kind() == TaskKind::send;
    ++at;
  }
  EXPECT_EQ(checked, 4U);
  std::vector<Task> ready, next;
  source->start(0, ready);
  // Everything before the first send ends, and then nothing is ready but what the send releases.
  bool held = false;
  for (std::size_t i = 0; i < ready.size() && !held; ++i) {
    if (ready[i].kind() == TaskKind::receive) continue;
    if (ready[i].kind() == TaskKind::send) {
      for (const Task& other : ready)
        held = held || (other.kind() == TaskKind::compute && other.id > ready[i].id);
      EXPECT_FALSE(held);
      break;
    }
    source->complete(0, ready[i].id, ready);
  }
}

std::string random_job() {
  const auto pick = [](std::vector<int> choices) {
    return choices[static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(choices.size())))];
  };
  const int tensor = pick({1, 2, 4}), stages = pick({1, 2, 4}), chunks = stages > 1 ? pick({1, 2}) : 1;
  const int microbatches = stages * pick({1, 2, 3});
  const auto flag = [&] { return pick({0, 1}) == 1 ? "true" : "false"; };
  const bool sharded = pick({0, 1}) == 1, fused = pick({0, 1}) == 1, sequence = pick({0, 1}) == 1;
  const int context = pick({1, 1, 2, 4});
  const std::vector<std::string> exchanges{"all_gather", "all_to_all", "ring", "hybrid"};
  const int exchange = tensor * context > 8 ? 0
                       : !fused             ? pick({0, 1})
                       : context > 2        ? pick({0, 1, 2, 3})
                                            : pick({0, 1, 2});
  const std::vector<std::string> methods{"none", "ring_exchange", "pipelined"};
  const auto method = [&] { return methods[static_cast<std::size_t>(pick({0, 1, 2}))]; };
  const std::string overlap =
      pick({0, 1}) == 1 && sequence && tensor * context <= 8
          ? ", tensor_overlap: {gathers: " + method() + ", reduce_scatters: " + method() + ", pieces: 2}"
          : "";
  return "{kind: ptdp, model: {" + std::string(fused ? "kind: llama, groups: 8, inner: 64, " : "") +
         "layers: 8, hidden: 64, heads: 8, sequence: 16, vocabulary: 128}, parallel: {context: " +
         std::to_string(context) + ", context_exchange: " + exchanges[static_cast<std::size_t>(exchange)] +
         ", tensor: " + std::to_string(tensor) + ", pipeline: " + std::to_string(stages) +
         ", data: " + std::to_string(pick({1, 2})) + ", virtual_stages: " + std::to_string(chunks) +
         ", sequence: " + (sequence ? "true" : "false") + overlap +
         (stages == 2 && chunks == 1 ? ", layers: {first_stage: " + std::to_string(pick({0, 3, 4})) + "}"
                                     : "") +
         "}, microbatches: " + std::to_string(microbatches) +
         ", precision: " + (pick({0, 1}) == 1 ? "fp8" : "half") +
         ", optimizer: " + (sharded ? "distributed_adam" : "adam") +
         ", overlap_parameter_gather: " + (sharded ? flag() : "false") +
         ", microbatch: " + std::to_string(pick({1, 2})) + ", recompute: " +
         std::vector<std::string>{"full", "none", "selective"}[static_cast<std::size_t>(pick({0, 1, 2}))] +
         ", scatter_gather: " + flag() + ", gradient: {dtype: fp16, bucket: 60 kB, overlap: " + flag() +
         "}, iterations: " + std::to_string(pick({1, 2})) + "}";
}

TEST(Ptdp, EverySendHasItsReceiveAndEveryOrderEnds) {
  EXPECT_TRUE(rc::check([] {
    const std::string yaml = random_job();
    const auto source = parse_workload(yaml)->tasks(64);
    TaskPlayer player(*source, *rc::gen::arbitrary<std::uint64_t>());
    player.run();
    RC_ASSERT(player.all_done());
    RC_ASSERT(!player.mismatched);
    // Fused attention is no GEMM, and what is computed again of it no FLOPs of the model.
    if (yaml.find("llama") != std::string::npos || yaml.find("selective") != std::string::npos) return;
    const double expected = source->model_flops() * *source->iterations(), flops = gemm_flops(*source);
    RC_ASSERT(flops > expected * (1 - 1e-12));
    RC_ASSERT(flops < expected * (1 + 1e-12));
  }));
}

TEST(Ptdp, AFileIsTheSameJobAsItsDescription) {
  EXPECT_TRUE(rc::check([] {
    const auto workload = parse_workload(random_job());
    const auto direct = workload->tasks(64);
    const auto read = make_role_program_source(parse_program(workload->compile(), "job.pb"), "job.pb");
    RC_ASSERT(direct->ranks() == read->ranks());
    RC_ASSERT(direct->model_flops() == read->model_flops());
    for (std::uint32_t rank = 0; rank < read->ranks(); ++rank) {
      const std::vector<Task> one = test::tasks_of(*direct, rank), other = test::tasks_of(*read, rank);
      RC_ASSERT(one.size() == other.size());
      for (std::size_t id = 0; id < one.size(); ++id) {
        const Task &a = one[id], &b = other[id];
        RC_ASSERT(a.stream == b.stream && a.name == b.name);
        RC_ASSERT(test::same_body(a, b));
      }
    }
  }));
}

// The paper's largest row: 1T parameters, t = 8, p = 64, d = 6, 3,072 sequences.
TEST(Ptdp, AJobOf3072RanksLoadsInLittleMemory) {
  const std::string bytes =
      parse_workload(
          "{kind: ptdp, model: {layers: 128, hidden: 25600, heads: 160}, parallel: {tensor: 8, pipeline: "
          "64, data: 6, virtual_stages: 2}, microbatches: 512}")
          ->compile();
  EXPECT_LT(bytes.size(), 2'000'000U);
  const std::int64_t before = test::resident_bytes();
  const auto source = make_role_program_source(parse_program(bytes, "job.pb"), "job.pb");
  EXPECT_EQ(source->ranks(), 3072U);
  EXPECT_GT(test::task_count(*source, 3071), 10'000U);
  if (!test::sanitized()) {
    EXPECT_LT(test::resident_bytes() - before, 100'000'000);
  }
}

std::string refusal(const std::string& yaml) {
  try {
    parse_workload(yaml)->tasks(1);
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "accepted";
}

TEST(Ptdp, RefusesDegreesThatDoNotDivide) {
  EXPECT_THAT(refusal("kind: ptdp\nparallel:\n  pipeline: 7\n"),
              AllOf(HasSubstr("test.yaml:3:"), HasSubstr("model.layers (96) cannot be divided by 7")));
  EXPECT_THAT(refusal("{kind: ptdp, parallel: {pipeline: 8, virtual_stages: 5}}"),
              HasSubstr("divided by 40"));
  EXPECT_THAT(refusal("{kind: ptdp, parallel: {tensor: 7}}"),
              HasSubstr("model.heads (96) cannot be divided by 7"));
  EXPECT_THAT(
      refusal("{kind: ptdp, model: {heads: 12, hidden: 120, vocabulary: 50257}, parallel: {tensor: 4}}"),
      HasSubstr("model.vocabulary (50257) cannot be divided by 4"));
  EXPECT_THAT(refusal("{kind: ptdp, model: {hidden: 100}}"),
              HasSubstr("hidden (100) cannot be divided by 96 heads"));
  EXPECT_THAT(refusal("{kind: ptdp, parallel: {pipeline: 8, virtual_stages: 2}, microbatches: 12}"),
              HasSubstr("multiple of the 8 stages: 12 are not"));
  EXPECT_THAT(refusal("{kind: ptdp, parallel: {virtual_stages: 2}}"),
              HasSubstr("at least 2 pipeline stages"));
}

TEST(Ptdp, RefusesWrongDescriptions) {
  EXPECT_THAT(refusal("{kind: ptdp, microbaches: 3}"), HasSubstr("microbatches"));
  EXPECT_THAT(refusal("{kind: ptdp, gradient: {overlap: true}}"), HasSubstr("overlap needs gradient.bucket"));
  EXPECT_THAT(refusal("{kind: ptdp, recompute: some}"),
              HasSubstr("'some' is not one of: full, selective, none"));
  EXPECT_THAT(refusal("{kind: ptdp, parallel: {tensor: 32, pipeline: 96, data: 1000000}}"),
              HasSubstr("ranks"));
  EXPECT_THAT(refusal("{kind: ptdp, microbatches: 1000000}"), HasSubstr("is too much"));
  EXPECT_THAT(refusal("{kind: ptdp, model: {hidden: 999936, layers: 100000}}"), HasSubstr("too large"));
}

}  // namespace
}  // namespace netsim::ptdp_test
