#include "sim/scheduling/flow/rules/echelon.h"

#include <algorithm>
#include <numeric>

namespace netsim {
namespace {

// Returns `time` as a Time: never before INT64_MIN + 1, and kNever if it is that late.
Time clamped(Int128 time) { return static_cast<Time>(std::clamp<Int128>(time, INT64_MIN + 1, kNever)); }

// EchelonPlanner: the least tardiness and the least rates of one echelon after the other.
class EchelonPlanner {
 public:
  EchelonPlanner(std::span<const RuleFlow> flows, std::size_t links, Time now)
      : flows_(flows), now_(now), load_(links, 0) {}

  std::vector<std::uint32_t> by_deadline(std::vector<std::uint32_t> echelon) const {
    std::stable_sort(echelon.begin(), echelon.end(), [&](std::uint32_t a, std::uint32_t b) {
      return flows_[a].deadline < flows_[b].deadline;
    });
    return echelon;
  }

  // `echelon` is ordered by deadline, so the load of a link is what must end until the deadline of the flow.
  Time least_tardiness(std::span<const std::uint32_t> echelon, std::span<const BitRate> room) {
    Time largest = INT64_MIN;
    for (const std::uint32_t flow : echelon) {
      if (flows_[flow].left == 0) continue;
      for (const std::uint32_t link : flows_[flow].links) {
        load_[link] += flows_[flow].left;
        largest = std::max(largest, tardiness(flows_[flow].deadline, load_[link], room[link]));
      }
    }
    for (const std::uint32_t flow : echelon) {
      for (const std::uint32_t link : flows_[flow].links) load_[link] = 0;
    }
    return largest;
  }

  // Returns the rate with which the flow ends `tardiness` after its deadline, or all room if that is less.
  BitRate least_rate(std::uint32_t flow, Time tardiness, std::span<const BitRate> room) const {
    const Int128 most = room_of(flows_[flow], room);
    const Int128 time = static_cast<Int128>(flows_[flow].deadline) + tardiness - now_;
    if (time <= 0) return static_cast<BitRate>(most);
    return static_cast<BitRate>(std::min(most, static_cast<Int128>(flows_[flow].left) * 8 * kSecond / time));
  }

 private:
  Time tardiness(Time deadline, Bytes load, BitRate room) const {
    if (room <= 0) return kNever;
    const Int128 time = (static_cast<Int128>(load) * 8 * kSecond + room - 1) / room;
    return clamped(now_ + time - deadline);
  }

  std::span<const RuleFlow> flows_;
  Time now_;
  std::vector<Bytes> load_;  // by link; zero between calls
};

}  // namespace

std::vector<Time> echelon_deadlines(Time reference, std::span<const Time> spacing) {
  std::vector<Time> deadlines{reference};
  for (const Time next : spacing) deadlines.push_back(deadlines.back() + next);
  return deadlines;
}

std::vector<Time> least_tardiness(std::span<const BitRate> capacity, std::span<const RuleFlow> flows,
                                  std::uint32_t echelons, Time now) {
  EchelonPlanner planner(flows, capacity.size(), now);
  std::vector<Time> result;
  for (auto& echelon : flows_of_groups(flows, echelons))
    result.push_back(planner.least_tardiness(planner.by_deadline(std::move(echelon)), capacity));
  return result;
}

std::vector<std::uint32_t> echelon_order(std::span<const BitRate> capacity, std::span<const RuleFlow> flows,
                                         std::uint32_t echelons, Time now) {
  const std::vector<Time> tardiness = least_tardiness(capacity, flows, echelons, now);
  std::vector<std::uint32_t> order(echelons);
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return tardiness[a] < tardiness[b]; });
  return order;
}

std::vector<BitRate> echelon_rates(std::span<const BitRate> capacity, std::span<const RuleFlow> flows,
                                   std::span<const std::uint32_t> order, Time now, Backfill backfill) {
  EchelonPlanner planner(flows, capacity.size(), now);
  auto echelons = flows_of_groups(flows, static_cast<std::uint32_t>(order.size()));
  std::vector<BitRate> room(capacity.begin(), capacity.end()), rates(flows.size(), 0);
  for (const std::uint32_t echelon : order) {
    echelons[echelon] = planner.by_deadline(std::move(echelons[echelon]));
    const Time tardiness = planner.least_tardiness(echelons[echelon], room);
    if (tardiness == kNever) continue;
    for (const std::uint32_t flow : echelons[echelon]) {
      if (flows[flow].left > 0)
        take_rate(flows[flow], planner.least_rate(flow, tardiness, room), room, rates[flow]);
    }
  }
  if (backfill == Backfill::none) return rates;
  for (const std::uint32_t echelon : order) fill_in_order(flows, echelons[echelon], room, rates);
  return rates;
}

}  // namespace netsim
