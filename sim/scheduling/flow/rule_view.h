// RuleView: the flows of decide() as the rules in rules/ want them, with their links counted from 0. Private
// to sim/scheduling/flow.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sim/core/parameters.h"
#include "sim/scheduling/flow/flow_scheduler.h"
#include "sim/scheduling/flow/rules/rule_flow.h"

namespace netsim {

// CoflowKey: which flows of a job are one coflow.
enum class CoflowKey : std::uint8_t {
  communication,  // those of one collective or message
  name,           // those of communications with one name
  job             // all
};

// CentralParameters: parameters of schedulers that set the rates of all flows.
struct CentralParameters {
  double use = 1;     // share of each link that is given to flows
  bool waits = true;  // a new flow waits for the first decision about it
};

// Adds these parameters to those of a scheduler.
template <class P>
Parameters<P>&& add_central(Parameters<P>&& parameters) {
  return std::move(parameters)
      .real("use", &P::use, {0.01, 1},
            "share of each link's rate that is given to flows; less than 1 leaves room for acknowledgements")
      .choice("new_flows", static_cast<bool P::*>(&P::waits), {{"wait", true}, {"send", false}},
              "what a new flow does until the first decision about it: `wait` for it, or `send` as if there "
              "were no scheduler");
}
template <class P>
Parameters<P>&& add_coflow(Parameters<P>&& parameters) {
  return std::move(parameters)
      .choice(
          "coflow", &P::coflow,
          {{"communication", CoflowKey::communication}, {"name", CoflowKey::name}, {"job", CoflowKey::job}},
          "which flows are one coflow: those of a `communication`, those of a job's communications with "
          "one `name`, or all of a `job`");
}

// CoflowName: identifies a coflow in the whole run: its job, and its communication or name.
using CoflowName = std::pair<std::uint32_t, std::uint64_t>;

class RuleView {
 public:
  // `view` must outlive this.
  explicit RuleView(const FlowsView& view, double use = 1);

  std::span<const BitRate> capacity() const { return capacity_; }
  // Returns a flow for each one of the view, in its order, with links and bytes left.
  std::span<RuleFlow> flows() { return flows_; }
  // Numbers the coflows from 0 in the order of their first flows, in RuleFlow::group. Returns how many there
  // are.
  std::uint32_t group_by(CoflowKey key);
  // Returns the coflows by number, after group_by().
  std::span<const CoflowName> coflows() const { return coflows_; }

 private:
  const FlowsView& view_;
  std::vector<BitRate> capacity_;
  std::vector<std::uint32_t> links_;  // of all flows, one after the other
  std::vector<RuleFlow> flows_;
  std::vector<CoflowName> coflows_;
};

// Decides that each flow of the view has its rate.
void set_rates(const FlowsView& view, std::span<const BitRate> rates, FlowDecisions& decisions);

// Returns the treatment of a new flow by a central scheduler.
FlowTreatment admit_centrally(const FlowView& flow, bool waits);

}  // namespace netsim
