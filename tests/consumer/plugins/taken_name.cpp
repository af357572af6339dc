// Registers a name that netsim has.
#include <memory>

#include "sim/core/plugin.h"
#include "sim/core/registry.h"
#include "sim/transport/congestion/congestion_control.h"

NETSIM_PLUGIN

namespace netsim {
namespace {

const Registration<CongestionControl> kRegistration{
    "dcqcn", "another one", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<CongestionControl>(); }};

}  // namespace
}  // namespace netsim
