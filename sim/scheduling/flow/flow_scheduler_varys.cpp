// varys: the coflow that can end first goes first (SEBF), and its flows get rates with which they end
// together (MADD). What is left of the links is given to flows in that order. Source: Chowdhury, Zhong and
// Stoica, "Efficient coflow scheduling with Varys", SIGCOMM 2014.
// It cannot do without `topology` and `sizes`.
#include <memory>

#include "sim/core/registry.h"
#include "sim/scheduling/flow/rule_view.h"
#include "sim/scheduling/flow/rules/coflow_rates.h"

namespace netsim {
namespace {

struct VarysParameters : CentralParameters {
  CoflowKey coflow = CoflowKey::communication;
  Backfill backfill = Backfill::in_order;
};

const Parameters<VarysParameters>& varys_parameters() {
  using P = VarysParameters;
  static const auto parameters = add_central(add_coflow(Parameters<P>().choice(
      "backfill", &P::backfill, {{"in_order", Backfill::in_order}, {"none", Backfill::none}},
      "whether flows get what the rates of all coflows leave of the links")));
  return parameters;
}

class Varys final : public FlowScheduler {
 public:
  explicit Varys(const VarysParameters& p) : p_(p) {}
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
    const std::vector<std::uint32_t> order = sebf_order(rule.capacity(), rule.flows(), coflows);
    set_rates(view, madd_rates(rule.capacity(), rule.flows(), order, p_.backfill), decisions);
  }

 private:
  VarysParameters p_;
};

const Registration<FlowScheduler> kVarys{
    "varys",
    "Varys: the coflow with the smallest bottleneck goes first, and its flows end together. "
    "It cannot do without the views `topology` and `sizes`",
    varys_parameters(),
    [](const VarysParameters& p, const ConfigNode&) { return std::make_unique<Varys>(p); }};

}  // namespace
}  // namespace netsim
