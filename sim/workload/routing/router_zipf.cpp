// zipf: the r-th most popular expert is chosen in proportion to r^-exponent, independently for every token.
// Each layer draws which expert has which rank in popularity. With exponent 0 all are equally popular, and
// they differ by chance alone.
#include <memory>
#include <numeric>
#include <utility>

#include "sim/core/random.h"
#include "sim/core/registry.h"
#include "sim/workload/routing/router.h"

namespace netsim {
namespace {

struct ZipfParameters {
  double exponent = 1;
  std::int64_t seed = 1;
};

class Zipf final : public Router {
 public:
  explicit Zipf(const ZipfParameters& p) : p_(p) {}

  std::vector<std::uint32_t> route(const RoutingShape& shape, std::uint32_t layer, std::uint32_t,
                                   std::uint32_t source) const override {
    const auto seed = static_cast<std::uint64_t>(p_.seed);
    RandomStream random(seed, "router zipf", layer);
    std::vector<std::uint32_t> order(shape.experts);
    std::iota(order.begin(), order.end(), 0U);
    for (std::uint32_t i = shape.experts; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    std::vector<double> popularity(shape.experts);
    for (std::uint32_t i = 0; i < shape.experts; ++i)
      popularity[order[i]] = portable_exp(-p_.exponent * portable_log(1.0 + i));
    return draw_experts(shape, popularity, RandomStream(random.key(), "tokens", source).key());
  }

 private:
  ZipfParameters p_;
};

const Registration<Router> kRouterZipf{
    "zipf", "experts have popularities by Zipf's law, and every token draws its own",
    Parameters<ZipfParameters>()
        .real("exponent", &ZipfParameters::exponent, {0, 5},
              "exponent of Zipf's law; 0: all experts are equally popular")
        .integer("seed", &ZipfParameters::seed, {0, 1'000'000'000}, "seed of the draws"),
    [](const ZipfParameters& p, const ConfigNode&) { return std::make_unique<Zipf>(p); }};

}  // namespace
}  // namespace netsim
