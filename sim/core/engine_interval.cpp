// The engine's interval: calls at multiples of a time that somebody has asked for (Engine::set_interval).
#include <algorithm>
#include <utility>

#include "sim/core/engine.h"
#include "sim/core/errors.h"
#include "sim/core/time_limits.h"

namespace netsim {

void Engine::set_interval(Time interval, IntervalCall call) {
  NETSIM_CHECK(interval_ == 0 && interval > 0 && interval <= kLastTime,
               "an engine has one interval, which is above 0");
  interval_ = interval;
  interval_call_ = std::move(call);
  for (auto& set : sets_) set->interval_ = interval;
}

void LogicalProcess::ask_interval_at(Time time) {
  NETSIM_CHECK(interval_ > 0 && time <= kLastTime, "the interval that an event asks for does not exist");
  interval_asked_ = std::min(interval_asked_, next_multiple(interval_, loop_.now(), time));
}

void Engine::ask_interval_at(Time time) {
  NETSIM_CHECK(interval_ > 0 && time <= kLastTime, "the interval that is asked for does not exist");
  interval_asked_ = std::min(interval_asked_, next_multiple(interval_, now(), time));
}

Time Engine::next_interval() const { return interval_wanted(pending() == 0); }

// Returns the time of the next call. `idle`: nothing is pending, so a call is due even if nobody asked.
Time Engine::interval_wanted(bool idle) const {
  if (interval_ == 0) return kNever;
  Time wanted = interval_asked_;
  for (const auto& set : sets_) wanted = std::min(wanted, set->interval_asked_);
  return wanted == kNever && idle && !idle_called_ ? next_multiple(interval_, now()) : wanted;
}

void Engine::watch_interval(IntervalWatch watch) {
  NETSIM_CHECK(interval_ > 0 && !interval_watch_,
               "a watch of an interval that does not exist, or a second one");
  interval_watch_ = std::move(watch);
}

void Engine::watch_interval_at(Time time) {
  NETSIM_CHECK(interval_watch_ && time <= kLastTime, "the interval that is watched does not exist");
  watch_asked_ = next_multiple(interval_, now(), time);
}

void Engine::watch_interval_now(Time time, WatchPhase phase) {
  if (interval_watch_) interval_watch_(time, phase);
}

// Calls may have written records since the last window. They are read first, and a reader may ask for this
// very call.
void Engine::call_interval(Time time, bool idle) {
  read_journals({time, UINT64_MAX});
  const bool asked = interval_wanted(idle) <= time;
  if (watch_asked_ <= time) watch_asked_ = kNever;
  called_ = time;
  for (auto& set : sets_) set->loop_.advance(time);
  watch_interval_now(time, WatchPhase::before);
  if (asked) {
    forget_interval_requests();
    idle_called_ = idle;
    interval_call_(time, idle);
    for (auto& set : sets_) set->next_ = set->first();
    if (idle && pending() == 0) forget_interval_requests();
  }
  watch_interval_now(time, WatchPhase::after);
}

void Engine::forget_interval_requests() {
  interval_asked_ = kNever;
  for (auto& set : sets_) set->interval_asked_ = kNever;
}

}  // namespace netsim
