// No congestion control: every queue pair sends at line rate, and PFC alone keeps the network lossless.
#include "sim/core/registry.h"
#include "sim/transport/congestion/congestion_control.h"

namespace netsim {
namespace {

class NoCongestionControl final : public CongestionControl {
 public:
  CongestionNeeds needs() const override { return {.base_rtt = false}; }
};

const Registration<CongestionControl> kNone{
    "none", "every queue pair sends at line rate; use it to see what PFC alone does",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<NoCongestionControl>(); }};

}  // namespace
}  // namespace netsim
