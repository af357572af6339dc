// UnrolledRole: one role's program as flat arrays: for each task its operation, its number of dependencies
// and the tasks that wait for it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/adjacency_list.h"
#include "sim/workload/program/program.h"

namespace netsim {

// OperationList: all operations of all blocks in one list, with their paths for messages.
class OperationList {
 public:
  explicit OperationList(const Program& program);
  std::size_t size() const { return ops_.size(); }
  // The operation lies in the program.
  const ProgramOp& operator[](std::uint32_t index) const { return *ops_[index]; }
  // Returns whether an operation is of this kind.
  bool contains(TaskKind kind) const {
    return std::any_of(ops_.begin(), ops_.end(), [&](const ProgramOp* op) { return op->kind == kind; });
  }
  // Returns "blocks[2].items[7].op".
  std::string path(std::uint32_t index) const;
  // Returns the index of the operation at an item of a block.
  std::uint32_t at(std::uint32_t block, std::size_t item) const { return index_[begin_[block] + item]; }

 private:
  std::vector<const ProgramOp*> ops_;
  std::vector<std::size_t> begin_;                              // by block: first entry of index_
  std::vector<std::uint32_t> index_;                            // by item: operation, or unused for a repeat
  std::vector<std::pair<std::uint32_t, std::uint32_t>> place_;  // by operation: block, item
};

// UnrolledRole: a role's operations, unrolled, with their dependencies and stream queues. The order of a
// queue is not a dependency: the source that hands out the tasks keeps it, or changes it for a task
// scheduler.
class UnrolledRole {
 public:
  static constexpr std::uint32_t kNoQueue = UINT32_MAX;

  // Throws InputError for dependencies out of the program.
  UnrolledRole(const Program& program, const OperationList& operations, const ProgramRole& role,
               const std::string& file);

  std::uint32_t size() const { return static_cast<std::uint32_t>(operation_.size()); }
  std::uint32_t operation(std::uint32_t index) const { return operation_[index]; }

  // Returns the number of tasks that a task waits for: in its iteration, and in the previous one, which the
  // first iteration does not have.
  std::uint32_t dependencies(std::uint32_t index, bool first_iteration) const {
    return within_[index] + (first_iteration || across_.empty() ? 0 : across_[index]);
  }
  std::span<const std::uint32_t> successors(std::uint32_t index) const { return successors_.of(index); }
  std::span<const std::uint32_t> next_iteration_successors(std::uint32_t index) const {
    return next_.of(index);
  }
  // Returns whether the task waits for the end of the whole previous iteration.
  bool waits_for_iteration(std::uint32_t index) const { return gated_[index]; }

  // Stream queues: one for each (stream, queue) of the program. A task's place counts within an iteration.
  std::uint32_t queues() const { return static_cast<std::uint32_t>(queues_.size()); }
  std::uint32_t queue(std::uint32_t index) const { return queue_[index]; }  // kNoQueue: unordered
  std::uint32_t place(std::uint32_t index) const { return place_[index]; }
  // Returns the number of tasks with its place; more than one are a grouped call.
  std::uint32_t together(std::uint32_t index) const;
  std::span<const std::uint32_t> call_of(std::uint32_t index) const {
    return tasks_at(queue_[index], place_[index]);
  }
  // Returns the number of places of a queue in an iteration.
  std::uint32_t places(std::uint32_t queue) const { return place_[queues_[queue].back()] + 1; }
  // Returns the tasks of a place, which are consecutive.
  std::span<const std::uint32_t> tasks_at(std::uint32_t queue, std::uint32_t place) const;
  // Returns the tasks of a queue, in order.
  const std::vector<std::uint32_t>& tasks_of(std::uint32_t queue) const { return queues_[queue]; }
  // Returns the tasks of no queue that depend on nothing in their iteration.
  const std::vector<std::uint32_t>& unordered_roots() const { return unordered_roots_; }
  // Returns the tasks of queues that depend on nothing in their iteration.
  const std::vector<std::uint32_t>& ordered_roots() const { return ordered_roots_; }

 private:
  void unroll(const Program& program, const OperationList& operations, std::uint32_t block);
  void line_up(const OperationList& operations, const std::string& file);
  void connect(const OperationList& operations, const std::string& file);
  void connect_iterations(const OperationList& operations, const std::string& file);

  std::vector<std::uint32_t> operation_;
  std::vector<std::uint32_t> within_;
  std::vector<std::uint32_t> across_;  // empty: no task names one of the previous iteration
  std::vector<bool> gated_;
  AdjacencyList successors_, next_;
  std::vector<std::uint32_t> queue_, place_;
  std::vector<std::vector<std::uint32_t>> queues_;
  std::vector<std::uint32_t> unordered_roots_, ordered_roots_;
};

}  // namespace netsim
