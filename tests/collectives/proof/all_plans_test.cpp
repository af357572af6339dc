// Is every plan that is shipped right, and does the proof agree with what plans really do?
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <charconv>
#include <memory>
#include <ostream>
#include <random>

#include "sim/collectives/algorithm.h"
#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "tests/collectives/proof/brute_force.h"
#include "tests/collectives/table_plan.h"
#include "tests/support/test_size.h"

namespace netsim::all_plans_test {
namespace {

using Registered = Registry<CollectiveAlgorithm>;

// All that there is, with default parameters: every algorithm and kind that it supports.
struct Offer {
  std::shared_ptr<CollectiveAlgorithm> algorithm;
  std::string name;
  CollectiveKind kind;
  // Null for a number of ranks that it says it is not for.
  std::unique_ptr<Plan> plan(std::uint32_t ranks, std::uint32_t root) const {
    try {
      return algorithm->plan(kind, {is_collective(kind) ? ranks : 2, root});
    } catch (const InputError&) {
      return nullptr;
    } catch (const ConfigError&) {
      return nullptr;
    }
  }
};
void PrintTo(const Offer& offer, std::ostream* out) { *out << offer.name << " " << to_string(offer.kind); }

// Null for one that has nothing to do without parameters.
std::shared_ptr<CollectiveAlgorithm> made(const std::string& name) {
  try {
    return Registered::instance().create(name);
  } catch (const ConfigError&) {
    return nullptr;
  }
}

const std::vector<Offer>& all_offers() {
  static const std::vector<Offer> all = [] {
    std::vector<Offer> offers;
    for (const std::string& name : Registered::instance().names()) {
      const auto algorithm = made(name);
      for (const CollectiveKindInfo& info : kCollectiveKinds) {
        if (info.goal.holders == ChunkRanks::none) continue;  // nothing to be right or wrong
        if (algorithm && algorithm->supports(info.kind)) offers.push_back({algorithm, name, info.kind});
      }
    }
    return offers;
  }();
  return all;
}

std::string proved(const Offer& offer, std::uint32_t p, std::uint32_t root) {
  const auto plan = offer.plan(p, root);
  return plan ? prove(*plan) : "";
}

std::uint32_t below(std::mt19937& random, std::uint32_t limit) {
  return static_cast<std::uint32_t>(random() % std::max(1U, limit));
}

TEST(AllPlans, AreProvedForAllSmallGroups) {
  for (const Offer& offer : all_offers()) {
    for (const std::uint32_t p : test::group_sizes([](std::uint32_t) { return true; })) {
      for (std::uint32_t root = 0; root < (has_root(offer.kind) ? p : 1); root += test::by_size(1U, 3U, 7U))
        ASSERT_EQ(proved(offer, p, root), "") << ::testing::PrintToString(offer) << " " << p;
    }
  }
}

TEST(AllPlans, AreProvedForSomeLargerGroups) {
  for (const Offer& offer : all_offers()) {
    for (const std::uint32_t p : {65, 127, 128, 200}) {
      ASSERT_EQ(proved(offer, p, p - 1), "") << ::testing::PrintToString(offer) << " " << p;
    }
  }
}

// The proof derives the order of a member's steps from the steps near it (StepOrder).
TEST(AllPlans, FansAreProvedWhereNotAllMessagesAreLookedAt) {
  int proofs = 0;
  for (const Offer& offer : all_offers()) {
    const auto plan = offer.plan(test::by_size(1024U, 512U, 256U), 0);
    if (!plan || plan->aggregations() == 0) continue;
    ASSERT_EQ(prove(*plan), "") << ::testing::PrintToString(offer);
    ++proofs;
  }
  EXPECT_GE(proofs, 4);
}

// A thousand in eight parts, which may run beside each other. Sizes of groups by their logarithm, as the work
// goes with their square.
class RandomPlans : public ::testing::TestWithParam<std::uint32_t> {};
TEST_P(RandomPlans, AreProved) {
  std::mt19937 random(GetParam());
  for (int proofs = 0; proofs < 125;) {
    const Offer& offer = all_offers()[below(random, static_cast<std::uint32_t>(all_offers().size()))];
    const std::uint32_t most = 1U << (2 + below(random, 11)), p = most / 2 + 1 + below(random, most / 2);
    const auto plan = offer.plan(p, has_root(offer.kind) ? below(random, p) : 0);
    if (!plan) continue;  // not for this many ranks
    ASSERT_EQ(prove(*plan), "") << ::testing::PrintToString(offer) << " " << p;
    ++proofs;
  }
}
INSTANTIATE_TEST_SUITE_P(Long, RandomPlans, ::testing::Range(1U, 9U));

// --- Damaged plans.

// An all-reduce as in MSCCL's programs. Thread block b exchanges parts of two chunks with rank b (from the
// rank's own number on, with the rank after b). The first one adds them up, and all send the sum.
TablePlan all_pairs(std::uint32_t p) {
  TablePlan plan(CollectiveKind::all_reduce, p, p - 1, 2 * p);
  plan.set_scratch(2 * (p - 1));
  for (std::uint32_t r = 0; r < p; ++r) {
    for (std::uint32_t b = 0; b + 1 < p; ++b) {
      const std::uint32_t other = b < r ? b : b + 1;
      const Partner partner{other, r < other ? r : r - 1};
      auto& steps = plan.list(r, b);
      steps = {send(input(2 * other), partner, 2), receive(scratch(2 * b), partner, 2)};
      for (std::uint32_t i = 0; b == 0 && i + 1 < p; ++i) {
        steps.push_back(reduce(scratch(2 * i), input(2 * r), 2));
        if (i > 0) steps.back() = after(i, 1, steps.back());
      }
      steps.push_back(send(input(2 * r), partner, 2));
      if (b > 0) steps.back() = after(0, p, steps.back());
      steps.push_back(receive(input(2 * other), partner, 2));
    }
  }
  return plan;
}

TEST(AllPlans, OfAllPairsAreRight) {
  for (std::uint32_t p = 2; p <= 8; ++p) ASSERT_EQ(prove(all_pairs(p)), "") << p;
}

TablePlan some_plan(std::mt19937& random) {
  const std::vector<Offer>& offers = all_offers();
  const std::uint32_t p = 2 + below(random, 5),
                      which = below(random, static_cast<std::uint32_t>(offers.size()) + 3);
  if (which >= offers.size()) return all_pairs(2 + below(random, 3));
  const auto plan = offers[which].plan(p, has_root(offers[which].kind) ? below(random, p) : 0);
  return plan ? TablePlan(*plan) : some_plan(random);
}

void damage_place(ChunkAt& at, std::uint32_t chunks, std::mt19937& random) {
  if (below(random, 3) == 0) {
    at.buffer = static_cast<Buffer>((static_cast<std::uint32_t>(at.buffer) + 1 + below(random, 2)) % 3);
  } else {
    at.chunk = (at.chunk + 1 + below(random, chunks)) % (chunks + 1);
  }
}

void damage_partner(Partner& partner, const Plan& plan, std::mt19937& random) {
  if (partner.aggregation != kNoIndex) {
    partner.aggregation =
        (partner.aggregation + 1 + below(random, plan.aggregations())) % (plan.aggregations() + 1);
  } else if (below(random, 2) == 0) {
    partner.rank = (partner.rank + 1 + below(random, plan.ranks())) % (plan.ranks() + 1);
  } else {
    partner.block = (partner.block + 1 + below(random, 2)) % (plan.blocks(0) + 1);
  }
}

void damage_wait(Step& step, const Plan& plan, std::uint32_t rank, std::mt19937& random) {
  if (step.after_block != kNoIndex && below(random, 2) == 0) {
    step.after_block = kNoIndex;
    return;
  }
  if (step.after_block == kNoIndex || below(random, 2) == 0)
    step.after_block = below(random, plan.blocks(rank));
  step.after_step = below(random, plan.steps(rank, step.after_block));
}

// One thing that matters of one step.
void damage(Step& step, const Plan& plan, std::uint32_t rank, std::mt19937& random) {
  switch (below(random, 8)) {
    case 0:
      step.kind = static_cast<Step::Kind>((static_cast<std::uint32_t>(step.kind) + 1 + below(random, 8)) % 9);
      return;
    case 1:
    case 2:
      if (reads_source(step.kind)) return damage_place(step.source, plan.chunks(), random);
      return damage_place(step.destination, plan.chunks(), random);
    case 3:
      if (writes_destination(step.kind)) return damage_place(step.destination, plan.chunks(), random);
      return damage_place(step.source, plan.chunks(), random);
    case 4:
      step.count = step.count == 1 ? 2 : 1;
      return;
    case 5:
      return damage_partner(sends(step.kind) ? step.to : step.from, plan, random);
    case 6:
      return damage_partner(receives(step.kind) ? step.from : step.to, plan, random);
    default:
      return damage_wait(step, plan, rank, random);
  }
}

// A single change of a step, or of the list.
void damage(TablePlan& plan, std::mt19937& random) {
  std::uint32_t rank = 0, block = 0;
  do {
    rank = below(random, plan.ranks());
    block = below(random, plan.blocks(rank));
  } while (plan.steps(rank, block) == 0);
  auto& steps = plan.list(rank, block);
  const auto at = static_cast<std::ptrdiff_t>(below(random, plan.steps(rank, block)));
  switch (below(random, 8)) {
    case 0:
      steps.erase(steps.begin() + at);
      return;
    case 1:
      steps.insert(steps.begin() + at, Step(steps[static_cast<std::size_t>(at)]));
      return;
    case 2:
      std::swap(steps[static_cast<std::size_t>(at)], steps[below(random, plan.steps(rank, block))]);
      return;
    default:
      damage(steps[static_cast<std::size_t>(at)], plan, rank, random);
  }
}

std::uint32_t number_after(const std::string& text, const std::string& words, std::size_t from = 0) {
  std::uint32_t value = UINT32_MAX;
  const std::size_t at = text.find(words, from);
  if (at == std::string::npos) return value;
  std::from_chars(text.data() + at + words.size(), text.data() + text.size(), value);
  return value;
}

// Checks that accesses that the proof calls not ordered really occur in both orders.
bool in_both_orders(const Plan& plan, const std::string& refused) {
  const std::size_t other = refused.rfind(": thread block ");
  const std::uint32_t rank = number_after(refused, "rank ");
  const StepAt later{rank, number_after(refused, "thread block "), number_after(refused, "step ")};
  const StepAt earlier{rank, number_after(refused, "thread block ", other),
                       number_after(refused, "step ", other)};
  BruteForce run(plan, kSlots);
  return run.can_come_before(later, earlier) && run.can_come_before(earlier, later);
}

// The results of many orders in which the steps may run.
struct Orders {
  std::string first_wrong;
  bool all_right = true;
};
Orders try_orders(const Plan& plan, std::mt19937& random) {
  Orders orders;
  BruteForce run(plan, kSlots);
  for (int i = 0; i < 40 && orders.all_right; ++i) {
    orders.first_wrong = run.run(i % 2 == 0 ? BruteForce::any(random) : BruteForce::by_priority(random));
    orders.all_right = orders.first_wrong.empty();
  }
  return orders;
}

TEST(AllPlans, DoWhatTheProofSays) {
  std::mt19937 random(1);
  for (int i = 0; i < 50; ++i) {
    const TablePlan plan = some_plan(random);
    ASSERT_EQ(prove(plan), "");
    ASSERT_EQ(try_orders(plan, random).first_wrong, "") << to_string(plan.kind());
  }
}

// A refused plan fails in some order of steps: by a deadlock, a message left, an unwritten chunk, an invalid
// sum or a wrong result. Otherwise it has two accesses to one cell, one of them a write, that the test brings
// about in both orders. An accepted plan is right in every order tried.
TEST(AllPlans, AreRefusedOrEquivalentAfterAnySingleChange) {
  std::uint32_t refused = 0, unordered = 0, equivalent = 0;
  EXPECT_TRUE(rc::check("ten damaged plans", [&] {
    std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());
    for (int i = 0; i < 10; ++i) {
      TablePlan plan = some_plan(random);
      damage(plan, random);
      const std::string wrong = prove(plan);
      const Orders orders = try_orders(plan, random);
      RC_LOG() << to_string(plan.kind()) << " of " << plan.ranks() << ": '" << wrong << "', '"
               << orders.first_wrong << "'\n";
      if (wrong.empty()) {
        ++equivalent;
        RC_ASSERT(orders.all_right);
      } else if (wrong.find("nothing orders the two") != std::string::npos) {
        ++unordered;
        RC_ASSERT(in_both_orders(plan, wrong));
      } else {
        ++refused;
        RC_ASSERT(!orders.all_right);
      }
    }
  }));
  EXPECT_GT(refused, 100);
  EXPECT_GT(unordered, 0);
  EXPECT_GT(equivalent, 5);
}

}  // namespace
}  // namespace netsim::all_plans_test
