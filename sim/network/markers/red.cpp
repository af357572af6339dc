// RED-ECN marking (Floyd and Jacobson, ToN 1993) on the instantaneous queue, as data-centre switches do it.
#include "sim/core/registry.h"
#include "sim/network/policies.h"
#include "sim/network/rate_scaling.h"

namespace netsim {
namespace {

struct RedParameters {
  Bytes kmin = 400 * kKilobyte;
  Bytes kmax = 1600 * kKilobyte;
  double pmax = 0.2;
  BitRate reference_rate = 100 * kGbps;
  bool at_enqueue = false;
};

// The defaults are from HPCC's simulation set-up (Li et al., SIGCOMM 2019, run.py): 400 and 1600 KB at 100
// Gb/s, linear in speed.
Parameters<RedParameters> red_parameters() {
  return Parameters<RedParameters>()
      .bytes("kmin", &RedParameters::kmin, {0, 1000 * kGigabyte},
             "queue length at reference_rate above which packets are marked with rising probability")
      .bytes("kmax", &RedParameters::kmax, {0, 1000 * kGigabyte},
             "queue length at reference_rate above which every packet is marked")
      .real("pmax", &RedParameters::pmax, {0, 1}, "marking probability at kmax")
      .rate("reference_rate", &RedParameters::reference_rate, {1 * kMbps, 100'000 * kGbps},
            "the link speed that kmin and kmax are given for; ports of other speeds scale them linearly")
      .choice("at", &RedParameters::at_enqueue, {{"dequeue", false}, {"enqueue", true}},
              "when a packet is marked: when it leaves the queue, by the bytes that remain, or when it joins "
              "it, by the bytes that are there");
}

class Red final : public Marker {
 public:
  explicit Red(const RedParameters& p) : p_(p) {}
  RedLine compile(BitRate rate) const override {
    return {scale_with_rate(p_.kmin, rate, p_.reference_rate),
            scale_with_rate(p_.kmax, rate, p_.reference_rate), p_.pmax, p_.at_enqueue};
  }

 private:
  RedParameters p_;
};

const Registration<Marker> kRed{"red",
                                "marks with a probability that rises linearly from kmin to kmax (RED-ECN)",
                                red_parameters(), [](const RedParameters& p, const ConfigNode& node) {
                                  if (p.kmin > p.kmax) node.fail("kmin is above kmax");
                                  return std::make_unique<Red>(p);
                                }};

}  // namespace
}  // namespace netsim
