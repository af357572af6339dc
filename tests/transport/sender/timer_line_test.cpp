// Do timers end in the order in which an event loop would end them, one group of events at a time?
#include "sim/transport/sender/timer_queue.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace netsim::timer_line_test {
namespace {

// The part of the loop: the events that were made, by (time, key).
class Loop {
 public:
  auto insert() {
    return [this](const TimerQueue::Timer& timer, std::uint32_t place) {
      events.emplace(std::pair(static_cast<Time>(timer.time), timer.key), place);
    };
  }
  void add(Time time, std::uint64_t key, std::uint32_t pair) {
    ASSERT_TRUE(line.takes(time));
    line.add(time, key, pair, insert());
  }
  // Executes the earliest event; (key, queue pair).
  std::pair<std::uint64_t, std::uint64_t> step() {
    const auto [order, place] = *events.begin();
    events.erase(events.begin());
    const TimerQueue::Timer timer = line.end(place, insert());
    EXPECT_EQ(static_cast<Time>(timer.time), order.first);
    return {timer.key, timer.value};
  }

  TimerQueue line;
  std::map<std::pair<Time, std::uint64_t>, std::uint32_t> events;
};

TEST(TimerQueue, OnlyTheFirstAreEvents) {
  Loop loop;
  loop.add(10, 7, 1);
  loop.add(10, 3, 2);
  loop.add(20, 1, 3);
  EXPECT_EQ(loop.events.size(), 2u);
  EXPECT_FALSE(loop.line.takes(19));
  EXPECT_TRUE(loop.line.takes(20));
  EXPECT_EQ(loop.step(), std::pair(std::uint64_t{3}, std::uint64_t{2}));
  EXPECT_EQ(loop.events.size(), 1u);
  EXPECT_EQ(loop.step(), std::pair(std::uint64_t{7}, std::uint64_t{1}));
  EXPECT_EQ(loop.step(), std::pair(std::uint64_t{1}, std::uint64_t{3}));
  EXPECT_TRUE(loop.events.empty());
  EXPECT_TRUE(loop.line.takes(0));
}

// Any mixture of adding and ending, in lines that are longer than a chunk.
TEST(TimerQueue, KeepsTheOrderOfTimesAndKeys) {
  EXPECT_TRUE(rc::check([](const std::vector<std::pair<std::uint8_t, std::uint8_t>>& drawn) {
    Loop loop;
    std::vector<std::pair<Time, std::uint64_t>> expected;
    std::vector<std::uint64_t> keys;
    Time time = 1;
    std::uint64_t number = 0;
    for (const auto& [count, steps] : drawn) {
      for (std::uint32_t i = 0; i < 4U * count; ++i) {
        time += i % 3 == 0 ? 1 : 0;
        const std::uint64_t key = (number * 2'654'435'761ULL) % 1'000'003;
        loop.add(time, key, static_cast<std::uint32_t>(number++));
        expected.emplace_back(time, key);
      }
      for (std::uint32_t i = 0; i < 4U * steps && !loop.events.empty(); ++i)
        keys.push_back(loop.step().first);
      ++time;  // timers of a time are not added once events of that time run
    }
    while (!loop.events.empty()) keys.push_back(loop.step().first);
    std::sort(expected.begin(), expected.end());
    RC_ASSERT(keys.size() == expected.size());
    for (std::size_t i = 0; i < keys.size(); ++i) RC_ASSERT(keys[i] == expected[i].second);
  }));
}

}  // namespace
}  // namespace netsim::timer_line_test
