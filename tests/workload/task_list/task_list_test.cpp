// Tests that a list of tasks runs as it is written. Every rank waits for the tasks that its tasks name, and
// streams keep their order. Iterations overlap only where a task says so, and equal ranks share a program.
// Times are in picoseconds, and a byte takes one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "sim/workload/program/program_file.h"
#include "sim/workload/workload.h"
#include "tests/support/tasks_of.h"
#include "tests/workload/program/small_programs.h"
#include "tests/workload/task_player.h"

namespace netsim::task_list_test {
namespace {

using test::parse_workload;
using test::PlayedTask;
using test::TaskPlayer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Span {
  Time start, end;
  bool operator==(const Span&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Span& span) {
  return out << span.start << " to " << span.end;
}

// PlayedList: a list that ran without a network.
class PlayedList {
 public:
  explicit PlayedList(const std::string& yaml, std::uint32_t gpus = 8, std::uint64_t seed = 1)
      : source_(parse_workload(yaml)->tasks(gpus)) {
    TaskPlayer player(*source_, seed);
    player.compute_time = [this](std::uint32_t, const Task& task) {
      return source_->works()[task.work()].kernels[0].duration;
    };
    player.transfer_time = [](const Task& task) { return task.bytes(); };
    player.run();
    EXPECT_TRUE(player.all_done());
    EXPECT_FALSE(player.mismatched);
    end_ = player.end();
    for (const PlayedTask& one : player.played) {
      const bool received = one.task.kind() == TaskKind::receive;
      spans_[{source_->names()[one.task.name], one.rank, received, one.task.iteration}] = {one.ready,
                                                                                           one.end};
    }
  }
  Time end() const { return end_; }
  const TaskSource& source() const { return *source_; }
  // Returns when a task, or the sending end of a message, ran.
  Span ran(const std::string& name, std::uint32_t rank = 0, std::uint32_t iteration = 0) const {
    return spans_.at({name, rank, false, iteration});
  }
  Span received(const std::string& name, std::uint32_t rank, std::uint32_t iteration = 0) const {
    return spans_.at({name, rank, true, iteration});
  }

 private:
  std::unique_ptr<TaskSource> source_;
  std::map<std::tuple<std::string, std::uint32_t, bool, std::uint32_t>, Span> spans_;
  Time end_ = 0;
};

Program compiled(const std::string& yaml) { return parse_program(parse_workload(yaml)->compile(), "job.pb"); }

// The backward pass is from layer 4 to layer 1; gradients are reduced in that order (wait-free backprop).
TEST(TaskList, ChainOfFourLayersTakesEighteenUnits) {
  std::string yaml = "kind: tasks\nranks: 2\ntasks:\n";
  for (int layer = 1; layer <= 4; ++layer)
    yaml += "  - {name: f" + std::to_string(layer) + ", compute: 1 ps}\n";
  for (int layer = 4; layer >= 1; --layer) {
    const std::string number = std::to_string(layer);
    yaml += "  - {name: b" + number + ", compute: 2 ps}\n";
    yaml += "  - {name: g" + number + ", collective: all_reduce, bytes: 3 B, after: b" + number + "}\n";
  }
  const PlayedList played(yaml);
  EXPECT_EQ(played.end(), 18);
  EXPECT_EQ(played.ran("b1"), (Span{10, 12}));
  EXPECT_EQ(played.ran("g4"), (Span{6, 9}));
  EXPECT_EQ(played.ran("g1"), (Span{15, 18}));
}

// Two mixture-of-experts layers, backward: the all-reduce of a layer delays the next layer's all-to-all,
// because both are in one stream (B2, Lina).
TEST(TaskList, AllReduceDelaysTheAllToAllBehindIt) {
  std::string yaml = "kind: tasks\nranks: 2\ntasks:\n";
  std::string before;
  for (const std::string layer : {"2", "1"}) {
    const auto add = [&](const std::string& name, const std::string& what) {
      yaml += "  - {name: " + name + layer + ", " + what + before + "}\n";
      before = ", after: " + name + layer;
    };
    add("dispatch", "collective: all_to_all, bytes: 1 B");
    add("expert", "compute: 1 ps");
    add("combine", "collective: all_to_all, bytes: 1 B");
    add("dense", "compute: 1 ps");
    yaml += "  - {name: gradients" + layer + ", collective: all_reduce, bytes: 2 B" + before + "}\n";
  }
  const PlayedList played(yaml);
  EXPECT_EQ(played.end(), 12);
  EXPECT_EQ(played.ran("dispatch1"), (Span{6, 7}));
}

TEST(TaskList, MessagesAreWaitedForAtBothEnds) {
  const PlayedList played(R"(
kind: tasks
tasks:
  - {name: produce, on: 0, compute: 5 ps}
  - {name: activations, from: 0, to: 1, bytes: 3 B, after: produce}
  - {name: reuse, on: 0, compute: 1 ps, after: activations}
  - {name: consume, on: [0-1], compute: 2 ps, after: activations}
)");
  EXPECT_EQ(played.source().ranks(), 2U);
  EXPECT_EQ(played.ran("activations"), (Span{5, 8}));
  EXPECT_EQ(played.received("activations", 1), (Span{0, 8}));
  EXPECT_EQ(played.ran("reuse"), (Span{8, 9}));
  EXPECT_EQ(played.ran("consume", 0), (Span{9, 11}));
  EXPECT_EQ(played.ran("consume", 1), (Span{8, 10}));
}

TEST(TaskList, TasksMayNameLaterOnes) {
  const PlayedList played(R"(
kind: tasks
tasks:
  - {name: reply, from: 1, to: 0, bytes: 2 B, after: question}
  - {name: question, from: 0, to: 1, bytes: 4 B}
)");
  EXPECT_EQ(played.ran("reply", 1), (Span{4, 6}));
}

TEST(TaskList, StreamsAndQueuesKeepTheirOrder) {
  const PlayedList played(R"(
kind: tasks
tasks:
  - {name: a, from: 0, to: 1, bytes: 4 B}
  - {name: b, from: 0, to: 2, bytes: 4 B}
  - {name: c, from: 0, to: 1, bytes: 4 B, queue: 1}
  - {name: d, from: 0, to: 1, bytes: 4 B, raw: true}
  - {name: e, from: 0, to: 1, bytes: 4 B, ordered: false}
  - {name: f, from: 0, to: 1, bytes: 4 B, stream: dp}
  - {name: g, from: 1, to: 0, bytes: 4 B}
  - {name: h, from: 0, to: 1, bytes: 4 B, raw: true, ordered: true}
  - {name: x, on: 0, compute: 1 ps}
  - {name: y, on: 0, compute: 1 ps}
  - {name: z, on: 0, compute: 1 ps, queue: 1}
)");
  for (const char* name : {"a", "c", "d", "e", "f"}) EXPECT_EQ(played.ran(name), (Span{0, 4})) << name;
  EXPECT_EQ(played.ran("b"), (Span{4, 8}));
  EXPECT_EQ(played.ran("h"), (Span{8, 12}));
  EXPECT_EQ(played.ran("g", 1), (Span{0, 4})) << "a receive keeps no stream busy";
  EXPECT_EQ(played.ran("x"), (Span{0, 1}));
  EXPECT_EQ(played.ran("y"), (Span{1, 2}));
  EXPECT_EQ(played.ran("z"), (Span{0, 1}));
}

constexpr const char* kTwoLayers = R"(
kind: tasks
iterations: 2
ranks: 2
tasks:
  - {name: f1, compute: 1 ps AFTER_G1}
  - {name: f2, compute: 1 ps AFTER_G2}
  - {name: b2, compute: 1 ps}
  - {name: g2, collective: all_reduce, bytes: 6 B, queue: 1, after: b2}
  - {name: b1, compute: 1 ps}
  - {name: g1, collective: all_reduce, bytes: 2 B, after: b1}
)";

std::string two_layers(const std::string& after_g1, const std::string& after_g2) {
  std::string yaml = kTwoLayers;
  yaml.replace(yaml.find("AFTER_G1"), 8, after_g1);
  yaml.replace(yaml.find("AFTER_G2"), 8, after_g2);
  return yaml;
}

TEST(TaskList, IterationsFollowAsAWholeUnlessATaskNamesTheOneBefore) {
  EXPECT_EQ(PlayedList(two_layers("", "")).end(), 18);
  const PlayedList overlapped(two_layers(", after_previous: g1", ", after_previous: [g2]"));
  EXPECT_EQ(overlapped.ran("f1", 0, 1), (Span{6, 7}));
  EXPECT_EQ(overlapped.ran("f2", 1, 1), (Span{9, 10}));
  EXPECT_EQ(overlapped.end(), 17);
}

// A receive of the next iteration is posted while a long task of this one still runs.
TEST(TaskList, ReceivesDoNotWaitForTheIterationBefore) {
  const PlayedList played(R"(
kind: tasks
iterations: 2
tasks:
  - {name: produce, on: 0, compute: 1 ps}
  - {name: data, from: 0, to: 1, bytes: 4 B, after: produce}
  - {name: long, on: 1, compute: 20 ps, after_previous: long}
  - {name: consume, on: 1, compute: 1 ps, queue: 1, after: data}
)");
  EXPECT_EQ(played.received("data", 1, 1).end, 10);
  EXPECT_EQ(played.ran("consume", 1, 1), (Span{10, 11}));
}

TEST(TaskList, EqualRanksShareAProgram) {
  const Program all = compiled(R"(
kind: tasks
ranks: 4096
tasks:
  - {name: work, compute: 1 ms}
  - {name: shift, from: 0-4095, to: [1-4095, 0], bytes: 1 MB, after: work}
  - {name: sum, collective: all_reduce, bytes: 1 MB, after: shift}
)");
  EXPECT_EQ(all.roles.size(), 1U);
  EXPECT_EQ(all.blocks.size(), 1U);
  EXPECT_EQ(all.blocks[0].items.size(), 4U);
  const Program some = compiled(R"(
kind: tasks
groups: {even: [0, 2, 4, 6], odd: [1, 3, 5, 7]}
tasks:
  - {name: a, on: even, compute: 1 ms}
  - {name: b, on: odd, collective: all_gather, bytes: 8 MB}
  - {name: c, from: even, to: odd, bytes: 1 MB}
  - {name: d, on: 9, compute: 1 ms}
)");
  EXPECT_EQ(rank_count(some), 10U);
  EXPECT_EQ(some.roles.size(), 4U) << "even ranks, odd ones, rank 8 without tasks, and rank 9";
  ASSERT_EQ(some.groups.size(), 1U);
  EXPECT_THAT(some.groups[0].ranks, ElementsAre(1, 3, 5, 7));
}

TEST(TaskList, RanksThatSendInARingWaitForBothEnds) {
  const PlayedList played(R"(
kind: tasks
tasks:
  - {name: work, on: 0, compute: 7 ps}
  - {name: shift, from: [0, 1, 2], to: [1, 2, 0], bytes: 2 B, after: work}
  - {name: next, on: [0, 1, 2], compute: 1 ps, after: shift}
)");
  EXPECT_EQ(played.ran("next", 0), (Span{9, 10}));
  EXPECT_EQ(played.ran("next", 1), (Span{9, 10})) << "it waits for the message from rank 0";
  EXPECT_EQ(played.ran("next", 2), (Span{2, 3}));
}

TEST(TaskList, ClassPriorityChannelAndTimeReachTheTasks) {
  const std::string yaml = R"(
kind: tasks
tasks:
  - {name: flow, from: 0, to: 1, bytes: 9 B, raw: true, class: 2, priority: 7, channel: 3, earliest: 5 ms}
  - {name: sum, on: 0-1, collective: all_reduce, bytes: 8 B, class: 1, priority: 4, stream: tp}
)";
  const auto source = parse_workload(yaml)->tasks(8);
  const Task flow = test::task_of(*source, 0, 0), arrival = test::task_of(*source, 1, 0);
  EXPECT_TRUE(flow.message().raw);
  EXPECT_EQ(flow.not_before, 5 * kMillisecond);
  EXPECT_EQ(flow.payload()->traits.traffic_class, 2);
  EXPECT_EQ(flow.payload()->traits.priority, 7);
  EXPECT_EQ(flow.payload()->traits.channel, 3U);
  EXPECT_EQ(arrival.not_before, 0);
  EXPECT_EQ(arrival.payload()->traits, flow.payload()->traits);
  const Task sum = test::task_of(*source, 1, 1);
  EXPECT_EQ(sum.stream, Stream::tp);
  EXPECT_EQ(sum.payload()->traits.traffic_class, 1);
  EXPECT_EQ(sum.payload()->traits.priority, 4);

  const auto read = make_role_program_source(compiled(yaml), "job.pb");
  EXPECT_EQ(test::task_of(*read, 0, 0).payload()->traits, flow.payload()->traits);
  EXPECT_EQ(test::task_of(*read, 1, 1).payload()->traits, sum.payload()->traits);
}

TEST(TaskList, CollectivesHaveRootsAndCounts) {
  const auto source = parse_workload(R"(
kind: tasks
ranks: 3
tasks:
  - {name: spread, on: [2, 0], collective: broadcast, bytes: 5 B, root: 1}
  - {name: tokens, collective: all_to_all_v, counts: [[0, 1, 2], [3, 0, 4], [5, 6, 0]]}
  - {name: all, collective: barrier}
)")
                          ->tasks(8);
  const Task spread = test::task_of(*source, 0, 0);
  EXPECT_EQ(spread.collective().root, 1U);
  EXPECT_THAT(source->group(spread.group()), ElementsAre(2U, 0U));
  const Task tokens = test::task_of(*source, 1, 0);
  ASSERT_NE(tokens.collective().counts, nullptr);
  EXPECT_EQ(tokens.collective().counts->members(), 3U);
}

TEST(TaskList, RanksAreThoseOfTheTasksOrOfTheCluster) {
  const auto ranks_of = [](const std::string& yaml) { return parse_workload(yaml)->tasks(8)->ranks(); };
  EXPECT_EQ(ranks_of("{kind: tasks, tasks: [{name: a, on: 4, compute: 1 s}]}"), 5U);
  EXPECT_EQ(ranks_of("{kind: tasks, tasks: [{name: a, on: 4, compute: 1 s}, {name: b, compute: 1 s}]}"), 8U);
  EXPECT_EQ(ranks_of("{kind: tasks, ranks: 6, tasks: [{name: a, on: 4, compute: 1 s}]}"), 6U);
  try {
    parse_workload("{kind: tasks, tasks: [{name: b, compute: 1 s}]}")->compile();
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'ranks' is missing"));
  }
}

bool has(const std::vector<std::uint32_t>& list, std::uint32_t rank) {
  return std::find(list.begin(), list.end(), rank) != list.end();
}

// RandomList: computations, collectives and messages of four ranks. Each may name earlier ones with which it
// shares a rank.
struct RandomList {
  explicit RandomList(std::uint64_t seed) : random(seed, "lists") {
    for (std::size_t i = 0; i < 14; ++i) add("t" + std::to_string(i));
  }

  RandomStream random;
  std::string yaml = "kind: tasks\nranks: 4\niterations: 2\ntasks:\n";
  std::vector<std::vector<std::uint32_t>> ranks;   // by task: those that begin it
  std::vector<std::vector<std::uint32_t>> others;  // by task: those that receive it
  std::vector<std::vector<std::size_t>> after;

 private:
  std::uint32_t draw(std::uint32_t below) { return static_cast<std::uint32_t>(random.bits() % below); }
  void add(const std::string& name) {
    const std::uint32_t rank = draw(4), other = (rank + 1 + draw(3)) % 4, kind = draw(3);
    std::string entry = "name: " + name;
    const std::string pair = std::to_string(rank) + ", " + std::to_string(other);
    if (kind == 0) entry += ", on: " + std::to_string(rank) + ", compute: " + std::to_string(draw(9)) + " ps";
    if (kind == 1) entry += ", on: [" + pair + "], collective: all_reduce, bytes: 3 B";
    if (kind == 2)
      entry += ", from: " + std::to_string(rank) + ", to: " + std::to_string(other) +
               ", bytes: 2 B, raw: " + (draw(2) == 0 ? "true" : "false");
    ranks.push_back(kind == 1 ? std::vector{rank, other} : std::vector{rank});
    others.push_back(kind == 2 ? std::vector{other} : std::vector<std::uint32_t>());
    after.emplace_back();
    std::string names;
    for (std::size_t i = 0; i + 1 < ranks.size(); ++i) {
      if (draw(3) != 0 || !shares(i)) continue;
      after.back().push_back(i);
      names += (names.empty() ? "t" : ", t") + std::to_string(i);
    }
    yaml += "  - {" + entry + ", after: [" + names + "]}\n";
  }
  bool shares(std::size_t task) const {
    return std::any_of(ranks.back().begin(), ranks.back().end(),
                       [&](std::uint32_t rank) { return has(ranks[task], rank) || has(others[task], rank); });
  }
};

TEST(TaskList, RandomListsRunToTheirEndInTheOrderThatTheyName) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const RandomList list(seed);
    const PlayedList played(list.yaml, 4, seed);
    for (std::size_t task = 0; task < list.ranks.size(); ++task) {
      for (const std::uint32_t rank : list.ranks[task]) {
        const Time start = played.ran("t" + std::to_string(task), rank, 1).start;
        for (const std::size_t before : list.after[task]) {
          const std::string name = "t" + std::to_string(before);
          if (has(list.ranks[before], rank)) {
            EXPECT_GE(start, played.ran(name, rank, 1).end) << list.yaml;
          }
          if (has(list.others[before], rank)) {
            EXPECT_GE(start, played.received(name, rank, 1).end) << list.yaml;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace netsim::task_list_test
