// Does the calendar run events in the order of the law, whatever the widths, horizons and insertions while
// running?
#include "sim/core/event_loop.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>
#include <vector>

#include "sim/core/random.h"

namespace netsim::event_loop_test {
namespace {

struct Recorder {
  EventLoop loop;
  std::vector<Event> seen;
  RandomStream random{1, "test"};
  std::vector<Origin> origins;
  std::uint64_t spawn = 0;
  Time reach = 1;

  explicit Recorder(std::uint32_t entities) {
    for (std::uint32_t i = 0; i < entities; ++i) origins.emplace_back(i);
    loop.set_handler(
        EventKind::job, [](void* self, const Event& e) { static_cast<Recorder*>(self)->handle(e); }, this);
  }
  void handle(const Event& event) {
    EXPECT_EQ(event.time, loop.now());
    seen.push_back(event);
    if (spawn == 0) return;
    --spawn;
    add(loop.now() + static_cast<Time>(random.below(static_cast<std::uint64_t>(reach))));
  }
  void add(Time time) {
    loop.schedule(time, origins[random.below(origins.size())], EventKind::job, 0, random.bits());
  }
};

// The events lie in the current bucket, in both calendars and beyond them.
TEST(EventLoop, FindsKindsOfPendingEvents) {
  const auto bit = [](EventKind kind) { return 1U << static_cast<unsigned>(kind); };
  for (const Time time : {Time{5}, Time{1000}, 100 * kMicrosecond, 10 * kMillisecond, 1000 * kSecond}) {
    Recorder r(1);
    r.loop.set_handler(
        EventKind::pace, [](void*, const Event&) {}, nullptr);
    r.add(1);
    for (Time at = 5; at < 100; ++at) r.loop.schedule(at, r.origins[0], EventKind::pace, 0);
    EXPECT_TRUE(r.loop.has_pending(bit(EventKind::job)));
    r.loop.run(3);
    EXPECT_FALSE(r.loop.has_pending(bit(EventKind::job)));
    EXPECT_TRUE(r.loop.has_pending(bit(EventKind::job) | bit(EventKind::pace)));
    r.add(time);
    EXPECT_TRUE(r.loop.has_pending(bit(EventKind::job))) << time;
    EXPECT_FALSE(r.loop.has_pending(bit(EventKind::executor)));
    r.loop.run();
    EXPECT_FALSE(r.loop.has_pending(bit(EventKind::job) | bit(EventKind::pace)));
  }
}

TEST(EventLoop, OrdersByTimeThenOriginThenSequence) {
  EXPECT_TRUE(rc::check([] {
    Recorder r(5);
    r.reach = *rc::gen::element<Time>(1, 50, 100'000, 1'000'000'000, 400'000'000'000);
    r.random = RandomStream(*rc::gen::arbitrary<std::uint32_t>(), "order");
    const auto initial = *rc::gen::inRange<std::uint64_t>(1, 200);
    r.spawn = *rc::gen::inRange<std::uint64_t>(0, 3000);
    const std::uint64_t total = initial + r.spawn;
    for (std::uint64_t i = 0; i < initial; ++i)
      r.add(static_cast<Time>(r.random.below(static_cast<std::uint64_t>(r.reach))));
    RC_ASSERT(r.loop.pending() == initial);
    RC_ASSERT(r.loop.run() == total);
    RC_ASSERT(r.loop.pending() == 0u);
    for (std::size_t i = 1; i < r.seen.size(); ++i) RC_ASSERT(r.seen[i - 1].time <= r.seen[i].time);
    // Without insertions while running the order is the law's, exactly.
    if (total == initial) RC_ASSERT(std::is_sorted(r.seen.begin(), r.seen.end(), before));
  }));
}

TEST(EventLoop, OrderDoesNotDependOnTheCalendarWidth) {
  // 300,000 events with a dense and a sparse phase make the width adapt both ways; a plain sort is the
  // reference.
  Recorder r(64);
  RandomStream times(7, "times");
  for (int i = 0; i < 200'000; ++i) r.add(static_cast<Time>(times.below(20'000'000)));
  for (int i = 0; i < 100'000; ++i) r.add(static_cast<Time>(20'000'000 + times.below(900'000'000'000)));
  r.loop.run();
  ASSERT_EQ(r.seen.size(), 300'000u);
  EXPECT_TRUE(std::is_sorted(r.seen.begin(), r.seen.end(), before));
}

TEST(EventLoop, UntilIsInclusiveAndResumable) {
  Recorder r(1);
  for (Time t : {10, 20, 20, 30, 5'000'000}) r.add(t);
  EXPECT_EQ(r.loop.run(9), 0u);
  EXPECT_EQ(r.loop.run(20), 3u);
  EXPECT_EQ(r.loop.now(), 20);
  r.add(25);
  EXPECT_EQ(r.loop.run_some(1), 1u);
  EXPECT_EQ(r.loop.now(), 25);
  EXPECT_EQ(r.loop.run(), 2u);
  EXPECT_EQ(r.loop.executed(), 6u);
}

TEST(EventLoop, NextTimeIsThatOfTheEarliestPendingEvent) {
  EventLoop loop;
  Origin origin(1);
  loop.set_handler(
      EventKind::job, [](void*, const Event&) {}, nullptr);
  EXPECT_EQ(loop.next_time(), kNever);
  loop.schedule(9 * kSecond, origin, EventKind::job, 0);  // beyond the calendar's horizon
  EXPECT_EQ(loop.next_time(), 9 * kSecond);
  loop.schedule(5000, origin, EventKind::job, 0);
  EXPECT_EQ(loop.next_time(), 5000);
  loop.schedule(4000, origin, EventKind::job, 0);  // asking has not moved the calendar past it
  EXPECT_EQ(loop.next_time(), 4000);
  EXPECT_EQ(loop.run(4500), 1u);
  loop.schedule(4500, origin, EventKind::job, 0);
  EXPECT_EQ(loop.next_time(), 4500);
  EXPECT_EQ(loop.run(6000), 2u);
  EXPECT_EQ(loop.next_time(), 9 * kSecond);
  EXPECT_EQ(loop.now(), 5000);
  EXPECT_EQ(loop.run(), 1u);
  EXPECT_EQ(loop.next_time(), kNever);
}

// Nothing takes time, so an instant is as long as the run. Each event adds one or two at its own time, with
// any origin, until there have been `total`.
struct Instant {
  explicit Instant(std::uint64_t total) : left(total) {
    for (std::uint32_t i = 0; i < 64; ++i) origins.emplace_back(i);
    loop.set_handler(
        EventKind::job, [](void* self, const Event& e) { static_cast<Instant*>(self)->handle(e); }, this);
    add();
  }
  void handle(const Event& event) {
    if (check) {
      EXPECT_EQ(event.key, *keys.begin());
      keys.erase(keys.begin());
    }
    for (std::uint64_t more = ++handled < 9'000 ? 2 : 1; more > 0; --more) add();
  }
  void add() {
    if (left == 0) return;
    --left;
    const Event event{7, origins[random.below(origins.size())].next_key(), 0, EventKind::job, 0};
    if (check) keys.insert(event.key);
    loop.insert(event);
  }
  EventLoop loop;
  std::vector<Origin> origins;
  RandomStream random{3, "instant"};
  std::uint64_t left, handled = 0;
  bool check = true;
  std::set<std::uint64_t> keys;
};

TEST(EventLoop, AnInstantHasTheOrderOfTheLaw) {
  Instant instant(200'000);
  EXPECT_EQ(instant.loop.run(), 200'000U);
  EXPECT_TRUE(instant.keys.empty());
}

// More than there are places for: those of what has been executed are used again.
TEST(LongEventLoop, AnInstantMayHaveAnyNumberOfEvents) {
  constexpr std::uint64_t kEvents = (1U << 26) + 1'000'000;
  Instant instant(kEvents);
  instant.check = false;
  instant.keys.clear();
  EXPECT_EQ(instant.loop.run(), kEvents);
}

TEST(EventLoop, WindowsUpToAHorizonGiveTheOrderOfOneRun) {
  // As a run in windows does: up to a horizon, then events from outside, not before the horizon.
  EXPECT_TRUE(rc::check([] {
    Recorder r(5);
    r.reach = *rc::gen::element<Time>(50, 20'000, 3'000'000, 1'000'000'000);
    r.random = RandomStream(*rc::gen::arbitrary<std::uint32_t>(), "windows");
    const auto window = *rc::gen::element<Time>(1, 700, 100'000, 50'000'000);
    r.spawn = *rc::gen::inRange<std::uint64_t>(0, 500);
    std::vector<Time> outside;
    for (int i = *rc::gen::inRange(1, 60); i > 0; --i)
      outside.push_back(static_cast<Time>(r.random.below(static_cast<std::uint64_t>(4 * r.reach))));
    std::sort(outside.begin(), outside.end());
    const std::uint64_t total = outside.size() + r.spawn;
    Time horizon = 0;
    for (std::size_t given = 0;;) {
      const Time next = std::min(r.loop.next_time(), given < outside.size() ? outside[given] : kNever);
      if (next == kNever) break;
      RC_ASSERT(next >= horizon);
      horizon = next + window;
      while (given < outside.size() && outside[given] < horizon) r.add(outside[given++]);
      RC_ASSERT(r.loop.next_time() == next);
      RC_ASSERT(r.loop.run(horizon - 1) > 0u);
    }
    RC_ASSERT(r.loop.pending() == 0u);
    RC_ASSERT(r.seen.size() == total);
    for (std::size_t i = 1; i < r.seen.size(); ++i) RC_ASSERT(r.seen[i - 1].time <= r.seen[i].time);
  }));
}

}  // namespace
}  // namespace netsim::event_loop_test
