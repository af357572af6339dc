// Does the proof find what is wrong? Every test damages a right schedule, or writes a wrong one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/resource.h>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/proof/proof.h"
#include "sim/collectives/proof/rank_sets.h"
#include "sim/core/registry.h"
#include "tests/collectives/table_schedule.h"

namespace netsim {
namespace {

using Op = Instruction::Op;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TableSchedule table(const std::string& algorithm, CollectiveKind kind, std::uint32_t ranks) {
  return TableSchedule(
      *Registry<CollectiveAlgorithm>::instance().create(algorithm)->schedule(kind, ranks, 0));
}
TableSchedule ring(std::uint32_t ranks) { return table("ring", CollectiveKind::all_reduce, ranks); }
TableSchedule tree(std::uint32_t ranks) {
  return table("double_binary_tree", CollectiveKind::all_reduce, ranks);
}

TEST(Proof, AcceptsACopy) {
  EXPECT_EQ(prove(ring(6)), "");
  EXPECT_EQ(prove(tree(6)), "");
  EXPECT_EQ(prove(table("pairwise", CollectiveKind::all_to_all, 6)), "");
}

TEST(Proof, FindsAWrongChunk) {
  auto damaged = ring(4);
  damaged.list(1, 0)[2].chunk = 3;  // a send
  EXPECT_THAT(prove(damaged), AllOf(HasSubstr("rank 2 thread block 0"), HasSubstr("the message is chunk 3")));
  auto blocks = table("pairwise", CollectiveKind::all_to_all, 4);
  blocks.list(1, 0)[0].chunk = 1 * 4 + 3;  // own block, for the wrong rank
  EXPECT_THAT(prove(blocks), HasSubstr("the message is chunk 7"));
}

TEST(Proof, FindsABlockThatTheSenderDoesNotHold) {
  auto blocks = table("pairwise", CollectiveKind::all_to_all, 4);
  blocks.list(1, 0)[0].chunk = 2;  // rank 0's block for rank 2
  EXPECT_THAT(prove(blocks), HasSubstr("does not hold it"));
}

TEST(Proof, FindsSwappedPeers) {
  auto damaged = ring(4);
  std::swap(damaged.list(2, 0)[0].peer, damaged.list(2, 0)[1].peer);
  EXPECT_NE(prove(damaged), "");
}

TEST(Proof, FindsAMissingReceive) {
  auto damaged = ring(4);
  damaged.list(3, 0).pop_back();
  EXPECT_THAT(prove(damaged),
              AllOf(HasSubstr("rank 3 thread block 0 never receives"), HasSubstr("rank 2 sends")));
}

TEST(Proof, FindsAMissingSend) {
  auto damaged = ring(4);
  damaged.list(0, 0).erase(damaged.list(0, 0).end() - 2);
  EXPECT_THAT(prove(damaged), AllOf(StartsWith("deadlock: rank 1 thread block 0"), HasSubstr("from rank 0")));
}

TEST(Proof, FindsADoubleReduction) {
  auto damaged = ring(4);
  for (std::uint32_t rank = 0; rank < 4; ++rank) damaged.list(rank, 0)[7].op = Op::reduce;
  EXPECT_THAT(prove(damaged), HasSubstr("some of them twice"));
}

TEST(Proof, FindsALostContribution) {
  auto damaged = ring(4);
  damaged.list(2, 0)[1].op = Op::receive;  // overwrites what it should add to
  EXPECT_NE(prove(damaged), "");
}

TEST(Proof, FindsACyclicWait) {
  TableSchedule cyclic(CollectiveKind::all_reduce, 2, 2, 2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    for (std::uint32_t thread = 0; thread < 2; ++thread) {
      cyclic.list(rank, thread) = {
          {Op::wait, 1 - thread, 1}, {Op::send, 1 - rank, thread}, {Op::reduce, 1 - rank, thread}};
    }
  }
  EXPECT_EQ(
      prove(cyclic),
      "deadlock: rank 0 thread block 0 instruction 0 never can wait for 1 instructions of thread block 1");
  cyclic.list(0, 0).erase(cyclic.list(0, 0).begin());
  cyclic.list(1, 0).erase(cyclic.list(1, 0).begin());
  EXPECT_EQ(prove(cyclic), "");
}

TEST(Proof, FindsADeadlockOfReceivesBeforeSends) {
  TableSchedule crossed(CollectiveKind::all_reduce, 2, 1, 1);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    crossed.list(rank, 0) = {{Op::reduce, 1 - rank, 0}, {Op::send, 1 - rank, 0}};
  }
  EXPECT_THAT(prove(crossed),
              StartsWith("deadlock: rank 0 thread block 0 instruction 0 never can reduce chunk 0"));
}

// Without the wait, the root might broadcast before it has reduced.
TEST(Proof, FindsAMissingWait) {
  for (std::uint32_t rank = 0; rank < 6; ++rank) {
    auto damaged = tree(6);
    damaged.list(rank, 1).erase(damaged.list(rank, 1).begin());
    EXPECT_THAT(prove(damaged), AllOf(HasSubstr("no wait orders them"), HasSubstr("chunk 0"))) << rank;
  }
}

TEST(Proof, FindsAWaitThatIsTooShort) {
  auto damaged = tree(8);
  --damaged.list(4, 1)[0].chunk;
  EXPECT_THAT(prove(damaged), HasSubstr("no wait orders them"));
}

// Threads 0 -> 1 -> 2 are ordered by two waits, 0 -> 2 by their combination.
TEST(Proof, FollowsWaitsThroughOtherThreads) {
  TableSchedule chained(CollectiveKind::broadcast, 2, 3, 1);
  chained.list(0, 0) = {{Op::send, 1, 0}};
  chained.list(1, 0) = {{Op::receive, 0, 0}};
  chained.list(1, 1) = {{Op::wait, 0, 1}};
  chained.list(1, 2) = {{Op::wait, 1, 1}, {Op::send, 0, 0}};
  chained.list(0, 2) = {{Op::wait, 0, 1}, {Op::receive, 1, 0}};
  EXPECT_EQ(prove(chained), "");
  chained.list(1, 2)[0].chunk = 0;
  EXPECT_NE(prove(chained), "");
}

TEST(Proof, LetsTwoThreadsReadTheSameChunk) {
  TableSchedule fan(CollectiveKind::broadcast, 3, 2, 1);
  fan.list(0, 0) = {{Op::send, 1, 0}};
  fan.list(0, 1) = {{Op::send, 2, 0}};
  fan.list(1, 0) = {{Op::receive, 0, 0}};
  fan.list(2, 1) = {{Op::receive, 0, 0}};
  EXPECT_EQ(prove(fan), "");
}

TEST(Proof, RefusesImpossibleInstructions) {
  auto self = ring(3);
  self.list(1, 0)[0].peer = 1;
  EXPECT_THAT(prove(self),
              AllOf(HasSubstr("rank 1 thread block 0 instruction 0"), HasSubstr("no such peer")));
  auto beyond = ring(3);
  beyond.list(1, 0)[0].peer = 3;
  EXPECT_THAT(prove(beyond), HasSubstr("no such peer"));
  auto chunk = ring(3);
  chunk.list(2, 0)[0].chunk = 3;
  EXPECT_THAT(prove(chunk), HasSubstr("there are fewer"));
  auto wait = tree(3);
  wait.list(0, 1)[0].chunk = 9;
  EXPECT_THAT(prove(wait), HasSubstr("there are fewer"));
}

TEST(Proof, RefusesImpossibleShapes) {
  EXPECT_NE(prove(TableSchedule(CollectiveKind::all_reduce, 1, 1, 1)), "");
  EXPECT_NE(prove(TableSchedule(CollectiveKind::all_gather, 3, 1, 4)), "");
  EXPECT_NE(prove(TableSchedule(CollectiveKind::all_to_all, 3, 1, 3)), "");
  EXPECT_NE(prove(TableSchedule(CollectiveKind::point_to_point, 3, 1, 1)), "");
  EXPECT_NE(prove(TableSchedule(CollectiveKind::all_reduce, 2, 0, 1)), "");
}

TEST(Proof, WantsSomethingDone) {
  EXPECT_THAT(prove(TableSchedule(CollectiveKind::all_reduce, 3, 1, 1)), HasSubstr("{0}"));
  EXPECT_NE(prove(TableSchedule(CollectiveKind::broadcast, 3, 1, 1)), "");
  TableSchedule blocks(CollectiveKind::all_to_all, 2, 1, 2);
  blocks.set_chunks(4);
  EXPECT_THAT(prove(blocks), HasSubstr("rank 0 ends without the block of rank 1"));
}

// A gather to rank 0 in any order, then a broadcast: contributions that are no ranges.
TEST(Proof, FollowsSetsThatAreNoRanges) {
  const std::uint32_t p = 7, order[] = {3, 1, 5, 2, 6, 4};
  TableSchedule star(CollectiveKind::all_reduce, p, 1, 1);
  for (const std::uint32_t rank : order) {
    star.list(rank, 0) = {{Op::send, 0, 0}, {Op::receive, 0, 0}};
    star.list(0, 0).push_back({Op::reduce, rank, 0});
  }
  for (std::uint32_t rank = 1; rank < p; ++rank) star.list(0, 0).push_back({Op::send, rank, 0});
  EXPECT_EQ(prove(star), "");
  std::swap(star.list(0, 0)[4], star.list(0, 0)[6]);  // one send before the last two reductions
  EXPECT_THAT(prove(star), HasSubstr("ends with contributions {0-3, 5}"));
}

// Blocks may travel through other ranks.
TEST(Proof, AcceptsBlocksThatArePassedOn) {
  const std::uint32_t p = 3;
  TableSchedule around(CollectiveKind::all_to_all, p, 1, p);
  around.set_chunks(p * p);
  const auto block = [&](std::uint32_t from, std::uint32_t to) { return from % p * p + to % p; };
  for (std::uint32_t r = 0; r < p; ++r) {
    const std::uint32_t next = (r + 1) % p, previous = (r + 2) % p;
    around.list(r, 0) = {
        {Op::send, next, block(r, r + 1)},        {Op::send, next, block(r, r + 2)},
        {Op::receive, previous, block(r + 2, r)}, {Op::receive, previous, block(r + 2, r + 1)},
        {Op::send, next, block(r + 2, r + 1)},    {Op::receive, previous, block(r + 1, r)}};
  }
  EXPECT_EQ(prove(around), "");
  around.list(1, 0)[4].chunk = block(1, 0);
  EXPECT_NE(prove(around), "");
}

Instruction damage(Instruction x, std::uint32_t ranks, std::uint32_t chunks) {
  switch (*rc::gen::inRange(0, 3)) {
    case 0:
      x.chunk = (x.chunk + *rc::gen::inRange<std::uint32_t>(1, chunks)) % chunks;
      break;
    case 1:
      x.peer = (x.peer + *rc::gen::inRange<std::uint32_t>(1, ranks)) % ranks;
      break;
    default:
      x.op = x.op == Op::reduce ? Op::receive : x.op == Op::receive ? Op::send : Op::receive;
  }
  return x;
}

TEST(Proof, FindsAnyDamageToOneInstruction) {
  EXPECT_TRUE(rc::check("one damaged, deleted or doubled instruction", [] {
    const auto p = *rc::gen::inRange<std::uint32_t>(2, 9);
    auto schedule = *rc::gen::element(0, 1, 2, 3, 4);
    TableSchedule damaged = schedule == 0   ? ring(p)
                            : schedule == 1 ? tree(p)
                            : schedule == 2 ? table("pairwise", CollectiveKind::all_to_all, p)
                            : schedule == 3 ? table("ring", CollectiveKind::reduce_scatter, p)
                                            : table("ring", CollectiveKind::all_gather, p);
    const auto rank = *rc::gen::inRange<std::uint32_t>(0, p);
    const auto thread = *rc::gen::inRange<std::uint32_t>(0, damaged.thread_blocks());
    auto& list = damaged.list(rank, thread);
    RC_PRE(!list.empty());
    const auto at = static_cast<std::ptrdiff_t>(*rc::gen::inRange<std::size_t>(0, list.size()));
    auto& x = list[static_cast<std::size_t>(at)];
    RC_PRE(x.op != Op::wait);
    const int how = *rc::gen::inRange(0, 3);
    if (how == 0) list.erase(list.begin() + at);
    if (how == 1) list.insert(list.begin() + at, Instruction(x));
    if (how == 2) x = damage(x, p, damaged.chunks());
    RC_ASSERT(!prove(damaged).empty());
  }));
}

long peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(Proof, OfAThousandRanksIsSmall) {
  const auto big =
      Registry<CollectiveAlgorithm>::instance().create("ring")->schedule(CollectiveKind::all_reduce, 1024, 0);
  [[maybe_unused]] const long before = peak_kilobytes();
  EXPECT_EQ(prove(*big), "");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they keep freed memory
  EXPECT_LT(peak_kilobytes() - before, 100 * 1024);
#endif
}

// More cells than one pass holds: chunks are proved range by range.
TEST(Proof, WorksInSeveralPasses) {
  for (const std::uint64_t cells : {1, 7, 20, 64, 1000}) {
    EXPECT_EQ(prove_within(ring(8), cells), "");
    EXPECT_EQ(prove_within(tree(8), cells), "");
    EXPECT_EQ(prove_within(table("ring", CollectiveKind::all_gather, 8), cells), "");
    auto damaged = ring(8);
    for (auto& x : damaged.list(4, 0)) {
      if (x.op == Op::reduce && x.chunk == 7) x.op = Op::receive;  // only chunk 7 is wrong
    }
    EXPECT_THAT(prove_within(damaged, cells), HasSubstr("chunk 7")) << cells;
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
    RC_ASSERT(*sum == forward);  // canonical: the order does not show
    RC_ASSERT((*sum == sets.all()) == (std::find(bits.begin(), bits.end(), 0) == bits.end()));
  }));
}

TEST(RankSets, PrintRanges) {
  RankSets sets(8);
  EXPECT_EQ(sets.text({}), "{}");
  EXPECT_EQ(sets.text(sets.all()), "{0-7}");
  EXPECT_EQ(sets.text(*sets.join({6, 2}, {0, 1})), "{0, 6-7}");
  EXPECT_EQ(sets.text(*sets.join({2, 2}, {5, 1})), "{2-3, 5}");
}

}  // namespace
}  // namespace netsim
