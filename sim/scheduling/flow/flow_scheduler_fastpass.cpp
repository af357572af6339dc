// fastpass: in each time slot a source sends to one destination, and a destination gets from one source, at
// the rate of their links. All other flows wait, so no queue builds up. Source: Perry et al., "Fastpass: a
// centralized 'zero-queue' datacenter network", SIGCOMM 2014.
//
// A slot here is several packets long, because a decision costs an interval. The flows of a slot get paths
// by load, which in a fat tree with enough uplinks gives each a way of its own.
//
// It cannot do without `topology`. Without `sizes` it counts each flow as one of a single slot.
#include <algorithm>
#include <map>
#include <memory>

#include "sim/core/registry.h"
#include "sim/scheduling/flow/path_placement.h"
#include "sim/scheduling/flow/rule_view.h"
#include "sim/scheduling/flow/rules/fastpass.h"

namespace netsim {
namespace {

struct FastpassParameters {
  Time slot = 10 * kMicrosecond;
  SlotOrder order = SlotOrder::least_recent;
  double use = 0.98;
  std::int64_t most_paths = 64;
};

const Parameters<FastpassParameters>& fastpass_parameters() {
  using P = FastpassParameters;
  static const auto parameters =
      Parameters<P>()
          .time("slot", &P::slot, {kNanosecond, kSecond},
                "length of a slot; slots begin at multiples of scheduling.interval")
          .choice("order", &P::order,
                  {{"least_recent", SlotOrder::least_recent}, {"fewest_left", SlotOrder::fewest_left}},
                  "who is asked first for a slot: who had the last one longest ago, or who needs the fewest")
          .real("use", &P::use, {0.01, 1},
                "share of the links' rate at which flows send; the rest drains the packets that two slots "
                "have in the network together")
          .integer("most_paths", &P::most_paths, {1, 4096},
                   "paths of a flow that are looked at, the first ones");
  return parameters;
}

class Fastpass final : public FlowScheduler {
 public:
  explicit Fastpass(const FastpassParameters& p) : p_(p) {}
  FlowNeeds needs() const override {
    return {.central = true,
            .every = p_.slot,
            .views = {ViewField::topology, ViewField::sizes},
            .required = {ViewField::topology}};
  }
  FlowTreatment admit(const FlowView& flow) const override { return admit_centrally(flow, true); }
  void decide(const FlowsView& view, FlowDecisions& decisions) override {
    ++slot_;
    std::vector<std::size_t> served;
    for (const std::uint32_t flow : match(view)) served.push_back(flow);
    std::sort(served.begin(), served.end());
    std::vector<bool> sends(view.flows.size(), false);
    std::vector<BitRate> demands;
    for (const std::size_t flow : served) {
      sends[flow] = true;
      demands.push_back(rate_of(view, view.flows[flow]));
    }
    for (std::size_t i = 0; i < view.flows.size(); ++i) {
      if (!sends[i]) decisions.hold(view.flows[i].id);
    }
    PathPlacement placement(static_cast<std::uint32_t>(p_.most_paths));
    const std::vector<std::uint32_t> hints = placement.place(view, served, demands);
    for (std::size_t i = 0; i < served.size(); ++i) {
      const FlowView& flow = view.flows[served[i]];
      if (view.facts->path_count(flow) > 1) decisions.path(flow.id, hints[i]);
      decisions.rate(flow.id, demands[i]);
    }
    decisions.call_again(view.now + p_.slot);
  }

 private:
  // Returns the flows of this slot.
  std::vector<std::uint32_t> match(const FlowsView& view) {
    std::map<GpuId, std::uint32_t> ends;
    const auto number = [&](GpuId gpu) {
      return ends.try_emplace(gpu, static_cast<std::uint32_t>(ends.size())).first->second;
    };
    std::map<FlowId, std::uint64_t> last;
    std::vector<SlotDemand> demands;
    for (const FlowView& flow : view.flows) {
      const auto before = last_.find(flow.id);
      const std::uint64_t last_slot = before == last_.end() ? 0 : before->second;
      const std::uint32_t source = number(flow.source);
      demands.push_back({source, number(flow.destination), slots_of(view, flow), last_slot});
      last.emplace(flow.id, last_slot);
    }
    std::vector<std::uint32_t> served =
        maximal_matching(demands, static_cast<std::uint32_t>(ends.size()), p_.order);
    for (const std::uint32_t flow : served) last[view.flows[flow].id] = slot_;
    last_ = std::move(last);
    return served;
  }

  // Returns the rate at which the flow sends, of the slowest link of its path.
  BitRate rate_of(const FlowsView& view, const FlowView& flow) const {
    BitRate rate = INT64_MAX;
    for (const PortId port : flow.ports) rate = std::min(rate, view.port_rates[port]);
    return static_cast<BitRate>(p_.use * static_cast<double>(rate));
  }

  std::uint64_t slots_of(const FlowsView& view, const FlowView& flow) const {
    if (!sees(ViewField::sizes)) return 1;
    const Time whole = transmission_time(flow.left, rate_of(view, flow));
    return static_cast<std::uint64_t>((whole + p_.slot - 1) / p_.slot);
  }

  FastpassParameters p_;
  std::uint64_t slot_ = 0;                // number of the slot
  std::map<FlowId, std::uint64_t> last_;  // slot in which each flow with bytes left was served last
};

const Registration<FlowScheduler> kFastpass{
    "fastpass",
    "Fastpass: in each slot a source sends to one destination, and a destination gets from one source. "
    "It cannot do without the view `topology`; without `sizes` each flow counts as one slot",
    fastpass_parameters(),
    [](const FastpassParameters& p, const ConfigNode&) { return std::make_unique<Fastpass>(p); }};

}  // namespace
}  // namespace netsim
