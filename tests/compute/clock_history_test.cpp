// Does a GPU choose its clock from the mean power of what it computed lately?
#include "sim/compute/clock_history.h"

#include <gtest/gtest.h>

namespace netsim::clock_history_test {
namespace {

// 10 ms at 1,980 MHz each; the first draws more than 500 W at that clock, the second less.
const KernelDemand kHungry{.cycles = 1.98e7, .core_energy = 10};
const KernelDemand kLight{.cycles = 1.98e7, .core_energy = 1};

const PowerLaw& law() {
  static const PowerLaw law({.limit_watts = 500});
  return law;
}

TEST(ClockHistory, BeginsWithWhatRuns) {
  EXPECT_EQ(ClockHistory().clock(law(), {kHungry}), law().clock({kHungry}, 0));
  EXPECT_LT(ClockHistory().clock(law(), {kHungry}), 1980);
}

TEST(ClockHistory, IdleTimeCountsAndDecays) {
  ClockHistory idle, busy;
  idle.advance(law(), 50 * kMillisecond, true);
  busy.advance(law(), 50 * kMillisecond, false);
  EXPECT_EQ(busy.clock(law(), {kHungry}), law().clock({kHungry}, 0));
  EXPECT_EQ(idle.clock(law(), {kHungry}), law().clock({kHungry}, 5e10 * 100 / 150));
  EXPECT_GT(idle.clock(law(), {kHungry}), busy.clock(law(), {kHungry}));
}

TEST(ClockHistory, EqualStepsKeepTheirClock) {
  ClockHistory history;
  Time now = 0;
  const std::int64_t mhz = law().clock({kHungry}, 0);
  for (int step = 0; step < 50; ++step) {
    ASSERT_EQ(history.clock(law(), {kHungry}), mhz) << step;
    now += static_cast<Time>(PowerLaw::time({kHungry}, mhz));
    history.advance(law(), now, false);
    history.add(law(), {kHungry}, mhz);
  }
}

TEST(ClockHistory, WorkOfTheWindowSlowsALighterTask) {
  ClockHistory history;
  Time now = 0;
  for (int step = 0; step < 20; ++step) {
    now += 10 * kMillisecond;
    history.advance(law(), now, false);
    history.add(law(), {kHungry}, 1980);
  }
  EXPECT_EQ(law().clock({kLight}, 0), 1980);
  EXPECT_LT(history.clock(law(), {kLight}), 1980);
  history.advance(law(), now + 100 * kSecond, true);
  EXPECT_EQ(history.clock(law(), {kLight}), 1980) << "the window has passed";
}

}  // namespace
}  // namespace netsim::clock_history_test
