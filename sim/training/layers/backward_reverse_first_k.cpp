// reverse_first_k: out-of-order backpropagation for data parallelism (Oh et al., "Out-of-Order BackProp",
// EuroSys 2022). The gradients of the parameters of the first k layers are computed last, first layer first.
// So those that the next forward needs first are exchanged first. The order for k = 0 is in_order.
#include <memory>
#include <string>

#include "sim/core/config_entries.h"
#include "sim/core/registry.h"
#include "sim/training/layers/backward_order.h"

namespace netsim {
namespace {

struct ReverseFirstKParameters {
  std::int64_t k = 0;
};

class ReverseFirstK final : public BackwardOrder {
 public:
  ReverseFirstK(const ReverseFirstKParameters& p, const ConfigNode& where) : p_(p), where_(where) {}

  std::vector<BackwardStep> order(const std::vector<TimedLayer>& layers) const override {
    check(layers);
    const auto k = static_cast<std::uint32_t>(p_.k);
    std::vector<BackwardStep> steps;
    for (auto layer = static_cast<std::uint32_t>(layers.size()); layer-- > 0;) {
      if (layer >= k) steps.push_back({layer, true});
      steps.push_back({layer, false});
    }
    for (std::uint32_t layer = 0; layer < k; ++layer) steps.push_back({layer, true});
    return steps;
  }

 private:
  void check(const std::vector<TimedLayer>& layers) const {
    if (p_.k > static_cast<std::int64_t>(layers.size())) {
      entry_or_self(where_, "k")
          .fail(std::to_string(p_.k) + "; allowed: 0 to the number of layers, " +
                std::to_string(layers.size()));
    }
    for (std::int64_t i = 0; i < p_.k; ++i) {
      const TimedLayer& layer = layers[static_cast<std::size_t>(i)];
      if (layer.bytes == 0 || layer.weight_gradient > 0) continue;
      entry_or_self(where_, "k")
          .fail("layer '" + layer.name +
                "' has no weight_gradient that could be computed later than its backward");
    }
  }
  ReverseFirstKParameters p_;
  ConfigNode where_;
};

Parameters<ReverseFirstKParameters> reverse_first_k_parameters() {
  using P = ReverseFirstKParameters;
  return Parameters<P>().integer("k", &P::k, {0, 100'000},
                                 "number of first layers whose parameters' gradients are computed last");
}

const Registration<BackwardOrder> kReverseFirstK{
    "reverse_first_k",
    "out-of-order backpropagation: the gradients of the first k layers' parameters are computed at the end, "
    "first layer first",
    reverse_first_k_parameters(), [](const ReverseFirstKParameters& p, const ConfigNode& where) {
      return std::make_unique<ReverseFirstK>(p, where);
    }};

}  // namespace
}  // namespace netsim
