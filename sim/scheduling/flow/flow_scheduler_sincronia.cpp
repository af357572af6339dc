// sincronia: coflows have an order, and flows follow it in strict priority. The order is that of BSSI, which
// needs at most 4 times the best sum of completion times. Source: Agarwal et al., "Sincronia: near-optimal
// network design for coflows", SIGCOMM 2018. The order is made anew when a coflow comes, from what all have
// left. It cannot do without `topology` and `sizes`.
#include <algorithm>
#include <map>
#include <memory>

#include "sim/core/registry.h"
#include "sim/scheduling/flow/rule_view.h"
#include "sim/scheduling/flow/rules/max_min.h"
#include "sim/scheduling/flow/rules/sincronia.h"

namespace netsim {
namespace {

struct SincroniaParameters : CentralParameters {
  CoflowKey coflow = CoflowKey::communication;
};

const Parameters<SincroniaParameters>& sincronia_parameters() {
  static const auto parameters = add_central(add_coflow(Parameters<SincroniaParameters>()));
  return parameters;
}

class Sincronia final : public FlowScheduler {
 public:
  explicit Sincronia(const SincroniaParameters& p) : p_(p) {}
  FlowNeeds needs() const override {
    return {.central = true,
            .sizes = true,
            .views = {ViewField::topology, ViewField::sizes},
            .required = {ViewField::topology, ViewField::sizes}};
  }
  FlowTreatment admit(const FlowView& flow) const override { return admit_centrally(flow, p_.waits); }
  void decide(const FlowsView& view, FlowDecisions& decisions) override {
    RuleView rule(view, p_.use);
    const std::uint32_t coflows = rule.group_by(p_.coflow);
    const bool known = std::all_of(rule.coflows().begin(), rule.coflows().end(),
                                   [&](const CoflowName& one) { return place_.contains(one); });
    if (!known) order(rule, coflows);
    std::vector<std::uint32_t> levels;
    for (const RuleFlow& flow : rule.flows()) levels.push_back(place_.at(rule.coflows()[flow.group]));
    set_rates(view, rates_.strict(rule.capacity(), rule.flows(), levels), decisions);
  }

 private:
  void order(RuleView& rule, std::uint32_t coflows) {
    const CoflowOrder bssi = bssi_order(rule.capacity(), rule.flows(), std::vector<double>(coflows, 1));
    place_.clear();
    for (std::uint32_t i = 0; i < bssi.order.size(); ++i) place_[rule.coflows()[bssi.order[i]]] = i;
  }

  SincroniaParameters p_;
  std::map<CoflowName, std::uint32_t> place_;  // place in the order of each coflow that it has
  MaxMin rates_;
};

const Registration<FlowScheduler> kSincronia{
    "sincronia",
    "Sincronia: coflows in the order of BSSI, each in strict priority over those after it. "
    "It cannot do without the views `topology` and `sizes`",
    sincronia_parameters(),
    [](const SincroniaParameters& p, const ConfigNode&) { return std::make_unique<Sincronia>(p); }};

}  // namespace
}  // namespace netsim
