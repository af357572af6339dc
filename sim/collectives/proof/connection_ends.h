// ConnectionEnds: which connections a step sends on or receives from, as pairs of numbers. A thread block has
// its number in Blocks; a fan has one behind those of all thread blocks, so that each of its members has a
// connection with it in each direction and the head has all of them.
#pragma once

#include <cstdint>

#include "sim/collectives/plan.h"
#include "sim/collectives/proof/blocks.h"
#include "sim/core/index.h"

namespace netsim::proof {

class ConnectionEnds {
 public:
  ConnectionEnds(const Plan& plan, const Blocks& blocks) : plan_(plan), blocks_(blocks) {}
  // Of thread blocks and fans.
  std::uint32_t total() const { return blocks_.total() + plan_.fans(); }

  bool is_head(BlockAt at, Partner of) const { return plan_.fan(of.fan).is_head(at.rank, at.block); }

  // The connections to or from `partner` of thread block `id`; visit(from, to, other): `other` is the thread
  // block at the far end. Ends when visit returns false.
  template <class Visit>
  void each_sent(std::uint32_t id, BlockAt at, Partner to, Visit visit) const {
    if (to.fan == kNoIndex) {
      visit(id, blocks_.id(to), blocks_.id(to));
      return;
    }
    const Fan fan = plan_.fan(to.fan);
    const std::uint32_t middle = blocks_.total() + to.fan;
    if (!fan.is_head(at.rank, at.block)) {
      visit(id, middle, blocks_.id(fan.head, fan.head_block));
      return;
    }
    for (std::uint32_t i = 0; i < fan.members; ++i) {
      const std::uint32_t member = blocks_.id(fan.member(i), fan.block);
      if (!visit(middle, member, member)) return;
    }
  }
  template <class Visit>
  void each_received(std::uint32_t id, BlockAt at, Partner from, Visit visit) const {
    if (from.fan == kNoIndex) {
      visit(blocks_.id(from), id, blocks_.id(from));
      return;
    }
    const Fan fan = plan_.fan(from.fan);
    const std::uint32_t middle = blocks_.total() + from.fan;
    if (!fan.is_head(at.rank, at.block)) {
      visit(middle, id, blocks_.id(fan.head, fan.head_block));
      return;
    }
    for (std::uint32_t i = 0; i < fan.members; ++i) {
      const std::uint32_t member = blocks_.id(fan.member(i), fan.block);
      if (!visit(member, middle, member)) return;
    }
  }
  // Messages that the connection has room for where others have room for `slots`.
  std::uint32_t slots(std::uint32_t to, std::uint32_t slots) const {
    return to < blocks_.total() || slots < kReductionSlots ? slots : kReductionSlots;
  }
  // The thread block that sends on a connection from `from`, or receives from one to `to`.
  BlockAt end(std::uint32_t from_or_to) const {
    if (from_or_to < blocks_.total()) return blocks_.at(from_or_to);
    const Fan fan = plan_.fan(from_or_to - blocks_.total());
    return {fan.head, fan.head_block};
  }

 private:
  const Plan& plan_;
  const Blocks& blocks_;
};

}  // namespace netsim::proof
