// Prediction: how big a run will be, before it starts: for --dry-run and for the progress display.
#pragma once

#include <cstdint>

#include "sim/collectives/executor.h"
#include "sim/core/units.h"
#include "sim/topology/topology.h"
#include "sim/workload/task.h"

namespace netsim {

struct Prediction {
  std::uint32_t ranks = 0;
  std::uint64_t tasks = 0;
  Bytes scale_out_bytes = 0;  // payload over the fabric, exact
  std::uint64_t packets = 0;  // scale-out data packets if all are full
  std::uint64_t packet_hops =
      0;               // data packets x links from GPU to GPU, a collective's at its next other host
  double minutes = 0;  // rough: packet_hops at kPacketHopsPerSecond
  std::uint64_t memory =
      0;  // bytes, rough: what is resident now and what packets and flows in flight will add
};

// Walks all tasks of all ranks. Rank r is on GPU r. `mtu`: payload of a packet on the fabric.
Prediction predict(const TaskSource& source, Executor& executor, const Cluster& cluster, Bytes mtu);
// Only the bytes: faster.
Bytes predict_bytes(const TaskSource& source, Executor& executor);

// Memory of this process, bytes; 0 where the system does not tell.
std::uint64_t resident_memory();

}  // namespace netsim
