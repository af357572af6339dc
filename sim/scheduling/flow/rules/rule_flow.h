// RuleFlow: a flow as the rules of flow schedulers see it, as plain data. The rules know links by number,
// rates in bit/s and bytes. They know nothing of packets, so a caller replans when flows begin or end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/units.h"

namespace netsim {

// RuleFlow: one flow. Each rule says which of these fields it reads.
struct RuleFlow {
  static constexpr BitRate kNoLimit = INT64_MAX;

  std::span<const std::uint32_t>
      links;                 // links that the flow crosses, each once; the caller keeps the numbers
  Bytes left = 0;            // bytes not yet delivered, at least 0
  BitRate limit = kNoLimit;  // most that the flow may have, at least 0
  std::uint32_t weight = 1;  // share of the flow among flows of its level, at least 1
  std::uint32_t group = 0;   // coflow or echelon of the flow, from 0
  Time deadline = kNever;    // when the flow should have ended
};

// Returns the smallest of `room` over the links of the flow, and at most its limit.
BitRate room_of(const RuleFlow& flow, std::span<const BitRate> room);

// Gives the flow `rate` more, and takes that from the room of its links.
void take_rate(const RuleFlow& flow, BitRate rate, std::span<BitRate> room, BitRate& to);

// Gives each flow of `order`, one after the other, all that its links have left, up to its limit.
void fill_in_order(std::span<const RuleFlow> flows, std::span<const std::uint32_t> order,
                   std::span<BitRate> room, std::span<BitRate> rates);

// Returns the numbers of the flows of each group below `groups`, ascending.
std::vector<std::vector<std::uint32_t>> flows_of_groups(std::span<const RuleFlow> flows,
                                                        std::uint32_t groups);

}  // namespace netsim
