// Step marking: marks every packet above one threshold and none below (DCTCP: Alizadeh et al., SIGCOMM 2010,
// section 3.1).
#include "sim/core/registry.h"
#include "sim/network/policies.h"
#include "sim/network/rate_scaling.h"

namespace netsim {
namespace {

struct StepParameters {
  Bytes threshold = 300 * kKilobyte;
  BitRate reference_rate = 100 * kGbps;
  bool at_enqueue = true;
};

// The default threshold is from HPCC's simulation set-up for DCTCP (Li et al., SIGCOMM 2019, run.py). It is
// 30 KB at 10 Gb/s and linear in speed, so 300 KB at 100 Gb/s. DCTCP's switches decide when a packet arrives.
Parameters<StepParameters> step_parameters() {
  return Parameters<StepParameters>()
      .bytes("threshold", &StepParameters::threshold, {0, 1000 * kGigabyte},
             "queue length at reference_rate above which every packet is marked")
      .rate("reference_rate", &StepParameters::reference_rate, {1 * kMbps, 100'000 * kGbps},
            "the link speed that the threshold is given for; ports of other speeds scale it linearly")
      .choice("at", &StepParameters::at_enqueue, {{"dequeue", false}, {"enqueue", true}},
              "when a packet is marked: when it leaves the queue, by the bytes that remain, or when it joins "
              "it, by the bytes that are there");
}

class Step final : public Marker {
 public:
  explicit Step(const StepParameters& p) : p_(p) {}
  RedLine compile(BitRate rate) const override {
    const Bytes threshold = scale_with_rate(p_.threshold, rate, p_.reference_rate);
    return {threshold, threshold, 1, p_.at_enqueue};
  }

 private:
  StepParameters p_;
};

const Registration<Marker> kStep{
    "step", "marks every packet above one queue length (DCTCP)", step_parameters(),
    [](const StepParameters& p, const ConfigNode&) { return std::make_unique<Step>(p); }};

}  // namespace
}  // namespace netsim
