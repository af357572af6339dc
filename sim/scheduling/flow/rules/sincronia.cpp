#include "sim/scheduling/flow/rules/sincronia.h"

#include <algorithm>

namespace netsim {
namespace {

// CoflowBytes: what one coflow has for one link.
struct CoflowBytes {
  std::uint32_t coflow;
  Bytes bytes;
};

// LinkDemand: a link with the bytes of coflows that have no place in the order yet.
struct LinkDemand {
  BitRate capacity = 0;
  Bytes load = 0;
  std::vector<CoflowBytes> coflows;  // ascending, of all coflows
};

// BssiOrder: the state of bottleneck-select-scale-iterate. Loads are exact; weights and the bound are not.
class BssiOrder {
 public:
  BssiOrder(std::span<const BitRate> capacity, std::span<const RuleFlow> flows,
            std::span<const double> weights)
      : weight_(weights.begin(), weights.end()), placed_(weights.size(), false), links_(capacity.size()) {
    for (std::size_t link = 0; link < capacity.size(); ++link) links_[link].capacity = capacity[link];
    const auto coflows = flows_of_groups(flows, static_cast<std::uint32_t>(weights.size()));
    for (std::uint32_t coflow = 0; coflow < coflows.size(); ++coflow) {
      for (const std::uint32_t flow : coflows[coflow]) add(flows[flow], coflow);
    }
  }

  CoflowOrder run() {
    CoflowOrder result;
    for (const LinkDemand* link = bottleneck(); link != nullptr; link = bottleneck()) {
      const CoflowBytes last = select_last(*link);
      result.bound += scale(*link, last);
      place(last.coflow);
      result.order.push_back(last.coflow);
    }
    for (std::uint32_t coflow = static_cast<std::uint32_t>(weight_.size()); coflow-- > 0;) {
      if (!placed_[coflow]) result.order.push_back(coflow);
    }
    std::reverse(result.order.begin(), result.order.end());
    return result;
  }

 private:
  void add(const RuleFlow& flow, std::uint32_t coflow) {
    if (flow.left == 0) return;
    for (const std::uint32_t link : flow.links) {
      auto& coflows = links_[link].coflows;
      if (coflows.empty() || coflows.back().coflow != coflow) coflows.push_back({coflow, 0});
      coflows.back().bytes += flow.left;
      links_[link].load += flow.left;
    }
  }

  // Returns the link that takes longest for the coflows without a place; null if they have no bytes.
  const LinkDemand* bottleneck() const {
    const LinkDemand* longest = nullptr;
    for (const LinkDemand& link : links_) {
      if (link.load > 0 && (longest == nullptr || static_cast<Int128>(link.load) * longest->capacity >
                                                      static_cast<Int128>(longest->load) * link.capacity))
        longest = &link;
    }
    return longest;
  }

  CoflowBytes select_last(const LinkDemand& link) const {
    CoflowBytes last{0, 0};
    for (const CoflowBytes& next : link.coflows) {
      if (!placed_[next.coflow] && (last.bytes == 0 || ratio(next) <= ratio(last))) last = next;
    }
    return last;
  }

  double ratio(const CoflowBytes& coflow) const {
    return weight_[coflow.coflow] / static_cast<double>(coflow.bytes);
  }

  // Lowers the weights by the dual variable of the link, and returns what that adds to the dual's value.
  double scale(const LinkDemand& link, const CoflowBytes& last) {
    const double dual = ratio(last);  // weight for a byte
    double squares = 0;
    for (const CoflowBytes& next : link.coflows) {
      if (placed_[next.coflow]) continue;
      const auto bytes = static_cast<double>(next.bytes);
      weight_[next.coflow] = std::max(0.0, weight_[next.coflow] - dual * bytes);
      squares += bytes * bytes;
    }
    const auto load = static_cast<double>(link.load);
    return dual * (load * load + squares) * 4 / static_cast<double>(link.capacity);  // 8 bits, halved
  }

  void place(std::uint32_t coflow) {
    placed_[coflow] = true;
    for (LinkDemand& link : links_) {
      const auto found =
          std::lower_bound(link.coflows.begin(), link.coflows.end(), coflow,
                           [](const CoflowBytes& a, std::uint32_t number) { return a.coflow < number; });
      if (found != link.coflows.end() && found->coflow == coflow) link.load -= found->bytes;
    }
  }

  std::vector<double> weight_;
  std::vector<bool> placed_;
  std::vector<LinkDemand> links_;
};

}  // namespace

CoflowOrder bssi_order(std::span<const BitRate> capacity, std::span<const RuleFlow> flows,
                       std::span<const double> weights) {
  return BssiOrder(capacity, flows, weights).run();
}

}  // namespace netsim
