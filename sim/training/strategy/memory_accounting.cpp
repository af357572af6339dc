#include "sim/training/strategy/memory_accounting.h"

#include <algorithm>

#include "sim/training/strategy/optimizer_step.h"
#include "sim/training/strategy/parameter_bytes.h"
#include "sim/training/strategy/replicas.h"

namespace netsim {
namespace {

// Activations: the memory of a microbatch's activations of a layer. It depends on the rows of a rank's
// experts where a router counts them.
class Activations {
 public:
  Activations(const LayerGraph& layer, const TrainingGraph& graph) : layer_(layer), graph_(graph) {
    for (const GraphNode& node : layer.forward)
      if (node.rows_plus_one != 0) rows_plus_one_ = node.rows_plus_one;
  }
  bool routed() const { return rows_plus_one_ != 0; }
  std::uint32_t rows() const { return rows_plus_one_ - 1; }

  // Returns `count` of the graph's sharding as a change of memory, without its table.
  template <class Count>
  MemoryChange change(Count count) const {
    if (!routed()) return {MemoryKind::activations, count(graph_.sharding)};
    Sharding none = graph_.sharding, one = graph_.sharding;
    none.set_routed(0);
    one.set_routed(1);
    const Bytes plain = count(none);
    return {MemoryKind::activations, plain, count(one) - plain};
  }
  MemoryChange saved(bool with_core) const {
    return change([&](const Sharding& sharding) {
      std::int64_t bits = 0;
      for (const Saved& saved : layer_.saved) {
        if (with_core || saved.kind != Saved::Kind::of_core)
          bits += saved.bits_per_element * sharding.local(saved.tensor);
      }
      return (bits + 7) / 8;
    });
  }
  // Returns the operands that GEMMs of weight gradients still need when the gradients of the inputs are done.
  // They are tensors saved by the forward and gradients of outputs (Qi et al., ICLR 2024, table 1: 32 sbh of
  // a GPT's layer).
  MemoryChange operands_of_weights() const {
    return change([&](const Sharding& sharding) {
      std::int64_t bits = 0;
      for (const GraphNode& node : layer_.weights) {
        for (const Operator& op : node.operators) {
          if (op.kind != Kernel::Kind::gemm || !op.weight_gradient) continue;
          for (const Extent& other : {op.m, op.n})
            bits += operand_bits(op.precision) * sharding.local(tokens_beside(op.k, other)) *
                    sharding.local(other);
        }
      }
      return (bits + 7) / 8;
    });
  }

 private:
  // Returns the tokens that a rank keeps of a tensor. If the other extent is whole and the sequence is
  // divided, those are its part.
  static Extent tokens_beside(Extent tokens, const Extent& other) {
    if (tokens.along == Dimension::tokens && other.along == Dimension::whole)
      tokens.along = Dimension::sequence;
    return tokens;
  }

  const LayerGraph& layer_;
  const TrainingGraph& graph_;
  std::uint32_t rows_plus_one_ = 0;
};

// Returns the memory that a forward keeps, as a MemoryChange without its table.
MemoryChange kept_of(const LayerGraph& layer, const TrainingGraph& graph, Recompute recompute) {
  if (layer.repeats && recompute == Recompute::full) {
    return {MemoryKind::activations, graph.model.boundary_bytes * graph.sharding.local(graph.model.boundary)};
  }
  return Activations(layer, graph).saved(!layer.repeats || recompute == Recompute::none);
}

class Accounting {
 public:
  explicit Accounting(const JobShape& job) : job_(job) {}

  void apply(TrainingGraph& graph) const {
    const bool known = std::all_of(graph.layers.begin() + TrainingGraph::kBody, graph.layers.end(),
                                   [](const LayerGraph& layer) { return !layer.saved.empty(); });
    if (!known) return;
    for (const LayerGraph& layer : graph.layers) graph.layer_memory.push_back(memory_of(layer, graph));
    for (StageGraph& stage : graph.stages) count_resident(graph, stage);
  }

 private:
  LayerMemory memory_of(const LayerGraph& layer, TrainingGraph& graph) const {
    const Activations activations(layer, graph);
    MemoryChange all = activations.saved(true), kept = kept_of(layer, graph, job_.recompute);
    MemoryChange again = all;  // memory of tensors that the backward computes again
    again.bytes -= kept.bytes;
    again.each -= kept.each;
    MemoryChange weights = activations.operands_of_weights();
    if (activations.routed()) {
      const std::uint32_t table = graph.builder.table(graph.routed_rows[activations.rows()]) + 1;
      for (MemoryChange* change : {&all, &kept, &again, &weights}) {
        if (change->each != 0) change->table_plus_one = table;
      }
    }
    LayerMemory memory;
    const MemoryChange sums{MemoryKind::activations, layer.kept_sums};
    add(memory.forward.begin, kept);
    add(memory.forward.begin, sums);
    add_buffer(memory.forward, layer.forward_buffers);
    add(memory.backward.begin, again);
    add(memory.backward.end, all.reversed());
    add(memory.backward.end, sums.reversed());
    add_buffer(memory.backward, layer.backward_buffers);
    memory.input = memory.backward;
    add(memory.input.end, weights);
    add(memory.weights.end, weights.reversed());
    return memory;
  }
  static void add(std::vector<MemoryChange>& changes, const MemoryChange& change) {
    if (change.bytes != 0 || change.each != 0) changes.push_back(change);
  }
  static void add_buffer(TaskMemory& memory, Bytes bytes) {
    if (bytes == 0) return;
    const MemoryChange buffer{MemoryKind::communication, bytes};
    memory.begin.push_back(buffer);
    memory.end.push_back(buffer.reversed());
  }

  void count_resident(const TrainingGraph& graph, StageGraph& stage) const {
    for (const ParameterSet set : {ParameterSet::common, ParameterSet::experts}) {
      const std::int64_t whole = stage.parameters_of(set), reduced = stage.reduced_of(set);
      const std::int64_t shards = shard_count(graph, set), part = equal_part(whole, shards);
      // Where weights are updated while older ones are in use, there are two versions of them.
      const Bytes versions = job_.plan->updates() ? 2 : 1;
      stage.resident[MemoryKind::parameters] +=
          job_.divides_parameters()
              ? kParameterBytes * equal_part(whole - reduced, shards) + equal_part(reduced, shards)
              : versions * parameter_bytes(whole, reduced);
      const std::int64_t updated = job_.divides_states() ? part : whole,
                         away = offloaded(updated, job_.offloaded_optimizer);
      const std::int64_t summed = job_.divides_gradients() ? part : whole;
      stage.resident[MemoryKind::gradients] +=
          graph.model.gradient_bytes * (job_.offloads_gradients ? summed - away : summed);
      if (job_.optimizer != OptimizerKind::none)
        stage.resident[MemoryKind::optimizer] += kOptimizerBytes * (updated - away);
      stage.resident[MemoryKind::host] += (kOptimizerBytes + graph.model.gradient_bytes) * away;
    }
    Bytes gathered = 0;
    for (const ChunkGraph& chunk : stage.chunks) {
      for (const std::uint32_t i : chunk.layers) {
        const LayerGraph& layer = graph.layers[i];
        if (!job_.divides_parameters())
          stage.resident[MemoryKind::parameters] += reduced_copies(layer, graph.sharding);
        for (const Chain* chain : {&layer.forward, &layer.backward})
          gathered = std::max(gathered, largest_gather(*chain));
      }
    }
    stage.resident[MemoryKind::communication] += graph.sub_batches * gathered;
  }

  // Returns the elements of weight copies in reduced precision and of their transposes. Transformer Engine
  // makes these once an iteration and keeps them for all microbatches (get_weight_workspace() of its
  // modules). Weights that are kept in reduced precision have only the transpose besides (its Float8Tensor).
  std::int64_t reduced_copies(const LayerGraph& layer, const Sharding& sharding) const {
    if (job_.precision == Precision::half) return 0;
    std::int64_t elements = 0;
    for (const GraphNode& node : layer.forward) {
      for (const Operator& op : node.operators) {
        if (op.linear && op.precision != Precision::half)
          elements += sharding.local(op.n) * sharding.local(op.k) * sharding.local(op.batch) / op.pieces;
      }
    }
    const bool kept = std::any_of(layer.reduced.begin(), layer.reduced.end(),
                                  [](std::int64_t parameters) { return parameters > 0; });
    return (kept ? 1 : 2) * elements * operand_bits(job_.precision) / 8;
  }

  // Returns the largest gather before a GEMM by sequence parallelism. Megatron-LM has one buffer for all of
  // them (get_global_memory_buffer()).
  static Bytes largest_gather(const Chain& chain) {
    Bytes largest = 0;
    for (const GraphNode& node : chain) {
      if (node.kind == GraphNode::Kind::collective && node.collective == CollectiveKind::all_gather &&
          node.stream == Stream::tp)
        largest = std::max(largest, node.bytes);
    }
    return largest;
  }

  const JobShape& job_;
};

}  // namespace

MemoryChange kept_activations(TrainingGraph& graph, const LayerGraph& layer, Recompute recompute) {
  MemoryChange change = kept_of(layer, graph, recompute);
  if (change.each != 0) {
    const std::uint32_t rows = Activations(layer, graph).rows();
    change.table_plus_one = graph.builder.table(graph.routed_rows[rows]) + 1;
  }
  return change;
}

void account_memory(TrainingGraph& graph, const JobShape& job) { Accounting(job).apply(graph); }

}  // namespace netsim
