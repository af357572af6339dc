// A flow scheduler that reads the fields of views that no scheduler of netsim reads: rates, circuits, stalls
// and coming communications.
#include <algorithm>
#include <cstddef>
#include <memory>

#include "sim/core/plugin.h"
#include "sim/core/registry.h"
#include "sim/scheduling/flow/flow_scheduler.h"

NETSIM_PLUGIN

namespace netsim {
namespace {

struct GiveWayParameters {
  Time window = 100 * kMicrosecond;
};

// GiveWay: flows send at an eighth of their rate while a rank waits for another one, or while circuits move.
// They do so too while a communication should begin within the window.
class GiveWay final : public FlowScheduler {
 public:
  explicit GiveWay(const GiveWayParameters& p) : window_(p.window) {}
  FlowNeeds needs() const override {
    return {.central = true,
            .sizes = true,
            .views = {ViewField::topology, ViewField::rates, ViewField::circuits, ViewField::stalls,
                      ViewField::coming}};
  }
  void decide(const FlowsView& view, FlowDecisions& decisions) override {
    const auto is_soon = [&](const ComingCommunication& coming) {
      return coming.expected < view.now + window_;
    };
    const bool gives_way = circuits_move(view.network) || !view.network.stalls.empty() ||
                           std::any_of(view.demand.coming.begin(), view.demand.coming.end(), is_soon);
    for (const FlowView& flow : view.flows) {
      if (gives_way) {
        decisions.rate(flow.id, rate_of(flow, view) / 8);
      } else {
        decisions.unlimited(flow.id);
      }
    }
    if (!view.flows.empty()) decisions.call_again(view.now + view.interval);
  }

 private:
  bool circuits_move(const NetworkView& network) {
    const std::ptrdiff_t up = std::count(network.circuits.begin(), network.circuits.end(), CircuitState::up);
    most_up_ = std::max(most_up_, up);
    return up < most_up_;
  }
  // Returns what congestion control allows the flow's queue pairs, or else the rate of its first link.
  static BitRate rate_of(const FlowView& flow, const FlowsView& view) {
    BitRate rate = 0;
    for (const SendRate& pair : view.network.rates) {
      if (pair.job == flow.job && pair.source == flow.source && pair.destination == flow.destination)
        rate += pair.rate;
    }
    if (rate > 0) return rate;
    return flow.ports.empty() ? kGbps : view.port_rates[flow.ports.front()];
  }

  Time window_;
  std::ptrdiff_t most_up_ = 0;  // the most circuits that were up at once
};

const Registration<FlowScheduler> kRegistration{
    "give_way", "flows give way to communications that are late or about to begin",
    Parameters<GiveWayParameters>().time("window", &GiveWayParameters::window, {0, kSecond},
                                         "how soon a communication begins to which flows give way"),
    [](const GiveWayParameters& p, const ConfigNode&) { return std::make_unique<GiveWay>(p); }};

}  // namespace
}  // namespace netsim
