// Tests that links are grouped by the tiers that they join.
#include "sim/report/link_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/report/screen/screen.h"
#include "tests/report/fixtures.h"

namespace netsim::link_groups_test {
namespace {

using test::small_graph;
using test::two_rank_results;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ReportLinkGroups, TiersRunFromHostsUpward) {
  const LinkTiers tiers = link_tiers(small_graph());
  EXPECT_THAT(tiers.names, ElementsAre("GPU -> NIC", "NIC -> GPU", "hosts -> tier 0", "tier 0 -> hosts",
                                       "within tier 0", "tier 0 -> tier 1", "tier 1 -> tier 0"));
  EXPECT_THAT(tiers.of_port, ElementsAre(0, 1, 2, 3, 4, 4, 5, 6));
}

TEST(ReportLinkGroups, ATierHasTheMeanOfAllItsLinksAndTheFirstOfTheLargest) {
  Results results = two_rank_results();
  results.link_tiers = {"tier 0 -> hosts", "hosts -> tier 0"};
  results.links.clear();
  for (const Bytes queue : {0, 700, 700}) {
    LinkResult link;
    link.name = "leaf0->host" + std::to_string(results.links.size());
    link.rate = 100 * kGbps;
    link.counters.wire_bytes = 10;
    link.counters.busy = queue > 0 ? kMillisecond : 0;  // a quarter of the run
    link.counters.max_queue = queue;
    link.counters.ecn_marks = 2;
    results.links.push_back(link);
  }
  results.links.push_back({"host0->leaf0", LinkKind::ethernet, 100 * kGbps, {}, 1});  // carried nothing
  const std::vector<TierOfLinks> tiers = tiers_of_links(results);
  ASSERT_EQ(tiers.size(), 1U);
  EXPECT_EQ(tiers[0].links, 3U);
  EXPECT_DOUBLE_EQ(tiers[0].mean_utilisation, 0.5 / 3);
  EXPECT_DOUBLE_EQ(tiers[0].most_utilisation, 0.25);
  EXPECT_EQ(tiers[0].busiest, 1U);
  EXPECT_EQ(tiers[0].longest_queue, 1U);
  EXPECT_EQ(tiers[0].sum.ecn_marks, 6U);
  EXPECT_EQ(tiers[0].sum.max_queue, 700);
  const std::string screen = render_screen(results, 100);
  EXPECT_THAT(screen, HasSubstr("links by tier"));
  EXPECT_THAT(screen, HasSubstr("tier 0 -> hosts"));
  EXPECT_THAT(screen, HasSubstr("leaf0->host1"));
  EXPECT_EQ(screen.find("hosts -> tier 0"), std::string::npos);
}

// A job that can never run is no job that is done.
TEST(ReportScreen, CountsJobsByStateWhereNotAllAreDone) {
  Results results = two_rank_results();
  results.jobs.push_back(test::two_rank_job());
  EXPECT_THAT(render_screen(results), HasSubstr("2 jobs: done\n"));
  results.jobs[1].done = false;
  results.jobs[1].never_fits = "it needs 64 GPUs";
  EXPECT_THAT(render_screen(results), HasSubstr("2 jobs: 1 done, 1 never fits\n"));
  results.outcome = Outcome::limit;
  EXPECT_THAT(render_screen(results), HasSubstr("2 jobs: limit reached, 1 done, 1 never fits\n"));
}

}  // namespace
}  // namespace netsim::link_groups_test
