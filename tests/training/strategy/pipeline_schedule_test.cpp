// Do the pipeline schedules give the orders, bubbles and activations of their papers, exactly, and is refused
// what cannot run?
#include "sim/training/strategy/scheduled_pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "tests/workload/program/small_programs.h"
#include "tests/workload/task_player.h"

namespace netsim::pipeline_schedule_test {
namespace {

using netsim::test::parse_workload;
using netsim::test::TaskPlayer;
using ::testing::HasSubstr;

// "F0 F1 B0" for one chunk; "F0.1": microbatch 0 of chunk 1.
std::string written(const std::string& name, const PipelineShape& shape, std::uint32_t stage) {
  const auto schedule =
      Registry<PipelineSchedule>::instance().create(parse_config(name, "schedule.yaml"), "");
  EXPECT_EQ(schedule->refusal(shape), "");
  std::string text;
  for (const PipelineStep& step : schedule->order(shape, stage)) {
    const bool bare = shape.chunks > 1 && step.chunk == 0;
    text += (text.empty() ? "" : " ") + to_text(step) + (bare ? ".0" : "");
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

// Megatron-Core's schedules.py has this table in a comment, of p = 2, v = 2, and 5 microbatches in groups
// of 3. Microbatches 0 1 2 0 1 2 3 4 3 4 are in chunks 0 0 0 1 1 1 0 0 1 1. The warm-up is (p - stage - 1) *
// 2 + (v - 1) * 3.
TEST(PipelineSchedule, InterleavedTakesGroupsAsMegatronCoreDoes) {
  const PipelineShape shape{2, 2, 5};
  EXPECT_EQ(written("{kind: interleaved, group: 3}", shape, 0),
            "F0.0 F1.0 F2.0 F0.1 F1.1 F2.1 B0.1 F3.0 B1.1 F4.0 B2.1 F3.1 B0.0 F4.1 B1.0 B2.0 B3.1 B4.1 B3.0 "
            "B4.0");
  EXPECT_EQ(written("{kind: interleaved, group: 3}", shape, 1),
            "F0.0 F1.0 F2.0 F0.1 B0.1 F1.1 B1.1 F2.1 B2.1 F3.0 B0.0 F4.0 B1.0 F3.1 B2.0 F4.1 B3.1 B4.1 B3.0 "
            "B4.0");
  // All microbatches as one group: breadth-first in the warm-up.
  EXPECT_EQ(written("{kind: interleaved, group: 3}", {2, 2, 3}, 1),
            "F0.0 F1.0 F2.0 F0.1 B0.1 F1.1 B1.1 F2.1 B2.1 B0.0 B1.0 B2.0");
}

ScheduledPipeline plan_of(const std::string& schedule, const PipelineShape& shape) {
  return schedule_pipeline(parse_config(schedule, "schedule.yaml"), ConfigNode(), shape);
}

// Every schedule with a shape that it takes: p, v, m.
struct Known {
  const char* name;
  PipelineShape shape;
};
std::vector<Known> grid() {
  std::vector<Known> all;
  for (const std::uint32_t p : {2U, 3U, 4U, 6U, 8U}) {
    for (const std::uint32_t times : {1U, 2U, 5U}) {
      const std::uint32_t m = times * p, even = 2 * m;
      for (const char* name : {"gpipe", "one_f_one_b", "eager_1f1b", "zb_h1", "zb_h2", "forward_only"}) {
        all.push_back({name, {p, 1, m}});
        all.push_back({name, {p, 1, m + 1}});
      }
      for (const std::uint32_t v : {2U, 3U}) {
        for (const char* name : {"interleaved", "depth_first", "breadth_first", "fold3d", "forward_only"})
          all.push_back({name, {p, v, m}});
      }
      all.push_back({"zb_v", {p, 2, m}});
      all.push_back({"dual_pipe_v", {p, 2, even + 1}});
      if (p % 2 != 0) continue;
      all.push_back({"chimera", {p, 1, m}});
      all.push_back({"dual_pipe", {p, 1, even}});
    }
  }
  return all;
}

TEST(PipelineSchedule, EachIsProvedOverAGrid) {
  for (const Known& known : grid()) {
    const ScheduledPipeline plan = plan_of(known.name, known.shape);
    EXPECT_EQ(prove_pipeline(plan).refusal, "") << known.name << " " << known.shape.stages << " "
                                                << known.shape.chunks << " " << known.shape.microbatches;
  }
}

// The papers' figures, of the stage that holds most; in parts of the model.
TEST(PipelineSchedule, HoldsTheActivationsOfItsPaper) {
  const auto most = [](const char* name, const PipelineShape& shape) {
    const auto in_flight = prove_pipeline(plan_of(name, shape)).in_flight;
    return *std::max_element(in_flight.begin(), in_flight.end());
  };
  for (const std::uint32_t p : {2U, 4U, 8U}) {
    const std::uint32_t m = 4 * p;
    EXPECT_EQ(most("gpipe", {p, 1, m}), m);
    EXPECT_EQ(most("one_f_one_b", {p, 1, m}), p);
    EXPECT_EQ(most("eager_1f1b", {p, 1, m}), 2 * p - 1);
    EXPECT_EQ(most("breadth_first", {p, 2, m}), 2 * m);
    EXPECT_EQ(most("fold3d", {p, 2, m}), 2 * m);
    EXPECT_EQ(most("interleaved", {p, 3, m}), 3 * p + p - 1);  // p v (1 + (p - 1) / (p v))
    // The warm-up, (v - 1) group + 2 (p - 1), and the forward behind it.
    const std::string groups = "{kind: interleaved, group: " + std::to_string(m - p) + "}";
    EXPECT_EQ(most(groups.c_str(), {p, 3, m}), 2 * (m - p) + 2 * p - 1);
    EXPECT_EQ(most("zb_v", {p, 2, m}), 2 * p);  // halves of a stage: p stages' worth
    EXPECT_EQ(most("dual_pipe", {p, 1, m}), p + 1);
    EXPECT_EQ(most("dual_pipe_v", {p, 2, m}), 2 * p + 1);
    EXPECT_EQ(most("chimera", {p, 1, m}), p);
    EXPECT_EQ(most("forward_only", {p, 1, m}), 1U);
    // ZB-H1 and ZB-H2: the same at all stages.
    EXPECT_THAT(prove_pipeline(plan_of("zb_h1", {p, 1, m})).in_flight, ::testing::Each(p));
    EXPECT_THAT(prove_pipeline(plan_of("zb_h2", {p, 1, m})).in_flight, ::testing::Each(2 * p - 1));
  }
}

std::string listed(const std::string& steps, const std::string& more = "") {
  return "{kind: listed, " + more + "steps: " + steps + "}";
}
std::string refusal_of(const std::string& schedule, const PipelineShape& shape) {
  try {
    plan_of(schedule, shape);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(PipelineProof, RefusesWhatCannotRun) {
  const PipelineShape two{2, 1, 2};
  EXPECT_EQ(refusal_of(listed("['F0 F1 B0 B1', 'F0 B0 F1 B1']"), two), "accepted");
  EXPECT_THAT(refusal_of(listed("['F0 B0 F1', 'F0 B0 F1 B1']"), two),
              HasSubstr("stage 0 computes no backward of microbatch 1 in chunk 0"));
  EXPECT_THAT(refusal_of(listed("['F0 F1 B0 B1', 'F0 I0 F1 B1']"), two),
              HasSubstr("stage 1 computes no gradients of weights of microbatch 0"));
  EXPECT_THAT(refusal_of(listed("['F0 F1 B0 B1 B1', 'F0 B0 F1 B1']"), two),
              HasSubstr("step 4 of stage 0, B1, comes twice"));
  EXPECT_THAT(refusal_of(listed("['F0 F1 B0 B2', 'F0 B0 F1 B1']"), two),
              HasSubstr("B2: there is no such chunk and microbatch here"));
  // Stage 0 waits for the backward of 1 before its forward.
  EXPECT_THAT(refusal_of(listed("['F0 B1 F1 B0', 'F0 B0 F1 B1']"), two),
              HasSubstr("step 1 of stage 0, B1, waits forever"));
  EXPECT_THAT(refusal_of(listed("['F0 F1 B0 B1', 'F0 W0 I0 F1 B1']"), two), HasSubstr("waits forever"));
  EXPECT_THAT(refusal_of(listed("['F0 F1 B0 B1', 'F1 B1 F0 B0']"), two),
              HasSubstr("not used in the order in which they are sent"));
  EXPECT_THAT(refusal_of(listed("['F0 B0']"), two), HasSubstr("steps for 1 stages, the pipeline has 2"));
  EXPECT_THAT(refusal_of(listed("['F0 G1', 'F0']"), two), HasSubstr("'G1' is no step"));
  EXPECT_THAT(refusal_of(listed("['F0 F1 B0 B1', 'F0 B0 F1 B1']", "routes: [[0, 2]], "), two),
              HasSubstr("a route goes to stage 2, which is not there"));
}

// GPipe as a list is GPipe; a route of one's own may turn back at the second stage.
TEST(PipelineProof, TakesSchedulesAndPlacementsAsData) {
  const PipelineShape shape{2, 1, 2};
  EXPECT_EQ(plan_of(listed("['F0 F1 B1 B0', 'F0 F1 B1 B0']"), shape).steps, plan_of("gpipe", shape).steps);
  const ScheduledPipeline allreduce = plan_of(
      listed("['F0.0 F0.1 B0.1 B0.0', 'F0.0 F0.1 B0.1 B0.0']", "routes: [[0, 1, 1, 0]], "), {2, 1, 1});
  EXPECT_EQ(allreduce.placement.held(0, 1), (PipelinePlacement::Part{0, 3}));
  EXPECT_EQ(allreduce.parts(), 4U);
}

// Two neighbours that send to each other before they receive would wait for each other; 1F1B never does.
TEST(PipelineProof, NamesTheStepThatWouldWaitWithoutReceivesPostedAhead) {
  for (const std::uint32_t p : {2U, 4U, 8U}) {
    EXPECT_EQ(prove_pipeline(plan_of("one_f_one_b", {p, 1, 2 * p})).rendezvous, "");
    EXPECT_EQ(prove_pipeline(plan_of("gpipe", {p, 1, 2 * p})).rendezvous, "");
    EXPECT_THAT(prove_pipeline(plan_of("breadth_first", {p, 2, 2 * p})).rendezvous,
                HasSubstr("step " + std::to_string(2 * p - 1) + " of stage 0"));
  }
}

TEST(PipelineStep, TextsAreReadAsTheyAreWritten) {
  EXPECT_TRUE(rc::check([] {
    PipelineStep step;
    step.kind = static_cast<PipelineStepKind>(*rc::gen::inRange(0, 10));
    step.chunk = *rc::gen::inRange(0U, 3U);
    if (step.kind != PipelineStepKind::reduce) step.microbatch = *rc::gen::inRange(0U, 1000U);
    step.waits = is_communication(step.kind) && *rc::gen::arbitrary<bool>();
    if (step.kind == PipelineStepKind::overlapped) step.backward_chunk = *rc::gen::inRange(0U, 3U);
    if (step.kind == PipelineStepKind::overlapped) step.backward_microbatch = *rc::gen::inRange(0U, 1000U);
    PipelineStep read;
    RC_ASSERT(read_step(to_text(step), read));
    RC_ASSERT(read == step);
  }));
  PipelineStep read;
  for (const char* wrong :
       {"",   "F",   "3",  "F3.",   "F3x", "B1&F2", "F1&W2", "F1&", "F-1",  "F99999999999", "F3!",
        "S3", "RW3", "SF", "SF3!!", "!",   "G1",    "G.",    "GG",  "F1&G", "FS1",          "&"})
    EXPECT_FALSE(read_step(wrong, read)) << wrong;
  EXPECT_TRUE(read_step("G.1!", read));
  EXPECT_EQ(read, (PipelineStep{PipelineStepKind::reduce, 1, 0, 0, 0, true}));
}

// ---- Steps that communicate

TEST(PipelineProof, TakesCommunicationInItsPlace) {
  const PipelineShape two{2, 1, 2};
  for (const char* steps : {"['F0 SF0 F1 SF1 RB0! B0 RB1! B1 G!', 'RF0! F0 B0 SB0 RF1! F1 B1 SB1 G']",
                            "['F0 F1 SF0 SF1 SF0! SF1! B0 B1', 'F0 B0 F1 B1']",
                            "['RB0 RB1 F0 SF0! F1 SF1! RB0! B0 RB1! B1', 'RF0 RF1 F0 B0 SB0! F1 B1 SB1!']"}) {
    EXPECT_EQ(refusal_of(listed(steps), two), "accepted") << steps;
  }
  const ScheduledPipeline plan = plan_of(listed("['F0 F0.1 B0.1 G.1 B0', 'F0 F0.1 B0.1 B0']"), {2, 2, 1});
  EXPECT_TRUE(plan.reduces());
  EXPECT_TRUE(plan.reduces(0, 1));
  EXPECT_FALSE(plan.reduces(0, 0));
  EXPECT_FALSE(plan.reduces(1, 1));
}

TEST(PipelineProof, RefusesCommunicationOutOfPlace) {
  const PipelineShape two{2, 1, 2};
  const std::string one = "'F0 B0 F1 B1'", zero = "'F0 F1 B0 B1'";
  const auto refused = [&](const std::string& steps) { return refusal_of(listed("[" + steps + "]"), two); };
  // A message is sent once, after the step that computes it, and received once, before the step that uses it.
  // It must exist.
  EXPECT_THAT(refused("'F0 SF0 SF0 F1 B0 B1', " + one), HasSubstr("step 2 of stage 0, SF0, comes twice"));
  EXPECT_THAT(refused("'F0 SF0 SF0! SF0! F1 B0 B1', " + one),
              HasSubstr("step 3 of stage 0, SF0!, comes twice"));
  EXPECT_THAT(refused("'SF0 F0 F1 B0 B1', " + one),
              HasSubstr("step 0 of stage 0, SF0, comes before step 1, F0, which computes what it sends"));
  EXPECT_THAT(refused(zero + ", 'F0 RF0 B0 F1 B1'"),
              HasSubstr("step 1 of stage 1, RF0, comes behind step 0, F0, which uses what it receives"));
  EXPECT_THAT(refused(zero + ", 'RF0 F0 RF0! B0 F1 B1'"), HasSubstr("RF0!, comes behind step 1, F0"));
  EXPECT_THAT(refused("'RF0 F0 F1 B0 B1', " + one),
              HasSubstr("RF0: there is no such message, the way of the microbatch ends here"));
  EXPECT_THAT(refused(zero + ", 'F0 SF0 B0 F1 B1'"), HasSubstr("SF0: there is no such message"));
  EXPECT_THAT(refused("'F0 SF2 F1 B0 B1', " + one), HasSubstr("SF2: there is no such chunk and microbatch"));
  EXPECT_THAT(
      refusal_of(listed("['F0 F0.1 B0.1 B0', 'F0 SF0 F0.1 B0.1 B0']", "placement: v_shaped, "), {2, 2, 1}),
      HasSubstr("step 1 of stage 1, SF0: there is no such message, the next part of the model is on the "
                "same stage"));
  EXPECT_THAT(refusal_of(listed("['F0 RB0', 'F0']"), {2, 1, 1}),
              HasSubstr("RB0: no step computes a backward"));
  // In one order.
  EXPECT_THAT(
      refused("'F0 F1 SF1 SF0 B0 B1', " + one),
      HasSubstr("not used in the order in which they are sent: step 2 of stage 0, SF1, sends microbatch "
                "1 where step 0 of stage 1, F0, takes microbatch 0"));
  EXPECT_THAT(refused(zero + ", 'RF1 RF0 F0 B0 F1 B1'"),
              HasSubstr("step 0 of stage 1, RF1, takes microbatch 1"));
  EXPECT_EQ(refused("'F0 F1 SF1 SF0 B1 B0', 'RF1 RF0 F0 F1 B1 B0'"), "accepted");
  // No stage waits forever. The other's receive comes after its own send, which waits for a receive after
  // this one.
  EXPECT_THAT(refused("'F0 F1 SF0! SF1! RB0! B0 RB1! B1', 'RF0! F0 B0 SB0! RF1! F1 B1 SB1!'"),
              HasSubstr("step 3 of stage 0, SF1!, waits forever"));
  EXPECT_EQ(refused("'F0 F1 SF0! SF1! RB0! B0 RB1! B1', 'RF0! F0 B0 RF1! SB0! F1 B1 SB1!'"), "accepted");
  EXPECT_EQ(refused("'F0 F1 SF0! SF1! RB0! B0 RB1! B1', 'RF0! F0 B0 SB0 RF1! F1 B1 SB1!'"), "accepted");
  EXPECT_EQ(refused("'F0 F1 SF0! SF1! B0 B1', 'RF0! F0 B0 SB0! RF1! F1 B1 SB1!'"),
            "accepted");  // posted ahead
  EXPECT_THAT(refused("'F0 RB0! SF0 F1 B0 B1', " + one), HasSubstr("step 1 of stage 0, RB0!, waits forever"));
}

TEST(PipelineProof, RefusesReductionsOutOfPlace) {
  const PipelineShape two{2, 1, 2};
  const std::string one = "'F0 B0 F1 B1'";
  const auto refused = [&](const std::string& steps) { return refusal_of(listed("[" + steps + "]"), two); };
  EXPECT_THAT(
      refused("'F0 F1 B0 G B1', " + one),
      HasSubstr("step 3 of stage 0, G, comes before step 4, B1, which adds to the gradients of the chunk"));
  EXPECT_THAT(refused("'F0 F1 I0 B1 G W0', " + one), HasSubstr("comes before step 5, W0"));
  EXPECT_THAT(refused("'F0 F1 B0 B1 G G', " + one), HasSubstr("step 5 of stage 0, G, comes twice"));
  EXPECT_EQ(refused("'F0 F1 B0 B1 G G!', " + one), "accepted");
  EXPECT_THAT(refused("'F0 F1 B0 B1 G.1', " + one), HasSubstr("G.1: there is no such chunk here"));
  EXPECT_THAT(refusal_of(listed("['F0 G', 'F0']"), {2, 1, 1}), HasSubstr("G: no step computes gradients"));
  // Both copies of a part or none; stages that have copies of two parts reduce them in one order.
  const auto both = [](const std::string& zero, const std::string& other) {
    return refusal_of(listed("['F0 F1.1 B1.1 B0 " + zero + "', 'F0 F1.1 B0 B1.1 " + other + "']",
                             "placement: bidirectional, "),
                      {2, 1, 2});
  };
  EXPECT_THAT(both("G", ""), HasSubstr("step 4 of stage 0, G: stage 1 has a copy of the chunk, its chunk 1"));
  EXPECT_EQ(both("G", "G.1"), "accepted");
  EXPECT_EQ(both("G G.1", "G.1 G"), "accepted");
  EXPECT_THAT(both("G G.1", "G G.1"), HasSubstr("reduce their gradients in another order"));
  EXPECT_THAT(both("G! G.1", "G! G.1"), HasSubstr("step 4 of stage 0, G!, waits forever"));
}

// The place is that of the stage's list.
TEST(PipelineProof, NamesTheLineOfTheStage) {
  EXPECT_THAT(
      refusal_of("kind: listed\nsteps:\n  - F0 B0\n  - F0 G B0\n", {2, 1, 1}),
      ::testing::StartsWith("schedule.yaml:4:5: steps.1: step 1 of stage 1, G, comes before step 2, B0"));
  EXPECT_THAT(refusal_of("kind: listed\nsteps:\n  - F0 B0\n  - F0 SX B0\n", {2, 1, 1}),
              ::testing::StartsWith("schedule.yaml:4:5: steps.1: step 1 of stage 1: 'SX' is no step"));
}

// Li and Hoefler, figure 4b: the outer two of four stages reduce the gradients of the model's last part when
// they are there. The inner two have no bubble after theirs.
TEST(PipelineSchedule, ChimeraReducesEagerlyWhereABubbleFollows) {
  const auto steps = [](const char* eager, const PipelineShape& shape, std::uint32_t stage) {
    std::string text;
    const ScheduledPipeline plan =
        plan_of(std::string("{kind: chimera, eager_reduction: ") + eager + "}", shape);
    for (const PipelineStep& step : plan.steps[stage]) text += (text.empty() ? "" : " ") + to_text(step);
    return text;
  };
  const PipelineShape four{4, 1, 4};
  EXPECT_EQ(steps("bubbles", four, 0), "F0 F1 F2.1 B2.1 F3.1 B3.1 G.1 B0 B1");
  EXPECT_EQ(steps("bubbles", four, 1), "F0 F2.1 F1 F3.1 B2.1 B0 B3.1 B1");
  EXPECT_EQ(steps("bubbles", four, 2), "F2.1 F0 F3.1 F1 B0 B2.1 B1 B3.1");
  EXPECT_EQ(steps("bubbles", four, 3), "F2.1 F3.1 F0 B0 F1 B1 G B2.1 B3.1");
  EXPECT_EQ(steps("all", four, 1), "F0 F2.1 F1 F3.1 B2.1 B0 B3.1 G.1 B1");
  for (const std::uint32_t p : {2U, 4U, 6U, 8U, 16U}) {
    for (const std::uint32_t units : {1U, 3U}) {
      const ScheduledPipeline bubbles =
          plan_of("{kind: chimera, eager_reduction: bubbles}", {p, 1, units * p});
      const ScheduledPipeline all = plan_of("{kind: chimera, eager_reduction: all}", {p, 1, units * p});
      EXPECT_FALSE(plan_of("chimera", {p, 1, units * p}).reduces());
      for (std::uint32_t stage = 0; stage < p; ++stage) {
        const bool middle = stage + 1 == p / 2 || stage == p / 2, first_half = stage < p / 2;
        EXPECT_EQ(bubbles.reduces(stage, first_half ? 1 : 0), !middle) << p << " " << stage;
        EXPECT_TRUE(all.reduces(stage, first_half ? 1 : 0)) << p << " " << stage;
        EXPECT_FALSE(all.reduces(stage, first_half ? 0 : 1)) << p << " " << stage;
      }
    }
  }
}

// A pipeline on a network that takes no time. Times are those of one part of the model.
struct Timed {
  std::string schedule;
  PipelineShape shape;
  Time forward = 1, backward = 2, weights = 1;
};

// The ends of two iterations.
std::pair<Time, Time> iteration_ends(const Timed& t) {
  const std::uint32_t v = t.shape.chunks;
  const auto workload = parse_workload(
      "{kind: pipeline, schedule: " + t.schedule + ", stages: " + std::to_string(t.shape.stages) +
      ", virtual_stages: " + std::to_string(v) + ", microbatches: " + std::to_string(t.shape.microbatches) +
      ", forward: " + std::to_string(t.forward * v) + " ps, backward: " + std::to_string(t.backward * v) +
      " ps, weights: " + std::to_string(t.weights * v) + " ps, iterations: 2}");
  const auto source = workload->tasks(0);
  std::vector<Time> durations;
  for (const Work& work : source->works()) durations.push_back(work.kernels.at(0).duration);
  TaskPlayer player(*source, 3, durations);
  player.run();
  EXPECT_TRUE(player.all_done());
  EXPECT_FALSE(player.mismatched);
  Time first = 0;
  for (const auto& played : player.played) {
    if (played.task.iteration == 0) first = std::max(first, played.end);
  }
  return {first, player.end()};
}

// The time of the first iteration beyond its work, and the time that the second one adds beyond its own. This
// is the bubble of a job whose stages continue as soon as they are done, without synchronisation.
struct Bubbles {
  Time first, steady;
};
Bubbles bubbles(const Timed& t) {
  const auto [first, second] = iteration_ends(t);
  const Time stages = t.schedule == "chimera" || t.schedule == "dual_pipe" ? 1 : t.shape.chunks;
  const Time each = t.schedule == "forward_only" ? t.forward : t.forward + t.backward;
  const Time work = t.shape.microbatches * stages * each;
  return {first - work, second - first - work};
}

constexpr Time kF = 12'012, kB = 24'036;

// (p - 1) / m, (p - 1) / (v m) of the work m v (f + b): p - 1 times the forward and backward of a part.
TEST(PipelineBubble, OfSchedulesWithWholeBackwardsIsThePapers) {
  for (const std::uint32_t p : {1U, 2U, 3U, 4U, 8U}) {
    for (const std::uint32_t times : {1U, 2U, 4U}) {
      const Time bubble = (Time{p} - 1) * (kF + kB);
      for (const char* name : {"gpipe", "one_f_one_b", "eager_1f1b"})
        EXPECT_EQ(bubbles({name, {p, 1, times * p}, kF, kB}).first, bubble) << name << p;
      for (const std::uint32_t v : {2U, 3U, 4U}) {
        if (p == 1) continue;
        for (const char* name : {"interleaved", "depth_first", "breadth_first"})
          EXPECT_EQ(bubbles({name, {p, v, times * p}, kF, kB}).first, bubble) << name << p;
      }
      EXPECT_EQ(bubbles({"forward_only", {p, 1, times * p}, kF, kB}).first, (Time{p} - 1) * kF);
      EXPECT_EQ(bubbles({"forward_only", {p, 2, times * p}, kF, kB}).first, (Time{p} - 1) * kF);
    }
  }
}

// F = B(input) = W: (p - 1) (F + B - W), and 0 = (p - 1) (F + B - 2 W) once a stage need not wait for others.
TEST(PipelineBubble, OfZeroBubbleSchedulesIsThePapers) {
  for (const std::uint32_t p : {2U, 3U, 4U, 8U}) {
    for (const std::uint32_t m : {2 * p, 2 * p + 1, 5 * p}) {
      const Time fill = (Time{p} - 1) * kF;
      EXPECT_EQ(bubbles({"zb_h1", {p, 1, m}, kF, 2 * kF, kF}).steady, fill) << p << " " << m;
      EXPECT_EQ(bubbles({"zb_h2", {p, 1, m}, kF, 2 * kF, kF}).steady, 0) << p << " " << m;
      EXPECT_EQ(bubbles({"zb_h2", {p, 1, m}, kF, 2 * kF, kF}).first, fill) << p << " " << m;
      EXPECT_EQ(bubbles({"zb_v", {p, 2, m}, kF, 2 * kF, kF}).steady, 0) << p << " " << m;
    }
  }
}

// F = W = B/2 (B whole), F&B = F + B: (p/2 - 1) (F&B + B - 3 W); for the V, p stages are half of as many.
TEST(PipelineBubble, OfDualPipeIsThePapers) {
  for (const std::uint32_t p : {2U, 4U, 6U, 8U, 16U}) {
    for (const std::uint32_t m : {2 * p, 2 * p + 2, 5 * p}) {
      const Time each = (kF + 2 * kF) + 2 * kF - 3 * kF;
      EXPECT_EQ(bubbles({"dual_pipe", {p, 1, m}, kF, 2 * kF, kF}).first, (Time{p} / 2 - 1) * each);
      EXPECT_EQ(bubbles({"dual_pipe_v", {p, 2, m}, kF, 2 * kF, kF}).first, (Time{p} - 1) * each);
    }
  }
}

// Forward and backward of one length: p - 2 of them, however many units follow each other.
TEST(PipelineBubble, OfChimeraIsThePapers) {
  for (const std::uint32_t p : {2U, 4U, 8U, 16U}) {
    for (const std::uint32_t units : {1U, 2U, 3U})
      EXPECT_EQ(bubbles({"chimera", {p, 1, units * p}, kF, kF, kF / 2}).first, (Time{p} - 2) * kF);
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
  EXPECT_THAT(
      refusal("{kind: pipeline, stages: 4, virtual_stages: 2, microbatches: 6}"),
      HasSubstr("multiple of the 4 stages: 6 are not; or a larger group, as {kind: interleaved, group: 6}"));
  // Megatron-Core takes groups from p to m, and a last group of none or at least p microbatches.
  const auto grouped = [](int microbatches, int group) {
    return refusal(
        "{kind: pipeline, stages: 4, virtual_stages: 2, microbatches: " + std::to_string(microbatches) +
        ", schedule: {kind: interleaved, group: " + std::to_string(group) + "}}");
  };
  EXPECT_THAT(grouped(8, 3), HasSubstr("interleaved.group has to be between the 4 stages and the 8 "
                                       "microbatches, not 3"));
  EXPECT_THAT(grouped(8, 9), HasSubstr("not 9"));
  EXPECT_THAT(grouped(9, 6),
              HasSubstr("interleaved.group of 6 leaves a last group of 3 of the 9 microbatches"));
  EXPECT_EQ(grouped(9, 5), "accepted");
  EXPECT_THAT(refusal("{kind: pipeline, stages: 4, virtual_stages: 2, microbatches: 3}"),
              HasSubstr("at least as many microbatches as the 4 stages: 3 are fewer"));
  EXPECT_THAT(refusal("{kind: pipeline, stages: 1, virtual_stages: 2, microbatches: 6}"),
              HasSubstr("at least 2 pipeline stages"));
  EXPECT_THAT(refusal("{kind: pipeline, stages: 2, virtual_stages: 2, schedule: one_f_one_b}"),
              HasSubstr("use interleaved for 2"));
  EXPECT_THAT(refusal("{kind: pipeline, schedule: one_f_one_c}"), HasSubstr("did you mean 'one_f_one_b'"));
  EXPECT_THAT(refusal("{kind: pipeline, stages: 2, virtual_stages: 2, microbatches: 4, forward: 3 ps}"),
              HasSubstr("cannot be divided among 2 virtual_stages"));
  EXPECT_THAT(refusal("{kind: pipeline, stages: 65536, virtual_stages: 10000, microbatches: 1000000}"),
              HasSubstr("is too much"));
  EXPECT_THAT(refusal("{kind: pipeline, stages: 2, virtual_stages: 2, microbatches: 4, gradients: 3 B}"),
              HasSubstr("gradients (3 B) cannot be divided among 2 virtual_stages"));
  EXPECT_THAT(refusal("{kind: pipeline, stages: 1024, microbatches: 1, replicas: 65536}"),
              HasSubstr("stages x replicas is more than"));
}

// Durations that are left out are rounded down to a multiple of the chunks, and so are never refused. 1 ms
// with 3 chunks gives 333,333,333 ps each.
TEST(PipelineSchedule, RefusesNoneOfItsOwnDurations) {
  for (int chunks = 1; chunks <= 64; ++chunks) {
    EXPECT_EQ(refusal("{kind: pipeline, virtual_stages: " + std::to_string(chunks) + "}"), "accepted");
    EXPECT_EQ(refusal("{kind: pipeline, virtual_stages: " + std::to_string(chunks) +
                      ", schedule: breadth_first, forward: " + std::to_string(chunks) + " ps}"),
              "accepted");
  }
  // Half of the backward is 3 ps, and each of the two chunks has 1 ps of it.
  EXPECT_EQ(refusal("{kind: pipeline, stages: 2, virtual_stages: 2, schedule: zb_v, backward: 6 ps}"),
            "accepted");
  const auto source = parse_workload("{kind: pipeline, stages: 4, virtual_stages: 3}")->tasks(4);
  for (const Work& work : source->works())
    EXPECT_EQ(work.kernels.front().duration, work.name == "forward" ? 333'333'333 : 666'666'666);
}

}  // namespace
}  // namespace netsim::pipeline_schedule_test
