// ViewClock and ViewHistory: which values of a field a decision sees, and the values that are kept for later
// decisions (views.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>

#include "sim/core/units.h"
#include "sim/scheduling/views.h"

namespace netsim {

// ViewClock: when a field is taken, and which of the times at which it was taken a decision sees.
class ViewClock {
 public:
  static constexpr Time kNothing = -1;

  // `interval` is scheduling.interval, the time from one value to the next where `every` is 0. With
  // `is_difference` a value needs the one before it, so the field is always kept.
  ViewClock(const ViewSettings& settings, Time interval, bool is_difference = false)
      : age_(settings.age),
        every_(settings.every > 0 ? settings.every : interval),
        is_live_(settings.age == 0 && settings.every == 0 && !is_difference) {}

  // Returns whether decisions see the present, so that nothing is kept.
  bool is_live() const { return is_live_; }
  Time age() const { return age_; }
  // Returns the time from one value to the next.
  Time every() const { return every_; }
  // Returns the time of the values that a decision at `now` sees; kNothing: none is old enough.
  Time seen(Time now) const {
    if (is_live_) return now;
    return now < age_ ? kNothing : (now - age_) / every_ * every_;
  }
  // Returns the first time at which values are taken that is not before `time`.
  Time first_from(Time time) const { return (time + every_ - 1) / every_ * every_; }

 private:
  Time age_, every_;
  bool is_live_;
};

// ViewHistory: the values of one field at the times at which they were taken. Values stay valid until the
// next ones, because times at which nothing can have changed are left out.
template <class Values>
class ViewHistory {
 public:
  // `more`: values are also asked for at times so much before ViewClock::seen().
  explicit ViewHistory(const ViewClock& clock, Time more = 0) : clock_(clock), more_(more) {}

  // Adds the values of `time`, in place of any of that time or later, and forgets those that no decision from
  // `now` on sees. At most (age + more) / every + 3 remain.
  void add(Time now, Time time, Values values) {
    while (!entries_.empty() && entries_.back().time >= time) entries_.pop_back();
    entries_.push_back({time, std::move(values)});
    const Time oldest = clock_.seen(now) - more_;
    while (entries_.size() > 1 && entries_[1].time <= oldest) entries_.pop_front();
  }
  // Values, and the time since which they are valid.
  struct Entry {
    Time time;
    Values values;
  };
  // Returns the values that were valid at `time`, or null if there are none.
  const Entry* at(Time time) const {
    const auto after = std::upper_bound(entries_.begin(), entries_.end(), time,
                                        [](Time wanted, const Entry& entry) { return wanted < entry.time; });
    return after == entries_.begin() ? nullptr : &*std::prev(after);
  }
  // Returns what a decision at `now` sees, or null.
  const Entry* seen(Time now) const { return at(clock_.seen(now)); }
  std::size_t size() const { return entries_.size(); }

 private:
  ViewClock clock_;
  Time more_;
  std::deque<Entry> entries_;  // by time
};

}  // namespace netsim
