// The proof executes one round of a plan symbolically at all ranks. It follows the value of every cell: a
// piece of the data, and the ranks whose contributions are included.
//
// One execution suffices for all speeds. A message belongs to a connection, from one thread block to another,
// and is taken in the order in which it was sent. A step begins when its message, a free slot and the step
// that it waits for are there. Only the step itself can remove these conditions, so the order among the steps
// that may begin does not matter.
//
// This is a Kahn network with slots as messages in the opposite direction. It ends the same way at all
// speeds. With more slots it never stops earlier than with fewer.
//
// The only exception would be two thread blocks of one rank that access the same cell in either order. So
// every such pair, unless both only read, must be ordered (step_order.h). Data that is overwritten while it
// is still needed then shows as a wrong value or as unordered accesses.
//
// Further rounds use further pieces of the buffers. They follow each other within each thread block and begin
// with empty connections, so the whole rounds may follow each other.
//
// The proof is exact for any number of ranks: sets are exact (rank_sets.h), and nothing is sampled. To limit
// memory (cells.h), cells are followed for a range of columns at a time where contributions are added. A
// larger plan is executed once for each range.
//
// Each pass follows the pieces of its columns everywhere, and checks all accesses to the cells of its
// columns. No error is missed: a sum of a followed piece and another piece is wrong. That a cell holds
// nothing is found in the pass of its column.
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

// Slots of later passes. The first pass has shown that no thread block waits forever; more slots make the
// others faster.
constexpr std::uint32_t kManySlots = 64;
constexpr std::uint32_t kBytesOfSum = 4;  // bytes of a cell in make_sums()

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
                                       : again.last_write() + ": this is the last write there") +
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
  bool several_blocks_ = false;  // whether some rank has several thread blocks
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
