#include "sim/network/aggregation/switch_aggregations.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "sim/core/errors.h"

namespace netsim {

std::uint32_t SwitchAggregations::add(At at) {
  const auto number = static_cast<std::uint32_t>(aggregations_.grow(1));
  const std::uint32_t members = std::max(at.members, 1U);
  const auto first = static_cast<std::uint32_t>(entries_.grow(members));
  for (std::uint32_t member = 0; member < members; ++member) entries_[first + member] = {number, member};
  AggregationGroup& aggregation = aggregations_[number];
  if (at.slots > 0) {
    if (at.store != nullptr) {
      aggregation.pool = std::make_unique<KeyTable>(SwitchProtocol::Group{at.slots, at.members, at.keys},
                                                    *at.store, at.store->add_tree(at.job));
    } else if (at.protocol != nullptr) {
      aggregation.pool = at.protocol->sums({at.slots, at.members, at.keys});
    } else {
      aggregation.pool = std::make_unique<SlotPool>(at.slots, at.members);
    }
  } else if (at.open > 0) {
    aggregation.arrivals.assign(std::bit_ceil(at.open), 0);
  }
  aggregation.at = std::move(at);
  return first;
}

SwitchSums::Arrival SwitchAggregations::add_packet(Entry entry, Addend& addend) {
  using Arrival = SwitchSums::Arrival;
  AggregationGroup& aggregation = aggregations_[entry.aggregation];
  const Bytes bytes = addend.bytes;
  const Arrival arrival = aggregation.pool != nullptr          ? aggregation.pool->add(entry.member, addend)
                          : completes(aggregation, addend.psn) ? Arrival::completes
                                                               : Arrival::waits;
  if (aggregation.at.adder == kNoIndex) return arrival;
  AggregationCounters& counters = adders_[aggregation.at.adder].counters;
  counters.repeated += arrival == Arrival::repeats ? 1 : 0;
  counters.discarded += arrival == Arrival::absorbed ? 1 : 0;
  if (arrival == Arrival::repeats || arrival == Arrival::absorbed) return arrival;
  ++counters.packets;
  counters.bytes += bytes;
  counters.sums += arrival == Arrival::completes ? 1 : 0;
  counters.unfinished += arrival == Arrival::unfinished ? 1 : 0;
  return arrival;
}

AggregatorTable::Outcome SwitchAggregations::add_best_effort(const At& at, std::uint32_t psn, Bytes bytes,
                                                             bool again, Contribution& packet) {
  using Outcome = AggregatorTable::Outcome;
  const Outcome outcome =
      tables_[at.table].add(at.indices->of(psn), {at.session, psn}, at.workers, again, packet);
  AggregationCounters& counters = adders_[at.adder].counters;
  const bool is_added = outcome == Outcome::joins || outcome == Outcome::completes;
  counters.packets += is_added ? 1 : 0;
  counters.bytes += is_added ? bytes : 0;
  counters.sums += outcome == Outcome::completes ? 1 : 0;
  counters.collided += outcome == Outcome::collides ? 1 : 0;
  counters.flushed += outcome == Outcome::flushes ? 1 : 0;
  return outcome;
}

KeyStore& SwitchAggregations::key_store_of(NodeId node, std::uint32_t front, std::uint32_t back) {
  return key_stores_.try_emplace(node, front, back).first->second;
}

std::uint32_t SwitchAggregations::table_of(NodeId node, std::uint32_t size) {
  const auto known = std::find(nodes_with_tables_.begin(), nodes_with_tables_.end(), node);
  if (known != nodes_with_tables_.end())
    return static_cast<std::uint32_t>(known - nodes_with_tables_.begin());
  nodes_with_tables_.push_back(node);
  tables_.emplace_back(size);
  return static_cast<std::uint32_t>(tables_.size() - 1);
}

std::uint32_t SwitchAggregations::adder_of(NodeId node) {
  if (adder_of_node_.size() <= node) adder_of_node_.resize(node + 1, kNoIndex);
  std::uint32_t& index = adder_of_node_[node];
  if (index == kNoIndex) {
    index = static_cast<std::uint32_t>(adders_.grow(1));
    adders_[index] = {.node = node, .free_at = 0, .counters = {}};
  }
  return index;
}

Time SwitchAggregations::occupy(const At& at, Bytes bytes, Time now) {
  if (at.rate == 0) return 0;
  Adder& adder = adders_[at.adder];
  adder.free_at = std::max(adder.free_at, now) + transmission_time(bytes, at.rate);
  return adder.free_at - now;
}

// Counts a member's packet. Returns whether it was the last one of its sum.
bool SwitchAggregations::completes(AggregationGroup& aggregation, std::uint32_t psn) {
  NETSIM_CHECK(static_cast<std::int32_t>(psn - aggregation.first) >= 0,
               "a packet of a sum that was complete");
  while (psn - aggregation.first >= aggregation.arrivals.size()) make_room(aggregation);
  std::vector<std::uint32_t>& arrivals = aggregation.arrivals;
  const std::size_t mask = arrivals.size() - 1;
  if (++arrivals[psn & mask] < aggregation.at.members) return false;
  for (; arrivals[aggregation.first & mask] == aggregation.at.members; ++aggregation.first)
    arrivals[aggregation.first & mask] = 0;
  return true;
}

// Doubles the capacity for open sums.
void SwitchAggregations::make_room(AggregationGroup& aggregation) {
  std::vector<std::uint32_t> wider(std::max<std::size_t>(4, 2 * aggregation.arrivals.size()), 0);
  for (std::uint32_t i = 0; i < aggregation.arrivals.size(); ++i) {
    const std::uint32_t sum = aggregation.first + i;
    wider[sum & (wider.size() - 1)] = aggregation.arrivals[sum & (aggregation.arrivals.size() - 1)];
  }
  aggregation.arrivals = std::move(wider);
}

}  // namespace netsim
