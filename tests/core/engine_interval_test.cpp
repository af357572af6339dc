// Is the interval called at the multiples that somebody asked for, whatever the sets and threads, and does
// the run end although it is?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "sim/core/engine.h"
#include "sim/core/errors.h"
#include "sim/core/random.h"

namespace netsim::engine_interval_test {
namespace {

using ::testing::ElementsAre;

using IntervalAt = std::pair<Time, bool>;

// One set with events that may ask for the interval's call. Argument 0 does nothing, and 1 asks. Any other
// argument asks for a call that is not before it.
class Asker {
 public:
  explicit Asker(Time interval) {
    engine.loop().set_handler<&Asker::handle>(EventKind::job, *this);
    engine.set_interval(interval, [this](Time time, bool idle) {
      EXPECT_EQ(engine.now(), time);
      EXPECT_EQ(engine.loop().now(), time);
      calls.emplace_back(time, idle);
      if (called) called(time, idle);
    });
  }
  void add(Time time, std::uint64_t argument) {
    engine.loop().schedule(time, origin_, EventKind::job, 0, argument);
  }
  void handle(const Event& event) {
    seen.push_back(event.time);
    if (event.argument == 1) engine.set(0).ask_interval();
    if (event.argument > 1) engine.set(0).ask_interval_at(static_cast<Time>(event.argument));
  }

  Engine engine;
  std::vector<IntervalAt> calls;
  std::vector<Time> seen;
  std::function<void(Time, bool)> called;

 private:
  Origin origin_{1};
};

TEST(EngineInterval, ServesARequestAtTheFirstMultipleAfterIt) {
  Asker asker(100);
  for (const Time time : {1, 99, 200, 350}) asker.add(time, 1);
  asker.add(1000, 0);
  asker.engine.run();
  EXPECT_THAT(asker.calls, ElementsAre(IntervalAt(100, false), IntervalAt(300, false), IntervalAt(400, false),
                                       IntervalAt(1100, true)));
}

TEST(EngineInterval, OneCallServesAllRequestsBeforeIt) {
  Asker asker(100);
  asker.add(10, 650);  // for 700
  asker.add(20, 401);  // for 500
  asker.add(1000, 0);
  asker.engine.run();
  EXPECT_THAT(asker.calls, ElementsAre(IntervalAt(500, false), IntervalAt(1100, true)));
}

TEST(EngineInterval, CodeBetweenEventsMayAskToo) {
  Asker asker(100);
  asker.engine.ask_interval();
  asker.engine.call_at(150, [&] { asker.engine.ask_interval_at(400); });
  asker.called = [&](Time time, bool) {
    if (time == 400) asker.engine.ask_interval();
  };
  asker.add(1000, 0);
  asker.engine.run();
  EXPECT_THAT(asker.calls, ElementsAre(IntervalAt(100, false), IntervalAt(400, false), IntervalAt(500, false),
                                       IntervalAt(1100, true)));
}

TEST(EngineInterval, ComesAfterTheCallsAndBeforeTheEventsOfItsTime) {
  Asker asker(100);
  std::vector<std::string> order;
  asker.add(50, 1);
  asker.add(100, 0);
  asker.called = [&](Time, bool idle) {
    if (idle) return;
    EXPECT_EQ(asker.seen.size(), 1U);
    order.emplace_back("interval");
    asker.add(100, 0);  // acts at once
  };
  asker.engine.call_at(100, [&] {
    order.emplace_back("call");
    asker.engine.ask_interval();  // for 200
  });
  asker.engine.run();
  EXPECT_THAT(order, ElementsAre("call", "interval"));
  EXPECT_THAT(asker.seen, ElementsAre(50, 100, 100));
  EXPECT_THAT(asker.calls, ElementsAre(IntervalAt(100, false), IntervalAt(200, true)));
}

TEST(EngineInterval, IsNotPendingAndIsCalledOnceWhenNothingIs) {
  Asker asker(100);
  asker.add(10, 901);
  asker.called = [&](Time, bool) { asker.engine.ask_interval(); };  // in vain: it schedules nothing
  asker.engine.run(10);
  EXPECT_EQ(asker.engine.pending(), 0U);
  EXPECT_EQ(asker.engine.next_time(), kNever);
  EXPECT_EQ(asker.engine.next_interval(), 1000);
  EXPECT_EQ(asker.engine.run(999), 0U);
  EXPECT_TRUE(asker.calls.empty()) << "it is after the end of that run";
  asker.engine.run();
  asker.engine.run();
  EXPECT_THAT(asker.calls, ElementsAre(IntervalAt(1000, true)));
  EXPECT_EQ(asker.engine.next_interval(), kNever);
  asker.engine.ask_interval();
  asker.engine.run();
  EXPECT_THAT(asker.calls, ElementsAre(IntervalAt(1000, true), IntervalAt(1100, true)));
}

TEST(EngineInterval, AnIdleCallMayGoOnWithTheRun) {
  Asker asker(100);
  int left = 2;
  asker.called = [&](Time time, bool idle) {
    EXPECT_TRUE(idle);
    if (left-- > 0) asker.add(time + 30, 0);
  };
  asker.engine.run();
  EXPECT_THAT(asker.seen, ElementsAre(130, 230));
  EXPECT_THAT(asker.calls, ElementsAre(IntervalAt(100, true), IntervalAt(200, true), IntervalAt(300, true)));
}

TEST(EngineInterval, AMonitorIsIdleOnlyAfterTheLastCall) {
  Asker asker(100);
  std::vector<Time> idle_at;
  asker.engine.set_monitor(1000, [&](Time time, bool idle) {
    if (idle) idle_at.push_back(time);
  });
  bool first = true;
  asker.called = [&](Time time, bool) {
    if (std::exchange(first, false)) asker.add(time + 30, 0);
  };
  asker.add(10, 0);
  asker.engine.run(50);
  EXPECT_TRUE(idle_at.empty());
  asker.engine.run();
  EXPECT_THAT(idle_at, ElementsAre(200));
}

TEST(EngineInterval, NobodyAsksForOneThatIsNotSet) {
  Engine engine;
  EXPECT_THROW(engine.ask_interval(), InternalError);
  EXPECT_THROW(engine.set(0).ask_interval(), InternalError);
  EXPECT_EQ(engine.next_interval(), kNever);
  engine.set_interval(10, [](Time, bool) {});
  EXPECT_THROW(engine.set_interval(10, [](Time, bool) {}), InternalError);
}

// ---- Any number of sets and threads

constexpr std::uint32_t kEntities = 24;
constexpr Time kLookahead = 40;

// Entities that cause events in each other at random, write to the journal and ask for the interval's call.
// The call reads the journal and causes an event at once.
class Crowd {
 public:
  Crowd(std::uint32_t sets, std::uint32_t threads, std::uint64_t seed)
      : engine_({sets, std::vector<Time>(std::size_t{sets} * sets, kLookahead), threads}),
        seed_(seed),
        places_(sets) {
    for (std::uint32_t id = 0; id <= kEntities; ++id) origins_.emplace_back(id);
    reader_ = engine_.add_reader(journal_);
    engine_.set_interval(100, [this](Time time, bool idle) { interval(time, idle); });
    for (std::uint32_t set = 0; set < sets; ++set) {
      places_[set] = {this, set};
      engine_.loop(set).set_handler(EventKind::job, &Crowd::on_event, &places_[set]);
    }
    for (std::uint32_t id = 0; id < kEntities; ++id) schedule(id, static_cast<Time>(id) * 7, 12);
    engine_.call_at(350, [this] {
      log_.emplace_back(engine_.now(), 2, lines_);
      engine_.ask_interval_at(777);
    });
  }
  // Time, kind and number of journal lines that have been read, of each call.
  using Log = std::vector<std::tuple<Time, int, std::uint64_t>>;
  const Log& run() {
    engine_.run();
    EXPECT_EQ(lines_, engine_.executed());
    return log_;
  }

 private:
  struct Place {
    Crowd* crowd = nullptr;
    std::uint32_t set = 0;
  };
  std::uint32_t set_of(std::uint32_t entity) const { return entity % engine_.sets(); }
  void schedule(std::uint32_t entity, Time time, std::uint64_t steps) {
    engine_.loop(set_of(entity)).schedule(time, origins_[entity], EventKind::job, entity, steps);
  }
  static void on_event(void* context, const Event& event) {
    const Place& place = *static_cast<Place*>(context);
    place.crowd->handle(place.set, event);
  }
  void handle(std::uint32_t set, const Event& event) {
    engine_.set(set).write(reader_, event.key);
    if (event.argument == 0) return;
    RandomStream random(seed_ ^ event.key, "next", static_cast<std::uint64_t>(event.time));
    const std::uint64_t draw = random.below(8);
    if (draw == 0) engine_.set(set).ask_interval();
    if (draw == 1) engine_.set(set).ask_interval_at(event.time + static_cast<Time>(random.below(2000)));
    const auto target = static_cast<std::uint32_t>(random.below(kEntities));
    const Time time = event.time + kLookahead + static_cast<Time>(random.below(400));
    const Event next{time, origins_[event.target].next_key(), target, EventKind::job, event.argument - 1};
    if (set_of(target) == set) {
      engine_.loop(set).insert(next);
    } else {
      engine_.set(set).post(set_of(target), time).event = next;
    }
  }
  void interval(Time time, bool idle) {
    for (std::uint32_t set = 0; set < engine_.sets(); ++set) EXPECT_EQ(engine_.loop(set).now(), time);
    log_.emplace_back(time, idle ? 1 : 0, lines_);
    if (idle && ++idle_calls_ > 3) return;
    const auto entity = static_cast<std::uint32_t>(time / 100) % kEntities;
    schedule(entity, time, 2);
    if (time % 300 == 0) engine_.ask_interval();
  }
  void line(const std::uint64_t&) {
    ++lines_;
    if (lines_ % 37 == 0) engine_.ask_interval();
  }

  Engine engine_;
  std::uint64_t seed_;
  std::vector<Place> places_;
  std::vector<Origin> origins_;
  JournalOf<std::uint64_t, Crowd> journal_{*this, &Crowd::line};
  std::uint32_t reader_ = 0;
  std::uint64_t lines_ = 0;
  std::uint32_t idle_calls_ = 0;
  Log log_;
};

TEST(EngineInterval, DoesNotDependOnSetsAndThreads) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Crowd alone(1, 1, seed);
    const Crowd::Log expected = alone.run();
    ASSERT_GT(expected.size(), 10U);
    for (const std::uint32_t sets : {2U, 3U, 8U}) {
      for (const std::uint32_t threads : {1U, 2U, 4U, 8U}) {
        Crowd crowd(sets, threads, seed);
        ASSERT_EQ(crowd.run(), expected) << sets << " sets, " << threads << " threads, seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace netsim::engine_interval_test
