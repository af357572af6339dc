// Go-back-N, as in RoCE NICs (InfiniBand Architecture Specification 1.4, volume 1, section 9.7.5). The
// responder drops packets that arrive out of order and sends one NACK for each gap. The requester then
// restarts from the gap.
//
// After a NACK the responder sends no other until the expected packet has arrived (9.7.5.2.8; Linux's rxe,
// rxe_resp.c check_psn, does the same). If that packet is lost again, only the requester's timeout repairs
// it.
//
// The RDMA model of ns-3 (rdma-hw.cc, ReceiverCheckSeq) sends a further NACK 500 us after the last one. The
// parameter `repeat_nack` models receivers that detect the second loss at once.
#include "sim/core/registry.h"
#include "sim/transport/reliability/reliability.h"

namespace netsim {
namespace {

struct GoBackNParameters {
  bool repeat_nack = false;
};

Parameters<GoBackNParameters> go_back_n_parameters() {
  using P = GoBackNParameters;
  return Parameters<P>().flag("repeat_nack", &P::repeat_nack,
                              "the receiver repeats its NACK when packet numbers that do not rise show that "
                              "the sender has gone back and the expected packet was lost again; false: only "
                              "the sender's timeout repairs that, as in InfiniBand");
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
    "packets are accepted in order only; at a gap the sender sends again from there on (RoCE, InfiniBand)",
    go_back_n_parameters(),
    [](const GoBackNParameters& p, const ConfigNode&) { return std::make_unique<GoBackN>(p); }};

}  // namespace
}  // namespace netsim
