// JobShape: what the strategies of a training job need to know of the job and of each other. The workload
// enters its own values, and each strategy enters the values of its parameters (Strategy::describe()). Checks
// and the rewriting of the graph only read it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/training/model/model_kind.h"
#include "sim/training/strategy/mesh.h"
#include "sim/training/strategy/scheduled_pipeline.h"
#include "sim/training/strategy/stage_degrees.h"

namespace netsim {

// How a context-parallel rank gets the keys and values of the others (context_parallel.cpp).
enum class ContextExchange : std::uint8_t { ring, all_gather, all_to_all, hybrid };
// How tokens and routed experts meet (expert_parallel.cpp).
enum class ExpertExchange : std::uint8_t { all_to_all, dispatch, fetch };
// The activations of a layer of the body that a backward computes again: all, those of the attention's core,
// or none (recomputation.cpp).
enum class Recompute : std::uint8_t { full, selective, none };
// The optimizer, and whether replicas divide it among them (optimizer.cpp).
enum class OptimizerKind : std::uint8_t { adam, distributed_adam, none };
// The data that replicas divide among them with a distributed optimizer: its states only, gradients as well,
// or parameters as well (sharded_replicas.cpp).
enum class Sharded : std::uint8_t { states, gradients, parameters };
// Gradients fill the buckets that are summed beside the backward. They are those of whole layers of the body,
// of all whole layers, or of single tensors (replicas.cpp).
enum class GradientsPer : std::uint8_t { body, layer, tensor };

// BucketRule: how gradients fill buckets. A bucket is full when it has `size` bytes or more, the first one
// when it has `first` bytes or more. A size of 0 means one bucket, `first` of 0 means `size`.
struct BucketRule {
  Bytes size = 0, first = 0;
  GradientsPer per = GradientsPer::body;
};

struct JobShape {
  // ---- Entered by the workload.
  std::string name;
  ConfigNode where;  // the workload's map, for places of errors
  std::shared_ptr<const ModelKind> model;
  std::int64_t microbatch = 1;    // sequences of a microbatch in one replica
  std::int64_t microbatches = 1;  // microbatches of a replica in one step
  std::int64_t iterations = 1;

  // ---- Entered by strategies.
  std::int64_t tensor = 1;  // tensor-parallel ranks
  bool sequence = false;    // they divide the sequence where they do not divide the work
  std::int64_t data = 1;    // data-parallel replicas, without servers
  std::int64_t servers = 0;
  bool servers_update = false;  // servers apply the gradients; otherwise they only help to sum them

  std::int64_t context = 1;  // context-parallel ranks
  ContextExchange context_exchange = ContextExchange::ring;
  std::int64_t context_heads_given = 2;  // hybrid: ranks that divide heads

  std::int64_t expert = 1;  // ranks that divide the routed experts of a layer
  std::optional<std::int64_t> expert_tensor_given;
  ExpertExchange expert_exchange = ExpertExchange::all_to_all;
  std::int64_t ranks_per_host = 8;  // consecutive ranks on one host, of those that divide experts
  Precision dispatch_precision = Precision::half;  // precision of tokens on their way to experts
  std::int64_t experts_ahead = 1;                  // layers ahead of their use at which experts are fetched

  std::int64_t pipeline = 1, virtual_stages = 1;  // stages, and chunks of each
  bool orders_messages = false;                   // messages of a stage are in one stream
  bool scatters_boundaries = true;                // tensor-parallel ranks send parts of a boundary tensor
  std::shared_ptr<const ScheduledPipeline> plan;  // from complete() on
  std::vector<std::uint32_t> layers;  // layers of the body by part of the model, from complete() on

  std::int64_t sub_batches = 1;  // equal parts of a microbatch that a stage computes in turns
  Recompute recompute = Recompute::full;
  Precision precision = Precision::half;  // precision of the GEMMs of weights

  std::int64_t gradient_bytes = 2;  // bytes of a parameter's gradient
  Bytes bucket = 0;                 // gradients in one collective; 0: all
  Bytes first_bucket = 0;           // gradients in the first collective beside the backward; 0: `bucket`
  GradientsPer gradients_per = GradientsPer::body;  // what fills buckets beside the backward
  bool overlap_gradients = false;                   // buckets are summed during the last backward of a step
  std::int64_t local_steps = 1;  // steps in an iteration, after which replicas average their parameters

  OptimizerKind optimizer = OptimizerKind::adam;
  bool cuts_optimizer = false;            // the optimizer's step is cut (layer_optimizer.cpp)
  bool overlap_parameter_gather = false;  // parameters are gathered during the first forward
  Sharded sharded = Sharded::states;
  std::int64_t gathers_ahead = 1;  // layers ahead of their use at which parameters are gathered
  std::int64_t shard_group = 0;    // replicas that share one copy of what is divided; 0: all
  bool sums_groups_last = false;   // groups sum their gradients after the last backward only

  double offloaded_optimizer = 0;   // share of the parameters that CPUs of the host update
  bool offloads_gradients = false;  // their gradients leave the GPU during each backward

  // ---- The names of the strategies that take part, in the order of their application; from the end of
  // complete() on.
  std::vector<std::string> strategies;
  bool has(const std::string& strategy) const;

  bool has_experts() const { return model->experts() != nullptr; }
  bool fetches_experts() const { return has_experts() && expert_exchange == ExpertExchange::fetch; }
  BucketRule buckets() const { return {bucket, first_bucket, gradients_per}; }
  bool divides_states() const { return optimizer == OptimizerKind::distributed_adam; }
  bool divides_gradients() const { return sharded != Sharded::states; }
  bool divides_parameters() const { return sharded == Sharded::parameters; }
  // Returns whether the ends of the model share parameters and lie on different stages.
  bool stages_share_parameters() const;
  // Returns whether some operator of a layer of the body has the property.
  bool some_operator(const std::function<bool(const Operator&)>& property) const;

  bool hybrid_context() const { return context_exchange == ContextExchange::hybrid; }
  // Returns the number of context-parallel ranks that divide heads.
  std::int64_t context_heads() const;
  // Returns the number of ranks that divide each expert, and of the ranks on one host that divide experts.
  std::int64_t expert_tensor() const { return expert_tensor_given.value_or(tensor); }
  std::int64_t experts_per_host() const;
  // Returns the number of sequences that a rank computes at a time.
  std::int64_t sub_batch() const { return microbatch / sub_batches; }
  // Returns the number of ranks of a pipeline stage.
  std::int64_t ranks_of_stage() const { return tensor * context * data; }

  // Returns the job's mesh. mesh_of() has other stages and no axes of experts. mesh_with_experts() returns
  // nothing where tokens and experts number the ranks in ways that do not fit.
  Mesh mesh() const;
  Mesh mesh_of(const ProgramAxis& stages) const;
  std::optional<Mesh> mesh_with_experts() const;

  // Returns the job as it would be if all of its stages had this mesh, with the same number of sequences.
  JobShape on_mesh(const StageDegrees& mesh) const;

  // Return the node of a key, of the workload itself or of a section, as the place of an error. Where the key
  // is not given, it is the nearest node around it. On a stage with a mesh of its own, the degrees are those
  // of the stage's entry.
  const ConfigNode& key(const char* entry) const;
  const ConfigNode& key(const char* section, const char* entry) const;
  bool gives(const char* entry) const { return where.find(entry) != nullptr; }
  bool gives(const char* section, const char* entry) const;
  // Throws ConfigError unless a degree, which is a key of `parallel`, divides a value called `what`.
  void require_divides(const char* degree_name, std::int64_t degree, const std::string& what,
                       std::int64_t value) const;
  ConfigNode stage = {};  // on_mesh(): the stage's entry in parallel.stages
};

}  // namespace netsim
