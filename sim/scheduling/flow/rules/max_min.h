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
  // Share: a rate for each unit of weight, as the fraction room / weight.
  struct Share {
    BitRate room;
    std::int64_t weight;
    bool operator==(const Share&) const = default;
  };
  // SharedLink: a link with what each unit of weight could get of it when this was written.
  struct SharedLink {
    Share share;
    std::uint32_t link;
  };
  // LinkState: a link with its flows of the present level.
  struct LinkState {
    Share free;                         // rate that no flow has yet, for the weights of flows without a rate
    std::uint32_t first = 0, last = 0;  // its flows in crossings_, first to last - 1
  };

  static bool less(const Share& a, const Share& b);
  static bool later(const SharedLink& a, const SharedLink& b);
  void reset(std::span<const BitRate> capacity, std::size_t flows);
  void fill(std::span<const RuleFlow> flows, std::span<const std::uint32_t> members);
  void index_members(std::span<const RuleFlow> flows, std::span<const std::uint32_t> members);
  void collect_limited(std::span<const RuleFlow> flows, std::span<const std::uint32_t> members);
  // Returns whether several flows of the present level cross the link.
  bool is_shared(std::uint32_t link) const { return links_[link].last - links_[link].first > 1; }
  bool limit_comes_first(const RuleFlow& flow, BitRate limit) const;
  void freeze(const RuleFlow& flow, std::uint32_t index, BitRate rate);
  void freeze_fullest_link(std::span<const RuleFlow> flows);
  void push(std::uint32_t link);
  void drop_old_tops();

  std::vector<LinkState> links_;
  std::vector<std::uint32_t> crossings_;  // flows of each link in use
  std::vector<std::uint32_t> used_;       // links that flows of the present level cross
  std::vector<std::uint32_t> limited_;    // flows with a limit, that with the smallest share first
  std::vector<BitRate> limits_;           // by flow: its own limit and that of links which it has alone
  std::vector<SharedLink> heap_;          // the smallest share on top; shares of links only rise
  std::vector<std::uint8_t> frozen_;      // by flow: whether it has its rate
  std::vector<std::uint32_t> order_;      // flows by level
  std::vector<BitRate> rates_;
};

}  // namespace netsim
