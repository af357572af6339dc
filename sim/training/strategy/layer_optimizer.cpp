// The optimizer's step cut into a step for each bucket of gradients, or for each layer of a bucket. Each of
// them runs as soon as its gradients are summed, beside the backward. The first forward of a layer in an
// iteration waits for the steps that updated its parameters in the iteration before, and for no others. So
// what is left of the sums of one iteration is hidden by the forward of the next. Takes the place of
// `optimizer` and of `sequence_gradients`.
//
// PyTorch runs such steps in streams of their own (torch/distributed/algorithms/ddp_comm_hooks/
// optimizer_overlap_hooks.py; torch/distributed/optim/apply_optimizer_in_backward.py). The forward that waits
// for its own layer only is that of P3 (Jayarajan et al., MLSys 2019) and ByteScheduler (Peng et al., SOSP
// 2019). With a distributed optimizer the parameters are gathered bucket by bucket behind the steps, as DeAR
// does (Zhang et al., 2023).
//
// A job that clips gradients by their global norm, as Megatron-LM does by default, needs all gradients before
// its first step and cannot run so. The steps have no kernels for the norm and the clipping, which the whole
// step has.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/errors.h"
#include "sim/training/strategy/optimizer_step.h"
#include "sim/training/strategy/replicas.h"
#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

struct LayerOptimizerParameters {
  enum class Per : std::uint8_t { layer, bucket } per = Per::layer;
};

// StageUpdates: cuts the optimizer of one stage.
class StageUpdates {
 public:
  using Per = LayerOptimizerParameters::Per;

  StageUpdates(TrainingGraph& graph, StageGraph& stage, const JobShape& job, Per per)
      : graph_(graph), stage_(stage), job_(job), per_(per) {
    for (ChunkGraph& chunk : stage_.chunks) {
      chunk.reductions.resize(chunk.layers.size());
      chunk.updates.resize(chunk.layers.size());
    }
  }

  void add(ParameterSet set) {
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> sums;  // by chunk and layer: sums passed
    for (const GradientBucket& bucket : gradient_buckets(graph_, stage_, job_.buckets(), set)) {
      std::vector<GraphNode>& nodes = stage_.chunks[bucket.chunk].reductions[bucket.layer];
      const bool summed = replica_count(graph_, set) > 1;
      std::size_t behind = nodes.size();
      if (summed) behind = behind_sum(nodes, gradients_name(set), sums[{bucket.chunk, bucket.layer}]++);
      std::uint32_t distance = 0;
      const bool sums_whole = add_whole_sum(bucket, nodes, behind - (summed ? 1 : 0));
      if (sums_whole) {
        if (summed) nodes[behind].after = {1};
        ++behind;
      }
      for (const std::vector<GradientBucket::Part>& step : steps_of(bucket)) {
        GraphNode node = update(step, set);
        if (summed || sums_whole) node.after = {++distance};
        nodes.insert(nodes.begin() + static_cast<std::ptrdiff_t>(behind++), std::move(node));
      }
    }
  }

  // Adds the step of the parameters that the stage shares with another one. Their gradients are summed after
  // the stage's last backward.
  void add_shared() {
    const bool first = stage_.holds(TrainingGraph::kFirst), last = stage_.holds(TrainingGraph::kLast);
    if (graph_.model.shared.empty() || first == last) return;
    const std::uint32_t end = first ? TrainingGraph::kFirst : TrainingGraph::kLast;
    for (std::size_t c = 0; c < stage_.chunks.size(); ++c) {
      const std::vector<std::uint32_t>& layers = stage_.chunks[c].layers;
      const auto holder = std::find(layers.begin(), layers.end(), end);
      if (holder == layers.end()) continue;
      const GradientBucket::Part part{c, static_cast<std::size_t>(holder - layers.begin()),
                                      graph_.sharding.local(graph_.model.shared)};
      stage_.add_finish(update({part}, ParameterSet::common));
    }
  }

 private:
  // Adds the sum of gradients for which tensor-parallel ranks computed a part of the tokens each, before the
  // node at `index`. Returns whether there is one.
  bool add_whole_sum(const GradientBucket& bucket, std::vector<GraphNode>& nodes, std::size_t index) {
    std::int64_t parameters = 0;
    for (const GradientBucket::Part& part : bucket.parts) parameters += part.whole;
    if (!job_.sequence || graph_.mesh.size("tp") == 1 || parameters == 0) return false;
    nodes.insert(nodes.begin() + static_cast<std::ptrdiff_t>(index), whole_sum(graph_, parameters));
    return true;
  }
  // Returns the index behind the sum number `passed` of a name among the nodes.
  static std::size_t behind_sum(const std::vector<GraphNode>& nodes, const std::string& name,
                                std::size_t passed) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].name == name && passed-- == 0) return i + 1;
    }
    NETSIM_CHECK(false, "a bucket of gradients is summed by nothing");
    return nodes.size();
  }

  // Returns the parts of a bucket that are updated by one step each.
  std::vector<std::vector<GradientBucket::Part>> steps_of(const GradientBucket& bucket) const {
    std::vector<std::vector<GradientBucket::Part>> steps;
    for (const GradientBucket::Part& part : bucket.parts) {
      const bool same_layer = !steps.empty() && steps.back().back().chunk == part.chunk &&
                              steps.back().back().layer == part.layer;
      if (steps.empty() || (per_ == Per::layer && !same_layer)) steps.emplace_back();
      steps.back().push_back(part);
    }
    return steps;
  }

  // Returns the next step, for the parameters of `parts`.
  GraphNode update(const std::vector<GradientBucket::Part>& parts, ParameterSet set) {
    std::int64_t parameters = 0, reduced = 0;
    for (const GradientBucket::Part& part : parts) {
      parameters += part.parameters;
      reduced += layer_of(part).reduced[static_cast<std::size_t>(set)];
      std::vector<std::uint32_t>& waits = stage_.chunks[part.chunk].updates[awaiting_layer(part, set)];
      if (waits.empty() || waits.back() != number_) waits.push_back(number_);
    }
    const bool divided = job_.divides_states();
    GraphNode node =
        optimizer_step(updated_parameters(graph_, parameters, set, divided), graph_.model.gradient_bytes,
                       updated_parameters(graph_, reduced, set, divided));
    std::erase_if(node.work.kernels, of_clipping);
    node.update_plus_one = ++number_;
    return node;
  }
  // Returns whether a kernel of the whole step serves the clipping of gradients by their global norm.
  static bool of_clipping(const Kernel& kernel) {
    return kernel.name == "gradient_norm" || kernel.name == "gradient_clip";
  }
  const LayerGraph& layer_of(const GradientBucket::Part& part) const {
    return graph_.layers[stage_.chunks[part.chunk].layers[part.layer]];
  }

  // Returns the layer whose forward waits for an update of `part`: the one before which the parameters are
  // gathered, or the layer itself.
  std::size_t awaiting_layer(const GradientBucket::Part& part, ParameterSet set) const {
    const std::vector<std::vector<GraphNode>>& gathers = stage_.chunks[part.chunk].gathers;
    const std::string name = parameters_name(set);
    for (std::size_t i = std::min(part.layer + 1, gathers.size()); i-- > 0;) {
      const auto gathered = [&](const GraphNode& gather) { return gather.name == name; };
      if (std::any_of(gathers[i].begin(), gathers[i].end(), gathered)) return i;
    }
    return part.layer;
  }

  TrainingGraph& graph_;
  StageGraph& stage_;
  const JobShape& job_;
  Per per_;
  std::uint32_t number_ = 0;  // of the next step
};

class LayerOptimizer final : public Strategy {
 public:
  LayerOptimizer(const LayerOptimizerParameters& p, ConfigNode where) : p_(p), where_(std::move(where)) {}

  StrategyOrder order() const override {
    return {.after = {"data_parallel", "parameter_servers", "activation_offload", "parameter_gather"}};
  }
  void describe(JobShape& job) const override {
    if (job.cuts_optimizer) where_.fail("layer_optimizer is listed twice: a job has one optimizer");
    job.cuts_optimizer = true;
  }
  void check(const JobShape& job) const override {
    check_optimizer(job);
    check_gradients(job);
    if (job.plan->pairs()) {
      job.key("parallel", "schedule")
          .fail(
              "layer_optimizer needs a schedule in which no forward overlaps a backward as a pair: such a "
              "pair cannot wait for the parameters of single layers");
    }
  }
  std::vector<std::string> notes(const JobShape& job) const override {
    if (job.iterations > 1) return {};
    return {"layer_optimizer hides nothing behind a forward: '" + job.name +
            "' has one iteration (iterations)"};
  }
  void apply(TrainingGraph& graph, const JobShape& job) const override {
    for (StageGraph& stage : graph.stages) {
      StageUpdates updates(graph, stage, job, p_.per);
      for (const ParameterSet set : parameter_sets(job)) updates.add(set);
      updates.add_shared();
    }
  }

 private:
  static void check_optimizer(const JobShape& job) {
    if (job.optimizer == OptimizerKind::none)
      job.key("optimizer").fail("has to be adam or distributed_adam: layer_optimizer cuts its step");
    if (job.offloaded_optimizer > 0)
      job.key("offload", "optimizer").fail("has to be 0: layer_optimizer runs on the GPUs only");
    if (job.servers_update) {
      job.key("parallel", "servers")
          .fail("servers to which workers push gradients update the parameters: no layer_optimizer");
    }
    if (job.divides_gradients())
      job.key("sharding", "what").fail("has to be states: layer_optimizer cuts the step by gradient.bucket");
    if (job.divides_states() && !job.overlap_parameter_gather) {
      job.key("overlap_parameter_gather")
          .fail(
              "has to be true with layer_optimizer and distributed_adam: a forward waits for the parameters "
              "of its own layers only");
    }
  }
  static void check_gradients(const JobShape& job) {
    if (!job.overlap_gradients) {
      job.key("gradient", "overlap")
          .fail("has to be true with layer_optimizer, whose steps run when a bucket is summed");
    }
    if (job.gradients_per == GradientsPer::body) {
      job.key("gradient", "per")
          .fail("has to be layer or tensor with layer_optimizer, so that buckets have all gradients");
    }
    if (job.gradients_per == GradientsPer::tensor && job.has("reduced_parameters")) {
      job.key("gradient", "per")
          .fail("has to be layer: layers have parameters in FP8, which are updated with all of their layer");
    }
  }

  LayerOptimizerParameters p_;
  ConfigNode where_;
};

const Registration<Strategy> kLayerOptimizer{
    "layer_optimizer",
    "the optimizer updates layers as soon as their gradients are summed, and the next iteration's forward of "
    "a layer waits for that layer's update only",
    Parameters<LayerOptimizerParameters>().choice(
        "per", &LayerOptimizerParameters::per,
        {{"layer", LayerOptimizerParameters::Per::layer}, {"bucket", LayerOptimizerParameters::Per::bucket}},
        "what one step of the optimizer updates: the parameters of one layer in a bucket of gradients, or "
        "those of the whole bucket. Gradients cannot be clipped by their global norm, which is known only "
        "when all are summed"),
    [](const LayerOptimizerParameters& p, const ConfigNode& where) {
      return std::make_unique<LayerOptimizer>(p, where);
    }};

}  // namespace
}  // namespace netsim
