// Cells: the values of the cells while the proof executes a plan.
#pragma once

#include <memory>

#include "sim/collectives/proof/cell_range.h"
#include "sim/collectives/proof/goal.h"

namespace netsim::proof {

class Cells {
 public:
  virtual ~Cells() = default;
  virtual Value get(std::uint32_t rank, Cell cell) const = 0;
  virtual void put(std::uint32_t rank, Cell cell, const Value& value) = 0;
};

// Makes the cells of a plan that adds contributions, with their initial values. `plan`, `goal` and `range`
// must outlive them.
//
// Only pieces of the columns in `range` are followed. A cell of these columns takes 4 bytes where it holds
// the piece of its column. It takes about 50 bytes where it holds another followed piece, or a set of ranks
// that needs large numbers. All other values are kOther, also that of an empty cell of another column.
std::unique_ptr<Cells> make_sums(const Plan& plan, const Goal& goal, const CellRange& range);
// Makes the cells of a plan in which each piece comes from one rank. All cells are followed. A cell takes one
// bit while it is empty or holds its initial or final piece. A buffer of a rank (input, output or scratch)
// that ever holds another value costs 4 bytes a chunk.
std::unique_ptr<Cells> make_pieces(const Plan& plan, const Goal& goal);

}  // namespace netsim::proof
