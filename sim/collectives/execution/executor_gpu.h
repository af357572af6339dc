// ExecutorGpu: the executor's state of one GPU. Only the GPU's logical process accesses it while events run.
#pragma once

#include <cstdint>

#include "sim/collectives/execution/operation_table.h"
#include "sim/core/event_loop.h"

namespace netsim {

struct ExecutorGpu {
  explicit ExecutorGpu(std::uint32_t number) : origin(number) {}
  Origin origin;              // origin of the executor's events of this GPU
  OperationTable operations;  // operations that are not recycled
  std::uint64_t opened = 0;   // number of operations opened so far
  Time proxy_free = 0;        // time at which the proxy thread has posted all messages to the network
};

}  // namespace netsim
