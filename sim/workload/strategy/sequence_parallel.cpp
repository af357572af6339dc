#include <algorithm>
#include <utility>

#include "sim/workload/strategy/strategies.h"

namespace netsim {
namespace {

// Cuts what a node computes where something has to be gathered.
class Cut {
 public:
  // Groups: that divides the sequence, and that divides the experts' inner dimension.
  Cut(const GraphNode& node, const Sharding& sharding, std::uint32_t group, std::uint32_t experts_group,
      std::string direction, Chain& out)
      : node_(node),
        sharding_(sharding),
        group_(group),
        experts_group_(experts_group),
        direction_(std::move(direction)),
        out_(out) {}

  // Returns how many nodes behind the one that completes what is summed up next stand.
  std::uint32_t make() {
    for (std::size_t i = 0; i < node_.operators.size(); ++i) {
      const Operator& op = node_.operators[i];
      if (gathers(op) && (!op.gathers->kept || i == 0)) {
        flush();
        out_.push_back(gather(op));
      }
      const bool beside = i + 1 < node_.operators.size() && gathers_kept(node_.operators[i + 1]);
      if (beside) {
        flush();
        out_.push_back(gather(node_.operators[i + 1]));
        operators_.push_back(op);
        flush({2});
        behind_ = 0;
        after_ = {1, 2};
        continue;
      }
      operators_.push_back(op);
    }
    flush();
    return behind_;
  }

 private:
  static bool of_experts(const Operator& op) { return op.gathers->over == Dimension::expert_inner; }
  bool gathers(const Operator& op) const {
    return op.gathers && (!of_experts(op) || sharding_.parts(Dimension::expert_inner) > 1);
  }
  static bool gathers_kept(const Operator& op) { return op.gathers && op.gathers->kept; }

  void flush(std::vector<std::uint32_t> after = {}) {
    if (operators_.empty()) return;
    GraphNode piece;
    piece.name = node_.name + "." + operators_.front().name;
    piece.work.name = piece.name;
    const bool only_weights = std::all_of(operators_.begin(), operators_.end(),
                                          [](const Operator& op) { return op.weight_gradient; });
    behind_ = only_weights ? behind_ + 1 : 0;
    piece.operators = std::exchange(operators_, {});
    piece.rows_plus_one = node_.rows_plus_one;
    piece.after = after.empty() ? std::exchange(after_, {}) : std::move(after);
    out_.push_back(std::move(piece));
  }

  GraphNode gather(const Operator& op) const {
    GraphNode made;
    made.kind = GraphNode::Kind::collective;
    made.name = (of_experts(op) ? "etp_gather_" : "tp_gather_") + (op.gathers->kept ? "input" : direction_);
    made.collective = CollectiveKind::all_gather;
    made.stream = Stream::tp;
    made.group = of_experts(op) ? experts_group_ : group_;
    made.bytes = sharding_.local(op.gathers->tensor) * operand_bits(op.precision) / 8;
    if (of_experts(op) && node_.rows_plus_one != 0) {
      made.rows_plus_one = node_.rows_plus_one;
      made.row_bytes = made.bytes / sharding_.local(op.gathers->tensor.front());
    }
    made.weight_gradient = op.weight_gradient;
    return made;
  }

  const GraphNode& node_;
  const Sharding& sharding_;
  std::uint32_t group_, experts_group_;
  std::string direction_;
  Chain& out_;
  std::vector<Operator> operators_;
  std::vector<std::uint32_t> after_;
  std::uint32_t behind_ = 0;
};

class SequenceParallel final : public Strategy {
 public:
  void apply(TrainingGraph& graph) const override {
    if (graph.mesh.size("tp") == 1) return;
    graph.sharding.divide(Dimension::sequence, graph.mesh.size("tp"));
    const std::uint32_t group = graph.builder.group(graph.mesh.along({"tp"}));
    const bool of_experts = graph.mesh.size("etp") > 1;
    const std::uint32_t experts = of_experts ? graph.builder.group(graph.mesh.along({"etp"})) : group;
    for (LayerGraph& layer : graph.layers) {
      layer.forward = rewritten(layer.forward, "forward", graph.sharding, group, experts);
      layer.backward = rewritten(layer.backward, "backward", graph.sharding, group, experts);
    }
  }

 private:
  static Chain rewritten(const Chain& chain, const char* direction, const Sharding& sharding,
                         std::uint32_t group, std::uint32_t experts_group) {
    Chain result;
    std::uint32_t behind = 0;
    for (const GraphNode& node : chain) {
      if (node.kind == GraphNode::Kind::compute) {
        behind = Cut(node, sharding, group, experts_group, direction, result).make();
        continue;
      }
      result.push_back(node);
      if (node.sum.by_token) result.back().collective = CollectiveKind::reduce_scatter;
      if (behind > 0) result.back().after = {behind + 1};
      behind = 0;
    }
    return result;
  }
};

// Parameters that each rank has whole while it computes a part of the tokens only. Those of routed experts
// have copies of their own.
std::int64_t whole_parameters(const LayerGraph& layer, const Sharding& sharding) {
  std::int64_t parameters = 0;
  for (const Tensor& tensor : layer.parameters) {
    const bool divided = std::any_of(tensor.begin(), tensor.end(),
                                     [&](const Extent& e) { return sharding.parts(e.along) > 1; });
    if (!divided && !of_routed_experts(tensor)) parameters += sharding.local(tensor);
  }
  return parameters;
}

class SequenceGradients final : public Strategy {
 public:
  void apply(TrainingGraph& graph) const override {
    if (graph.mesh.size("tp") == 1) return;
    for (StageGraph& stage : graph.stages) {
      std::int64_t parameters = 0;
      for (const ChunkGraph& chunk : stage.chunks) {
        for (const std::uint32_t layer : chunk.layers) {
          if (layer != TrainingGraph::kFirst)
            parameters += whole_parameters(graph.layers[layer], graph.sharding);
        }
      }
      GraphNode node;
      node.kind = GraphNode::Kind::collective;
      node.name = "tp_norm_gradients";
      node.group = graph.builder.group(graph.mesh.along({"tp"}));
      node.bytes = parameters * graph.model.gradient_bytes;
      if (node.bytes == 0) continue;
      stage.add_finish(std::move(node));
      stage.finished = {static_cast<std::uint32_t>(stage.finish.size())};
    }
  }
};

}  // namespace

std::unique_ptr<Strategy> sequence_parallel() { return std::make_unique<SequenceParallel>(); }
std::unique_ptr<Strategy> sequence_gradients() { return std::make_unique<SequenceGradients>(); }

}  // namespace netsim
