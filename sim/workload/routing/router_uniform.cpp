// uniform: every expert gets equally many tokens, as from a perfectly balanced router (Megatron-Core's
// --moe-router-force-load-balancing).
#include <algorithm>
#include <memory>

#include "sim/core/registry.h"
#include "sim/workload/routing/router.h"

namespace netsim {
namespace {

class Uniform final : public Router {
 public:
  bool even() const override { return true; }

  // Takes the groups in turn, and the experts of each in turn. The experts of a token are as far apart as
  // possible.
  std::vector<std::uint32_t> route(const RoutingShape& shape, std::uint32_t, std::uint32_t,
                                   std::uint32_t) const override {
    const std::uint32_t in_group = shape.experts / shape.groups, limit = shape.group_limit;
    const std::uint32_t stride = in_group / ((shape.top_k + limit - 1) / limit);
    std::vector<std::uint32_t> next(shape.groups, 0), chosen;
    chosen.reserve(std::size_t{shape.tokens} * shape.top_k);
    for (std::uint32_t token = 0; token < shape.tokens; ++token) {
      const auto group = [&](std::uint32_t i) {
        return (token + i % limit * shape.groups / limit) % shape.groups;
      };
      for (std::uint32_t i = 0; i < shape.top_k; ++i)
        chosen.push_back(group(i) * in_group + (next[group(i)] + i / limit * stride) % in_group);
      for (std::uint32_t i = 0; i < std::min(limit, shape.top_k); ++i) ++next[group(i)];
    }
    return chosen;
  }
};

const Registration<Router> kRouterUniform{
    "uniform", "every expert gets equally many tokens of every rank", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<Uniform>(); }};

}  // namespace
}  // namespace netsim
