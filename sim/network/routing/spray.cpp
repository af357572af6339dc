// Packet spraying (Dixit et al., On the Impact of Packet Spraying in Data Center Networks, INFOCOM 2013).
// Every packet takes its own way, and may overtake others of its flow.
#include "sim/core/registry.h"
#include "sim/network/policies.h"

namespace netsim {
namespace {

struct SprayParameters {
  RoutingPlan::Choice choice = RoutingPlan::Choice::random;
};

Parameters<SprayParameters> spray_parameters() {
  return Parameters<SprayParameters>().choice(
      "choice", &SprayParameters::choice,
      {{"random", RoutingPlan::Choice::random}, {"round_robin", RoutingPlan::Choice::round_robin}},
      "how a switch picks a port: at random, or in turn");
}

class Spray final : public RoutingPolicy {
 public:
  explicit Spray(const SprayParameters& p) : p_(p) {}
  RoutingPlan compile() const override { return {.choice = p_.choice}; }

 private:
  SprayParameters p_;
};

const Registration<RoutingPolicy> kSpray{
    "spray",
    "every data packet takes any of the equal-cost next hops, at random or in turn; needs a transport that "
    "accepts packets in any order (reliability: irn)",
    spray_parameters(),
    [](const SprayParameters& p, const ConfigNode&) { return std::make_unique<Spray>(p); }};

}  // namespace
}  // namespace netsim
