// Does an engine of several sets and threads do what one event loop does, event by event, record by record?
#include "sim/core/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "sim/core/time_limits.h"

namespace netsim::engine_test {
namespace {

using ::testing::ElementsAre;

// ---- Entities that cause events in each other at random: an entity's action depends on the event only.

struct Seen {
  Time time;
  std::uint64_t key, argument;
  bool operator==(const Seen&) const = default;
};

// A line of the journal.
struct Line {
  std::uint32_t entity;
  std::uint32_t number;  // of the entity's events
  Time time;
  bool operator==(const Line&) const = default;
};

constexpr std::uint32_t kMark = UINT32_MAX;  // entity of a line that a call wrote,
constexpr std::uint32_t kCallOf = 1U << 31;  // or (plus the entity) one that the entity asked for

struct Shape {
  std::uint64_t seed = 1;
  std::uint32_t sets = 1;
  std::vector<Time> lookahead;
  std::vector<std::uint32_t> set_of;  // of each atom: two entities
  std::uint32_t steps = 20;           // events that follow each other at most
  Time local = 20;                    // longest delay within a set
  Time call_delay = kNever;           // of calls that entities ask for; kNever: they do not

  Time between(std::uint32_t a, std::uint32_t b) const { return lookahead[a * sets + b]; }
};

Shape random_shape(std::uint64_t seed, std::uint32_t sets) {
  RandomStream random(seed, "shape");
  Shape shape;
  shape.seed = seed;
  shape.sets = sets;
  shape.steps = 5 + static_cast<std::uint32_t>(random.below(30));
  shape.local = 1 + static_cast<Time>(random.below(40));
  if (random.below(2) == 0) shape.call_delay = 1 + static_cast<Time>(random.below(300));
  const Time longest = 1 + static_cast<Time>(random.below(2000));
  for (std::uint32_t i = 0; i < sets * sets; ++i) {
    const bool linked = random.below(3) != 0 && i / sets != i % sets;
    shape.lookahead.push_back(
        linked ? 1 + static_cast<Time>(random.below(static_cast<std::uint64_t>(longest))) : kNever);
  }
  const std::uint64_t atoms = sets + random.below(40);
  for (std::uint64_t i = 0; i < atoms; ++i)
    shape.set_of.push_back(static_cast<std::uint32_t>(i < sets ? i : random.below(sets)));
  return shape;
}

// The entities on an engine with the shape's sets, or (`apart` false) all in the one set of theirs.
class Town {
 public:
  Town(const Shape& shape, bool apart, std::uint32_t threads)
      : shape_(shape),
        apart_(apart),
        engine_(apart ? Engine::Options{shape.sets, shape.lookahead, threads}
                      : Engine::Options{1, {}, threads}),
        places_(engine_.sets()),
        histories_(2 * shape.set_of.size()) {
    for (std::uint32_t id = 0; id < histories_.size(); ++id) origins_.emplace_back(id);
    reader_ = engine_.add_reader(journal_);
    call_reader_ = engine_.add_reader(calls_);
    if (shape.call_delay != kNever) engine_.set_call_delay(shape.call_delay);
    for (std::uint32_t set = 0; set < engine_.sets(); ++set) {
      places_[set] = {this, set};
      engine_.loop(set).set_handler(EventKind::job, &Town::on_event, &places_[set]);
      engine_.loop(set).set_handler(EventKind::deliver, &Town::on_event, &places_[set]);
      engine_.set(set).set_remote_event_handler(EventKind::deliver, &Town::take, &places_[set]);
    }
    RandomStream random(shape.seed, "begin");
    for (std::uint64_t i = random.below(400); i > 0; --i) {
      const auto entity = static_cast<std::uint32_t>(random.below(histories_.size()));
      engine_.loop(set_of(entity))
          .schedule(static_cast<Time>(random.below(500)), origins_[entity], EventKind::job, entity,
                    shape.steps);
    }
  }

  Engine& engine() { return engine_; }
  const std::vector<std::vector<Seen>>& histories() const { return histories_; }
  const std::vector<Line>& lines() const { return lines_; }
  std::uint64_t damaged() const { return damaged_; }

  // A line between the others.
  void mark_at(Time time) {
    engine_.call_at(time, [this, time] { mark({kMark, static_cast<std::uint32_t>(lines_.size()), time}); });
  }
  // Loops whose clock was not the call's time, and lines out of order.
  std::uint64_t late() const { return late_; }

 private:
  struct Place {
    Town* town = nullptr;
    std::uint32_t set = 0;
  };

  std::uint32_t set_of(std::uint32_t entity) const { return apart_ ? shape_.set_of[entity / 2] : 0; }

  static void on_event(void* context, const Event& event) {
    const Place& place = *static_cast<Place*>(context);
    place.town->handle(place.set, event);
  }
  // RemoteEvent of this kind carries its key twice more: beside it and attached.
  static void take(void* context, const RemoteEvent& remote_event, const std::byte* attached) {
    const Place& place = *static_cast<Place*>(context);
    std::uint64_t beside = 0, more = 0;
    std::memcpy(&beside, remote_event.data.data(), sizeof(beside));
    std::memcpy(&more, attached + remote_event.event.argument, sizeof(more));
    Event event = remote_event.event;
    event.argument = more >> 1;
    if (beside != event.key) event.target = UINT32_MAX;
    place.town->engine_.loop(place.set).insert(event);
  }

  void handle(std::uint32_t set, const Event& event) {
    if (event.target >= histories_.size()) {
      ++damaged_;  // of one thread at a time, if ever
      return;
    }
    std::vector<Seen>& history = histories_[event.target];
    engine_.set(set).write(
        reader_, Line{event.target, static_cast<std::uint32_t>(history.size()), engine_.loop(set).now()});
    history.push_back({event.time, event.key, event.argument});
    if (event.argument == 0) return;
    if (shape_.call_delay != kNever && event.key % 4 == 0) ask(set, event);
    RandomStream random(shape_.seed ^ event.key, "next", static_cast<std::uint64_t>(event.time));
    for (std::uint64_t i = random.below(3); i > 0; --i) cause(set, event, random);
  }

  void cause(std::uint32_t set, const Event& by, RandomStream& random) {
    std::uint32_t target = by.target ^ static_cast<std::uint32_t>(random.below(2));
    Time delay = 0;
    if (random.below(3) != 0) {  // elsewhere
      target = static_cast<std::uint32_t>(random.below(histories_.size()));
      const std::uint32_t from = shape_.set_of[by.target / 2], to = shape_.set_of[target / 2];
      if (from == to) {
        delay = 1 + static_cast<Time>(random.below(static_cast<std::uint64_t>(shape_.local)));
      } else if (shape_.between(from, to) != kNever) {
        delay = shape_.between(from, to) + static_cast<Time>(random.below(50));
      } else {
        target = by.target;
        delay = 1;
      }
    }
    const bool plain = random.below(2) == 0;
    const EventKind kind = plain ? EventKind::job : EventKind::deliver;
    const Event event{by.time + delay, origins_[by.target].next_key(), target, kind, by.argument - 1};
    if (set_of(target) == set) {
      engine_.loop(set).insert(event);
      return;
    }
    RemoteEvent& remote_event = engine_.set(set).post(set_of(target), event.time);
    remote_event.event = event;
    if (plain) return;
    std::memcpy(remote_event.data.data(), &event.key, sizeof(event.key));
    remote_event.event.argument = engine_.set(set).attach(set_of(target), event.argument << 1);
  }

  // Few times, so that several calls have the same one.
  void ask(std::uint32_t set, const Event& by) {
    const Time time = (by.time + shape_.call_delay + 63) / 64 * 64;
    const std::uint32_t half = kCallOf + by.target;
    engine_.set(set).ask_call(time, origins_[by.target], call_reader_,
                              Line{half, static_cast<std::uint32_t>(by.argument), time});
  }
  // A call runs after all events before its time and before all later ones, and causes an event at once.
  void called(const Line& line) {
    mark(line);
    const std::uint32_t entity = line.entity - kCallOf;
    engine_.loop(set_of(entity)).schedule(line.time, origins_[entity], EventKind::job, entity, 0);
  }
  void mark(const Line& line) {
    for (std::uint32_t set = 0; set < engine_.sets(); ++set) late_ += engine_.loop(set).now() != line.time;
    late_ += engine_.now() != line.time;
    late_ += !lines_.empty() && lines_.back().entity < kCallOf && lines_.back().time >= line.time;
    lines_.push_back(line);
  }
  void line(const Line& line) {
    late_ += !lines_.empty() && lines_.back().time > line.time;
    lines_.push_back(line);
  }

  const Shape& shape_;
  bool apart_;
  Engine engine_;
  std::vector<Place> places_;
  std::vector<Origin> origins_;
  std::vector<std::vector<Seen>> histories_;
  std::vector<Line> lines_;
  JournalOf<Line, Town> journal_{*this, &Town::line}, calls_{*this, &Town::called};
  std::uint32_t reader_ = 0, call_reader_ = 0;
  std::uint64_t damaged_ = 0, late_ = 0;
};

void expect_same(const Town& one, const Town& other) {
  RC_ASSERT(one.histories() == other.histories());
  RC_ASSERT(one.lines() == other.lines());
  RC_ASSERT(other.damaged() == 0u);
  RC_ASSERT(other.late() == 0u);
}

TEST(Engine, DoesWhatOneEventLoopDoes) {
  EXPECT_TRUE(rc::check([] {
    const auto sets = *rc::gen::inRange<std::uint32_t>(1, 10);
    const auto threads = *rc::gen::inRange<std::uint32_t>(1, 9);
    const Shape shape = random_shape(*rc::gen::arbitrary<std::uint32_t>(), sets);
    Town one(shape, false, 1), other(shape, true, threads);
    const auto marks =
        *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange<std::uint32_t>(0, 3000));
    for (const std::uint32_t time : marks) {
      one.mark_at(time);
      other.mark_at(time);
    }
    RC_ASSERT(other.engine().pending() == one.engine().pending());
    RC_ASSERT(other.engine().run() == one.engine().run());
    RC_ASSERT(other.engine().pending() == 0u);
    RC_ASSERT(other.engine().next_time() == kNever);
    RC_ASSERT(other.engine().now() == one.engine().now());
    RC_ASSERT(other.engine().executed() == one.engine().executed());
    expect_same(one, other);
  }));
}

// At whatever events and times it is left and taken up again; up to `until` nothing is missing then, and
// nothing of the journal unread.
TEST(Engine, CanBeLeftAndTakenUpAgain) {
  EXPECT_TRUE(rc::check([] {
    const auto sets = *rc::gen::inRange<std::uint32_t>(1, 10);
    const auto threads = *rc::gen::inRange<std::uint32_t>(1, 4);
    const Shape shape = random_shape(*rc::gen::arbitrary<std::uint32_t>(), sets);
    Town one(shape, false, 1), other(shape, true, threads);
    RandomStream random(shape.seed, "slices");
    for (Time until = 0; other.engine().pending() > 0; until += 1 + static_cast<Time>(random.below(300))) {
      one.engine().run(until);
      while (other.engine().run_some(1 + random.below(200), until) > 0) continue;
      RC_ASSERT(other.engine().executed() == one.engine().executed());
      RC_ASSERT(other.engine().pending() == one.engine().pending());
      RC_ASSERT(other.engine().next_time() == one.engine().next_time());
      RC_ASSERT(other.engine().next_time() > until);
      expect_same(one, other);
    }
    RC_ASSERT(one.engine().pending() == 0u);
  }));
}

TEST(Engine, OfOneSetIsItsEventLoop) {
  Engine engine;
  EXPECT_EQ(engine.sets(), 1u);
  EXPECT_EQ(engine.threads(), 1u);
  std::vector<Time> seen;
  engine.loop().set_handler(
      EventKind::job,
      [](void* all, const Event& e) { static_cast<std::vector<Time>*>(all)->push_back(e.time); }, &seen);
  Origin origin(3);
  for (const Time time : {50, 10, 30, 30, 20}) engine.loop().schedule(time, origin, EventKind::job, 0);
  EXPECT_EQ(engine.pending(), 5u);
  EXPECT_EQ(engine.next_time(), 10);
  EXPECT_EQ(engine.run_some(2), 2u) << "exactly as many as asked for";
  EXPECT_EQ(engine.now(), 20);
  EXPECT_EQ(engine.run(29), 0u);
  EXPECT_EQ(engine.run(30), 2u) << "events at `until` are executed";
  EXPECT_EQ(engine.run(), 1u);
  EXPECT_EQ(engine.run(), 0u) << "nothing is left";
  EXPECT_THAT(seen, ElementsAre(10, 20, 30, 30, 50));
  EXPECT_EQ(engine.loop().now(), 50);
}

// ---- What happens between events. Two sets, 100 ps apart; an event's argument says what it does.

enum Deed : std::uint64_t { nothing, answer, fail, write_down };

class Pair {
 public:
  explicit Pair(std::uint32_t threads = 1, Time there = 100, Time back = 100)
      : engine({2, {kNever, there, back, kNever}, threads}), delays_{there, back} {
    reader_ = engine.add_reader(journal_);
    for (std::uint32_t set = 0; set < 2; ++set) {
      places_[set] = {this, set};
      engine.loop(set).set_handler(
          EventKind::job,
          [](void* context, const Event& event) {
            const auto& [pair, at] = *static_cast<std::pair<Pair*, std::uint32_t>*>(context);
            pair->handle(at, event);
          },
          &places_[set]);
    }
  }
  // `origin`: orders what happens at one time.
  void add(std::uint32_t set, Time time, std::uint64_t deed, std::uint32_t origin = 0) {
    Origin one(origin * 2 + set);
    engine.loop(set).insert({time, one.next_key() + count_++, 0, EventKind::job, deed});
  }

  std::vector<Time> seen[2];
  std::vector<Time> journal;
  Engine engine;

 private:
  void handle(std::uint32_t set, const Event& event) {
    seen[set].push_back(event.time);
    engine.set(set).write(reader_, event.time);
    if (event.argument == fail) throw std::runtime_error(std::to_string(event.time));
    if (event.argument != answer) return;
    const Time time = event.time + delays_[set];
    engine.set(set).post(1 - set, time).event = {time, event.key + 1000, 0, EventKind::job, nothing};
  }
  void read(const Time& time) { journal.push_back(time); }

  Time delays_[2];
  std::pair<Pair*, std::uint32_t> places_[2];
  JournalOf<Time, Pair> journal_{*this, &Pair::read};
  std::uint32_t reader_ = 0;
  std::uint64_t count_ = 0;
};

TEST(Engine, CountsMailAndCallsAsWhatIsToCome) {
  Pair pair;
  pair.add(0, 50, answer);
  pair.add(1, 60, nothing);
  EXPECT_EQ(pair.engine.pending(), 2u);
  EXPECT_EQ(pair.engine.run(60), 2u);
  EXPECT_EQ(pair.engine.pending(), 1u);  // on its way from set to set
  EXPECT_TRUE(pair.engine.has_pending(1U << static_cast<unsigned>(EventKind::job)));
  EXPECT_FALSE(pair.engine.has_pending(1U << static_cast<unsigned>(EventKind::pace)));
  EXPECT_EQ(pair.engine.pending_calls(), 0u);
  EXPECT_EQ(pair.engine.next_time(), 150);
  pair.engine.call_at(120, [] {});
  EXPECT_EQ(pair.engine.pending(), 2u);
  EXPECT_EQ(pair.engine.pending_calls(), 1u);
  EXPECT_EQ(pair.engine.next_time(), 120);
  EXPECT_EQ(pair.engine.run(149), 0u);
  EXPECT_EQ(pair.engine.now(), 120);
  EXPECT_EQ(pair.engine.run(), 1u);
  EXPECT_THAT(pair.seen[1], ElementsAre(60, 150));
}

// A notice is read before anything that is sent after it, and no set waits for it.
TEST(Engine, NoticesAreNoEvents) {
  Pair pair;
  std::vector<std::string> order;
  pair.engine.set(1).set_remote_event_handler(
      EventKind::notice,
      [](void* lines, const RemoteEvent& remote_event, const std::byte* attached) {
        char text[8];
        std::memcpy(text, attached + remote_event.event.argument, sizeof(text));
        static_cast<std::vector<std::string>*>(lines)->push_back(text);
      },
      &order);
  const auto tell = [&](const char(&text)[8]) {
    RemoteEvent& remote_event = pair.engine.set(0).post(1, kNoEvent);
    remote_event.event = {kNoEvent, 0, 0, EventKind::notice, 0};
    remote_event.event.argument = pair.engine.set(0).attach(1, text);
  };
  std::uint64_t idle = 0;
  pair.engine.set_monitor(10, [&](Time, bool is_idle) { idle += is_idle ? 1 : 0; });
  tell("first..");
  tell("second.");
  EXPECT_EQ(pair.engine.pending(), 0u);
  EXPECT_EQ(pair.engine.next_time(), kNever);
  EXPECT_EQ(pair.engine.run(), 0u);
  EXPECT_EQ(pair.engine.run(1000), 0u);
  EXPECT_EQ(idle, 2u);
  pair.add(1, 2000, nothing);
  EXPECT_EQ(pair.engine.run(), 1u);
  EXPECT_THAT(order, ElementsAre("first..", "second."));
}

TEST(Engine, CallsInOrderBeforeTheEventsOfTheirTime) {
  Pair pair;
  std::vector<std::string> order;
  const auto call = [&](Time time, const std::string& name) {
    pair.engine.call_at(time, [&, time, name] {
      order.push_back(name + " after " + std::to_string(pair.engine.executed()));
      EXPECT_EQ(pair.engine.now(), time);
      EXPECT_EQ(pair.engine.loop(0).now(), time);
      EXPECT_EQ(pair.engine.loop(1).now(), time);
    });
  };
  for (const Time time : {10, 20, 30}) pair.add(time == 20 ? 1 : 0, time, answer);
  call(20, "b");
  call(30, "d");
  call(20, "c");
  call(5, "a");
  call(1'000'000, "f");
  call(131, "e");
  pair.engine.run();
  EXPECT_THAT(order,
              ElementsAre("a after 0", "b after 1", "c after 1", "d after 2", "e after 6", "f after 6"));
  EXPECT_EQ(pair.engine.now(), 1'000'000);
}

TEST(Engine, ACallMaySchedule) {
  Pair pair;
  pair.engine.call_at(100, [&] {
    pair.add(1, 100, nothing);
    pair.add(0, 150, answer);
    pair.engine.call_at(120, [&] { pair.add(0, 130, nothing); });
  });
  EXPECT_EQ(pair.engine.run(), 4u);
  EXPECT_THAT(pair.seen[0], ElementsAre(130, 150));
  EXPECT_THAT(pair.seen[1], ElementsAre(100, 250));
}

// ---- Calls that events ask for

// Two sets far apart; an event's argument is after how long it wants a call, 0: none.
class Askers {
 public:
  Askers(std::uint32_t sets, std::uint32_t threads, Time call_delay)
      : engine(sets == 1 ? Engine::Options{1, {}, threads}
                         : Engine::Options{2, {kNever, 1'000'000, 1'000'000, kNever}, threads}) {
    reader_ = engine.add_reader(calls_);
    engine.set_call_delay(call_delay);
    for (std::uint32_t set = 0; set < engine.sets(); ++set) {
      places_[set] = {this, set};
      engine.loop(set).set_handler(
          EventKind::job,
          [](void* context, const Event& event) {
            const auto& [askers, at] = *static_cast<std::pair<Askers*, std::uint32_t>*>(context);
            askers->handle(at, event);
          },
          &places_[set]);
    }
  }
  void add(std::uint32_t entity, Time time, Time asks = 0) {
    engine.loop(set_of(entity))
        .schedule(time, origins_[entity], EventKind::job, entity, static_cast<std::uint64_t>(asks));
  }
  void ask(std::uint32_t entity, Time time) {
    engine.set(set_of(entity)).ask_call(time, origins_[entity], reader_, entity);
  }

  Engine engine;
  std::vector<std::pair<std::uint32_t, Time>> calls;  // the set that asked, when it was called
  std::vector<std::uint64_t> executed;                // at each call
  Time last[2] = {0, 0};                              // events executed, by set
  std::vector<Time> reached;                          // the later of them, at each call
  bool throws = false;

 private:
  std::uint32_t set_of(std::uint32_t entity) const { return entity % engine.sets(); }
  void handle(std::uint32_t set, const Event& event) {
    last[set] = event.time;
    if (event.argument > 0) ask(event.target, event.time + static_cast<Time>(event.argument));
  }
  void called(const std::uint32_t& entity) {
    if (throws) throw std::runtime_error("called " + std::to_string(engine.now()));
    calls.emplace_back(entity, engine.now());
    executed.push_back(engine.executed());
    reached.push_back(std::max(last[0], last[1]));
  }

  std::pair<Askers*, std::uint32_t> places_[2];
  std::vector<Origin> origins_{Origin(0), Origin(1), Origin(2), Origin(3)};
  JournalOf<std::uint32_t, Askers> calls_{*this, &Askers::called};
  std::uint32_t reader_ = 0;
};

// All events before its time have run, and none at it or later, also if a set waits for no other.
TEST(Engine, EventsAskForCalls) {
  for (const std::uint32_t sets : {1U, 2U}) {
    for (const std::uint32_t threads : {1U, 2U}) {
      Askers askers(sets, threads, 50);
      for (Time time = 0; time <= 1000; ++time) {
        askers.add(0, time, time == 100 ? 50 : 0);
        askers.add(1, time, time == 90 ? 60 : time == 400 ? 500 : 0);
      }
      EXPECT_EQ(askers.engine.run(), 2002u);
      EXPECT_THAT(askers.calls,
                  ElementsAre(std::pair(0U, Time{150}), std::pair(1U, Time{150}), std::pair(1U, Time{900})));
      EXPECT_THAT(askers.executed, ElementsAre(300, 300, 1800));
      EXPECT_THAT(askers.reached, ElementsAre(149, 149, 899));
    }
  }
}

// Calls are ordered by time, then by the asking set, in whatever order they asked. Calls known beforehand
// come first.
TEST(Engine, CallsOfOneTimeComeByWhoAskedForThem) {
  Askers askers(2, 1, 10);
  askers.add(3, 5, 95);
  askers.add(0, 80, 20);
  askers.add(2, 6, 94);
  askers.add(1, 7, 43);
  askers.engine.call_at(100, [&] { askers.calls.emplace_back(9, 100); });
  askers.engine.run();
  EXPECT_THAT(askers.calls,
              ElementsAre(std::pair(1U, Time{50}), std::pair(9U, Time{100}), std::pair(0U, Time{100}),
                          std::pair(2U, Time{100}), std::pair(3U, Time{100})));
}

TEST(Engine, WhatIsAskedForIsStillToCome) {
  Askers askers(1, 1, 50);
  for (const Time time : {10, 20, 30}) askers.add(0, time, time == 10 ? 50 : 0);
  EXPECT_EQ(askers.engine.run_some(1), 1u) << "cut by the count, before the window's end";
  EXPECT_EQ(askers.engine.pending(), 3u);
  EXPECT_EQ(askers.engine.run_some(5, 40), 2u);
  EXPECT_EQ(askers.engine.pending(), 1u);
  EXPECT_EQ(askers.engine.next_time(), 60);
  EXPECT_TRUE(askers.calls.empty());
  EXPECT_EQ(askers.engine.run(), 0u);
  EXPECT_THAT(askers.calls, ElementsAre(std::pair(0U, Time{60})));
  EXPECT_EQ(askers.engine.pending(), 0u);
}

TEST(Engine, CallsAndTheOutsideMayAskToo) {
  Askers askers(2, 2, 50);
  askers.ask(1, 70);
  askers.engine.call_at(100, [&] { askers.ask(0, 150); });
  for (Time time = 0; time < 1000; ++time) askers.add(time % 2 == 0 ? 0 : 1, time);
  EXPECT_EQ(askers.engine.pending(), 1002u);
  askers.engine.run();
  EXPECT_THAT(askers.calls, ElementsAre(std::pair(1U, Time{70}), std::pair(0U, Time{150})));
  EXPECT_THAT(askers.reached, ElementsAre(69, 149));
}

TEST(Engine, NobodyAsksForACallTooEarly) {
  Askers askers(1, 1, 50);
  askers.add(0, 10, 49);
  EXPECT_THROW(askers.engine.run(), InternalError);
  Engine engine;
  Origin origin(0);
  EXPECT_THROW(engine.set(0).ask_call(1'000'000, origin, 0, 7), InternalError)
      << "nobody said that events do";
}

TEST(Engine, WhatACallThrowsComesOut) {
  Askers askers(2, 2, 50);
  askers.throws = true;
  for (Time time = 0; time < 200; ++time) askers.add(time % 2 == 0 ? 0 : 1, time, time == 30 ? 60 : 0);
  try {
    askers.engine.run();
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "called 90");
  }
  EXPECT_EQ(askers.engine.executed(), 90u);
}

// Nothing happens later than kLastTime, so that times can be added without a check.
TEST(Engine, EndsBeforeTimesOverflow) {
  EXPECT_EQ(bounded_time(1e30), kTooLong);
  EXPECT_EQ(bounded_time(static_cast<Int128>(INT64_MAX) * 1000), kTooLong);
  EXPECT_EQ(bounded_time(12.9), 12);
  EXPECT_EQ(bounded_sum(kTooLong, kTooLong), kTooLong);
  EXPECT_EQ(bounded_sum(3, 4), 7);
  for (const bool call : {false, true}) {
    Engine engine;
    Origin origin(1);
    std::vector<Time> seen;
    engine.loop().set_handler(
        EventKind::job,
        [](void* list, const Event& event) { static_cast<std::vector<Time>*>(list)->push_back(event.time); },
        &seen);
    for (const Time time : {Time{5}, kLastTime}) engine.loop().schedule(time, origin, EventKind::job, 0);
    if (call) {
      engine.call_at(kLastTime + 1, [] { FAIL(); });
    } else {
      engine.loop().schedule(kLastTime + 1, origin, EventKind::job, 0);
    }
    EXPECT_EQ(engine.run(kLastTime), 2U) << "an end before it is no error";
    try {
      engine.run();
      FAIL() << "nothing was thrown";
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("its limit of 40 days"));
    }
    EXPECT_THAT(seen, ElementsAre(5, kLastTime));
  }
}

TEST(Engine, LooksAroundWhileSomethingIsPendingAndOnceWhenNothingIs) {
  for (const std::uint32_t threads : {1U, 2U}) {
    Pair pair(threads);
    std::vector<Time> looks;
    std::vector<std::uint64_t> executed;
    Time idle_at = -1;
    pair.engine.set_monitor(40, [&](Time time, bool idle) {
      if (idle) {
        EXPECT_EQ(idle_at, -1);
        idle_at = time;
        return;
      }
      looks.push_back(time);
      executed.push_back(pair.engine.executed());
    });
    for (const Time time : {10, 39, 40, 41, 95}) pair.add(time % 2 == 0 ? 1 : 0, time, nothing);
    pair.add(0, 70, answer);  // 170
    pair.engine.run();
    EXPECT_THAT(looks, ElementsAre(40, 80, 120, 160));
    EXPECT_THAT(executed, ElementsAre(2, 5, 6, 6)) << "all before its time, and none at it";
    EXPECT_EQ(idle_at, 170);
  }
}

TEST(Engine, AMonitorMayStopIt) {
  Pair pair;
  pair.engine.set_monitor(40, [&](Time time, bool) {
    if (time == 80) pair.engine.stop();
  });
  for (Time time = 5; time < 200; time += 5) pair.add(0, time, nothing);
  pair.engine.run();
  EXPECT_TRUE(pair.engine.stopped());
  EXPECT_EQ(pair.engine.now(), 80);
  EXPECT_EQ(pair.seen[0].size(), 15u);
  EXPECT_EQ(pair.engine.run(), 0u);
  pair.engine.clear_stop();
  EXPECT_EQ(pair.engine.run(), 24u);
}

TEST(Engine, ACallMayStopIt) {
  Pair pair;
  pair.add(0, 10, nothing);
  pair.add(1, 30, nothing);
  pair.engine.call_at(20, [&] { pair.engine.stop(); });
  EXPECT_EQ(pair.engine.run(), 1u);
  pair.engine.clear_stop();
  EXPECT_EQ(pair.engine.run(), 1u);
}

// Returns the error that the run throws, or "".
std::string error_of(Engine& engine) {
  try {
    while (engine.run_some(1) > 0) continue;
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(Engine, WhatAnEventThrowsComesOut) {
  for (const std::uint32_t threads : {1U, 2U}) {
    Pair pair(threads);
    // Enough of them for the second thread to take part.
    for (Time time = 0; time < 1000; ++time) {
      pair.add(0, time, answer);
      pair.add(1, time, nothing);
    }
    pair.add(1, 950, fail, 9);
    EXPECT_EQ(error_of(pair.engine), "950");
    EXPECT_TRUE(std::is_sorted(pair.journal.begin(), pair.journal.end()));
    EXPECT_EQ(pair.journal.size(), 951u * 2 + 851 + 1) << "all that was written before it, and nothing else";
    EXPECT_EQ(pair.journal.back(), 950);
  }
}

// Set 1 is far ahead of set 0, from which it receives only distant events. Still the earlier error is
// reported.
TEST(Engine, TheFirstErrorOfAllComesOut) {
  for (const auto& [early, late] : {std::pair(0U, 1U), std::pair(1U, 0U)}) {
    Pair pair(1, early == 0 ? 1000 : 10, early == 0 ? 10 : 1000);
    for (Time time = 1; time < 600; ++time) pair.add(early, time, nothing, 1);
    pair.add(late, 500, fail);
    pair.add(early, 300, fail);
    EXPECT_EQ(error_of(pair.engine), "300");
    EXPECT_EQ(pair.journal.back(), 300);
  }
  for (const std::uint32_t first : {0U, 1U}) {  // of one time: by key
    Pair pair;
    pair.add(first, 500, fail, 1);
    pair.add(1 - first, 500, fail, 2);
    pair.add(1 - first, 500, write_down, 0);
    EXPECT_EQ(error_of(pair.engine), "500");
    EXPECT_THAT(pair.journal, ElementsAre(500, 500));
    EXPECT_EQ(pair.seen[first].size(), 1u);
  }
}

// The reader throws. It has read everything before, and nothing after.
TEST(Engine, WhatAReaderThrowsComesOut) {
  struct Strict final : JournalReader {
    void read(std::span<const std::byte> record) override {
      Time time = 0;
      std::memcpy(&time, record.data(), sizeof(time));
      if (time == 30) throw std::runtime_error("thirty");
      seen.push_back(time);
    }
    std::vector<Time> seen;
  };
  Engine engine({2, {kNever, 5, 5, kNever}, 2});
  Strict strict;
  struct Context {
    Engine* engine;
    std::uint32_t set, reader;
  } contexts[2];
  const std::uint32_t reader = engine.add_reader(strict);
  for (std::uint32_t set = 0; set < 2; ++set) {
    contexts[set] = {&engine, set, reader};
    engine.loop(set).set_handler(
        EventKind::job,
        [](void* context, const Event& event) {
          const Context& c = *static_cast<Context*>(context);
          c.engine->set(c.set).write(c.reader, event.time);
        },
        &contexts[set]);
    Origin origin(set);
    for (const Time time : {10, 20, 30, 40}) engine.loop(set).schedule(time, origin, EventKind::job, 0);
  }
  EXPECT_EQ(error_of(engine), "thirty");
  EXPECT_THAT(strict.seen, ElementsAre(10, 10, 20, 20));
}

TEST(Engine, ThereMayBeSeveral) {
  const Shape first = random_shape(1, 4), second = random_shape(2, 7);
  Town one(first, true, 3), two(second, true, 2);
  while (one.engine().run_some(50) + two.engine().run_some(70) > 0) continue;
  Town alone(first, false, 1), lonely(second, false, 1);
  alone.engine().run();
  lonely.engine().run();
  EXPECT_EQ(one.histories(), alone.histories());
  EXPECT_EQ(two.lines(), lonely.lines());
}

TEST(Engine, HasNoMoreThreadsThanSets) {
  const Shape shape = random_shape(5, 3);
  Town town(shape, true, 64);
  EXPECT_EQ(town.engine().threads(), 3u);
  EXPECT_GT(town.engine().run(), 0u);
}

}  // namespace
}  // namespace netsim::engine_test
