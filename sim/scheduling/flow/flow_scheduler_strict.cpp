// strict: flows of a more urgent level go first, and the others get what is left. Levels follow the job, the
// priority that jobs and tasks have in the workload, or the size of the flow.
//
// With `act: classes` a level is a data class of the network, which NICs and switches serve in strict
// priority (network.switch.scheduler: strict). With `act: rates` the scheduler gives the flows of a level
// their max-min fair rates on what more urgent levels leave.
//
// `act: rates` cannot do without `topology`. `by: size` without `sizes` orders by what flows have sent, and
// gives all flows the first class.
#include <algorithm>
#include <memory>

#include "sim/core/registry.h"
#include "sim/scheduling/flow/rule_view.h"
#include "sim/scheduling/flow/rules/max_min.h"
#include "sim/scheduling/flow/rules/thresholds.h"

namespace netsim {
namespace {

enum class UrgentBy : std::uint8_t { job, priority, size };

struct StrictParameters : CentralParameters {
  UrgentBy by = UrgentBy::priority;
  bool classes = true;
  std::int64_t levels = 2;
  Bytes first = kAaloFirst;
  std::int64_t factor = kAaloFactor;
};

const Parameters<StrictParameters>& strict_parameters() {
  using P = StrictParameters;
  static const auto parameters = add_central(
      Parameters<P>()
          .choice("by", &P::by,
                  {{"job", UrgentBy::job}, {"priority", UrgentBy::priority}, {"size", UrgentBy::size}},
                  "what makes a flow urgent: its `job` (the first job first), the `priority` of its job or "
                  "task (the highest first), or its `size` (the smallest first)")
          .choice("act", &P::classes, {{"classes", true}, {"rates", false}},
                  "levels are data `classes` of the network, or `rates` that are set at intervals")
          .integer("levels", &P::levels, {1, 256}, "levels of urgency; the last one takes all that remain")
          .bytes("first", &P::first, {1, 1000 * kGigabyte},
                 "by size: largest flow of the first level; the size is that of the first message")
          .integer("factor", &P::factor, {2, 1 << 20}, "by size: each level reaches so many times further"));
  return parameters;
}

class Strict final : public FlowScheduler {
 public:
  explicit Strict(const StrictParameters& p)
      : p_(p),
        thresholds_(exponential_thresholds(p.first, static_cast<std::uint32_t>(p.factor),
                                           static_cast<std::uint32_t>(p.levels))) {}
  FlowNeeds needs() const override {
    if (!p_.classes)
      return {.central = true,
              .views = {ViewField::topology, ViewField::sizes},
              .required = {ViewField::topology}};
    const ViewFields sizes = p_.by == UrgentBy::size ? ViewFields{ViewField::sizes} : ViewFields();
    return {.classes = static_cast<std::uint32_t>(p_.levels), .views = sizes};
  }
  FlowTreatment admit(const FlowView& flow) const override {
    if (!p_.classes) return admit_centrally(flow, p_.waits);
    FlowTreatment treatment = flow;
    treatment.traffic_class = static_cast<std::uint8_t>(level_of(flow));
    return treatment;
  }
  void decide(const FlowsView& view, FlowDecisions& decisions) override {
    RuleView rule(view, p_.use);
    std::vector<std::uint32_t> levels;
    for (const FlowView& flow : view.flows) levels.push_back(level_of(flow));
    set_rates(view, rates_.strict(rule.capacity(), rule.flows(), levels), decisions);
  }

 private:
  std::uint32_t level_of(const FlowView& flow) const {
    const auto last = static_cast<std::uint32_t>(p_.levels - 1);
    switch (p_.by) {
      case UrgentBy::job:
        return std::min<std::uint32_t>(flow.job, last);
      case UrgentBy::priority:
        return last - std::min<std::uint32_t>(flow.priority, last);
      case UrgentBy::size:
        break;
    }
    return level_of_left(flow.bytes, thresholds_);
  }

  StrictParameters p_;
  std::vector<Bytes> thresholds_;
  MaxMin rates_;
};

const Registration<FlowScheduler> kStrict{
    "strict",
    "flows of a more urgent job, priority or size go first, by data classes or by rates. "
    "`act: rates` cannot do without the view `topology`; `by: size` without `sizes` goes by what flows have "
    "sent",
    strict_parameters(),
    [](const StrictParameters& p, const ConfigNode&) { return std::make_unique<Strict>(p); }};

}  // namespace
}  // namespace netsim
