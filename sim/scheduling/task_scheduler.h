// TaskScheduler: decides when a ready task is launched. Without one the tasks of a stream queue are launched
// in program order, one after the other, as on a CUDA stream.
//
// Operations of several ranks are matched by keys from the program (Task::sequence), so a scheduler may
// launch the collectives of a rank in any order. Members wait for each other for ever if their orders cannot
// be reconciled.
#pragma once

#include <cstdint>
#include <span>

#include "sim/core/ids.h"
#include "sim/core/units.h"

namespace netsim {

// ReadyTask: the part of a task that a scheduler may see.
struct ReadyTask {
  RankId rank = 0;
  std::uint32_t queue = 0;  // the rank's stream queue
  std::uint32_t place = 0;  // position in the queue, in program order
  std::uint32_t iteration = 0;
  bool communication = false;
  Bytes bytes = 0;         // bytes of a communication
  std::uint32_t name = 0;  // TaskSource::name()
};

class TaskScheduler {
 public:
  virtual ~TaskScheduler() = default;
  // Returns how many tasks of one stream queue may be ready at once, the running one included; at least 1.
  virtual std::uint32_t lookahead() const = 0;
  // Returns the index in `ready` of the task to launch, or ready.size() to wait for a task that is not ready.
  // Then it is called again when another task becomes ready. `ready` is not empty and in program order;
  // `next_place`, the next place in program order, need not be in it.
  //
  // Ranks of different sets call it from different threads. The result may depend on the rank's own past
  // only.
  virtual std::size_t choose(std::span<const ReadyTask> ready, std::uint32_t next_place) = 0;
};

}  // namespace netsim
