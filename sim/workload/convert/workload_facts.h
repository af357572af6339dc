// WorkloadFacts: what a workload has, counted over the tasks of all ranks. `netsim describe-trace` shows it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/units.h"
#include "sim/workload/convert/ideal_replay.h"
#include "sim/workload/task_source.h"

namespace netsim {

struct WorkloadFacts {
  struct KindRow {
    std::string kind;
    std::uint64_t tasks = 0;  // of all ranks
    // Communications: a collective or a message of several ranks is one.
    std::uint64_t calls = 0;
    Int128 bytes = 0;  // of these communications, as each kind counts them
    Time time = 0;     // of computations, with a time of their own
  };
  struct StreamRow {
    std::string stream;
    std::uint64_t tasks = 0;
    Int128 bytes = 0;
    Time time = 0;
  };
  std::string job;
  std::uint32_t ranks = 0;
  std::optional<std::uint32_t> iterations;
  std::uint64_t tasks = 0;
  std::uint64_t groups = 0;  // with a call
  std::uint64_t largest_group = 0;
  std::vector<KindRow> kinds;                // by the name of the kind
  std::vector<StreamRow> streams;            // in their order
  std::uint64_t untimed = 0;                 // computations without a time of their own
  Time least_compute = 0, most_compute = 0;  // of the ranks' sums of computations on their GPU
  ReplayedPath path;
  std::vector<std::string> notes;  // of the reader
};

// Counts the tasks of the workload and plays it ideally. `duration` returns the time of a work, or nothing
// where it has none of its own. Throws InputError for a workload that decides its tasks during the run.
WorkloadFacts workload_facts(TaskSource& source,
                             const std::function<std::optional<Time>(const Work&)>& duration, BitRate rate);

}  // namespace netsim
