// Tests the rules that allot rates to flows, with tables whose values were worked out by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/random.h"
#include "sim/scheduling/flow/rules/coflow_rates.h"
#include "sim/scheduling/flow/rules/deadline.h"
#include "sim/scheduling/flow/rules/echelon.h"
#include "sim/scheduling/flow/rules/max_min.h"
#include "sim/scheduling/flow/rules/sincronia.h"
#include "sim/scheduling/flow/rules/thresholds.h"

namespace netsim::rate_rules_test {
namespace {

using Links = std::vector<std::uint32_t>;
using Rates = std::vector<BitRate>;

// A link of this rate carries a kilobyte in a second.
constexpr BitRate kUnit = 8 * kKilobyte;

// Case: flows with their own lists of links.
struct Case {
  Rates capacity;
  std::vector<Links> links;
  std::vector<RuleFlow> flows;

  void add(Links crossed, Bytes left, std::uint32_t group = 0, Time deadline = kNever) {
    links.push_back(std::move(crossed));
    RuleFlow flow;
    flow.left = left;
    flow.group = group;
    flow.deadline = deadline;
    flows.push_back(flow);
    for (std::size_t i = 0; i < flows.size(); ++i) flows[i].links = links[i];
  }
};

Rates rates_of(std::span<const BitRate> rates) { return {rates.begin(), rates.end()}; }

// Plays flows as a fluid with the rates that `allot` gives at each end and each release. Flow i is released
// at `released[i]`. Returns the ends. `allot` sees flows that are not released, or have ended, with no bytes
// left.
template <class Allot>
std::vector<Time> play(Case& flows, const std::vector<Time>& released, Allot allot) {
  const std::size_t count = flows.flows.size();
  std::vector<double> left;
  for (const RuleFlow& flow : flows.flows) left.push_back(static_cast<double>(flow.left));
  std::vector<Time> ends(count, kNever);
  for (Time now = 0; std::find(ends.begin(), ends.end(), kNever) != ends.end();) {
    Time next = kNever;
    for (std::size_t i = 0; i < count; ++i) {
      const bool active = released[i] <= now && ends[i] == kNever;
      flows.flows[i].left = active ? static_cast<Bytes>(left[i] + 0.5) : 0;
      if (released[i] > now) next = std::min(next, released[i]);
    }
    const Rates rates = allot(now);
    for (std::size_t i = 0; i < count; ++i) {
      if (flows.flows[i].left > 0 && rates[i] > 0)
        next = std::min(next, now + transmission_time(flows.flows[i].left, rates[i]));
    }
    if (next == kNever) return ends;
    for (std::size_t i = 0; i < count; ++i) {
      if (flows.flows[i].left == 0) continue;
      left[i] -= static_cast<double>(rates[i]) / 8 * to_seconds(next - now);
      if (left[i] < 0.5) ends[i] = next;
    }
    now = next;
  }
  return ends;
}

Rates fair_of_active(const Case& flows) {
  std::vector<RuleFlow> copies = flows.flows;
  for (RuleFlow& flow : copies) {
    if (flow.left == 0) flow.limit = 0;
  }
  return rates_of(MaxMin().fair(flows.capacity, copies));
}

// Returns the rates where flows with a smaller key come first.
Rates by_key(const Case& flows, const std::vector<Bytes>& key) {
  std::vector<std::uint32_t> level(key.size(), 0);
  for (std::size_t a = 0; a < key.size(); ++a) {
    for (const Bytes other : key) level[a] += other < key[a] ? 1 : 0;
  }
  std::vector<RuleFlow> copies = flows.flows;
  for (RuleFlow& flow : copies) {
    if (flow.left == 0) flow.limit = 0;
  }
  return rates_of(MaxMin().strict(flows.capacity, copies, level));
}

std::vector<Time> seconds(std::vector<double> values) {
  std::vector<Time> times;
  for (const double value : values) times.push_back(static_cast<Time>(value * 1e12));
  return times;
}

// Compares times with a tolerance of a byte's time, because bytes of the fluid are rounded.
void expect_times(const std::vector<Time>& times, const std::vector<double>& expected) {
  ASSERT_EQ(times.size(), expected.size());
  for (std::size_t i = 0; i < times.size(); ++i) EXPECT_NEAR(to_seconds(times[i]), expected[i], 5e-3) << i;
}

TEST(RateRules, ALongFlowGetsTheShareOfItsFullestLink) {
  Case flows{{100, 200, 50}, {}, {}};
  for (const Links& links : {Links{0, 1, 2}, Links{0}, Links{1}, Links{2}}) flows.add(links, 1);
  EXPECT_EQ(rates_of(MaxMin().fair(flows.capacity, flows.flows)), (Rates{25, 75, 175, 25}));
  flows.flows[1].limit = 10;
  EXPECT_EQ(rates_of(MaxMin().fair(flows.capacity, flows.flows)), (Rates{25, 10, 175, 25}));
  flows.flows[3].weight = 4;
  EXPECT_EQ(rates_of(MaxMin().fair(flows.capacity, flows.flows)), (Rates{10, 10, 190, 40}));
  EXPECT_EQ(rates_of(MaxMin().strict(flows.capacity, flows.flows, Links{1, 0, 2, 2})),
            (Rates{50, 10, 150, 0}));
}

TEST(RateRules, AFlowWithoutLinksHasItsLimit) {
  Case flows{{100}, {}, {}};
  flows.add({}, 1);
  flows.add({0}, 1);
  flows.flows[0].limit = 7;
  EXPECT_EQ(rates_of(MaxMin().fair(flows.capacity, flows.flows)), (Rates{7, 100}));
  EXPECT_TRUE(MaxMin().fair(flows.capacity, {}).empty());
}

// Returns random flows over random links.
Case random_case(std::uint64_t seed) {
  RandomStream random(seed, "rates");
  Case flows;
  const std::uint64_t links = 2 + random.below(8);
  for (std::uint64_t i = 0; i < links; ++i)
    flows.capacity.push_back(static_cast<BitRate>(random.below(100)) * kGbps);
  for (std::uint64_t i = 0, count = 1 + random.below(30); i < count; ++i) {
    Links crossed;
    for (std::uint32_t link = 0; link < links; ++link) {
      if (random.below(3) == 0) crossed.push_back(link);
    }
    if (crossed.empty()) crossed.push_back(0);
    flows.add(crossed, static_cast<Bytes>(1 + random.below(1000)) * kMegabyte,
              static_cast<std::uint32_t>(random.below(5)), static_cast<Time>(random.below(kSecond)));
    flows.flows.back().weight = static_cast<std::uint32_t>(1 + random.below(4));
    if (random.below(3) == 0) flows.flows.back().limit = static_cast<BitRate>(random.below(20)) * kGbps;
  }
  return flows;
}

// No link has too much. Every flow has its limit, or crosses a full link where nobody has more per weight.
TEST(RateRules, EveryFlowHasABottleneck) {
  MaxMin max_min;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Case flows = random_case(seed);
    const Rates rates = rates_of(max_min.fair(flows.capacity, flows.flows));
    Rates used(flows.capacity.size(), 0);
    std::vector<double> most(flows.capacity.size(), 0);
    for (std::size_t i = 0; i < rates.size(); ++i) {
      for (const std::uint32_t link : flows.links[i]) {
        used[link] += rates[i];
        most[link] = std::max(most[link], static_cast<double>(rates[i]) / flows.flows[i].weight);
      }
    }
    for (std::size_t i = 0; i < rates.size(); ++i) {
      bool bounded = rates[i] == flows.flows[i].limit;
      for (const std::uint32_t link : flows.links[i]) {
        ASSERT_LE(used[link], flows.capacity[link]) << seed;
        bounded = bounded || (used[link] > flows.capacity[link] - 100 &&
                              static_cast<double>(rates[i]) / flows.flows[i].weight > most[link] - 100);
      }
      EXPECT_TRUE(bounded) << seed << " flow " << i;
    }
  }
}

TEST(RateRules, ShortestFirst) {
  Case flows{{kUnit}, {}, {}};
  for (const Bytes size : {1000, 2000, 3000}) flows.add({0}, size);
  Case again = flows;
  const std::vector<Time> at_once(3, 0);
  expect_times(play(flows, at_once, [&](Time) { return fair_of_active(flows); }), {3, 5, 6});
  expect_times(play(again, at_once,
                    [&](Time) {
                      std::vector<Bytes> left;
                      for (const RuleFlow& flow : again.flows) left.push_back(flow.left);
                      return by_key(again, left);
                    }),
               {1, 3, 6});
}

TEST(RateRules, LeastAttainedFirst) {
  Case flows{{kUnit}, {}, {}};
  flows.add({0}, 10'000);
  flows.add({0}, 1'000);
  Case again = flows;
  const std::vector<Time> released = seconds({0, 5});
  expect_times(play(flows, released, [&](Time) { return fair_of_active(flows); }), {11, 7});
  const std::vector<Bytes> sizes{10'000, 1'000}, thresholds{2'000};
  expect_times(play(again, released,
                    [&](Time now) {
                      std::vector<Bytes> level;
                      for (std::size_t i = 0; i < sizes.size(); ++i) {
                        const Bytes sent = now < released[i] ? 0 : sizes[i] - again.flows[i].left;
                        level.push_back(level_of_sent(sent, thresholds));
                      }
                      return by_key(again, level);
                    }),
               {11, 6});
}

TEST(RateRules, LevelsByBytes) {
  const std::vector<Bytes> aalo = exponential_thresholds(kAaloFirst, kAaloFactor, kAaloLevels);
  ASSERT_EQ(aalo.size(), 9U);
  EXPECT_EQ(aalo.front(), 10 * kMegabyte);
  EXPECT_EQ(aalo.back(), 1'000'000 * kGigabyte);
  EXPECT_EQ(level_of_sent(10 * kMegabyte - 1, aalo), 0U);
  EXPECT_EQ(level_of_sent(10 * kMegabyte, aalo), 1U);
  EXPECT_EQ(left_in_level(99 * kMegabyte, aalo), kMegabyte);
  EXPECT_EQ(left_in_level(aalo.back(), aalo), INT64_MAX);
  EXPECT_EQ(level_of_left(10 * kMegabyte, aalo), 0U);
  EXPECT_EQ(level_of_left(10 * kMegabyte + 1, aalo), 1U);
  EXPECT_LT(exponential_thresholds(1, 1000, 100).size(), 10U);  // the rest is beyond the range of Bytes
  EXPECT_EQ(equal_share_thresholds(std::vector<Bytes>{80}, 8),
            (std::vector<Bytes>{10, 20, 30, 40, 50, 60, 70}));
  EXPECT_EQ(equal_share_thresholds(std::vector<Bytes>{1, 2, 3, 100}, 4), (std::vector<Bytes>{21, 47, 74}));
}

// The instance of two hosts: links are the way out of both, then the way into both.
Case two_hosts() {
  Case flows{Rates(4, kUnit), {}, {}};
  flows.add({0, 2}, 2000, 0);
  flows.add({1, 3}, 1000, 0);
  flows.add({0, 3}, 4000, 1);
  flows.add({1, 2}, 3000, 2);
  return flows;
}

std::vector<Time> of_coflows(const std::vector<Time>& ends) {
  return {std::max(ends[0], ends[1]), ends[2], ends[3]};
}

TEST(RateRules, SmallestBottleneckFirst) {
  Case flows = two_hosts();
  EXPECT_EQ(sebf_order(flows.capacity, flows.flows, 3), (Links{0, 2, 1}));
  const Links order{0, 2, 1};
  EXPECT_EQ(madd_rates(flows.capacity, flows.flows, order, Backfill::none), (Rates{kUnit, kUnit / 2, 0, 0}));
  EXPECT_EQ(madd_rates(flows.capacity, flows.flows, order, Backfill::in_order), (Rates{kUnit, kUnit, 0, 0}));
  const auto varys = [&](Time) {
    return madd_rates(flows.capacity, flows.flows, sebf_order(flows.capacity, flows.flows, 3),
                      Backfill::in_order);
  };
  expect_times(of_coflows(play(flows, std::vector<Time>(4, 0), varys)), {2, 6, 5});
  Case fair = two_hosts();
  expect_times(of_coflows(play(fair, std::vector<Time>(4, 0), [&](Time) { return fair_of_active(fair); })),
               {4, 6, 5});
}

TEST(RateRules, ACoflowAloneEndsAtItsBottleneckTime) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Case flows = random_case(seed);
    double gamma = 0;
    for (std::size_t link = 0; link < flows.capacity.size(); ++link) {
      flows.capacity[link] += kGbps;
      Bytes load = 0;
      for (std::size_t i = 0; i < flows.flows.size(); ++i) {
        flows.flows[i].group = 0;
        flows.flows[i].limit = RuleFlow::kNoLimit;
        if (std::count(flows.links[i].begin(), flows.links[i].end(), link) > 0) load += flows.flows[i].left;
      }
      gamma = std::max(gamma, to_seconds(transmission_time(load, flows.capacity[link])));
    }
    const Rates rates = madd_rates(flows.capacity, flows.flows, Links{0}, Backfill::none);
    for (std::size_t i = 0; i < rates.size(); ++i)
      EXPECT_NEAR(to_seconds(transmission_time(flows.flows[i].left, rates[i])), gamma, gamma * 1e-6) << seed;
  }
}

TEST(RateRules, Sincronia) {
  Case flows = two_hosts();
  const CoflowOrder order = bssi_order(flows.capacity, flows.flows, std::vector<double>(3, 1));
  EXPECT_EQ(order.order, (Links{2, 0, 1}));
  EXPECT_DOUBLE_EQ(order.bound, 12.5);
  const std::vector<Bytes> place{1, 1, 2, 0};
  const auto ends =
      of_coflows(play(flows, std::vector<Time>(4, 0), [&](Time) { return by_key(flows, place); }));
  expect_times(ends, {5, 6, 3});  // their sum is 14; the best order has 13
}

TEST(RateRules, CoflowsWithoutBytesComeFirst) {
  Case flows = two_hosts();
  flows.flows[3].left = 0;
  EXPECT_EQ(bssi_order(flows.capacity, flows.flows, std::vector<double>(4, 1)).order, (Links{2, 3, 0, 1}));
  EXPECT_EQ(sebf_order(flows.capacity, flows.flows, 4), (Links{2, 3, 0, 1}));
}

TEST(RateRules, EarliestDeadlineFirst) {
  Case flows{{kUnit}, {}, {}};
  for (const double deadline : {3.0, 1.0, 2.0}) flows.add({0}, 1000, 0, static_cast<Time>(deadline * 1e12));
  EXPECT_EQ(edf_ends(flows.capacity, flows.flows, 0), seconds({3, 1, 2}));
  EXPECT_EQ(edf_rates(flows.capacity, flows.flows, {}), (Rates{0, kUnit, 0}));
  EXPECT_EQ(edf_rates(flows.capacity, flows.flows, std::vector<std::uint8_t>{1, 0, 0}), (Rates{kUnit, 0, 0}));
  Case fair = flows;
  expect_times(play(fair, std::vector<Time>(3, 0), [&](Time) { return fair_of_active(fair); }), {3, 3, 3});
  flows.add({0}, 1000, 0, 3 * kSecond);  // one too many
  flows.add({0}, 1000);                  // without a deadline
  flows.add({0}, 1000, 0, 4 * kSecond);
  std::vector<std::uint8_t> admitted(6, 0);
  admit_by_deadline(flows.capacity, flows.flows, 0, admitted);
  EXPECT_EQ(admitted, (std::vector<std::uint8_t>{1, 1, 1, 0, 0, 1}));
  EXPECT_EQ(edf_order(flows.flows, admitted), (Links{1, 2, 0, 5, 3, 4}));
}

// Admitted flows that are alone meet their deadlines, whatever their links.
TEST(RateRules, AdmittedFlowsMeetTheirDeadlines) {
  std::size_t kept = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Case flows = random_case(seed);
    std::vector<std::uint8_t> admitted(flows.flows.size(), 0);
    admit_by_deadline(flows.capacity, flows.flows, 0, admitted);
    std::vector<RuleFlow> alone;
    for (std::size_t i = 0; i < admitted.size(); ++i) {
      if (admitted[i] != 0) alone.push_back(flows.flows[i]);
    }
    const std::vector<Time> ends = edf_ends(flows.capacity, alone, 0);
    for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_LE(ends[i], alone[i].deadline) << seed;
    kept += alone.size();
    refused += admitted.size() - alone.size();
  }
  EXPECT_GT(kept, 100U);
  EXPECT_GT(refused, 100U);
}

// EchelonFlow's figure 2: three microbatches, flows of twice the time of a computation, released a
// computation apart. The computations of the second worker end at 8.5, 10 and 8.
double last_computation(std::vector<Time> ends) {
  double end = 0;
  std::sort(ends.begin(), ends.end());
  for (const Time ready : ends) end = std::max(end, to_seconds(ready)) + 1;
  return end;
}

TEST(RateRules, Echelon) {
  Case fair{{kUnit}, {}, {}};
  const std::vector<Time> deadlines = echelon_deadlines(kSecond, std::vector<Time>(2, kSecond));
  EXPECT_EQ(deadlines, seconds({1, 2, 3}));
  for (const Time deadline : deadlines) fair.add({0}, 2000, 0, deadline);
  Case coflow = fair, echelon = fair;
  const auto ends_fair = play(fair, deadlines, [&](Time) { return fair_of_active(fair); });
  expect_times(ends_fair, {4.5, 6.5, 7});
  EXPECT_NEAR(last_computation(ends_fair), 8.5, 0.01);
  // From the last release on, the flows of a coflow end together.
  const auto ends_coflow = play(coflow, deadlines, [&](Time now) {
    if (now < 3 * kSecond) return fair_of_active(coflow);
    return madd_rates(coflow.capacity, coflow.flows, Links{0}, Backfill::in_order);
  });
  expect_times(ends_coflow, {7, 7, 7});
  EXPECT_NEAR(last_computation(ends_coflow), 10, 0.01);
  const auto ends_echelon = play(echelon, deadlines, [&](Time now) {
    return echelon_rates(echelon.capacity, echelon.flows, Links{0}, now, Backfill::in_order);
  });
  expect_times(ends_echelon, {5, 6, 7});
  EXPECT_NEAR(last_computation(ends_echelon), 8, 0.01);
}

// With one deadline for all, an echelon is a coflow.
TEST(RateRules, AnEchelonWithOneDeadlineIsACoflow) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Case flows = random_case(seed);
    for (BitRate& capacity : flows.capacity) capacity += kGbps;
    for (RuleFlow& flow : flows.flows) {
      flow.deadline = kSecond;
      flow.limit = RuleFlow::kNoLimit;
    }
    const Links order = sebf_order(flows.capacity, flows.flows, 5);
    EXPECT_EQ(order, echelon_order(flows.capacity, flows.flows, 5, 0)) << seed;
    const Rates coflow = madd_rates(flows.capacity, flows.flows, order, Backfill::none);
    const Rates echelon = echelon_rates(flows.capacity, flows.flows, order, 0, Backfill::none);
    for (std::size_t i = 0; i < coflow.size(); ++i)
      EXPECT_NEAR(static_cast<double>(coflow[i]), static_cast<double>(echelon[i]), 1000) << seed;
  }
}

// The more urgent job of two goes first: its tardiness is smaller.
TEST(RateRules, EchelonsGoByTardiness) {
  Case flows{{kUnit}, {}, {}};
  flows.add({0}, 2000, 0, kSecond);
  flows.add({0}, 1000, 1, 2 * kSecond);
  EXPECT_EQ(least_tardiness(flows.capacity, flows.flows, 3, 0),
            (std::vector<Time>{kSecond, -kSecond, INT64_MIN}));
  EXPECT_EQ(echelon_order(flows.capacity, flows.flows, 2, 0), (Links{1, 0}));
  EXPECT_EQ(echelon_rates(flows.capacity, flows.flows, Links{1, 0}, 0, Backfill::in_order),
            (Rates{0, kUnit}));
}

}  // namespace
}  // namespace netsim::rate_rules_test
