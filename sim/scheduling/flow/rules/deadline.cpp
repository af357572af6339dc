#include "sim/scheduling/flow/rules/deadline.h"

#include <algorithm>
#include <numeric>

namespace netsim {
namespace {

// FluidReplay: flows that drain at the rates of edf_rates(), from one end of a flow to the next.
class FluidReplay {
 public:
  FluidReplay(std::span<const BitRate> capacity, std::span<const RuleFlow> flows, Time now)
      : capacity_(capacity),
        flows_(flows),
        now_(now),
        order_(edf_order(flows, {})),
        ends_(flows.size(), kNever) {
    for (const RuleFlow& flow : flows)
      left_.push_back(static_cast<UInt128>(flow.left) * 8 * static_cast<UInt128>(kSecond));
    drop_ended();
  }

  std::vector<Time> run() {
    while (!order_.empty() && advance()) drop_ended();
    return ends_;
  }

 private:
  // Goes on to the next end. Returns false if no flow has a rate.
  bool advance() {
    std::vector<BitRate> room(capacity_.begin(), capacity_.end()), rates(flows_.size(), 0);
    fill_in_order(flows_, order_, room, rates);
    UInt128 step = static_cast<UInt128>(kNever - now_);
    bool any = false;
    for (const std::uint32_t flow : order_) {
      if (rates[flow] == 0) continue;
      const auto rate = static_cast<UInt128>(rates[flow]);
      any = true;
      step = std::min(step, (left_[flow] + rate - 1) / rate);
    }
    now_ += static_cast<Time>(step);
    for (const std::uint32_t flow : order_)
      left_[flow] -= std::min(left_[flow], static_cast<UInt128>(rates[flow]) * step);
    return any && now_ != kNever;
  }

  void drop_ended() {
    std::erase_if(order_, [&](std::uint32_t flow) {
      if (left_[flow] == 0) ends_[flow] = now_;
      return left_[flow] == 0;
    });
  }

  std::span<const BitRate> capacity_;
  std::span<const RuleFlow> flows_;
  Time now_;
  std::vector<std::uint32_t> order_;  // flows under way
  std::vector<UInt128> left_;         // picoseconds times bit/s, so that nothing is rounded
  std::vector<Time> ends_;
};

// AdmittedFlows: the flows admitted so far and when they end.
class AdmittedFlows {
 public:
  AdmittedFlows(std::span<const BitRate> capacity, Time now) : capacity_(capacity), now_(now) {}

  void add(const RuleFlow& flow) {
    flows_.push_back(flow);
    ends_ = edf_ends(capacity_, flows_, now_);
  }

  bool add_if_in_time(const RuleFlow& flow) {
    flows_.push_back(flow);
    std::vector<Time> ends = edf_ends(capacity_, flows_, now_);
    bool fits = ends.back() <= flow.deadline;
    for (std::size_t i = 0; i < ends_.size(); ++i)
      fits = fits && ends[i] <= std::max(flows_[i].deadline, ends_[i]);
    if (fits)
      ends_ = std::move(ends);
    else
      flows_.pop_back();
    return fits;
  }

 private:
  std::span<const BitRate> capacity_;
  Time now_;
  std::vector<RuleFlow> flows_;
  std::vector<Time> ends_;
};

}  // namespace

std::vector<std::uint32_t> edf_order(std::span<const RuleFlow> flows,
                                     std::span<const std::uint8_t> admitted) {
  std::vector<std::uint32_t> order(flows.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (!admitted.empty() && admitted[a] != admitted[b]) return admitted[a] > admitted[b];
    return flows[a].deadline < flows[b].deadline;
  });
  return order;
}

std::vector<BitRate> edf_rates(std::span<const BitRate> capacity, std::span<const RuleFlow> flows,
                               std::span<const std::uint8_t> admitted) {
  std::vector<BitRate> room(capacity.begin(), capacity.end()), rates(flows.size(), 0);
  fill_in_order(flows, edf_order(flows, admitted), room, rates);
  return rates;
}

std::vector<Time> edf_ends(std::span<const BitRate> capacity, std::span<const RuleFlow> flows, Time now) {
  return FluidReplay(capacity, flows, now).run();
}

void admit_by_deadline(std::span<const BitRate> capacity, std::span<const RuleFlow> flows, Time now,
                       std::span<std::uint8_t> admitted) {
  AdmittedFlows kept(capacity, now);
  for (std::size_t flow = 0; flow < flows.size(); ++flow) {
    if (admitted[flow] != 0) kept.add(flows[flow]);
  }
  for (std::size_t flow = 0; flow < flows.size(); ++flow) {
    if (admitted[flow] == 0 && flows[flow].deadline != kNever)
      admitted[flow] = kept.add_if_in_time(flows[flow]) ? 1 : 0;
  }
}

}  // namespace netsim
