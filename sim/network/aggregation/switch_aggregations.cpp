#include "sim/network/aggregation/switch_aggregations.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace netsim {

std::uint32_t SwitchAggregations::add(At at) {
  AggregationGroup aggregation;
  aggregation.packets.assign(at.from.size(), 0);
  if (at.open > 0) aggregation.arrivals.assign(std::bit_ceil(at.open), 0);
  aggregation.at = std::move(at);
  aggregations_.push_back(std::move(aggregation));
  return static_cast<std::uint32_t>(aggregations_.size() - 1);
}

bool SwitchAggregations::completes(std::uint32_t number, PortId from) {
  AggregationGroup& aggregation = aggregations_[number];
  const std::vector<PortId>& members = aggregation.at.from;
  const auto member = std::lower_bound(members.begin(), members.end(), from) - members.begin();
  const std::uint32_t sum = aggregation.packets[static_cast<std::size_t>(member)]++;
  if (sum - aggregation.first >= aggregation.arrivals.size()) make_room(aggregation);
  std::uint32_t& arrivals = aggregation.arrivals[sum & (aggregation.arrivals.size() - 1)];
  if (++arrivals < members.size()) return false;
  arrivals = 0;
  ++aggregation.first;
  return true;
}

// Doubles the capacity for open sums. Members send in order, so sums complete in order.
void SwitchAggregations::make_room(AggregationGroup& aggregation) {
  std::vector<std::uint32_t> wider(std::max<std::size_t>(4, 2 * aggregation.arrivals.size()), 0);
  for (std::uint32_t i = 0; i < aggregation.arrivals.size(); ++i) {
    const std::uint32_t sum = aggregation.first + i;
    wider[sum & (wider.size() - 1)] = aggregation.arrivals[sum & (aggregation.arrivals.size() - 1)];
  }
  aggregation.arrivals = std::move(wider);
}

}  // namespace netsim
