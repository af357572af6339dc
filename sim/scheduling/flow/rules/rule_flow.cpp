#include "sim/scheduling/flow/rules/rule_flow.h"

#include <algorithm>

namespace netsim {

BitRate room_of(const RuleFlow& flow, std::span<const BitRate> room) {
  BitRate least = flow.limit;
  for (const std::uint32_t link : flow.links) least = std::min(least, room[link]);
  return least;
}

void take_rate(const RuleFlow& flow, BitRate rate, std::span<BitRate> room, BitRate& to) {
  for (const std::uint32_t link : flow.links) room[link] -= rate;
  to += rate;
}

void fill_in_order(std::span<const RuleFlow> flows, std::span<const std::uint32_t> order,
                   std::span<BitRate> room, std::span<BitRate> rates) {
  for (const std::uint32_t flow : order) {
    const BitRate limit = flows[flow].limit - rates[flow];
    take_rate(flows[flow], std::min(limit, room_of(flows[flow], room)), room, rates[flow]);
  }
}

std::vector<std::vector<std::uint32_t>> flows_of_groups(std::span<const RuleFlow> flows,
                                                        std::uint32_t groups) {
  std::vector<std::vector<std::uint32_t>> result(groups);
  for (std::uint32_t flow = 0; flow < flows.size(); ++flow) result[flows[flow].group].push_back(flow);
  return result;
}

}  // namespace netsim
