// Tests tile-wise overlap: GEMMs whose slices release pieces or wait for them. Closed forms of T3 and FLUX
// are exact, all products of parallelism end in any order, and bytes and products do not change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "tests/support/tasks_of.h"
#include "tests/training/strategy/played_jobs.h"
#include "tests/workload/program/small_programs.h"
#include "tests/workload/task_player.h"

namespace netsim::tile_overlap_test {
namespace {

using netsim::test::parse_workload;
using netsim::test::TaskPlayer;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t kSequence = 1600, kTensor = 8;
constexpr Bytes kActivation = 2 * kSequence * 64;
constexpr const char* kFlashOverlap = "gathers: pipelined, reduce_scatters: pipelined, kernels: sliced";
constexpr const char* kFlux = "gathers: direct, reduce_scatters: direct, kernels: sliced, sums: memory";
constexpr const char* kT3 =
    "reduce_scatters: ring_exchange, kernels: sliced, transfers: stores, sums: memory";

// A job of one layer on eight ranks with `overlap`, with sequence parallelism or without.
std::unique_ptr<TaskSource> job(const std::string& overlap, bool sequence = true) {
  return parse_workload(
             "{kind: ptdp, model: {kind: llama, groups: 8, inner: 96, layers: 1, hidden: 64, heads: 8, "
             "sequence: 1600, vocabulary: 128}, recompute: none, optimizer: none, parallel: {tensor: 8, "
             "sequence: " +
             std::string(sequence ? "true" : "false") + ", tensor_overlap: {" + overlap + "}}}")
      ->tasks(kTensor);
}

struct LayerTimes {
  Time gemm = 0;      // each of the four GEMMs of the forward, as a whole
  Time transfer = 0;  // of all bytes of a gather or reduce-scatter at the rate of one message at a time
};

// Returns the time of the forward without the logits' gather, where all else takes no time.
Time forward_time(const std::string& overlap, const LayerTimes& times, bool sequence = true) {
  const auto source = job(overlap, sequence);
  std::vector<Time> durations;
  for (const Work& work : source->works()) {
    Time time = 0;
    for (const Kernel& k : work.kernels) {
      for (const char* name : {"qkv_gemm", "projection_gemm", "mlp_up_gemm", "mlp_down_gemm"}) {
        if (k.name == name) time += times.gemm * k.m / kSequence / k.slice.count;
      }
    }
    durations.push_back(time);
  }
  TaskPlayer player(*source, 1, durations);
  player.transfer_time = [&](const Task& task) {
    const std::string& name = source->names()[task.name];
    const bool forward = name == "tp_forward" || name == "tp_gather_forward" || name == "tp_send_forward";
    return forward ? times.transfer * task.bytes() / kActivation : 0;
  };
  player.run();
  EXPECT_TRUE(player.all_done());
  return player.end() - (sequence ? times.transfer : 0);
}

// T3: a GEMM of g and a transfer of r in N chunks take max(g, r) + min(g, r)/N instead of g + r. That is
// 1.394 times faster for N = 100 and r = 0.4 g.
TEST(TileOverlap, ChunksHideAsT3SaysTheyDo) {
  for (const auto& [gemm, transfer] :
       std::vector<std::pair<Time, Time>>{{100'000, 40'000}, {100'000, 100'000}, {40'000, 100'000}}) {
    const Time whole = 4 * (gemm + transfer);
    const Time cut = forward_time(kFlashOverlap + std::string(", pieces: 100"), {gemm, transfer});
    EXPECT_EQ(cut, 4 * (std::max(gemm, transfer) + std::min(gemm, transfer) / 100));
    if (transfer * 10 != gemm * 4) continue;
    EXPECT_EQ(whole * 1004, cut * 1400) << "1.394";
  }
}

// FlashOverlap's all-reduces: without sequence parallelism each of two GEMMs has one behind it.
TEST(TileOverlap, AllReducesHideBehindTheGemmsBeforeThem) {
  for (const Time transfer : {40'000, 100'000, 250'000}) {
    const LayerTimes times{100'000, transfer};
    EXPECT_EQ(forward_time("pieces: 100", times, false), 4 * times.gemm + 2 * transfer);
    EXPECT_EQ(forward_time("all_reduces: pipelined, kernels: sliced, pieces: 100", times, false),
              2 * times.gemm + 2 * (std::max(times.gemm, transfer) + std::min(times.gemm, transfer) / 100));
  }
}

// T3's ring of t ranks: only a transfer longer than a slice shows. The last slice is the rank's own.
TEST(TileOverlap, ARingOfSlicesShowsWhatIsLongerThanTheGemm) {
  for (const auto& [gemm, transfer] : std::vector<std::pair<Time, Time>>{{8000, 3200}, {3200, 16'000}}) {
    const Time cut = forward_time(kT3, {gemm, transfer});
    const Time scatter = gemm / kTensor + (kTensor - 1) * std::max(gemm, transfer) / kTensor;
    EXPECT_EQ(cut, 2 * (gemm + transfer) + 2 * scatter) << "gathers do not overlap";
  }
}

// FLUX gathers: pieces come one after the other and are computed as they come, a rank's own first.
TEST(TileOverlap, DirectGathersAndScattersHideAsPiecesCome) {
  for (const Time pieces : {1, 5}) {
    for (const auto& [gemm, transfer] :
         std::vector<std::pair<Time, Time>>{{80'000, 32'000}, {80'000, 80'000}, {32'000, 160'000}}) {
      const Time count = kTensor * pieces, slice = gemm / count, message = transfer / count;
      const Time gathered = std::max(gemm, (count - pieces) * message + slice);
      const Time others = gemm - pieces * slice;  // when the last piece for another rank is computed
      const Time scattered = std::max(gemm, others + message);
      EXPECT_EQ(forward_time(kFlux + (", pieces: " + std::to_string(pieces)), {gemm, transfer}),
                2 * gathered + 2 * scattered);
    }
  }
}

// Degrees: a job with tensor parallelism beside other degrees, and its ranks.
struct Degrees {
  std::uint32_t ranks;
  std::string text;
};
std::vector<Degrees> products_of_degrees() {
  const std::string dense =
      "model: {kind: llama, groups: 8, inner: 96, layers: 4, hidden: 64, heads: 8, sequence: 64, "
      "vocabulary: 128}";
  const std::string experts =
      "model: {kind: llama, groups: 8, inner: 96, layers: 4, hidden: 64, heads: 8, sequence: 64, "
      "vocabulary: 128, experts: {count: 4, top_k: 2, inner: 32}}";
  return {{4, dense + ", microbatches: 2, parallel: {tensor: 4"},
          {4, dense + ", microbatches: 4, parallel: {tensor: 2, pipeline: 2, virtual_stages: 2"},
          {8, dense + ", recompute: full, parallel: {tensor: 2, context: 2, data: 2"},
          {8, dense + ", microbatches: 2, parallel: {tensor: 4, pipeline: 2, schedule: zb_h1"},
          {4, dense + ", microbatch: 2, strategies: [sub_batches], parallel: {tensor: 4"},
          {4, experts + ", recompute: selective, parallel: {tensor: 2, data: 2, expert: 2"}};
}

// No order of events and no jitter makes a job stall, and members of each communication agree.
TEST(TileOverlap, EveryProductEndsUnderJitter) {
  const std::string more =
      "reduce_scatters: direct, kernels: sliced, pieces: 2, multiprocessors: {qkv: 8, mlp_down: 8}";
  for (const Degrees& degrees : products_of_degrees()) {
    for (const std::string& overlap :
         {kFlashOverlap + std::string(", pieces: 4"), kFlux + std::string(", pieces: 2"), std::string(kT3),
          more, std::string("all_reduces: pipelined, kernels: sliced")}) {
      const bool reduces = overlap.starts_with("all_reduces");
      if (reduces && degrees.text.find("experts") != std::string::npos)
        continue;  // need sequence parallelism
      SCOPED_TRACE(degrees.text + " " + overlap);
      const auto input = parse_workload("{kind: ptdp, optimizer: none, " + degrees.text +
                                        ", sequence: " + (reduces ? "false" : "true") +
                                        ", tensor_overlap: {" + overlap + "}}}");
      for (std::uint64_t seed = 0; seed < 50; ++seed) {
        const auto source = input->tasks(degrees.ranks);
        test::expect_done_under_jitter(*source, seed);
      }
    }
  }
}

TEST(TileOverlap, RefusesAndNotesWhatCannotAct) {
  EXPECT_THAT([] { job("gathers: direct, pieces: 7"); },
              ThrowsMessage<ConfigError>(HasSubstr("cannot be divided by 7 pieces x tensor")));
  EXPECT_THAT(
      [] { parse_workload("{kind: ptdp, parallel: {tensor: 2, tensor_overlap: {gathers: direct}}}"); },
      ThrowsMessage<ConfigError>(HasSubstr("of tensor_overlap need parallel.sequence")));
  EXPECT_THAT(job("gathers: pipelined, launches: next_wave")->notes(),
              ::testing::Contains(HasSubstr("do not act: launches (GEMMs have no slices)")));
  EXPECT_THAT(job("gathers: pipelined, transfers: stores, sums: memory")->notes(),
              ::testing::Contains(HasSubstr("do not act: transfers (no method is ring_exchange), sums")));
}

}  // namespace
}  // namespace netsim::tile_overlap_test
