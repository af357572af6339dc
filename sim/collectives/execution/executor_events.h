// ExecutorEvent: the executor's own events.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/execution/executor_gpu.h"
#include "sim/core/event_loop.h"

namespace netsim {

enum class ExecutorEvent : std::uint32_t {
  begin,   // the base latency is over, and an operation executes its first steps
  finish,  // an operation that needed no time, or had to copy at its end, is done
  send     // the hop latency is over, and a message is handed to the endpoint
};

// ExecutorEvents: schedules the events of one logical process's GPUs. The target of an event is its GPU. The
// argument holds the ExecutorEvent and the slot of the operation or message.
class ExecutorEvents {
 public:
  // `gpus` holds the GPUs of all logical processes.
  ExecutorEvents(EventLoop& loop, std::vector<ExecutorGpu>& gpus) : loop_(loop), gpus_(gpus) {}
  Time now() const { return loop_.now(); }
  void schedule(Time time, std::uint32_t gpu, ExecutorEvent what, std::uint32_t slot) {
    loop_.schedule(time, gpus_[gpu].origin, EventKind::executor, gpu,
                   static_cast<std::uint64_t>(what) << 32 | slot);
  }
  static ExecutorEvent what(const Event& event) { return static_cast<ExecutorEvent>(event.argument >> 32); }
  static std::uint32_t slot(const Event& event) { return static_cast<std::uint32_t>(event.argument); }

 private:
  EventLoop& loop_;
  std::vector<ExecutorGpu>& gpus_;
};

}  // namespace netsim
