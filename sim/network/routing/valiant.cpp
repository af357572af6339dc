// Valiant's routing (Valiant and Brebner, Universal Schemes for Parallel Communication, STOC 1981). Every
// packet goes straight to a random intermediate, and from there straight to its destination. This makes any
// traffic look uniform and uses twice the links.
//
// In a dragonfly the intermediate is a group (Kim, Dally, Scott, Abts, Technology-Driven, Highly-Scalable
// Dragonfly Topology, ISCA 2008).
#include "sim/core/registry.h"
#include "sim/network/policies.h"

namespace netsim {
namespace {

struct ValiantParameters {
  bool per_packet = true;
};

Parameters<ValiantParameters> valiant_parameters() {
  return Parameters<ValiantParameters>().choice(
      "per", &ValiantParameters::per_packet, {{"packet", true}, {"flow", false}},
      "what draws an intermediate: every packet, or every flow, whose packets then stay in order");
}

class Valiant final : public RoutingPolicy {
 public:
  explicit Valiant(const ValiantParameters& p) : p_(p) {}
  RoutingPlan compile() const override {
    return {.choice = p_.per_packet ? RoutingPlan::Choice::random : RoutingPlan::Choice::per_flow,
            .detour = RoutingPlan::Detour::always};
  }

 private:
  ValiantParameters p_;
};

const Registration<RoutingPolicy> kValiant{
    "valiant",
    "packets (or flows) go to a random intermediate first: torus, hyperx, dragonfly; per packet it needs a "
    "transport that accepts packets in any order (reliability: irn)",
    valiant_parameters(),
    [](const ValiantParameters& p, const ConfigNode&) { return std::make_unique<Valiant>(p); }};

}  // namespace
}  // namespace netsim
