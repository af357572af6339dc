#include "sim/scheduling/flow/rules/coflow_rates.h"

#include <algorithm>
#include <numeric>

namespace netsim {
namespace {

// BottleneckTime: Gamma as the fraction load / capacity. It is infinite where the capacity is 0.
struct BottleneckTime {
  Bytes load = 0;
  BitRate capacity = 1;

  bool operator<(const BottleneckTime& other) const {
    return static_cast<Int128>(load) * other.capacity < static_cast<Int128>(other.load) * capacity;
  }
};

// Bottlenecks: computes bottleneck times with a buffer for the loads of links.
class Bottlenecks {
 public:
  Bottlenecks(std::span<const RuleFlow> flows, std::size_t links) : flows_(flows), load_(links, 0) {}

  BottleneckTime of(std::span<const std::uint32_t> coflow, std::span<const BitRate> room) {
    for (const std::uint32_t flow : coflow) add(flows_[flow], flows_[flow].left);
    BottleneckTime largest;
    for (const std::uint32_t flow : coflow) {
      for (const std::uint32_t link : flows_[flow].links)
        largest = std::max(largest, BottleneckTime{load_[link], load_[link] == 0 ? 1 : room[link]});
    }
    for (const std::uint32_t flow : coflow) add(flows_[flow], -flows_[flow].left);
    return largest;
  }

 private:
  void add(const RuleFlow& flow, Bytes bytes) {
    for (const std::uint32_t link : flow.links) load_[link] += bytes;
  }

  std::span<const RuleFlow> flows_;
  std::vector<Bytes> load_;
};

}  // namespace

std::vector<std::uint32_t> sebf_order(std::span<const BitRate> capacity, std::span<const RuleFlow> flows,
                                      std::uint32_t coflows) {
  Bottlenecks bottlenecks(flows, capacity.size());
  std::vector<BottleneckTime> time;
  for (const auto& coflow : flows_of_groups(flows, coflows)) time.push_back(bottlenecks.of(coflow, capacity));
  std::vector<std::uint32_t> order(coflows);
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return time[a] < time[b]; });
  return order;
}

std::vector<BitRate> madd_rates(std::span<const BitRate> capacity, std::span<const RuleFlow> flows,
                                std::span<const std::uint32_t> order, Backfill backfill) {
  const auto coflows = flows_of_groups(flows, static_cast<std::uint32_t>(order.size()));
  Bottlenecks bottlenecks(flows, capacity.size());
  std::vector<BitRate> room(capacity.begin(), capacity.end()), rates(flows.size(), 0);
  for (const std::uint32_t coflow : order) {
    const BottleneckTime gamma = bottlenecks.of(coflows[coflow], room);
    if (gamma.load == 0) continue;
    for (const std::uint32_t flow : coflows[coflow]) {
      const Int128 rate = static_cast<Int128>(flows[flow].left) * gamma.capacity / gamma.load;
      take_rate(flows[flow], std::min(static_cast<BitRate>(rate), flows[flow].limit), room, rates[flow]);
    }
  }
  if (backfill == Backfill::none) return rates;
  for (const std::uint32_t coflow : order) fill_in_order(flows, coflows[coflow], room, rates);
  return rates;
}

}  // namespace netsim
