#include "sim/simulation/stall_check.h"

namespace netsim {
namespace {

// A run is stalled if it makes no progress for so many events and so much simulated time.
constexpr std::uint64_t kStalledEvents = 5'000'000;
constexpr Time kStalledTime = kSecond;
constexpr Time kCheckInterval = kStalledTime / 4;  // simulated time between two checks

}  // namespace

void StallCheck::check(Time following) {
  stalled_ = find_stall();
  next_ = (following / kCheckInterval + 1) * kCheckInterval;
}

bool StallCheck::find_stall() {
  if (manager_.is_pending()) return false;
  if (jobs_.tasks_done() == tasks_) {
    if (engine_.executed() - event_ < kStalledEvents || engine_.now() - time_ < kStalledTime) return false;
    const std::uint64_t delivered = packets_ != nullptr ? packets_->counters().packets : 0;
    if (delivered == delivered_) return true;
    delivered_ = delivered;
  }
  tasks_ = jobs_.tasks_done();
  event_ = engine_.executed();
  time_ = engine_.now();
  return false;
}

}  // namespace netsim
