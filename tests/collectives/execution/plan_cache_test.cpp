// Are plans made once, by the algorithms that the configuration chose?
#include "sim/collectives/execution/plan_cache.h"

#include <gtest/gtest.h>

namespace netsim {
namespace {

TEST(PlanCache, MakesEachPlanOnce) {
  const AlgorithmChoice algorithms(collectives_parameters().parse({}));
  PlanCache cache(algorithms);
  const Plan& first = cache.get(CollectiveKind::all_reduce, 8, 0);
  EXPECT_EQ(&first, &cache.get(CollectiveKind::all_reduce, 8, 3));  // no root
  EXPECT_NE(&first, &cache.get(CollectiveKind::all_reduce, 9, 0));
  EXPECT_NE(&first, &cache.get(CollectiveKind::all_gather, 8, 0));
  for (const CollectiveKind rooted : {CollectiveKind::broadcast, CollectiveKind::reduce})
    EXPECT_NE(&cache.get(rooted, 4, 0), &cache.get(rooted, 4, 1));
}

TEST(PlanCache, AsksTheChosenAlgorithm) {
  const ConfigNode section = parse_config("{all_reduce: double_binary_tree}", "test.yaml");
  const AlgorithmChoice algorithms(collectives_parameters().parse(section));
  PlanCache cache(algorithms);
  EXPECT_STREQ(cache.get(CollectiveKind::all_reduce, 8, 0).algorithm(), "double_binary_tree");
  EXPECT_STREQ(cache.get(CollectiveKind::reduce_scatter, 8, 0).algorithm(), "ring");
}

TEST(PlanLookup, FindsWhatTheCacheHas) {
  const AlgorithmChoice algorithms(collectives_parameters().parse({}));
  PlanCache cache(algorithms);
  PlanLookup one(cache), another(cache);
  EXPECT_EQ(&one.get(CollectiveKind::broadcast, 8, 3), &another.get(CollectiveKind::broadcast, 8, 3));
  EXPECT_EQ(&one.get(CollectiveKind::broadcast, 8, 3), &cache.get(CollectiveKind::broadcast, 8, 3));
}

}  // namespace
}  // namespace netsim
