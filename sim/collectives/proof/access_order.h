// AccessOrder: checks that accesses of one rank's thread blocks to the same cell are ordered.
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

// Access: a step of a thread block that reads or writes a cell. The rank follows from the context.
struct Access {
  std::uint32_t block = kNoIndex;  // kNoIndex: no access
  std::uint32_t step = 0;
  bool operator==(const Access&) const = default;
};

// AccessNumbers: the encoding of a plan's accesses. It takes 4 bytes if the thread blocks of a rank and the
// steps of a thread block fit, else 8.
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

// Keeps the last accesses to each cell of a range, in bytes_of_cell() each. The constructor's arguments must
// outlive it.
class AccessOrder {
 public:
  AccessOrder(const Plan& plan, const CellRange& range, const AccessNumbers& numbers, StepOrder& order);
  static std::uint32_t bytes_of_cell(const AccessNumbers& numbers) {
    return numbers.are_narrow() ? sizeof(Narrow) : sizeof(Last);
  }

  // Records an access: step number `index`, `step`, reads or writes chunk `at`, which is `cell`. Returns an
  // empty string, or the conflict with an access of another thread block that is not ordered before this one.
  // Cells outside of the range are ignored.
  std::string touched(std::uint32_t rank, std::uint32_t block, std::uint32_t index, const Step& step,
                      ChunkAt at, Cell cell, bool writes);

 private:
  struct Last {
    Access write, read;  // the last write, and a read since then
  };
  using Narrow = std::array<std::uint32_t, 2>;  // Last with narrow accesses
  // Reads of several thread blocks. A thread block may occur more than once; take_last_ones() removes
  // duplicates.
  struct Reads {
    std::vector<Access> all;
    std::size_t next_look = 16;  // size at which duplicates are removed
  };
  // Now: the access of a rank that is being checked.
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
  std::vector<Narrow> narrow_;  // by number in range_; empty if accesses need 8 bytes
  std::vector<Last> wide_;      // by number in range_; used in that case
  std::unordered_map<std::size_t, Reads>
      more_reads_;  // reads by thread blocks other than Last::read's; never iterated
};

}  // namespace netsim::proof
