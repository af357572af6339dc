// deadline: the flow with the earliest deadline goes first (PDQ: Hong, Caesar and Godfrey, SIGCOMM 2012).
// With `admission`, flows that can meet their deadlines without making an admitted one late go before all
// others (Varys, SIGCOMM 2014). Flows without a deadline go last.
//
// A deadline comes from the list `deadlines`, by the name of the communication. Flows of other names have the
// deadline that the workload gives them or their task. With `of_slack` the others get one from the view
// `slack`. It is the latest end that does not delay their iteration, if no two communications contend. It
// cannot do without `topology`, and `admission` not without `sizes`. Without `deadlines` the flow with the
// fewest bytes left goes first; without `sizes` too, the one that was seen first.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/core/registry.h"
#include "sim/scheduling/flow/rule_view.h"
#include "sim/scheduling/flow/rules/deadline.h"

namespace netsim {
namespace {

struct DeadlineParameters : CentralParameters {
  ConfigNode deadlines;
  bool admission = false;
  bool of_slack = false;
};

const Parameters<DeadlineParameters>& deadline_parameters() {
  using P = DeadlineParameters;
  static const auto parameters = add_central(
      Parameters<P>()
          .list(
              "deadlines", &P::deadlines,
              "deadlines by name of the communication, counted from the begin of the flow: [{name: a, "
              "after: 10 ms}, ...]; flows of other names have the deadline that the workload gives them, if "
              "any")
          .flag("admission", &P::admission, "flows that cannot meet their deadlines go behind those that can")
          .flag("of_slack", &P::of_slack,
                "a flow without a deadline is due when it would end alone, plus the slack of its "
                "communication: by how much that may end later without a delay of the iteration"));
  return parameters;
}

// Reads the deadlines by name.
std::map<std::string, Time> read_deadlines(const ConfigNode& list) {
  std::map<std::string, Time> deadlines;
  if (list.is_null()) return deadlines;
  if (!list.is_sequence() || list.items().empty())
    list.fail("`deadlines` is a list such as [{name: a, after: 10 ms}]");
  for (const ConfigNode& item : list.items()) {
    if (!item.is_map()) item.fail("a deadline is a map with `name` and `after`");
    item.allow_keys({"name", "after"});
    const ConfigNode *name = item.find("name"), *after = item.find("after");
    if (name == nullptr || after == nullptr) item.fail("a deadline needs `name` and `after`");
    const Time time = read_time(*after);
    if (time <= 0) after->fail("a deadline lies after the begin of its flow: above 0");
    if (!deadlines.emplace(read_text(*name), time).second)
      name->fail(fmt::format("'{}' has two deadlines", read_text(*name)));
  }
  return deadlines;
}

class Deadline final : public FlowScheduler {
 public:
  explicit Deadline(const DeadlineParameters& p) : p_(p), deadlines_(read_deadlines(p.deadlines)) {}
  FlowNeeds needs() const override {
    ViewFields views{ViewField::topology, ViewField::sizes, ViewField::deadlines};
    if (p_.of_slack) views = views | ViewFields{ViewField::slack};
    return {.central = true,
            .views = views,
            .required = p_.admission ? ViewFields{ViewField::topology, ViewField::sizes}
                                     : ViewFields{ViewField::topology}};
  }
  FlowTreatment admit(const FlowView& flow) const override { return admit_centrally(flow, p_.waits); }
  void decide(const FlowsView& view, FlowDecisions& decisions) override {
    RuleView rule(view, p_.use);
    std::vector<std::uint8_t> admitted;
    for (std::size_t i = 0; i < view.flows.size(); ++i) {
      const FlowView& flow = view.flows[i];
      if (!sees(ViewField::deadlines)) {
        rule.flows()[i].deadline = flow.left;
      } else if (flow.released <= view.deadlines_known) {
        rule.flows()[i].deadline = deadline_of(flow, view);
      }
      if (p_.admission) admitted.push_back(admitted_.contains(flow.id) ? 1 : 0);
    }
    if (p_.admission && sees(ViewField::deadlines)) {
      admit_by_deadline(rule.capacity(), rule.flows(), view.now, admitted);
      admitted_.clear();
      for (std::size_t i = 0; i < admitted.size(); ++i) {
        if (admitted[i] != 0) admitted_.emplace(view.flows[i].id, true);
      }
    }
    set_rates(view, edf_rates(rule.capacity(), rule.flows(), admitted), decisions);
  }

  std::vector<std::string> notes() const override {
    if (has_deadlines_) return {};
    return {
        "the flow scheduler 'deadline' saw no flow with a deadline: neither its list `deadlines` nor the "
        "workload gives one (`of_slack: true` takes them from the task graph)"};
  }

 private:
  // Returns kNever for a flow without a deadline.
  Time deadline_of(const FlowView& flow, const FlowsView& view) {
    Time deadline = flow.deadline;
    if (!deadlines_.empty()) {
      const auto found = deadlines_.find(view.facts->name(flow));
      if (found != deadlines_.end()) deadline = flow.released + found->second;
    }
    if (deadline == kNever) deadline = slack_deadline(flow, view);
    has_deadlines_ = has_deadlines_ || deadline != kNever;
    return deadline;
  }

  // Returns kNever where the view does not have the slack of the flow's communication.
  static Time slack_deadline(const FlowView& flow, const FlowsView& view) {
    const auto& all = view.demand.slack;
    const auto found = std::find_if(all.begin(), all.end(), [&](const CommunicationSlack& one) {
      return one.job == flow.job && one.name == flow.name;
    });
    if (found == all.end()) return kNever;
    Time alone = 0;
    for (const PortId port : flow.ports)
      alone = std::max(alone, transmission_time(flow.bytes, view.port_rates[port]));
    return flow.released + alone + found->slack;
  }

  DeadlineParameters p_;
  std::map<std::string, Time> deadlines_;
  bool has_deadlines_ = false;                        // a flow had one
  std::unordered_map<std::uint32_t, bool> admitted_;  // by FlowId; looked up only, never iterated
};

const Registration<FlowScheduler> kDeadline{
    "deadline",
    "the flow with the earliest deadline goes first, with admission where that is wanted. It cannot do "
    "without the view `topology`, and admission not without `sizes`; without `deadlines` the flow with the "
    "fewest bytes left goes first. Without `slack`, `of_slack` does nothing",
    deadline_parameters(),
    [](const DeadlineParameters& p, const ConfigNode&) { return std::make_unique<Deadline>(p); }};

}  // namespace
}  // namespace netsim
