// Are a run's schedulers called in order at the intervals that one of them asked for? Is nothing called
// where there is none?
#include "sim/scheduling/scheduling_intervals.h"
#include "sim/scheduling/scheduling_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/core/errors.h"

namespace netsim::scheduling_intervals_test {
namespace {

using ::testing::ElementsAre;

TEST(SchedulingIntervals, CallsAllSubscribersByLayerWhereOneAsked) {
  Engine engine;
  SchedulingIntervals intervals(engine, 100);
  std::vector<std::string> calls;
  const auto subscribe = [&](SchedulingLayer layer, const std::string& name) {
    intervals.subscribe(layer, [&calls, name](Time now, bool idle) {
      calls.push_back(name + " " + std::to_string(now) + (idle ? " idle" : ""));
    });
  };
  subscribe(SchedulingLayer::tasks, "tasks");
  subscribe(SchedulingLayer::jobs, "jobs");
  subscribe(SchedulingLayer::tasks, "more tasks");
  engine.call_at(10, [&] { intervals.ask(); });
  engine.call_at(250, [&] { intervals.ask_at(0, 301); });
  engine.call_at(1000, [] {});
  engine.run();
  EXPECT_THAT(
      calls, ElementsAre("jobs 100", "tasks 100", "more tasks 100", "jobs 400", "tasks 400", "more tasks 400",
                         "jobs 1100 idle", "tasks 1100 idle", "more tasks 1100 idle"));
}

TEST(SchedulingIntervals, CostsNothingWithoutSubscribers) {
  Engine engine;
  SchedulingIntervals intervals(engine, 100);
  engine.call_at(10, [] {});
  engine.run();
  EXPECT_FALSE(intervals.has_subscribers());
  EXPECT_EQ(engine.now(), 10);
  EXPECT_THROW(intervals.ask(), InternalError);
}

TEST(SchedulingIntervals, TheIntervalHasAUnitAndLimits) {
  const auto interval = [](const char* text) {
    ConfigNode section = ConfigNode::map(Place{"x.yaml", 1, 1, "scheduling"});
    section.at_or_add("interval") = ConfigNode::scalar(text, Place{"x.yaml", 2, 13, "scheduling.interval"});
    return scheduling_parameters().parse(section).interval;
  };
  EXPECT_EQ(SchedulingParameters().interval, kMicrosecond);
  EXPECT_EQ(interval("5 us"), 5 * kMicrosecond);
  EXPECT_THROW(interval("0 us"), ConfigError);
  EXPECT_THROW(interval("2 s"), ConfigError);
}

}  // namespace
}  // namespace netsim::scheduling_intervals_test
