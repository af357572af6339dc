#include <algorithm>
#include <tuple>
#include <vector>

#include "sim/training/strategy/strategies.h"

namespace netsim {
namespace {

// Returns the extents of more than one element, sorted, because a gradient may be computed transposed.
std::vector<std::tuple<std::int64_t, Dimension>> extents(const Tensor& tensor) {
  std::vector<std::tuple<std::int64_t, Dimension>> all;
  for (const Extent& extent : tensor) {
    if (extent.size > 1) all.emplace_back(extent.size, extent.along);
  }
  std::sort(all.begin(), all.end());
  return all;
}

class FusedAccumulation final : public Strategy {
 public:
  void apply(TrainingGraph& graph) const override {
    for (LayerGraph& layer : graph.layers) fuse(layer.backward, graph.model.gradient_bytes);
  }

 private:
  static void fuse(Chain& chain, std::int64_t gradient_bytes) {
    std::vector<Operator*> computed;  // gradients that are not added yet
    for (GraphNode& node : chain) {
      for (Operator& op : node.operators) {
        if (op.kind == Kernel::Kind::gemm && op.weight_gradient && op.traffic.empty())
          computed.push_back(&op);
        if (!is_accumulation(op)) continue;
        std::erase_if(op.traffic, [&](const Traffic& added) {
          const auto gemm = std::find_if(computed.begin(), computed.end(), [&](const Operator* candidate) {
            return extents({candidate->batch, candidate->m, candidate->n}) == extents(added.tensor);
          });
          if (gemm == computed.end()) return false;
          (*gemm)->accumulates = true;
          (*gemm)->result_bytes = gradient_bytes;
          computed.erase(gemm);
          return true;
        });
      }
    }
    for (GraphNode& node : chain) {
      std::erase_if(node.operators,
                    [](const Operator& op) { return is_accumulation(op) && op.traffic.empty(); });
    }
  }
};

}  // namespace

std::unique_ptr<Strategy> fused_accumulation() { return std::make_unique<FusedAccumulation>(); }

}  // namespace netsim
