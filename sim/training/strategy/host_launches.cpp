// Host launches: a thread of each rank's process launches the kernels of its forwards, one after the other.
// The host runs ahead of the GPU as long as nothing makes it wait. Megatron-Core does so twice a layer:
// permute() and unpermute() call masked_select() (megatron/core/transformer/moe/moe_utils.py, version 0.10).
// The host reads the size of its result from the GPU. The GPU has then run out of kernels, and waits until
// the host has come to the next one. A computation of several kernels begins with its first one. The host
// launches the others meanwhile, and what follows waits for them.
//
// The host needs `kernel` for each kernel of PyTorch. The default, 8 us, was measured beside an H100:
// additions of one element in one stream. It needs `module` for each GEMM of weights, whose module checks and
// prepares more: 115 us for TEColumnParallelLinear (Transformer Engine, pull request 1191). In FP8 it takes
// more than twice as long (issue 761), of which twice is counted.
//
// The backward synchronizes nowhere and is longer than a forward, so the host is assumed to be ahead of it.
#include <algorithm>
#include <utility>
#include <vector>

#include "sim/training/strategy/chain_editor.h"
#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

constexpr std::uint32_t kLaunchQueue = 4;  // queue of stream offload; optimizer_offload.cpp has the others

struct HostLaunchParameters {
  Time kernel = 8 * kMicrosecond, module = 115 * kMicrosecond, reduced_module = 230 * kMicrosecond;
};

// ForwardLaunches: adds the host's work to the forwards of a graph.
class ForwardLaunches {
 public:
  ForwardLaunches(const HostLaunchParameters& p, const Sharding& sharding) : p_(p), sharding_(sharding) {}

  Chain launched(const Chain& chain) const {
    ChainEditor edit(chain);
    for (std::size_t i = 0; i < chain.size(); ++i) {
      ChainEditor::Numbers after = edit.waits_for(i);
      for (GraphNode& part : parts(chain[i])) {
        if (part.kind == GraphNode::Kind::compute || communicates(part)) {
          const ChainEditor::Numbers before{ChainEditor::kBefore};
          const bool waits = synchronizes(part);
          const Launches launches = of(part);
          after.push_back(edit.add(host(launches.first, !waits), waits ? after : before));
          if (launches.others > 0) edit.add(host(launches.others, true), before);
        }
        after = {edit.add(std::move(part), after)};
      }
      edit.stands(i, after);
    }
    return edit.finish();
  }

 private:
  // Returns whether the host waits for the GPU before it launches the node: it makes or sums copies.
  static bool synchronizes(const GraphNode& node) {
    return !node.operators.empty() && node.operators.front().of_copies;
  }
  // Returns the node, or the part before the kernels that the host waits before, and those.
  static std::vector<GraphNode> parts(const GraphNode& node) {
    const auto copies = std::find_if(node.operators.begin(), node.operators.end(),
                                     [](const Operator& op) { return op.of_copies; });
    if (copies == node.operators.begin() || copies == node.operators.end()) return {node};
    std::vector<GraphNode> both{node, node};
    both[0].operators.assign(node.operators.begin(), copies);
    both[1].operators.assign(copies, node.operators.end());
    both[1].name += ".copies";
    both[1].work.name += ".copies";
    return both;
  }
  // Launches: the time that the host takes to launch a node's first kernel, and all others.
  struct Launches {
    Time first = 0, others = 0;
  };
  Launches of(const GraphNode& node) const {
    if (node.operators.empty()) return {p_.kernel, 0};
    Time sum = 0;
    for (const Operator& op : node.operators)
      sum += (op.one_by_one ? sharding_.local(op.batch) : 1) * of_kernel(op, node);
    const Time first = of_kernel(node.operators.front(), node);
    return {first, sum - first};
  }
  Time of_kernel(const Operator& op, const GraphNode& node) const {
    if (!op.linear) return p_.kernel;
    const std::int64_t pieces = std::max<std::int64_t>({1, op.pieces, node.pieces});
    return (op.precision == Precision::half ? p_.module : p_.reduced_module) / pieces;
  }
  static GraphNode host(Time duration, bool ahead) {
    GraphNode node;
    node.kind = GraphNode::Kind::host_launch;
    node.name = "host_launch";
    node.stream = Stream::offload;
    node.queue = kLaunchQueue;
    node.ahead = ahead;
    Kernel kernel;
    kernel.kind = Kernel::Kind::fixed;
    kernel.name = node.name;
    kernel.duration = duration;
    node.work = {node.name, {kernel}};
    return node;
  }

  const HostLaunchParameters& p_;
  const Sharding& sharding_;
};

class HostLaunches final : public Strategy {
 public:
  HostLaunches(const HostLaunchParameters& p, ConfigNode where) : p_(p), where_(std::move(where)) {}

  StrategyOrder order() const override {
    return {.after = {"tensor_parallel", "expert_parallel", "sequence_parallel", "tensor_overlap",
                      "expert_overlap", "column_slices", "full_recomputation", "selective_recomputation"},
            .before = {"pipeline_parallel"}};
  }
  double operations_of_layer(const JobShape&) const override { return 56; }
  void check(const JobShape& job) const override {
    if (!job.has_experts() || job.expert_exchange != ExpertExchange::all_to_all) {
      where_.fail(
          "host_launches needs routed experts and expert_exchange: all_to_all: nothing else makes the host "
          "wait for the GPU");
    }
    if (job.sub_batches > 1) where_.fail("host_launches has one forward at a time: no sub_batches beside it");
  }
  void apply(TrainingGraph& graph, const JobShape&) const override {
    const ForwardLaunches launches(p_, graph.sharding);
    for (LayerGraph& layer : graph.layers) layer.forward = launches.launched(layer.forward);
  }

 private:
  HostLaunchParameters p_;
  ConfigNode where_;
};

const Registration<Strategy> kHostLaunches{
    "host_launches",
    "the host launches the kernels of a forward one after the other, and waits for the GPU where tokens are "
    "routed (Megatron-Core 0.10)",
    Parameters<HostLaunchParameters>()
        .time("kernel", &HostLaunchParameters::kernel, {0, 1 * kSecond},
              "time that the host takes to launch a kernel of PyTorch")
        .time("module", &HostLaunchParameters::module, {0, 1 * kSecond},
              "time that the host takes for the GEMM of a weight matrix (Transformer Engine's Linear)")
        .time("reduced_module", &HostLaunchParameters::reduced_module, {0, 1 * kSecond},
              "the same in FP8 or FP4, with the casts"),
    [](const HostLaunchParameters& p, const ConfigNode& where) {
      return std::make_unique<HostLaunches>(p, where);
    }};

}  // namespace
}  // namespace netsim
