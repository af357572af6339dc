// Gathers the parameters that a divided optimizer has updated, by all replicas (stream dp), in pieces of
// `bucket` bytes (0: in one piece). They are gathered after the optimizer. With `overlap_parameter_gather`
// they are gathered layer by layer from the beginning of an iteration, in the order of the forward. The first
// microbatch then waits for each layer's parameters (Megatron-LM's distributed optimizer with
// --overlap-param-gather, after ZeRO-1: Rajbhandari et al., SC'20).
#include <algorithm>

#include "sim/training/strategy/parameter_bytes.h"
#include "sim/training/strategy/replicas.h"
#include "sim/training/strategy/strategy.h"

namespace netsim {
namespace {

// GatheredSet: gathers one set of parameters.
class GatheredSet {
 public:
  GatheredSet(Bytes bucket, bool overlap, ParameterSet set) : bucket_(bucket), overlap_(overlap), set_(set) {}

  void apply(TrainingGraph& graph) const {
    if (replica_count(graph, set_) == 1) return;
    for (std::uint32_t s = 0; s < graph.stages.size(); ++s) {
      StageGraph& stage = graph.stages[s];
      const GraphNode node = among_replicas(graph, s, "parameters", CollectiveKind::all_gather, set_);
      if (overlap_) {
        gather_ahead(graph, stage, node);
        continue;
      }
      const std::int64_t parameters = stage.parameters_of(set_);
      const Bytes bytes = parameter_bytes(parameters, stage.reduced_of(set_));
      // The number of pieces is that in half precision, because buckets are of parameters.
      const bool cut = bucket_ != 0 && bytes < parameters * kParameterBytes;
      stage.add_finish(node, bytes,
                       cut ? equal_part(bytes, equal_part(parameters * kParameterBytes, bucket_)) : bucket_);
      stage.finished = {static_cast<std::uint32_t>(stage.finish.size())};
    }
  }

 private:
  // Gathers a bucket before the first of its layers. Layers are not cut; a bucket of 0 is the whole chunk.
  void gather_ahead(const TrainingGraph& graph, StageGraph& stage, const GraphNode& gather) const {
    // Parameters that the ends share count with one of them, the same in all replicas.
    const bool begins = std::any_of(stage.chunks.begin(), stage.chunks.end(), [](const ChunkGraph& chunk) {
      return !chunk.layers.empty() && chunk.layers.front() == TrainingGraph::kFirst;
    });
    const std::uint32_t carrier = begins ? TrainingGraph::kFirst : TrainingGraph::kLast;
    for (ChunkGraph& chunk : stage.chunks) {
      chunk.gathers.resize(chunk.layers.size());
      GraphNode* bucket = nullptr;
      Bytes filled = 0;  // bytes in half precision
      for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
        const std::int64_t parameters = carried_parameters(graph, chunk.layers[i], carrier, set_);
        if (parameters == 0) continue;
        if (bucket == nullptr) {
          bucket = &chunk.gathers[i].emplace_back(gather);
          filled = 0;
        }
        bucket->bytes += parameter_bytes(
            parameters, graph.layers[chunk.layers[i]].reduced[static_cast<std::size_t>(set_)]);
        filled += parameters * kParameterBytes;
        if (bucket_ != 0 && filled >= bucket_) bucket = nullptr;
      }
    }
  }

  Bytes bucket_;
  bool overlap_;
  ParameterSet set_;
};

struct GatherParameters {
  bool overlap = false;
};

class ParameterGather final : public Strategy {
 public:
  explicit ParameterGather(const GatherParameters& p) : p_(p) {}

  StrategyOrder order() const override { return {.after = {"optimizer", "optimizer_offload"}}; }
  void describe(JobShape& job) const override { job.overlap_parameter_gather = p_.overlap; }
  bool takes_part(const JobShape& job) const override {
    return job.divides_states() && !job.divides_parameters();
  }
  void check(const JobShape& job) const override {
    if (p_.overlap && !job.divides_states())
      job.key("overlap_parameter_gather").fail("only distributed_adam gathers parameters");
  }
  void apply(TrainingGraph& graph, const JobShape& job) const override {
    for (const ParameterSet set : parameter_sets(job)) GatheredSet(job.bucket, p_.overlap, set).apply(graph);
  }

 private:
  GatherParameters p_;
};

const Registration<Strategy> kParameterGather{
    "parameter_gather", "distributed_adam: replicas gather the parameters that each of them has updated",
    ptdp_keys(Parameters<GatherParameters>().flag(
        "overlap_parameter_gather", &GatherParameters::overlap,
        "distributed_adam: parameters are gathered while the first microbatch is computed")),
    [](const GatherParameters& p, const ConfigNode&) { return std::make_unique<ParameterGather>(p); }};

}  // namespace
}  // namespace netsim
