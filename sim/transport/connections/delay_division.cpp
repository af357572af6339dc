#include "sim/transport/connections/delay_division.h"

#include <algorithm>

namespace netsim {

MessageDelays DelayDivision::tell() {
  idle_ = &passages_.of_message(queue_pair_, bytes_);
  const Time idle = std::min(idle_->time, took_);
  const Time propagation = std::min(idle_->propagation, idle);
  ports_.clear();
  ports_.push_back({idle_->slowest, idle - propagation, 0, 0});
  if (trace_ != nullptr) add_waits(trace_->waits(), took_ - idle);
  return {propagation, ports_};
}

// Adds waits from the last port to the first, until they reach `most`.
void DelayDivision::add_waits(std::span<const PacketTrace::Wait> waits, Time most) {
  for (auto wait = waits.rbegin(); wait != waits.rend(); ++wait) {
    PortDelay delay = beyond_idle(*wait);
    delay.paused = std::min(delay.paused, most);
    delay.queueing = std::min(delay.queueing, most - delay.paused);
    most -= delay.sum();
    if (delay.port == idle_->slowest) {
      ports_.front().paused += delay.paused;
      ports_.front().queueing += delay.queueing;
    } else if (ports_.size() > 1 && ports_.back().port == delay.port) {
      ports_.back().paused += delay.paused;
      ports_.back().queueing += delay.queueing;
    } else if (delay.sum() > 0) {
      ports_.push_back(delay);
    }
  }
  std::reverse(ports_.begin() + 1, ports_.end());
}

PortDelay DelayDivision::beyond_idle(const PacketTrace::Wait& wait) const {
  PortDelay delay{wait.port, 0, wait.all - wait.held_back, wait.held_back};
  const auto at = std::find(idle_->ports.begin(), idle_->ports.end(), wait.port);
  if (at != idle_->ports.end()) {
    const Time idle = idle_->waits[static_cast<std::size_t>(at - idle_->ports.begin())];
    delay.queueing = std::max<Time>(delay.queueing - idle, 0);
  }
  return delay;
}

}  // namespace netsim
