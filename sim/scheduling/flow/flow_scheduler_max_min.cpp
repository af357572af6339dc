// max_min: gives all flows their max-min fair rates by progressive filling over the links of their paths
// (Bertsekas and Gallager, "Data Networks", 6.5.2). Congestion control should be `none`, because it can only
// lower these rates.
//
// It cannot do without `topology`. `sizes` says when it sees flows; without, it sees those of the present.
#include <memory>

#include "sim/core/registry.h"
#include "sim/scheduling/flow/rule_view.h"
#include "sim/scheduling/flow/rules/max_min.h"

namespace netsim {
namespace {

class MaxMinScheduler final : public FlowScheduler {
 public:
  explicit MaxMinScheduler(const CentralParameters& p) : p_(p) {}
  FlowNeeds needs() const override {
    return {
        .central = true, .views = {ViewField::topology, ViewField::sizes}, .required = {ViewField::topology}};
  }
  FlowTreatment admit(const FlowView& flow) const override { return admit_centrally(flow, p_.waits); }
  void decide(const FlowsView& view, FlowDecisions& decisions) override {
    RuleView rule(view, p_.use);
    set_rates(view, rates_.fair(rule.capacity(), rule.flows()), decisions);
  }

 private:
  CentralParameters p_;
  MaxMin rates_;
};

const Registration<FlowScheduler> kMaxMin{
    "max_min",
    "gives all flows their max-min fair rates, by progressive filling over the links of their paths. "
    "It cannot do without the view `topology`; `sizes` says when it sees flows",
    add_central(Parameters<CentralParameters>()),
    [](const CentralParameters& p, const ConfigNode&) { return std::make_unique<MaxMinScheduler>(p); }};

}  // namespace
}  // namespace netsim
