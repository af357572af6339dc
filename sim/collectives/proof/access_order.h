// AccessOrder: whether what the thread blocks of one rank do to the same cell is ordered.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/collectives/plan.h"
#include "sim/collectives/proof/cell_range.h"
#include "sim/collectives/proof/step_order.h"

namespace netsim::proof {

// Who has touched the cells of a range last, 16 bytes a cell. `plan`, `range` and `order` outlive it.
class AccessOrder {
 public:
  AccessOrder(const Plan& plan, const CellRange& range, StepOrder& order)
      : plan_(plan), range_(range), order_(order), accesses_(range.size(), {kNone, kNone}) {}

  // Empty, or the conflict with another thread block's access that is not ordered before this one: step
  // `index` reads or writes what `at`, which is `cell`, holds. Cells that are not in the range are not looked
  // at.
  std::string touched(std::uint32_t rank, std::uint32_t block, std::uint32_t index, ChunkAt at, Cell cell,
                      bool writes);

 private:
  struct Access {
    std::uint32_t block, step;
  };
  struct Last {
    Access write, read;  // the last write, and a read since then
  };
  static constexpr Access kNone{UINT32_MAX, 0};

  std::string conflict(std::uint32_t rank, Access now, ChunkAt at, Access earlier) const;
  bool ordered(std::uint32_t rank, Access now, Access earlier) {
    return earlier.block == kNone.block || earlier.block == now.block ||
           order_.before(rank, earlier.block, earlier.step, now.block, now.step);
  }
  void add_read(std::size_t number, Access now);

  const Plan& plan_;
  const CellRange& range_;
  StepOrder& order_;
  std::vector<Last> accesses_;                                       // by number in range_
  std::unordered_map<std::size_t, std::vector<Access>> more_reads_;  // by other thread blocks; never iterated
};

}  // namespace netsim::proof
