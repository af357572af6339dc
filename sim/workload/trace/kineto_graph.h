// KinetoGraph: what the operations of a rank's GPU waited for, and the work of the CPU that launched late.
//
// An operation waits for the one before it in its CUDA stream and, across streams, for what cuda_sync records
// say. Traces without such records name no streams. There a communication waits for the computation launched
// before it. A computation waits for a communication that PyTorch has joined (`wait`), and for one whose end
// explains why it did not begin earlier.
//
// The CPU is on the path where an operation began as soon as it was launched. All launches of a rank follow
// each other, whatever their thread. While the CPU waits for the GPU, it does no work.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/workload/trace/kineto_trace.h"

namespace netsim {

struct KinetoGraph {
  // Point: work of the CPU [ns] after the point before it, and after operations of the GPU.
  struct Point {
    std::int64_t work = 0;
    std::vector<std::uint32_t> after;  // operations that the CPU waits for
    std::uint32_t op = kNoKineto;      // operation that waits for the point; kNoKineto: none
  };
  std::vector<std::vector<std::uint32_t>> after;  // by operation: those that it waits for
  // By operation: how long after all that it waited for it began [ns], up to 5 us. The GPU needs this time
  // between two kernels. What is longer is waiting.
  std::vector<std::int64_t> gaps;
  std::vector<Point> points;          // in their order
  std::int64_t first = 0;             // when the first operation began, by the rank's clock
  std::uint64_t contradicted = 0;     // waits that the recorded times contradict, left out
  std::uint64_t inferred = 0;         // waits that no cuda_sync record says
  std::uint64_t unexplained = 0;      // operations that began later than all that they waited for
  std::int64_t unexplained_time = 0;  // their delays [ns], which a replay does not have
};

// `communicates` tells for each operation whether it is a communication.
KinetoGraph connect_kineto(const KinetoTrace& trace, const std::vector<bool>& communicates);

// Returns the work of each operation [ns] that is true in `computes`. Operations that ran at the same time
// shared the GPU equally, as netsim's GPUs are shared.
std::vector<std::int64_t> kineto_work(const KinetoTrace& trace, const std::vector<bool>& computes);

}  // namespace netsim
