// Goal: the values with which a plan begins and with which it must end, cell by cell; derived from
// CollectiveGoal.
#pragma once

#include <cstdint>
#include <string>

#include "sim/collectives/plan.h"
#include "sim/collectives/proof/rank_sets.h"

namespace netsim::proof {

using Set = RankSets::Set;

// Cell: a position at a rank that holds a chunk. In place, input and output are one cell. Cells of the input
// and of the output are numbered by the whole buffer, even where a rank has only a part of it.
struct Cell {
  enum class Region : std::uint8_t { input, output, scratch };  // in place, input stands for both
  Region region = Region::input;
  std::uint32_t index = 0;
};

// Value: the content of a cell. It is a piece of data and the ranks whose contributions to it are included
// (Goal::whole). Pieces are numbered by the chunk of the buffer; those of an all_to_all by (source, chunk of
// its input).
struct Value {
  std::uint32_t piece = 0;
  Set ranks;
  bool operator==(const Value&) const = default;
};
inline constexpr std::uint32_t kNothing = UINT32_MAX;    // holds no known value
inline constexpr std::uint32_t kOther = UINT32_MAX - 1;  // holds a piece that is not followed
inline constexpr std::uint32_t kMaxPieces = UINT32_MAX - 2;

class Goal {
 public:
  explicit Goal(const Plan& plan);

  Cell cell(std::uint32_t rank, ChunkAt at) const {
    if (at.buffer == Buffer::scratch) return {Cell::Region::scratch, at.chunk};
    const bool input = at.buffer == Buffer::input;
    const std::uint32_t index = offset(rank, input ? goal_.contributors : goal_.holders) + at.chunk;
    return {input || in_place_ ? Cell::Region::input : Cell::Region::output, index};
  }
  // Returns the chunk of the buffer that has the cell's size. Passes of the proof divide the cells by it.
  std::uint32_t column(Cell cell) const {
    return cell.region == Cell::Region::scratch ? cell.index % chunks_ : cell.index;
  }
  std::uint32_t columns() const { return chunks_; }
  bool in_place() const { return in_place_; }

  // Returns the piece that a cell holds at the beginning, with the rank's own contribution; or kNothing.
  std::uint32_t initial(std::uint32_t rank, Cell cell) const;
  // Returns the piece that the cell must hold whole() at the end; kNothing if any value is allowed.
  std::uint32_t wanted(std::uint32_t rank, Cell cell) const;
  // Returns whether each piece comes from one rank, so that nothing can be added. Values then need not name
  // the rank.
  bool has_one_contributor() const { return goal_.contributors != ChunkRanks::all; }
  Set whole() const { return has_one_contributor() ? Set{0, 1} : Set{0, workers_}; }

  // Returns a value in words: "contributions {0-3} of chunk 5", "chunk 5 of the input of rank 1", "nothing".
  std::string text(const Value& value, const RankSets& sets) const;

 private:
  std::uint32_t contributor(std::uint32_t piece) const;  // for kinds with one contributor
  bool is_own(std::uint32_t rank, std::uint32_t column) const { return column / part_ == rank; }
  // Returns where the part of the whole buffer that a rank owns begins.
  std::uint32_t offset(std::uint32_t rank, ChunkRanks ranks) const {
    return ranks == ChunkRanks::owner ? rank * part_ : 0;
  }

  CollectiveGoal goal_;
  std::uint32_t workers_, root_, chunks_;
  std::uint32_t part_;  // number of chunks that a rank owns, for kinds with parts
  bool in_place_;
};

}  // namespace netsim::proof
