// echelon: flows of a group have deadlines in a row, as the computations that need them follow one another.
// The group with the least tardiness goes first. Source: Pan et al., "Efficient flow scheduling
// in distributed deep learning training with echelon formation", HotNets 2022.
//
// The first flow of a group has its release as its deadline, and each later one `spacing` after the one
// before it. A group ends when none of its flows has bytes left; its next flow begins a new group.
// It cannot do without `topology` and `sizes`.
#include <map>
#include <memory>
#include <utility>

#include "sim/core/registry.h"
#include "sim/scheduling/flow/rule_view.h"
#include "sim/scheduling/flow/rules/echelon.h"

namespace netsim {
namespace {

struct EchelonParameters : CentralParameters {
  CoflowKey coflow = CoflowKey::job;
  Time spacing = kMillisecond;
  Backfill backfill = Backfill::in_order;
};

const Parameters<EchelonParameters>& echelon_parameters() {
  using P = EchelonParameters;
  static const auto parameters = add_central(add_coflow(
      Parameters<P>()
          .time(
              "spacing", &P::spacing, {0, kSecond},
              "time from the deadline of a flow to that of the next one of its group: in a pipeline the time "
              "of a microbatch on a stage")
          .choice("backfill", &P::backfill, {{"in_order", Backfill::in_order}, {"none", Backfill::none}},
                  "whether flows get what the rates of all groups leave of the links")));
  return parameters;
}

class Echelon final : public FlowScheduler {
 public:
  explicit Echelon(const EchelonParameters& p) : p_(p) {}
  FlowNeeds needs() const override {
    return {.central = true,
            .sizes = true,
            .views = {ViewField::topology, ViewField::sizes},
            .required = {ViewField::topology, ViewField::sizes}};
  }
  FlowTreatment admit(const FlowView& flow) const override { return admit_centrally(flow, p_.waits); }
  void decide(const FlowsView& view, FlowDecisions& decisions) override {
    RuleView rule(view, p_.use);
    const std::uint32_t groups = rule.group_by(p_.coflow);
    set_deadlines(view, rule, groups);
    const std::vector<std::uint32_t> order = echelon_order(rule.capacity(), rule.flows(), groups, view.now);
    set_rates(view, echelon_rates(rule.capacity(), rule.flows(), order, view.now, p_.backfill), decisions);
  }

 private:
  // A group with flows that have bytes left.
  struct Group {
    std::map<std::uint32_t, Time> deadlines;  // by FlowId, of its flows so far
    Time next = 0;                            // deadline of its next flow
  };

  // Flows are asked for by rising id, so a group's flows get their deadlines in the order of release.
  void set_deadlines(const FlowsView& view, RuleView& rule, std::uint32_t groups) {
    std::vector<Group> present(groups);
    for (std::size_t i = 0; i < view.flows.size(); ++i) {
      const auto former = group_of_.find(view.flows[i].id);
      Group& group = present[rule.flows()[i].group];
      if (former != group_of_.end() && group.deadlines.empty()) group = groups_[former->second];
    }
    group_of_.clear();
    for (std::size_t i = 0; i < view.flows.size(); ++i) {
      const FlowView& flow = view.flows[i];
      Group& group = present[rule.flows()[i].group];
      if (group.deadlines.empty()) group.next = flow.released;
      const auto [entry, added] = group.deadlines.try_emplace(flow.id, group.next);
      if (added) group.next += p_.spacing;
      rule.flows()[i].deadline = entry->second;
      group_of_.emplace(flow.id, rule.flows()[i].group);
    }
    groups_ = std::move(present);
  }

  EchelonParameters p_;
  std::vector<Group> groups_;                        // of the last decision
  std::map<std::uint32_t, std::uint32_t> group_of_;  // by FlowId: index in groups_
};

const Registration<FlowScheduler> kEchelon{
    "echelon",
    "EchelonFlow: flows of a group have deadlines in a row, and the least tardy group goes first. "
    "It cannot do without the views `topology` and `sizes`",
    echelon_parameters(),
    [](const EchelonParameters& p, const ConfigNode&) { return std::make_unique<Echelon>(p); }};

}  // namespace
}  // namespace netsim
