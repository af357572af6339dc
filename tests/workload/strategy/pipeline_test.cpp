// Do pipelines take exactly as long as theory says: bubbles of (p-1)/m and (p-1)/(v m) on an ideal network,
// and with a constant link delay the end that an independent max-plus recurrence gives?
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/random.h"
#include "sim/core/registry.h"
#include "sim/simulation.h"
#include "sim/transport/ideal_endpoint.h"
#include "sim/workload/strategy/pipeline_plan.h"
#include "sim/workload/workload.h"
#include "tests/report/fixtures.h"
#include "tests/support/paths.h"
#include "tests/support/single_job.h"

namespace netsim {
namespace {

// forward, backward: of one microbatch in one of the v chunks of a stage.
struct Shape {
  Time p = 2, v = 1, m = 2;
  Time forward = 1, backward = 1;
  Time delay = 0;
  Time iterations = 1;

  std::string yaml() const {
    std::ostringstream out;
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
    return out.str();
  }
  Time ideal() const { return m * v * (forward + backward); }
};

struct Outcome {
  bool done = false;
  Time end = 0;
  std::vector<Time> iteration_ends;
  std::vector<RankTimes> books;
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
  std::vector<std::uint32_t> gpus;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) gpus.push_back(rank);
  std::vector<Time> durations;
  for (const Work& work : source->works()) durations.push_back(total_duration(work));
  testing::SingleJob job(loop, *executor, *source, gpus, durations, 2 * ranks);
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
  for (const RankTimes& times : outcome.books) {
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

// What the command prints, word by word as numbers.
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
    shape.forward = between(0, 1'000'000);
    shape.backward = between(0, 2'000'000);
    shape.delay = between(1, 3) == 1 ? between(1, 5'000'000) : between(1, 300'000);
    shapes.push_back(shape);
  }
  return shapes;
}

void expect_books_add_up(const Shape& shape, const Outcome& outcome) {
  for (const RankTimes& times : outcome.books) {
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
  const std::vector<Shape> shapes = random_shapes(24);
  std::string command = "python3 '" + source_directory() + "/tests/workload/strategy/max_plus.py'";
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

  std::string yaml() const {
    const auto parts = static_cast<Time>(shape.chunks);
    std::ostringstream out;
    out << "kind: pipeline\nschedule: " << schedule << "\nstages: " << shape.stages
        << "\nvirtual_stages: " << shape.chunks << "\nmicrobatches: " << shape.microbatches
        << "\nforward: " << forward * parts << " ps\nbackward: " << backward * parts
        << " ps\nweights: " << weights * parts << " ps\noverlapped: " << overlapped * parts
        << " ps\nbytes: 64 B\noverlap_p2p: " << (waits ? "false" : "true") << "\n";
    return out.str();
  }
  // As max_plus.py --replay takes it.
  std::string json() const {
    const PipelinePlan plan = make_pipeline_plan(parse_config(schedule, ""), ConfigNode(), shape);
    std::ostringstream out;
    out << R"({"placement": ")" << placement << R"(", "stages": )" << shape.stages << R"(, "chunks": )"
        << shape.chunks << R"(, "microbatches": )" << shape.microbatches << R"(, "times": {"F": )" << forward
        << R"(, "B": )" << backward << R"(, "I": )" << backward - weights << R"(, "W": )" << weights
        << R"(, "&": )" << overlapped << R"(}, "delay": )" << delay << R"(, "waits": )"
        << (waits ? "true" : "false") << R"(, "steps": [)";
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

TEST(PipelineWithLinkDelay, EveryScheduleEndsWhenItsReplaySays) {
  if (numbers_of("python3 -c 'print(1)' 2>/dev/null") != std::vector<Time>{1}) {
    GTEST_SKIP() << "python3 is not installed, and the replay is written in it";
  }
  const std::vector<Replayed> all = random_replays(8);
  const std::string file = ::testing::TempDir() + "replays.json";
  {
    std::ofstream out(file);
    for (const Replayed& one : all) out << one.json();
  }
  const std::vector<Time> expected = numbers_of(
      "python3 '" + source_directory() + "/tests/workload/strategy/max_plus.py' --replay '" + file + "'");
  ASSERT_EQ(expected.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(all[i].yaml());
    const Outcome outcome = run(all[i].yaml(), all[i].shape.stages, all[i].delay);
    ASSERT_TRUE(outcome.done);
    EXPECT_EQ(outcome.end, expected[i]);
  }
}

// Messages that need more room than a receiver has before it comes to them, packet by packet: two stages that
// send to each other, and would receive only then, must not wait for each other.
TEST(PipelineOnPackets, StagesThatWaitForLargeSendsGoOn) {
  const test::Directory directory;
  for (const auto& [schedule, chunks] : std::vector<std::pair<const char*, int>>{{"gpipe", 1},
                                                                                 {"one_f_one_b", 1},
                                                                                 {"eager_1f1b", 1},
                                                                                 {"zb_h1", 1},
                                                                                 {"zb_h2", 1},
                                                                                 {"interleaved", 2},
                                                                                 {"breadth_first", 2},
                                                                                 {"chimera", 1}}) {
    SimulationSetup setup;
    setup.config = parse_config(
        "{topology: {kind: star, hosts: 8, rate: 800 Gbps}, host: single_nic, transport: {mtu: 64 KiB}, "
        "collectives: {slice: 1 MiB, slots: 4}}",
        "cluster.yaml");
    setup.workload = directory.path() + "/pipeline.yaml";
    setup.threads = 1;
    const std::string yaml = fmt::format(
        "{{kind: pipeline, schedule: {}, stages: 4, virtual_stages: {}, microbatches: 8, forward: 1 ms, "
        "backward: 2 ms, bytes: 32 MiB, overlap_p2p: false}}",
        schedule, chunks);
    SCOPED_TRACE(yaml);
    std::ofstream(setup.workload) << yaml;
    EXPECT_TRUE(Simulation(std::move(setup)).run({}).jobs[0].done);
  }
}

}  // namespace
}  // namespace netsim
