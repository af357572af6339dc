// Context parallelism over axis "cp". Each rank holds its part of every sequence and computes everything that
// concerns a single token for its own tokens. Its queries attend to the keys and values of all ranks. A
// sequence is cut into twice as many chunks as ranks. A rank's part is one chunk from either end, so that
// causal attention is the same work on all ranks. Megatron-Core does so; Brandon et al. give the reason
// ("Striped Attention", arXiv 2311.09431).
//
// The exchange says how a rank gets the keys and values (stream cp).
// - ring: blocks of them go round a ring. Each is passed on while attention to it is computed. In the
//   backward, the gradients of the blocks go round with them (Liu et al., "Ring Attention", arXiv 2310.01889;
//   Transformer Engine's "p2p"). Transformer Engine's backward begins with the block that the forward ended
//   with. So cp - 1 transfers return a block and its gradient to their owner.
// - all_gather: all keys and values are gathered before the attention, forward and backward. Their gradients
//   are reduce-scattered after it (Dubey et al., "The Llama 3 Herd of Models", arXiv 2407.21783, section
//   3.3.2).
// - all_to_all: a rank gets the queries, keys and values of all tokens for a part of the heads. The output
//   goes back the same way (Jacobs et al., "DeepSpeed-Ulysses", arXiv 2309.14509).
// - hybrid: all_to_all over axis "cp_heads" and ring over axis "cp_tokens", which "cp" is made of (Fang and
//   Zhao, "USP", arXiv 2405.07719; Transformer Engine's "a2a+p2p").
#include <algorithm>
#include <utility>

#include "sim/training/strategy/chain_editor.h"
#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

// Bytes of an element of keys, values, queries, output and their gradients.
constexpr std::int64_t kElementBytes = 2;

// Attention: rewrites the attention of a chain.
class Attention {
 public:
  using Number = ChainEditor::Number;
  using Numbers = ChainEditor::Numbers;

  Attention(TrainingGraph& graph, ContextExchange exchange, bool forward)
      : sharding_(graph.sharding), forward_(forward), gathers_(exchange == ContextExchange::all_gather) {
    const bool hybrid = exchange == ContextExchange::hybrid;
    const std::string heads = hybrid ? "cp_heads" : "cp", tokens = hybrid ? "cp_tokens" : "cp";
    if (hybrid || exchange == ContextExchange::all_to_all) {
      by_heads_ = graph.mesh.size(heads);
      heads_group_ = graph.builder.group(graph.mesh.along({heads}));
    }
    if (hybrid || exchange == ContextExchange::ring) {
      ring_ = graph.mesh.size(tokens);
      next_ = graph.mesh.next(graph.builder, tokens, 1);
      before_ = graph.mesh.next(graph.builder, tokens, -1);
    }
    if (gathers_) {
      gathered_ = graph.mesh.size("cp");
      gather_group_ = graph.builder.group(graph.mesh.along({"cp"}));
    }
  }

  // Returns the bytes of other ranks' keys and values while a layer is computed, backward with their
  // gradients. A ring has two blocks, one in use and one that arrives; the other exchanges have all of them.
  Bytes buffers(const Chain& chain) const {
    Bytes most = 0;
    for (const GraphNode& node : isolate_core(chain)) {
      if (!node.core) continue;
      const AttentionCore core = *exchanged(node).operators.front().core;
      const Bytes block = bytes_of({&core.keys, &core.values});
      const Bytes held = (ring_ > 1 ? 2 : gathers_ ? gathered_ : 0) * block;
      most = std::max(most, forward_ ? held : 2 * held);
    }
    return most;
  }

  Chain rewritten(const Chain& chain) const {
    const Chain isolated = isolate_core(chain);
    ChainEditor edit(isolated);
    for (std::size_t i = 0; i < isolated.size(); ++i) {
      const GraphNode& node = isolated[i];
      const Numbers after = edit.waits_for(i);
      edit.stands(i, node.core ? attention(edit, node, after) : edit.add(node, after));
    }
    return edit.finish();
  }

 private:
  // Returns an extent after the exchange: tokens of all ranks of the inner group, and a part of the heads.
  Extent exchanged(Extent extent) const {
    if (extent.along == Dimension::tokens) extent.size *= by_heads_;
    if (extent.along == Dimension::heads) extent.size /= by_heads_;
    return extent;
  }
  void exchange(Tensor& tensor) const {
    for (Extent& extent : tensor) extent = exchanged(extent);
  }
  GraphNode exchanged(GraphNode node) const {
    for (Operator& op : node.operators) {
      for (Extent* extent : {&op.m, &op.n, &op.k, &op.batch}) *extent = exchanged(*extent);
      for (Traffic& traffic : op.traffic) exchange(traffic.tensor);
      for (Tensor* tensor : {&op.core->queries, &op.core->keys, &op.core->values, &op.core->output})
        exchange(*tensor);
    }
    return node;
  }

  Bytes bytes_of(std::initializer_list<const Tensor*> tensors) const {
    Bytes bytes = 0;
    for (const Tensor* tensor : tensors) bytes += kElementBytes * sharding_.local(*tensor);
    return bytes;
  }

  std::string named(const char* what) const {
    return std::string("cp_") + what + (forward_ ? "_forward" : "_backward");
  }
  static GraphNode collective(CollectiveKind kind, std::string name, std::uint32_t group, Bytes bytes) {
    GraphNode node;
    node.kind = GraphNode::Kind::collective;
    node.name = std::move(name);
    node.collective = kind;
    node.stream = Stream::cp;
    node.group = group;
    node.bytes = bytes;
    node.core = true;
    return node;
  }
  static GraphNode computation(const GraphNode& of, const char* name, std::vector<Traffic> traffic) {
    GraphNode node;
    node.name = of.name + "." + name;
    node.work.name = node.name;
    node.operators = {memory_bound(name, std::move(traffic))};
    node.core = true;
    return node;
  }

  Number attention(ChainEditor& edit, const GraphNode& whole, Numbers after) const {
    const AttentionCore& core = *whole.operators.front().core;
    const Bytes inputs = bytes_of({&core.queries, &core.keys, &core.values});
    const Bytes output = bytes_of({&core.output});
    const Bytes all_keys = gathered_ * bytes_of({&core.keys, &core.values});
    if (by_heads_ > 1) after = {edit.add(to_heads(forward_ ? inputs : output), after)};
    if (gathers_)
      after = {
          edit.add(collective(CollectiveKind::all_gather, named("gather"), gather_group_, all_keys), after)};
    const GraphNode node = exchanged(whole);
    Number done = ring_ == 1 ? edit.add(node, after)
                  : forward_ ? ring_forward(edit, node, after)
                             : ring_backward(edit, node, after);
    if (gathers_ && !forward_) {
      done = edit.add(collective(CollectiveKind::reduce_scatter, named("scatter"), gather_group_, all_keys),
                      {done});
    }
    if (by_heads_ > 1) done = edit.add(to_tokens(forward_ ? output : inputs), {done});
    return done;
  }
  GraphNode to_heads(Bytes bytes) const {
    return collective(CollectiveKind::all_to_all, named("to_heads"), heads_group_, bytes);
  }
  GraphNode to_tokens(Bytes bytes) const {
    return collective(CollectiveKind::all_to_all, named("to_tokens"), heads_group_, bytes);
  }

  // Messages go to the next rank and come from the one before; in the backward the other way.
  RingMessages ring() const {
    return {
        named("send"), named("receive"), Stream::cp, forward_ ? next_ : before_, forward_ ? before_ : next_,
        true};
  }

  // Passes each block of keys and values on while attention to it is computed. Then sums the blocks' outputs
  // in half precision: the first is read and written, each other one read and added.
  Number ring_forward(ChainEditor& edit, const GraphNode& node, Numbers held) const {
    const AttentionCore& core = *node.operators.front().core;
    const Bytes block = bytes_of({&core.keys, &core.values});
    Number computed = 0;
    for (std::int64_t step = 0; step < ring_; ++step) {
      const Numbers now = held;
      if (step + 1 < ring_) held = {pass_on(edit, ring(), block, now)};
      computed = edit.add(node, now);
    }
    return edit.add(computation(node, "attention_correction", {{4 + 6 * (ring_ - 1), core.output}}),
                    {computed});
  }

  // The blocks begin where the forward left them and end with their owners. From the second step on, the sum
  // of their gradients so far goes with them. It is complete a step after the blocks.
  Number ring_backward(ChainEditor& edit, const GraphNode& node, Numbers held) const {
    const AttentionCore& core = *node.operators.front().core;
    const Bytes block = bytes_of({&core.keys, &core.values});
    Number computed = 0;
    for (std::int64_t step = 0; step < ring_; ++step) {
      const Bytes bytes = (step + 1 < ring_ ? block : 0) + (step > 0 ? block : 0);
      Numbers ready = held;
      if (step > 0) ready.push_back(computed);
      const Number received = pass_on(edit, ring(), bytes, ready);
      computed = edit.add(node, held);
      if (step > 0) {
        computed = edit.add(computation(node, "attention_gradient_sum",
                                        {{6, core.queries}, {6, core.keys}, {6, core.values}}),
                            {computed, received});
      }
      held = {received};
    }
    return computed;
  }

  const Sharding& sharding_;
  bool forward_, gathers_;
  std::int64_t by_heads_ = 1, ring_ = 1, gathered_ = 1;
  std::uint32_t heads_group_ = 0, gather_group_ = 0;
  PeerExpression next_, before_;  // neighbours on the ring
};

bool has_core(const std::vector<ModelPart>& parts, bool fused) {
  return std::any_of(parts.begin(), parts.end(), [fused](const ModelPart& part) {
    return std::any_of(part.operators.begin(), part.operators.end(), [fused](const Operator& op) {
      return op.core && (!fused || op.kind == Kernel::Kind::attention);
    });
  });
}

// Returns why a model cannot be trained with this exchange, in words for the user; "" if it can.
std::string refuse_context(const Model& model, ContextExchange exchange) {
  const bool ring = exchange == ContextExchange::ring || exchange == ContextExchange::hybrid;
  for (const ModelLayer& kind : model.kinds) {
    if (!has_core(kind.forward, false)) return "a layer of this model does not say what its attention reads";
    if (ring && !has_core(kind.forward, true))
      return "a ring needs an attention that is one kernel, which this model's is not: context_exchange may "
             "be "
             "all_gather or all_to_all";
  }
  return {};
}

struct ContextParameters {
  std::int64_t context = 1;
  ContextExchange exchange = ContextExchange::ring;
  std::int64_t heads = 2;
};

class ContextParallel final : public Strategy {
 public:
  explicit ContextParallel(const ContextParameters& p) : p_(p) {}

  StrategyOrder order() const override { return {.before = {"tensor_parallel"}}; }
  void describe(JobShape& job) const override {
    job.context = p_.context;
    job.context_exchange = p_.exchange;
    job.context_heads_given = p_.heads;
  }
  double operations_of_layer(const JobShape&) const override {
    return 10.0 * static_cast<double>(p_.context);
  }
  void check(const JobShape& job) const override {
    if (p_.context == 1) return;
    const std::string refusal = job.model->refuse(Division::context);
    if (!refusal.empty()) job.key("parallel", "context").fail(refusal);
    check_sequence(job);
    check_heads(job);
    const std::string refused = refuse_context(job.model->make(1, 2), p_.exchange);
    if (!refused.empty()) job.key("parallel", "context_exchange").fail(refused);
    check_ring(job);
  }
  void divide(const Mesh& mesh, Sharding& sharding) const override {
    for (const Dimension dimension : {Dimension::tokens, Dimension::sequence})
      sharding.divide(dimension, mesh.size("cp"));
    if (p_.exchange == ContextExchange::ring) sharding.divide(Dimension::keys, mesh.size("cp"));
    if (p_.exchange == ContextExchange::hybrid) sharding.divide(Dimension::keys, mesh.size("cp_tokens"));
  }
  void apply(TrainingGraph& graph, const JobShape&) const override {
    if (graph.mesh.size("cp") == 1) return;
    const Attention forward(graph, p_.exchange, true), backward(graph, p_.exchange, false);
    for (LayerGraph& layer : graph.layers) {
      layer.forward_buffers = forward.buffers(layer.forward);
      layer.backward_buffers = backward.buffers(layer.backward);
      layer.forward = forward.rewritten(layer.forward);
      layer.backward = backward.rewritten(layer.backward);
    }
  }

 private:
  // Each rank has two chunks of a sequence (Transformer Engine).
  void check_sequence(const JobShape& job) const {
    const ConfigNode& key = job.key("parallel", "context");
    const std::int64_t sequence = job.model->sequence();
    if (sequence % (2 * p_.context) != 0) {
      key.fail("model.sequence (" + std::to_string(sequence) +
               ") cannot be divided by 2 x context: each rank has two chunks of it");
    }
    if (job.sequence && sequence % (p_.context * job.tensor) != 0) {
      key.fail("model.sequence (" + std::to_string(sequence) + ") cannot be divided by context x tensor (" +
               std::to_string(p_.context * job.tensor) + ")");
    }
  }
  void check_heads(const JobShape& job) const {
    const bool hybrid = job.hybrid_context();
    const std::int64_t heads = job.context_heads();
    if (hybrid && (p_.context % heads != 0 || p_.context == heads)) {
      job.key("parallel", "context_heads")
          .fail("context_heads (" + std::to_string(heads) +
                ") has to be a divisor of context, and less than it: " + std::to_string(p_.context));
    }
    for (const auto& [name, value] : job.model->divided()) {
      if (name != "heads" && name != "groups") continue;
      if (value % (job.tensor * heads) == 0) continue;
      job.key("parallel", "context_exchange")
          .fail("model." + name + " (" + std::to_string(value) + ") cannot be divided by tensor x " +
                (hybrid ? "context_heads (" : "context (") + std::to_string(job.tensor * heads) + ")");
    }
  }
  // Checks that a ring lies along a plain axis. A rank on an axis that experts split into two has no next
  // rank.
  void check_ring(const JobShape& job) const {
    if (!job.has_experts() || (!job.hybrid_context() && p_.exchange != ContextExchange::ring)) return;
    const std::optional<Mesh> mesh = job.mesh_with_experts();
    if (!mesh || mesh->is_plain(job.hybrid_context() ? "cp_tokens" : "cp")) return;
    job.key("parallel", "context")
        .fail(
            "a ring of context-parallel ranks needs them to be whole axes of expert_tensor, expert or the "
            "copies of experts: choose other sizes, or context_exchange all_gather or all_to_all");
  }

  ContextParameters p_;
};

Parameters<ContextParameters> context_parameters() {
  using P = ContextParameters;
  return in_section(
      kParallelSection,
      Parameters<P>()
          .integer("context", &P::context, {1, 65'536},
                   "context-parallel ranks, each with its part of every sequence")
          .choice("context_exchange", &P::exchange,
                  {{"ring", ContextExchange::ring},
                   {"all_gather", ContextExchange::all_gather},
                   {"all_to_all", ContextExchange::all_to_all},
                   {"hybrid", ContextExchange::hybrid}},
                  "how a context-parallel rank gets the keys and values of the others: a ring passes blocks "
                  "of them; an all-gather collects all; all-to-alls divide heads instead of tokens; or "
                  "all-to-alls run among neighbours and a ring among those groups")
          .integer("context_heads", &P::heads, {2, 65'536},
                   "hybrid: number of context-parallel ranks that divide the heads among them; the ring then "
                   "has context / context_heads steps"));
}

const Registration<Strategy> kContextParallel{
    "context_parallel", "each rank has its part of every sequence and attends to the parts of the others",
    ptdp_keys(context_parameters()),
    [](const ContextParameters& p, const ConfigNode&) { return std::make_unique<ContextParallel>(p); }};

}  // namespace
}  // namespace netsim
