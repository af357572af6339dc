// What the executor keeps of each GPU. Only the GPU's set touches it while events run.
#pragma once

#include <cstdint>

#include "sim/collectives/execution/operation_table.h"
#include "sim/core/event_loop.h"

namespace netsim {

struct ExecutorGpu {
  explicit ExecutorGpu(std::uint32_t number) : origin(number) {}
  Origin origin;              // of its executor's events
  OperationTable operations;  // those that are not recycled
  std::uint64_t opened = 0;   // operations so far
  Time proxy_free = 0;        // its proxy thread has posted all messages to the network
};

}  // namespace netsim
