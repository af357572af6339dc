// fair: does nothing. Flows share links as congestion control and the round robin of NICs and switches let
// them. It is the baseline for the others, whose reports then have the same form.
#include <memory>

#include "sim/core/registry.h"
#include "sim/scheduling/flow/flow_scheduler.h"

namespace netsim {
namespace {

class Fair final : public FlowScheduler {};

const Registration<FlowScheduler> kFair{
    "fair", "decides nothing: flows share links as they do without a scheduler", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<Fair>(); }};

}  // namespace
}  // namespace netsim
