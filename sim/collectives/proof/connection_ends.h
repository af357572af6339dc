// ConnectionEnds: the connections that a step sends on or receives from, as pairs of numbers. A thread block
// has its number in Blocks. An AggregationGroup has a number after all thread blocks. Each of its members has
// a connection with it in each direction; the head uses all of them.
#pragma once

#include <cstdint>

#include "sim/collectives/plan.h"
#include "sim/collectives/proof/blocks.h"
#include "sim/core/index.h"

namespace netsim::proof {

class ConnectionEnds {
 public:
  ConnectionEnds(const Plan& plan, const Blocks& blocks) : plan_(plan), blocks_(blocks) {}
  // Returns the number of thread blocks and AggregationGroups.
  std::uint32_t total() const { return blocks_.total() + plan_.aggregations(); }

  bool is_head(BlockAt at, Partner of) const {
    return plan_.aggregation(of.aggregation).is_head(at.rank, at.block);
  }

  // each_sent() and each_received() visit the connections of thread block `id` to or from its partner. They
  // call visit(from, to, other), where `other` is the thread block at the far end, until it returns false.
  template <class Visit>
  void each_sent(std::uint32_t id, BlockAt at, Partner to, Visit visit) const {
    if (to.aggregation == kNoIndex) {
      visit(id, blocks_.id(to), blocks_.id(to));
      return;
    }
    const AggregationGroup aggregation = plan_.aggregation(to.aggregation);
    const std::uint32_t middle = blocks_.total() + to.aggregation;
    if (!aggregation.is_head(at.rank, at.block)) {
      visit(id, middle, blocks_.id(aggregation.head, aggregation.head_block));
      return;
    }
    for (std::uint32_t i = 0; i < aggregation.members; ++i) {
      const std::uint32_t member = blocks_.id(aggregation.member(i), aggregation.block);
      if (!visit(middle, member, member)) return;
    }
  }
  template <class Visit>
  void each_received(std::uint32_t id, BlockAt at, Partner from, Visit visit) const {
    if (from.aggregation == kNoIndex) {
      visit(blocks_.id(from), id, blocks_.id(from));
      return;
    }
    const AggregationGroup aggregation = plan_.aggregation(from.aggregation);
    const std::uint32_t middle = blocks_.total() + from.aggregation;
    if (!aggregation.is_head(at.rank, at.block)) {
      visit(middle, id, blocks_.id(aggregation.head, aggregation.head_block));
      return;
    }
    for (std::uint32_t i = 0; i < aggregation.members; ++i) {
      const std::uint32_t member = blocks_.id(aggregation.member(i), aggregation.block);
      if (!visit(member, middle, member)) return;
    }
  }
  // Returns the slots of a connection to `to`, where other connections have `slots`.
  std::uint32_t slots(std::uint32_t to, std::uint32_t slots) const {
    return to < blocks_.total() || slots < kReductionSlots ? slots : kReductionSlots;
  }
  // Returns the thread block that sends on a connection from this number, or receives on one to it.
  BlockAt end(std::uint32_t from_or_to) const {
    if (from_or_to < blocks_.total()) return blocks_.at(from_or_to);
    const AggregationGroup aggregation = plan_.aggregation(from_or_to - blocks_.total());
    return {aggregation.head, aggregation.head_block};
  }

 private:
  const Plan& plan_;
  const Blocks& blocks_;
};

}  // namespace netsim::proof
