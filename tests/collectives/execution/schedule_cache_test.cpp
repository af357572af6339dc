// Are schedules made once, by the algorithms that the configuration chose?
#include "sim/collectives/execution/schedule_cache.h"

#include <gtest/gtest.h>

namespace netsim {
namespace {

TEST(ScheduleCache, MakesEachScheduleOnce) {
  const AlgorithmChoice algorithms(collectives_parameters().parse({}));
  ScheduleCache cache(algorithms);
  const Schedule& first = cache.get(CollectiveKind::all_reduce, 8, 0);
  EXPECT_EQ(&first, &cache.get(CollectiveKind::all_reduce, 8, 3));  // no root
  EXPECT_NE(&first, &cache.get(CollectiveKind::all_reduce, 9, 0));
  EXPECT_NE(&first, &cache.get(CollectiveKind::all_gather, 8, 0));
  for (const CollectiveKind rooted : {CollectiveKind::broadcast, CollectiveKind::reduce})
    EXPECT_NE(&cache.get(rooted, 4, 0), &cache.get(rooted, 4, 1));
}

TEST(ScheduleCache, AsksTheChosenAlgorithm) {
  const ConfigNode section = parse_config("{all_reduce: double_binary_tree}", "test.yaml");
  const AlgorithmChoice algorithms(collectives_parameters().parse(section));
  ScheduleCache cache(algorithms);
  EXPECT_STREQ(cache.get(CollectiveKind::all_reduce, 8, 0).algorithm(), "double_binary_tree");
  EXPECT_STREQ(cache.get(CollectiveKind::reduce_scatter, 8, 0).algorithm(), "ring");
}

TEST(ScheduleLookup, FindsWhatTheCacheHas) {
  const AlgorithmChoice algorithms(collectives_parameters().parse({}));
  ScheduleCache cache(algorithms);
  ScheduleLookup one(cache), another(cache);
  EXPECT_EQ(&one.get(CollectiveKind::broadcast, 8, 3), &another.get(CollectiveKind::broadcast, 8, 3));
  EXPECT_EQ(&one.get(CollectiveKind::broadcast, 8, 3), &cache.get(CollectiveKind::broadcast, 8, 3));
}

}  // namespace
}  // namespace netsim
