// Tests that tasks are ready exactly when their streams, dependencies and iterations allow, in whatever order
// they end. Expressions over axes give the right ranks, and programs that cannot run are refused.
#include "sim/workload/program/role_program_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "sim/core/errors.h"
#include "sim/workload/program/program_file.h"
#include "tests/support/tasks_of.h"
#include "tests/workload/program/small_programs.h"
#include "tests/workload/task_player.h"

namespace netsim::role_program_source_test {
namespace {

using netsim::test::compute_op;
using netsim::test::fixed_work;
using netsim::test::TaskPlayer;
using netsim::test::two_ranks;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string refusal(Program program) {
  try {
    make_role_program_source(std::move(program), "job.pb");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

// One rank that runs these operations.
Program one_rank(const std::vector<ProgramOp>& ops, std::uint32_t iterations = 1) {
  ProgramBuilder builder("one");
  builder.axis("rank", 1);
  builder.work(fixed_work("work", 1));
  ProgramBlock block{"main", {}};
  for (const ProgramOp& op : ops) block.items.emplace_back(op);
  builder.role({"only", {}, builder.block(block)});
  builder.program().iterations = iterations;
  return builder.finish();
}

std::vector<std::uint32_t> ids(const std::vector<Task>& tasks) {
  std::vector<std::uint32_t> result;
  result.reserve(tasks.size());
  for (const Task& task : tasks) result.push_back(task.id);
  return result;
}
std::vector<std::uint32_t> started(TaskSource& source) {
  std::vector<Task> ready;
  source.start(0, ready);
  return ids(ready);
}
std::vector<std::uint32_t> completed(TaskSource& source, std::uint32_t id) {
  std::vector<Task> ready;
  source.complete(0, id, ready);
  return ids(ready);
}

TEST(RoleProgramSource, KeepsTheOrderOfStreamsAndQueues) {
  ProgramOp second_queue = compute_op(), unordered = compute_op();
  second_queue.queue = 1;
  unordered.unordered = true;
  const auto source = make_role_program_source(
      one_rank({compute_op(), compute_op(), second_queue, unordered, second_queue, compute_op()}), "job.pb");
  EXPECT_THAT(started(*source), ElementsAre(0, 2, 3));
  EXPECT_THAT(completed(*source, 2), ElementsAre(4));
  EXPECT_THAT(completed(*source, 3), IsEmpty());
  EXPECT_THAT(completed(*source, 0), ElementsAre(1));
  EXPECT_THAT(completed(*source, 4), IsEmpty());
  EXPECT_THAT(completed(*source, 1), ElementsAre(5));
}

// An all-reduce of 64 bytes and an all-gather of 100 in one call, then one by itself.
TEST(RoleProgramSource, CollectivesOfACallKnowItsTraffic) {
  Program program = two_ranks();
  for (ProgramBlock& block : program.blocks) {
    ProgramOp other = std::get<ProgramOp>(block.items[3]);
    other.collective = CollectiveKind::all_gather;
    other.bytes = 100;
    other.after.clear();
    other.joins = true;
    block.items.emplace_back(other);
    other.joins = false;
    block.items.emplace_back(other);
  }
  const auto source = make_role_program_source(program, "job.pb");
  EXPECT_EQ(test::task_of(*source, 0, 3).collective().grouped, (GroupedTraffic{0, 228}));
  EXPECT_EQ(test::task_of(*source, 1, 4).collective().grouped, (GroupedTraffic{128, 228}));
  EXPECT_EQ(test::task_of(*source, 0, 5).collective().grouped, GroupedTraffic());
}

TEST(RoleProgramSource, WaitsForAllDependencies) {
  ProgramOp joined = compute_op();
  joined.unordered = true;
  ProgramOp last = joined;
  last.after = {1, 2, 2, 3};
  const auto source = make_role_program_source(one_rank({joined, joined, joined, last}), "job.pb");
  EXPECT_THAT(started(*source), ElementsAre(0, 1, 2));
  EXPECT_THAT(completed(*source, 2), IsEmpty());
  EXPECT_THAT(completed(*source, 0), IsEmpty());
  EXPECT_THAT(completed(*source, 1), ElementsAre(3));
}

TEST(RoleProgramSource, StartsAnIterationAfterTheOneBefore) {
  ProgramOp beside = compute_op();
  beside.unordered = true;
  const auto source = make_role_program_source(one_rank({compute_op(), compute_op(), beside}, 3), "job.pb");
  EXPECT_EQ(test::task_count(*source, 0), 9U);
  EXPECT_EQ(test::task_of(*source, 0, 7).iteration, 2U);
  EXPECT_THAT(started(*source), ElementsAre(0, 2));
  EXPECT_THAT(completed(*source, 0), ElementsAre(1));
  EXPECT_THAT(completed(*source, 1), IsEmpty());
  EXPECT_THAT(completed(*source, 2), ElementsAre(3, 5));
  EXPECT_THAT(completed(*source, 5), IsEmpty());
  EXPECT_THAT(completed(*source, 3), ElementsAre(4));
  EXPECT_THAT(completed(*source, 4), ElementsAre(6, 8));
  EXPECT_THAT(completed(*source, 6), ElementsAre(7));
  EXPECT_THAT(completed(*source, 8), IsEmpty());
  EXPECT_THAT(completed(*source, 7), IsEmpty());
}

TEST(RoleProgramSource, DependsOnThePreviousIterationWhereItSaysSo) {
  // Task 0 computes and waits for task 0 and (order of the stream) task 1 of the iteration before. Task 1
  // computes. Task 2 is unordered and waits for nothing, hence for the whole previous iteration.
  ProgramOp again = compute_op(), beside = compute_op();
  again.after_previous = {0};
  beside.unordered = true;
  const auto source = make_role_program_source(one_rank({again, compute_op(), beside}, 2), "job.pb");
  EXPECT_THAT(started(*source), ElementsAre(0, 2));
  EXPECT_THAT(completed(*source, 0), ElementsAre(1));
  EXPECT_THAT(completed(*source, 1), ElementsAre(3));  // though 2 is not done
  EXPECT_THAT(completed(*source, 3), ElementsAre(4));
  EXPECT_THAT(completed(*source, 4), IsEmpty());
  EXPECT_THAT(completed(*source, 2), ElementsAre(5));
  EXPECT_THAT(completed(*source, 5), IsEmpty());
}

TEST(RoleProgramSource, UnrollsNestedRepeats) {
  ProgramBuilder builder("nested");
  builder.axis("rank", 1);
  builder.work(fixed_work("work", 1));
  const std::uint32_t inner = builder.block({"inner", {compute_op(), compute_op()}});
  const std::uint32_t middle = builder.block({"middle", {ProgramRepeat{inner, 3}, compute_op()}});
  builder.role({"only", {}, builder.block({"outer", {ProgramRepeat{middle, 2}, compute_op()}})});
  const auto source = make_role_program_source(builder.finish(), "job.pb");
  EXPECT_EQ(test::task_count(*source, 0), 15U);
}

TEST(RoleProgramSource, ResolvesGroupsAndPeersOverAxes) {
  ProgramBuilder builder("grid");
  const auto tp = builder.axis("tp", 2), dp = builder.axis("dp", 3), pp = builder.axis("pp", 4);
  const auto tensor = builder.group({{{tp, {}}}, {}, 0});
  const auto ends = builder.group({{{pp, {0, 3}}}, {}, 0});
  const auto both = builder.group({{{tp, {}}, {dp, {}}}, {}, 0});
  const auto tensor_again = builder.group({{{tp, {}}}, {}, 1});
  for (const std::uint32_t stage : {0U, 1U, 2U, 3U}) {
    BlockBuilder main(builder, "stage");
    for (const auto group : {tensor, both, tensor_again}) {
      main.collective("sum", CollectiveKind::all_reduce, Stream::tp, 0, group, 8, {});
    }
    main.send("ring", {PeerExpression::Kind::offset, true, pp, 1, 0}, 0, 8, {});
    main.receive("ring", 1, {PeerExpression::Kind::offset, true, pp, -1, 0}, 0, 8);
    if (stage == 0 || stage == 3)
      main.collective("ends", CollectiveKind::all_reduce, Stream::pp, 0, ends, 8, {});
    builder.role({"stage", {{pp, {stage}}}, main.finish()});
  }
  const auto source = make_role_program_source(builder.finish(), "job.pb");
  ASSERT_EQ(source->ranks(), 24U);
  const std::uint32_t rank = 1 + 2 * 2 + 6 * 3;  // tp 1, dp 2, pp 3
  EXPECT_THAT(source->group(test::task_of(*source, rank, 0).group()), ElementsAre(22, 23));
  EXPECT_THAT(source->group(test::task_of(*source, rank, 1).group()), ElementsAre(18, 19, 20, 21, 22, 23));
  EXPECT_THAT(source->group(test::task_of(*source, rank, 5).group()), ElementsAre(5, 23));
  EXPECT_EQ(test::task_of(*source, rank, 3).message().peer, 5U);
  EXPECT_EQ(test::task_of(*source, rank, 4).message().peer, 17U);
  EXPECT_EQ(test::task_of(*source, rank, 0).group(), test::task_of(*source, 22, 0).group());
  EXPECT_NE(test::task_of(*source, rank, 0).group(), test::task_of(*source, 21, 0).group());
  EXPECT_NE(test::task_of(*source, rank, 0).group(),
            test::task_of(*source, rank, 2).group());  // another communicator
  TaskPlayer player(*source);
  player.run();
  EXPECT_TRUE(player.all_done());
}

TEST(RoleProgramSource, EqualGroupsAreOneHoweverWritten) {
  ProgramBuilder builder("equal");
  const auto axis = builder.axis("rank", 2);
  const auto by_axis = builder.group({{{axis, {}}}, {}, 0});
  const auto by_rank = builder.group({{}, {0, 1}, 0});
  for (const std::uint32_t rank : {0U, 1U}) {
    BlockBuilder main(builder, "rank");
    main.collective("sum", CollectiveKind::all_reduce, Stream::dp, 0, rank == 0 ? by_axis : by_rank, 8, {});
    builder.role({"rank", {{axis, {rank}}}, main.finish()});
  }
  const auto source = make_role_program_source(builder.finish(), "job.pb");
  EXPECT_EQ(test::task_of(*source, 0, 0).group(), test::task_of(*source, 1, 0).group());
}

// Ranks 0, 1 | 2, 3, 4: each list is a group, and a table says who sends to whom.
TEST(RoleProgramSource, ResolvesListsAndTables) {
  ProgramBuilder builder("lists");
  const auto axis = builder.axis("rank", 5);
  GroupExpression lists, backwards;
  lists.lists = {{0, 1}, {4, 3, 2}};
  backwards.lists = {{1, 0}, {4, 3, 2}};
  const auto group = builder.group(lists), other = builder.group(backwards);
  const auto table = builder.table({2, 3, 0, 1, 4});
  const auto to = [&](std::uint32_t of) {
    return PeerExpression{PeerExpression::Kind::table, false, 0, 0, 0, of};
  };
  for (const bool sends : {true, false}) {
    BlockBuilder main(builder, "rank");
    main.collective("sum", CollectiveKind::all_reduce, Stream::tp, 0, group, 8, {});
    if (sends) main.send("give", to(table), 3, 8, {0});
    if (!sends) main.receive("take", 1, to(table), 3, 8, {});
    builder.role({"role",
                  {{axis, sends ? std::vector<std::uint32_t>{0, 1} : std::vector<std::uint32_t>{2, 3}}},
                  main.finish()});
  }
  BlockBuilder last(builder, "rank");
  last.collective("sum", CollectiveKind::all_reduce, Stream::tp, 0, other, 8, {});
  builder.role({"last", {{axis, {4}}}, last.finish()});
  const Program program = builder.finish();
  const auto source = make_role_program_source(program, "job.pb");
  EXPECT_THAT(source->group(test::task_of(*source, 1, 0).group()), ElementsAre(0, 1));
  EXPECT_THAT(source->group(test::task_of(*source, 2, 0).group()), ElementsAre(4, 3, 2));
  EXPECT_EQ(test::task_of(*source, 1, 1).message().peer, 3U);
  EXPECT_EQ(test::task_of(*source, 2, 1).message().peer, 0U);
  TaskPlayer player(*source);
  player.run();
  EXPECT_TRUE(player.all_done());
  // Through a file, too.
  const std::string bytes = serialize_program(program);
  EXPECT_EQ(serialize_program(parse_program(bytes, "job.pb")), bytes);
  EXPECT_EQ(parse_program(bytes, "job.pb").groups, program.groups);

  const auto refusal = [&](auto change) -> std::string {
    Program changed = program;
    change(changed);
    try {
      make_role_program_source(std::move(changed), "job.pb");
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal([](Program& p) { p.groups[0].lists[1].back() = 0; }),
              HasSubstr("groups[0].lists[1]: rank 0 is named twice"));
  EXPECT_THAT(refusal([](Program& p) { p.groups[0].lists[0].back() = 5; }),
              HasSubstr("groups[0].lists[0]: rank 5 is out of range"));
  EXPECT_THAT(refusal([](Program& p) { p.groups[0].lists.emplace_back(); }),
              HasSubstr("groups[0].lists[2]: no rank is named"));
  EXPECT_THAT(refusal([](Program& p) { p.groups[0].ranks = {0, 1}; }), HasSubstr("a group is either axes"));
  EXPECT_THAT(refusal([](Program& p) { p.tables[0][1] = 5; }), HasSubstr("the peer is out of range"));
  EXPECT_THAT(refusal([](Program& p) { p.tables[0][1] = -1; }), HasSubstr("the peer is out of range"));
  EXPECT_THAT(refusal([](Program& p) { p.tables[0][1] = 1; }), HasSubstr("the peer is the rank itself"));
  EXPECT_THAT(refusal([](Program& p) { p.tables[0].resize(1); }), HasSubstr("the peer is out of range"));
}

TEST(RoleProgramSource, TakesBytesAndDurationsFromTables) {
  Program program = two_ranks();
  program.tables = {{30, 40}, {100, 200}};
  for (ProgramBlock& block : program.blocks) {
    std::get<ProgramOp>(block.items[0]).table_plus_one = 1;
  }
  const auto source = make_role_program_source(program, "job.pb");
  const auto duration = [&](std::uint32_t rank) {
    return source->works()[test::task_of(*source, rank, 0).work()].kernels.at(0).duration;
  };
  EXPECT_EQ(duration(0), 30);
  EXPECT_EQ(duration(1), 40);
  for (ProgramBlock& block : program.blocks) std::get<ProgramOp>(block.items[1]).table_plus_one = 2;
  EXPECT_THAT(refusal(program), HasSubstr("100 bytes are sent and 200 received"));
  program.tables[1] = {300, 300};
  const auto equal = make_role_program_source(program, "job.pb");
  EXPECT_EQ(test::task_of(*equal, 0, 1).bytes(), 300);
}

// Rows of a table are iterations, and begin again behind the last; choices are of works and of counts.
TEST(RoleProgramSource, TablesMayDifferByIteration) {
  Program program = two_ranks();
  program.iterations = 5;
  program.works.push_back(program.works[0]);
  program.works.back().name = "other";
  program.tables = {{0, 1, 1, 0}, {7, 7, 9, 9, 11, 11}, {1, 1, 0, 0}};
  program.counts = {BlockCounts(2, {0, 5, 6, 0}), BlockCounts(2, {0, 8, 9, 0})};
  for (ProgramBlock& block : program.blocks) {
    std::get<ProgramOp>(block.items[0]).choice_plus_one = 1;
    std::get<ProgramOp>(block.items[1]).table_plus_one = 2;
    auto& exchange = std::get<ProgramOp>(block.items[3]);
    exchange.collective = CollectiveKind::all_to_all_v;
    exchange.bytes = 0;
    exchange.counts_plus_one = 1;
    exchange.choice_plus_one = 3;
  }
  const auto source = make_role_program_source(program, "job.pb");
  const std::uint32_t size = test::task_count(*source, 0) / 5;
  for (std::uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(test::task_of(*source, 0, i * size).work(), i % 2) << i;
    EXPECT_EQ(test::task_of(*source, 1, i * size).work(), (i + 1) % 2) << i;
    EXPECT_EQ(test::task_of(*source, 0, i * size + 1).bytes(), 7 + 2 * (i % 3)) << i;
    EXPECT_EQ(test::task_of(*source, 1, i * size + 3).bytes(), i % 2 == 0 ? 9 : 6) << i;
  }
  program.tables[0][3] = 9;
  EXPECT_THAT(refusal(program), HasSubstr("the table's 9 is out of range"));
  program.tables[0][3] = 0;
  program.tables[2] = {1, 0, 0, 0};
  EXPECT_THAT(refusal(program), HasSubstr("of one group call different collectives"));
  program.tables[2] = {1, 1, 0, 0};
  program.tables[1] = {7, 7, 9, 8, 11, 11};
  EXPECT_THAT(refusal(program), HasSubstr("received"));
}

TEST(RoleProgramSource, RefusesProgramsThatCannotRun) {
  const auto op = [](Program& p, std::size_t block, std::size_t item) -> ProgramOp& {
    return std::get<ProgramOp>(p.blocks[block].items[item]);
  };
  const auto changed = [](auto change) {
    Program program = two_ranks();
    change(program);
    return refusal(program);
  };
  EXPECT_EQ(changed([](Program&) {}), "accepted");
  EXPECT_THAT(changed([](Program& p) { p.roles.pop_back(); }), HasSubstr("rank 1 has no role"));
  EXPECT_THAT(changed([](Program& p) { p.roles.push_back(p.roles[0]); }),
              HasSubstr("rank 0 already has role 0"));
  EXPECT_THAT(changed([](Program& p) { p.roles[0].block = 9; }),
              HasSubstr("roles[0].block: 9 is out of range"));
  EXPECT_THAT(changed([](Program& p) { p.roles[0].where[0].values = {2}; }),
              HasSubstr("roles[0].where[0].values: 2"));
  EXPECT_THAT(changed([](Program& p) { p.roles[0].where[0].axis = 3; }), HasSubstr("3 is not an axis"));
  EXPECT_THAT(changed([&](Program& p) { op(p, 0, 1).peer.offset = 2; }),
              HasSubstr("blocks[0].items[1].op.peer: the peer is out of range"));
  EXPECT_THAT(changed([&](Program& p) { op(p, 0, 1).peer.offset = 0; }),
              HasSubstr("the peer is the rank itself"));
  EXPECT_THAT(changed([&](Program& p) { op(p, 0, 1).peer.axis = 7; }), HasSubstr("the peer is out of range"));
  EXPECT_THAT(changed([&](Program& p) { op(p, 1, 1).peer.rank = 5; }), HasSubstr("the peer is out of range"));
  EXPECT_THAT(changed([&](Program& p) { op(p, 0, 1).tag = 8; }), HasSubstr("0 are sent and 1 received"));
  EXPECT_THAT(changed([&](Program& p) { op(p, 0, 1).bytes = 99; }),
              HasSubstr("99 bytes are sent and 100 received"));
  EXPECT_THAT(changed([&](Program& p) { op(p, 0, 1).raw = true; }), HasSubstr("raw at one end only"));
  EXPECT_THAT(changed([&](Program& p) { op(p, 0, 3).bytes = 65; }), HasSubstr("call different collectives"));
  EXPECT_THAT(changed([&](Program& p) { op(p, 0, 3).traffic_class = 1; }), HasSubstr("classes or circuits"));
  EXPECT_THAT(changed([&](Program& p) { op(p, 0, 3).root = 2; }), HasSubstr("op.root: 2 is out of range"));
  EXPECT_THAT(changed([](Program& p) { p.blocks[0].items.pop_back(); }),
              HasSubstr("only 1 of the 2 members"));
  EXPECT_THAT(changed([](Program& p) { p.groups[0] = {{}, {0}, 0}; }), HasSubstr("has one member"));
  EXPECT_THAT(changed([](Program& p) {
                p.groups[0] = {{}, {0, 5}, 0};
              }),
              HasSubstr("groups[0].ranks: rank 5"));
  EXPECT_THAT(changed([](Program& p) { p.groups[0] = {}; }), HasSubstr("either axes or a list"));
  EXPECT_THAT(changed([](Program& p) {
                p.groups[0].axes[0].members = {0, 0};
              }),
              HasSubstr("0 is named twice"));
  EXPECT_THAT(changed([&](Program& p) { op(p, 0, 0).after = {1}; }), HasSubstr("op.after: 1 reaches out"));
  EXPECT_THAT(changed([&](Program& p) { op(p, 0, 1).after = {0}; }), HasSubstr("op.after: 0 reaches out"));
  EXPECT_THAT(changed([&](Program& p) { op(p, 0, 1).after_previous = {-9}; }),
              HasSubstr("after_previous: -9"));
}

// They meet as collectives do, and are counted with those of their group; one rank may ask alone.
TEST(RoleProgramSource, AsksForCircuits) {
  ProgramBuilder builder("asks");
  const std::uint32_t axis = builder.axis("rank", 2);
  const std::uint32_t both = builder.group({{{axis, {}}}, {}, 0}), first = builder.group({{}, {0}, 0});
  for (const std::uint32_t rank : {0U, 1U}) {
    BlockBuilder main(builder, "rank");
    const auto ask = [&](const std::string& name, std::uint32_t group) {
      ProgramOp op;
      op.kind = TaskKind::circuits;
      op.stream = Stream::dp;
      op.group = group;
      op.circuits = op.name = builder.name(name);
      main.add(op, {});
    };
    ask("ring", both);
    main.collective("sum", CollectiveKind::all_reduce, Stream::dp, 0, both, 64, {});
    ask("pairs", both);
    if (rank == 0) ask("ring", first);
    builder.role({"rank", {{axis, {rank}}}, main.finish()});
  }
  builder.program().iterations = 2;
  const Program program = builder.finish();
  const auto source = make_role_program_source(program, "job.pb", {{"pairs", {"job.yaml", 7, 3, ""}}});
  ASSERT_EQ(source->circuits().size(), 2u);
  EXPECT_EQ(source->circuits()[0].name, "ring");
  EXPECT_EQ(source->circuits()[0].place.to_string(), "job.pb: blocks[0].items[0].op.circuits");
  EXPECT_EQ(source->circuits()[1].place.to_string(), "job.yaml:7:3");
  std::vector<std::uint32_t> sequences, asked;
  for (const Task& task : test::tasks_of(*source, 0)) {
    sequences.push_back(task.sequence);
    if (task.kind() == TaskKind::circuits) asked.push_back(task.circuits().circuits);
  }
  EXPECT_THAT(sequences, ElementsAre(0, 1, 2, 0, 3, 4, 5, 1));
  EXPECT_THAT(asked, ElementsAre(0, 1, 0, 0, 1, 0));
  TaskPlayer player(*source);
  player.run();
  EXPECT_TRUE(player.all_done());
  EXPECT_FALSE(player.mismatched);
}

TEST(RoleProgramSource, RefusesWrongBlocks) {
  const auto with = [](ProgramRepeat repeat) {
    Program program = two_ranks();
    program.blocks[0].items.emplace_back(repeat);
    return refusal(program);
  };
  EXPECT_THAT(with({0, 1}), HasSubstr("block 0 contains itself"));
  EXPECT_THAT(with({9, 1}), HasSubstr("9 is out of range"));
  EXPECT_THAT(with({1, 0}), HasSubstr("0 is not a number of repetitions"));
  EXPECT_THAT(with({1, UINT32_MAX}), HasSubstr("tasks are too many"));
  Program cycle = two_ranks();
  cycle.blocks.push_back({"a", {ProgramRepeat{3, 1}}});
  cycle.blocks.push_back({"b", {ProgramRepeat{2, 1}}});
  EXPECT_THAT(refusal(cycle), HasSubstr("contains itself"));
  Program empty = two_ranks();
  empty.blocks.push_back({"empty", {}});
  empty.blocks[0].items.emplace_back(ProgramRepeat{2, UINT32_MAX});
  EXPECT_THAT(refusal(empty), HasSubstr("is empty"));
}

TEST(RoleProgramSource, RefusesProgramsBeyondTheLimitsAtOnce) {
  ProgramBuilder builder("bomb");  // 2^40 operations in 41 small blocks
  builder.axis("rank", 1);
  builder.work(fixed_work("work", 1));
  std::uint32_t block = builder.block({"leaf", {compute_op()}});
  for (int i = 0; i < 40; ++i)
    block = builder.block({"double", {ProgramRepeat{block, 1}, ProgramRepeat{block, 1}}});
  builder.role({"only", {}, block});
  EXPECT_THAT(refusal(builder.finish()), HasSubstr("tasks are too many"));

  ProgramBuilder deep("deep");
  deep.axis("rank", 1);
  deep.work(fixed_work("work", 1));
  block = deep.block({"leaf", {compute_op()}});
  for (int i = 0; i < 100; ++i) block = deep.block({"nest", {ProgramRepeat{block, 1}}});
  deep.role({"only", {}, block});
  EXPECT_THAT(refusal(deep.finish()), HasSubstr("nested more than 64 deep"));
}

// A random program of one rank, with dependencies of all kinds.
Program random_program() {
  std::vector<ProgramOp> ops(static_cast<std::size_t>(*rc::gen::inRange(1, 30)), compute_op());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    ops[i].queue = *rc::gen::inRange<std::uint32_t>(0, 3);
    ops[i].unordered = *rc::gen::arbitrary<bool>();
    for (int d = *rc::gen::inRange(0, 3); i > 0 && d > 0; --d) {
      ops[i].after.push_back(*rc::gen::inRange<std::uint32_t>(1, static_cast<std::uint32_t>(i) + 1));
    }
    if (*rc::gen::inRange(0, 8) == 0)
      ops[i].after_previous.push_back(*rc::gen::inRange(0, static_cast<int>(i) + 1));
  }
  return one_rank(ops, *rc::gen::inRange<std::uint32_t>(1, 5));
}

TEST(RoleProgramSource, EveryProgramEndsInEveryOrderAndKeepsItsOrder) {
  EXPECT_TRUE(rc::check([] {
    const Program program = random_program();
    const auto& items = program.blocks[program.roles[0].block].items;
    const auto source = make_role_program_source(program, "job.pb");
    TaskPlayer player(*source, *rc::gen::arbitrary<std::uint64_t>());
    player.run();
    RC_ASSERT(player.all_done());
    const std::size_t size = items.size();
    std::vector<std::size_t> place(player.played.size());
    for (std::size_t i = 0; i < player.played.size(); ++i) place[player.played[i].task.id] = i;
    for (std::size_t id = 0; id < place.size(); ++id) {
      const auto& op = std::get<ProgramOp>(items[id % size]);
      for (const std::uint32_t distance : op.after) RC_ASSERT(place[id - distance] < place[id]);
      for (const std::int32_t distance : op.after_previous) {
        if (id >= size) RC_ASSERT(place[id - size - static_cast<std::size_t>(distance)] < place[id]);
      }
      for (std::size_t before = 0; before < id % size; ++before) {
        const auto& other = std::get<ProgramOp>(items[before]);
        if (op.unordered || other.unordered || op.queue != other.queue) continue;
        RC_ASSERT(place[id - id % size + before] < place[id]);
      }
    }
  }));
}

}  // namespace
}  // namespace netsim::role_program_source_test
