// las: the flow that has sent least goes first, for sizes that nobody knows. Flows are in levels by what they
// have sent, and those of a level share by max-min what the levels before it leave. Sources: PIAS for single
// flows (Bai et al., NSDI 2015), D-CLAS of Aalo for coflows (Chowdhury and Stoica, SIGCOMM 2015).
//
// It cannot do without `topology`. Without `sizes` it sees the flows of the present and what they have sent,
// so only an age of `sizes` makes a difference.
#include <algorithm>
#include <memory>

#include "sim/core/registry.h"
#include "sim/scheduling/flow/rule_view.h"
#include "sim/scheduling/flow/rules/max_min.h"
#include "sim/scheduling/flow/rules/thresholds.h"

namespace netsim {
namespace {

struct LasParameters : CentralParameters {
  bool coflows = false;
  CoflowKey coflow = CoflowKey::communication;
  std::int64_t levels = kAaloLevels;
  Bytes first = kAaloFirst;
  std::int64_t factor = kAaloFactor;
};

const Parameters<LasParameters>& las_parameters() {
  using P = LasParameters;
  static const auto parameters = add_central(add_coflow(
      Parameters<P>()
          .choice("of", &P::coflows, {{"flow", false}, {"coflow", true}},
                  "whose bytes count: those of each `flow` (PIAS), or of its `coflow` (Aalo)")
          .integer("levels", &P::levels, {1, 256}, "number of levels")
          .bytes("first", &P::first, {1, 1000 * kGigabyte}, "bytes sent with which the first level ends")
          .integer("factor", &P::factor, {2, 1 << 20},
                   "each level ends at so many times the bytes of the one before")));
  return parameters;
}

class Las final : public FlowScheduler {
 public:
  explicit Las(const LasParameters& p)
      : p_(p),
        thresholds_(exponential_thresholds(p.first, static_cast<std::uint32_t>(p.factor),
                                           static_cast<std::uint32_t>(p.levels))) {}
  FlowNeeds needs() const override {
    return {.central = true,
            .sizes = true,
            .views = {ViewField::topology, ViewField::sizes},
            .required = {ViewField::topology}};
  }
  FlowTreatment admit(const FlowView& flow) const override { return admit_centrally(flow, p_.waits); }
  void decide(const FlowsView& view, FlowDecisions& decisions) override {
    RuleView rule(view, p_.use);
    const std::vector<Bytes> sent = count_sent(view, rule);
    std::vector<std::uint32_t> levels;
    for (const RuleFlow& flow : rule.flows()) levels.push_back(level_of_sent(sent[flow.group], thresholds_));
    const std::span<const BitRate> rates = rates_.strict(rule.capacity(), rule.flows(), levels);
    set_rates(view, rates, decisions);
    call_at_ends(view, rule, sent, rates, decisions);
  }

 private:
  // Returns the bytes that each group has sent, and sets the groups of the flows.
  std::vector<Bytes> count_sent(const FlowsView& view, RuleView& rule) const {
    std::uint32_t groups = 0;
    if (p_.coflows) {
      groups = rule.group_by(p_.coflow);
    } else {
      for (RuleFlow& flow : rule.flows()) flow.group = groups++;
    }
    std::vector<Bytes> sent(groups, 0);
    for (std::size_t i = 0; i < view.flows.size(); ++i)
      sent[rule.flows()[i].group] += view.flows[i].attained();
    return sent;
  }

  // Asks for the next decision when the first group has sent what its level holds.
  void call_at_ends(const FlowsView& view, RuleView& rule, const std::vector<Bytes>& sent,
                    std::span<const BitRate> rates, FlowDecisions& decisions) const {
    std::vector<BitRate> together(sent.size(), 0);
    for (std::size_t i = 0; i < rates.size(); ++i) together[rule.flows()[i].group] += rates[i];
    for (std::size_t group = 0; group < sent.size(); ++group) {
      const Bytes left = left_in_level(sent[group], thresholds_);
      if (left == INT64_MAX || together[group] == 0) continue;
      decisions.call_again(view.now + std::max<Time>(1, transmission_time(left, together[group])));
    }
  }

  LasParameters p_;
  std::vector<Bytes> thresholds_;
  MaxMin rates_;
};

const Registration<FlowScheduler> kLas{
    "las",
    "PIAS and Aalo: the flow or coflow that has sent least goes first, in levels. It cannot do without the "
    "view `topology`; `sizes` says when it sees flows",
    las_parameters(), [](const LasParameters& p, const ConfigNode&) { return std::make_unique<Las>(p); }};

}  // namespace
}  // namespace netsim
