// KinetoWaits: what the tasks of a rank waited for in other CUDA streams, for the traces of KinetoFile.
// PyTorch records such a wait as a cudaEventRecord, a cudaStreamWaitEvent and a cuda_sync event.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
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
  std::vector<Wait> of(const TaskRecord& record, std::uint32_t stream);
  // Returns whether other tasks wait for one, so that it must be added.
  bool is_awaited(TaskId task) const;
  void add(const Launched& launched) { launched_.emplace(launched.task, launched); }

 private:
  std::optional<AdjacencyList> before_;  // by task: those that it waits for
  std::vector<std::uint32_t> waiting_;   // by task: tasks that wait for it and have not ended
  std::unordered_map<std::uint32_t, Launched> launched_;  // by task, while others wait; never iterated
};

}  // namespace netsim
