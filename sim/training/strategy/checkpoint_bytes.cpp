#include "sim/training/strategy/checkpoint_bytes.h"

#include "sim/training/strategy/parameter_bytes.h"
#include "sim/training/strategy/replicas.h"

namespace netsim {
namespace {

// Returns the bytes of a rank's part of the parameters of a set.
Bytes rank_part(const TrainingGraph& graph, const JobShape& job, bool divided, RankId rank,
                ParameterSet set) {
  const StageGraph& stage = graph.stages[graph.mesh.stage(rank)];
  const std::int64_t parameters = stage.parameters_of(set), copies = replica_count(graph, set);
  if (parameters == 0) return 0;
  const std::int64_t states = job.optimizer != OptimizerKind::none ? kOptimizerBytes : 0;
  if (divided) return equal_part(parameters * (kParameterBytes + states), copies);
  const bool experts = set == ParameterSet::experts;
  const bool first = graph.mesh.coordinate(rank, experts ? "edp" : "replicas") == 0;
  const bool first_group =
      unsharded_count(graph, set) == 1 || graph.mesh.coordinate(rank, "dp_unsharded") == 0;
  const std::int64_t part = equal_part(parameters, shard_count(graph, set));
  const auto written = [&](bool sharded, std::int64_t bytes) {
    if (sharded) return first_group ? part * bytes : 0;
    return first ? parameters * bytes : 0;
  };
  return written(job.divides_parameters(), kParameterBytes) + written(job.divides_states(), states);
}

Bytes restored(const TrainingGraph& graph, const JobShape& job, RankId rank, ParameterSet set) {
  const std::int64_t parameters = graph.stages[graph.mesh.stage(rank)].parameters_of(set);
  const std::int64_t part = equal_part(parameters, shard_count(graph, set));
  return (job.divides_parameters() ? part : parameters) * kParameterBytes +
         (job.optimizer != OptimizerKind::none ? (job.divides_states() ? part : parameters) * kOptimizerBytes
                                               : 0);
}

}  // namespace

std::vector<Bytes> restored_bytes(const TrainingGraph& graph, const JobShape& job) {
  std::vector<Bytes> bytes;
  bytes.reserve(graph.mesh.ranks());
  for (RankId rank = 0; rank < graph.mesh.ranks(); ++rank) {
    bytes.push_back(restored(graph, job, rank, ParameterSet::common) +
                    restored(graph, job, rank, ParameterSet::experts));
  }
  return bytes;
}

std::vector<Bytes> checkpoint_bytes(const TrainingGraph& graph, const JobShape& job, bool divided) {
  std::vector<Bytes> bytes;
  bytes.reserve(graph.mesh.ranks());
  for (RankId rank = 0; rank < graph.mesh.ranks(); ++rank) {
    bytes.push_back(rank_part(graph, job, divided, rank, ParameterSet::common) +
                    rank_part(graph, job, divided, rank, ParameterSet::experts));
  }
  return bytes;
}

}  // namespace netsim
