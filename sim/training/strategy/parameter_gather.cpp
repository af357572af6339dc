#include <algorithm>

#include "sim/training/strategy/strategies.h"

namespace netsim {
namespace {

class ParameterGather final : public Strategy {
 public:
  ParameterGather(Bytes bucket, bool overlap, ParameterSet set)
      : bucket_(bucket), overlap_(overlap), set_(set) {}

  void apply(TrainingGraph& graph) const override {
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

}  // namespace

std::unique_ptr<Strategy> parameter_gather(Bytes bucket, bool overlap, ParameterSet set) {
  return std::make_unique<ParameterGather>(bucket, overlap, set);
}

}  // namespace netsim
