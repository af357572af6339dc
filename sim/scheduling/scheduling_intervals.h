// SchedulingIntervals: the times at which schedulers of the whole run decide. They are multiples of
// `scheduling.interval`. At such a time all statistics are exact, and a decision acts at once.
//
// A subscriber is a scheduler that is called at these times. An interval without a request is left out, and
// a run without subscribers has no intervals and no cost (Engine::set_interval).
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "sim/core/engine.h"
#include "sim/core/units.h"

namespace netsim {

// SchedulingLayer: what a subscriber schedules, in the order in which subscribers are called.
enum class SchedulingLayer : std::uint8_t { jobs, flows, tasks };

class SchedulingIntervals {
 public:
  // Called between events, at a multiple of the interval. `idle`: nothing is pending, and the run ends or
  // stalls unless one of the subscribers schedules something.
  using Subscriber = std::function<void(Time now, bool idle)>;

  // `engine` must outlive this. `interval` is above 0.
  SchedulingIntervals(Engine& engine, Time interval) : engine_(engine), interval_(interval) {}
  SchedulingIntervals(const SchedulingIntervals&) = delete;
  SchedulingIntervals& operator=(const SchedulingIntervals&) = delete;

  // Adds a subscriber. All subscribers are called where one of them asked: by layer, and those of one layer
  // in the order of subscription. Must not be called during the engine's run.
  void subscribe(SchedulingLayer layer, Subscriber subscriber);
  bool has_subscribers() const { return !subscribers_.empty(); }
  Time interval() const { return interval_; }

  // Ask for the next interval, or for the first one that is not before `time`. One call answers all requests
  // made before it; a subscriber that must be called again later asks again. Only a subscriber may ask.
  // Code between events calls these:
  void ask() { engine_.ask_interval(); }
  void ask_at(Time time) { engine_.ask_interval_at(time); }
  // An event of set `set` calls these. They set a flag of the set and allocate nothing.
  void ask(std::uint32_t set) { engine_.set(set).ask_interval(); }
  void ask_at(std::uint32_t set, Time time) { engine_.set(set).ask_interval_at(time); }

 private:
  void call(Time now, bool idle) const;

  Engine& engine_;
  Time interval_;
  std::vector<std::pair<SchedulingLayer, Subscriber>> subscribers_;  // in the order of calls
};

}  // namespace netsim
