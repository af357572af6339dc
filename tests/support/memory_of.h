// Computes how much memory of its GPU a rank's tasks use, without running them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/workload/memory_plan.h"
#include "tests/support/tasks_of.h"

namespace netsim::test {

// The most of a kind while a rank's tasks begin and end in their order; all is released behind them.
inline Bytes most_of(const TaskSource& source, std::uint32_t rank, MemoryKind kind) {
  const MemoryPlan& memory = *source.memory();
  MemoryUse now = memory.resident(rank);
  Bytes most = now[kind];
  for (const Task& task : tasks_of(source, rank)) {
    for (const bool begins : {true, false}) {
      memory.change(rank, task, begins, now);
      most = std::max(most, now[kind]);
    }
  }
  EXPECT_EQ(now, memory.resident(rank)) << now.text();
  return most;
}

}  // namespace netsim::test
