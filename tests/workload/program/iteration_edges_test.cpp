// Tests that edges between iterations lead to the operations named, also in nested and repeated blocks.
// Operations without dependencies wait for the last computation instead of the whole iteration.
#include "sim/workload/program/iteration_edges.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/workload/program/small_programs.h"
#include "tests/workload/task_player.h"

namespace netsim::iteration_edges_test {
namespace {

using netsim::test::compute_op;
using netsim::test::fixed_work;
using netsim::test::TaskPlayer;

using Previous = std::map<std::uint32_t, std::vector<std::int32_t>>;

// Lists after_previous of all operations that have one, by position in the unrolled block.
void list(const Program& program, std::uint32_t block, std::uint32_t& position, Previous& found) {
  for (const auto& item : program.blocks[block].items) {
    if (const auto* repeat = std::get_if<ProgramRepeat>(&item)) {
      for (std::uint32_t i = 0; i < repeat->count; ++i) list(program, repeat->block, position, found);
      continue;
    }
    const auto& op = std::get<ProgramOp>(item);
    if (!op.after_previous.empty()) found[position] = op.after_previous;
    ++position;
  }
}
Previous previous_of(const Program& program, std::uint32_t block, std::uint32_t size) {
  Previous found;
  std::uint32_t position = 0;
  list(program, block, position, found);
  EXPECT_EQ(position, size);
  return found;
}

ProgramOp behind(std::uint32_t distance) {
  ProgramOp op = compute_op();
  op.after = {distance};
  return op;
}

// Ten operations: one, three times a block of two, and a block of one of these and another operation.
TEST(IterationEdges, LeadIntoNestedAndRepeatedBlocks) {
  ProgramBuilder builder("nested");
  builder.axis("rank", 1);
  builder.work(fixed_work("work", 1));
  const std::uint32_t inner = builder.block({"inner", {compute_op(), behind(1)}});
  const std::uint32_t middle = builder.block({"middle", {ProgramRepeat{inner, 1}, behind(1)}});
  const std::uint32_t outer =
      builder.block({"outer", {compute_op(), ProgramRepeat{inner, 3}, ProgramRepeat{middle, 1}}});
  const std::uint32_t connected = connect_iterations(builder, outer, {{0, 8}, {3, 9}, {3, 8}, {8, 0}}, 9);
  EXPECT_EQ(previous_of(builder.program(), connected, 10), (Previous{{0, {-8}}, {3, {-6, -5}}, {8, {8}}}));
  EXPECT_EQ(builder.block_size(connected), 10U);
  EXPECT_TRUE(previous_of(builder.program(), outer, 10).empty());  // the block itself stays as it was
}

// Without an edge, a receive that depends on nothing and an unordered operation would wait for all of the
// iteration before.
TEST(IterationEdges, MakeWhatDependsOnNothingWaitForTheLastComputation) {
  ProgramBuilder builder("roots");
  builder.axis("rank", 1);
  builder.work(fixed_work("work", 1));
  ProgramOp beside = compute_op(), queued = compute_op(), update = behind(1);
  beside.unordered = true;
  queued.queue = 1;
  update.unordered = true;
  const std::uint32_t block =
      builder.block({"main", {beside, compute_op(), queued, queued, compute_op(), update}});
  const std::uint32_t connected = connect_iterations(builder, block, {{1, 5}}, 4);
  EXPECT_EQ(previous_of(builder.program(), connected, 6), (Previous{{0, {-4}}, {1, {-4}}, {2, {-2}}}));
}

// Two layers: forwards and backwards of 10 in one stream, updates that take long beside them.
TEST(IterationEdges, LetAnIterationBeginBeforeTheOneBeforeHasEnded) {
  ProgramBuilder builder("layers");
  builder.axis("rank", 1);
  BlockBuilder main(builder, "main");
  for (int i = 0; i < 4; ++i) main.compute(fixed_work("step", 10));  // forwards of 0 and 1, backwards of 1, 0
  ProgramOp update;
  update.unordered = true;
  update.work = builder.work(fixed_work("update", 25));
  update.name = builder.name("update");
  const auto of_1 = main.add(update, {2}), of_0 = main.add(update, {3});
  const std::uint32_t block = main.finish();
  builder.role({"only", {}, connect_iterations(builder, block, {{0, of_0}, {1, of_1}}, 3)});
  builder.program().iterations = 2;
  const auto source = make_role_program_source(builder.finish(), "job.pb");
  TaskPlayer player(*source, 3, {10, 25});
  player.run();
  ASSERT_TRUE(player.all_done());
  // The update of layer 0 ends at 65, that of layer 1 at 55. The second iteration computes from 65 to 105.
  EXPECT_EQ(player.end(), 130);
}

}  // namespace
}  // namespace netsim::iteration_edges_test
