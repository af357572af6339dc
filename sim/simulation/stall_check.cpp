#include "sim/simulation/stall_check.h"

#include <algorithm>

namespace netsim {
namespace {

// A run is stalled if it makes no progress for so many events and so much simulated time.
constexpr std::uint64_t kStalledEvents = 5'000'000;
constexpr Time kStalledTime = kSecond;
constexpr Time kCheckInterval = kStalledTime / 4;  // simulated time between two checks
// A pool of slots has no retry count, and its timeouts become longer. So a run is also stalled if all members
// have sent their packets again so often for nothing. InfiniBand's retry count is at most 7.
constexpr std::uint64_t kStalledRounds = 16;

constexpr std::uint32_t bit(EventKind kind) { return 1U << static_cast<unsigned>(kind); }
// Events of ranks and GPUs. All other events are packets and timers of the network.
constexpr std::uint32_t kEventsOfHosts =
    bit(EventKind::executor) | bit(EventKind::compute_done) | bit(EventKind::job);

}  // namespace

void StallCheck::check(Time following) {
  stalled_ = find_stall();
  next_ = (following / kCheckInterval + 1) * kCheckInterval;
}

bool StallCheck::find_stall() {
  if (manager_.is_pending()) return false;
  const std::uint64_t tasks = jobs_.tasks_done();
  const std::uint64_t delivered = packets_ != nullptr ? packets_->progress() : 0;
  if (tasks != tasks_ || delivered != delivered_) {
    tasks_ = tasks;
    delivered_ = delivered;
    event_ = engine_.executed();
    time_ = engine_.now();
    return false;
  }
  if (is_something_to_come()) return false;
  const bool many = engine_.executed() - event_ >= kStalledEvents && engine_.now() - time_ >= kStalledTime;
  return many || repeats_forever();
}

// Returns whether members of aggregation groups repeat their packets, and nothing can change what becomes of
// them.
bool StallCheck::repeats_forever() const {
  const bool called = engine_.pending_calls() > 0 || engine_.next_interval() != kNever;
  return packets_ != nullptr && !called && packets_->fruitless_rounds() >= kStalledRounds;
}

// Returns whether a rank or GPU has something to do later, or a link will change.
bool StallCheck::is_something_to_come() const {
  if (engine_.has_pending(kEventsOfHosts)) return true;
  if (packets_ == nullptr) return false;
  const std::vector<LinkChange>& changes = packets_->fault_schedule().changes;
  return std::any_of(changes.begin(), changes.end(),
                     [&](const LinkChange& change) { return change.at > engine_.now(); });
}

}  // namespace netsim
