// Tests that recorded tasks become a program in an order in which they can run. A trace whose ranks do not
// fit together is refused with the task.
#include "sim/workload/trace/trace_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/errors.h"
#include "tests/support/tasks_of.h"

namespace netsim::trace_program_test {
namespace {

using test::tasks_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct Trace {
  explicit Trace(std::uint32_t ranks) : program("trace", ranks, "trace.et") {}

  TraceTask computation(const std::string& name, Time duration, std::uint64_t order,
                        std::vector<std::uint32_t> after = {}) {
    TraceTask task;
    task.name = program.name(name);
    task.work = program.fixed_work(name, duration);
    task.order = order;
    task.after = std::move(after);
    return task;
  }
  TraceTask collective(const std::vector<RankId>& members, Bytes bytes,
                       CollectiveKind kind = CollectiveKind::all_reduce) {
    TraceTask task;
    task.kind = TaskKind::collective;
    task.name = program.name("gradients");
    task.collective = kind;
    task.group = program.group(members);
    task.bytes = bytes;
    task.stream = Stream::dp;
    return task;
  }
  TraceTask message(TaskKind kind, RankId peer, Bytes bytes, std::uint32_t tag = 0) {
    TraceTask task;
    task.kind = kind;
    task.name = program.name("activations");
    task.peer = peer;
    task.bytes = bytes;
    task.tag = tag;
    task.stream = Stream::pp;
    return task;
  }
  TraceProgram program;
};

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

const std::vector<RankId> kBoth{RankId(0), RankId(1)};

TEST(TraceProgram, EachTaskFollowsThoseItWaitsForAndOthersFollowTheirOrder) {
  Trace trace(1);
  trace.program.add_rank(RankId(0),
                         {trace.computation("waits", 30, 1, {2}), trace.computation("third", 10, 3),
                          trace.computation("second", 20, 2)},
                         "trace.0.et");
  const auto source = trace.program.finish({});
  std::vector<std::string> names;
  for (const Task& task : tasks_of(*source, 0)) names.push_back(source->name(task.name));
  EXPECT_THAT(names, ::testing::ElementsAre("second", "waits", "third"));
  std::vector<Task> ready;
  source->start(RankId(0), ready);
  EXPECT_EQ(ready.size(), 2u) << "nothing orders them but the dependencies";
}

TEST(TraceProgram, TasksThatWaitForEachOtherAreRefused) {
  Trace trace(1);
  std::vector<TraceTask> circle{trace.computation("a", 1, 1, {1}), trace.computation("b", 1, 2, {0})};
  circle[0].label = "node 17";
  EXPECT_THAT(refusal([&] { trace.program.add_rank(RankId(0), circle, "trace.0.et"); }),
              HasSubstr("trace.0.et: node 17 ('a') waits for 'b', which waits for the first one"));
}

TEST(TraceProgram, BothEndsOfAMessageAreNeeded) {
  Trace alone(2);
  alone.program.add_rank(RankId(0), {alone.message(TaskKind::send, RankId(1), 100, 3)}, "trace.0.et");
  EXPECT_THAT(refusal([&] { alone.program.finish({}); }),
              HasSubstr("trace.et: rank 0 sends to rank 1 with tag 3 ('activations'), and that rank has no "
                        "receive for it"));
  Trace differs(2);
  differs.program.add_rank(RankId(0), {differs.message(TaskKind::send, RankId(1), 100)}, "trace.0.et");
  EXPECT_THAT(refusal([&] {
                differs.program.add_rank(RankId(1), {differs.message(TaskKind::receive, RankId(0), 50)},
                                         "trace.1.et");
              }),
              HasSubstr("trace.1.et: 'activations': the message has 50 bytes here and 100 at rank 0"));
  Trace itself(2);
  EXPECT_THAT(refusal([&] {
                itself.program.add_rank(RankId(0), {itself.message(TaskKind::send, RankId(0), 1)},
                                        "trace.0.et");
              }),
              HasSubstr("the rank at the other end is 0; allowed: another one, 0 to 1"));
}

TEST(TraceProgram, MembersOfAGroupCallTheSameCollectives) {
  Trace differs(2);
  differs.program.add_rank(RankId(0), {differs.collective(kBoth, 100)}, "trace.0.et");
  EXPECT_THAT(
      refusal([&] { differs.program.add_rank(RankId(1), {differs.collective(kBoth, 200)}, "trace.1.et"); }),
      AllOf(HasSubstr("trace.1.et: 'gradients' is collective 1 of its group"),
            HasSubstr("all_reduce of 200 bytes at rank 1, and all_reduce of 100 bytes")));
  Trace lacks(2);
  lacks.program.add_rank(RankId(0), {lacks.collective(kBoth, 100)}, "trace.0.et");
  EXPECT_THAT(refusal([&] { lacks.program.finish({}); }),
              HasSubstr("rank 1 calls 0 collectives of a group of 2 ranks, and rank 0 more"));
  Trace foreign(3);
  EXPECT_THAT(
      refusal([&] { foreign.program.add_rank(RankId(2), {foreign.collective(kBoth, 1)}, "trace.2.et"); }),
      HasSubstr("rank 2 is no member of its group"));
}

// Ranks 0 and 1 are added together, and so are 2 and 3. Both have a group with the rank two behind them.
TEST(TraceProgram, OnlyCollectivesWithARootAreComparedByIt) {
  Trace trace(2);
  trace.program.add_rank(RankId(0), {trace.collective(kBoth, 100)}, "trace.0.et");
  EXPECT_THAT(
      refusal([&] { trace.program.add_rank(RankId(1), {trace.collective(kBoth, 101)}, "trace.1.et"); }),
      HasSubstr("all_reduce of 101 bytes at rank 1, and all_reduce of 100 bytes at rank 0"));
}

TEST(TraceProgram, RanksWithEqualTasksAreAddedTogether) {
  Trace trace(4);
  TraceTask sum = trace.collective(kBoth, 100);
  sum.group = trace.program.regular_groups(2, 2);
  TraceTask send = trace.message(TaskKind::send, RankId(0), 8);
  TraceTask receive = trace.message(TaskKind::receive, RankId(0), 8);
  send.distance = 2;
  receive.distance = -2;
  trace.program.add_ranks({RankId(0), RankId(1)}, {sum, send}, "table");
  trace.program.add_ranks({RankId(2), RankId(3)}, {sum, receive}, "table");
  const auto source = trace.program.finish({});
  EXPECT_EQ(source->group(tasks_of(*source, 3).at(0).collective().group),
            (std::vector<RankId>{RankId(1), RankId(3)}));
  EXPECT_EQ(tasks_of(*source, 1).at(1).message().peer, RankId(3));
  EXPECT_EQ(tasks_of(*source, 2).at(1).message().peer, RankId(0));
}

TEST(TraceProgram, RelativeMessagesAndRegularGroupsAreChecked) {
  Trace message(4);
  TraceTask send = message.message(TaskKind::send, RankId(0), 8);
  send.distance = 1;
  message.program.add_ranks({RankId(0), RankId(1)}, {send}, "table");
  EXPECT_THAT(refusal([&] { message.program.finish({}); }),
              HasSubstr("messages from rank 0 to rank 1 with tag 0: 1 are sent and 0 received"));
  Trace group(4);
  TraceTask sum = group.collective(kBoth, 100);
  sum.group = group.program.regular_groups(2, 2);
  group.program.add_ranks({RankId(0), RankId(1)}, {sum}, "table");
  EXPECT_THAT(refusal([&] { group.program.finish({}); }), HasSubstr("only 1 of the 2 members of the group"));
}

TEST(TraceProgram, GroupsHaveRanksOfTheTraceOnce) {
  Trace trace(2);
  EXPECT_THAT(refusal([&] {
                trace.program.group({RankId(0), RankId(2)});
              }),
              HasSubstr("rank 2 is in a group, and the trace has 2 ranks"));
  EXPECT_THAT(refusal([&] { trace.program.group({RankId(1), RankId(1)}); }), HasSubstr("in a group twice"));
  EXPECT_EQ(trace.program.group(kBoth), trace.program.group(kBoth));
}

TEST(TraceProgram, ACollectiveOfOneRankTakesNoTimeAndARankMayHaveNoTasks) {
  Trace trace(2);
  trace.program.add_rank(RankId(0), {trace.collective({RankId(0)}, 100)}, "trace.0.et");
  const auto source = trace.program.finish({"a note"});
  const std::vector<Task> tasks = tasks_of(*source, 0);
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0].kind(), TaskKind::host_thread);
  EXPECT_EQ(source->works()[tasks[0].work()].kernels[0].duration, 0);
  EXPECT_TRUE(tasks_of(*source, 1).empty());
  EXPECT_THAT(source->notes(), ::testing::ElementsAre("a note"));
  EXPECT_TRUE(source->uses_threads());
  EXPECT_FALSE(source->uses_hosts());
}

}  // namespace
}  // namespace netsim::trace_program_test
