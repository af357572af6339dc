// Tests that pipelines take exactly as long as theory predicts. On an ideal network bubbles are (p-1)/m and
// (p-1)/(v m). With a constant link delay the end is that of an independent max-plus recurrence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "sim/core/registry.h"
#include "sim/simulation/simulation.h"
#include "sim/training/strategy/scheduled_pipeline.h"
#include "sim/transport/ideal_endpoint.h"
#include "sim/workload/workload.h"
#include "tests/report/fixtures.h"
#include "tests/support/paths.h"
#include "tests/support/single_job.h"
#include "tests/support/test_size.h"

namespace netsim::pipeline_test {
namespace {

// forward, backward: of one microbatch in one of the v chunks of a stage.
struct Shape {
  Time p = 2, v = 1, m = 2;
  Time forward = 1, backward = 1;
  Time delay = 0;
  Time iterations = 1;
  Time group = 0;  // interleaved; 0: the stages

  std::string yaml() const {
    std::ostringstream out;
    if (group > 0) out << "schedule: {kind: interleaved, group: " << group << "}\n";
    out << "kind: pipeline\nstages: " << p << "\nvirtual_stages: " << v << "\nmicrobatches: " << m
        << "\nforward: " << forward * v << " ps\nbackward: " << backward * v
        << " ps\nbytes: 64 B\niterations: " << iterations << "\n";
    return out.str();
  }
  // As max_plus.py takes it.
  std::string words() const {
    std::ostringstream out;
    out << (v > 1 ? "interleaved" : "1f1b");
    for (Time number : {p, v, m, forward, backward, delay}) out << ':' << number;
    if (group > 0) out << ':' << group;
    return out.str();
  }
  Time ideal() const { return m * v * (forward + backward); }
};

struct Outcome {
  bool done = false;
  Time end = 0;
  std::vector<Time> iteration_ends;
  std::vector<RankTimes> statistics;
};

Time total_duration(const Work& work) {
  Time total = 0;
  for (const Kernel& kernel : work.kernels) total += kernel.duration;
  return total;
}

Outcome run(const std::string& yaml, std::uint32_t ranks, Time delay) {
  const auto kind = Registry<WorkloadKind>::instance().create(parse_config(yaml, "pipeline.yaml"), "");
  const auto source = kind->tasks(ranks);
  EventLoop loop;
  IdealEndpoint endpoint(loop, ranks, delay, 0);
  const auto executor = Executor::create(loop, endpoint, ConfigNode(), ranks);
  std::vector<GpuId> gpus;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) gpus.push_back(rank);
  std::vector<Time> durations;
  for (const Work& work : source->works()) durations.push_back(total_duration(work));
  test::SingleJob job(loop, *executor, *source, gpus, durations, 2 * ranks);
  job.start();
  loop.run();
  return {job->done(), job->end_time(), job->iteration_ends(), job->rank_times(job->end_time())};
}

Outcome run(const Shape& shape) {
  return run(shape.yaml(), static_cast<std::uint32_t>(shape.p), shape.delay);
}

// On an ideal network every rank computes all the time but for the bubble.
void expect_bubble(const Shape& shape, Time bubble) {
  SCOPED_TRACE(shape.words());
  const Outcome outcome = run(shape);
  ASSERT_TRUE(outcome.done);
  EXPECT_EQ(outcome.end, shape.ideal() + bubble);
  for (const RankTimes& times : outcome.statistics) {
    EXPECT_EQ(times.compute, shape.ideal());
    EXPECT_EQ(times.idle, bubble);
    EXPECT_EQ(times.exposed, 0);
  }
}

constexpr std::pair<Time, Time> kDurations[] = {
    {1'000'003, 1'000'003}, {700'001, 1'900'007}, {1'900'007, 700'001}};

// Bubble / ideal time = (p-1) / m.
TEST(PipelineOnIdealNetwork, OneForwardOneBackwardHasABubbleOfStagesLessOneOverMicrobatches) {
  for (const auto& [forward, backward] : kDurations) {
    for (Time p : {1, 2, 3, 4, 8}) {
      for (Time m : {p, 2 * p, 5 * p}) {
        expect_bubble({p, 1, m, forward, backward}, (p - 1) * (forward + backward));
      }
    }
  }
}

TEST(PipelineOnIdealNetwork, OneForwardOneBackwardNeedsNoMultipleOfTheStages) {
  for (Time m : {1, 3, 7}) expect_bubble({4, 1, m, 300, 500}, 3 * 800);
}

// Bubble / ideal time = (p-1) / (v m); forward and backward are those of one chunk, 1/v of a stage.
TEST(PipelineOnIdealNetwork, InterleavingDividesTheBubbleByTheChunks) {
  for (const auto& [forward, backward] : kDurations) {
    for (Time p : {2, 3, 4, 8}) {
      for (Time v : {2, 3, 5}) {
        for (Time m : {p, 2 * p, 4 * p}) {
          expect_bubble({p, v, m, forward, backward}, (p - 1) * (forward + backward));
        }
      }
    }
  }
}

// Groups may have any size from p to m, if the last one has p microbatches or more (Megatron-Core's
// microbatch_group_size_per_vp_stage). No microbatch waits for its own way through the stages, so the bubble
// is that of groups of p.
TEST(PipelineOnIdealNetwork, InterleavingHasTheSameBubbleInGroupsOfAnySize) {
  for (Time p : {2, 3, 4}) {
    for (Time m = p; m <= 3 * p + 1; ++m) {
      for (Time group = p; group <= m; ++group) {
        if (m % group != 0 && m % group < p) continue;
        Shape shape{p, 2 + m % 2, m, 700'001, 1'900'007};
        shape.group = group;
        expect_bubble(shape, (p - 1) * (shape.forward + shape.backward));
      }
    }
  }
}

TEST(PipelineOnIdealNetwork, TheBubbleLawHoldsForAnyShape) {
  EXPECT_TRUE(rc::check([] {
    Shape shape;
    shape.p = *rc::gen::inRange<Time>(2, 10);
    shape.v = *rc::gen::inRange<Time>(1, 6);
    shape.m = shape.p * *rc::gen::inRange<Time>(1, 5);
    shape.forward = *rc::gen::inRange<Time>(1, 1'000'000);
    shape.backward = *rc::gen::inRange<Time>(1, 1'000'000);
    RC_ASSERT(run(shape).end == shape.ideal() + (shape.p - 1) * (shape.forward + shape.backward));
  }));
}

TEST(PipelineOnIdealNetwork, IterationsFollowEachOtherWithoutOverlap) {
  const Shape shape{4, 2, 8, 300, 500, 70, 3};
  const Outcome outcome = run(shape);
  ASSERT_EQ(outcome.iteration_ends.size(), 3U);
  EXPECT_EQ(outcome.iteration_ends[1], 2 * outcome.iteration_ends[0]);
  EXPECT_EQ(outcome.iteration_ends[2], 3 * outcome.iteration_ends[0]);
  EXPECT_EQ(outcome.end, outcome.iteration_ends[2]);
}

// ---- With a constant link delay

struct CloseProcess {
  void operator()(std::FILE* stream) const { pclose(stream); }
};

// Returns the numbers that the command prints, word by word.
std::vector<Time> numbers_of(const std::string& command) {
  std::string text;
  const std::unique_ptr<std::FILE, CloseProcess> stream(popen(command.c_str(), "r"));
  if (stream == nullptr) return {};
  char buffer[256];
  while (std::fgets(buffer, sizeof buffer, stream.get()) != nullptr) text += buffer;
  std::istringstream words(text);
  std::vector<Time> numbers;
  for (Time number = 0; words >> number;) numbers.push_back(number);
  return numbers;
}

std::vector<Shape> random_shapes(std::size_t count) {
  RandomStream random(7, "pipelines");
  const auto between = [&random](Time low, Time high) {
    return low + static_cast<Time>(random.below(static_cast<std::uint64_t>(high - low + 1)));
  };
  std::vector<Shape> shapes;
  while (shapes.size() < count) {
    Shape shape{between(2, 8), between(1, 4)};
    shape.m = shape.v > 1 ? shape.p * between(1, 4) : between(1, 20);
    if (shape.v > 1 && between(0, 1) == 1) {
      shape.m += between(0, shape.p - 1);
      do {
        shape.group = between(shape.p, shape.m);
      } while (shape.m % shape.group != 0 && shape.m % shape.group < shape.p);
    }
    shape.forward = between(0, 1'000'000);
    shape.backward = between(0, 2'000'000);
    shape.delay = between(1, 3) == 1 ? between(1, 5'000'000) : between(1, 300'000);
    shapes.push_back(shape);
  }
  return shapes;
}

void expect_books_add_up(const Shape& shape, const Outcome& outcome) {
  for (const RankTimes& times : outcome.statistics) {
    EXPECT_EQ(times.compute, shape.ideal());
    EXPECT_EQ(times.compute + times.exposed + times.idle, outcome.end);
    EXPECT_EQ(times.exposed_by[static_cast<std::size_t>(Stream::pp)], times.exposed);
    EXPECT_LE(times.exposed, times.communication);
  }
}

TEST(PipelineWithLinkDelay, EndsWhenTheMaxPlusRecurrenceSays) {
  if (numbers_of("python3 -c 'print(1)' 2>/dev/null") != std::vector<Time>{1}) {
    GTEST_SKIP() << "python3 is not installed, and the recurrence is written in it";
  }
  const std::vector<Shape> shapes = random_shapes(test::by_size(24, 8, 5));
  std::string command = "python3 '" + source_directory() + "/tests/training/strategy/max_plus.py'";
  for (const Shape& shape : shapes) command += " " + shape.words();
  const std::vector<Time> expected = numbers_of(command);
  ASSERT_EQ(expected.size(), shapes.size()) << command;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    SCOPED_TRACE(shapes[i].words());
    const Outcome outcome = run(shapes[i]);
    ASSERT_TRUE(outcome.done);
    EXPECT_EQ(outcome.end, expected[i]);
    expect_books_add_up(shapes[i], outcome);
  }
}

// ---- Every schedule, with times of all kinds, transfers that take time, and stages that wait for them

// Times of one part of the model.
struct Replayed {
  std::string schedule, placement;
  PipelineShape shape;
  Time forward, backward, weights, overlapped, delay;
  bool waits;
  std::uint32_t replicas = 1;
  bool reduces = false;
  bool ordered = false;

  std::string yaml() const {
    const auto parts = static_cast<Time>(shape.chunks);
    std::ostringstream out;
    out << "kind: pipeline\nschedule: " << schedule << "\nstages: " << shape.stages
        << "\nvirtual_stages: " << shape.chunks << "\nmicrobatches: " << shape.microbatches
        << "\nforward: " << forward * parts << " ps\nbackward: " << backward * parts
        << " ps\nweights: " << weights * parts << " ps\noverlapped: " << overlapped * parts
        << " ps\nbytes: 64 B\noverlap_p2p: " << (waits ? "false" : "true")
        << "\nordered_p2p: " << (ordered ? "true" : "false") << "\nreplicas: " << replicas
        << "\ngradients: " << (reduces ? 64 * parts : 0) << " B\n";
    return out.str();
  }
  // As max_plus.py --replay takes it.
  std::string json() const {
    const ScheduledPipeline plan = schedule_pipeline(parse_config(schedule, ""), ConfigNode(), shape);
    std::ostringstream out;
    out << R"({"placement": ")" << placement << R"(", "stages": )" << shape.stages << R"(, "chunks": )"
        << shape.chunks << R"(, "microbatches": )" << shape.microbatches << R"(, "times": {"F": )" << forward
        << R"(, "B": )" << backward << R"(, "I": )" << backward - weights << R"(, "W": )" << weights
        << R"(, "&": )" << overlapped << R"(}, "delay": )" << delay << R"(, "waits": )"
        << (waits ? "true" : "false") << R"(, "replicas": )" << replicas << R"(, "reduces": )"
        << (reduces && plan.trains ? "true" : "false");
    if (ordered) out << R"(, "ordered": ")" << (plan.receives_ahead ? "direction" : "any") << '"';
    out << R"(, "steps": [)";
    for (std::size_t stage = 0; stage < plan.steps.size(); ++stage) {
      out << (stage > 0 ? ", [" : "[");
      for (std::size_t i = 0; i < plan.steps[stage].size(); ++i)
        out << (i > 0 ? ", \"" : "\"") << to_text(plan.steps[stage][i]) << '"';
      out << ']';
    }
    out << "]}\n";
    return out.str();
  }
};

std::vector<Replayed> random_replays(std::size_t rounds) {
  RandomStream random(11, "replays");
  const auto below = [&random](std::uint64_t bound) { return static_cast<Time>(random.below(bound)); };
  std::vector<Replayed> all;
  for (std::size_t round = 0; round < rounds; ++round) {
    const auto p = static_cast<std::uint32_t>(2 + 2 * below(4)), v = static_cast<std::uint32_t>(2 + below(3));
    const auto m = static_cast<std::uint32_t>(p * (2 + below(3)));
    const auto add = [&](const char* name, const char* placement, std::uint32_t chunks) {
      const Time forward = below(1'000'000), backward = below(2'000'000);
      all.push_back({name,
                     placement,
                     {p, chunks, m},
                     forward,
                     backward,
                     below(static_cast<std::uint64_t>(backward) + 1),
                     below(3'000'000),
                     below(3) == 0 ? below(5'000'000) : below(300'000),
                     below(2) == 0});
    };
    for (const char* name : {"gpipe", "one_f_one_b", "eager_1f1b", "zb_h1", "zb_h2", "forward_only"})
      add(name, "looped", 1);
    for (const char* name : {"interleaved", "breadth_first", "forward_only"}) add(name, "looped", v);
    for (const char* name : {"zb_v", "dual_pipe_v"}) add(name, "v_shaped", 2);
    for (const char* name : {"chimera", "dual_pipe"}) add(name, "bidirectional", 1);
  }
  return all;
}

void expect_ends_of_replays(const std::vector<Replayed>& all, const std::string& name) {
  const std::string file = ::testing::TempDir() + name;
  {
    std::ofstream out(file);
    for (const Replayed& one : all) out << one.json();
  }
  const std::vector<Time> expected = numbers_of(
      "python3 '" + source_directory() + "/tests/training/strategy/max_plus.py' --replay '" + file + "'");
  ASSERT_EQ(expected.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(all[i].yaml());
    const Outcome outcome = run(all[i].yaml(), all[i].shape.stages * all[i].replicas, all[i].delay);
    ASSERT_TRUE(outcome.done);
    EXPECT_EQ(outcome.end, expected[i]);
  }
}

TEST(PipelineWithLinkDelay, EveryScheduleEndsWhenItsReplaySays) {
  if (numbers_of("python3 -c 'print(1)' 2>/dev/null") != std::vector<Time>{1}) {
    GTEST_SKIP() << "python3 is not installed, and the replay is written in it";
  }
  expect_ends_of_replays(random_replays(test::by_size<std::size_t>(8, 3, 1)), "replays.json");
}

// ---- Messages of a stage in one stream

Outcome run_lists(const std::string& steps, Time backward, Time delay, bool ordered) {
  return run("{kind: pipeline, stages: 2, microbatches: " +
                 std::to_string(steps.find("F3") == std::string::npos ? 2 : 4) +
                 ", forward: 100 ps, backward: " + std::to_string(backward) +
                 " ps, bytes: 64 B, ordered_p2p: " + (ordered ? "true" : "false") +
                 ", schedule: {kind: listed, steps: [" + steps + "]}}",
             2, delay);
}

// This is worked out by hand, with transfers of 60, forwards of 100 and backwards of 10. Stage 1 has F0 from
// 160 to 260 and B0 to 270. Input for F1 comes at 360, as stage 0 sends it behind F2.
//
// Without an order the gradients of B0 are back at 330. In one stream they leave at 360, behind the receive
// of F1, and stage 0 has B0 to 430 and F3 to 530. Stage 1 begins F3 at 590 instead of 580, and all ends 10
// later.
TEST(PipelineWithOrderedMessages, AnEarlierReceiveHoldsALaterSend) {
  const char* steps = "'F0 SF0 F1 F2 SF1 RB0 SF2 B0 F3 B1 B2 B3', 'RF0 F0 RF1 B0 SB0 F1 B1 F2 B2 F3 B3'";
  EXPECT_EQ(run_lists(steps, 10, 60, false).end, 760);
  EXPECT_EQ(run_lists(steps, 10, 60, true).end, 770);
  // Where receives come behind the sends of the step before, each is needed next, and holds nothing.
  EXPECT_EQ(run_lists("'F0 F1 B0 B1', 'F0 B0 F1 B1'", 200, 10, false).end, 920);
  EXPECT_EQ(run_lists("'F0 F1 B0 B1', 'F0 B0 F1 B1'", 200, 10, true).end, 920);
}

// Stage 1 would receive F1 before it sends the gradients that stage 0 waits for before it computes F1.
TEST(PipelineWithOrderedMessages, RefuseListsThatWouldWaitForever) {
  const char* steps = "'F0 SF0 B0 F1 SF1 B1', 'RF0 F0 RF1 B0 SB0 F1 B1'";
  EXPECT_TRUE(run_lists(steps, 200, 10, false).done);
  try {
    run_lists(steps, 200, 10, true);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(
                                  "messages in one ordered stream would wait for each other forever, at step "
                                  "2 of stage 0, B0, whose stream has come to RB0"));
  }
}

// Shapes and times are random. Megatron-LM's interleaved schedule receives ahead.
TEST(PipelineWithOrderedMessages, EveryScheduleEndsWhenItsReplaySays) {
  if (numbers_of("python3 -c 'print(1)' 2>/dev/null") != std::vector<Time>{1}) {
    GTEST_SKIP() << "python3 is not installed, and the replay is written in it";
  }
  std::vector<Replayed> all;
  std::set<std::string> refused;
  for (Replayed one : random_replays(test::by_size<std::size_t>(8, 4, 4))) {
    const ScheduledPipeline plan = schedule_pipeline(parse_config(one.schedule, ""), ConfigNode(), one.shape);
    if (!refuse_order(plan, one.waits).empty()) {
      refused.insert(one.schedule);
      continue;
    }
    one.ordered = true;
    all.push_back(std::move(one));
  }
  // Other schedules send before the receiver has come to the receive, which an NCCL stream waits for.
  for (const char* runs : {"gpipe", "one_f_one_b", "eager_1f1b", "zb_h1", "interleaved", "forward_only"})
    EXPECT_EQ(refused.count(runs), 0U) << runs;
  EXPECT_GE(all.size(), test::by_size(50U, 20U, 20U));  // of 104 or 52
  expect_ends_of_replays(all, "ordered.json");
}

// ---- Steps that communicate

// Makes a schedule as a list in which some messages and reductions are separate steps, at random places and
// with random waits. It tries a few times, as some lists would wait forever. Returns "" if none is accepted.
class RandomLists {
 public:
  explicit RandomLists(RandomStream& random) : random_(random) {}

  std::string list(const Replayed& one) {
    const ScheduledPipeline plan = schedule_pipeline(parse_config(one.schedule, ""), ConfigNode(), one.shape);
    for (int attempt = 0; attempt < 20; ++attempt) {
      std::string text = "{kind: listed, placement: " + one.placement + ", steps: [" + stages(plan) + "]}";
      try {
        schedule_pipeline(parse_config(text, ""), ConfigNode(), one.shape);
        return text;
      } catch (const ConfigError&) {
        ++refused_;
      }
    }
    return {};
  }
  int refused() const { return refused_; }

 private:
  struct Placed {
    std::size_t before = 0;  // the step of the schedule that it comes before
    std::string text;
  };
  bool chance(std::uint64_t of) { return random_.below(of) == 0; }

  std::string stages(const ScheduledPipeline& plan) {
    std::string text;
    // How often there is a step for a message or reduction, and how far from the one that it is for.
    const std::uint64_t listed = 1 + random_.below(3), far = random_.below(4), waits = 1 + random_.below(6);
    for (std::uint32_t stage = 0; stage < plan.steps.size(); ++stage)
      text += (stage > 0 ? ", '" : "'") + steps(plan, stage, listed, far, waits) + "'";
    return text;
  }
  std::string steps(const ScheduledPipeline& plan, std::uint32_t stage, std::uint64_t listed, std::size_t far,
                    std::uint64_t waits) {
    const std::vector<PipelineStep>& steps = plan.steps[stage];
    std::vector<Placed> placed;
    const auto add = [&](std::size_t before, PipelineStep step) {
      const bool wait = chance(waits);
      const bool later = wait && chance(2) && before < steps.size() && is_sent(step.kind);
      step.waits = wait && !later;
      placed.push_back({before, to_text(step)});
      step.waits = true;
      if (later) placed.push_back({before + 1 + random_.below(steps.size() - before), to_text(step)});
    };
    std::map<std::uint32_t, std::size_t> complete;  // by chunk
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const PipelineStep& step = steps[i];
      const bool pair = step.kind == PipelineStepKind::overlapped;
      const std::uint32_t chunk = pair ? step.backward_chunk : step.chunk;
      const std::uint32_t microbatch = pair ? step.backward_microbatch : step.microbatch;
      if (step.kind != PipelineStepKind::forward && step.kind != PipelineStepKind::input_backward)
        complete[chunk] = i + 1;
      const std::size_t early = i - std::min(i, far), late = std::min(steps.size(), i + 1 + far);
      if (step.kind == PipelineStepKind::forward || pair) {
        if (meets(plan, stage, step.chunk, false) && chance(listed))
          add(early, {PipelineStepKind::receive_forward, step.chunk, step.microbatch});
        if (meets(plan, stage, step.chunk, true) && chance(listed))
          add(late, {PipelineStepKind::send_forward, step.chunk, step.microbatch});
      }
      if (step.kind != PipelineStepKind::forward && step.kind != PipelineStepKind::weight_backward) {
        if (meets(plan, stage, chunk, true) && chance(listed))
          add(early, {PipelineStepKind::receive_backward, chunk, microbatch});
        if (meets(plan, stage, chunk, false) && chance(listed))
          add(late, {PipelineStepKind::send_backward, chunk, microbatch});
      }
    }
    // A bidirectional schedule has the last parts of the model first, on both stages.
    const bool one_way = plan.placement.routes() == 1;
    std::vector<std::pair<std::uint32_t, std::size_t>> chunks(complete.begin(), complete.end());
    std::sort(chunks.begin(), chunks.end(), [&](const auto& a, const auto& b) {
      return plan.placement.held(stage, a.first).part > plan.placement.held(stage, b.first).part;
    });
    std::size_t from = 0;
    for (const auto& [number, end] : chunks) {
      if (one_way && !chance(2)) continue;
      from = std::max(from, end) + random_.below(steps.size() - std::max(from, end) + 1);
      add(from, {PipelineStepKind::reduce, number, 0});
    }
    std::stable_sort(placed.begin(), placed.end(),
                     [](const Placed& a, const Placed& b) { return a.before < b.before; });
    std::string text;
    std::size_t next = 0;
    for (std::size_t i = 0; i <= steps.size(); ++i) {
      for (; next < placed.size() && placed[next].before == i; ++next) text += placed[next].text + " ";
      if (i < steps.size()) text += to_text(steps[i]) + " ";
    }
    return text;
  }
  static bool is_sent(PipelineStepKind kind) {
    return kind == PipelineStepKind::send_forward || kind == PipelineStepKind::send_backward ||
           kind == PipelineStepKind::reduce;
  }
  // Whether another stage has the next part of the model, or the one before.
  static bool meets(const ScheduledPipeline& plan, std::uint32_t stage, std::uint32_t chunk, bool next) {
    const auto [route, part] = plan.placement.held(stage, chunk);
    if (next ? part + 1 == plan.parts() : part == 0) return false;
    return plan.placement.at(route, next ? part + 1 : part - 1).stage != stage;
  }

  RandomStream& random_;
  int refused_ = 0;
};

TEST(PipelineWithLinkDelay, ListsThatCommunicateEndWhenTheirReplaySays) {
  if (numbers_of("python3 -c 'print(1)' 2>/dev/null") != std::vector<Time>{1}) {
    GTEST_SKIP() << "python3 is not installed, and the replay is written in it";
  }
  RandomStream random(13, "lists");
  RandomLists lists(random);
  std::vector<Replayed> all;
  const int many = test::by_size(20, 8, 8);
  for (Replayed one : random_replays(static_cast<std::size_t>(many))) {
    one.schedule = lists.list(one);
    if (one.schedule.empty()) continue;
    one.reduces = random.below(4) != 0;
    // Two copies of each part at most, as the replay has it.
    if (one.placement != "bidirectional") one.replicas = one.reduces ? 2 : 1;
    all.push_back(std::move(one));
  }
  EXPECT_GE(all.size(), 10U * static_cast<unsigned>(many));  // of 13 for each
  EXPECT_GE(lists.refused(), many / 2);
  expect_ends_of_replays(all, "lists.json");
}

// By hand: transfers of 10, forwards of 100, backwards of 200.
TEST(PipelineWithLinkDelay, StagesWaitWhereTheirListsSaySo) {
  const auto end = [](const std::string& steps) {
    const Outcome outcome =
        run("{kind: pipeline, stages: 2, microbatches: 2, forward: 100 ps, backward: 200 ps, "
            "bytes: 64 B, schedule: {kind: listed, steps: [" +
                steps + "]}}",
            2, 10);
    EXPECT_TRUE(outcome.done);
    return outcome.end;
  };
  // Stage 1 has F0 at 110, B0 from 210 to 410, F1 to 510, B1 to 710; stage 0 then B1 to 920.
  EXPECT_EQ(end("'F0 F1 B0 B1', 'F0 B0 F1 B1'"), 920);
  // Stage 1 continues when its gradients are there: F1 to 520, B1 to 720.
  EXPECT_EQ(end("'F0 F1 B0 B1', 'F0 B0 SB0! F1 B1'"), 930);
  EXPECT_EQ(end("'F0 F1 B0 B1', 'F0 B0 SB0 F1 SB0! B1'"), 920);
  // The first activations leave when both are computed: stage 1 begins at 210.
  EXPECT_EQ(end("'F0 F1 SF0 SF1 B0 B1', 'F0 B0 F1 B1'"), 1020);
  // And the second ones when the first are there.
  EXPECT_EQ(end("'F0 F1 SF0! SF1 B0 B1', 'F0 F1 B0 B1'"), 1020);
  // It computes nothing before it has the gradients: F1 from 420.
  EXPECT_EQ(end("'F0 RB0! F1 B0 B1', 'F0 B0 F1 B1'"), 1040);
}

// Gradients of 2 ranks take two messages of 10.
TEST(PipelineWithLinkDelay, GradientsAreReducedAtTheirStepOrAtTheEnd) {
  const auto outcome = [](const std::string& steps) {
    return run(
        "{kind: pipeline, stages: 1, virtual_stages: 2, microbatches: 1, forward: 200 ps, backward: 400 ps, "
        "replicas: 2, gradients: 128 B, schedule: {kind: listed, steps: [" +
            steps + "]}}",
        2, 10);
  };
  EXPECT_EQ(outcome("F0 F0.1 B0.1 B0").end, 640);       // one after the other
  EXPECT_EQ(outcome("F0 F0.1 B0.1 G.1 B0").end, 620);   // one of them beside B0
  EXPECT_EQ(outcome("F0 F0.1 B0.1 G.1! B0").end, 640);  // before it
  EXPECT_EQ(outcome("F0 F0.1 B0.1 G.1 B0 G.1! G").end, 620);
  EXPECT_EQ(outcome("F0 F0.1 B0.1 G.1 B0").statistics[0].communication, 40);
  EXPECT_EQ(outcome("F0 F0.1 B0.1 G.1 B0").statistics[0].exposed, 20);
}

// Returns whether the workload ends on this many hosts whose receivers can buffer four messages of 1 MiB.
bool ends_on_packets(int hosts, const std::string& workload) {
  const test::Directory directory;
  SimulationSetup setup;
  setup.config = parse_config(
      fmt::format(
          "{{topology: {{kind: star, hosts: {}, rate: 800 Gbps}}, host: single_nic, transport: {{mtu: 64 "
          "KiB}}, collectives: {{slice: 1 MiB, slots: 4}}}}",
          hosts),
      "cluster.yaml");
  setup.workload = directory.path() + "/pipeline.yaml";
  setup.threads = 1;
  std::ofstream(setup.workload.text()) << workload;
  return Simulation(std::move(setup)).run({}).jobs[0].done;
}

// An accepted list also runs packet by packet. Some messages there exceed the receiver's slots before it has
// posted its receive.
TEST(PipelineOnPackets, ListsThatWaitForLargeMessagesGoOn) {
  for (const char* steps : {"['F0 SF0! F1 SF1! RB0! B0 RB1! B1 G!', 'RF0! F0 B0 RF1! SB0! F1 B1 SB1! G!']",
                            "['F0 SF0 F1 SF1 RB0 RB1 B0 B1 G', 'RF0 RF1 F0 B0 SB0 F1 B1 SB1 G']"}) {
    const std::string yaml = fmt::format(
        "{{kind: pipeline, stages: 2, replicas: 2, microbatches: 2, forward: 1 ms, backward: 2 ms, bytes: 32 "
        "MiB, "
        "gradients: 64 MiB, schedule: {{kind: listed, steps: {}}}}}",
        steps);
    SCOPED_TRACE(yaml);
    EXPECT_TRUE(ends_on_packets(4, yaml));
  }
}

// Messages exceed the receiver's slots before it reaches its receive, packet by packet. Two stages that send
// to each other, and receive only then, must not wait for each other.
TEST(PipelineOnPackets, StagesThatWaitForLargeSendsGoOn) {
  for (const auto& [schedule, chunks] : std::vector<std::pair<const char*, int>>{{"gpipe", 1},
                                                                                 {"one_f_one_b", 1},
                                                                                 {"eager_1f1b", 1},
                                                                                 {"zb_h1", 1},
                                                                                 {"zb_h2", 1},
                                                                                 {"interleaved", 2},
                                                                                 {"breadth_first", 2},
                                                                                 {"chimera", 1}}) {
    const std::string yaml = fmt::format(
        "{{kind: pipeline, schedule: {}, stages: 4, virtual_stages: {}, microbatches: 8, forward: 1 ms, "
        "backward: 2 ms, bytes: 32 MiB, overlap_p2p: false}}",
        schedule, chunks);
    SCOPED_TRACE(yaml);
    EXPECT_TRUE(ends_on_packets(8, yaml));
  }
}

}  // namespace
}  // namespace netsim::pipeline_test
