#include <utility>
#include <vector>

#include "sim/workload/strategy/strategies.h"

namespace netsim {
namespace {

class ReducedPrecision final : public Strategy {
 public:
  explicit ReducedPrecision(Precision precision) : precision_(precision) {}

  void apply(TrainingGraph& graph) const override {
    for (LayerGraph& layer : graph.layers) {
      for (Saved& saved : layer.saved) {
        const bool operand = saved.kind == Saved::Kind::operand || saved.kind == Saved::Kind::also_operand;
        if (operand) saved.bits_per_element = operand_bits(precision_);
      }
      for (Chain* chain : {&layer.forward, &layer.backward}) {
        for (GraphNode& node : *chain) reduce(node.operators);
      }
    }
  }

 private:
  void reduce(std::vector<Operator>& operators) const {
    std::vector<Operator> result;
    for (Operator& op : operators) {
      if (op.linear) {
        const bool written_so = !result.empty() && result.back().kind == Kernel::Kind::memory;
        if (!op.weight_gradient && !written_so) result.push_back(cast(op));
        op.precision = precision_;
      }
      result.push_back(std::move(op));
    }
    operators = std::move(result);
  }

  // Reads 2 bytes, writes the value and its transpose; before what is gathered.
  static Operator cast(const Operator& op) {
    const Dimension along = op.gathers ? Dimension::sequence : op.m.along;
    return memory_bound("cast", 4, {{op.m.size, along}, op.k});
  }

  Precision precision_;
};

}  // namespace

std::unique_ptr<Strategy> reduced_precision(Precision precision) {
  return std::make_unique<ReducedPrecision>(precision);
}

}  // namespace netsim
