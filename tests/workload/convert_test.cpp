// Tests that workloads are described and converted. They check lists of tasks, facts and critical paths,
// GOAL's operations, and data-parallel replicas.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/collectives/execution/message_steps.h"
#include "sim/collectives/programs/named_plan.h"
#include "sim/core/errors.h"
#include "sim/workload/convert/convert.h"
#include "sim/workload/convert/data_replicas.h"
#include "sim/workload/convert/ideal_replay.h"
#include "sim/workload/convert/listed_program.h"
#include "sim/workload/convert/listed_rank.h"
#include "sim/workload/convert/workload_facts.h"
#include "sim/workload/trace/goal_schedule.h"
#include "tests/support/shared.h"
#include "tests/support/tasks_of.h"
#include "tests/support/workload_files.h"

namespace netsim::convert_test {
namespace {

using test::tasks_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

// Two ranks compute, and one of them twice. Then they exchange a message and reduce.
constexpr const char* kStep =
    "kind: tasks\nranks: 2\ntasks:\n"
    "  - {name: early, compute: 10 us}\n"
    "  - {name: late, compute: 30 us, on: 1}\n"
    "  - {name: part, from: 1, to: 0, bytes: 1 KB, after: late, raw: true}\n"
    "  - {name: sum, collective: all_reduce, bytes: 8 KB, after: [early, part]}\n";

std::optional<Time> given_time(const Work& work) {
  Time time = 0;
  for (const Kernel& kernel : work.kernels) time += kernel.duration;
  return time;
}

class Converted : public test::WorkloadFileTest {
 protected:
  Converted() : WorkloadFileTest("step.yaml") {}

  std::unique_ptr<TaskSource> opened(const std::string& text) const {
    std::unique_ptr<TaskSource> source = load(text);
    source->open();
    return source;
  }
  // Returns the schedule in GOAL, with the algorithms given.
  GoalSchedule goal(const std::string& text, const std::map<std::string, std::string>& algorithms = {}) {
    ConversionRules rules;
    rules.algorithms = algorithms;
    rules.duration = [](RankId, const Work& work) { return given_time(work); };
    notes_.clear();
    return goal_schedule(*opened(text), rules, notes_);
  }

  std::vector<std::string> notes_;
};

// Returns the operations of a rank, with what they wait for: a "<" before those of which the begin suffices.
std::vector<std::string> operations(const GoalRank& rank) {
  std::vector<std::string> texts;
  for (std::uint32_t i = 0; i < rank.ops.size(); ++i) {
    const GoalOp& op = rank.ops[i];
    std::string text = op.kind == GoalOp::Kind::calc
                           ? fmt::format("calc {}/{}", op.size, op.cpu)
                           : fmt::format("{} {}/{}/{}", op.kind == GoalOp::Kind::send ? "send" : "recv",
                                         op.size, op.peer, op.tag);
    for (const auto& [later, earlier] : rank.ends) text += later == i ? fmt::format(" {}", earlier) : "";
    for (const auto& [later, earlier] : rank.starts) text += later == i ? fmt::format(" <{}", earlier) : "";
    texts.push_back(std::move(text));
  }
  return texts;
}

// ---- Lists

TEST_F(Converted, QueuesBecomeDependencies) {
  const auto source = opened(kStep);
  const ListedRank rank = list_rank(*source, RankId(1));
  ASSERT_EQ(rank.tasks.size(), 4u);
  EXPECT_THAT(rank.after[0], IsEmpty());
  EXPECT_THAT(rank.after[1], ElementsAre(0));
  EXPECT_THAT(rank.after[2], ElementsAre(1));
  EXPECT_THAT(rank.after[3], ElementsAre(0, 2));
}

// `b` needs `x`, and follows `a` in their queue only.
TEST_F(Converted, QueuesAreNoDependencies) {
  const auto source = opened(
      "kind: tasks\nranks: 2\ntasks:\n  - {name: x, compute: 1 us}\n"
      "  - {name: a, collective: all_reduce, bytes: 8 KB}\n"
      "  - {name: b, collective: all_reduce, bytes: 8 KB, after: x}\n");
  const ListedRank rank = list_rank(*source, RankId(0));
  ASSERT_EQ(rank.tasks.size(), 3u);
  EXPECT_THAT(rank.queued[1], IsEmpty());
  EXPECT_THAT(rank.queued[2], ElementsAre(1));
  EXPECT_THAT(rank.dependencies(2), ElementsAre(0));
  EXPECT_THAT(rank.after[2], ElementsAre(0, 1));
}

TEST_F(Converted, AnIterationWaitsForTheOneBefore) {
  const auto source = opened(
      "kind: tasks\nranks: 1\niterations: 2\ntasks:\n  - {name: a, compute: 1 us}\n"
      "  - {name: b, compute: 1 us, queue: 1}\n");
  const ListedRank rank = list_rank(*source, RankId(0));
  ASSERT_EQ(rank.tasks.size(), 4u);
  EXPECT_THAT(rank.after[2], ElementsAre(0, 1));
  EXPECT_THAT(rank.after[3], ElementsAre(0, 1));
}

TEST_F(Converted, AProgramHasTheSameTasks) {
  const auto source = opened(kStep);
  const auto program = list_program(*source, {});
  program->open();
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const std::vector<Task> before = tasks_of(*source, rank), after = tasks_of(*program, rank);
    ASSERT_EQ(before.size(), after.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(before[i].kind(), after[i].kind());
      EXPECT_EQ(before[i].bytes(), after[i].bytes());
      EXPECT_EQ(before[i].stream, after[i].stream);
    }
    EXPECT_EQ(list_rank(*source, RankId(rank)).after, list_rank(*program, RankId(rank)).after);
  }
}

// ---- Facts

TEST_F(Converted, FactsCountEachCommunicationOnce) {
  const auto source = load(kStep);
  const WorkloadFacts facts = workload_facts(*source, given_time, 0);
  EXPECT_EQ(facts.ranks, 2u);
  EXPECT_EQ(facts.tasks, 7u);
  std::vector<std::string> kinds;
  for (const WorkloadFacts::KindRow& row : facts.kinds)
    kinds.push_back(fmt::format("{} {} {} {} {}", row.kind, row.tasks, row.calls,
                                static_cast<std::int64_t>(row.bytes), row.time / kMicrosecond));
  EXPECT_THAT(kinds,
              ElementsAre("all_reduce 2 1 8000 0", "compute 3 0 0 50", "receive 1 0 0 0", "send 1 1 1000 0"));
  EXPECT_EQ(facts.least_compute, 10 * kMicrosecond);
  EXPECT_EQ(facts.most_compute, 40 * kMicrosecond);
  EXPECT_EQ(facts.path.length, 40 * kMicrosecond);
}

TEST_F(Converted, ThePathCountsWhatARankSendsAtARate) {
  const auto source = load(kStep);
  // The message takes 1 us at 1 GB/s, and the all-reduce of 2 ranks 2 (2 - 1) / 2 of 8 us.
  const WorkloadFacts facts = workload_facts(*source, given_time, 8 * kGbps);
  EXPECT_EQ(facts.path.length, 49 * kMicrosecond);
  ASSERT_EQ(facts.path.shares.size(), 4u);
  EXPECT_EQ(facts.path.shares[0].name, "late");
  EXPECT_EQ(facts.path.shares[0].time, 30 * kMicrosecond);
  EXPECT_EQ(facts.path.tasks, 4u);
}

TEST_F(Converted, EarliestStartsAreWaiting) {
  const auto source = load("kind: tasks\nranks: 1\ntasks:\n  - {name: a, compute: 1 us, earliest: 5 us}\n");
  const WorkloadFacts facts = workload_facts(*source, given_time, 0);
  EXPECT_EQ(facts.path.length, 6 * kMicrosecond);
  EXPECT_EQ(facts.path.waiting, 5 * kMicrosecond);
}

TEST_F(Converted, ComputationsWithoutATimeAreCounted) {
  const auto source = load(kStep);
  const WorkloadFacts facts = workload_facts(
      *source, [](const Work&) { return std::nullopt; }, 0);
  EXPECT_EQ(facts.untimed, 3u);
  EXPECT_EQ(facts.path.length, 0);
}

// ---- Messages of collectives

std::vector<std::string> steps_of(const std::string& algorithm, CollectiveKind kind, std::uint32_t ranks,
                                  std::uint32_t index, Bytes bytes) {
  PlanName name;
  name.text = algorithm;
  name.kind = to_string(kind);
  name.ranks = ranks;
  const std::unique_ptr<Plan> plan = plan_named(name);
  std::vector<GpuId> members;
  for (std::uint32_t i = 0; i < ranks; ++i) members.emplace_back(i);
  CommunicationRequest request;
  request.kind = kind;
  request.members = &members;
  request.index = index;
  request.bytes = bytes;
  std::vector<std::string> texts;
  for (const MessageStep& step : message_steps(*plan, request)) {
    std::string text;
    if (step.from.member != kNoIndex) text += fmt::format("{}>{}", step.from.member, step.from.bytes);
    if (step.to.member != kNoIndex) text += fmt::format(" >{} {}", step.to.member, step.to.bytes);
    texts.push_back(std::move(text));
  }
  return texts;
}

TEST(MessageSteps, ARingPassesItsParts) {
  EXPECT_THAT(steps_of("ring", CollectiveKind::reduce_scatter, 3, 0, 3000),
              ElementsAre(" >1 1000", "2>1000 >1 1000", "2>1000"));
  EXPECT_THAT(steps_of("ring", CollectiveKind::all_reduce, 2, 1, 7), ElementsAre(" >0 4", "0>3 >0 3", "0>4"));
}

TEST(MessageSteps, EmptyPartsStillTravel) {
  EXPECT_THAT(steps_of("ring", CollectiveKind::reduce_scatter, 3, 0, 1),
              ElementsAre(" >1 1", "2>1 >1 1", "2>1"));
}

TEST(MessageSteps, SwitchesThatAddUpAreRefused) {
  try {
    steps_of("nvls", CollectiveKind::all_reduce, 4, 0, 4096);
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), HasSubstr("adds up in switches"));
  }
}

// ---- GOAL

TEST_F(Converted, GoalHasCalcsAndMessages) {
  const GoalSchedule schedule = goal(kStep, {{"all_reduce", "ring"}});
  ASSERT_EQ(schedule.ranks.size(), 2u);
  // The ring of two ranks: a send, what comes back and goes on, and the result.
  EXPECT_THAT(operations(schedule.ranks[0]),
              ElementsAre("calc 10000/0", "recv 1000/1/0", "send 4000/1/0 0 1", "recv 4000/1/1 <2",
                          "send 4000/1/1 3", "recv 4000/1/2 <4"));
  EXPECT_THAT(operations(schedule.ranks[1]),
              ElementsAre("calc 10000/0", "calc 30000/0 0", "send 1000/0/0 1", "send 4000/0/1 0 2",
                          "recv 4000/0/0 <3", "send 4000/0/2 4", "recv 4000/0/1 <5"));
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("messages of the named or default algorithms")));
}

TEST_F(Converted, IndependentCalcsHaveCpusOfTheirOwn) {
  const GoalSchedule schedule = goal(
      "kind: tasks\nranks: 1\ntasks:\n  - {name: a, compute: 1 us}\n"
      "  - {name: b, compute: 2 us, queue: 1}\n  - {name: c, compute: 3 us, queue: 2, after: [a, b]}\n"
      "  - {name: d, compute: 1500 ps, queue: 3, after: b, earliest: 2 us}\n");
  // The earliest start is a calc of the last cpu. A time between two nanoseconds is rounded.
  EXPECT_THAT(operations(schedule.ranks[0]),
              ElementsAre("calc 2000/255", "calc 1000/0", "calc 2000/1", "calc 3000/0 1 2", "calc 2/1 0 2"));
  EXPECT_THAT(notes_, ElementsAre("times rounded to GOAL's nanoseconds: 1",
                                  HasSubstr("share it, in GOAL they do not: 2")));
}

TEST_F(Converted, WhatGoalDoesNotHoldIsRefused) {
  try {
    goal(
        "kind: tasks\nranks: 2\ntasks:\n"
        "  - {name: x, collective: all_to_all_v, counts: [[0, 1 KB], [2 KB, 0]]}\n");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the notation has no place for a collective with counts"));
  }
}

bool same_op(const GoalOp& a, const GoalOp& b) {
  return a.kind == b.kind && a.cpu == b.cpu && a.nic == b.nic && a.size == b.size &&
         (a.kind == GoalOp::Kind::calc || (a.peer == b.peer && a.tag == b.tag));
}
void expect_same(const GoalSchedule& a, const GoalSchedule& b) {
  ASSERT_EQ(a.ranks.size(), b.ranks.size());
  const auto sorted = [](std::vector<GoalRank::Edge> edges) {
    std::sort(edges.begin(), edges.end());
    return edges;
  };
  for (std::size_t rank = 0; rank < a.ranks.size(); ++rank) {
    const GoalRank &one = a.ranks[rank], &other = b.ranks[rank];
    EXPECT_TRUE(std::equal(one.ops.begin(), one.ops.end(), other.ops.begin(), other.ops.end(), same_op));
    EXPECT_EQ(sorted(one.ends), sorted(other.ends));
    EXPECT_EQ(sorted(one.starts), sorted(other.starts));
  }
}
InputSet::File file_of(const std::string& bytes) {
  return InputSet::in_memory({{"schedule", bytes}}).files()[0];
}

TEST_F(Converted, BothFormsOfGoalAreReadAgain) {
  const GoalSchedule schedule = goal(kStep);
  expect_same(parse_goal_text(file_of(write_goal_text(schedule))), schedule);
  expect_same(parse_goal_binary(file_of(write_goal_binary(schedule))), schedule);
  GoalSchedule any = schedule;
  any.ranks[0].ops[1].peer = any.ranks[0].ops[1].tag = kAnyGoal;
  any.ranks[0].ops[1].nic = 3;
  expect_same(parse_goal_text(file_of(write_goal_text(any))), any);
  expect_same(parse_goal_binary(file_of(write_goal_binary(any))), any);
}

TEST(GoalSamples, TheBinaryFormIsThatOfTxt2bin) {
  NETSIM_NEEDS_SHARED("samples/goal");
  std::size_t samples = 0;
  for (const std::string& path : test::shared_files("samples/goal", ".goal")) {
    const std::string other = path.substr(0, path.size() - 4) + "bin";
    if (!std::filesystem::exists(other)) continue;
    std::ifstream text(path, std::ios::binary), binary(other, std::ios::binary);
    const std::string read(std::istreambuf_iterator<char>(text), {});
    const std::string expected(std::istreambuf_iterator<char>(binary), {});
    EXPECT_TRUE(write_goal_binary(parse_goal_text(file_of(read))) == expected) << path;
    ++samples;
  }
  EXPECT_GE(samples, 6u);
}

// ---- Data-parallel replicas

std::vector<RankId> ranks_of(const std::vector<std::uint32_t>& numbers) {
  return {numbers.begin(), numbers.end()};
}

// Ranks are (tensor 2, data 2, pipeline 2).
TEST(DataParallelReplicas, GroupsGrowOrMove) {
  const DataReplicas replicas(8, ranks_of({0, 2}), 3);
  EXPECT_EQ(replicas.problem(), "");
  EXPECT_EQ(replicas.ranks(), 12u);
  EXPECT_EQ(replicas.original(RankId(5)), RankId(1));
  EXPECT_EQ(replicas.original(RankId(11)), RankId(5));
  EXPECT_EQ(replicas.group(ranks_of({0, 2}), RankId(0)), ranks_of({0, 2, 4}));
  EXPECT_EQ(replicas.group(ranks_of({0, 1}), RankId(4)), ranks_of({4, 5}));
  EXPECT_EQ(replicas.peer(RankId(4), RankId(2)), RankId(8));
}

TEST(DataParallelReplicas, OthersAreRefused) {
  EXPECT_THAT(DataReplicas(8, ranks_of({0}), 2).problem(), HasSubstr("two ranks or more"));
  EXPECT_THAT(DataReplicas(8, ranks_of({0, 8}), 2).problem(),
              HasSubstr("ranks are 0, 8; allowed: ranks from 0 to 7"));
  EXPECT_THAT(DataReplicas(8, ranks_of({0, 1, 3}), 2).problem(), HasSubstr("a constant number apart"));
  EXPECT_THAT(DataReplicas(8, ranks_of({0, 3}), 2).problem(), HasSubstr("do not divide the 8 ranks"));
  const DataReplicas replicas(8, ranks_of({0, 2}), 3);
  EXPECT_THROW(replicas.peer(RankId(2), RankId(0)), InputError);
  EXPECT_THROW(replicas.group(ranks_of({0, 1, 2}), RankId(0)), InputError);
}

}  // namespace
}  // namespace netsim::convert_test
