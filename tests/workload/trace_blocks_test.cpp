// Tests that the parts of an uneven all-to-all, as each member recorded them, become the counts of all
// members. Parts that a trace does not have become equal ones.
#include "sim/workload/trace/trace_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/errors.h"
#include "sim/workload/trace/trace_program.h"
#include "tests/support/tasks_of.h"

namespace netsim::trace_blocks_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Sizes = std::vector<std::int64_t>;

TEST(SplitSizes, AListIsWholeOrCut) {
  EXPECT_EQ(split_sizes_in("[3, 0, 12]"), SplitSizes(Sizes{3, 0, 12}));
  EXPECT_EQ(split_sizes_in("3,0,12,"), SplitSizes(Sizes{3, 0, 12}));
  EXPECT_EQ(split_sizes_in("[]"), SplitSizes(Sizes{}));
  EXPECT_EQ(split_sizes_in(""), SplitSizes(Sizes{}));
  EXPECT_EQ(split_sizes_in("[1, 2, ..., 9]"), std::nullopt);
  EXPECT_EQ(split_sizes_in("[1.5]"), std::nullopt);
  EXPECT_EQ(split_sizes_in("[99999999999999999999]"), std::nullopt);
  EXPECT_FALSE(names_parts(split_sizes_in("[]")));
  EXPECT_TRUE(names_parts(split_sizes_in("[2, 2]")));
  EXPECT_TRUE(names_parts(split_sizes_in("[1, ..., 2]")));
}

TEST(SplitSizes, InputsOfARecordedCallHaveBothLists) {
  SplitSizes in = Sizes{}, out = Sizes{};
  EXPECT_TRUE(
      find_split_sizes("[[[4, 5, 0, 64, 2, 'cuda:0']], 12, ['0', 'default_pg'], 1, 'all_to_allv', "
                       "[1, 3], [2, 2], 0, 1, 2]",
                       in, out));
  EXPECT_EQ(in, SplitSizes(Sizes{1, 3}));
  EXPECT_EQ(out, SplitSizes(Sizes{2, 2}));
  EXPECT_FALSE(find_split_sizes("[[], 12, 'allreduce', [7], [8]]", in, out));
  EXPECT_TRUE(find_split_sizes("'all_to_all', [", in, out));
  EXPECT_EQ(in, SplitSizes(Sizes{1, 3}));
}

// Rows of the output are as long as those of the input.
TEST(SplitSizes, RowsHaveEqualBytes) {
  const TraceBlocks blocks = blocks_of_splits(Sizes{1, 3}, Sizes{2, 0}, 2, 400, std::nullopt);
  EXPECT_THAT(blocks.sends, ElementsAre(100, 300));
  EXPECT_THAT(blocks.receives, ElementsAre(200, 0));
  const TraceBlocks even = blocks_of_splits(Sizes{}, Sizes{5, 5}, 2, 8, 40);
  EXPECT_THAT(even.sends, ElementsAre(4, 4));
  EXPECT_THAT(even.receives, ElementsAre(20, 20));
  const TraceBlocks nothing = blocks_of_splits(Sizes{0, 0}, Sizes{0, 6}, 2, 0, std::nullopt);
  EXPECT_THAT(nothing.sends, ElementsAre(0, 0));
  EXPECT_THAT(nothing.receives, IsEmpty());
}

TEST(SplitSizes, ListsThatDoNotFitAreLeftOut) {
  const auto sends = [](const SplitSizes& in, Bytes bytes) {
    return blocks_of_splits(in, Sizes{}, 2, bytes, std::nullopt).sends;
  };
  EXPECT_THAT(sends(std::nullopt, 400), IsEmpty()) << "cut";
  EXPECT_THAT(sends(Sizes{1, 2, 1}, 400), IsEmpty()) << "three parts of two members";
  EXPECT_THAT(sends(Sizes{1, 2}, 400), IsEmpty()) << "three rows of 133.3 bytes";
  EXPECT_THAT(sends(Sizes{0, 0}, 400), IsEmpty());
  EXPECT_THAT(sends(Sizes{-1, 3}, 2), IsEmpty());
  EXPECT_THAT(sends(Sizes{INT64_MAX, 3}, 2), IsEmpty());
}

std::shared_ptr<const TraceBlocks> blocks(std::vector<Bytes> sends, std::vector<Bytes> receives = {}) {
  return std::make_shared<TraceBlocks>(TraceBlocks{std::move(sends), std::move(receives), {}});
}

TEST(GatheredBlocks, SendsOfAllMembersAreTheCounts) {
  GatheredBlocks gathered(2);
  gathered.add(1, 9, blocks({4, 5}, {2, 5}));
  EXPECT_FALSE(gathered.complete());
  gathered.add(0, 3, blocks({1, 2}, {1, 4}));
  EXPECT_TRUE(gathered.complete());
  EXPECT_TRUE(gathered.agrees());
  EXPECT_THAT(gathered.counts().rows(), ElementsAre(1, 2, 4, 5));
}

TEST(GatheredBlocks, ReceiversMayDisagree) {
  GatheredBlocks gathered(2);
  gathered.add(0, 3, blocks({1, 2}));
  gathered.add(1, 9, blocks({4, 5}, {3, 5}));
  EXPECT_FALSE(gathered.agrees());
  EXPECT_EQ(gathered.counts().of(0, 1), 2);
}

TEST(GatheredBlocks, WithoutAllSendsPartsAreEqual) {
  GatheredBlocks gathered(2);
  gathered.add(0, 300, blocks({100, 200}));
  gathered.add(1, 500, nullptr);
  EXPECT_THAT(gathered.counts().rows(), ElementsAre(200, 200, 200, 200));
}

TEST(GatheredBlocks, SomethingIsSent) {
  GatheredBlocks gathered(2);
  gathered.add(0, 8, blocks({8, 0}));
  gathered.add(1, 0, blocks({0, 0}));
  EXPECT_THAT(gathered.counts().rows(), ElementsAre(8, 1, 0, 0));
}

TEST(GatheredBlocks, AMembersBlocksAreThoseOfTheCounts) {
  const BlockCounts counts(3, {0, 20, 10, 10, 0, 0, 30, 10, 0},
                           {10, 2, {0, 30, 10, 10, 0, 0, 40, 10, 0}, {20, 10, 10, 0, 40, 0}});
  GatheredBlocks gathered(3);
  for (std::uint32_t member = 0; member < 3; ++member)
    gathered.add(member, 0, std::make_shared<TraceBlocks>(blocks_of_member(counts, member)));
  EXPECT_THAT(blocks_of_member(counts, 0).receives, ElementsAre(0, 10, 30));
  EXPECT_TRUE(gathered.has_equal_tokens());
  EXPECT_TRUE(gathered.agrees());
  EXPECT_EQ(gathered.counts(), counts);
}

// ---- In a program

TraceTask uneven(TraceProgram& program, Bytes bytes, std::shared_ptr<const TraceBlocks> parts) {
  TraceTask task;
  task.kind = TaskKind::collective;
  task.name = program.name("tokens");
  task.collective = CollectiveKind::all_to_all_v;
  task.group = program.group({RankId(1), RankId(0)});
  task.bytes = bytes;
  task.blocks = std::move(parts);
  task.stream = Stream::ep;
  return task;
}

// The group's first member is rank 1.
TEST(TraceProgramBlocks, MembersSendTheirOwnParts) {
  TraceProgram program("trace", 2, "trace.et");
  program.add_rank(RankId(0), {uneven(program, 7, blocks({3, 4}))}, "trace.0.et");
  program.add_rank(RankId(1), {uneven(program, 3, blocks({1, 2}, {1, 9}))}, "trace.1.et");
  const auto source = program.finish({});
  for (const std::uint32_t rank : {0, 1}) {
    const Task task = test::task_of(*source, rank, 0);
    ASSERT_NE(task.collective().counts, nullptr);
    EXPECT_THAT(task.collective().counts->rows(), ElementsAre(1, 2, 3, 4));
    EXPECT_EQ(task.bytes(), 3);
  }
  EXPECT_THAT(source->notes(),
              ElementsAre(HasSubstr("receivers list other parts than their senders, whose parts count: 1")));
}

TEST(TraceProgramBlocks, UnknownPartsAreEqualAndNoted) {
  TraceProgram program("trace", 2, "trace.et");
  program.add_rank(RankId(0), {uneven(program, 30, nullptr)}, "trace.0.et");
  program.add_rank(RankId(1), {uneven(program, 10, blocks({1, 9}))}, "trace.1.et");
  const auto source = program.finish({});
  EXPECT_THAT(test::task_of(*source, 0, 0).collective().counts->rows(), ElementsAre(10, 10, 10, 10));
  EXPECT_THAT(source->notes(), ElementsAre(HasSubstr("replayed with equal parts: 1")));
}

TEST(TraceProgramBlocks, TokensOfOtherSizesAreRefused) {
  TraceProgram program("trace", 2, "trace.et");
  for (const std::uint32_t rank : {0, 1}) {
    TraceBlocks parts{{4, 4}, {}, {rank + 1, 1, {4, 4}, {4, 4}}};
    TraceTask task = uneven(program, 8, std::make_shared<TraceBlocks>(std::move(parts)));
    task.collective = CollectiveKind::dispatch;
    program.add_rank(RankId(rank), {task}, "trace.et");
  }
  EXPECT_THROW(program.finish({}), InputError);
}

}  // namespace
}  // namespace netsim::trace_blocks_test
