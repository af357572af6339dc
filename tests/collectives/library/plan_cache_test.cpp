// Are plans made once, by the algorithms that the configuration chose?
#include "sim/collectives/library/plan_cache.h"

#include <gtest/gtest.h>

#include <string>

#include "sim/collectives/library/algorithm_choice.h"
#include "sim/core/config.h"

namespace netsim::plan_cache_test {
namespace {

class Plans {
 public:
  explicit Plans(const std::string& section)
      : algorithms(collectives_parameters().parse(parse_config(section, "test.yaml"))) {}
  const CollectiveAlgorithm& of(CollectiveKind kind) const { return algorithms.of(kind); }
  const Plan& get(CollectiveKind kind, std::uint32_t ranks, std::uint32_t root = 0,
                  const DomainSizes& domains = {}) {
    return cache.get(of(kind), kind, {.ranks = ranks, .root = root, .sizes = domains});
  }
  AlgorithmChoice algorithms;
  PlanCache cache;
};

TEST(PlanCache, MakesEachPlanOnce) {
  Plans plans("{}");
  const Plan& first = plans.get(CollectiveKind::all_reduce, 8);
  EXPECT_EQ(&first, &plans.get(CollectiveKind::all_reduce, 8, 3));       // no root
  EXPECT_EQ(&first, &plans.get(CollectiveKind::all_reduce, 8, 0, {4}));  // not laid on domains
  EXPECT_NE(&first, &plans.get(CollectiveKind::all_reduce, 9));
  EXPECT_NE(&first, &plans.get(CollectiveKind::all_gather, 8));
  for (const CollectiveKind rooted : {CollectiveKind::broadcast, CollectiveKind::reduce})
    EXPECT_NE(&plans.get(rooted, 4, 0), &plans.get(rooted, 4, 1));
}

TEST(PlanCache, AsksTheAlgorithm) {
  Plans plans("{all_reduce: double_binary_tree}");
  EXPECT_STREQ(plans.get(CollectiveKind::all_reduce, 8).algorithm(), "double_binary_tree");
  EXPECT_STREQ(plans.get(CollectiveKind::reduce_scatter, 8).algorithm(), "ring");
}

// A domain of four has a chain of four: rank 3 sends what it has to rank 2.
TEST(PlanCache, KeepsPlansOverDomainsApart) {
  Plans plans("{all_reduce: tree}");
  const Plan& alone = plans.get(CollectiveKind::all_reduce, 8, 0, {1});
  const Plan& chained = plans.get(CollectiveKind::all_reduce, 8, 0, {4});
  EXPECT_NE(&alone, &chained);
  EXPECT_EQ(&chained, &plans.get(CollectiveKind::all_reduce, 8, 0, {4}));
  EXPECT_EQ(chained.step(3, 0, 0).kind, Step::Kind::send);
  EXPECT_EQ(chained.step(3, 0, 0).to.rank, 2U);
}

TEST(PlanLookup, FindsWhatTheCacheHas) {
  Plans plans("{}");
  const CollectiveKind kind = CollectiveKind::broadcast;
  PlanLookup one(plans.cache), another(plans.cache);
  const GroupShape shape{.ranks = 8, .root = 3};
  const Plan& found = one.get(plans.of(kind), kind, shape);
  EXPECT_EQ(&found, &another.get(plans.of(kind), kind, shape));
  EXPECT_EQ(&found, &plans.get(kind, 8, 3));
}

}  // namespace
}  // namespace netsim::plan_cache_test
