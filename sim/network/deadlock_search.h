// DeadlockSearch: finds ports that wait for each other in a cycle, so that no packet in them can ever move.
// It runs between events while ports have been held back for some time. It does not wait until nothing is
// pending, because periodic timers would then hide a deadlock.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/network/fabric_shard.h"
#include "sim/network/fabric_state.h"
#include "sim/network/link_faults.h"

namespace netsim {

class DeadlockSearch {
 public:
  DeadlockSearch(const FabricState& state, const std::vector<std::unique_ptr<FabricShard>>& shards,
                 const LinkFaults& faults);

  // Returns the interval at which look() is to be called.
  Time interval() const { return watch_after_ / 2; }
  // Returns whether there is a deadlock now. `idle` means that no event is pending, so whatever is held back
  // stays so.
  bool look(Time now, bool idle);
  // Returns the ports of the cycle, each held back until the next one moves. Empty without a deadlock.
  const std::vector<PortId>& cycle() const { return circle_; }

 private:
  bool any_due(Time now) const;
  bool find(Time now, Time paused_before);
  std::vector<bool> stuck_queues(Time paused_before) const;
  std::vector<std::size_t> waits_for(std::size_t queue) const;
  bool escapes(std::size_t queue) const;

  const FabricState& state_;
  const std::vector<std::unique_ptr<FabricShard>>& shards_;
  const LinkFaults& faults_;
  // A port that has been held back for this long is examined. It is longer than a resume or a credit can be
  // in flight.
  Time watch_after_ = 1 * kMillisecond;
  std::vector<PortId> circle_;
};

}  // namespace netsim
