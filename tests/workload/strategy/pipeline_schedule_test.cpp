// Do the pipeline schedules give Megatron-LM's order, and do equal stages have the bubble of the paper,
// exactly?
#include "sim/workload/strategy/pipeline_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>

#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "tests/workload/program/small_programs.h"
#include "tests/workload/task_player.h"

namespace netsim {
namespace {

using netsim::testing::parse_workload;
using netsim::testing::TaskPlayer;
using ::testing::HasSubstr;

// "F0 F1 B0" for one chunk; "F0.1": microbatch 0 of chunk 1.
std::string written(const std::string& name, const PipelineShape& shape, std::uint32_t stage) {
  const auto schedule = Registry<PipelineSchedule>::instance().create(name);
  EXPECT_EQ(schedule->refusal(shape), "");
  std::string text;
  for (const PipelineStep& step : schedule->order(shape, stage)) {
    text +=
        (text.empty() ? "" : " ") + std::string(step.forward ? "F" : "B") + std::to_string(step.microbatch);
    if (shape.chunks > 1) text += "." + std::to_string(step.chunk);
  }
  return text;
}

TEST(PipelineSchedule, OneForwardOneBackwardIsMegatrons) {
  const PipelineShape shape{4, 1, 5};
  EXPECT_EQ(written("one_f_one_b", shape, 0), "F0 F1 F2 F3 B0 F4 B1 B2 B3 B4");
  EXPECT_EQ(written("one_f_one_b", shape, 1), "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4");
  EXPECT_EQ(written("one_f_one_b", shape, 2), "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4");
  EXPECT_EQ(written("one_f_one_b", shape, 3), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4");
  EXPECT_EQ(written("one_f_one_b", {4, 1, 2}, 0), "F0 F1 B0 B1");  // fewer microbatches than stages
  EXPECT_EQ(written("one_f_one_b", {1, 1, 2}, 0), "F0 B0 F1 B1");
}

// Megatron: warm-up (p - stage - 1) * 2 + (v - 1) * p = 4 and 2 of 8; groups of p microbatches per chunk.
TEST(PipelineSchedule, InterleavedIsMegatrons) {
  const PipelineShape shape{2, 2, 4};
  EXPECT_EQ(written("interleaved", shape, 0),
            "F0.0 F1.0 F0.1 F1.1 F2.0 B0.1 F3.0 B1.1 F2.1 B0.0 F3.1 B1.0 B2.1 B3.1 B2.0 B3.0");
  EXPECT_EQ(written("interleaved", shape, 1),
            "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 F2.0 B0.0 F3.0 B1.0 F2.1 B2.1 F3.1 B3.1 B2.0 B3.0");
  // One group of microbatches: all forwards, then all backwards.
  EXPECT_EQ(written("interleaved", {2, 2, 2}, 1), "F0.0 F1.0 F0.1 F1.1 B0.1 B1.1 B0.0 B1.0");
}

TEST(PipelineSchedule, ComputesEverythingOnceForwardBeforeBackward) {
  EXPECT_TRUE(rc::check([] {
    PipelineShape shape{*rc::gen::inRange(2U, 9U), *rc::gen::inRange(1U, 5U), 0};
    shape.microbatches = shape.stages * *rc::gen::inRange(1U, 5U);
    const auto schedule =
        Registry<PipelineSchedule>::instance().create(shape.chunks > 1 ? "interleaved" : "one_f_one_b");
    RC_ASSERT(schedule->refusal(shape).empty());
    for (std::uint32_t stage = 0; stage < shape.stages; ++stage) {
      std::set<std::pair<std::uint32_t, std::uint32_t>> forward, backward;
      for (const PipelineStep& step : schedule->order(shape, stage)) {
        const std::pair part{step.chunk, step.microbatch};
        RC_ASSERT(step.chunk < shape.chunks && step.microbatch < shape.microbatches);
        const bool fresh = (step.forward ? forward : backward).insert(part).second;
        RC_ASSERT(fresh);
        if (!step.forward) RC_ASSERT(forward.count(part) == 1U);
      }
      RC_ASSERT(forward.size() == shape.chunks * shape.microbatches);
      RC_ASSERT(backward.size() == forward.size());
    }
  }));
}

struct Bubble {
  std::int64_t stages, chunks, microbatches;
};

// The time of an iteration on a network that takes none: m (f + b) of work plus the bubble.
Time iteration_time(const Bubble& b, Time forward, Time backward) {
  const auto workload = parse_workload(
      "{kind: pipeline, stages: " + std::to_string(b.stages) +
      ", virtual_stages: " + std::to_string(b.chunks) + ", microbatches: " + std::to_string(b.microbatches) +
      ", forward: " + std::to_string(forward) + " ps, backward: " + std::to_string(backward) + " ps}");
  const auto source = workload->tasks(0);
  std::vector<Time> durations;
  for (const Work& work : source->works()) durations.push_back(work.kernels.at(0).duration);
  TaskPlayer player(*source, 3, durations);
  player.run();
  EXPECT_TRUE(player.all_done());
  EXPECT_FALSE(player.mismatched);
  return player.end();
}

TEST(PipelineSchedule, BubbleIsThePapersToThePicosecond) {
  for (const Bubble& b : {Bubble{1, 1, 4},
                          {2, 1, 2},
                          {4, 1, 8},
                          {8, 1, 16},
                          {2, 2, 4},
                          {4, 2, 8},
                          {4, 3, 12},
                          {8, 2, 16},
                          {8, 4, 8}}) {
    const Time forward = 12'012, backward = 24'036;
    const Time work = b.microbatches * (forward + backward);
    // (p - 1) / (v m) of the work
    EXPECT_EQ(iteration_time(b, forward, backward),
              work + work * (b.stages - 1) / (b.chunks * b.microbatches))
        << b.stages << " stages, " << b.chunks << " chunks, " << b.microbatches << " microbatches";
  }
}

std::string refusal(const std::string& yaml) {
  try {
    parse_workload(yaml);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(PipelineSchedule, RefusesShapesThatItCannotRun) {
  EXPECT_THAT(refusal("{kind: pipeline, stages: 4, virtual_stages: 2, microbatches: 6}"),
              HasSubstr("multiple of the 4 stages: 6 are not"));
  EXPECT_THAT(refusal("{kind: pipeline, stages: 1, virtual_stages: 2, microbatches: 6}"),
              HasSubstr("at least 2 pipeline stages"));
  EXPECT_THAT(refusal("{kind: pipeline, stages: 2, virtual_stages: 2, schedule: one_f_one_b}"),
              HasSubstr("use interleaved for 2"));
  EXPECT_THAT(refusal("{kind: pipeline, schedule: one_f_one_c}"), HasSubstr("did you mean 'one_f_one_b'"));
  EXPECT_THAT(refusal("{kind: pipeline, stages: 2, virtual_stages: 2, microbatches: 4, forward: 3 ps}"),
              HasSubstr("cannot be divided among 2 virtual_stages"));
  EXPECT_THAT(refusal("{kind: pipeline, stages: 65536, virtual_stages: 10000, microbatches: 1000000}"),
              HasSubstr("is too much"));
}

}  // namespace
}  // namespace netsim
