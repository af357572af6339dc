// The records of a run that are not defined by the folder that writes them. Result sinks get them
// (result_sink.h) beside TaskRecord and MemoryRecord (jobs/job.h), FlowRecord (transport/packet_network.h)
// and the samples (samples.h).
#pragma once

#include <cstdint>
#include <string>

#include "sim/collectives/execution/library_choice.h"
#include "sim/jobs/job.h"
#include "sim/jobs/path_step.h"

namespace netsim {

// RecordedCommunication: a communication that ended, and how the library ran it.
struct RecordedCommunication {
  const CommunicationRecord& communication;
  const LibraryChoice& choice;  // empty where the library had none: for messages and for groups of one rank
};

// RecordedStep: a step of the critical path of an iteration. Recorded if OutputParameters::critical_path is
// set.
struct RecordedStep {
  JobId job = 0;
  std::uint32_t iteration = 0;
  const PathStep& step;
};

// RecordedPortDelay: the delay of a transfer step at one port.
struct RecordedPortDelay {
  JobId job = 0;
  std::uint32_t iteration = 0;
  const PathStep& step;
  std::string port;  // name as in links.csv
  const PortDelay& delay;
};

}  // namespace netsim
