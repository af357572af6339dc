// TaskScheduler: the one hook between a task that is ready and its launch. Without one the tasks of a stream
// queue are launched in program order, one after the other, as on a CUDA stream.
//
// What meets on several ranks is matched by keys that come from the program (Task::sequence), so a scheduler
// may launch the collectives of one rank in any order: members find each other, though they may wait for each
// other for ever if their orders cannot be reconciled.
#pragma once

#include <cstdint>
#include <span>

#include "sim/core/units.h"

namespace netsim {

// What a scheduler sees of a task: enough to choose, nothing to change.
struct ReadyTask {
  std::uint32_t rank = 0;
  std::uint32_t queue = 0;  // the rank's stream queue
  std::uint32_t place = 0;  // in the queue, in program order
  std::uint32_t iteration = 0;
  bool communication = false;
  Bytes bytes = 0;         // of a communication
  std::uint32_t name = 0;  // TaskSource::name()
};

class TaskScheduler {
 public:
  virtual ~TaskScheduler() = default;
  // How many tasks of one stream queue may be ready at once, the one under way included; at least 1.
  virtual std::uint32_t lookahead() const = 0;
  // One task of the queue may be launched now. `ready`: those that could be, in program order, not empty.
  // `next_place`: the place that comes next in program order, which need not be among them. Returns the index
  // of the one to launch, or ready.size() to wait for one that is not ready yet: it is asked again when
  // another becomes ready. Called for ranks of different sets from different threads; the answer depends on
  // the rank's own past only.
  virtual std::size_t choose(std::span<const ReadyTask> ready, std::uint32_t next_place) = 0;
};

}  // namespace netsim
