// ptdp: a model under pipeline, tensor and data parallelism, as Megatron-LM trains it. The source is
// Narayanan et al. (PTD-P, "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM",
// SC'21). The model (model_kind.h) gives the computation of a rank, and the strategies (strategies.h) divide
// and rewrite it. This file has the user's configuration and its checks.
//
// Rank order: tensor is the fastest, then context, data and pipeline (Megatron's initialize_model_parallel).
// Experts number the ranks of a stage anew: first the ranks that divide an expert, then experts, then copies.
// Not simulated: the all-reduces of a few bytes for the loss scale and the gradient norm.
#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/config_entries.h"
#include "sim/core/registry.h"
#include "sim/training/checkpoint/checkpoint.h"
#include "sim/training/model/model_kind.h"
#include "sim/training/strategy/pipeline_division.h"
#include "sim/training/strategy/stage_degrees.h"
#include "sim/training/strategy/strategies.h"
#include "sim/workload/program/program_file.h"
#include "sim/workload/program/role_program_source.h"
#include "sim/workload/routing/router.h"
#include "sim/workload/workload.h"

namespace netsim {
namespace {

struct ParallelParameters {
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::int64_t data = 1;
  std::int64_t servers = 0;
  std::int64_t context = 1;
  ContextExchange context_exchange = ContextExchange::ring;
  std::int64_t context_heads = 2;
  std::int64_t virtual_stages = 1;
  std::int64_t expert = 1;
  std::optional<std::int64_t> expert_tensor;
  TableDivision embedding = TableDivision::tables;
  ExpertExchange expert_exchange = ExpertExchange::all_to_all;
  bool sequence = false;
  TensorOverlap tensor_overlap;
  PipelineDivision layers;
  ConfigNode schedule;
  ConfigNode stages;
  StageResharding resharding;
};

enum class GradientType { fp16, fp32 };
enum class Accumulation { separate, fused };
enum class Recompute { full, selective, none };
enum class Optimizer { adam, distributed_adam, none };

struct GradientParameters {
  GradientType dtype = GradientType::fp16;
  Accumulation accumulation = Accumulation::separate;
  Bytes bucket = 0;
  bool overlap = false;
  std::int64_t local_steps = 1;
  std::optional<std::int64_t> staleness;
  bool asynchronous = false;
};

struct DispatchParameters {
  std::int64_t ranks_per_host = 8;
  Precision precision = Precision::half;
  std::int64_t multiprocessors = 0;
  std::int64_t ahead = 1;
  bool again = false;
};

enum class Sharded { states, gradients, parameters };

struct ShardingParameters {
  Sharded what = Sharded::states;
  ShardedReplicas::Reshard reshard = ShardedReplicas::Reshard::layers;
  std::int64_t ahead = 1;
  std::int64_t group = 0;
  enum class AllReduce { every, last } all_reduce = AllReduce::every;
  bool separate_reduce_scatter = false;
  Time list_entry = ShardedReplicas{}.list_entry;
};

struct OffloadParameters {
  double optimizer = 0;
  bool gradients = false;
  Bytes bucket = OptimizerOffload{}.bucket;
  BitRate cpu_bandwidth = OptimizerOffload{}.cpu_bandwidth;
  double activations = 0;
  std::int64_t ahead = 1;
};

struct PtdpParameters {
  std::string name = "ptdp";
  ConfigNode model;
  ConfigNode router;
  DispatchParameters dispatch;
  ParallelParameters parallel;
  std::int64_t microbatch = 1;
  std::int64_t microbatches = 1;
  ConfigNode recompute;
  bool scatter_gather = true;
  bool overlap_p2p = true, ordered_p2p = false;
  GradientParameters gradient;
  Optimizer optimizer = Optimizer::adam;
  bool overlap_parameter_gather = false;
  ShardingParameters sharding;
  OffloadParameters offload;
  Precision precision = Precision::half;
  Precision parameter_precision = Precision::half;
  Scaling scaling = Scaling::tensor;
  std::int64_t iterations = 1, warm_up = 0;
  CheckpointParameters checkpoint;
  RecoveryParameters recovery;
};

const Parameters<TensorOverlap>& tensor_overlap_parameters() {
  using P = TensorOverlap;
  const std::vector<std::pair<std::string, OverlapMethod>> methods{
      {"none", OverlapMethod::none},
      {"ring_exchange", OverlapMethod::ring_exchange},
      {"pipelined", OverlapMethod::pipelined}};
  static const auto p =
      Parameters<P>()
          .choice("gathers", &P::gathers, methods,
                  "inputs that are gathered before a GEMM: passed on from rank to rank, or gathered in "
                  "pieces, beside the GEMM of the piece before")
          .choice("reduce_scatters", &P::reduce_scatters, methods,
                  "sums that are scattered behind a GEMM: passed on and added to, or scattered in pieces, "
                  "beside the GEMM of the next piece")
          .integer("pieces", &P::pieces, {2, 1024}, "of what is pipelined");
  return p;
}

const Parameters<ParallelParameters>& parallel_parameters() {
  using P = ParallelParameters;
  static const auto p =
      Parameters<P>()
          .integer("tensor", &P::tensor, {1, 65'536}, "tensor-parallel ranks (t)")
          .integer("pipeline", &P::pipeline, {1, 65'536}, "pipeline stages (p)")
          .integer("data", &P::data, {1, 1'000'000}, "data-parallel replicas (d)")
          .integer("servers", &P::servers, {0, 65'536},
                   "parameter servers: ranks beside those of data, that compute no part of the model")
          .integer("context", &P::context, {1, 65'536},
                   "context-parallel ranks, each with its part of every sequence")
          .choice(
              "context_exchange", &P::context_exchange,
              {{"ring", ContextExchange::ring},
               {"all_gather", ContextExchange::all_gather},
               {"all_to_all", ContextExchange::all_to_all},
               {"hybrid", ContextExchange::hybrid}},
              "how a context-parallel rank attends to the keys and values of the others: blocks of them "
              "go round a ring; all are gathered; all-to-alls divide heads instead of tokens; all-to-alls "
              "among neighbours and a ring among those groups")
          .integer("context_heads", &P::context_heads, {2, 65'536},
                   "hybrid: context-parallel ranks that divide heads among them; the ring has context / "
                   "context_heads steps")
          .integer("virtual_stages", &P::virtual_stages, {1, 10'000}, "model chunks per stage (v)")
          .integer("expert", &P::expert, {1, 65'536},
                   "ranks that divide the routed experts of a layer among them")
          .integer("expert_tensor", &P::expert_tensor, {1, 65'536}, "tensor",
                   "ranks that divide each of these experts: as many as tensor, or fewer")
          .choice(
              "embedding", &P::embedding, {{"tables", TableDivision::tables}, {"rows", TableDivision::rows}},
              "what replicas divide of a recommendation model's embedding: whole tables, or the rows of each")
          .choice("expert_exchange", &P::expert_exchange,
                  {{"all_to_all", ExpertExchange::all_to_all},
                   {"dispatch", ExpertExchange::dispatch},
                   {"fetch", ExpertExchange::fetch}},
                  "how tokens and experts meet: copies of tokens, one for each expert, go by all-to-alls; "
                  "tokens go by the collectives dispatch and combine, as their algorithm says; or experts "
                  "are fetched to where the tokens are")
          .flag("sequence", &P::sequence,
                "sequence parallelism: what tensor parallelism leaves whole is divided along the tokens")
          .section("tensor_overlap", &P::tensor_overlap, tensor_overlap_parameters(),
                   "communication of sequence parallelism beside the GEMMs that wait for it")
          .section("layers", &P::layers, pipeline_division_parameters(),
                   "how many layers each stage has, where they are not all alike")
          .component("schedule", &P::schedule, "pipeline_schedule", "",
                     "order of forwards and backwards; interleaved if virtual_stages > 1, else one_f_one_b")
          .list(
              "stages", &P::stages,
              "the degrees of each stage where they are not all alike, as [{tensor: 2, data: 2}, {tensor: 4, "
              "data: 1}]; what an entry leaves out is that of the job. A stage's replicas divide the "
              "microbatch x data sequences of a microbatch among them")
          .section("resharding", &P::resharding, stage_resharding_parameters(),
                   "stages: how activations and gradients come to a stage with other degrees");
  return p;
}

const Parameters<GradientParameters>& gradient_parameters() {
  using P = GradientParameters;
  static const auto p =
      Parameters<P>()
          .choice("dtype", &P::dtype, {{"fp16", GradientType::fp16}, {"fp32", GradientType::fp32}},
                  "type in which gradients are summed and all-reduced")
          .choice("accumulation", &P::accumulation,
                  {{"separate", Accumulation::separate}, {"fused", Accumulation::fused}},
                  "how a microbatch's gradients are added to those of the others: by kernels of their own, "
                  "which read what GEMMs wrote in half precision, or by these GEMMs")
          .bytes("bucket", &P::bucket, {0, 1000 * kGigabyte},
                 "size of one all-reduce; 0: all gradients in one")
          .flag("overlap", &P::overlap, "all-reduce buckets during the last microbatch's backward")
          .integer("local_steps", &P::local_steps, {1, 100'000},
                   "steps that each replica takes alone, in an iteration, before all average their "
                   "parameters (local "
                   "SGD); 1: gradients are summed in each step")
          .integer(
              "staleness", &P::staleness, {0, 10'000}, "all-reduce",
              "parallel.servers: gradients are pushed and parameters pulled, and a worker may be so many "
              "iterations ahead of the slowest (stale synchronous parallel)")
          .flag("asynchronous", &P::asynchronous,
                "parallel.servers: gradients are pushed and parameters pulled, and no worker waits for "
                "another");
  return p;
}

const Parameters<ShardingParameters>& sharding_parameters() {
  using P = ShardingParameters;
  static const auto p =
      Parameters<P>()
          .choice("what", &P::what,
                  {{"states", Sharded::states},
                   {"gradients", Sharded::gradients},
                   {"parameters", Sharded::parameters}},
                  "what is divided among replicas: the optimizer's states (ZeRO-1), gradients besides "
                  "(ZeRO-2), or parameters, too (ZeRO-3, FSDP)")
          .choice("reshard", &P::reshard,
                  {{"all", ShardedReplicas::Reshard::all},
                   {"layers", ShardedReplicas::Reshard::layers},
                   {"nothing", ShardedReplicas::Reshard::nothing}},
                  "parameters that a rank gives up after a forward, and gathers again for the backward: "
                  "all, those of the layers but not of embedding and logits, or none")
          .integer("ahead", &P::ahead, {0, 1000},
                   "layers: how much ahead of its use a layer's parameters are gathered")
          .integer(
              "group", &P::group, {0, 1'000'000},
              "data-parallel ranks that share one copy, the others having copies of their own (HSDP); 0: "
              "all share one")
          .choice(
              "all_reduce", &P::all_reduce, {{"every", P::AllReduce::every}, {"last", P::AllReduce::last}},
              "group: groups complete sums of gradients behind every microbatch's backward, or behind the "
              "last one's only (PyTorch's set_requires_all_reduce)")
          .flag("separate_reduce_scatter", &P::separate_reduce_scatter,
                "parameters: reduce-scatters of gradients run beside gathers, in a communicator of their own "
                "(PyTorch's set_separate_reduce_scatter_group); false: one of both at a time")
          .time("list_entry", &P::list_entry, {0, kSecond},
                "parameters: what each rank's part costs the host where a matrix is gathered into a list of "
                "tensors, and its gradient reduce-scattered out of one (DeepSpeed of 2021); 0: no lists");
  return p;
}

const Parameters<OffloadParameters>& offload_parameters() {
  using P = OffloadParameters;
  static const auto p =
      Parameters<P>()
          .real("optimizer", &P::optimizer, {0, 1},
                "share of each rank's parameters whose states are in the host's memory and which its CPUs "
                "update (ZeRO-Offload: 1; Megatron-Core's --optimizer-offload-fraction)")
          .flag(
              "gradients", &P::gradients,
              "their gradients are copied to the host layer by layer in each backward, and none stay on the "
              "GPU (ZeRO-Offload); false: when all are summed up (Megatron-Core)")
          .bytes("bucket", &P::bucket, {0, 1000 * kGigabyte},
                 "of gradients: what is copied, updated and copied back as one; 0: all")
          .rate(
              "cpu_bandwidth", &P::cpu_bandwidth, {1 * kGbps, 100'000 * kGbps},
              "of its memory that a host's CPUs reach while they update parameters (ZeRO-Offload's CPU-Adam "
              "on two Xeon 8168)")
          .real("activations", &P::activations, {0, 1},
                "share of the layers of which the host's memory has what the forward keeps for the backward "
                "(the first ones; Megatron-Core's --cpu-offloading-num-layers)")
          .integer("ahead", &P::ahead, {0, 1000},
                   "layers: how much ahead of its backward a layer's activations are copied back");
  return p;
}

const Parameters<DispatchParameters>& dispatch_parameters() {
  using P = DispatchParameters;
  static const auto p =
      Parameters<P>()
          .integer("ranks_per_host", &P::ranks_per_host, {1, 1 << 20},
                   "dispatch, fetch: so many ranks behind each other of those that divide experts are on a "
                   "host")
          .choice("precision", &P::precision, {{"half", Precision::half}, {"fp8", Precision::fp8}},
                  "of what goes to the experts, with its scales; what comes back is in half precision")
          .integer("multiprocessors", &P::multiprocessors, {0, 1000},
                   "dispatch: that its kernels hold all the time while a forward and a backward overlap "
                   "(dual_pipe), which multiply on the others")
          .integer("ahead", &P::ahead, {0, 1000},
                   "fetch: how many layers ahead of its use a layer's experts are fetched")
          .flag("again", &P::again, "fetch: again for the backward; else those of the forward are kept");
  return p;
}

const Parameters<PtdpParameters>& ptdp_parameters() {
  using P = PtdpParameters;
  static const auto p =
      Parameters<P>()
          .text("name", &P::name, "name of the job")
          .component("model", &P::model, "model", "gpt", "what is trained; the default is GPT-3 175B")
          .section("parallel", &P::parallel, parallel_parameters(),
                   "how it is split: tensor x context x data x pipeline ranks")
          .component("router", &P::router, "router", "uniform", "how tokens are spread over routed experts")
          .section("dispatch", &P::dispatch, dispatch_parameters(),
                   "what moves between tokens and routed experts")
          .integer("microbatch", &P::microbatch, {1, 100'000}, "sequences in a microbatch (b)")
          .integer("microbatches", &P::microbatches, {1, 1'000'000},
                   "microbatches per pipeline and iteration (m)")
          .names("recompute", &P::recompute, "full",
                 "activations: full, every layer's forward is computed again before its backward; none, they "
                 "are kept; or what of them is computed again, one or several of selective (the core of the "
                 "attention), norms, latent_up (latent attention's projections up), activations (of MLPs and "
                 "experts)")
          .flag("scatter_gather", &P::scatter_gather,
                "between stages each tensor rank sends 1/t of the tensor and the receivers gather it")
          .flag("overlap_p2p", &P::overlap_p2p,
                "a stage goes on while its messages to other stages travel; false: it waits for them")
          .flag("ordered_p2p", &P::ordered_p2p,
                "messages of a stage to others are in one stream, as in one NCCL communicator: sends of a "
                "step and the next receives are one call, which waits for the call before it; false: sends "
                "wait for their data only, receives for the one before in their direction")
          .section("gradient", &P::gradient, gradient_parameters(), "the data-parallel all-reduce")
          .choice(
              "optimizer", &P::optimizer,
              {{"adam", Optimizer::adam},
               {"distributed_adam", Optimizer::distributed_adam},
               {"none", Optimizer::none}},
              "what runs after the gradients are there; distributed: each replica gets the gradients of, and "
              "updates, its part of the parameters, which are gathered then")
          .flag("overlap_parameter_gather", &P::overlap_parameter_gather,
                "distributed_adam: parameters are gathered while the first microbatch is computed")
          .section("sharding", &P::sharding, sharding_parameters(),
                   "distributed_adam: what else replicas divide among them")
          .section("offload", &P::offload, offload_parameters(), "to the memory of the hosts, over PCIe")
          .choice("precision", &P::precision,
                  {{"half", Precision::half}, {"fp8", Precision::fp8}, {"fp4", Precision::fp4}},
                  "of the GEMMs of the layers' weights")
          .choice("parameter_precision", &P::parameter_precision,
                  {{"half", Precision::half}, {"fp8", Precision::fp8}},
                  "precision fp8, distributed_adam: of these weights where they are kept and gathered "
                  "(Megatron-Core's --fp8-param-gather); all other parameters are in half precision")
          .choice("scaling", &P::scaling, {{"tensor", Scaling::tensor}, {"blocks", Scaling::blocks}},
                  "of operands in FP8: of whole tensors, cast by the kernels before (Transformer Engine), or "
                  "of blocks of 128 elements, by kernels of their own (DeepSeek-V3)")
          .integer("iterations", &P::iterations, {1, 1'000'000}, "training iterations")
          .integer("warm_up", &P::warm_up, {0, 999'999},
                   "the first of them, which mean times and throughput leave out")
          .section("checkpoint", &P::checkpoint, checkpoint_parameters(),
                   "parameters and the optimizer's states, written to storage servers at intervals")
          .section("recovery", &P::recovery, recovery_parameters(),
                   "when a host fails (gpus.failures): how the job goes on from its last checkpoint");
  return p;
}

std::uint32_t narrow(std::int64_t value) { return static_cast<std::uint32_t>(value); }

class Ptdp : public WorkloadKind {
 public:
  Ptdp(PtdpParameters parameters, const ConfigNode& where)
      : p_(std::move(parameters)),
        model_(Registry<ModelKind>::instance().create(p_.model, "gpt")),
        router_(Registry<Router>::instance().create(p_.router, "uniform")),
        where_(where),
        shape_{narrow(p_.parallel.pipeline), narrow(p_.parallel.virtual_stages), narrow(p_.microbatches)},
        file_(where.place().file) {
    read_recompute();
    read_stages(where);
    if (degrees_.empty()) check(where);
    for (const StageDegrees& mesh : meshes()) with_mesh(mesh).check(where);
    const ConfigNode* parallel = where.find("parallel");
    plan_ = std::make_shared<const PipelinePlan>(
        make_pipeline_plan(p_.parallel.schedule, parallel != nullptr ? *parallel : where, shape_));
    layers_ = layers_of_parts(p_.parallel.layers, model_->layers(), plan_->placement,
                              node(where, "parallel", "layers"));
    check_plan(where);
    check_stages(where);
  }

  std::string compile() const override { return serialize_program(build(false)); }
  std::unique_ptr<TaskSource> tasks(const WorkloadContext& context) const override {
    const std::vector<std::string> notes = this->notes();
    CheckpointedJob job;
    Program program = build(true, &job);
    if (p_.checkpoint.every == 0) return make_role_program_source(std::move(program), file_, {}, notes);
    job.source = [program = std::move(program), file = file_, notes](std::uint32_t iterations) {
      Program rest = program;
      if (iterations != rest.iterations) rest.warm_up = 0;
      rest.iterations = iterations;
      return make_role_program_source(std::move(rest), file, {}, notes);
    };
    job.iterations = narrow(p_.iterations);
    job.checkpoint = p_.checkpoint;
    if (where_.find("recovery") != nullptr) job.recovery = p_.recovery;
    job.servers = storage_servers(context);
    return with_checkpoints(std::move(job));
  }

 private:
  // Reads parallel.stages. If all stages are alike, the job is as without the key.
  void read_stages(const ConfigNode& where) {
    const ConfigNode* parallel = where.find("parallel");
    if (p_.parallel.stages.is_null()) {
      if (parallel != nullptr && parallel->find("resharding") != nullptr)
        parallel->find("resharding")
            ->fail("nothing is resharded between stages that are all alike: no parallel.stages");
      return;
    }
    degrees_ = read_stage_degrees(p_.parallel.stages, narrow(p_.parallel.pipeline),
                                  {p_.parallel.tensor, p_.parallel.data});
    const std::int64_t sequences = p_.microbatch * p_.parallel.data;
    for (const StageDegrees& stage : degrees_) {
      if (sequences % stage.data != 0) {
        entry_or_self(stage.where, "data")
            .fail("the " + std::to_string(sequences) +
                  " sequences of a microbatch (microbatch x parallel.data) cannot be divided among " +
                  std::to_string(stage.data) + " replicas");
      }
    }
    if (std::all_of(degrees_.begin(), degrees_.end(),
                    [this](const StageDegrees& stage) { return stage.same_mesh(degrees_.front()); })) {
      *this = with_mesh(degrees_.front());
    }
    if (!degrees_.empty() && model_->experts() != nullptr)
      p_.parallel.stages.fail("stages of a model with routed experts have to be all alike");
  }
  // Returns the different meshes of the stages, in the order of the stages; none if all are alike.
  std::vector<StageDegrees> meshes() const {
    std::vector<StageDegrees> meshes;
    for (const StageDegrees& stage : degrees_) {
      const bool known = std::any_of(meshes.begin(), meshes.end(),
                                     [&](const StageDegrees& mesh) { return mesh.same_mesh(stage); });
      if (!known) meshes.push_back(stage);
    }
    return meshes;
  }
  // Returns the job as it would be if all of its stages had this mesh, with the same number of sequences.
  Ptdp with_mesh(const StageDegrees& mesh) const {
    Ptdp job = *this;
    job.p_.microbatch = p_.microbatch * p_.parallel.data / mesh.data;
    job.p_.parallel.tensor = mesh.tensor;
    job.p_.parallel.data = mesh.data;
    job.degrees_.clear();
    job.stage_ = mesh.where;
    return job;
  }
  // Checks the features that do not combine with stages of different meshes.
  void check_stages(const ConfigNode& where) const {
    if (degrees_.empty()) return;
    const ConfigNode& stages = node(where, "parallel", "stages");
    for (std::size_t s = 0; plan_->placement.routes() > 1 && s < degrees_.size(); ++s) {
      if (degrees_[s].same_mesh(degrees_[degrees_.size() - 1 - s])) continue;
      degrees_[s].where.fail(
          "stages " + std::to_string(s) + " and " + std::to_string(degrees_.size() - 1 - s) +
          " have copies of the same layers in a bidirectional pipeline: they need the same "
          "tensor and data");
    }
    if (p_.ordered_p2p)
      stages.fail("ordered_p2p has to be false: it orders the messages of stages that are all alike");
    if (plan_->communicates()) {
      stages.fail(
          "a schedule with steps that communicate says so of stages that are all alike: they need the same "
          "tensor and data");
    }
    std::int64_t ranks = 0;
    for (const StageDegrees& stage : degrees_) ranks += stage.tensor * stage.data * p_.parallel.context;
    if (ranks > static_cast<std::int64_t>(ProgramLimits::kRanks)) {
      stages.fail(std::to_string(ranks) + " ranks: at most " + std::to_string(ProgramLimits::kRanks));
    }
    // Upper bound of the slices of a block of StageReshardings.
    constexpr double kMost = 1e7;
    for (std::size_t i = 0; i < degrees_.size(); ++i) {
      const StageDegrees &one = degrees_[i], &other = degrees_[(i + 1) % degrees_.size()];
      const std::int64_t of_block = (one.data + other.data) / std::gcd(one.data, other.data);
      const auto rows = static_cast<double>(of_block);
      const auto columns = static_cast<double>(one.tensor + other.tensor);
      if (rows * rows * columns * columns > kMost)
        one.where.fail("this stage and the next divide what passes between them into too many slices");
    }
  }

  void read_recompute() {
    const std::vector<ConfigNode> names = read_names(p_.recompute, "full");
    recompute_ = Recompute::none;
    for (const ConfigNode& node : names) {
      const std::string name = read_text(node);
      if (names.size() > 1 && (name == "full" || name == "none"))
        node.fail("'" + name + "' is for all activations: no other name beside it");
      if (name == "full") {
        recompute_ = Recompute::full;
      } else if (name == "selective") {
        recompute_ = Recompute::selective;
      } else if (name == "norms") {
        modules_.norms = true;
      } else if (name == "latent_up") {
        modules_.latent_up = true;
      } else if (name == "activations") {
        modules_.activations = true;
      } else if (name != "none") {
        node.fail("'" + name + "' is not one of: full, selective, none, norms, latent_up, activations");
      }
    }
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes = p_.overlap_p2p ? std::vector<std::string>() : notes_on_blocking(*plan_);
    if (p_.ordered_p2p && p_.parallel.pipeline == 1) notes.push_back(kNoMessages);
    if (p_.sharding.all_reduce == ShardingParameters::AllReduce::last && p_.microbatches == 1)
      notes.push_back("sharding.all_reduce: last changes nothing: an iteration of '" + p_.name +
                      "' has one microbatch (microbatches)");
    if (p_.parallel.servers > 0 && consistency() == ParameterServers::Consistency::collective) {
      notes.push_back("the last " + std::to_string(p_.parallel.servers) + " ranks of '" + p_.name +
                      "' are servers, which collectives.all_reduce has to know: {kind: parameter_server, "
                      "servers: " +
                      std::to_string(p_.parallel.servers) + "}");
    }
    return notes;
  }
  ParameterServers::Consistency consistency() const {
    return p_.gradient.asynchronous ? ParameterServers::Consistency::asynchronous
           : p_.gradient.staleness  ? ParameterServers::Consistency::stale
                                    : ParameterServers::Consistency::collective;
  }
  // Checks the kinds of data parallelism that do not combine with other features.
  void check_replicas(const ConfigNode& where) const {
    const GradientParameters& g = p_.gradient;
    if (g.asynchronous && g.staleness)
      node(where, "gradient", "staleness")
          .fail("asynchronous workers have no bound of staleness: give one of the two");
    const char* pushing = g.asynchronous ? "asynchronous" : "staleness";
    if (p_.parallel.servers == 0 && (g.asynchronous || g.staleness)) {
      node(where, "gradient", pushing)
          .fail(std::string(pushing) +
                " is for parameter servers, to which workers push: it needs parallel.servers");
    }
    if (g.local_steps > 1) {
      const ConfigNode& steps = node(where, "gradient", "local_steps");
      if (p_.parallel.servers > 0)
        steps.fail("replicas that step alone average among themselves: no parallel.servers");
      if (p_.optimizer == Optimizer::distributed_adam)
        steps.fail("replicas that step alone need an optimizer of their own: adam, not distributed_adam");
      if (g.overlap)
        steps.fail("parameters are averaged after the last step: gradient.overlap has nothing to overlap");
      if (plan_ && plan_->placement.routes() > 1)
        steps.fail(
            "a bidirectional pipeline has two copies of the model, whose gradients are summed in each step");
    }
    if (p_.parallel.servers == 0) return;
    const ConfigNode& servers = node(where, "parallel", "servers");
    if (p_.parallel.tensor > 1 || p_.parallel.pipeline > 1 || p_.parallel.virtual_stages > 1 ||
        p_.parallel.context > 1 || model_->experts() != nullptr || model_->tables() > 0) {
      servers.fail(
          "parameter servers are for data parallelism alone: no tensor, context, pipeline or expert "
          "parallelism, and no "
          "embedding tables");
    }
    if (p_.optimizer == Optimizer::distributed_adam)
      servers.fail("an optimizer divided among replicas (distributed_adam) has no use for parameter servers");
    if (p_.parallel.data < 2)
      node(where, "parallel", "data").fail("parameter servers need 2 workers at least");
  }

  // Returns the number of storage servers to which checkpoints are written.
  std::uint32_t storage_servers(const WorkloadContext& context) const {
    const auto all = static_cast<std::int64_t>(context.drives.size());
    if (all == 0)
      node(where_, "checkpoint", "every").fail("the cluster has no storage_server to write checkpoints to");
    if (p_.checkpoint.servers > all) {
      node(where_, "checkpoint", "servers")
          .fail(std::to_string(p_.checkpoint.servers) + " were asked for, the cluster has " +
                std::to_string(all));
    }
    return narrow(p_.checkpoint.servers == 0 ? all : p_.checkpoint.servers);
  }
  // Returns the node of a key, for errors. For a stage with a mesh of its own, the degrees are in the stage's
  // entry.
  const ConfigNode& node(const ConfigNode& where, const std::string& section, const std::string& key) const {
    if (!stage_.is_null() && section == "parallel" && (key == "tensor" || key == "data"))
      return entry_or_self(stage_, key.c_str());
    const ConfigNode* outer = where.find(section);
    return outer != nullptr ? entry_or_self(*outer, key.c_str()) : where;
  }
  void require_divides(const ConfigNode& where, const char* degree_name, std::int64_t degree,
                       const char* what, std::int64_t value) const {
    if (value % degree == 0) return;
    node(where, "parallel", degree_name)
        .fail(
            std::string(what) + " (" + std::to_string(value) + ") cannot be divided by " +
            std::to_string(degree) + ": " + degree_name +
            (std::string(degree_name) == "pipeline" ? " x virtual_stages" : "") + " has to be a divisor" +
            (std::string(degree_name) == "pipeline" ? ", or parallel.layers to say how many each has" : ""));
  }
  bool hybrid() const { return p_.parallel.context_exchange == ContextExchange::hybrid; }
  // Returns the number of ranks that divide heads, besides the tensor-parallel ones.
  std::int64_t context_heads() const {
    const ContextExchange exchange = p_.parallel.context_exchange;
    return hybrid()                                  ? p_.parallel.context_heads
           : exchange == ContextExchange::all_to_all ? p_.parallel.context
                                                     : 1;
  }
  void check_context(const ConfigNode& where) const {
    const std::int64_t size = p_.parallel.context;
    if (size == 1) return;
    const ConfigNode& key = node(where, "parallel", "context");
    // Each rank has two chunks of a sequence (Transformer Engine).
    if (model_->sequence() % (2 * size) != 0) {
      key.fail("model.sequence (" + std::to_string(model_->sequence()) +
               ") cannot be divided by 2 x context: each rank has two chunks of it");
    }
    if (p_.parallel.sequence && model_->sequence() % (size * p_.parallel.tensor) != 0) {
      key.fail("model.sequence (" + std::to_string(model_->sequence()) +
               ") cannot be divided by context x tensor (" + std::to_string(size * p_.parallel.tensor) + ")");
    }
    const ConfigNode& exchange = node(where, "parallel", "context_exchange");
    if (hybrid() && (size % context_heads() != 0 || size == context_heads())) {
      node(where, "parallel", "context_heads")
          .fail("context_heads (" + std::to_string(context_heads()) +
                ") has to be a divisor of context, and less than it: " + std::to_string(size));
    }
    for (const auto& [name, value] : model_->divided()) {
      if (name != "heads" && name != "groups") continue;
      if (value % (p_.parallel.tensor * context_heads()) == 0) continue;
      exchange.fail("model." + name + " (" + std::to_string(value) + ") cannot be divided by tensor x " +
                    (hybrid() ? "context_heads (" : "context (") +
                    std::to_string(p_.parallel.tensor * context_heads()) + ")");
    }
    const std::string refusal = refuse_context(model_->make(1, 2), p_.parallel.context_exchange);
    if (!refusal.empty()) exchange.fail(refusal);
  }
  bool overlaps(OverlapMethod method) const {
    const TensorOverlap& overlap = p_.parallel.tensor_overlap;
    return overlap.gathers == method || overlap.reduce_scatters == method;
  }
  void check_overlap(const ConfigNode& where) const {
    if (!overlaps(OverlapMethod::ring_exchange) && !overlaps(OverlapMethod::pipelined)) return;
    const ConfigNode& key = node(where, "parallel", "tensor_overlap");
    if (!p_.parallel.sequence) {
      key.fail(
          "tensor_overlap needs parallel.sequence: without it there are all-reduces, which no GEMM's input "
          "can be cut out of");
    }
    const std::int64_t tokens = p_.microbatch * model_->sequence() / p_.parallel.context;
    const std::int64_t pieces = p_.parallel.tensor_overlap.pieces;
    if (!overlaps(OverlapMethod::pipelined) || tokens % (pieces * p_.parallel.tensor) == 0) return;
    key.fail("the " + std::to_string(tokens) + " tokens of a microbatch and rank cannot be divided by " +
             std::to_string(pieces) + " pieces x tensor");
  }
  void check(const ConfigNode& where) const {
    check_divisions(where);
    check_parameter_precision(where);
    check_replicas(where);
    for (const auto& [key, value] : model_->divided())
      require_divides(where, "tensor", p_.parallel.tensor, ("model." + key).c_str(), value);
    for (const auto& [key, value] : model_->sequences()) {
      if (p_.parallel.sequence)
        require_divides(where, "tensor", p_.parallel.tensor, ("model." + key).c_str(), value);
    }
    const ConfigNode* parallel = where.find("parallel");
    if (parallel == nullptr || parallel->find("layers") == nullptr) {
      require_divides(where, "pipeline", p_.parallel.pipeline * p_.parallel.virtual_stages, "model.layers",
                      model_->layers());
    }
    if (p_.gradient.overlap && p_.gradient.bucket == 0) {
      node(where, "gradient", "overlap").fail("overlap needs gradient.bucket: the size of one all-reduce");
    }
    if (p_.overlap_parameter_gather && p_.optimizer != Optimizer::distributed_adam)
      where.find("overlap_parameter_gather")->fail("only distributed_adam gathers parameters");
    if (p_.warm_up >= p_.iterations) {
      const ConfigNode* key = where.find("warm_up");
      if (key != nullptr)
        key->fail(std::to_string(p_.warm_up) + " of " + std::to_string(p_.iterations) +
                  " iterations: warm_up has to be fewer than all");
    }
    if (where.find("recovery") != nullptr && p_.checkpoint.every == 0)
      where.find("recovery")->fail("there is nothing to go on from: checkpoint.every has to be given");
    check_sharding(where);
    check_offload(where);
    check_sizes(where);
    check_context(where);
    check_experts(where);
    check_overlap(where);
  }

  // Checks degrees that the model as a whole cannot be divided by, and options that would do nothing for it.
  void check_divisions(const ConfigNode& where) const {
    const auto refuse = [&](Division division, const char* key, bool asked) {
      const std::string refusal = asked ? model_->refuse(division) : std::string();
      if (!refusal.empty()) node(where, "parallel", key).fail(refusal);
    };
    refuse(Division::tensor, "tensor", p_.parallel.tensor > 1);
    refuse(Division::tensor, "sequence", p_.parallel.sequence);
    refuse(Division::context, "context", p_.parallel.context > 1);
    refuse(Division::pipeline, "pipeline", p_.parallel.pipeline > 1);
    if (model_->tables() == 0) {
      const ConfigNode* parallel = where.find("parallel");
      if (parallel != nullptr && parallel->find("embedding") != nullptr)
        parallel->find("embedding")->fail("the model has no embedding tables of sparse features");
    } else if (p_.parallel.embedding == TableDivision::tables && model_->tables() % p_.parallel.data != 0) {
      node(where, "parallel", "data")
          .fail("model.tables (" + std::to_string(model_->tables()) + ") cannot be divided by " +
                std::to_string(p_.parallel.data) +
                " replicas: parallel.embedding: rows divides the rows of each");
    }
    const auto has = [this](auto&& property) {
      const Model model = model_->make(1, 2);
      const auto in = [&](const std::vector<ModelPart>& parts) {
        return std::any_of(parts.begin(), parts.end(), [&](const ModelPart& part) {
          return std::any_of(part.operators.begin(), part.operators.end(), property);
        });
      };
      return std::any_of(model.kinds.begin(), model.kinds.end(),
                         [&](const ModelLayer& layer) { return in(layer.forward); });
    };
    for (const auto& [module, name] :
         {std::pair{Module::norm, "norms"}, std::pair{Module::latent_up, "latent_up"},
          std::pair{Module::activation, "activations"}}) {
      const Module wanted = module;
      if (modules_.has(wanted) && !has([wanted](const Operator& op) { return op.module == wanted; }))
        where.find("recompute")
            ->fail(std::string("no layer of the model has ") + name + " that it can recompute");
    }
    if (p_.scaling == Scaling::blocks && p_.precision != Precision::fp8)
      where.find("scaling")->fail("blocks are those of FP8: precision has to be fp8");
    if (recompute_ == Recompute::selective && !has([](const Operator& op) { return op.core.has_value(); }))
      where.find("recompute")
          ->fail("selective computes the attention's core again, and no layer of the model has one");
    if (p_.precision != Precision::half && !has([](const Operator& op) { return op.linear; }))
      where.find("precision")
          ->fail("no layer of the model has GEMMs that are computed in it: it has to be half");
  }

  void check_parameter_precision(const ConfigNode& where) const {
    if (p_.parameter_precision == Precision::half) return;
    const ConfigNode& key = *where.find("parameter_precision");
    if (p_.precision != Precision::fp8)
      key.fail("weights in FP8 are for GEMMs in FP8: precision has to be fp8");
    if (p_.optimizer != Optimizer::distributed_adam)
      key.fail("weights in FP8 need optimizer: distributed_adam, which keeps them in fp32 and gathers them");
    if (p_.offload.optimizer > 0)
      key.fail("what the hosts' CPUs update comes back in half precision: no offload.optimizer");
    if (model_->experts() != nullptr && p_.parallel.expert_exchange == ExpertExchange::fetch)
      key.fail("experts are fetched in half precision: parallel.expert_exchange has to be another");
  }

  void check_experts(const ConfigNode& where) const {
    const ExpertsModel* experts = model_->experts();
    if (experts == nullptr) {
      for (const char* key : {"router", "dispatch"}) {
        if (where.find(key) != nullptr) where.find(key)->fail("no layer of the model has routed experts");
      }
      if (p_.parallel.expert > 1)
        node(where, "parallel", "expert").fail("no layer of the model has routed experts");
      return;
    }
    const std::int64_t tensor = p_.parallel.tensor;
    require_divides(where, "expert", p_.parallel.expert, "model.experts.count", experts->count);
    require_divides(where, "expert_tensor", expert_tensor(), "tensor", tensor);
    require_divides(where, "expert_tensor", expert_tensor(), "model.experts.inner", experts->inner);
    require_divides(where, "expert", p_.parallel.expert * expert_tensor(), "tensor x context x data",
                    ranks_of_stage());
    if (tensor > 1 && !p_.parallel.sequence) {
      node(where, "parallel", "sequence")
          .fail("sequence has to be true: experts beside tensor parallelism need sequence parallelism");
    }
    check_exchange(where, *experts);
    const auto mesh = mesh_with_experts();
    if (!mesh) {
      node(where, "parallel", "expert")
          .fail(
              "tensor (x context), and expert_tensor x expert (fetch: or x those of a host), have to divide "
              "each other");
    }
    check_rings(where, *mesh);
    const Model model = model_->make(p_.microbatch, 2);
    router_->check(routing_shape(*model.routed, *mesh), layers_with_experts(model));
  }
  // Checks that rings lie along a plain axis. A rank on an axis that experts split into two has no next rank.
  void check_rings(const ConfigNode& where, const Mesh& mesh) const {
    const bool blocks =
        p_.parallel.context > 1 && (hybrid() || p_.parallel.context_exchange == ContextExchange::ring);
    if (blocks && !mesh.is_plain(hybrid() ? "cp_tokens" : "cp")) {
      node(where, "parallel", "context")
          .fail(
              "a ring of context-parallel ranks needs them to be whole axes of expert_tensor, expert or the "
              "copies of experts: choose other sizes, or context_exchange all_gather or all_to_all");
    }
    if (overlaps(OverlapMethod::ring_exchange) && p_.parallel.tensor > 1 && !mesh.is_plain("tp")) {
      node(where, "parallel", "tensor_overlap")
          .fail(
              "ring_exchange needs expert_tensor to be 1 or that of tensor, and expert not to divide tensor");
    }
  }
  void check_exchange(const ConfigNode& where, const ExpertsModel& experts) const {
    const ExpertExchange exchange = p_.parallel.expert_exchange;
    const ConfigNode& key = node(where, "parallel", "expert_exchange");
    if (exchange == ExpertExchange::dispatch && experts.padded)
      key.fail("tokens that are dispatched are not filled up: model.experts.padded has to be false");
    if (exchange != ExpertExchange::fetch) return;
    if (p_.parallel.expert % experts_per_host() != 0) {
      node(where, "dispatch", "ranks_per_host")
          .fail("the " + std::to_string(p_.parallel.expert) +
                " ranks of expert cannot be divided into hosts of " + std::to_string(experts_per_host()));
    }
    if (p_.gradient.overlap || p_.overlap_parameter_gather || shards_gradients()) {
      key.fail(
          "experts are fetched, and their gradients summed, for each microbatch: without gradient.overlap, "
          "overlap_parameter_gather and sharding of gradients or parameters");
    }
  }
  // Returns how many of the ranks that divide experts are on one host.
  std::int64_t experts_per_host() const { return std::min(p_.dispatch.ranks_per_host, p_.parallel.expert); }
  std::int64_t expert_tensor() const { return p_.parallel.expert_tensor.value_or(p_.parallel.tensor); }

  bool shards_gradients() const { return p_.sharding.what != Sharded::states; }
  void check_sharding(const ConfigNode& where) const {
    if (where.find("sharding") == nullptr) return;
    const ConfigNode& what = node(where, "sharding", "what");
    const std::int64_t group = p_.sharding.group;
    if (p_.optimizer != Optimizer::distributed_adam)
      what.fail("what replicas divide among them needs optimizer: distributed_adam");
    if (!shards_gradients() && group != 0)
      node(where, "sharding", "group")
          .fail("a group divides gradients or parameters: what has to be one of them");
    if (shards_gradients() && (p_.gradient.overlap || p_.gradient.bucket != 0))
      node(where, "gradient", "bucket")
          .fail("divided gradients are summed layer by layer, beside the backward: no bucket, no overlap");
    if (p_.sharding.what == Sharded::parameters && p_.overlap_parameter_gather)
      where.find("overlap_parameter_gather")->fail("divided parameters are gathered before each use of them");
    if (group != 0 && p_.parallel.data % group != 0) {
      node(where, "sharding", "group")
          .fail("parallel.data (" + std::to_string(p_.parallel.data) + ") cannot be divided by it");
    }
    if (group != 0 && (model_->experts() != nullptr || p_.sharding.what == Sharded::gradients))
      node(where, "sharding", "group").fail("groups divide parameters, of a model without routed experts");
    if (p_.sharding.all_reduce == ShardingParameters::AllReduce::last &&
        (group == 0 || group == p_.parallel.data)) {
      node(where, "sharding", "all_reduce")
          .fail("nothing is all-reduced: sharding.group has to be less than parallel.data, and not 0");
    }
    if (p_.sharding.separate_reduce_scatter && p_.sharding.what != Sharded::parameters) {
      node(where, "sharding", "separate_reduce_scatter")
          .fail("no gathers run beside reduce-scatters: sharding.what has to be parameters");
    }
    if (p_.sharding.list_entry > 0 && (p_.sharding.what != Sharded::parameters || p_.parallel.pipeline > 1 ||
                                       model_->experts() != nullptr)) {
      node(where, "sharding", "list_entry")
          .fail("lists of tensors are of what: parameters, of a model without routed experts in one stage");
    }
    if (shards_gradients() && p_.parallel.pipeline > 1 && !model_->make(1, 2).shared.empty())
      what.fail("stages that share an embedding sum its gradients whole: gradients cannot be divided");
  }

  void check_offload(const ConfigNode& where) const {
    const OffloadParameters& o = p_.offload;
    const ConfigNode& optimizer = node(where, "offload", "optimizer");
    if (o.optimizer > 0 && p_.optimizer == Optimizer::none)
      optimizer.fail("there is no optimizer to offload: optimizer has to be adam or distributed_adam");
    if (o.optimizer > 0 && p_.parallel.servers > 0)
      optimizer.fail("parameter servers update the parameters: no parallel.servers");
    check_gradient_offload(where);
    if (o.activations == 0) return;
    const ConfigNode& activations = node(where, "offload", "activations");
    const Model model = model_->make(1, 2);
    const bool known = std::all_of(model.kinds.begin(), model.kinds.end(), [](const ModelLayer& layer) {
      return std::any_of(layer.forward.begin(), layer.forward.end(), [](const ModelPart& part) {
        return std::any_of(part.operators.begin(), part.operators.end(),
                           [](const Operator& op) { return !op.saved.empty(); });
      });
    });
    if (!known) activations.fail("the model does not say what its operators keep for the backward");
    if (p_.sharding.what == Sharded::parameters && o.ahead != p_.sharding.ahead)
      node(where, "offload", "ahead")
          .fail("parameters are gathered " + std::to_string(p_.sharding.ahead) +
                " layers ahead (sharding.ahead), and activations come back with them: has to be the same");
    const bool fetches = model_->experts() != nullptr && p_.parallel.expert_exchange == ExpertExchange::fetch;
    if (fetches && o.ahead != p_.dispatch.ahead)
      node(where, "offload", "ahead")
          .fail("experts are fetched " + std::to_string(p_.dispatch.ahead) +
                " layers ahead (dispatch.ahead), and activations come back with them: has to be the same");
  }
  // Checks gradients that leave the GPU before all are complete.
  void check_gradient_offload(const ConfigNode& where) const {
    if (!p_.offload.gradients) return;
    const ConfigNode& key = node(where, "offload", "gradients");
    if (p_.offload.optimizer == 0)
      key.fail("gradients are offloaded where the optimizer is: offload.optimizer has to be more than 0");
    const bool replicas = p_.parallel.data * p_.parallel.context > 1;
    if (replicas && !shards_gradients())
      key.fail("replicas have to divide the gradients: sharding.what has to be gradients or parameters");
    if (p_.sharding.all_reduce == ShardingParameters::AllReduce::last)
      key.fail("gradients leave behind every backward: sharding.all_reduce has to be every");
    if (p_.gradient.overlap || p_.gradient.bucket != 0)
      key.fail("gradients leave layer by layer: no gradient.bucket, no gradient.overlap");
    if (p_.parallel.sequence)
      key.fail("parallel.sequence sums up gradients of norms when all are there: has to be false");
    if (p_.parallel.pipeline > 1 && !model_->make(1, 2).shared.empty())
      key.fail("stages that share an embedding sum its gradients up when all are there: has to be false");
    if (model_->experts() != nullptr && p_.parallel.expert_exchange == ExpertExchange::fetch)
      key.fail("gradients of experts that are fetched are summed up over their ranks: has to be false");
    if (plan_ && plan_->placement.routes() > 1)
      key.fail("a bidirectional pipeline has two copies of the model, whose gradients are summed up");
  }

  void check_sizes(const ConfigNode& where) const {
    const double ranks = static_cast<double>(p_.parallel.tensor) * static_cast<double>(p_.parallel.pipeline) *
                         static_cast<double>(p_.parallel.data + p_.parallel.servers) *
                         static_cast<double>(p_.parallel.context);
    if (ranks > static_cast<double>(ProgramLimits::kRanks)) {
      node(where, "parallel", "data")
          .fail("tensor x context x pipeline x data is more than " + std::to_string(ProgramLimits::kRanks) +
                " ranks");
    }
    // A generous estimate of the operations of one rank. The exact number is checked when the program is
    // read.
    const double operations = (operations_of_layer() * static_cast<double>(model_->layers()) /
                                   static_cast<double>(p_.parallel.pipeline) +
                               20.0 * static_cast<double>(p_.parallel.virtual_stages)) *
                              static_cast<double>(p_.microbatches) *
                              static_cast<double>(p_.gradient.local_steps);
    if (operations * static_cast<double>(p_.parallel.pipeline) >
        static_cast<double>(ProgramLimits::kUnrolled)) {
      where.fail("layers x microbatches is too much: the programs of all stages may have " +
                 std::to_string(ProgramLimits::kUnrolled) + " operations");
    }
    if (model_->largest_bytes(p_.microbatch) > static_cast<double>(ProgramLimits::kBytes)) {
      node(where, "model", "hidden").fail("the model is too large: a tensor of it has more than 2^50 bytes");
    }
  }

  double operations_of_layer() const {
    const double tensor =
        overlaps(OverlapMethod::ring_exchange) ? static_cast<double>(p_.parallel.tensor) : 1;
    const double pieces =
        overlaps(OverlapMethod::pipelined) ? static_cast<double>(p_.parallel.tensor_overlap.pieces) : 1;
    return 20.0 + 10.0 * static_cast<double>(p_.parallel.context) + 20.0 * (tensor - 1) + 20.0 * (pieces - 1);
  }

  // Checks the demands of a schedule on the job, beyond its shape.
  void check_plan(const ConfigNode& where) const {
    check_replicas(where);
    check_gradient_offload(where);
    if (!plan_->trains) {
      node(where, "parallel", "schedule")
          .fail("ptdp trains: a schedule without backwards has nothing to reduce");
    }
    if (p_.ordered_p2p) {
      const std::string refusal = refuse_order(*plan_, !p_.overlap_p2p);
      if (!refusal.empty()) entry_or_self(where, "ordered_p2p").fail(refusal);
    }
    if (p_.dispatch.multiprocessors > 0 && !plan_->pairs()) {
      node(where, "dispatch", "multiprocessors")
          .fail("has to be 0: no forward overlaps a backward in the schedule");
    }
    if (plan_->placement.routes() > 1 && p_.gradient.overlap) {
      node(where, "gradient", "overlap")
          .fail(
              "overlap has to be false: the copies of the model in a bidirectional pipeline complete their "
              "gradients in different orders");
    }
    if (plan_->placement.routes() > 1 && shards_gradients())
      node(where, "sharding", "what")
          .fail("has to be states: a bidirectional pipeline has copies of its own");
    if (plan_->reduces()) check_reductions(where);
    for (std::uint32_t part = 0; plan_->placement.routes() > 1 && part < plan_->parts(); ++part) {
      const std::vector<std::uint32_t> holders = plan_->placement.holders(part);
      if (holders.front() + holders.back() + 1 == shape_.stages && holders.size() == 2) continue;
      node(where, "parallel", "schedule")
          .fail(
              "copies of a part of the model have to be on opposite stages, where their gradients are "
              "summed");
    }
  }
  // Checks that no other early reduction is configured if the schedule has steps that reduce gradients.
  void check_reductions(const ConfigNode& where) const {
    const std::string says = "the schedule has steps that reduce gradients: ";
    if (p_.gradient.overlap)
      node(where, "gradient", "overlap").fail(says + "gradient.overlap has to be false");
    if (p_.gradient.local_steps > 1)
      node(where, "gradient", "local_steps").fail(says + "replicas cannot step alone");
    if (p_.parallel.servers > 0)
      node(where, "parallel", "servers").fail(says + "there can be no parameter servers");
    if (shards_gradients())
      node(where, "sharding", "what").fail(says + "gradients that are divided are reduced in each backward");
    if (model_->experts() != nullptr && p_.parallel.expert_exchange == ExpertExchange::fetch)
      node(where, "parallel", "expert_exchange")
          .fail(says + "those of experts that are fetched are summed for each microbatch");
  }

  MemoryAccounting accounting() const {
    MemoryAccounting accounting;
    accounting.kept = recompute_ == Recompute::full        ? MemoryAccounting::Kept::input
                      : recompute_ == Recompute::selective ? MemoryAccounting::Kept::without_core
                                                           : MemoryAccounting::Kept::all;
    accounting.optimizer = p_.optimizer != Optimizer::none;
    accounting.states = p_.optimizer == Optimizer::distributed_adam;
    accounting.gradients = shards_gradients();
    accounting.parameters = p_.sharding.what == Sharded::parameters;
    accounting.precision = p_.precision;
    accounting.offloaded = p_.offload.optimizer;
    accounting.offloads_gradients = p_.offload.gradients;
    return accounting;
  }

  // Returns whether tokens reach the experts in the precision of their GEMMs.
  bool arrives_reduced() const {
    return p_.dispatch.precision == p_.precision && p_.parallel.expert > 1 &&
           p_.parallel.expert_exchange == ExpertExchange::dispatch;
  }

  std::vector<std::unique_ptr<Strategy>> strategies() const {
    std::vector<std::unique_ptr<Strategy>> all;
    all.push_back(module_recomputation(modules_));
    if (p_.gradient.accumulation == Accumulation::fused) all.push_back(fused_accumulation());
    if (p_.precision != Precision::half)
      all.push_back(reduced_precision({p_.precision, p_.scaling, arrives_reduced()}));
    all.push_back(context_parallel(p_.parallel.context_exchange));
    all.push_back(tensor_parallel());
    if (model_->tables() > 0) all.push_back(embedding_parallel(p_.parallel.embedding));
    const bool experts = model_->experts() != nullptr;
    if (experts) {
      all.push_back(expert_parallel({router_, narrow(p_.iterations), p_.parallel.expert_exchange,
                                     p_.dispatch.ranks_per_host, p_.dispatch.precision,
                                     p_.router.is_null() ? where_ : p_.router}));
    }
    if (p_.parallel.sequence) all.push_back(sequence_parallel());
    if (p_.parallel.sequence) all.push_back(tensor_overlap(p_.parallel.tensor_overlap));
    if (recompute_ == Recompute::full) all.push_back(full_recomputation());
    if (recompute_ == Recompute::selective) all.push_back(selective_recomputation());
    all.push_back(pipeline_parallel(
        {plan_, layers_, p_.scatter_gather, p_.overlap_p2p, p_.ordered_p2p, p_.dispatch.multiprocessors}));
    if (experts && p_.parallel.expert_exchange == ExpertExchange::fetch)
      all.push_back(expert_fetch({narrow(p_.dispatch.ahead), p_.dispatch.again}));
    if (p_.parameter_precision != Precision::half) all.push_back(reduced_parameters());
    const bool sharded = p_.optimizer == Optimizer::distributed_adam;
    const OffloadParameters& offload = p_.offload;
    std::vector<ParameterSet> sets{ParameterSet::common};
    if (experts) sets.push_back(ParameterSet::experts);
    const bool parameters = p_.sharding.what == Sharded::parameters;
    for (const ParameterSet set : sets) {
      all.push_back(
          shards_gradients()
              ? sharded_replicas({parameters, p_.sharding.reshard, narrow(p_.sharding.ahead),
                                  p_.sharding.list_entry, p_.sharding.separate_reduce_scatter,
                                  p_.sharding.all_reduce == ShardingParameters::AllReduce::last, set})
          : p_.gradient.local_steps > 1
              ? local_steps({narrow(p_.gradient.local_steps), p_.gradient.bucket, set})
          : p_.parallel.servers > 0
              ? parameter_servers({narrow(p_.parallel.servers), p_.gradient.bucket, p_.gradient.overlap,
                                   consistency(), narrow(p_.gradient.staleness.value_or(0)),
                                   p_.optimizer != Optimizer::none})
              : data_parallel({p_.gradient.bucket, p_.gradient.overlap, sharded, set}));
    }
    if (p_.parallel.sequence) all.push_back(sequence_gradients());
    const bool at_servers =
        p_.parallel.servers > 0 && consistency() != ParameterServers::Consistency::collective;
    if (offload.activations > 0)
      all.push_back(activation_offload({offload.activations, narrow(offload.ahead), accounting().kept}));
    if (offload.optimizer > 0) {
      all.push_back(optimizer_offload({offload.optimizer, offload.gradients,
                                       p_.microbatches * p_.gradient.local_steps > 1, offload.bucket,
                                       offload.cpu_bandwidth, sharded}));
    } else if (p_.optimizer != Optimizer::none && !at_servers) {
      all.push_back(optimizer(sharded));
    }
    for (const ParameterSet set : sets) {
      if (sharded && !parameters)
        all.push_back(parameter_gather(p_.gradient.bucket, p_.overlap_parameter_gather, set));
    }
    return all;
  }

  // Returns the axes of a stage, as tensor, context and data parallelism count its ranks.
  std::vector<ProgramAxis> axes_of_stage() const {
    std::vector<ProgramAxis> axes{{"tp", narrow(p_.parallel.tensor)}};
    if (p_.parallel.context > 1 && hybrid()) {
      axes.push_back({"cp_heads", narrow(p_.parallel.context_heads)});
      axes.push_back({"cp_tokens", narrow(p_.parallel.context / p_.parallel.context_heads)});
    } else if (p_.parallel.context > 1) {
      axes.push_back({"cp", narrow(p_.parallel.context)});
    }
    if (p_.sharding.group == 0) {
      axes.push_back({"dp", narrow(p_.parallel.data + p_.parallel.servers)});
    } else {
      axes.push_back({"dp_shards", narrow(p_.sharding.group)});
      axes.push_back({"dp_unsharded", narrow(p_.parallel.data / p_.sharding.group)});
    }
    return axes;
  }
  ProgramAxis stages() const { return {"pp", narrow(p_.parallel.pipeline)}; }
  std::int64_t ranks_of_stage() const { return p_.parallel.tensor * p_.parallel.context * p_.parallel.data; }
  std::optional<Mesh> mesh_with_experts() const {
    const std::int64_t expert = p_.parallel.expert, within = experts_per_host();
    const bool fetches = p_.parallel.expert_exchange == ExpertExchange::fetch;
    std::vector<ProgramAxis> axes{{"etp", narrow(expert_tensor())}};
    if (fetches) {
      axes.push_back({"ep_within", narrow(within)});
      axes.push_back({"ep_across", narrow(expert / within)});
    } else {
      axes.push_back({"ep", narrow(expert)});
    }
    axes.push_back({"edp", narrow(ranks_of_stage() / expert_tensor() / expert)});
    std::optional<Mesh> mesh = folded_mesh(axes_of_stage(), axes, stages());
    if (mesh && fetches) mesh->combine("ep", {"ep_within", "ep_across"});
    if (mesh) name_products(*mesh);
    return mesh;
  }
  void name_products(Mesh& mesh) const {
    const bool context = p_.parallel.context > 1;
    if (context && hybrid()) mesh.combine("cp", {"cp_heads", "cp_tokens"});
    if (p_.sharding.group != 0) {
      mesh.combine("dp", {"dp_shards", "dp_unsharded"});
      mesh.combine("shards", context ? std::vector<std::string>{"cp", "dp_shards"}
                                     : std::vector<std::string>{"dp_shards"});
    }
    mesh.combine("replicas", context ? std::vector<std::string>{"cp", "dp"} : std::vector<std::string>{"dp"});
  }
  Mesh mesh() const { return model_->experts() != nullptr ? *mesh_with_experts() : mesh_of(stages()); }
  Mesh mesh_of(const ProgramAxis& stages) const {
    std::vector<ProgramAxis> axes = axes_of_stage();
    axes.push_back(stages);
    Mesh mesh(axes);
    name_products(mesh);
    return mesh;
  }

  std::int64_t gradient_bytes() const { return p_.gradient.dtype == GradientType::fp16 ? 2 : 4; }
  void apply_all(TrainingGraph& graph, bool with_memory) const {
    std::vector<std::unique_ptr<Strategy>> all = strategies();
    if (with_memory) all.push_back(memory_accounting(accounting()));
    apply_strategies(all, graph);
  }
  // Sets the parts of a checkpoint that the graph's ranks write and read. The job has `ranks` ranks.
  void add_checkpoint(const TrainingGraph& graph, std::size_t ranks, CheckpointedJob* checkpoint) const {
    if (checkpoint == nullptr || p_.checkpoint.every == 0) return;
    const std::vector<Bytes> written = checkpoint_bytes(graph, accounting(), p_.checkpoint.divided);
    const std::vector<Bytes> read = restored_bytes(graph, accounting());
    checkpoint->written.resize(ranks);
    checkpoint->read.resize(ranks);
    for (std::uint32_t rank = 0; rank < graph.mesh.ranks(); ++rank) {
      checkpoint->written[graph.mesh.job_rank(rank)] = written[rank];
      checkpoint->read[graph.mesh.job_rank(rank)] = read[rank];
    }
  }

  Program build_alike(ProgramBuilder& builder, bool with_memory, CheckpointedJob* checkpoint) const {
    TrainingGraph graph(builder, mesh(), model_->make(p_.microbatch, gradient_bytes()));
    apply_all(graph, with_memory);
    add_checkpoint(graph, graph.mesh.ranks(), checkpoint);
    return make_program(graph);
  }

  // Returns the layouts of stages with meshes of their own.
  std::vector<StageLayout> layouts() const {
    std::vector<StageLayout> layouts;
    std::uint32_t first = 0;
    for (const StageDegrees& stage : degrees_) {
      layouts.push_back({first, narrow(stage.tensor), narrow(p_.parallel.context), narrow(stage.data)});
      first += layouts.back().ranks();
    }
    return layouts;
  }
  StageBoundaries boundaries() const {
    const Model model = model_->make(1, 2);
    Sharding sharding;
    for (const Dimension dimension : {Dimension::tokens, Dimension::sequence})
      sharding.divide(dimension, p_.parallel.context);
    StageBoundaries boundaries;
    boundaries.samples = p_.microbatch * p_.parallel.data;
    boundaries.element = model.boundary_bytes;
    boundaries.sequence = p_.parallel.sequence;
    for (const Tensor& tensor : boundary_tensors(model, layers_))
      boundaries.elements.push_back(sharding.local(tensor));
    return boundaries;
  }
  // Returns the parameters that the ends of the model share, where they do and have different meshes.
  std::optional<SharedParameters> shared_parameters() const {
    const PipelinePlacement& placement = plan_->placement;
    SharedParameters shared;
    shared.first = placement.at(0, 0).stage;
    shared.last = placement.at(0, placement.parts() - 1).stage;
    const Model model = model_->make(1, gradient_bytes());
    if (model.shared.empty() || degrees_[shared.first].same_mesh(degrees_[shared.last])) return {};
    for (const Extent& extent : model.shared)
      (extent.along == Dimension::vocabulary ? shared.rows : shared.columns) *= extent.size;
    shared.element = model.gradient_bytes;
    return shared;
  }
  Program build_stages(ProgramBuilder& builder, bool with_memory, CheckpointedJob* checkpoint) const {
    const std::vector<StageLayout> stages = layouts();
    const std::uint32_t ranks = stages.back().first + stages.back().ranks();
    builder.axis("rank", ranks);
    const StageReshardings reshardings(builder, plan_->placement, stages, boundaries(), shared_parameters(),
                                       p_.parallel.resharding);
    const std::vector<StageDegrees> meshes = this->meshes();
    std::vector<TrainingGraph> graphs;
    graphs.reserve(meshes.size());
    std::vector<std::uint32_t> graph_of(stages.size());
    for (const StageDegrees& degrees : meshes) {
      std::vector<Mesh::StageStart> starts;
      for (std::uint32_t stage = 0; stage < stages.size(); ++stage) {
        if (!degrees_[stage].same_mesh(degrees)) continue;
        starts.push_back({stage, stages[stage].first});
        graph_of[stage] = static_cast<std::uint32_t>(graphs.size());
      }
      const Ptdp job = with_mesh(degrees);
      Mesh mesh = job.mesh_of({"pp", static_cast<std::uint32_t>(starts.size())});
      mesh.lay_out(std::move(starts));
      TrainingGraph& graph =
          graphs.emplace_back(builder, std::move(mesh), model_->make(job.p_.microbatch, gradient_bytes()));
      job.apply_all(graph, with_memory);
      graph.transfers.reshardings = &reshardings;
      add_checkpoint(graph, ranks, checkpoint);
    }
    return make_program(graphs, graph_of);
  }

  // Builds the program. Files have no fields for the memory of operations. If not null, `checkpoint` gets the
  // ranks' parts of a checkpoint.
  Program build(bool with_memory, CheckpointedJob* checkpoint = nullptr) const {
    ProgramBuilder builder(p_.name);
    Program program = degrees_.empty() ? build_alike(builder, with_memory, checkpoint)
                                       : build_stages(builder, with_memory, checkpoint);
    program.iterations = narrow(p_.iterations);
    program.warm_up = narrow(p_.warm_up);
    program.model_flops =
        model_->flops(p_.microbatch * p_.microbatches * p_.gradient.local_steps * p_.parallel.data,
                      recompute_ == Recompute::full);
    return program;
  }

  PtdpParameters p_;
  Recompute recompute_ = Recompute::full;
  RecomputedModules modules_;
  std::shared_ptr<ModelKind> model_;
  std::shared_ptr<const Router> router_;
  ConfigNode where_;
  std::vector<StageDegrees> degrees_;  // by stage; empty: all are alike
  // For a job with one stage's mesh (with_mesh()): the stage's entry.
  ConfigNode stage_;
  PipelineShape shape_;
  std::string file_;
  std::shared_ptr<const PipelinePlan> plan_;
  std::vector<std::uint32_t> layers_;  // by part
};

const Registration<WorkloadKind> kPtdp{
    "ptdp",
    "training of a model under any product of data, tensor, pipeline, context and expert parallelism, as "
    "Megatron-LM's PTD-P",
    ptdp_parameters(),
    [](const PtdpParameters& p, const ConfigNode& where) { return std::make_unique<Ptdp>(p, where); }};

}  // namespace
}  // namespace netsim
