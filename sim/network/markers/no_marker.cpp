// No ECN marking. Congestion control that depends on marks never reacts.
#include "sim/core/registry.h"
#include "sim/network/policies.h"

namespace netsim {
namespace {

class NoMarker final : public Marker {
 public:
  RedLine compile(BitRate) const override { return {}; }
};

const Registration<Marker> kNone{
    "none", "never marks: for studies without congestion control", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<NoMarker>(); }};

}  // namespace
}  // namespace netsim
