// Cells: what the cells hold while the proof executes a plan.
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

// As they are at the beginning. `plan`, `goal` and `range` outlive them.
//
// Where contributions are added: pieces of the columns in `range` are followed, 4 bytes for a cell of these
// columns that holds the piece of its column, some 50 for one that holds another piece that is followed, or a
// set of ranks in large numbers. What
// is not followed is kOther, also a cell of another column that holds nothing.
std::unique_ptr<Cells> make_sums(const Plan& plan, const Goal& goal, const CellRange& range);
// Where each piece comes from one rank: all cells, and a bit for one that holds what it begins or ends with.
// A buffer of a rank, input, output or scratch, that ever holds something else costs 4 bytes a chunk.
std::unique_ptr<Cells> make_pieces(const Plan& plan, const Goal& goal);

}  // namespace netsim::proof
