// AccessOrder: whether what the thread blocks of one rank do to the same cell is ordered.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/collectives/plan.h"
#include "sim/collectives/proof/blocks.h"
#include "sim/collectives/proof/cell_range.h"
#include "sim/collectives/proof/step_order.h"
#include "sim/core/index.h"

namespace netsim::proof {

// A step of a thread block of a known rank that touches a cell.
struct Access {
  std::uint32_t block = kNoIndex;  // kNoIndex: none
  std::uint32_t step = 0;
  bool operator==(const Access&) const = default;
};

// How the accesses of a plan are written down: in 4 bytes if the thread blocks of a rank and the steps of a
// thread block have room there, else in 8.
class AccessNumbers {
 public:
  AccessNumbers(const Plan& plan, const Blocks& blocks);
  bool are_narrow() const { return narrow_; }
  std::uint32_t narrow(Access access) const {
    return access.block == kNoIndex ? kNoIndex : access.block << step_bits_ | access.step;
  }
  Access access(std::uint32_t narrow) const {
    if (narrow == kNoIndex) return {};
    return {narrow >> step_bits_, narrow & ((std::uint32_t{1} << step_bits_) - 1)};
  }

 private:
  std::uint32_t step_bits_ = 0;
  bool narrow_ = false;
};

// Who has touched the cells of a range last, bytes_of_cell() for each. All that it is made of outlives it.
class AccessOrder {
 public:
  AccessOrder(const Plan& plan, const CellRange& range, const AccessNumbers& numbers, StepOrder& order);
  static std::uint32_t bytes_of_cell(const AccessNumbers& numbers) {
    return numbers.are_narrow() ? sizeof(Narrow) : sizeof(Last);
  }

  // Empty, or the conflict with another thread block's access that is not ordered before this one: `step`,
  // which is number `index`, reads or writes what `at`, which is `cell`, holds. Cells that are not in the
  // range are not looked at.
  std::string touched(std::uint32_t rank, std::uint32_t block, std::uint32_t index, const Step& step,
                      ChunkAt at, Cell cell, bool writes);

 private:
  struct Last {
    Access write, read;  // the last write, and a read since then
  };
  using Narrow = std::array<std::uint32_t, 2>;  // the same
  // By several thread blocks. A thread block may be in there more than once; take_last_ones() mends that.
  struct Reads {
    std::vector<Access> all;
    std::size_t next_look = 16;  // when there are so many
  };
  // A step of a rank that touches something.
  struct Now {
    std::uint32_t rank;
    Access access;
    const Step& step;
    ChunkAt at;
  };

  Last last(std::size_t number) const {
    if (wide_.empty()) [[likely]]
      return {numbers_.access(narrow_[number][0]), numbers_.access(narrow_[number][1])};
    return wide_[number];
  }
  void set_last(std::size_t number, const Last& last) {
    if (wide_.empty()) [[likely]] {
      narrow_[number] = {numbers_.narrow(last.write), numbers_.narrow(last.read)};
    } else {
      wide_[number] = last;
    }
  }
  std::string conflict(const Now& now, Access earlier) const;
  bool ordered(const Now& now, Access earlier) {
    if (earlier.block == kNoIndex || earlier.block == now.access.block) return true;
    if (now.step.after_block == earlier.block && now.step.after_step >= earlier.step) return true;
    return order_.before(now.rank, earlier.block, earlier.step, now.access.block, now.access.step);
  }
  void add_read(std::size_t number, Last last, Access now);
  static void take_last_ones(std::vector<Access>& reads);

  const Plan& plan_;
  const CellRange& range_;
  const AccessNumbers& numbers_;
  StepOrder& order_;
  std::vector<Narrow> narrow_;  // by number in range_, or ...
  std::vector<Last> wide_;      // ... here
  std::unordered_map<std::size_t, Reads>
      more_reads_;  // by thread blocks other than Last::read's; never iterated
};

}  // namespace netsim::proof
