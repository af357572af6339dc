// Requests of the ranks of a job that are answered when all of a group have asked, between events: for other
// optical circuits, on their way to the switches, and to begin a collective after a pause (Task::pause).
// Private to the room, but for what a JobSet is given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "sim/core/event.h"
#include "sim/core/units.h"
#include "sim/transport/circuit_control.h"
#include "sim/workload/task.h"

namespace netsim {

// One member's: its task that waits. Plain data.
struct CircuitRequest {
  std::uint32_t job = 0, rank = 0, slot = 0;
};

// How the jobs of a run come to the switches, and their ranks to each other.
struct CircuitAccess {
  CircuitControl* control = nullptr;  // null: the network has no optical circuits
  // Hands the request to JobSet::circuits_asked() at `time`, between events: LogicalProcess::ask_call() of
  // the set.
  std::function<void(std::uint32_t set, Time time, Origin& origin, const CircuitRequest& request)> ask;
};

// Of one job: what its source calls the configurations, and the requests of groups that are not all there.
class CircuitRequests {
 public:
  // InputError, where the source says that it is asked for, for a configuration that there is not.
  CircuitRequests(const TaskSource& source, const CircuitControl* control);
  // The members of communication `id` so far, with this one. When all `members` have asked they are forgotten
  // here.
  std::vector<CircuitRequest> add(std::uint64_t id, const CircuitRequest& request, std::size_t members);
  // The control's number of TaskSource::circuits()[index].
  std::uint32_t configuration(std::uint32_t index) const { return configurations_[index]; }

 private:
  std::vector<std::uint32_t> configurations_;
  std::map<std::uint64_t, std::vector<CircuitRequest>> waiting_;  // by communication
};

}  // namespace netsim
