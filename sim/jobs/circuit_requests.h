// Requests of ranks that are answered, between events, when all members of a group have asked. A request asks
// the switches for other optical circuits, or asks to begin a collective after a pause (Task::pause). Only
// CircuitRequest and CircuitAccess are used outside of sim/jobs.
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

// CircuitRequest: the request of one member, with the slot of its waiting task. Plain data.
struct CircuitRequest {
  std::uint32_t job = 0, rank = 0, slot = 0;
};

// CircuitAccess: connects the jobs of a run to the switches, and the ranks of a group to each other.
struct CircuitAccess {
  CircuitControl* control = nullptr;  // null: the network has no optical circuits
  // Passes the request to JobSet::circuits_asked() at `time`, between events, by LogicalProcess::ask_call()
  // of the set.
  std::function<void(std::uint32_t set, Time time, Origin& origin, const CircuitRequest& request)> ask;
};

// CircuitRequests: the circuit configurations of one job, and the requests of groups that are not complete.
class CircuitRequests {
 public:
  // Throws InputError for a configuration that does not exist, at the place where the source asks for it.
  CircuitRequests(const TaskSource& source, const CircuitControl* control);
  // Adds a request and returns the requests of communication `id` so far. When all `members` have asked, they
  // are removed here.
  std::vector<CircuitRequest> add(std::uint64_t id, const CircuitRequest& request, std::size_t members);
  // Returns the control's number of the configuration TaskSource::circuits()[index].
  std::uint32_t configuration(std::uint32_t index) const { return configurations_[index]; }

 private:
  std::vector<std::uint32_t> configurations_;
  std::map<std::uint64_t, std::vector<CircuitRequest>> waiting_;  // by communication id
};

}  // namespace netsim
