// drift: the popularity of every expert of every layer changes from iteration to iteration. Its logarithm is
// a stationary autoregression of order 1, x' = a x + sqrt(1 - a^2) spread z, where z has variance 1. So
// popularities have the same spread in all iterations and lose their memory after about 1 / (1 - a).
#include <cmath>
#include <memory>

#include "sim/core/random.h"
#include "sim/core/registry.h"
#include "sim/workload/routing/router.h"

namespace netsim {
namespace {

struct DriftParameters {
  double spread = 0.5, memory = 0.9;
  std::int64_t seed = 1;
};

class Drift final : public Router {
 public:
  explicit Drift(const DriftParameters& p) : p_(p) {}
  bool changes() const override { return true; }

  std::vector<std::uint32_t> route(const RoutingShape& shape, std::uint32_t layer, std::uint32_t iteration,
                                   std::uint32_t source) const override {
    const auto seed = static_cast<std::uint64_t>(p_.seed);
    const std::uint64_t key = RandomStream(seed, "router drift", layer).key();
    std::vector<double> popularity(shape.experts);
    for (std::uint32_t e = 0; e < shape.experts; ++e) popularity[e] = portable_exp(state(key, e, iteration));
    return draw_experts(
        shape, popularity,
        RandomStream(RandomStream(key, "tokens", source).key(), "iteration", iteration).key());
  }

 private:
  // Returns the logarithm of an expert's popularity in an iteration.
  double state(std::uint64_t key, std::uint32_t expert, std::uint32_t iteration) const {
    RandomStream random(key, "expert", expert);
    double x = p_.spread * normal(random);
    const double step = p_.spread * std::sqrt(1 - p_.memory * p_.memory);
    for (std::uint32_t i = 0; i < iteration; ++i) x = p_.memory * x + step * normal(random);
    return x;
  }
  // Returns a bounded approximation of a normal variable, by plain sums.
  static double normal(RandomStream& random) {
    double z = -6;
    for (int i = 0; i < 12; ++i) z += random.uniform();
    return z;
  }

  DriftParameters p_;
};

const Registration<Router> kRouterDrift{
    "drift",
    "experts have popularities that change from iteration to iteration, and every token draws its own",
    Parameters<DriftParameters>()
        .real("spread", &DriftParameters::spread, {0, 5}, "standard deviation of a popularity's logarithm")
        .real("memory", &DriftParameters::memory, {0, 1},
              "share of this logarithm that the next iteration keeps")
        .integer("seed", &DriftParameters::seed, {0, 1'000'000'000}, "seed of the draws"),
    [](const DriftParameters& p, const ConfigNode&) { return std::make_unique<Drift>(p); }};

}  // namespace
}  // namespace netsim
