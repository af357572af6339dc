// Routing kernels: the kernels between the router's GEMM and the copies of tokens, as a framework runs them.
// The model has one kernel forward and one backward, as a fused router. Megatron-Core runs each operation of
// PyTorch by itself (topk_softmax_with_capacity(), permute(), switch_load_balancing_loss_func() and
// MoEAuxLossAutoScaler in megatron/core/transformer/moe/moe_utils.py; aux_loss_load_balancing() in
// router.py, version 0.10).
//
// Each of them reads and writes at most 8 bytes for each score of a token. With few experts they take as long
// as their launches. Those with a capacity for each expert are counted; without one there are a few less.
#include <array>
#include <utility>
#include <vector>

#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

enum class RoutingKernels : std::uint8_t { one, megatron_core };
struct RoutingKernelsParameters {
  RoutingKernels kernels = RoutingKernels::one;
};

// RoutingStep: kernels of one purpose. Each moves so many bytes for each score.
struct RoutingStep {
  const char* name;
  int kernels;
  std::int64_t bytes;
};

// Forward: top-k selects and sorts, softmax in fp32 and its conversion. Zeroes, copies and scatters make the
// table of probabilities (3) and the mask (5), which is summed by expert. Each expert then selects its
// capacity (2), which becomes a mask (4) of the probabilities (1). The loss has a softmax, sums and products,
// and is logged. Last, masked_select() finds the tokens of each expert in the transposed mask.
constexpr std::array<RoutingStep, 7> kRoutingForward{{{"router_top_k", 2, 6},
                                                      {"router_softmax", 2, 6},
                                                      {"router_scatter", 8, 4},
                                                      {"tokens_per_expert", 1, 1},
                                                      {"router_capacity", 7, 4},
                                                      {"balance_loss", 7, 8},
                                                      {"routing_selection", 8, 8}}};
// Backward: the loss' scale, product, expansion and softmax. Then mask, gathers and conversions, softmax,
// zeroes and the scatter into the selected scores, and the sum of both gradients.
constexpr std::array<RoutingStep, 5> kRoutingBackward{{{"balance_loss_backward", 5, 8},
                                                       {"router_capacity_backward", 2, 4},
                                                       {"router_softmax_backward", 5, 6},
                                                       {"router_top_k_backward", 2, 6},
                                                       {"router_gradients_sum", 1, 6}}};

// Appends the kernels that stand for the model's one, whose traffic is that of the scores.
template <class Steps>
void append_steps(std::vector<Operator>& made, const Operator& op, const Steps& steps) {
  for (const RoutingStep& step : steps) {
    for (int i = 0; i < step.kernels; ++i) {
      Operator kernel = op;
      kernel.name = step.name;
      kernel.traffic.front().bytes_per_element = step.bytes;
      if (i > 0 || &step != &steps.front()) kernel.saved.clear();
      made.push_back(std::move(kernel));
    }
  }
}

std::vector<Operator> with_routing_kernels(const std::vector<Operator>& operators) {
  std::vector<Operator> made;
  for (const Operator& op : operators) {
    if (op.name == "router_top_k") {
      append_steps(made, op, kRoutingForward);
    } else if (op.name == "router_top_k_backward") {
      append_steps(made, op, kRoutingBackward);
    } else {
      made.push_back(op);
    }
  }
  return made;
}

class RoutingByFramework final : public Strategy {
 public:
  explicit RoutingByFramework(const RoutingKernelsParameters& p) : p_(p) {}

  // The kernels are divided as the one is for which they stand.
  StrategyOrder order() const override {
    return {.after = {"module_recomputation", "fused_accumulation", "reduced_precision", "tensor_copies"},
            .before = {"context_parallel", "tensor_parallel"}};
  }
  bool takes_part(const JobShape&) const override { return p_.kernels != RoutingKernels::one; }
  void check(const JobShape& job) const override {
    if (takes_part(job) && !job.has_experts())
      job.key("routing_kernels").fail("no layer of the model has routed experts");
  }
  void apply(TrainingGraph& graph, const JobShape&) const override {
    for (LayerGraph& layer : graph.layers) {
      for (Chain* chain : {&layer.forward, &layer.backward}) {
        for (GraphNode& node : *chain) node.operators = with_routing_kernels(node.operators);
      }
    }
  }

 private:
  RoutingKernelsParameters p_;
};

const Registration<Strategy> kRoutingByFramework{
    "routing_kernels", "kernels between the router's GEMM and the copies of tokens, as a framework runs them",
    ptdp_keys(Parameters<RoutingKernelsParameters>().choice(
        "routing_kernels", &RoutingKernelsParameters::kernels,
        {{"one", RoutingKernels::one}, {"megatron_core", RoutingKernels::megatron_core}},
        "kernels that choose experts for tokens: one, forward and backward, as a fused router; or "
        "megatron_core, each operation of PyTorch by itself, with capacities and a loss that balances "
        "experts")),
    [](const RoutingKernelsParameters& p, const ConfigNode&) {
      return std::make_unique<RoutingByFramework>(p);
    }};

}  // namespace
}  // namespace netsim
