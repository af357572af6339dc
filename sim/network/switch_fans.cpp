#include "sim/network/switch_fans.h"

#include <algorithm>

namespace netsim {

bool SwitchFans::completes(std::uint32_t number, PortId from) {
  Fan& fan = fans_[number];
  const auto member = std::lower_bound(fan.from.begin(), fan.from.end(), from) - fan.from.begin();
  const std::uint32_t sum = fan.packets[static_cast<std::size_t>(member)]++;
  if (sum - fan.first >= fan.arrivals.size()) make_room(fan);
  std::uint32_t& arrivals = fan.arrivals[sum & (fan.arrivals.size() - 1)];
  if (++arrivals < fan.from.size()) return false;
  arrivals = 0;
  ++fan.first;
  return true;
}

// Members are in order, so sums are complete in order.
void SwitchFans::make_room(Fan& fan) {
  std::vector<std::uint32_t> wider(std::max<std::size_t>(4, 2 * fan.arrivals.size()), 0);
  for (std::uint32_t i = 0; i < fan.arrivals.size(); ++i) {
    const std::uint32_t sum = fan.first + i;
    wider[sum & (wider.size() - 1)] = fan.arrivals[sum & (fan.arrivals.size() - 1)];
  }
  fan.arrivals = std::move(wider);
}

}  // namespace netsim
