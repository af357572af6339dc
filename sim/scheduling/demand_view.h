// DemandView: what jobs tell the schedulers below them. A field that is off, that the scheduler does not name
// in its needs(), or of which nothing is old enough is empty (views.h).
#pragma once

#include <cstdint>
#include <span>

#include "sim/core/ids.h"
#include "sim/core/units.h"

namespace netsim {

// JobProgress: how much of a job is done.
struct JobProgress {
  JobId job = 0;
  std::uint32_t iterations = 0;  // of the whole job; 0: only its run tells
  std::uint32_t iterations_done = 0;
  Time iteration_time = 0;        // mean so far; before the first what the workload tells; 0: unknown
  Time iteration_began = kNever;  // begin of its present iteration; kNever: it does not run
  double gpu_seconds = 0;         // GPUs held, summed over the time for which it held them
  std::uint32_t gpus_held = 0;    // GPUs that it holds
  Time deadline = kNever;         // kNever: it has none, or `deadlines` does not tell
};

// ComingCommunication: a communication of a job's present iteration that should begin later.
struct ComingCommunication {
  JobId job = 0;
  GroupId group = GroupId::none();  // of a collective; none for a message
  std::uint32_t name = 0;           // name of the communication in its job's workload
  Bytes bytes = 0;
  // Begin of the iteration, and the longest path of the task graph up to the communication. It is stretched
  // by how much longer than that graph the job's iterations have taken.
  Time expected = 0;
};

// CommunicationSlack: how much later the communications of a name may end without a delay of their job's
// iteration, if no two communications contend. It is the least of those with that name.
struct CommunicationSlack {
  JobId job = 0;
  std::uint32_t name = 0;  // as FlowView::name
  Time slack = 0;
};

// Spans are valid during the call that gets them.
struct DemandView {
  std::span<const JobProgress> jobs = {};            // jobs that run or wait, by number (`jobs`)
  std::span<const ComingCommunication> coming = {};  // by expected time (`coming`)
  std::span<const CommunicationSlack> slack = {};    // by job and name (`slack`)
};

}  // namespace netsim
