// Does the proof find what is wrong? Every test damages a right plan, or writes a wrong one.
#include "sim/collectives/proof/proof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/resource.h>

#include <algorithm>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/proof/rank_sets.h"
#include "sim/core/registry.h"
#include "tests/collectives/table_plan.h"
#include "tests/support/sanitizers.h"

namespace netsim::proof_test {
namespace {

using Kind = Step::Kind;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TablePlan table(const std::string& algorithm, CollectiveKind kind, std::uint32_t ranks) {
  return TablePlan(*Registry<CollectiveAlgorithm>::instance().create(algorithm)->plan(kind, {ranks, 0}));
}
TablePlan ring(std::uint32_t ranks) { return table("ring", CollectiveKind::all_reduce, ranks); }
TablePlan tree(std::uint32_t ranks) { return table("double_binary_tree", CollectiveKind::all_reduce, ranks); }
TablePlan pairwise(std::uint32_t ranks) { return table("pairwise", CollectiveKind::all_to_all, ranks); }

TEST(Proof, AcceptsACopy) {
  EXPECT_EQ(prove(ring(6)), "");
  EXPECT_EQ(prove(tree(6)), "");
  EXPECT_EQ(prove(pairwise(6)), "");
}

// --- Contributions.

TEST(Proof, FindsAWrongChunk) {
  auto damaged = ring(4);
  damaged.list(1, 0)[2].source.chunk = 3;  // receives the sum of chunk 3 and adds its own to it
  damaged.list(1, 0)[2].source.chunk = 2;
  EXPECT_EQ(
      prove(damaged),
      "rank 1 thread block 0 step 2: receive from rank 0 thread block 0, add chunk 2 of the input and "
      "send the sum to rank 2 thread block 0: adds contributions {0, 3} of chunk 3 to contributions {1} "
      "of chunk 2");
  auto blocks = pairwise(4);
  blocks.list(1, 0)[1].source.chunk = 3;  // own block, for the wrong rank
  EXPECT_EQ(prove(blocks),
            "rank 2 thread block 0 step 2: receive chunk 1 of the output from rank 1 thread block 0: this is "
            "the last write there: chunk 1 of the output ends with chunk 3 of the input of rank 1, not chunk "
            "2 of the input of rank 1");
}

TEST(Proof, FindsWhatHoldsNothing) {
  TablePlan early(CollectiveKind::broadcast, 2, 1, 1);
  early.list(0, 0) = {receive(input(0), {1, 0})};
  early.list(1, 0) = {send(output(0), {0, 0})};
  EXPECT_EQ(
      prove(early),
      "rank 1 thread block 0 step 0: send chunk 0 of the output to rank 0 thread block 0: chunk 0 of the "
      "output holds nothing");
  auto empty = ring(3);
  empty.set_scratch(2);
  empty.list(2, 0)[1].source = scratch(1);
  EXPECT_THAT(prove(empty), AllOf(StartsWith("rank 2 thread block 0 step 1: "),
                                  HasSubstr("chunk 1 of the scratch holds nothing")));
  TablePlan sum(CollectiveKind::all_reduce, 2, 1, 1, false);
  sum.list(0, 0) = {reduce(input(0), output(0))};
  EXPECT_EQ(prove(sum),
            "rank 0 thread block 0 step 0: add chunk 0 of the input to chunk 0 of the output: adds "
            "contributions {0} of chunk 0 to nothing");
}

TEST(Proof, FindsADoubleReduction) {
  auto damaged = ring(4);
  damaged.list(2, 0)[4].kind = Kind::receive_reduce_copy_send;  // was: receive, copy, send
  EXPECT_THAT(prove(damaged),
              AllOf(StartsWith("rank 2 thread block 0 step 4: "),
                    HasSubstr("adds contributions {0-3} of chunk 2 to contributions {2} of chunk 2, some of "
                              "them twice")));
}

TEST(Proof, FindsALostContribution) {
  auto damaged = ring(4);
  damaged.list(2, 0)[1].kind = Kind::receive_copy_send;  // overwrites what it should add to
  EXPECT_THAT(prove(damaged),
              AllOf(HasSubstr("ends with contributions {0-1, 3} of chunk"), HasSubstr(" step ")));
}

TEST(Proof, WantsSomethingDone) {
  EXPECT_EQ(
      prove(TablePlan(CollectiveKind::all_reduce, 3, 1, 1)),
      "rank 0 does nothing to its output: chunk 0 of the output ends with contributions {0} of chunk 0, "
      "not contributions {0-2} of chunk 0");
  EXPECT_NE(prove(TablePlan(CollectiveKind::broadcast, 3, 1, 1)), "");
  EXPECT_EQ(
      prove(TablePlan(CollectiveKind::all_to_all, 2, 1, 2, false)),
      "rank 0 does nothing to its output: chunk 0 of the output ends with nothing, not chunk 0 of the input "
      "of rank 0");
}

// A gather to rank 0 in any order, then a broadcast: contributions that are no ranges.
TEST(Proof, FollowsSetsThatAreNoRanges) {
  const std::uint32_t p = 7, order[] = {3, 1, 5, 2, 6, 4};
  TablePlan star(CollectiveKind::all_reduce, p, 1, 1);
  for (const std::uint32_t rank : order) {
    star.list(rank, 0) = {send(input(0), {0, 0}), receive(input(0), {0, 0})};
    star.list(0, 0).push_back(receive_reduce(input(0), {rank, 0}));
  }
  for (std::uint32_t rank = 1; rank < p; ++rank) star.list(0, 0).push_back(send(input(0), {rank, 0}));
  EXPECT_EQ(prove(star), "");
  std::swap(star.list(0, 0)[4], star.list(0, 0)[6]);  // one send before the last two reductions
  EXPECT_THAT(prove(star), HasSubstr("ends with contributions {0-3, 5}"));
}

// Blocks may travel through other ranks, and their scratch.
TEST(Proof, AcceptsBlocksThatArePassedOn) {
  const std::uint32_t p = 3;
  TablePlan around(CollectiveKind::all_to_all, p, 1, p, false);
  around.set_scratch(1);
  for (std::uint32_t r = 0; r < p; ++r) {
    const Partner next{(r + 1) % p, 0}, previous{(r + 2) % p, 0};
    around.list(r, 0) = {copy(input(r), output(r)),
                         send(input((r + 1) % p), next),
                         send(input((r + 2) % p), next),
                         receive(output((r + 2) % p), previous),
                         receive(scratch(0), previous),
                         send(scratch(0), next),
                         receive(output((r + 1) % p), previous)};
  }
  EXPECT_EQ(prove(around), "");
  around.list(1, 0)[5].source = output(0);
  EXPECT_THAT(prove(around), HasSubstr("chunk 0 of the output ends with chunk 1 of the input of rank 0"));
}

// In place, a rank's input of an all_gather is its part of the output; else it has to be put there.
TEST(Proof, KnowsWhatIsInPlace) {
  for (const bool in_place : {true, false}) {
    TablePlan gather(CollectiveKind::all_gather, 2, 1, 4, in_place);
    TablePlan scatter(CollectiveKind::reduce_scatter, 2, 1, 4, in_place);
    for (std::uint32_t r = 0; r < 2; ++r) {
      const Partner other{1 - r, 0};
      gather.list(r, 0) = {send(input(0), other, 2), receive(output(2 * (1 - r)), other, 2)};
      Step sum = receive_reduce(input(2 * r), other, 2);
      sum.destination = output(0);
      scatter.list(r, 0) = {send(input(2 * (1 - r)), other, 2), sum};
    }
    EXPECT_EQ(prove(scatter), "");
    if (!in_place) {
      EXPECT_THAT(prove(gather), StartsWith("rank 0 does nothing to its output: chunk 0 of the output"));
      for (std::uint32_t r = 0; r < 2; ++r) gather.list(r, 0).push_back(copy(input(0), output(2 * r), 2));
    }
    EXPECT_EQ(prove(gather), "");
  }
}

// Two messages are put to the same scratch before the first one is used.
TEST(Proof, FindsLiveDataThatIsOverwritten) {
  TablePlan sum(CollectiveKind::reduce, 3, 1, 1);
  sum.set_scratch(2);
  sum.list(1, 0) = sum.list(2, 0) = {send(input(0), {0, 0})};
  sum.list(0, 0) = {receive(scratch(0), {1, 0}), receive(scratch(1), {2, 0}), reduce(scratch(0), input(0)),
                    reduce(scratch(1), input(0))};
  EXPECT_EQ(prove(sum), "");
  sum.list(0, 0)[1].destination = sum.list(0, 0)[3].source = scratch(0);
  EXPECT_EQ(prove(sum),
            "rank 0 thread block 0 step 3: add chunk 0 of the scratch to chunk 0 of the input: adds "
            "contributions {2} of chunk 0 to contributions {0, 2} of chunk 0, some of them twice");
}

// A message in scratch may be overwritten before its use if thread blocks run at different speeds. Here the
// second thread block does not wait until the first one has used the message.
TEST(Proof, FindsLiveDataThatMayBeOverwritten) {
  TablePlan sum(CollectiveKind::reduce, 3, 2, 1);
  sum.set_scratch(1);
  sum.list(1, 0) = {send(input(0), {0, 0})};
  sum.list(2, 0) = {send(input(0), {0, 1})};
  sum.list(0, 0) = {receive(scratch(0), {1, 0}), reduce(scratch(0), input(0))};
  sum.list(0, 1) = {after(0, 1, receive(scratch(0), {2, 0})), reduce(scratch(0), input(0))};
  EXPECT_EQ(prove(sum), "");
  sum.list(0, 1)[0].after_step = 0;
  EXPECT_EQ(
      prove(sum),
      "rank 0 thread block 1 step 0: receive chunk 0 of the scratch from rank 2 thread block 0 after step "
      "0 of thread block 0: thread block 0 step 1 (add chunk 0 of the scratch to chunk 0 of the input) "
      "touches chunk 0 of the scratch too, and nothing orders the two");
}

// A custom collective has no known result. All other checks are the same.
TEST(Proof, WantsNothingOfACustomCollective) {
  TablePlan next(CollectiveKind::custom, 3, 1, 2, false);
  for (std::uint32_t r = 0; r < 2; ++r) next.list(r, 0) = {send(input(1), {r + 1, 0})};
  for (std::uint32_t r = 1; r < 3; ++r) next.list(r, 0).push_back(receive(output(0), {r - 1, 0}));
  EXPECT_EQ(prove(next), "");
  next.list(2, 0).push_back(copy(output(1), output(0)));
  EXPECT_THAT(prove(next), HasSubstr("chunk 1 of the output holds nothing"));
}

// --- Messages.

TEST(Proof, FindsSwappedPartners) {
  auto damaged = ring(4);
  std::swap(damaged.list(2, 0)[0].to, damaged.list(2, 0)[6].from);
  damaged.list(2, 0)[0].to = {1, 0};
  EXPECT_NE(prove(damaged), "");
}

TEST(Proof, FindsAMissingReceive) {
  auto damaged = ring(4);
  damaged.list(3, 0).pop_back();
  EXPECT_EQ(
      prove(damaged),
      "rank 2 thread block 0 step 5: receive chunk 1 of the input from rank 1 thread block 0 and send it on "
      "to rank 3 thread block 0: rank 3 thread block 0 never receives it");
}

TEST(Proof, FindsAMissingSend) {
  auto damaged = ring(4);
  damaged.list(0, 0).erase(damaged.list(0, 0).begin());
  EXPECT_NE(prove(damaged), "");
  damaged = ring(4);
  auto& last_but_one = damaged.list(0, 0)[5];
  last_but_one.kind = Kind::receive;
  EXPECT_EQ(
      prove(damaged),
      "deadlock: rank 1 thread block 0 step 6: receive chunk 3 of the input from rank 0 thread block 0: "
      "waits for a message from rank 0 thread block 0, which has finished");
}

TEST(Proof, FindsAMessageToAThreadBlockThatDoesNotExpectIt) {
  TablePlan astray(CollectiveKind::broadcast, 2, 2, 1);
  astray.list(0, 0) = {send(input(0), {1, 1})};
  EXPECT_EQ(prove(astray),
            "rank 0 thread block 0 step 0: send chunk 0 of the input to rank 1 thread block 1: rank 1 thread "
            "block 1 never receives it");
  astray.list(1, 0) = {receive(output(0), {0, 0})};
  EXPECT_THAT(prove(astray), StartsWith("deadlock: rank 1 thread block 0 step 0: "));
}

TEST(Proof, FindsAMessageOfAnotherSize) {
  TablePlan sizes(CollectiveKind::broadcast, 2, 1, 2);
  sizes.list(0, 0) = {send(input(0), {1, 0}, 2)};
  sizes.list(1, 0) = {receive(output(0), {0, 0}, 2)};
  EXPECT_EQ(prove(sizes), "");
  sizes.list(1, 0) = {receive(output(0), {0, 0}), receive(output(1), {0, 0})};
  EXPECT_EQ(
      prove(sizes),
      "rank 1 thread block 0 step 0: receive chunk 0 of the output from rank 0 thread block 0: the message "
      "is 2 chunks");
  std::swap(sizes.list(0, 0)[0].count, sizes.list(1, 0)[0].count);
  EXPECT_THAT(prove(sizes), HasSubstr("the message is 1 chunk"));
}

// --- Waiting forever.

TEST(Proof, FindsACyclicWait) {
  TablePlan cyclic(CollectiveKind::all_reduce, 2, 2, 2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    for (std::uint32_t block = 0; block < 2; ++block) {
      const Partner other{1 - rank, block};
      cyclic.list(rank, block) = {after(1 - block, 0), send(input(block), other),
                                  receive_reduce(input(block), other)};
    }
  }
  EXPECT_EQ(
      prove(cyclic),
      "deadlock: rank 0 thread block 0 step 0: wait after step 0 of thread block 1: waits for step 0 of "
      "thread block 1, which is at step 0 and waits for step 0 of thread block 0");
  cyclic.list(0, 0).erase(cyclic.list(0, 0).begin());
  cyclic.list(1, 0).erase(cyclic.list(1, 0).begin());
  EXPECT_EQ(prove(cyclic), "");
}

TEST(Proof, FindsADeadlockOfReceivesBeforeSends) {
  TablePlan crossed(CollectiveKind::all_reduce, 2, 1, 1);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    crossed.list(rank, 0) = {receive_reduce(input(0), {1 - rank, 0}), send(input(0), {1 - rank, 0})};
  }
  EXPECT_EQ(
      prove(crossed),
      "deadlock: rank 0 thread block 0 step 0: receive from rank 1 thread block 0, add chunk 0 of the input "
      "and put it there: waits for a message from rank 1 thread block 0, which is at step 0 and waits for "
      "a message from rank 0 thread block 0");
}

// A fused step holds the slot of what it receives until there is one for what it sends.
TEST(Proof, FindsTooFewSlots) {
  for (std::uint32_t p = 2; p <= 9; ++p) {
    EXPECT_EQ(prove(ring(p), 2), "") << p;
    EXPECT_THAT(prove(ring(p), 1),
                AllOf(StartsWith("deadlock: rank 0 thread block 0 step 1: "),
                      HasSubstr("waits for a free slot towards rank 1 thread block 0, which is at step 1 and "
                                "waits for a free slot towards rank")))
        << p;
  }
  // Three messages ahead of the one that the receiver takes first.
  TablePlan ahead(CollectiveKind::broadcast, 2, 2, 4);
  ahead.list(0, 0) = {send(input(0), {1, 0}), send(input(1), {1, 0}), send(input(2), {1, 0}),
                      send(input(3), {1, 1})};
  ahead.list(1, 1) = {receive(output(3), {0, 0})};
  ahead.list(1, 0) = {after(1, 0), receive(output(0), {0, 0}), receive(output(1), {0, 0}),
                      receive(output(2), {0, 0})};
  EXPECT_EQ(prove(ahead, 3), "");
  EXPECT_THAT(prove(ahead, 2), StartsWith("deadlock: rank 0 thread block 0 step 2: "));
  EXPECT_EQ(prove(ahead, 0), "a connection needs a slot");
}

// --- Order of thread blocks.

// In a tree, data that comes down contains the data that went up. So messages order the two even without a
// wait, except at the root.
TEST(Proof, FindsAMissingWait) {
  auto damaged = tree(6);
  for (std::uint32_t rank = 0; rank < 6; ++rank) {
    for (const std::uint32_t down : {1, 3}) {
      if (!damaged.list(rank, down).empty()) damaged.list(rank, down)[0].after_block = kNoIndex;
    }
  }
  EXPECT_EQ(prove(damaged), "");
  TablePlan two(CollectiveKind::all_reduce, 2, 2, 1);
  two.list(0, 0) = {receive_reduce(input(0), {1, 0})};
  two.list(1, 0) = {send(input(0), {0, 0})};
  two.list(0, 1) = {after(0, 0, send(input(0), {1, 1}))};
  two.list(1, 1) = {after(0, 0, receive(input(0), {0, 1}))};
  EXPECT_EQ(prove(two), "");
  two.list(1, 1)[0].after_block = kNoIndex;
  EXPECT_EQ(prove(two), "");
  two.list(1, 1)[0].after_block = 0;
  two.list(0, 1)[0].after_block = kNoIndex;
  EXPECT_EQ(
      prove(two),
      "rank 0 thread block 0 step 0: receive from rank 1 thread block 0, add chunk 0 of the input and put "
      "it there: thread block 1 step 0 (send chunk 0 of the input to rank 1 thread block 1) touches chunk "
      "0 of the input too, and nothing orders the two");
}

// Thread blocks 0 -> 1 -> 2 are ordered by two waits, 0 -> 2 by their combination.
TEST(Proof, FollowsWaitsThroughOtherThreadBlocks) {
  TablePlan chained(CollectiveKind::broadcast, 2, 3, 1);
  chained.list(0, 0) = {send(input(0), {1, 0})};
  chained.list(1, 0) = {receive(output(0), {0, 0})};
  chained.list(1, 1) = {after(0, 0)};
  chained.list(1, 2) = {after(1, 0), send(output(0), {0, 2})};
  chained.list(0, 2) = {after(0, 0, receive(output(0), {1, 2}))};
  EXPECT_EQ(prove(chained), "");
  chained.list(1, 1)[0] = Step();
  EXPECT_NE(prove(chained), "");
}

// An answer comes after what it answers.
TEST(Proof, FollowsMessagesThroughOtherRanks) {
  TablePlan answer(CollectiveKind::all_reduce, 2, 2, 1);
  answer.list(0, 0) = {send(input(0), {1, 0})};
  answer.list(1, 0) = {receive_reduce(input(0), {0, 0}), send(input(0), {0, 1})};
  answer.list(0, 1) = {receive(input(0), {1, 0})};
  EXPECT_EQ(prove(answer), "");
  // An exchange instead: each may receive before its other thread block has sent.
  TablePlan exchange(CollectiveKind::all_reduce, 2, 2, 1);
  for (std::uint32_t r = 0; r < 2; ++r) {
    exchange.list(r, 0) = {send(input(0), {1 - r, 1})};
    exchange.list(r, 1) = {receive_reduce(input(0), {1 - r, 0})};
  }
  EXPECT_THAT(prove(exchange),
              AllOf(StartsWith("rank 1 thread block 1 step 0: "), HasSubstr("thread block 0 step 0 "),
                    HasSubstr("nothing orders the two")));
  for (std::uint32_t r = 0; r < 2; ++r) exchange.list(r, 1)[0] = after(0, 0, exchange.list(r, 1)[0]);
  EXPECT_EQ(prove(exchange), "");
}

// With two slots, the fourth message is sent after the first one was taken. With more it need not be.
TEST(Proof, DoesNotCountSlotsAsOrder) {
  TablePlan late(CollectiveKind::broadcast, 2, 2, 3);
  late.list(0, 0) = {send(input(0), {1, 0}), send(input(1), {1, 0}), send(input(2), {1, 0}),
                     send(input(0), {1, 1})};
  late.list(1, 0) = {receive(output(0), {0, 0}), receive(output(1), {0, 0}), receive(output(2), {0, 0})};
  late.list(1, 1) = {receive(output(0), {0, 0})};
  EXPECT_THAT(prove(late, 2), HasSubstr("nothing orders the two"));
  late.list(1, 1)[0] = after(0, 0, late.list(1, 1)[0]);
  EXPECT_EQ(prove(late, 2), "");
}

TEST(Proof, LetsThreadBlocksReadTheSameChunk) {
  TablePlan aggregation(CollectiveKind::broadcast, 4, 3, 1);
  for (std::uint32_t r = 1; r < 4; ++r) {
    aggregation.list(0, r - 1) = {send(input(0), {r, 0})};
    aggregation.list(r, 0) = {receive(output(0), {0, r - 1})};
  }
  EXPECT_EQ(prove(aggregation), "");
  // A step that writes has to wait for all of them.
  aggregation.list(1, 0).push_back(send(output(0), {0, 0}));
  aggregation.list(0, 0).push_back(after(1, 0));
  aggregation.list(0, 0).push_back(receive(input(0), {1, 0}));
  EXPECT_THAT(prove(aggregation), HasSubstr("thread block 2 step 0 (send chunk 0 of the input to rank 3"));
  aggregation.list(0, 0).push_back(aggregation.list(0, 0)[2]);
  aggregation.list(0, 0)[2] = after(2, 0);
  EXPECT_EQ(prove(aggregation), "");
}

// --- Steps and shapes that cannot be.

std::string with(const Step& step) {
  TablePlan plan(CollectiveKind::all_gather, 3, 2, 3);
  plan.set_scratch(2);
  plan.list(1, 0) = {copy(input(0), scratch(0)), step};
  return prove(plan);
}

TEST(Proof, RefusesImpossibleSteps) {
  EXPECT_EQ(with(send(input(0), {1, 0})),
            "rank 1 thread block 0 step 1: send chunk 0 of the input to rank 1 thread block 0: a rank has no "
            "connection with itself");
  EXPECT_THAT(with(send(input(0), {3, 0})), HasSubstr("there are 3 ranks"));
  EXPECT_THAT(with(send(input(0), {})), HasSubstr("there are 3 ranks"));
  EXPECT_THAT(with(receive(output(0), {0, 2})), HasSubstr("rank 0 has 2 thread blocks"));
  EXPECT_THAT(with(send(input(1), {0, 0})), HasSubstr("the input of the rank has 1 chunks"));
  EXPECT_THAT(with(receive(output(3), {0, 0})), HasSubstr("the output of the rank has 3 chunks"));
  EXPECT_THAT(with(copy(scratch(1), output(0), 2)), HasSubstr("the scratch of the rank has 2 chunks"));
  EXPECT_THAT(with(copy(scratch(UINT32_MAX), output(0), 2)),
              HasSubstr("the scratch of the rank has 2 chunks"));
  EXPECT_THAT(with(copy(output(0), output(1), 2)), HasSubstr("source and destination overlap"));
  EXPECT_THAT(with(copy(input(0), output(0), 0)), HasSubstr("its count is not one of 1 to 1"));
  EXPECT_THAT(with(after(0, 0)), HasSubstr("a thread block cannot wait for itself"));
  EXPECT_THAT(with(after(2, 0)), HasSubstr("there is no thread block 2, the rank has 2"));
  EXPECT_THAT(with(after(1, 0)), HasSubstr("thread block 1 has no step 0, it has 0"));
  EXPECT_THAT(with({.kind = static_cast<Kind>(9), .source = {}, .destination = {}, .to = {}, .from = {}}),
              HasSubstr("no such kind of step"));
  EXPECT_THAT(with(copy({static_cast<Buffer>(3), 0}, output(0))), HasSubstr("no such buffer"));
}

// Their messages are one queue at the receiver, and which come first is open.
TEST(Proof, RefusesTwoSendersOfARank) {
  TablePlan two(CollectiveKind::broadcast, 2, 2, 2);
  two.list(0, 0) = {send(input(0), {1, 0})};
  two.list(0, 1) = {send(input(1), {1, 0})};
  two.list(1, 0) = {receive(output(0), {0, 0}), receive(output(1), {0, 1})};
  EXPECT_EQ(prove(two),
            "rank 1 thread block 0 step 1: receive chunk 1 of the output from rank 0 thread block 1: it also "
            "receives from rank 0 thread block 0, and the order of the two is not defined");
}

TEST(Proof, RefusesImpossibleShapes) {
  const auto shape = [](CollectiveKind kind, std::uint32_t ranks, std::uint32_t chunks) {
    return prove(TablePlan(kind, ranks, 1, chunks));
  };
  EXPECT_EQ(shape(CollectiveKind::all_reduce, 1, 1), "a plan needs two ranks");
  EXPECT_EQ(shape(CollectiveKind::all_reduce, 2, 0), "a plan needs a chunk");
  EXPECT_EQ(shape(CollectiveKind::all_gather, 3, 4), "4 chunks cannot be shared out evenly among 3 ranks");
  EXPECT_NE(shape(CollectiveKind::reduce_scatter, 3, 4), "");
  EXPECT_NE(shape(CollectiveKind::all_to_all, 3, 4), "");
  EXPECT_EQ(shape(CollectiveKind::point_to_point, 3, 1), "point_to_point has two ranks");
  EXPECT_EQ(shape(CollectiveKind::all_to_all, 65536, 65536), "too many chunks");
  TablePlan rooted(CollectiveKind::broadcast, 2, 1, 1);
  rooted.set_root(2);
  EXPECT_EQ(prove(rooted), "root 2 is not a rank");
  TablePlan channel(CollectiveKind::broadcast, 2, 1, 1);
  channel.set_channel(1);
  EXPECT_EQ(prove(channel), "rank 0 thread block 0: there is no channel 1, the plan has 1");
  auto counts = ring(2);
  counts.set_largest_count(2);
  EXPECT_EQ(prove(counts), "");
  EXPECT_NE(prove(TablePlan(CollectiveKind::all_reduce, 2, 0, 1)), "");
}

// --- Size.

long peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(Proof, OfAThousandRanksIsSmall) {
  const auto big =
      Registry<CollectiveAlgorithm>::instance().create("ring")->plan(CollectiveKind::all_reduce, {1024, 0});
  const long before = peak_kilobytes();
  EXPECT_EQ(prove(*big), "");
  if (!test::sanitized()) {
    EXPECT_LT(peak_kilobytes() - before, 30 * 1024);
  }
}

// More cells than one pass holds: columns are proved range by range.
TEST(Proof, WorksInSeveralPasses) {
  for (const std::uint64_t bytes : {1, 40, 100, 400, 10000}) {
    EXPECT_EQ(prove_within(ring(8), 2, bytes), "");
    EXPECT_EQ(prove_within(tree(8), 2, bytes), "");
    EXPECT_EQ(prove_within(table("ring", CollectiveKind::all_gather, 8), 2, bytes), "");
    auto lost = ring(8);
    for (auto& x : lost.list(4, 0)) {
      if (x.kind == Kind::receive_reduce_send && x.source.chunk == 7) x.kind = Kind::receive_copy_send;
    }
    EXPECT_THAT(prove_within(lost, 2, bytes), HasSubstr("chunk 7")) << bytes;
    auto mixed = ring(8);
    mixed.list(3, 0)[2].source.chunk = 6;  // chunk 1
    EXPECT_THAT(prove_within(mixed, 2, bytes), StartsWith("rank 3 thread block 0 step 2: ")) << bytes;
    auto nothing = ring(8);
    nothing.set_scratch(8);
    nothing.list(5, 0).push_back(copy(scratch(6), scratch(7)));  // no step needs it, but it is an error
    EXPECT_THAT(prove_within(nothing, 2, bytes), HasSubstr("chunk 6 of the scratch holds nothing")) << bytes;
  }
}

// Values that pass through cells of other columns are followed there.
TEST(Proof, FollowsPiecesElsewhereInSeveralPasses) {
  TablePlan moved(CollectiveKind::all_reduce, 2, 1, 4, false);
  moved.set_scratch(6);
  for (std::uint32_t r = 0; r < 2; ++r) {
    const Partner other{1 - r, 0};
    moved.list(r, 0) = {send(input(0), other, 4),        receive(scratch(2), other, 4),
                        copy(input(0), scratch(0)),      reduce(scratch(0), scratch(2)),
                        copy(scratch(2), output(0)),     copy(input(1), output(1), 3),
                        reduce(scratch(3), output(1), 3)};
  }
  auto wrong = moved;
  wrong.list(1, 0)[4].source = scratch(3);
  auto mixed = moved;
  mixed.list(1, 0)[6].source = scratch(2);
  for (const std::uint64_t bytes : {1, 32, 50, 10000}) {
    EXPECT_EQ(prove_within(moved, 2, bytes), "") << bytes;
    EXPECT_THAT(prove_within(wrong, 2, bytes), StartsWith("rank 1 thread block 0 step 4: ")) << bytes;
    EXPECT_THAT(prove_within(mixed, 2, bytes), StartsWith("rank 1 thread block 0 step 6: ")) << bytes;
  }
}

TEST(RankSets, JoinLikeSets) {
  EXPECT_TRUE(rc::check("RankSets against std::set", [] {
    const auto p = *rc::gen::inRange<std::uint32_t>(1, 20);
    const auto bits = *rc::gen::container<std::vector<std::uint8_t>>(p, rc::gen::inRange<std::uint8_t>(0, 3));
    const auto order =
        *rc::gen::container<std::vector<std::uint32_t>>(p, rc::gen::arbitrary<std::uint32_t>());
    RankSets sets(p);
    std::vector<std::uint32_t> ranks(p);
    for (std::uint32_t i = 0; i < p; ++i) ranks[i] = i;
    std::sort(ranks.begin(), ranks.end(),
              [&](auto a, auto b) { return std::pair(order[a], a) < std::pair(order[b], b); });
    RankSets::Set a, b, forward;
    for (const std::uint32_t rank : ranks) {
      if (bits[rank] == 1) a = *sets.join(a, sets.single(rank));
      if (bits[rank] == 2) b = *sets.join(sets.single(rank), b);
    }
    const auto sum = sets.join(a, b);
    RC_ASSERT(sum.has_value());
    for (std::uint32_t rank = 0; rank < p; ++rank) {
      if (bits[rank] != 0) forward = *sets.join(forward, sets.single(rank));
      const bool in_a = bits[rank] == 1;
      RC_ASSERT(sets.join(a, sets.single(rank)).has_value() == !in_a);
    }
    RC_ASSERT(sets.equal(*sum, forward));  // the order does not show
    RC_ASSERT((*sum == sets.all()) == (std::find(bits.begin(), bits.end(), 0) == bits.end()));
  }));
}

// Also what is put together by hops of another length: from a rank on, in an order that is not theirs.
TEST(RankSets, WriteRangesAsOne) {
  EXPECT_TRUE(rc::check("ranges out of pieces", [] {
    const auto p = *rc::gen::inRange<std::uint32_t>(1, 30), hop = *rc::gen::inRange<std::uint32_t>(1, 30);
    const auto first = *rc::gen::inRange<std::uint32_t>(0, p),
               count = *rc::gen::inRange<std::uint32_t>(1, p + 1);
    RankSets sets(p);
    RankSets::Set set, progression;
    std::vector<bool> put(p, false);
    for (std::uint32_t i = 0, left = count; left > 0; ++i) {
      const std::uint32_t place = (i * hop + i / p) % p;
      if (put[place]) continue;
      put[place] = true;
      if (place >= count) continue;
      set = *sets.join(set, sets.single((first + place) % p));
      --left;
    }
    RC_ASSERT(set == (count == p ? sets.all() : RankSets::Set{first, count}));

    std::fill(put.begin(), put.end(), false);
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t i = 0; i < count && !put[(first + i * hop) % p]; ++i) {
      ranks.push_back((first + i * hop) % p);
      put[ranks.back()] = true;
      progression = *sets.join(sets.single(ranks.back()), progression);
    }
    RankSets::Set back;
    std::reverse(ranks.begin(), ranks.end());
    for (const std::uint32_t rank : ranks) back = *sets.join(back, sets.single(rank));
    RC_ASSERT(sets.equal(progression, back));
    RC_ASSERT(sets.text(progression) == sets.text(back));
    for (std::uint32_t rank = 0; rank < p; ++rank)
      RC_ASSERT(sets.join(progression, sets.single(rank)).has_value() == !put[rank]);
  }));
}

TEST(RankSets, PrintRanges) {
  RankSets sets(8);
  EXPECT_EQ(sets.text({}), "{}");
  EXPECT_EQ(sets.text(sets.all()), "{0-7}");
  EXPECT_EQ(sets.text(*sets.join({6, 2}, {0, 1})), "{0, 6-7}");
  EXPECT_EQ(sets.text(*sets.join({2, 2}, {5, 1})), "{2-3, 5}");
  EXPECT_EQ(sets.text(*sets.join({2, 1}, {7, 1})), "{2, 7}");  // 7 + 3 = 2 modulo 8
  EXPECT_EQ(sets.text(*sets.join(*sets.join({2, 1}, {7, 1}), {4, 1})), "{2, 4, 7}");
  EXPECT_EQ(sets.text(*sets.join(*sets.join({2, 1}, {7, 1}), {3, 1})), "{2-3, 7}");
}

}  // namespace
}  // namespace netsim::proof_test
