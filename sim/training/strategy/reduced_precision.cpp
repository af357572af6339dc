#include <algorithm>
#include <utility>
#include <vector>

#include "sim/training/strategy/strategies.h"

namespace netsim {
namespace {

class Reduced final : public Strategy {
 public:
  explicit Reduced(const ReducedPrecision& parameters) : p_(parameters) {}

  void apply(TrainingGraph& graph) const override {
    for (LayerGraph& layer : graph.layers) {
      for (Saved& saved : layer.saved) {
        const bool operand = saved.kind == Saved::Kind::operand || saved.kind == Saved::Kind::also_operand;
        if (operand) saved.bits_per_element = operand_bits(p_.precision);
      }
      for (Chain* chain : {&layer.forward, &layer.backward}) {
        const bool backward = chain == &layer.backward;
        for (std::size_t i = 0; i < chain->size(); ++i) {
          std::vector<Operator>& operators = (*chain)[i].operators;
          operators = p_.scaling == Scaling::tensor ? by_tensor(operators)
                                                    : by_blocks(operators, backward, arrives(*chain, i));
        }
      }
    }
  }

 private:
  // Returns whether a node's input arrives from other ranks in reduced precision.
  bool arrives(const Chain& chain, std::size_t i) const {
    return p_.dispatched && i > 0 && chain[i - 1].kind == GraphNode::Kind::exchange &&
           chain[i - 1].exchange.to_experts;
  }

  std::vector<Operator> by_tensor(std::vector<Operator>& operators) const {
    std::vector<Operator> result;
    for (Operator& op : operators) {
      if (op.linear) {
        const bool written_so = !result.empty() && result.back().kind == Kernel::Kind::memory &&
                                result.back().recomputed == op.recomputed;
        // The cast reads 2 bytes and writes the value and its transpose.
        if (!op.weight_gradient && !written_so) result.push_back(memory_bound("cast", 4, operand(op)));
        op.precision = p_.precision;
      }
      result.push_back(std::move(op));
    }
    return result;
  }

  // `arrives` says that the input of the first GEMM is in reduced precision already, scaled along the
  // channels.
  std::vector<Operator> by_blocks(std::vector<Operator>& operators, bool backward, bool arrives) const {
    std::vector<Operator> result;
    for (Operator& op : operators) {
      if (op.linear) {
        const Tensor tensor = operand(op);
        if (op.weight_gradient) {
          result.push_back(computing_weights(cast("cast_kept", 1, 1, tensor)));
        } else if (!backward || op.recomputed) {
          if (!arrives) result.push_back(cast("cast", 2, 1, tensor));
          arrives = false;
        } else if (arrives) {
          result.push_back(computing_weights(cast("cast_gradient", 1, 1, tensor)));
          arrives = false;
        } else {
          result.push_back(cast("cast_gradient", 2, 2, tensor));
        }
        op.precision = p_.precision;
      }
      result.push_back(std::move(op));
    }
    return result;
  }

  // Returns what a GEMM reads besides weights, before a gather.
  static Tensor operand(const Operator& op) {
    const Dimension along = op.gathers && !op.weight_gradient ? Dimension::sequence : op.m.along;
    return {{op.m.size, along}, op.k};
  }
  static Operator cast(const char* name, std::int64_t read, std::int64_t written, const Tensor& tensor) {
    // The number of scales is the same along either extent. For token copies the router gives their number.
    Tensor scales = tensor;
    Extent& scaled = scales.back().along == Dimension::routed ? scales.front() : scales.back();
    scaled.size = std::max<std::int64_t>(1, scaled.size / kScaledElements);
    return memory_bound(name, {{read + written, tensor}, {kScaleBytes * written, scales}});
  }

  ReducedPrecision p_;
};

}  // namespace

std::unique_ptr<Strategy> reduced_precision(const ReducedPrecision& parameters) {
  return std::make_unique<Reduced>(parameters);
}

}  // namespace netsim
