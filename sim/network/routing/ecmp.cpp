// Equal-cost multi-path by flow hash (RFC 2992), or by the path hint of a message (path.h). Each switch has
// its own seed, so flows collide as in real networks and choices at successive tiers are independent.
#include "sim/core/registry.h"
#include "sim/network/flow_hash.h"
#include "sim/network/policies.h"

namespace netsim {
namespace {

struct EcmpParameters {
  bool per_switch_seed = true;
};

Parameters<EcmpParameters> ecmp_parameters() {
  return Parameters<EcmpParameters>().flag("per_switch_seed", &EcmpParameters::per_switch_seed,
                                           "every switch hashes with a seed of its own; false: all hash "
                                           "alike, which polarises traffic at upper tiers");
}

class Ecmp final : public RoutingPolicy {
 public:
  explicit Ecmp(const EcmpParameters& p) : p_(p) {}
  std::uint32_t choose(const Branch& branch) const override {
    return choose_by_hash(branch.flow, p_.per_switch_seed ? branch.seed : 0,
                          static_cast<std::uint32_t>(branch.ports.size()));
  }

 private:
  EcmpParameters p_;
};

const Registration<RoutingPolicy> kEcmp{
    "ecmp", "a flow's packets all take one of the equal-cost paths, chosen by hash or path hint",
    ecmp_parameters(), [](const EcmpParameters& p, const ConfigNode&) { return std::make_unique<Ecmp>(p); }};

}  // namespace
}  // namespace netsim
