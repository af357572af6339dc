// in_order: the backward goes from the last layer to the first, as autograd does it. The gradient of a
// layer's parameters comes before that of its input.
#include <memory>

#include "sim/core/registry.h"
#include "sim/training/layers/backward_order.h"

namespace netsim {
namespace {

class InOrderBackward final : public BackwardOrder {
 public:
  std::vector<BackwardStep> order(const std::vector<TimedLayer>& layers) const override {
    std::vector<BackwardStep> steps;
    for (auto layer = static_cast<std::uint32_t>(layers.size()); layer-- > 0;) {
      steps.push_back({layer, true});
      steps.push_back({layer, false});
    }
    return steps;
  }
};

const Registration<BackwardOrder> kInOrderBackward{
    "in_order",
    "from the last layer to the first: the gradient of a layer's parameters, then that of its input",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<InOrderBackward>(); }};

}  // namespace
}  // namespace netsim
