// TaskSuccessors: for each task of a recorded rank, the tasks that wait for it.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/workload/trace/trace_program.h"

namespace netsim {

class TaskSuccessors {
 public:
  explicit TaskSuccessors(const std::vector<TraceTask>& tasks) : begin_(tasks.size() + 1, 0) {
    for (const TraceTask& task : tasks) {
      for (const std::uint32_t before : task.after) ++begin_[before + 1];
    }
    for (std::size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
    behind_.resize(begin_.back());
    std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
    for (std::uint32_t i = 0; i < tasks.size(); ++i) {
      for (const std::uint32_t before : tasks[i].after) behind_[next[before]++] = i;
    }
  }
  // Calls visit(later) for each wait for the task, in the order of the waiting tasks.
  template <class Visit>
  void for_each(std::uint32_t task, Visit visit) const {
    for (std::uint32_t i = begin_[task]; i < begin_[task + 1]; ++i) visit(behind_[i]);
  }

 private:
  std::vector<std::uint32_t> begin_, behind_;
};

}  // namespace netsim
