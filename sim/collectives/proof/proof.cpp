// The proof executes all ranks of a plan symbolically, one round, and follows what every cell holds: a piece
// of the data, and the ranks whose contribution to it is in there.
//
// One execution is enough. A message belongs to a connection, from one thread block to another, and is taken
// in the order in which it was sent; a step begins when its message, a free slot and the step that it waits
// for are there, and nothing but the step itself can take these away again. So it does not matter which of
// the steps that may begin goes first: a Kahn network, with slots as messages that travel back, ends the same
// way at all speeds, and with more slots it does not stop where it went on with fewer. The only way out would
// be two thread blocks of one rank that touch the same cell in either order; so every such pair (unless both
// only read) must be ordered (step_order.h). Data that is overwritten while somebody still needs it is then a
// wrong value, or not ordered. Further rounds are further pieces of the buffers, follow each other within
// each thread block, and begin with empty connections, so that they can follow each other altogether.
//
// Exact for any number of ranks: sets are exact (rank_sets.h), nothing is sampled. Memory (cells.h): cells
// are followed for a range of columns at a time where contributions are added; larger plans are executed once
// for each range. Each pass follows the pieces of its columns everywhere, and sees what is done to the cells
// of its columns. Nothing escapes: a sum of a piece that is followed and one that is not is wrong; that a
// cell holds nothing is seen in the pass of its column.
#include "sim/collectives/proof/proof.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "sim/collectives/proof/access_order.h"
#include "sim/collectives/proof/blocks.h"
#include "sim/collectives/proof/cell_range.h"
#include "sim/collectives/proof/cells.h"
#include "sim/collectives/proof/goal.h"
#include "sim/collectives/proof/rank_sets.h"
#include "sim/collectives/proof/step_order.h"
#include "sim/collectives/proof/symbolic_execution.h"
#include "sim/collectives/proof/validity.h"
#include "sim/collectives/proof/wording.h"

namespace netsim {
namespace {

using namespace proof;

// Once the first pass has shown that nobody waits forever, others go faster with more slots.
constexpr std::uint32_t kManySlots = 64;
constexpr std::uint32_t kBytesOfSum = 4;  // make_sums(), of a cell

class Proof {
 public:
  Proof(const Plan& plan, std::uint32_t slots)
      : plan_(plan),
        slots_(slots),
        goal_(plan),
        sets_(plan.ranks()),
        blocks_(plan),
        numbers_(plan, blocks_),
        order_(plan, blocks_) {
    for (std::uint32_t rank = 0; rank < plan.ranks(); ++rank) {
      cells_in_column_ += CellRange::layers(plan, goal_, rank);
      several_blocks_ = several_blocks_ || blocks_.of(rank) > 1;
    }
  }

  std::string run(std::uint64_t bytes, StepListener* listener) {
    const std::uint64_t column =
        cells_in_column_ * ((goal_.has_one_contributor() ? 0 : kBytesOfSum) +
                            (several_blocks_ ? AccessOrder::bytes_of_cell(numbers_) : 0));
    const std::uint64_t columns = column == 0 ? goal_.columns() : std::max<std::uint64_t>(1, bytes / column);
    for (std::uint64_t first = 0; first < goal_.columns(); first += columns) {
      const auto count = static_cast<std::uint32_t>(std::min(columns, goal_.columns() - first));
      if (first > 0) slots_ = std::max(slots_, kManySlots);
      std::string wrong = pass(CellRange(plan_, goal_, static_cast<std::uint32_t>(first), count),
                               first == 0 ? listener : nullptr);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

 private:
  std::string pass(const CellRange& range, StepListener* listener) {
    const auto cells = make_cells(range);
    std::optional<AccessOrder> order;
    if (several_blocks_) order.emplace(plan_, range, numbers_, order_);
    SymbolicExecution all = execution(*cells, order ? &*order : nullptr);
    all.set_listener(listener);
    const std::string wrong = all.run();
    return wrong.empty() ? verdict(range, *cells) : wrong;
  }
  std::unique_ptr<Cells> make_cells(const CellRange& range) const {
    return goal_.has_one_contributor() ? make_pieces(plan_, goal_) : make_sums(plan_, goal_, range);
  }
  SymbolicExecution execution(Cells& cells, AccessOrder* order) {
    return {plan_, slots_, blocks_, goal_, sets_, cells, order};
  }

  std::string verdict(const CellRange& range, const Cells& cells) {
    for (std::uint32_t rank = 0; rank < plan_.ranks(); ++rank) {
      const std::uint32_t chunks = chunks_of(plan_, rank, Buffer::output);
      const std::uint32_t offset = goal_.column(goal_.cell(rank, {Buffer::output, 0}));
      const std::uint32_t end = std::min(offset + chunks, range.end());
      for (std::uint32_t column = std::max(offset, range.first()); column < end; ++column) {
        const ChunkAt at{Buffer::output, column - offset};
        const Cell cell = goal_.cell(rank, at);
        const std::uint32_t piece = goal_.wanted(rank, cell);
        if (piece == kNothing) continue;
        const Value wanted{piece, goal_.whole()}, held = cells.get(rank, cell);
        if (held != wanted) return ends_with(range, rank, at, held, wanted);
      }
    }
    return "";
  }
  std::string ends_with(const CellRange& range, std::uint32_t rank, ChunkAt at, const Value& held,
                        const Value& wanted) {
    const auto cells = make_cells(range);
    SymbolicExecution again = execution(*cells, nullptr);
    again.watch(rank, goal_.cell(rank, at));
    again.run();
    return (again.last_write().empty() ? "rank " + number(rank) + " does nothing to its output"
                                       : again.last_write() + ": the last to write there") +
           ": " + text(at, 1) + " ends with " + goal_.text(held, sets_) + ", not " +
           goal_.text(wanted, sets_);
  }

  const Plan& plan_;
  std::uint32_t slots_;
  Goal goal_;
  RankSets sets_;
  Blocks blocks_;
  AccessNumbers numbers_;
  StepOrder order_;
  std::uint64_t cells_in_column_ = 0;
  bool several_blocks_ = false;  // at some rank
};

}  // namespace

std::string prove(const Plan& plan, std::uint32_t slots) { return prove_within(plan, slots, kProofBytes); }

std::string prove_within(const Plan& plan, std::uint32_t slots, std::uint64_t bytes,
                         proof::StepListener* listener) {
  if (slots == 0) return "a connection needs a slot";
  if (std::string wrong = check_shape(plan); !wrong.empty()) return wrong;
  if (std::string wrong = check_steps(plan); !wrong.empty()) return wrong;
  return Proof(plan, slots).run(bytes, listener);
}

}  // namespace netsim
