// Recomputation inside windows of communication. With recompute: full each backward computes its layer's
// forward again first. Here a layer's recomputation begins while the communication of the layer behind it is
// in flight, in whose backward the GPU would be idle. The source is Lynx (Chen et al., "Optimizing Large
// Model Training through Overlapped Activation Recomputation", arXiv 2406.08756).
//
// A window of x that gets a recomputation of r saves min(r, x). Lynx searches the division among the windows
// with measured times. Here each window gets a share by its bytes, and a kernel costs the bytes that it moves
// and its FLOPs by `flops_per_byte`. The last layer of the body has the window of the logits' backward only,
// and none on a stage without logits.
//
// With communication: kept the forward keeps the results of its sums among tensor-parallel ranks, as Lynx
// does. The recomputation repeats neither them nor the GEMMs that only they need. Otherwise the communication
// of full recomputation remains, as in Megatron-LM.
#include <algorithm>
#include <utility>

#include "sim/training/strategy/chain_editor.h"
#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

struct WindowParameters {
  // A100: 312 TFLOP/s in half precision and 2,039 GB/s (NVIDIA's data sheet of the 80 GB version).
  double flops_per_byte = 153;
  bool keeps_sums = false;
};

// Returns whether a node sums results of tensor-parallel ranks, except those that divide an expert.
bool sums_up(const GraphNode& node) {
  return node.kind == GraphNode::Kind::collective && node.stream == Stream::tp && !node.sum.name.empty() &&
         node.sum.over != Dimension::expert_inner;
}

// Returns a recomputation without its sums and without the GEMMs before them, whose results nothing else
// needs.
Chain without_sums(const Chain& chain) {
  ChainEditor edit(chain);
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const ChainEditor::Numbers after = edit.waits_for(i);
    GraphNode node = chain[i];
    if (i + 1 < chain.size() && sums_up(chain[i + 1]) && chain[i + 1].after.empty()) {
      const auto gemm = std::find_if(node.operators.rbegin(), node.operators.rend(),
                                     [](const Operator& op) { return op.linear; });
      if (gemm != node.operators.rend()) node.operators.erase(std::prev(gemm.base()), node.operators.end());
    }
    const bool removed = sums_up(node) || (node.operators.empty() && !chain[i].operators.empty());
    if (removed) {
      edit.stands(i, after);
    } else {
      edit.stands(i, edit.add(std::move(node), after));
    }
  }
  return edit.finish();
}
// Returns the bytes of the results of these sums on one rank.
Bytes bytes_of_sums(const Chain& chain, std::int64_t ranks) {
  Bytes bytes = 0;
  for (const GraphNode& node : chain) {
    if (sums_up(node))
      bytes += node.collective == CollectiveKind::reduce_scatter ? node.bytes / ranks : node.bytes;
  }
  return bytes;
}

// Returns the chain with each operator in a node of its own, so that windows can get parts of it.
Chain by_operators(const Chain& chain) {
  Chain parts;
  std::vector<std::size_t> last;  // by node of `chain`: index of its last part
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const GraphNode& node = chain[i];
    const std::size_t count = node.operators.empty() ? 1 : node.operators.size();
    for (std::size_t k = 0; k < count; ++k) {
      GraphNode& part = parts.emplace_back(node);
      if (count > 1) {
        part.operators = {node.operators[k]};
        part.name = part.work.name = node.name + "." + node.operators[k].name;
      }
      part.after.clear();
      for (const std::uint32_t back : node.after) {
        if (k > 0) break;
        const std::size_t at = parts.size() - 1;
        part.after.push_back(static_cast<std::uint32_t>(back > i ? at + 1 : at - last[i - back]));
      }
    }
    last.push_back(parts.size() - 1);
  }
  return parts;
}

class RecomputeWindows final : public Strategy {
 public:
  RecomputeWindows(const WindowParameters& p, ConfigNode where) : p_(p), where_(std::move(where)) {}

  StrategyOrder order() const override {
    return {.after = {"full_recomputation"}, .before = {"pipeline_parallel"}};
  }
  void check(const JobShape& job) const override {
    if (job.recompute != Recompute::full)
      job.key("recompute")
          .fail("has to be full with recompute_windows, which moves whole layers' recomputations");
    if (p_.keeps_sums && job.gives("parallel", "tensor_overlap")) {
      job.key("parallel", "tensor_overlap")
          .fail("cuts the sums of a forward: no recompute_windows with communication: kept beside it");
    }
    if (job.sub_batches > 1)
      where_.fail("sub_batches fill the windows of communication already: no recompute_windows beside it");
    if (job.plan->pairs()) {
      job.key("parallel", "schedule")
          .fail("forwards fill the windows of communication of backwards already: no recompute_windows");
    }
  }
  std::vector<std::string> notes(const JobShape& job) const override {
    if (job.tensor > 1 || job.context > 1 || job.expert > 1) return {};
    return {"recompute_windows changes nothing: no rank communicates within a backward of '" + job.name +
            "' (parallel.tensor, context, expert)"};
  }
  void apply(TrainingGraph& graph, const JobShape&) const override {
    for (LayerGraph& layer : graph.layers) {
      if (p_.keeps_sums) {
        layer.kept_sums = bytes_of_sums(layer.recompute, graph.mesh.size("tp"));
        layer.recompute = without_sums(layer.recompute);
      }
      layer.recompute = by_operators(layer.recompute);
    }
    graph.recompute_cost = [sharding = graph.sharding,
                            flops_per_byte = p_.flops_per_byte](const GraphNode& node) {
      double cost = 0;
      for (const Operator& op : node.operators) {
        const Kernel kernel = kernel_of(op, sharding);
        cost += static_cast<double>(kernel.bytes);
        if (kernel.kind == Kernel::Kind::memory) continue;
        cost += 2.0 * static_cast<double>(kernel.m) * static_cast<double>(kernel.n) *
                static_cast<double>(kernel.k) * static_cast<double>(kernel.batch) / flops_per_byte;
      }
      return cost;
    };
  }

 private:
  WindowParameters p_;
  ConfigNode where_;
};

const Registration<Strategy> kRecomputeWindows{
    "recompute_windows",
    "recomputations run while a backward's communication is in flight (Lynx); needs recompute: full",
    Parameters<WindowParameters>()
        .real("flops_per_byte", &WindowParameters::flops_per_byte, {1, 10'000},
              "FLOPs that a GPU computes in the time of a byte from its memory; it weighs the kernels that "
              "are divided among windows; 153: A100")
        .choice("communication", &WindowParameters::keeps_sums, {{"repeated", false}, {"kept", true}},
                "whether a recomputation sums up among tensor-parallel ranks again (Megatron-LM), or the "
                "forward keeps the results of its sums (Lynx)"),
    [](const WindowParameters& p, const ConfigNode& where) {
      return std::make_unique<RecomputeWindows>(p, where);
    }};

}  // namespace
}  // namespace netsim
