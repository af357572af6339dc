// Cells: what the ranks hold of the chunks while the proof executes a schedule. A cell (rank, chunk) holds
// the set of ranks whose contribution is in it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sim/collectives/proof/rank_sets.h"
#include "sim/collectives/schedule.h"

namespace netsim::proof {

using Set = RankSets::Set;

// Those of one pass: see follows().
class Cells {
 public:
  virtual ~Cells() = default;
  virtual bool follows(std::uint32_t chunk) const = 0;
  virtual Set get(std::uint32_t rank, std::uint32_t chunk) const = 0;
  virtual void put(std::uint32_t rank, std::uint32_t chunk, Set set) = 0;
  // Empty, or what is wrong at the end.
  virtual std::string verdict() const = 0;
};

// As the kind of the schedule has them at the beginning. `sets` outlives them.
// Of chunks first, ..., first + count - 1, 8 bytes a cell.
std::unique_ptr<Cells> make_dense_cells(const Schedule& schedule, RankSets& sets, std::uint32_t first,
                                        std::uint32_t count);
// Of all chunks of a kind whose chunks are blocks (source, destination), a bit a block.
std::unique_ptr<Cells> make_block_cells(const Schedule& schedule);

}  // namespace netsim::proof
