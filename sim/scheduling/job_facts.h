// Facts about the iterations of jobs, by which schedulers weigh computation against communication.
#pragma once

#include <cstdint>

#include "sim/core/units.h"

namespace netsim {

// LinkBytes: what an iteration of a job sends over a link.
struct LinkBytes {
  std::uint32_t link = 0;
  Bytes bytes = 0;
};

// IterationWork: the computation of one iteration of a job.
struct IterationWork {
  double gpu_seconds = 0;  // computation of all ranks, in seconds on the GPUs that they have; 0: unknown
  Time compute = 0;        // time of the iteration if communication took none
  Time offset = 0;         // from its begin to the begin of its first communication, if none before took time
};

// JobFacts: what is known of a job of the run.
struct JobFacts {
  IterationWork work;
  std::uint32_t iterations_done = 0;
  bool done = false;
};

}  // namespace netsim
