// Sums in slices before the boundaries of pipeline stages. Between stages each of t tensor-parallel ranks
// sends 1/t of the tensor, which the receivers gather (scatter_gather). So the last sum of a stage need not
// be whole on every rank. It becomes a reduce-scatter, and what follows it computes a slice. The source is
// CoCoNet (Jangda et al., "Breaking the Computation and Communication Abstraction Barrier in Distributed
// Machine Learning Workloads", ASPLOS 2022, section 6.3; code: parasailteam/coconet).
//
// For a tensor of n bytes NICs carry n/t, as before. A reduce-scatter and a gather move 2 (t - 1)/t n within
// the stages. An all-reduce and a gather move 3 (t - 1)/t n.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

// SlicedChain: a chain whose last sum is left in slices.
class SlicedChain {
 public:
  explicit SlicedChain(std::int64_t ranks) : ranks_(ranks) {}

  // Does nothing where the last communication is no sum of tokens, or something behind it needs all tokens.
  void slice(Chain& chain) const {
    const auto talks = [](const GraphNode& node) { return communicates(node); };
    const auto last = std::find_if(chain.rbegin(), chain.rend(), talks);
    if (last == chain.rend() || last->kind != GraphNode::Kind::collective ||
        last->collective != CollectiveKind::all_reduce || last->stream != Stream::tp || !last->sum.by_token)
      return;
    const auto behind = last.base();
    if (!std::all_of(behind, chain.end(), [&](const GraphNode& node) { return may_slice(node); })) return;
    last->collective = CollectiveKind::reduce_scatter;
    for (auto node = behind; node != chain.end(); ++node) {
      for (Operator& op : node->operators) slice(op);
    }
  }

 private:
  // Gradients of weights do not depend on the sum.
  static bool may_slice(const GraphNode& node) {
    return std::all_of(node.operators.begin(), node.operators.end(), [](const Operator& op) {
      return op.weight_gradient || (op.kind == Kernel::Kind::memory && by_token(op));
    });
  }
  static bool by_token(const Operator& op) {
    return std::all_of(op.traffic.begin(), op.traffic.end(), [](const Traffic& traffic) {
      return std::any_of(traffic.tensor.begin(), traffic.tensor.end(),
                         [](const Extent& extent) { return extent.along == Dimension::sequence; });
    });
  }
  void slice(Operator& op) const {
    if (op.weight_gradient) return;
    for (Traffic& traffic : op.traffic) {
      for (Extent& extent : traffic.tensor) {
        if (extent.along == Dimension::sequence) extent.size /= ranks_;
      }
    }
  }

  std::int64_t ranks_;
};

class SlicedBoundaries final : public Strategy {
 public:
  explicit SlicedBoundaries(ConfigNode where) : where_(std::move(where)) {}

  StrategyOrder order() const override {
    return {.after = {"pipeline_parallel"},
            .before = {"expert_fetch", "reduced_parameters", "data_parallel", "local_steps",
                       "parameter_servers", "sharded_replicas"}};
  }
  void check(const JobShape& job) const override {
    if (job.sequence)
      where_.fail("sequence parallelism leaves all sums in slices already: no sliced_boundaries beside it");
    if (!job.scatters_boundaries)
      job.key("scatter_gather")
          .fail("has to be true with sliced_boundaries: each rank sends the slice that it has");
    if (job.gives("parallel", "stages"))
      job.key("parallel", "stages")
          .fail("stages with other degrees exchange other parts: no sliced_boundaries");
    if (job.model->sequence() * job.sub_batch() / job.context % job.tensor != 0) {
      job.key("parallel", "tensor")
          .fail("has to divide the tokens of a microbatch and rank with sliced_boundaries, which cuts them");
    }
  }
  std::vector<std::string> notes(const JobShape& job) const override {
    if (job.tensor > 1 && job.pipeline > 1) return {};
    return {"sliced_boundaries changes nothing: '" + job.name +
            "' has no stages with tensor parallelism (parallel.tensor, pipeline)"};
  }
  void apply(TrainingGraph& graph, const JobShape&) const override {
    if (graph.mesh.size("tp") == 1) return;
    const PipelinePlacement& placement = graph.plan->placement;
    std::map<std::pair<std::uint32_t, int>, std::uint32_t> made;  // by layer and ends: the sliced layer
    for (std::uint32_t s = 0; s < placement.stages(); ++s) {
      for (std::uint32_t c = 0; c < placement.chunks(s); ++c) {
        const auto [route, part] = placement.held(s, c);
        const bool sends_forward = part + 1 < placement.parts() && placement.at(route, part + 1).stage != s;
        const bool sends_backward = part > 0 && placement.at(route, part - 1).stage != s;
        slice(graph, graph.stages[s].chunks[c].layers, sends_forward, sends_backward, made);
      }
    }
  }

 private:
  static void slice(TrainingGraph& graph, std::vector<std::uint32_t>& layers, bool forward, bool backward,
                    std::map<std::pair<std::uint32_t, int>, std::uint32_t>& made) {
    const auto replace = [&](std::uint32_t& layer, int ends) {
      if (ends == 0 || !graph.layers[layer].repeats) return;
      const auto [it, fresh] =
          made.try_emplace({layer, ends}, static_cast<std::uint32_t>(graph.layers.size()));
      if (fresh) graph.layers.push_back(sliced(graph.layers[layer], ends, graph.mesh.size("tp")));
      layer = it->second;
    };
    if (layers.empty()) return;
    if (layers.size() == 1)
      return replace(layers.front(), (forward ? kForward : 0) + (backward ? kBackward : 0));
    replace(layers.back(), forward ? kForward : 0);
    replace(layers.front(), backward ? kBackward : 0);
  }
  static LayerGraph sliced(LayerGraph layer, int ends, std::int64_t ranks) {
    const SlicedChain chain(ranks);
    if ((ends & kForward) != 0) {
      for (Chain* each : {&layer.forward, &layer.recompute, &layer.paired.forward, &layer.paired.recompute})
        chain.slice(*each);
    }
    if ((ends & kBackward) != 0) {
      for (Chain* each : {&layer.backward, &layer.input, &layer.paired.backward}) chain.slice(*each);
    }
    layer.name += "_sliced";
    return layer;
  }

  static constexpr int kForward = 1, kBackward = 2;
  ConfigNode where_;
};

const Registration<Strategy> kSlicedBoundaries{
    "sliced_boundaries",
    "the last sum of a pipeline stage is a reduce-scatter, because each tensor-parallel rank sends a slice "
    "(CoCoNet)",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode& where) { return std::make_unique<SlicedBoundaries>(where); }};

}  // namespace
}  // namespace netsim
