#include "sim/training/strategy/replicas.h"

#include <algorithm>
#include <utility>

namespace netsim {
namespace {

// Returns the ranks that hold the same parameters as a rank of the stage. Stage s of a bidirectional pipeline
// and the opposite one hold the same parts of the model. So gradients of one part and of all are summed in
// one group.
GroupExpression replicas(const TrainingGraph& graph, std::uint32_t stage, const std::string& axis) {
  std::vector<std::string> axes;
  if (graph.mesh.size(axis) > 1) axes.push_back(axis);
  if (graph.plan->placement.routes() == 1 || !graph.mesh.has_stage(stage)) return graph.mesh.along(axes);
  const auto opposite = static_cast<std::uint32_t>(graph.stages.size()) - 1 - stage;
  return graph.mesh.along(axes, {std::min(stage, opposite), std::max(stage, opposite)});
}

// Returns the axis along which ranks have copies of the parameters.
std::string axis_of(ParameterSet set) { return set == ParameterSet::experts ? "edp" : "replicas"; }

// Returns how the names of communications among the copies of a set begin.
std::string prefix_of(ParameterSet set) { return set == ParameterSet::experts ? "edp_" : "dp_"; }
constexpr const char* kSummedName = "gradients";

// BucketFiller: puts gradients into buckets in the order in which they are added.
class BucketFiller {
 public:
  BucketFiller(const BucketRule& rule, std::int64_t gradient_bytes)
      : rule_(rule), gradient_bytes_(gradient_bytes) {}

  // Adds gradients of a layer that are complete behind layer `due`, as in GradientBucket.
  void add(const GradientBucket::Part& part, std::size_t due) {
    if (part.parameters == 0) return;
    open_.chunk = part.chunk;
    open_.layer = due;
    open_.bytes += part.parameters * gradient_bytes_;
    open_.parts.push_back(part);
    const Bytes size = full_.empty() && rule_.first != 0 ? rule_.first : rule_.size;
    if (open_.bytes >= size && (size != 0 || rule_.per == GradientsPer::body)) close();
  }
  // Closes the last bucket, if it has anything.
  void close() {
    if (open_.bytes > 0) full_.push_back(std::exchange(open_, {}));
  }
  std::vector<GradientBucket> finish() { return std::move(full_); }

 private:
  const BucketRule& rule_;
  std::int64_t gradient_bytes_;
  GradientBucket open_;
  std::vector<GradientBucket> full_;
};

// Returns the parameters of a layer that enter a bucket together, in the order of their gradients: their
// number, and GradientBucket::Part::whole. Shared parameters are complete with the first layer, if the stage
// has both ends of the model.
std::vector<std::pair<std::int64_t, std::int64_t>> bucket_entries(const TrainingGraph& graph,
                                                                  const StageGraph& stage,
                                                                  std::uint32_t number, GradientsPer per,
                                                                  ParameterSet set) {
  const LayerGraph& layer = graph.layers[number];
  if (per == GradientsPer::body && !layer.repeats) return {};
  const bool carries =
      per != GradientsPer::body && number == TrainingGraph::kFirst && stage.holds(TrainingGraph::kLast);
  const std::int64_t all =
      carries ? carried_parameters(graph, number, number, set) : parameters_of(layer, graph, set);
  std::vector<std::pair<std::int64_t, std::int64_t>> entries;
  std::pair<std::int64_t, std::int64_t> sum{0, 0};
  for (auto tensor = layer.parameters.rbegin(); tensor != layer.parameters.rend(); ++tensor) {
    if (set_of(*tensor, graph) != set) continue;
    const std::int64_t whole =
        number == TrainingGraph::kFirst ? 0 : whole_parameters(*tensor, graph.sharding);
    entries.emplace_back(graph.sharding.local(*tensor), whole);
    sum = {sum.first + entries.back().first, sum.second + whole};
  }
  if (per != GradientsPer::tensor) return {{all, sum.second}};
  if (all > sum.first) entries.emplace_back(all - sum.first, 0);
  return entries;
}

class SummedGradients {
 public:
  explicit SummedGradients(const GradientSum& p) : p_(p) {}

  void apply(TrainingGraph& graph) const {
    if (replica_count(graph, p_.set) == 1) return;
    for (std::uint32_t s = 0; s < graph.stages.size(); ++s) {
      StageGraph& stage = graph.stages[s];
      const GraphNode node =
          among_replicas(graph, s, kSummedName,
                         p_.divided ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce, p_.set);
      Bytes left = stage.parameters_of(p_.set) * graph.model.gradient_bytes;
      if (p_.overlap) left -= add_buckets(graph, stage, node);
      left -= add_steps(graph, s, node);
      stage.add_finish(node, left, p_.buckets.size);
      // The finish nodes run one after the other.
      const bool remained = !stage.finish.empty() && stage.finish.back().node.stream == Stream::dp;
      if (remained) stage.finished = {static_cast<std::uint32_t>(stage.finish.size())};
      if (!remained && (p_.overlap || graph.plan->reduces()))
        stage.finished.push_back(FinishNode::kReductions);
    }
  }

 private:
  // Adds the reductions for which the schedule has steps. Returns their bytes.
  Bytes add_steps(TrainingGraph& graph, std::uint32_t s, const GraphNode& node) const {
    Bytes all = 0;
    for (std::uint32_t c = 0; c < graph.stages[s].chunks.size(); ++c) {
      if (!graph.plan->reduces(s, c)) continue;
      ChunkGraph& chunk = graph.stages[s].chunks[c];
      Bytes bytes = 0;
      for (const std::uint32_t layer : chunk.layers)
        bytes += parameters_of(graph.layers[layer], graph, p_.set) * graph.model.gradient_bytes;
      all += bytes;
      for (GraphNode& piece : in_pieces(node, bytes, p_.buckets.size))
        chunk.reduced_at_step.push_back(std::move(piece));
    }
    return all;
  }
  Bytes add_buckets(TrainingGraph& graph, StageGraph& stage, GraphNode node) const {
    Bytes all = 0;
    for (const GradientBucket& bucket : gradient_buckets(graph, stage, p_.buckets, p_.set)) {
      node.bytes = bucket.bytes;
      all += node.bytes;
      std::vector<std::vector<GraphNode>>& reductions = stage.chunks[bucket.chunk].reductions;
      reductions.resize(stage.chunks[bucket.chunk].layers.size());
      reductions[bucket.layer].push_back(node);
    }
    return all;
  }

  const GradientSum& p_;
};

}  // namespace

std::vector<ParameterSet> parameter_sets(const JobShape& job) {
  std::vector<ParameterSet> sets{ParameterSet::common};
  if (job.has_experts()) sets.push_back(ParameterSet::experts);
  return sets;
}

std::uint32_t replica_count(const TrainingGraph& graph, ParameterSet set) {
  return graph.mesh.size(axis_of(set)) * graph.plan->placement.routes();
}
std::uint32_t shard_count(const TrainingGraph& graph, ParameterSet set) {
  return replica_count(graph, set) / unsharded_count(graph, set);
}
std::uint32_t unsharded_count(const TrainingGraph& graph, ParameterSet set) {
  return set == ParameterSet::common ? graph.mesh.size("dp_unsharded") : 1;
}

GraphNode among_replicas(TrainingGraph& graph, std::uint32_t stage, const std::string& name,
                         CollectiveKind kind, ParameterSet set) {
  GraphNode node;
  node.kind = GraphNode::Kind::collective;
  node.name = prefix_of(set) + name;
  node.collective = kind;
  node.stream = Stream::dp;
  node.group = graph.builder.group(replicas(graph, stage, axis_of(set)));
  return node;
}
GraphNode among_shards(TrainingGraph& graph, std::uint32_t stage, const std::string& name,
                       CollectiveKind kind, ParameterSet set) {
  GraphNode node = among_replicas(graph, stage, name, kind, set);
  if (unsharded_count(graph, set) > 1) node.group = graph.builder.group(graph.mesh.along({"shards"}));
  return node;
}

std::string gradients_name(ParameterSet set) { return prefix_of(set) + kSummedName; }
std::string parameters_name(ParameterSet set) { return prefix_of(set) + "parameters"; }

std::vector<GradientBucket> gradient_buckets(const TrainingGraph& graph, const StageGraph& stage,
                                             const BucketRule& rule, ParameterSet set) {
  BucketFiller buckets(rule, graph.model.gradient_bytes);
  for (std::size_t chunk = stage.chunks.size(); chunk-- > 0;) {
    const std::vector<std::uint32_t>& layers = stage.chunks[chunk].layers;
    for (std::size_t i = layers.size(); i-- > 0;) {
      for (const auto& [parameters, whole] : bucket_entries(graph, stage, layers[i], rule.per, set))
        buckets.add({chunk, i, parameters, whole}, layers.size() - 1 - i);
    }
  }
  if (rule.per != GradientsPer::body) buckets.close();
  return buckets.finish();
}

std::int64_t whole_parameters(const Tensor& tensor, const Sharding& sharding) {
  const bool divided =
      std::any_of(tensor.begin(), tensor.end(), [&](const Extent& e) { return sharding.parts(e.along) > 1; });
  return divided || of_routed_experts(tensor) ? 0 : sharding.local(tensor);
}
GraphNode whole_sum(TrainingGraph& graph, std::int64_t parameters) {
  GraphNode node;
  node.kind = GraphNode::Kind::collective;
  node.name = "tp_norm_gradients";
  node.group = graph.builder.group(graph.mesh.along({"tp"}));
  node.bytes = parameters * graph.model.gradient_bytes;
  return node;
}

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
      graph, layer, stage.holds(TrainingGraph::kFirst) ? TrainingGraph::kFirst : TrainingGraph::kLast, set);
}

void sum_gradients(TrainingGraph& graph, const GradientSum& sum) { SummedGradients(sum).apply(graph); }

}  // namespace netsim
