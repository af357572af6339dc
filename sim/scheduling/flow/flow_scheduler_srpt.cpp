// srpt: the flow with the fewest bytes left goes first, as pFabric does (Alizadeh et al., SIGCOMM 2013). With
// `act: rates` each flow gets, in that order, all that its links have left. With `act: classes` flows get
// data classes by their size when they begin, which is pFabric with a few priorities in switches.
//
// `act: rates` cannot do without `topology`; without `sizes` the flow that has sent least goes first. With
// `act: classes` and without `sizes` all flows have the first class.
#include <algorithm>
#include <memory>
#include <numeric>

#include "sim/core/registry.h"
#include "sim/scheduling/flow/rule_view.h"
#include "sim/scheduling/flow/rules/thresholds.h"

namespace netsim {
namespace {

struct SrptParameters : CentralParameters {
  bool classes = false;
  std::int64_t levels = 2;
  Bytes first = 100 * kKilobyte;
  std::int64_t factor = 10;
};

const Parameters<SrptParameters>& srpt_parameters() {
  using P = SrptParameters;
  static const auto parameters = add_central(
      Parameters<P>()
          .choice("act", &P::classes, {{"classes", true}, {"rates", false}},
                  "`rates` in the order of bytes left, set at intervals, or data `classes` by size")
          .integer("levels", &P::levels, {1, 256}, "act: classes: number of classes")
          .bytes("first", &P::first, {1, 1000 * kGigabyte},
                 "act: classes: largest flow of the first class; the size is that of the first message")
          .integer("factor", &P::factor, {2, 1 << 20},
                   "act: classes: each class reaches so many times further"));
  return parameters;
}

class Srpt final : public FlowScheduler {
 public:
  explicit Srpt(const SrptParameters& p)
      : p_(p),
        thresholds_(exponential_thresholds(p.first, static_cast<std::uint32_t>(p.factor),
                                           static_cast<std::uint32_t>(p.levels))) {}
  FlowNeeds needs() const override {
    if (!p_.classes)
      return {.central = true,
              .sizes = true,
              .views = {ViewField::topology, ViewField::sizes},
              .required = {ViewField::topology}};
    return {.classes = static_cast<std::uint32_t>(p_.levels), .views = {ViewField::sizes}};
  }
  FlowTreatment admit(const FlowView& flow) const override {
    if (!p_.classes) return admit_centrally(flow, p_.waits);
    FlowTreatment treatment = flow;
    treatment.traffic_class = static_cast<std::uint8_t>(level_of_left(flow.bytes, thresholds_));
    return treatment;
  }
  void decide(const FlowsView& view, FlowDecisions& decisions) override {
    RuleView rule(view, p_.use);
    std::vector<std::uint32_t> order(view.flows.size());
    std::iota(order.begin(), order.end(), 0U);
    const auto key = [&](std::uint32_t flow) {
      return sees(ViewField::sizes) ? view.flows[flow].left : view.flows[flow].attained();
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
    std::vector<BitRate> room(rule.capacity().begin(), rule.capacity().end()), rates(order.size(), 0);
    fill_in_order(rule.flows(), order, room, rates);
    set_rates(view, rates, decisions);
  }

 private:
  SrptParameters p_;
  std::vector<Bytes> thresholds_;
};

const Registration<FlowScheduler> kSrpt{
    "srpt",
    "pFabric: the flow with the fewest bytes left goes first. `act: rates` cannot do without the view "
    "`topology`; "
    "without `sizes` the flow that has sent least goes first, and with `act: classes` all have the first "
    "class",
    srpt_parameters(), [](const SrptParameters& p, const ConfigNode&) { return std::make_unique<Srpt>(p); }};

}  // namespace
}  // namespace netsim
