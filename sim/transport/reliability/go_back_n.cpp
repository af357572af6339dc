// Go-back-N, as RoCE NICs have it (InfiniBand Architecture Specification 1.4, volume 1, section 9.7.5): the
// responder drops what does not come in order and sends one NACK for each gap, the requester starts again
// from there.
//
// After a NACK the responder sends no other until the expected packet has come (9.7.5.2.8; Linux's rxe,
// rxe_resp.c check_psn, does the same): where that packet is lost again, the requester's timeout repairs it.
// The RDMA model of ns-3 (rdma-hw.cc, ReceiverCheckSeq) sends a further NACK 500 us after the last one; the
// parameter `repeat_nack` stands for receivers that notice at once.
#include "sim/core/registry.h"
#include "sim/transport/reliability/reliability.h"

namespace netsim {
namespace {

struct GoBackNParameters {
  bool repeat_nack = false;
};

Parameters<GoBackNParameters> go_back_n_parameters() {
  using P = GoBackNParameters;
  return Parameters<P>().flag(
      "repeat_nack", &P::repeat_nack,
      "the receiver sends a NACK again where packet numbers that do not rise tell that "
      "the sender has started again and the expected packet was lost once more; "
      "without it, as in InfiniBand, only the sender's timeout repairs that");
}

class GoBackN final : public Reliability {
 public:
  explicit GoBackN(const GoBackNParameters& p) : p_(p) {}
  ReliabilityPlan compile() const override {
    ReliabilityPlan plan;
    plan.repeat_nack = p_.repeat_nack;
    return plan;
  }

 private:
  GoBackNParameters p_;
};

const Registration<Reliability> kGoBackN{
    "go_back_n",
    "packets are taken in order only; at a gap the sender starts again from there (RoCE, InfiniBand)",
    go_back_n_parameters(),
    [](const GoBackNParameters& p, const ConfigNode&) { return std::make_unique<GoBackN>(p); }};

}  // namespace
}  // namespace netsim
