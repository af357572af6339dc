// UnrolledRole: one role's program as flat arrays: which operation, how many dependencies, who waits for it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/workload/program/program.h"

namespace netsim {

// All operations of all blocks in one list, with their places for messages.
class OperationList {
 public:
  explicit OperationList(const Program& program);
  std::size_t size() const { return ops_.size(); }
  const ProgramOp& operator[](std::uint32_t index) const { return *ops_[index]; }  // lives in the program
  // "blocks[2].items[7].op"
  std::string path(std::uint32_t index) const;
  // Index of the operation at an item of a block.
  std::uint32_t at(std::uint32_t block, std::size_t item) const { return index_[begin_[block] + item]; }

 private:
  std::vector<const ProgramOp*> ops_;
  std::vector<std::size_t> begin_;                              // per block: first entry of index_
  std::vector<std::uint32_t> index_;                            // per item: operation, or unused for a repeat
  std::vector<std::pair<std::uint32_t, std::uint32_t>> place_;  // per operation: block, item
};

// Lists of lists of numbers, flat.
class AdjacencyList {
 public:
  // Edges (from, to) in any order; targets of one source come out ascending.
  void build(std::size_t sources, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges);
  std::span<const std::uint32_t> of(std::uint32_t source) const {
    if (begin_.empty()) return {};
    return {targets_.data() + begin_[source], begin_[source + 1] - begin_[source]};
  }

 private:
  std::vector<std::uint32_t> begin_;
  std::vector<std::uint32_t> targets_;
};

class UnrolledRole {
 public:
  // InputError for dependencies out of the program.
  UnrolledRole(const Program& program, const OperationList& operations, const ProgramRole& role,
               const std::string& file);

  std::uint32_t size() const { return static_cast<std::uint32_t>(operation_.size()); }
  std::uint32_t operation(std::uint32_t index) const { return operation_[index]; }
  // Predecessors of a task: in its iteration, plus those in the previous one (not for the first iteration;
  // the end of the whole previous iteration counts as one).
  std::uint32_t dependencies(std::uint32_t index, bool first_iteration) const {
    return within_[index] + (first_iteration ? 0 : across_[index]);
  }
  std::span<const std::uint32_t> successors(std::uint32_t index) const { return successors_.of(index); }
  std::span<const std::uint32_t> next_iteration_successors(std::uint32_t index) const {
    return next_.of(index);
  }
  // Tasks without dependencies in the first iteration / tasks that wait for the end of the previous
  // iteration.
  const std::vector<std::uint32_t>& roots() const { return roots_; }
  const std::vector<std::uint32_t>& waiting_for_iteration() const { return waiting_; }

 private:
  // First and last task of a (stream, queue).
  struct Lane {
    std::uint32_t first;
    std::uint32_t last;
  };
  void unroll(const Program& program, const OperationList& operations, std::uint32_t block);
  std::vector<Lane> connect(const OperationList& operations, const std::string& file);
  void connect_iterations(const OperationList& operations, const std::vector<Lane>& lanes,
                          const std::string& file);

  std::vector<std::uint32_t> operation_;
  std::vector<std::uint32_t> within_;
  std::vector<std::uint32_t> across_;
  AdjacencyList successors_, next_;
  std::vector<std::uint32_t> roots_, waiting_;
};

}  // namespace netsim
