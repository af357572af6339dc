#include <algorithm>
#include <utility>

#include "sim/training/strategy/chain_editor.h"
#include "sim/training/strategy/strategies.h"

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

class ContextParallel final : public Strategy {
 public:
  explicit ContextParallel(ContextExchange exchange) : exchange_(exchange) {}

  void divide(const Mesh& mesh, Sharding& sharding) const override {
    for (const Dimension dimension : {Dimension::tokens, Dimension::sequence})
      sharding.divide(dimension, mesh.size("cp"));
    if (exchange_ == ContextExchange::ring) sharding.divide(Dimension::keys, mesh.size("cp"));
    if (exchange_ == ContextExchange::hybrid) sharding.divide(Dimension::keys, mesh.size("cp_tokens"));
  }
  void apply(TrainingGraph& graph) const override {
    if (graph.mesh.size("cp") == 1) return;
    const Attention forward(graph, exchange_, true), backward(graph, exchange_, false);
    for (LayerGraph& layer : graph.layers) {
      layer.forward_buffers = forward.buffers(layer.forward);
      layer.backward_buffers = backward.buffers(layer.backward);
      layer.forward = forward.rewritten(layer.forward);
      layer.backward = backward.rewritten(layer.backward);
    }
  }

 private:
  ContextExchange exchange_;
};

bool core_of(const std::vector<ModelPart>& parts, bool fused) {
  return std::any_of(parts.begin(), parts.end(), [fused](const ModelPart& part) {
    return std::any_of(part.operators.begin(), part.operators.end(), [fused](const Operator& op) {
      return op.core && (!fused || op.kind == Kernel::Kind::attention);
    });
  });
}

}  // namespace

std::unique_ptr<Strategy> context_parallel(ContextExchange exchange) {
  return std::make_unique<ContextParallel>(exchange);
}

std::string refuse_context(const Model& model, ContextExchange exchange) {
  const bool ring = exchange == ContextExchange::ring || exchange == ContextExchange::hybrid;
  for (const ModelLayer& kind : model.kinds) {
    if (!core_of(kind.forward, false)) return "a layer of this model does not say what its attention reads";
    if (ring && !core_of(kind.forward, true))
      return "a ring needs an attention that is one kernel, which this model's is not: context_exchange may "
             "be "
             "all_gather or all_to_all";
  }
  return {};
}

}  // namespace netsim
