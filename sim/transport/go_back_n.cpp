// Go-back-N, as RoCE NICs have it (InfiniBand Architecture Specification 1.4, volume 1, section 9.7.5): the
// responder drops what does not come in order and sends one NACK for each gap, the requester starts again
// from there.
#include "sim/core/registry.h"
#include "sim/transport/reliability.h"

namespace netsim {
namespace {

struct NoParameters {};

class GoBackN final : public Reliability {
 public:
  ReliabilityPlan compile() const override { return {}; }
};

const Registration<Reliability> kGoBackN{
    "go_back_n",
    "packets are taken in order only; at a gap the sender starts again from there (RoCE, InfiniBand)",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<GoBackN>(); }};

}  // namespace
}  // namespace netsim
