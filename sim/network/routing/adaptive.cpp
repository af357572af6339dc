// Adaptive routing by the local queue, as switches of InfiniBand and Spectrum do it. Each data packet takes
// the equal next hop with the least to send. This is the shortest queue of DRILL (Ghorbani et al., SIGCOMM
// 2017) over all ports.
#include "sim/core/registry.h"
#include "sim/network/policies.h"

namespace netsim {
namespace {

class Adaptive final : public RoutingPolicy {
 public:
  RoutingPlan compile() const override { return {.choice = RoutingPlan::Choice::least_loaded}; }
};

const Registration<RoutingPolicy> kAdaptive{
    "adaptive",
    "every data packet goes to the equal-cost next hop with the fewest queued bytes; needs a transport that "
    "accepts packets in any order (reliability: irn)",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<Adaptive>(); }};

}  // namespace
}  // namespace netsim
