// ZeRO-2 and 3 (Rajbhandari et al., SC'20), FSDP (Zhao et al., VLDB 2023). Each of the replicas keeps its
// part of the gradients, or of the parameters too, beside its part of the optimizer's states. A layer's
// gradients are reduce-scattered after each microbatch's backward of it (stream dp).
//
// With divided parameters, a layer's parameters are gathered before each forward of it, released after it,
// and gathered again for the backward, `ahead` layers ahead.
//
// Where axis "dp_unsharded" has several ranks (PyTorch's HSDP), parts are all-reduced among these. The
// all-reduces have a queue of their own beside gathers and reduce-scatters, as in PyTorch since 2023 (pull
// request 106080; all_reduce_stream in torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py).
//
// Takes the place of data_parallel. Without divided parameters, parameter_gather follows.
#include <algorithm>

#include "sim/training/strategy/parameter_bytes.h"
#include "sim/training/strategy/replicas.h"
#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

// Queues of stream dp. PyTorch all-gathers and reduce-scatters in one communicator, which runs one collective
// at a time, and all-reduces in another.
enum ShardQueue : std::uint32_t { kShards = 0, kAllReduces, kReduceScatters };
// Communicator of reduce-scatters; gathers have communicator 0 of the same groups.
constexpr std::uint32_t kReduceScatterCommunicator = 1;

struct ShardedReplicas {
  bool parameters = false;
  // Parameters that are released between forward and backward. `all` is ZeRO-3's way. `layers` releases the
  // body's layers and keeps the ends of the model, as FSDP's root does. `nothing` is FSDP's
  // reshard_after_forward=False.
  enum class Reshard : std::uint8_t { all, layers, nothing } reshard = Reshard::layers;
  std::uint32_t ahead = 1;  // layers; FSDP's forward and backward prefetch
  // Host time per tensor of a list; 0: no lists. Each matrix is gathered by itself into a list of tensors,
  // one for each rank that holds a part of it. Its gradient is reduce-scattered out of such a list. The host
  // makes the tensors, PyTorch copies them one by one, and the GPU computes nothing meanwhile. DeepSpeed of
  // 2021 does so (_allgather_param in deepspeed/runtime/zero/partition_parameters.py; ProcessGroupNCCL's
  // all-gather of lists).
  Time list_entry = 0;
  // Tensors with fewer parameters have no list: DeepSpeed keeps them whole
  // (stage3_param_persistence_threshold).
  static constexpr std::int64_t kLeastOfList = 100'000;
  // Reduce-scatters have a communicator and a queue of their own. By default they take turns with the gathers
  // in one communicator, as in PyTorch, whose set_separate_reduce_scatter_group() (pull request 186335)
  // gives them their own.
  bool separate_reduce_scatter = false;
  // The all-reduces along "dp_unsharded" follow the last microbatch's backward only, instead of each one
  // (PyTorch's set_requires_all_reduce(), FSDPParamGroup::all_reduce_grads).
  bool all_reduces_last_only = false;
  ParameterSet set = ParameterSet::common;
};

// Shards: adds the gathers and reductions of one set of parameters.
class Shards {
 public:
  explicit Shards(const ShardedReplicas& p) : p_(p) {}

  void apply(TrainingGraph& graph) const {
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
        stage.holds(TrainingGraph::kFirst) ? TrainingGraph::kFirst : TrainingGraph::kLast;
    const std::uint32_t end =
        stage.holds(TrainingGraph::kLast) ? TrainingGraph::kLast : TrainingGraph::kFirst;
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

struct ShardingParameters {
  Sharded what = Sharded::states;
  ShardedReplicas::Reshard reshard = ShardedReplicas::Reshard::layers;
  std::int64_t ahead = 1;
  std::int64_t group = 0;
  enum class AllReduce : std::uint8_t { every, last } all_reduce = AllReduce::every;
  bool separate_reduce_scatter = false;
  Time list_entry = ShardedReplicas{}.list_entry;
};

class ShardedReplicasStrategy final : public Strategy {
 public:
  explicit ShardedReplicasStrategy(const ShardingParameters& p) : p_(p) {}

  StrategyOrder order() const override {
    return {.after = {"pipeline_parallel", "expert_fetch", "reduced_parameters"}};
  }
  void describe(JobShape& job) const override {
    job.sharded = p_.what;
    job.gathers_ahead = p_.ahead;
    job.shard_group = p_.group;
    job.sums_groups_last = sums_last();
  }
  bool takes_part(const JobShape& job) const override { return job.divides_gradients(); }
  void check(const JobShape& job) const override {
    if (!job.gives("sharding")) return;
    const ConfigNode& what = job.key("sharding", "what");
    if (!job.divides_states()) what.fail("what replicas divide among them needs optimizer: distributed_adam");
    check_group(job);
    check_parameters(job);
    if (!takes_part(job)) return;
    if (job.overlap_gradients || job.bucket != 0)
      job.key("gradient", "bucket")
          .fail("divided gradients are summed layer by layer, beside the backward: no bucket, no overlap");
    if (job.stages_share_parameters())
      what.fail("stages that share an embedding sum its gradients whole: gradients cannot be divided");
    if (job.plan->placement.routes() > 1)
      what.fail("has to be states: a bidirectional pipeline has copies of its own");
    if (job.plan->reduces())
      what.fail(std::string(kScheduleReduces) + "gradients that are divided are reduced in each backward");
  }
  std::vector<std::string> notes(const JobShape& job) const override {
    if (!sums_last() || job.microbatches > 1) return {};
    return {"sharding.all_reduce: last changes nothing: an iteration of '" + job.name +
            "' has one microbatch (microbatches)"};
  }
  void apply(TrainingGraph& graph, const JobShape& job) const override {
    for (const ParameterSet set : parameter_sets(job)) {
      Shards({job.divides_parameters(), p_.reshard, static_cast<std::uint32_t>(p_.ahead), p_.list_entry,
              p_.separate_reduce_scatter, sums_last(), set})
          .apply(graph);
    }
  }

 private:
  bool sums_last() const { return p_.all_reduce == ShardingParameters::AllReduce::last; }

  void check_group(const JobShape& job) const {
    const ConfigNode& key = job.key("sharding", "group");
    if (p_.what == Sharded::states && p_.group != 0)
      key.fail("a group divides gradients or parameters: what has to be one of them");
    if (p_.group != 0 && job.data % p_.group != 0)
      key.fail("parallel.data (" + std::to_string(job.data) + ") cannot be divided by it");
    if (p_.group != 0 && (job.has_experts() || p_.what == Sharded::gradients))
      key.fail("groups divide parameters, of a model without routed experts");
    if (sums_last() && (p_.group == 0 || p_.group == job.data)) {
      job.key("sharding", "all_reduce")
          .fail("nothing is all-reduced: sharding.group has to be less than parallel.data, and not 0");
    }
  }
  // Checks the keys that concern gathers of parameters.
  void check_parameters(const JobShape& job) const {
    if (job.divides_parameters() && job.overlap_parameter_gather)
      job.key("overlap_parameter_gather").fail("divided parameters are gathered before each use of them");
    if (p_.separate_reduce_scatter && !job.divides_parameters()) {
      job.key("sharding", "separate_reduce_scatter")
          .fail("no gathers run beside reduce-scatters: sharding.what has to be parameters");
    }
    if (p_.list_entry > 0 && (!job.divides_parameters() || job.pipeline > 1 || job.has_experts())) {
      job.key("sharding", "list_entry")
          .fail("lists of tensors are of what: parameters, of a model without routed experts in one stage");
    }
  }

  ShardingParameters p_;
};

Parameters<ShardingParameters> sharding_parameters() {
  using P = ShardingParameters;
  return Parameters<P>().section(
      "sharding",
      Parameters<P>()
          .choice("what", &P::what,
                  {{"states", Sharded::states},
                   {"gradients", Sharded::gradients},
                   {"parameters", Sharded::parameters}},
                  "what is divided among replicas: only the optimizer's states (ZeRO-1), also the gradients "
                  "(ZeRO-2), or also the parameters (ZeRO-3, FSDP)")
          .choice("reshard", &P::reshard,
                  {{"all", ShardedReplicas::Reshard::all},
                   {"layers", ShardedReplicas::Reshard::layers},
                   {"nothing", ShardedReplicas::Reshard::nothing}},
                  "parameters that a rank gives up after a forward, and gathers again for the backward: "
                  "all, those of the layers but not of embedding and logits, or none")
          .integer("ahead", &P::ahead, {0, 1000},
                   "layers: how much ahead of its use a layer's parameters are gathered")
          .integer("group", &P::group, {0, 1'000'000},
                   "number of data-parallel ranks that share one copy of the model (HSDP); 0: all of them "
                   "share one copy")
          .choice("all_reduce", &P::all_reduce,
                  {{"every", P::AllReduce::every}, {"last", P::AllReduce::last}},
                  "with group: when groups all-reduce their sums of gradients: after the backward of every "
                  "microbatch, or only after that of the last one (PyTorch's set_requires_all_reduce)")
          .flag("separate_reduce_scatter", &P::separate_reduce_scatter,
                "with what: parameters, reduce-scatters of gradients have a communicator of their own and "
                "run beside all-gathers (PyTorch's set_separate_reduce_scatter_group); false: only one of "
                "both runs at a time")
          .time("list_entry", &P::list_entry, {0, kSecond},
                "with what: parameters, time of the host for each rank's part, where matrices are gathered "
                "into lists of tensors and gradients are reduce-scattered from lists (DeepSpeed of 2021); 0: "
                "there are no lists"),
      "what replicas divide among them; it has an effect with distributed_adam");
}

const Registration<Strategy> kShardedReplicas{
    "sharded_replicas", "ZeRO and FSDP: replicas divide gradients or parameters among them",
    ptdp_keys(sharding_parameters()), [](const ShardingParameters& p, const ConfigNode&) {
      return std::make_unique<ShardedReplicasStrategy>(p);
    }};

}  // namespace
}  // namespace netsim
