// DeadlockSearch: looks for ports that wait for each other in a circle, so that no packet in them can ever
// move. Between events, while ports have been held back for a while and not only when nothing is left to do,
// so that timers that go on do not hide it.
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
  DeadlockSearch(const FabricState& state, const std::vector<std::unique_ptr<FabricShard>>& parts,
                 const LinkFaults& faults);

  // How often to look().
  Time interval() const { return watch_after_ / 2; }
  // Whether there is one now. `idle`: nothing is left to do, so that whatever is held back stays so.
  bool look(Time now, bool idle);
  // Its ports, each held back until the next one moves; empty if there is none.
  const std::vector<PortId>& circle() const { return circle_; }

 private:
  bool any_due(Time now) const;
  bool find(Time now, Time paused_before);
  std::vector<bool> stuck_queues(Time paused_before) const;
  std::vector<std::size_t> waits_for(std::size_t queue) const;
  bool escapes(std::size_t queue) const;

  const FabricState& state_;
  const std::vector<std::unique_ptr<FabricShard>>& parts_;
  const LinkFaults& faults_;
  // A port that has been held back for so long is looked at: longer than any resume or credit is on its way.
  Time watch_after_ = 1 * kMillisecond;
  std::vector<PortId> circle_;
};

}  // namespace netsim
