// CellRange: the cells that one pass of the proof follows, numbered without gaps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/collectives/proof/goal.h"

namespace netsim::proof {

// The range holds the cells of columns first, ..., first + count - 1 at all ranks.
class CellRange {
 public:
  CellRange(const Plan& plan, const Goal& goal, std::uint32_t first, std::uint32_t count)
      : goal_(goal), first_(first), count_(count), buffers_(goal.in_place() ? 1 : 2) {
    for (std::uint32_t rank = 0; rank < plan.ranks(); ++rank) {
      begin_.push_back(size_);
      size_ += std::size_t{layers(plan, goal, rank)} * count;
    }
  }
  // Returns the largest number of cells that a column has at a rank.
  static std::uint32_t layers(const Plan& plan, const Goal& goal, std::uint32_t rank) {
    const std::uint32_t scratch = plan.scratch_chunks(rank);
    return (goal.in_place() ? 1U : 2U) + scratch / goal.columns() + (scratch % goal.columns() != 0 ? 1U : 0U);
  }

  bool has(Cell cell) const { return has_column(goal_.column(cell)); }
  bool has_column(std::uint32_t column) const { return column - first_ < count_; }
  std::uint32_t first() const { return first_; }
  std::uint32_t columns() const { return count_; }
  std::uint32_t end() const { return first_ + count_; }
  std::size_t size() const { return size_; }
  // Returns the number of a cell of the range.
  std::size_t at(std::uint32_t rank, Cell cell) const {
    const bool scratch = cell.region == Cell::Region::scratch;
    const std::uint32_t layer =
        scratch ? buffers_ + cell.index / goal_.columns() : static_cast<std::uint32_t>(cell.region);
    return begin_[rank] + std::size_t{layer} * count_ + (goal_.column(cell) - first_);
  }

 private:
  const Goal& goal_;
  std::uint32_t first_, count_;
  std::uint32_t buffers_;
  std::vector<std::size_t> begin_;  // first number of each rank
  std::size_t size_ = 0;
};

}  // namespace netsim::proof
