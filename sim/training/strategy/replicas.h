// Replicas: the ranks that hold the same parameters, the collectives among them, and the sums of gradients.
// All functions need pipeline_parallel to have been applied.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/training/strategy/job_shape.h"
#include "sim/training/strategy/training_graph.h"

namespace netsim {

// The beginning of an error: strategies that sum gradients themselves do not combine with such a schedule.
inline constexpr const char* kScheduleReduces = "the schedule has steps that reduce gradients: ";

// Returns the sets of parameters of a job. Routed experts have copies on other ranks than all else.
std::vector<ParameterSet> parameter_sets(const JobShape& job);

// Returns how many ranks hold the same parameters of a set. among_replicas() returns a collective of these
// ranks of a stage, on stream dp and without bytes; `name` follows the axis.
std::uint32_t replica_count(const TrainingGraph& graph, ParameterSet set);
GraphNode among_replicas(TrainingGraph& graph, std::uint32_t stage, const std::string& name,
                         CollectiveKind kind, ParameterSet set);

// Returns among how many of these ranks a divided optimizer divides the copies. These ranks are all, or those
// of axis "shards" where axis "dp_unsharded" counts the ranks with the same part. among_shards() returns the
// collective of them.
std::uint32_t shard_count(const TrainingGraph& graph, ParameterSet set);
std::uint32_t unsharded_count(const TrainingGraph& graph, ParameterSet set);
GraphNode among_shards(TrainingGraph& graph, std::uint32_t stage, const std::string& name,
                       CollectiveKind kind, ParameterSet set);

// GradientBucket: a bucket that overlaps with the last backward. Layers or tensors fill buckets in the order
// in which the backward completes their gradients. Those of one layer are complete when its backward is; its
// last tensor comes first. Each bucket is due behind a layer of a chunk, as in ChunkGraph::reductions.
struct GradientBucket {
  // Part: gradients of one layer, by its index in ChunkGraph::layers.
  struct Part {
    std::size_t chunk = 0, layer = 0;
    std::int64_t parameters = 0;
    std::int64_t whole = 0;  // whole_parameters() of these; not those of the model's first layer
  };
  std::size_t chunk = 0, layer = 0;
  Bytes bytes = 0;
  std::vector<Part> parts;
};
// Returns the buckets of a stage, in the order in which they are due. Per layer or tensor, the last bucket
// may be smaller and the buckets have all gradients. Only gradients of parameters that the stage shares with
// another one are in none. Per layer of the body, a remainder that does not fill a bucket is in none.
std::vector<GradientBucket> gradient_buckets(const TrainingGraph& graph, const StageGraph& stage,
                                             const BucketRule& rule, ParameterSet set);
// Return the names of the collectives that sum the gradients of a set, and that gather its parameters.
std::string gradients_name(ParameterSet set);
std::string parameters_name(ParameterSet set);

// GradientSum: how replicas sum the gradients of one set of parameters.
struct GradientSum {
  BucketRule buckets;    // `size` holds the bytes of one collective, too; 0: all gradients in one
  bool overlap = false;  // buckets are summed during the last microbatch's backward
  // Each rank gets only the sum of its part, by a reduce-scatter, for a divided optimizer.
  bool divided = false;
  ParameterSet set = ParameterSet::common;
};
// Adds the sums of gradients to all stages, as data_parallel.cpp says.
void sum_gradients(TrainingGraph& graph, const GradientSum& sum);

// Returns the number of a tensor's parameters that each rank has whole while sequence parallelism lets it
// compute only a part of the tokens. Routed experts have copies of their own and do not count.
std::int64_t whole_parameters(const Tensor& tensor, const Sharding& sharding);
// Returns the collective of tensor-parallel ranks that sums the gradients of so many of these.
GraphNode whole_sum(TrainingGraph& graph, std::int64_t parameters);

// Returns the number of a layer's parameters on one rank. Parameters that the ends of the model share count
// with `carrier`, which is the first layer or the last.
std::int64_t carried_parameters(const TrainingGraph& graph, std::uint32_t layer, std::uint32_t carrier,
                                ParameterSet set);
// Returns the number of a layer's parameters whose gradients its backward completes. Parameters that the ends
// of the model share count with the first end that the stage has, or else with the last.
std::int64_t completed_parameters(const TrainingGraph& graph, const StageGraph& stage, std::uint32_t layer,
                                  ParameterSet set);

}  // namespace netsim
