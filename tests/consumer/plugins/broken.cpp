// A congestion control that fails one of its own checks when a queue pair gets its first acknowledgements.
#include <memory>

#include "sim/core/plugin.h"
#include "sim/core/registry.h"
#include "sim/transport/congestion/congestion_control.h"

NETSIM_PLUGIN

namespace netsim {
namespace {

class Broken final : public CongestionControl {
 public:
  CongestionNeeds needs() const override { return {.acks = true}; }
  void on_ack(CongestionContext&, const Feedback& f) const override {
    NETSIM_CHECK(f.packets == 0, "two and two are five");
  }
};

const Registration<CongestionControl> kRegistration{
    "broken", "fails in the middle of a run", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<Broken>(); }};

}  // namespace
}  // namespace netsim
