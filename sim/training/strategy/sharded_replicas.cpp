#include <algorithm>

#include "sim/training/strategy/strategies.h"

namespace netsim {
namespace {

// Queues of stream dp. PyTorch all-gathers and reduce-scatters in one communicator, which runs one collective
// at a time, and all-reduces in another.
enum ShardQueue : std::uint32_t { kShards = 0, kAllReduces, kReduceScatters };
// Communicator of reduce-scatters; gathers have communicator 0 of the same groups.
constexpr std::uint32_t kReduceScatterCommunicator = 1;

bool holds(const StageGraph& stage, std::uint32_t layer) {
  return std::any_of(stage.chunks.begin(), stage.chunks.end(), [layer](const ChunkGraph& chunk) {
    return std::find(chunk.layers.begin(), chunk.layers.end(), layer) != chunk.layers.end();
  });
}

class ShardedReplicasStrategy final : public Strategy {
 public:
  explicit ShardedReplicasStrategy(const ShardedReplicas& p) : p_(p) {}

  void apply(TrainingGraph& graph) const override {
    if (replica_count(graph, p_.set) == 1) return;
    graph.replica_traffic = {p_.parameters, true, p_.ahead};
    const std::vector<std::uint32_t> in_flight = prove_pipeline(*graph.plan).in_flight;
    for (std::uint32_t s = 0; s < graph.stages.size(); ++s) {
      StageGraph& stage = graph.stages[s];
      if (p_.parameters) gather(graph, stage, s, in_flight[s] > 1);
      reduce(graph, stage, s);
      stage.finished.push_back(FinishNode::kReductions);
    }
    if (p_.list_entry > 0) handle_lists(graph);
  }

 private:
  bool is_kept(std::uint32_t layer) const {
    return p_.reshard == ShardedReplicas::Reshard::nothing ||
           (p_.reshard == ShardedReplicas::Reshard::layers && layer < TrainingGraph::kBody);
  }

  Bytes gathered_bytes(const TrainingGraph& graph, std::uint32_t layer, std::uint32_t carrier) const {
    return parameter_bytes(carried_parameters(graph, layer, carrier, p_.set),
                           graph.layers[layer].reduced[static_cast<std::size_t>(p_.set)]);
  }

  // Adds the time of lists of tensors: one list before a forward. Before a backward there is one for the
  // parameters that are gathered again, and one for the gradients.
  void handle_lists(TrainingGraph& graph) const {
    const auto entries = [&](std::uint32_t layer, std::uint32_t carrier) {
      const std::vector<Tensor>& own = graph.layers[layer].parameters;
      const auto lists = std::count_if(own.begin(), own.end(), [&](const Tensor& tensor) {
        return graph.sharding.local(tensor) >= ShardedReplicas::kLeastOfList;
      });
      const bool shares = layer == carrier && !graph.model.shared.empty();
      return (lists + (shares ? 1 : 0)) * static_cast<std::int64_t>(shard_count(graph, p_.set));
    };
    for (std::uint32_t i = 0; i < graph.layers.size(); ++i) {
      LayerGraph& layer = graph.layers[i];
      begin_with_lists(layer.forward, entries(i, TrainingGraph::kFirst));
      begin_with_lists(layer.recompute.empty() ? layer.backward : layer.recompute,
                       entries(i, TrainingGraph::kLast) * (is_kept(i) ? 1 : 2));
    }
  }
  // Puts the lists' kernel at the beginning of a chain. Nodes that waited for the operations before the chain
  // wait for it.
  void begin_with_lists(Chain& chain, std::int64_t entries) const {
    if (entries == 0) return;
    Kernel kernel;
    kernel.kind = Kernel::Kind::fixed;
    kernel.name = "parameter_lists";
    kernel.duration = entries * p_.list_entry;
    GraphNode node;
    node.name = kernel.name;
    node.work = {kernel.name, {kernel}};
    chain.insert(chain.begin(), std::move(node));
  }

  // Adds the gathers. Parameters that the ends share are gathered with the first layer in the forward and
  // with the last in the backward. With `several` microbatches, parameters that are kept between forward and
  // backward stay in memory for all of them.
  void gather(TrainingGraph& graph, StageGraph& stage, std::uint32_t s, bool several) const {
    const std::uint32_t begin =
        holds(stage, TrainingGraph::kFirst) ? TrainingGraph::kFirst : TrainingGraph::kLast;
    const std::uint32_t end =
        holds(stage, TrainingGraph::kLast) ? TrainingGraph::kLast : TrainingGraph::kFirst;
    const GraphNode node = among_shards(graph, s, "parameters", CollectiveKind::all_gather, p_.set);
    const auto add = [](std::vector<GraphNode>& to, GraphNode gather, Bytes bytes) {
      gather.bytes = bytes;
      if (bytes > 0) to.push_back(std::move(gather));
    };
    const auto need = [&](std::vector<GraphNode>& gathers, bool kept) {
      for (GraphNode& gather : gathers) {
        if (gather.name != node.name) continue;  // gathers of the other set
        if (kept && several) {
          stage.resident[MemoryKind::gathered] += gather.bytes;
        } else {
          gather.memory.begin = {{MemoryKind::gathered, gather.bytes}};
        }
      }
    };
    for (ChunkGraph& chunk : stage.chunks) {
      const std::size_t layers = chunk.layers.size();
      chunk.gathers.resize(layers);
      chunk.gathers_again.resize(layers);
      for (std::size_t i = 0; i < layers; ++i) {
        const std::uint32_t layer = chunk.layers[i];
        add(chunk.gathers[i], node, gathered_bytes(graph, layer, begin));
        if (!is_kept(layer))
          add(chunk.gathers_again[layers - 1 - i], node, gathered_bytes(graph, layer, end));
        need(chunk.gathers[i], is_kept(layer));
        need(chunk.gathers_again[layers - 1 - i], false);
      }
    }
  }

  GraphNode reduce_scatter(TrainingGraph& graph, std::uint32_t s) const {
    GraphNode node = among_shards(graph, s, "gradients", CollectiveKind::reduce_scatter, p_.set);
    node.queue = kShards;
    if (!p_.separate_reduce_scatter) return node;
    GroupExpression group = graph.builder.program().groups[node.group];
    group.communicator = kReduceScatterCommunicator;
    node.group = graph.builder.group(group);
    node.queue = kReduceScatters;
    return node;
  }

  void reduce(TrainingGraph& graph, StageGraph& stage, std::uint32_t s) const {
    const std::int64_t unsharded = unsharded_count(graph, p_.set), shards = shard_count(graph, p_.set);
    for (ChunkGraph& chunk : stage.chunks) {
      const std::size_t layers = chunk.layers.size();
      chunk.reductions.resize(layers);
      for (std::size_t i = 0; i < layers; ++i) {
        const std::int64_t count = completed_parameters(graph, stage, chunk.layers[layers - 1 - i], p_.set);
        if (count == 0) continue;
        GraphNode node = reduce_scatter(graph, s);
        node.bytes = count * graph.model.gradient_bytes;
        node.memory.end = {{MemoryKind::gradients, -node.bytes}};
        chunk.reductions[i].push_back(node);
        node.memory = {};
        if (unsharded == 1) continue;
        node.name = "dp_gradient_parts";
        node.queue = kAllReduces;
        node.after = {1};
        node.of_complete_gradients = p_.all_reduces_last_only;
        node.collective = CollectiveKind::all_reduce;
        node.group = graph.builder.group(graph.mesh.along({"dp_unsharded"}));
        node.bytes = equal_part(count, shards) * graph.model.gradient_bytes;
        chunk.reductions[i].push_back(std::move(node));
      }
    }
  }

  ShardedReplicas p_;
};

}  // namespace

std::int64_t carried_parameters(const TrainingGraph& graph, std::uint32_t layer, std::uint32_t carrier,
                                ParameterSet set) {
  std::int64_t count = parameters_of(graph.layers[layer], graph, set);
  if (set == ParameterSet::common && layer == carrier && !graph.model.shared.empty())
    count += graph.sharding.local(graph.model.shared);
  return count;
}

// The backward completes the gradients of shared parameters with the first layer.
std::int64_t completed_parameters(const TrainingGraph& graph, const StageGraph& stage, std::uint32_t layer,
                                  ParameterSet set) {
  return carried_parameters(
      graph, layer, holds(stage, TrainingGraph::kFirst) ? TrainingGraph::kFirst : TrainingGraph::kLast, set);
}

std::unique_ptr<Strategy> sharded_replicas(const ShardedReplicas& parameters) {
  return std::make_unique<ShardedReplicasStrategy>(parameters);
}

}  // namespace netsim
