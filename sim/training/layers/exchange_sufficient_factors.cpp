// sufficient_factors: hybrid communication of Poseidon (Zhang et al., USENIX ATC 2017). A fully connected
// layer has M x N parameters. Its gradient is the sum of K outer products, one for each sample of the batch.
// A worker may send the factors, K vectors of M and of N elements, to all others, which multiply them again.
// Elements that a worker sends and receives, with P workers:
//   reduced by servers on the workers, or by a ring:  2 M N (2 P - 2) / P
//   sufficient factors:                               2 K (P - 1) (M + N)
// `hybrid` takes the first where it is not more than the second.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/config_entries.h"
#include "sim/core/registry.h"
#include "sim/training/layers/gradient_exchange.h"

namespace netsim {
namespace {

enum class FactorChoice : std::uint8_t { hybrid, always, never };

struct FactorsParameters {
  std::int64_t batch = 0;
  FactorChoice choice = FactorChoice::hybrid;
  double operations = 0;
};

class SufficientFactors final : public GradientExchange {
 public:
  SufficientFactors(const FactorsParameters& p, const ConfigNode& where) : p_(p), where_(where) {}

  void check(const std::vector<TimedLayer>& layers, const ExchangeSettings&) const override {
    for (const TimedLayer& layer : layers) {
      if (layer.rows > 0 && layer.bytes > 0) return;
    }
    where_.fail("no layer has a 'matrix', whose gradient could be sent as factors");
  }

  void write(LayerStep& step, const ExchangeSettings& settings) const override {
    step.forwards();
    step.backward();
    for (const std::uint32_t layer : step.ready()) {
      const TimedLayer& facts = step.layers()[layer];
      const std::vector<LayerStep::Node> gradient{step.gradient(layer)};
      if (sends_factors(facts, step.workers())) {
        const Bytes factors = p_.batch * (facts.rows + facts.columns) * settings.element_bytes;
        const LayerStep::Node arrived = step.collective("factors " + facts.name, CollectiveKind::all_gather,
                                                        factors * step.workers(), gradient);
        step.exchanged(layer, multiplied(step, facts, arrived));
      } else {
        step.exchanged(layer, step.collective("gradients " + facts.name, CollectiveKind::all_reduce,
                                              facts.bytes, gradient));
      }
    }
  }

 private:
  // Compares 2 M N (2 P - 2) / P with 2 K (P - 1) (M + N), both times P / (2 (P - 1)).
  bool sends_factors(const TimedLayer& layer, std::uint32_t workers) const {
    if (layer.rows == 0 || p_.choice == FactorChoice::never) return false;
    if (p_.choice == FactorChoice::always) return true;
    const double reduced = 2.0 * static_cast<double>(layer.rows) * static_cast<double>(layer.columns);
    const double factors = static_cast<double>(p_.batch) * static_cast<double>(layer.rows + layer.columns) *
                           static_cast<double>(workers);
    return reduced > factors;
  }
  // Appends the products of all workers' factors. They are in no order with the backward.
  LayerStep::Node multiplied(LayerStep& step, const TimedLayer& layer, LayerStep::Node arrived) const {
    if (p_.operations == 0) return arrived;
    const double seconds = 2.0 * static_cast<double>(p_.batch) * step.workers() *
                           static_cast<double>(layer.rows) * static_cast<double>(layer.columns) /
                           p_.operations;
    const double most = to_seconds(ProgramLimits::kKernelTime);
    if (seconds > most) entry_or_self(where_, "operations").fail("the products take longer than 10000 s");
    return step.compute("multiply " + layer.name, std::llround(seconds * static_cast<double>(kSecond)),
                        {arrived}, false);
  }

  FactorsParameters p_;
  ConfigNode where_;
};

Parameters<FactorsParameters> factors_parameters() {
  using P = FactorsParameters;
  return Parameters<P>()
      .integer("batch", &P::batch, {1, 1'000'000}, "samples of a worker in an iteration (K)")
      .required()
      .choice("choice", &P::choice,
              {{"hybrid", FactorChoice::hybrid},
               {"always", FactorChoice::always},
               {"never", FactorChoice::never}},
              "which layers with a matrix send its factors instead of its gradient: those whose factors have "
              "fewer bytes, all of them, or none")
      .real("operations", &P::operations, {0, 1e18},
            "operations per second of a GPU while it multiplies the factors again; 0: it takes no time");
}

const Registration<GradientExchange> kSufficientFactors{
    "sufficient_factors",
    "Poseidon: gradients of fully connected layers are sent as factors to all workers where that is less "
    "than "
    "an all-reduce, which the other layers have",
    factors_parameters(), [](const FactorsParameters& p, const ConfigNode& where) {
      return std::make_unique<SufficientFactors>(p, where);
    }};

}  // namespace
}  // namespace netsim
