// Weighted max-min fairness by progressive filling (Bertsekas and Gallager, "Data Networks", 6.5.2). All
// rates rise in proportion to the weights of the flows, until a link is full or a flow has its limit.
//
// Strict levels use the same filling: the flows of a level share what all levels before them leave.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/units.h"
#include "sim/scheduling/flow/rules/rule_flow.h"

namespace netsim {

// MaxMin: rates of flows. It keeps its buffers from one call to the next, so calls of equal sizes allocate
// nothing. One object serves one thread.
class MaxMin {
 public:
  // Returns the rate of each flow in bit/s, valid until the next call. It reads links, limit and weight.
  // `capacity` has the rate of each link. A share that is no integer is rounded down, so no link has too
  // much. A flow without links has its limit. The time is O((links + crossings) log links), where a crossing
  // is a link of a flow.
  std::span<const BitRate> fair(std::span<const BitRate> capacity, std::span<const RuleFlow> flows);

  // Returns the rates where flows of a smaller `level` come first. `level` has a number for each flow; flows
  // of one level share by max-min what the smaller levels leave.
  std::span<const BitRate> strict(std::span<const BitRate> capacity, std::span<const RuleFlow> flows,
                                  std::span<const std::uint32_t> level);

 private:
  // Bottleneck: a link with the rate that it has for flows without a rate, and the sum of their weights.
  struct Bottleneck {
    BitRate room;
    std::int64_t weight;
    std::uint32_t link;
  };

  void fill(std::span<const RuleFlow> flows, std::span<const std::uint32_t> members);
  void index_members(std::span<const RuleFlow> flows, std::span<const std::uint32_t> members);
  void freeze(std::span<const RuleFlow> flows, std::uint32_t flow, BitRate rate);
  void freeze_link(std::span<const RuleFlow> flows, const Bottleneck& bottleneck);
  void push(std::uint32_t link);
  bool pop_current(Bottleneck& top);
  void reset(std::span<const BitRate> capacity, std::size_t flows);

  std::vector<BitRate> room_;             // by link: rate that no flow has yet
  std::vector<std::int64_t> weight_;      // by link: weights of its flows without a rate
  std::vector<std::uint32_t> first_;      // by link: its first entry of crossings_
  std::vector<std::uint32_t> crossings_;  // flows of each link
  std::vector<std::uint32_t> used_;       // links that members cross
  std::vector<std::uint32_t> limited_;    // members with a limit, the smallest level first
  std::vector<Bottleneck> heap_;
  std::vector<std::uint8_t> frozen_;  // by flow: whether it has its rate
  std::vector<std::uint32_t> order_;  // flows by level
  std::vector<BitRate> rates_;
};

}  // namespace netsim
