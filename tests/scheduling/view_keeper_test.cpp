// Does a decision see the values that its age allows, and are no more kept than it needs? Does taking them
// change nothing else?
#include "sim/scheduling/view_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "sim/scheduling/scheduling_parameters.h"

namespace netsim::view_keeper_test {
namespace {

using ::testing::ElementsAre;

ViewTable queues(Time age, Time every) {
  ViewTable table;
  table.queues = {true, age, every};
  return table;
}

TEST(ViewClock, SeesTheLastMultipleThatIsOldEnough) {
  EXPECT_TRUE(ViewClock({true, 0, 0}, 10).is_live());
  EXPECT_EQ(ViewClock({true, 0, 0}, 10).seen(37), 37);
  const ViewClock periodic({true, 0, 30}, 10);
  EXPECT_FALSE(periodic.is_live());
  EXPECT_EQ(periodic.seen(59), 30);
  EXPECT_EQ(periodic.seen(60), 60);
  const ViewClock aged({true, 25, 0}, 10);
  EXPECT_EQ(aged.every(), 10);
  EXPECT_EQ(aged.seen(24), ViewClock::kNothing);
  EXPECT_EQ(aged.seen(25), 0);
  EXPECT_EQ(aged.seen(37), 10);
  EXPECT_EQ(aged.first_from(31), 40);
  EXPECT_EQ(aged.first_from(40), 40);
}

TEST(ViewHistory, KeepsWhatDecisionsStillSee) {
  ViewHistory<int> history(ViewClock({true, 50, 10}, 10));
  for (Time time = 0; time <= 1000; time += 10) {
    history.add(time, time, static_cast<int>(time));
    EXPECT_LE(history.size(), 6U);
    if (time < 50) {
      EXPECT_EQ(history.seen(time), nullptr);
    } else {
      EXPECT_EQ(history.seen(time)->values, time - 50);
    }
  }
  history.add(1000, 1000, 7);
  EXPECT_EQ(history.at(1000)->values, 7);
  EXPECT_EQ(history.at(999)->values, 990);
}

// A value that events change, and what decisions at intervals see of it.
class Watched {
 public:
  Watched(const ViewTable& table, ViewFields used)
      : keeper_(engine_, table, 10, used), history_(keeper_.clock(ViewField::queues)) {
    intervals_.subscribe(SchedulingLayer::flows, [this](Time now, bool) {
      const auto* entry = history_.seen(now);
      seen.push_back(std::to_string(now) + ":" + (entry == nullptr ? "-" : std::to_string(entry->values)));
    });
    keeper_.keep(ViewField::queues, [this](Time now, Time time) {
      ++taken;
      history_.add(now, time, value_);
    });
  }
  void change_at(Time time, int value) {
    engine_.call_at(time, [this, value] { value_ = value; });
  }
  void ask_early_for(Time time) {
    engine_.call_at(3, [this, time] { intervals_.ask_at(time); });
  }
  void decide_at(Time time) {
    engine_.call_at(time - 1, [this] { intervals_.ask(); });
  }
  Time run() {
    keeper_.begin(intervals_);
    engine_.run();
    return engine_.now();
  }

  std::vector<std::string> seen;
  int taken = 0;

 private:
  Engine engine_;
  SchedulingIntervals intervals_{engine_, 10};
  ViewKeeper keeper_;
  ViewHistory<int> history_;
  int value_ = 0;
};

TEST(ViewKeeper, HandsOutValuesOfTheRightTime) {
  Watched run(queues(20, 0), {ViewField::queues});
  run.change_at(5, 1);
  run.change_at(15, 2);
  run.change_at(205, 3);
  for (const Time time : {10, 20, 30, 40, 210, 230}) run.decide_at(time);
  EXPECT_EQ(run.run(), 230);
  EXPECT_THAT(run.seen, ElementsAre("10:-", "20:0", "30:1", "40:2", "210:2", "230:3"));
  EXPECT_LT(run.taken, 20);  // times between 40 and 200 are left out
}

TEST(ViewKeeper, TakesValuesAtMultiplesOfAPeriod) {
  Watched run(queues(0, 40), {ViewField::queues});
  run.change_at(5, 1);
  run.change_at(45, 2);
  run.change_at(75, 3);
  for (const Time time : {10, 40, 50, 80, 100}) run.decide_at(time);
  run.run();
  EXPECT_THAT(run.seen, ElementsAre("10:0", "40:1", "50:1", "80:3", "100:3"));
}

TEST(ViewKeeper, TakesNothingThatNobodyUsesOrThatIsOffOrLive) {
  Watched unused(queues(20, 0), {ViewField::rates});
  unused.change_at(5, 1);
  unused.run();
  EXPECT_EQ(unused.taken, 0);
  ViewTable off = queues(20, 0);
  off.queues.on = false;
  Watched hidden(off, {ViewField::queues});
  hidden.change_at(5, 1);
  hidden.run();
  EXPECT_EQ(hidden.taken, 0);
  Watched live(queues(0, 0), {ViewField::queues});
  live.change_at(5, 1);
  live.run();
  EXPECT_EQ(live.taken, 0);
}

// The keeper asks for no interval of its own, so the decisions and the end of the run are the same.
TEST(ViewKeeper, ChangesNeitherDecisionsNorTheEnd) {
  const auto calls = [](const ViewTable& table) {
    Watched run(table, {ViewField::queues});
    for (Time time = 7; time < 400; time += 31) run.change_at(time, 1);
    run.ask_early_for(300);  // a request for later stays
    run.decide_at(390);
    const Time end = run.run();
    std::vector<std::string> times;
    for (const std::string& one : run.seen) times.push_back(one.substr(0, one.find(':')));
    times.push_back(std::to_string(end));
    return times;
  };
  EXPECT_EQ(calls(queues(0, 0)), calls(queues(20, 0)));
  EXPECT_EQ(calls(queues(0, 0)), calls(queues(0, 50)));
}

TEST(ViewFields, AreSets) {
  const ViewFields two{ViewField::sizes, ViewField::loads};
  EXPECT_EQ(two - ViewFields{ViewField::loads}, ViewFields{ViewField::sizes});
  EXPECT_EQ(ViewFields::all() & two, two);
  EXPECT_TRUE(ViewFields::all().has(ViewField::jobs));
  ViewTable table;
  table.sizes.on = false;
  EXPECT_EQ(views_for({}, table, two, {ViewField::loads}, "a scheduler"), ViewFields{ViewField::loads});
  EXPECT_THROW(views_for({}, table, two, {ViewField::sizes}, "a scheduler"), ConfigError);
}

}  // namespace
}  // namespace netsim::view_keeper_test
