// Sequence parallelism beside tensor parallelism (Korthikanti et al., arXiv 2205.05198). Between the parts
// that tensor parallelism divides, each rank of axis "tp" computes its part of the tokens. An all-reduce
// becomes a reduce-scatter, and an operator that needs all tokens gathers them.
//
// As in Megatron-LM, the layer's input is gathered again for the gradients of weights, while the gradient of
// the input is computed. The reduce-scatter of that gradient runs beside the gradients of weights.
//
// sequence_gradients all-reduces over "tp" the gradients of parameters that each rank computed for its part
// of the tokens only (norms, biases). It does so when all other gradients are complete (Megatron-LM's
// finalize_model_grads). A job with layer_optimizer does so bucket by bucket.
#include <algorithm>
#include <utility>

#include "sim/training/strategy/chain_editor.h"
#include "sim/training/strategy/replicas.h"
#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

// Cut: cuts the computation of a node where something has to be gathered.
class Cut {
 public:
  using Number = ChainEditor::Number;
  using Numbers = ChainEditor::Numbers;

  // Groups: the groups that divide the sequence and the experts' inner dimension.
  struct Groups {
    std::uint32_t sequence = 0, experts = 0;
  };

  Cut(const GraphNode& node, Numbers after, const Sharding& sharding, Groups groups, std::string direction,
      ChainEditor& out)
      : node_(node),
        sharding_(sharding),
        groups_(groups),
        direction_(std::move(direction)),
        out_(out),
        after_(std::move(after)),
        completes_(after_.front()) {}

  // Returns the node that completes everything but the gradients of weights.
  Number make() {
    for (std::size_t i = 0; i < node_.operators.size(); ++i) {
      const Operator& op = node_.operators[i];
      if (gathers(op) && (!op.gathers->kept || i == 0)) {
        flush();
        after_ = {out_.add(gather(op), after_)};
      }
      if (i + 1 == node_.operators.size() || !gathers_kept(node_.operators[i + 1])) {
        operators_.push_back(op);
        continue;
      }
      // The gather for the next operator runs beside this operator.
      flush();
      const Number gathered = out_.add(gather(node_.operators[i + 1]), after_);
      operators_.push_back(op);
      flush();
      after_.push_back(gathered);
    }
    flush();
    return completes_;
  }

 private:
  static bool of_experts(const Operator& op) { return op.gathers->over == Dimension::expert_inner; }
  bool gathers(const Operator& op) const {
    return op.gathers && (!of_experts(op) || sharding_.parts(Dimension::expert_inner) > 1);
  }
  static bool gathers_kept(const Operator& op) { return op.gathers && op.gathers->kept; }

  void flush() {
    if (operators_.empty()) return;
    GraphNode piece;
    piece.name = node_.name + "." + operators_.front().name;
    piece.work.name = piece.name;
    const bool only_weights = std::all_of(operators_.begin(), operators_.end(),
                                          [](const Operator& op) { return op.weight_gradient; });
    piece.operators = std::exchange(operators_, {});
    piece.rows_plus_one = node_.rows_plus_one;
    after_ = {out_.add(std::move(piece), after_)};
    if (!only_weights) completes_ = after_.front();
  }

  GraphNode gather(const Operator& op) const {
    GraphNode made;
    made.kind = GraphNode::Kind::collective;
    made.name = (of_experts(op) ? "etp_gather_" : "tp_gather_") + (op.gathers->kept ? "input" : direction_);
    made.collective = CollectiveKind::all_gather;
    made.stream = Stream::tp;
    made.group = of_experts(op) ? groups_.experts : groups_.sequence;
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
  Groups groups_;
  std::string direction_;
  ChainEditor& out_;
  std::vector<Operator> operators_;
  Numbers after_;     // the nodes that the next one waits for
  Number completes_;  // the last node that computes more than gradients of weights
};

struct SequenceParameters {
  bool sequence = false;
};

class SequenceParallel final : public Strategy {
 public:
  explicit SequenceParallel(const SequenceParameters& p) : p_(p) {}

  StrategyOrder order() const override {
    return {.after = {"tensor_parallel"}, .before = {"full_recomputation", "selective_recomputation"}};
  }
  void describe(JobShape& job) const override { job.sequence = p_.sequence; }
  bool takes_part(const JobShape&) const override { return p_.sequence; }
  void check(const JobShape& job) const override {
    if (!p_.sequence) return;
    const std::string refusal = job.model->refuse(Division::tensor);
    if (!refusal.empty()) job.key("parallel", "sequence").fail(refusal);
    for (const auto& [key, value] : job.model->sequences())
      job.require_divides("tensor", job.tensor, "model." + key, value);
  }
  void divide(const Mesh& mesh, Sharding& sharding) const override {
    sharding.divide(Dimension::sequence, mesh.size("tp"));
  }
  void apply(TrainingGraph& graph, const JobShape&) const override {
    if (graph.mesh.size("tp") == 1) return;
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
    ChainEditor edit(chain);
    for (std::size_t i = 0; i < chain.size(); ++i) {
      GraphNode node = chain[i];
      const ChainEditor::Numbers after = edit.waits_for(i);
      if (node.kind == GraphNode::Kind::compute && !node.core) {
        edit.stands(i, Cut(node, after, sharding, {group, experts_group}, direction, edit).make());
        continue;
      }
      if (node.sum.by_token) node.collective = CollectiveKind::reduce_scatter;
      edit.stands(i, edit.add(std::move(node), after));
    }
    return edit.finish();
  }

  SequenceParameters p_;
};

class SequenceGradients final : public Strategy {
 public:
  StrategyOrder order() const override {
    return {.after = {"data_parallel", "local_steps", "parameter_servers", "sharded_replicas"}};
  }
  bool takes_part(const JobShape& job) const override { return job.sequence && !job.cuts_optimizer; }
  void apply(TrainingGraph& graph, const JobShape&) const override {
    if (graph.mesh.size("tp") == 1) return;
    for (StageGraph& stage : graph.stages) {
      std::int64_t parameters = 0;
      for (const ChunkGraph& chunk : stage.chunks) {
        for (const std::uint32_t layer : chunk.layers) {
          if (layer == TrainingGraph::kFirst) continue;
          for (const Tensor& tensor : graph.layers[layer].parameters)
            parameters += whole_parameters(tensor, graph.sharding);
        }
      }
      if (parameters == 0) continue;
      stage.add_finish(whole_sum(graph, parameters));
      stage.finished = {static_cast<std::uint32_t>(stage.finish.size())};
    }
  }
};

const Registration<Strategy> kSequenceParallel{
    "sequence_parallel", "tensor-parallel ranks divide the sequence where they do not divide the work",
    ptdp_keys(in_section(
        kParallelSection,
        Parameters<SequenceParameters>().flag(
            "sequence", &SequenceParameters::sequence,
            "sequence parallelism: what tensor parallelism leaves whole is divided along the tokens"))),
    [](const SequenceParameters& p, const ConfigNode&) { return std::make_unique<SequenceParallel>(p); }};
const Registration<Strategy> kSequenceGradients{
    "sequence_gradients",
    "with parallel.sequence: sums the gradients of what each rank computed for its tokens only",
    ptdp_keys(Parameters<NoParameters>()),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<SequenceGradients>(); }};

}  // namespace
}  // namespace netsim
