// StallCheck: finds out that a run makes no progress although it has events. A network that only retransmits
// packets that are lost again never runs out of events.
#pragma once

#include <cstdint>

#include "sim/core/engine.h"
#include "sim/jobs/job_manager.h"
#include "sim/transport/packet_network.h"

namespace netsim {

class StallCheck {
 public:
  // Progress is a task that ends, or a packet or sum that arrives for the first time. `packets` may be null
  // (`network: ideal`). All arguments must outlive this.
  StallCheck(const Engine& engine, const JobSet& jobs, const JobManager& manager,
             const PacketNetwork* packets)
      : engine_(engine), jobs_(jobs), manager_(manager), packets_(packets) {}

  // Returns the simulated time of the next check. The engine must not go beyond it before check().
  Time next() const { return next_; }
  // Checks for progress, when all events up to next() have been executed, and plans the next check.
  // `following` is the time of the next event, call or scheduling interval.
  // The checks are at simulated times, so that their result depends on the run only.
  void check(Time following);
  // Returns whether a check found no progress.
  bool stalled() const { return stalled_; }

 private:
  bool find_stall();
  bool repeats_forever() const;
  bool is_something_to_come() const;

  const Engine& engine_;
  const JobSet& jobs_;
  const JobManager& manager_;
  const PacketNetwork* packets_;
  // The counters and time at the last check at which there was progress.
  std::uint64_t tasks_ = 0, delivered_ = 0, event_ = 0;
  Time time_ = 0;
  Time next_ = 0;
  bool stalled_ = false;
};

}  // namespace netsim
