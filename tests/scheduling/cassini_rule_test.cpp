// Does CASSINI's rule give the scores of its six small cases, and shifts that all links agree with?
#include <gtest/gtest.h>

#include <vector>

#include "sim/scheduling/job/rules/cassini.h"

namespace netsim::cassini_rule_test {
namespace {

constexpr BitRate kCapacity = 100 * kGbps;

// Returns a job that computes first, and demands the whole link for the last `communication` ms.
PeriodicDemand job(std::uint32_t id, int iteration, int communication) {
  const Time end = iteration * kMillisecond;
  return {JobId{id}, end, {{end - communication * kMillisecond, end, kCapacity}}};
}

SharedLink link_of(std::vector<PeriodicDemand> demands) { return {kCapacity, std::move(demands)}; }

void expect_scores(const SharedLink& link, double unshifted, double shifted) {
  const LinkRotations found = best_rotations(link);
  EXPECT_DOUBLE_EQ(compatibility_score(link), unshifted);
  EXPECT_DOUBLE_EQ(found.unshifted, unshifted);
  EXPECT_DOUBLE_EQ(found.score, shifted);
  EXPECT_DOUBLE_EQ(compatibility_score(link, found.shifts), shifted);
  EXPECT_TRUE(found.exhaustive);
}

std::vector<Time> shifts_in_ms(const LinkRotations& rotations) {
  std::vector<Time> shifts;
  for (const Time shift : rotations.shifts) shifts.push_back(shift / kMillisecond);
  return shifts;
}

TEST(CassiniRule, TwoJobsThatComputeHalfOfTheTimeTakeTurns) {
  const SharedLink link = link_of({job(0, 36, 18), job(1, 36, 18)});
  expect_scores(link, 0.5, 1);
  EXPECT_EQ(shifts_in_ms(best_rotations(link)), (std::vector<Time>{0, 18}));  // 180 degrees
}

TEST(CassiniRule, ThreeJobsThatComputeTwoThirdsOfTheTimeTakeTurns) {
  const SharedLink link = link_of({job(0, 36, 12), job(1, 36, 12), job(2, 36, 12)});
  expect_scores(link, 1.0 / 3, 1);
  EXPECT_EQ(shifts_in_ms(best_rotations(link)), (std::vector<Time>{0, 12, 24}));  // 120 and 240 degrees
}

TEST(CassiniRule, SomePeriodsMeetWhateverTheShift) {
  const SharedLink link = link_of({job(0, 40, 20), job(1, 60, 20)});
  expect_scores(link, 5.0 / 6, 5.0 / 6);
  EXPECT_EQ(best_rotations(link).perimeter, 120 * kMillisecond);
  EXPECT_EQ(shifts_in_ms(best_rotations(link)), (std::vector<Time>{0, 0}));
}

TEST(CassiniRule, DifferentPeriodsMeetLess) {
  // Communication comes first here, because 10 of 40 ms and 30 of 60 ms at the end would meet less unshifted.
  const auto first = [](std::uint32_t id, int iteration, int communication) {
    return PeriodicDemand{
        JobId{id}, iteration * kMillisecond, {{0, communication * kMillisecond, kCapacity}}};
  };
  expect_scores(link_of({first(0, 40, 10), first(1, 60, 30)}), 5.0 / 6, 11.0 / 12);
  expect_scores(link_of({first(0, 40, 20), first(1, 80, 20)}), 0.75, 1);
}

TEST(CassiniRule, TwoJobsThatCommunicateMostOfTheTimeMeetLess) {
  expect_scores(link_of({job(0, 50, 30), job(1, 50, 30)}), 0.4, 0.8);
}

TEST(CassiniRule, ScoresMayBeNegativeAndDemandsOfOneJobAddUp) {
  EXPECT_DOUBLE_EQ(compatibility_score(link_of({job(0, 10, 10), job(1, 10, 10), job(2, 10, 10)})), -1);
  const PeriodicDemand two_phases{JobId{0}, 10, {{0, 10, kCapacity}, {5, 10, kCapacity}}};
  EXPECT_DOUBLE_EQ(compatibility_score(link_of({two_phases}), {}, {.resolution = 1}), 0.5);
}

TEST(CassiniRule, ShiftsMayBeNegativeAndLongerThanAnIteration) {
  const SharedLink link = link_of({job(0, 36, 18), job(1, 36, 18)});
  const std::vector<Time> earlier{0, -18 * kMillisecond}, later{72 * kMillisecond, 54 * kMillisecond};
  EXPECT_DOUBLE_EQ(compatibility_score(link, earlier), 1);
  EXPECT_DOUBLE_EQ(compatibility_score(link, later), 1);
}

TEST(CassiniRule, ManyJobsAreSearchedOneByOne) {
  std::vector<PeriodicDemand> jobs;
  for (std::uint32_t i = 0; i < 6; ++i) jobs.push_back(job(i, 36, 6));
  const LinkRotations found = best_rotations(link_of(std::move(jobs)));
  EXPECT_FALSE(found.exhaustive);
  EXPECT_DOUBLE_EQ(found.score, 1);
  EXPECT_EQ(shifts_in_ms(found), (std::vector<Time>{0, 6, 12, 18, 24, 30}));
}

TEST(CassiniRule, IterationTimesAreRoundedUntilTheCircleIsSmall) {
  const SharedLink link =
      link_of({{JobId{0}, 40'013 * kMicrosecond, {}}, {JobId{1}, 40'021 * kMicrosecond, {}}});
  EXPECT_EQ(best_rotations(link).perimeter, 2501 * 16 * kMicrosecond);
}

LinkRotations shifted(Time first, Time second) { return {0, {first, second}, 0, 0, true}; }

TEST(CassiniRule, ShiftsAddUpAlongTheAffinityGraph) {
  const std::vector<SharedLink> links{link_of({job(3, 40, 9)}), link_of({job(1, 40, 9), job(2, 30, 9)}),
                                      link_of({job(0, 60, 9), job(1, 40, 9)}),
                                      link_of({job(7, 40, 9), job(8, 40, 9)})};
  const auto ms = kMillisecond;
  const auto shifts =
      time_shifts(links, std::vector<LinkRotations>{shifted(0, 0), shifted(5 * ms, 15 * ms),
                                                    shifted(10 * ms, 35 * ms), shifted(0, 20 * ms)});
  ASSERT_TRUE(shifts);  // job 1: 0 - 10 + 35, job 2: (25 - 5 + 15) mod 30; job 3 shares no link
  EXPECT_EQ(*shifts, (std::vector<JobShift>{{0, 0}, {1, 25 * ms}, {2, 5 * ms}, {7, 0}, {8, 20 * ms}}));
}

TEST(CassiniRule, PlacementsAreRankedByTheirMeanScoreAndLoopsAreLeftOut) {
  const SharedLink half = link_of({job(0, 36, 18), job(1, 36, 18)}),
                   busy = link_of({job(0, 50, 30), job(1, 50, 30)}),
                   other = link_of({job(1, 50, 30), job(2, 50, 30)});
  const std::vector<std::vector<SharedLink>> candidates{
      {busy}, {half, busy}, {half, half}, {half, half, other}, {}};
  const auto ranked = rank_placements(candidates);
  ASSERT_EQ(ranked.size(), 4);  // the two links of candidate 1 could ask for different shifts
  EXPECT_EQ(ranked[0].candidate, 2);
  EXPECT_DOUBLE_EQ(ranked[0].score, 1);
  EXPECT_EQ(ranked[1].candidate, 4);
  EXPECT_DOUBLE_EQ(ranked[1].score, 1);
  EXPECT_EQ(ranked[2].candidate, 3);
  EXPECT_DOUBLE_EQ(ranked[2].score, 2.8 / 3);
  EXPECT_EQ(ranked[3].candidate, 0);
  EXPECT_DOUBLE_EQ(ranked[3].score, 0.8);
  EXPECT_EQ(ranked[0].shifts, (std::vector<JobShift>{{0, 0}, {1, 18 * kMillisecond}}));
}

TEST(CassiniRule, AnIterationThatIsOffByMoreThanFivePercentIsDelayed) {
  EXPECT_EQ(realignment_delay(1000, 1000, 100), 0);
  EXPECT_EQ(realignment_delay(1000, 1305, 100), 0);
  EXPECT_EQ(realignment_delay(1000, 1306, 100), 94);
  EXPECT_EQ(realignment_delay(1000, 1295, 100), 0);
  EXPECT_EQ(realignment_delay(1000, 1294, 100), 6);
  EXPECT_EQ(realignment_delay(1000, 894, 100), 6);
}

}  // namespace
}  // namespace netsim::cassini_rule_test
