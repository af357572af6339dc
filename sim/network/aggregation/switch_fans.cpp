#include "sim/network/aggregation/switch_fans.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace netsim {

std::uint32_t SwitchFans::add(At at) {
  Fan fan;
  fan.packets.assign(at.from.size(), 0);
  if (at.open > 0) fan.arrivals.assign(std::bit_ceil(at.open), 0);
  fan.at = std::move(at);
  fans_.push_back(std::move(fan));
  return static_cast<std::uint32_t>(fans_.size() - 1);
}

bool SwitchFans::completes(std::uint32_t number, PortId from) {
  Fan& fan = fans_[number];
  const std::vector<PortId>& members = fan.at.from;
  const auto member = std::lower_bound(members.begin(), members.end(), from) - members.begin();
  const std::uint32_t sum = fan.packets[static_cast<std::size_t>(member)]++;
  if (sum - fan.first >= fan.arrivals.size()) make_room(fan);
  std::uint32_t& arrivals = fan.arrivals[sum & (fan.arrivals.size() - 1)];
  if (++arrivals < members.size()) return false;
  arrivals = 0;
  ++fan.first;
  return true;
}

// Doubles the capacity for open sums. Members send in order, so sums complete in order.
void SwitchFans::make_room(Fan& fan) {
  std::vector<std::uint32_t> wider(std::max<std::size_t>(4, 2 * fan.arrivals.size()), 0);
  for (std::uint32_t i = 0; i < fan.arrivals.size(); ++i) {
    const std::uint32_t sum = fan.first + i;
    wider[sum & (wider.size() - 1)] = fan.arrivals[sum & (fan.arrivals.size() - 1)];
  }
  fan.arrivals = std::move(wider);
}

}  // namespace netsim
