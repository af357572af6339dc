// KinetoWaits: what the tasks of a rank waited for in other CUDA streams, for the traces of KinetoFile.
// PyTorch records such a wait as a cudaEventRecord, a cudaStreamWaitEvent and a cuda_sync event.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sim/core/adjacency_list.h"
#include "sim/jobs/job.h"
#include "sim/workload/task_source.h"

namespace netsim {

class KinetoWaits {
 public:
  // Launched: a task on the GPU that others may wait for.
  struct Launched {
    TaskId task = 0;
    std::uint32_t stream = 0;  // CUDA stream
    Time posted = 0, start = 0, end = 0;
    std::uint64_t event = 0;  // correlation of the cudaEventRecord behind its launch
    bool recorded = false;    // a wait for it was returned
  };
  // Wait: a task waits for a launched one. `is_first` tells that no wait for it was returned before.
  struct Wait {
    Launched launched;
    bool is_first = true;
  };

  // Lists what the tasks of a rank wait for, if the source knows them and they are at most `most`. Returns
  // the number of tasks, or 0 if there is no list.
  std::uint64_t list(const TaskSource& source, RankId rank, std::uint64_t most);
  // Returns whether all waits of the rank are known.
  bool complete() const { return before_.has_value(); }

  // Returns what a task waited for in other streams than its own: the last task of each stream. Called once
  // for each task, in order of end.
  //
  // A task scheduler may hold a communication until another task ends. That task is one of those it waited
  // for: the library that orders launches makes the stream wait there.
  std::vector<Wait> of(const TaskRecord& record, std::uint32_t stream);
  // Adds a task on the GPU that has ended, if all waits are known.
  void add(const Launched& launched);

 private:
  using Ends = std::vector<std::pair<Time, std::uint32_t>>;

  Ends::const_iterator behind(Time end) const;
  Launched* held_by(const TaskRecord& record, std::uint32_t stream);

  std::optional<AdjacencyList> before_;  // by task: those that it waits for
  std::vector<Launched> launched_;       // by task; `event` is 0 for those that were not added
  Ends ended_;                           // ends and numbers of the tasks that were added, in order of time
};

}  // namespace netsim
