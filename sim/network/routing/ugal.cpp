// UGAL-L (Singh, Load-Balanced Routing in Interconnection Networks, thesis, Stanford 2005; for dragonflies
// Kim et al., ISCA 2008). At its first switch a packet goes straight or over a random intermediate.
//
// It takes the way with the smaller product of the bytes waiting before it at this switch and the hops to its
// destination.
#include "sim/core/registry.h"
#include "sim/network/policies.h"

namespace netsim {
namespace {

struct UgalParameters {
  Bytes bias = 0;
};

Parameters<UgalParameters> ugal_parameters() {
  return Parameters<UgalParameters>().bytes(
      "bias", &UgalParameters::bias, {0, 1 * kGigabyte},
      "additional bytes that may be queued on the minimal path, hop for hop, before a packet takes a detour");
}

class Ugal final : public RoutingPolicy {
 public:
  explicit Ugal(const UgalParameters& p) : p_(p) {}
  RoutingPlan compile() const override {
    return {.choice = RoutingPlan::Choice::least_loaded,
            .detour = RoutingPlan::Detour::if_shorter,
            .bias = p_.bias};
  }

 private:
  UgalParameters p_;
};

const Registration<RoutingPolicy> kUgal{
    "ugal",
    "each packet takes the minimal path or one over an intermediate, by queue x hops at its first switch: "
    "torus, hyperx, dragonfly; needs a transport that accepts packets in any order (reliability: irn)",
    ugal_parameters(), [](const UgalParameters& p, const ConfigNode&) { return std::make_unique<Ugal>(p); }};

}  // namespace
}  // namespace netsim
