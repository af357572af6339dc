// fastpass: in each time slot a source sends to one destination, and a destination gets from one source. All
// other flows wait, and the flows of a slot take paths of their own, so no queue builds up. Source: Perry et
// al., "Fastpass: a centralized 'zero-queue' datacenter network", SIGCOMM 2014.
//
// A slot of the paper is one packet. A flow is released at the begin of its slot and held before its second
// packet could leave, so packets leave exactly then. Longer slots cost fewer decisions; then a queue may hold
// two packets of the same flow.
//
// It cannot do without `topology`. Without `sizes` it counts each flow as one of a single slot.
#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "sim/core/registry.h"
#include "sim/scheduling/flow/rule_view.h"
#include "sim/scheduling/flow/slot_paths.h"

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
                "length of a slot, rounded up to a multiple of scheduling.interval. As in the paper, a slot "
                "is one packet where it is as long as transport.mtu with headers takes, divided by `use`; "
                "scheduling.interval should then be at most a hundredth of that")
          .choice("order", &P::order,
                  {{"least_recent", SlotOrder::least_recent}, {"fewest_left", SlotOrder::fewest_left}},
                  "who is asked first for a slot: who had the last one longest ago, or who needs the fewest")
          .real("use", &P::use, {0.01, 1},
                "share of a slot in which a flow sends; the rest leaves room for acknowledgements")
          .integer("most_paths", &P::most_paths, {1, 4096},
                   "paths of a flow that are looked at, the first ones");
  return parameters;
}

class Fastpass final : public FlowScheduler {
 public:
  explicit Fastpass(const FastpassParameters& p) : p_(p) {}
  FlowNeeds needs() const override {
    return {.central = true,
            .empty = true,
            .every = p_.slot,
            .views = {ViewField::topology, ViewField::sizes},
            .required = {ViewField::topology}};
  }
  FlowTreatment admit(const FlowView& flow) const override { return admit_centrally(flow, true); }
  void decide(const FlowsView& view, FlowDecisions& decisions) override {
    if (view.now >= next_ && !view.flows.empty()) begin_slot(view, decisions);
    if (view.now >= end_) end_sending(decisions);
    if (!sending_.empty())
      decisions.call_again(end_);
    else if (!view.flows.empty())
      decisions.call_again(next_);
  }

 private:
  static constexpr std::uint64_t kRemembered = 1024;

  // Known: what is kept of a flow from one slot to the next.
  struct Known {
    FlowPaths full, last;  // paths for full packets, and for a last packet of `last_bytes`
    Bytes last_bytes = 0;
    SlotTurn turn;
    std::uint64_t served = 0, seen = 0;  // the last slots in which it was served, and had bytes left
  };

  void begin_slot(const FlowsView& view, FlowDecisions& decisions) {
    ++number_;
    learn(view);
    next_ = view.now + slot_.length;
    end_ = view.now + slot_.sends;
    const std::vector<FlowId> before = std::exchange(sending_, {});
    const std::vector<SlotGrant> grants = serve(view);
    for (const SlotGrant& grant : grants) sending_.push_back(view.flows[grant.flow].id);
    for (const FlowId flow : before) {
      if (std::find(sending_.begin(), sending_.end(), flow) == sending_.end()) decisions.hold(flow);
    }
    for (const SlotGrant& grant : grants) send(view.flows[grant.flow], grant.path, decisions);
    if (number_ % kRemembered == 0) forget();
  }

  // Holds the flows of the slot before they send more than a slot's packets.
  void end_sending(FlowDecisions& decisions) {
    for (const FlowId flow : sending_) decisions.hold(flow);
    sending_.clear();
    end_ = next_;
  }

  void send(const FlowView& flow, std::uint32_t path, FlowDecisions& decisions) {
    const Known& known = known_.at(flow.id);
    const FlowPaths& paths = paths_of(known, flow);
    if (paths.paths.size() > 1) decisions.path(flow.id, path);
    if (paths.rate != 0 && slot_.sends > paths.wire)
      decisions.rate(flow.id, paths.rate);
    else
      decisions.release(flow.id);
  }

  // Finds the paths of new flows, and those of last packets.
  void learn(const FlowsView& view) {
    bool shorter = false;
    for (const FlowView& flow : view.flows) {
      Known& known = known_[flow.id];
      if (known.seen == 0) shorter |= add(view, flow, known);
    }
    if (shorter) {
      for (auto& [id, known] : known_) known.seen = 0;
    }
    for (const FlowView& flow : view.flows) {
      Known& known = known_.at(flow.id);
      if (shorter) known.full = find(view, flow, INT64_MAX);
      known.seen = number_;
      if (known.last_bytes == flow.left && !shorter) continue;
      const bool is_last = sees(ViewField::sizes) && !known.full.paths.front().steps.empty() &&
                           time_of(view, flow) < known.full.wire;
      known.last_bytes = is_last ? flow.left : 0;
      if (is_last) known.last = find(view, flow, flow.left);
    }
  }

  // Returns whether the flow's first port is faster than all before. That changes how long flows may send.
  bool add(const FlowsView& view, const FlowView& flow, Known& known) {
    known.served = number_ - 1;
    if (slot_.length == 0) {
      slot_.length = (p_.slot + view.interval - 1) / view.interval * view.interval;
      slot_.use = p_.use;
      slot_.sends = sending_time(view.interval);
    }
    known.full = find(view, flow, INT64_MAX);
    if (known.full.wire == 0 || (packet_ != 0 && packet_ <= known.full.wire)) return false;
    packet_ = known.full.wire;
    least_packet_ = known.full.least_wire;
    slot_.sends = sending_time(view.interval);
    return true;
  }

  // Returns for how long a flow may begin packets, a multiple of the interval. As many packets leave as fit
  // into the share `use` of the slot.
  Time sending_time(Time interval) const {
    Time sends = static_cast<Time>(p_.use * static_cast<double>(slot_.length));
    if (packet_ != 0) sends = sends / packet_ * least_packet_;
    return std::max(interval, sends / interval * interval);
  }

  // Returns the flow's paths for full packets, or for one last packet with this payload.
  FlowPaths find(const FlowsView& view, const FlowView& flow, Bytes payload) {
    SlotLength slot = slot_;
    if (payload < INT64_MAX) slot.sends = 1;
    return paths_.find(view, flow, slot, static_cast<std::uint32_t>(p_.most_paths), payload);
  }

  // Returns how long the flow's bytes take at its first port, without headers; 0 where that is not known.
  static Time time_of(const FlowsView& view, const FlowView& flow) {
    return flow.ports.empty() ? 0 : transmission_time(flow.left, view.port_rates[flow.ports.front()]);
  }

  static const FlowPaths& paths_of(const Known& known, const FlowView& flow) {
    return known.last_bytes != 0 && known.last_bytes == flow.left ? known.last : known.full;
  }

  std::vector<SlotGrant> serve(const FlowsView& view) {
    std::map<GpuId, std::uint32_t> numbers;
    std::uint32_t ends = 0;
    // A flow into an all-reduce tree shares its destination with no other.
    const auto number = [&](GpuId gpu) {
      if (gpu.is_none()) return ends++;
      const auto [entry, added] = numbers.try_emplace(gpu, ends);
      if (added) ++ends;
      return entry->second;
    };
    std::vector<SlotFlow> flows(view.flows.size());
    for (std::size_t i = 0; i < flows.size(); ++i) {
      const FlowView& flow = view.flows[i];
      Known& known = known_.at(flow.id);
      const FlowPaths& paths = paths_of(known, flow);
      const std::uint32_t source = number(flow.source);
      static_cast<SlotDemand&>(flows[i]) = {source, number(flow.destination), slots_of(view, flow),
                                            known.served};
      flows[i].paths = paths.paths;
      flows[i].from_rack = paths.from_rack;
      flows[i].to_rack = paths.to_rack;
      flows[i].turn = &known.turn;
    }
    auto grants = arbiter_.serve(view.now, slot_.length, flows, ends, paths_.pods(), p_.order);
    for (const SlotGrant& grant : grants) known_.at(view.flows[grant.flow].id).served = number_;
    return grants;
  }

  std::uint64_t slots_of(const FlowsView& view, const FlowView& flow) const {
    if (!sees(ViewField::sizes)) return 1;
    return static_cast<std::uint64_t>(time_of(view, flow) / slot_.sends) + 1;
  }

  // Forgets flows that had nothing to send for long.
  void forget() {
    std::erase_if(known_, [&](const auto& one) { return one.second.seen + kRemembered <= number_; });
  }

  FastpassParameters p_;
  SlotLength slot_;
  Time packet_ = 0, least_packet_ = 0;  // FlowPaths::wire and least_wire of the fastest port; 0: not known
  std::uint64_t number_ = 0;            // of the slot
  Time next_ = 0, end_ = 0;             // the next slot begins; flows of this one are held
  std::vector<FlowId> sending_;         // flows of this slot that are not held yet
  std::map<FlowId, Known> known_;       // flows with bytes left, and others for a time
  SlotPaths paths_;
  SlotArbiter arbiter_;
};

const Registration<FlowScheduler> kFastpass{
    "fastpass",
    "Fastpass: in each slot a source sends to one destination, and a destination gets from one source. "
    "It cannot do without the view `topology`; without `sizes` each flow counts as one slot",
    fastpass_parameters(),
    [](const FastpassParameters& p, const ConfigNode&) { return std::make_unique<Fastpass>(p); }};

}  // namespace
}  // namespace netsim
