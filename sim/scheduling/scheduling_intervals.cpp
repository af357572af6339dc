#include "sim/scheduling/scheduling_intervals.h"

#include <algorithm>

namespace netsim {

void SchedulingIntervals::subscribe(SchedulingLayer layer, Subscriber subscriber) {
  if (subscribers_.empty()) engine_.set_interval(interval_, [this](Time now, bool idle) { call(now, idle); });
  const auto after = std::find_if(subscribers_.begin(), subscribers_.end(),
                                  [&](const auto& other) { return other.first > layer; });
  subscribers_.emplace(after, layer, std::move(subscriber));
}

void SchedulingIntervals::call(Time now, bool idle) const {
  for (const auto& [layer, subscriber] : subscribers_) subscriber(now, idle);
}

}  // namespace netsim
