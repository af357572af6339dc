// The strategies of a training job, each of which rewrites a TrainingGraph; one .cpp each. A job applies them
// in this order, as many as it has: its product of strategies is their list.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sim/core/units.h"
#include "sim/training/strategy/training_graph.h"
#include "sim/workload/routing/router.h"

namespace netsim {

// Of a parameter in half precision, and of what Adam keeps of one in fp32: a copy of it, momentum, variance.
inline constexpr std::int64_t kParameterBytes = 2, kOptimizerBytes = 12;
// In FP8 each block of this many elements has one scale of this many bytes (DeepSeek-V3, arXiv 2412.19437,
// section 3.3.2; DeepEP's x_scales).
inline constexpr std::int64_t kScaledElements = 128, kScaleBytes = 4;
// Of so many parameters, of which `reduced` are kept in FP8 (reduced_parameters()), as they are gathered.
constexpr Bytes parameter_bytes(std::int64_t parameters, std::int64_t reduced) {
  return kParameterBytes * (parameters - reduced) + reduced;
}
// Of what is divided into so many parts, one of them; the last may be smaller.
constexpr std::int64_t equal_part(std::int64_t whole, std::int64_t parts) {
  return (whole + parts - 1) / parts;
}

// Context parallelism over axis "cp": each rank has its part of every sequence, computes all that concerns
// one token for its own ones, and attends with its queries to the keys and values of all. The parts are two
// of twice as many chunks, one from either end, so that causal attention is the same work on all ranks
// (Megatron-Core; Brandon et al., "Striped Attention", arXiv 2311.09431, for the reason). How a rank comes by
// the keys and values (stream cp):
// - ring: blocks of them go round, each passed on while attention to it is computed; backward, the gradients
//   of the blocks go round with them (Liu et al., "Ring Attention", arXiv 2310.01889; Transformer Engine's
//   "p2p", whose ring of the backward begins with the block that the forward ended with, so that cp - 1
//   transfers bring a block and its gradient home);
// - all_gather: all are gathered before the attention, forward and backward, and their gradients
//   reduce-scattered after it (Dubey et al., "The Llama 3 Herd of Models", arXiv 2407.21783, section 3.3.2);
// - all_to_all: queries, keys and values of all tokens for a part of the heads, and back with the output
//   (Jacobs et al., "DeepSpeed-Ulysses", arXiv 2309.14509);
// - hybrid: all_to_all over axis "cp_heads", ring over axis "cp_tokens", which "cp" is made of (Fang and
// Zhao,
//   "USP", arXiv 2405.07719; Transformer Engine's "a2a+p2p").
// Before tensor_parallel().
enum class ContextExchange : std::uint8_t { ring, all_gather, all_to_all, hybrid };
std::unique_ptr<Strategy> context_parallel(ContextExchange exchange);
// Why a model cannot be trained so, in words for the user; "" if it can.
std::string refuse_context(const Model& model, ContextExchange exchange);

// Megatron-LM's tensor parallelism over axis "tp" (Shoeybi et al., arXiv 1909.08053): heads, the inner
// dimension of the MLP and the vocabulary are divided, and each partial sum is all-reduced (stream tp) before
// anything else is computed.
std::unique_ptr<Strategy> tensor_parallel();

// Embedding tables of a recommendation model over axis "replicas", which has copies of all else (Naumov et
// al., arXiv 1906.00091, section 3; Mudigere et al., arXiv 2104.05158): each rank has whole tables, and
// all-to-alls take indices to them and rows back, and gradients of rows; or each has some rows of every
// table, and indices are all-gathered, sums of rows reduce-scattered, and their gradients all-gathered
// (stream ep). What does not need them is computed meanwhile (Exchange::beside). What a rank with a part of
// the rows writes of other ranks' sums is not counted. Does nothing for a model without tables.
enum class TableDivision : std::uint8_t { tables, rows };
std::unique_ptr<Strategy> embedding_parallel(TableDivision division);

// GEMMs of the body's weight matrices, forward and backward, in FP8 or less: attention, embedding, logits and
// everything between the GEMMs stay in half precision. Who makes their operands:
// - tensor: as NVIDIA's Transformer Engine, which scales whole tensors by what they were before. The operand
//   of a GEMM is written in the reduced precision by the kernel before it where that is bound by memory (a
//   norm, an activation: Transformer Engine fuses the cast with them), else by a kernel of its own that
//   reads 2 bytes and writes the value and its transpose;
// - blocks: as DeepSeek-V3 (arXiv 2412.19437, sections 3.3.2, 3.3.3 and 3.5.2), which scales each 128
//   elements of a token, and 128 x 128 of a weight, by what they are. That is a kernel of its own before each
//   GEMM: of a forward it reads 2 bytes and writes 1; of a gradient it writes it twice, scaled along the
//   channels for the gradient of the input and along the tokens for that of the weights; and what the forward
//   kept is scaled along the tokens anew (read 1, write 1) for the gradients of weights. Each has a scale of
//   4 bytes for 128 elements. What is dispatched to experts in FP8 is so already. Weights are not cast: they
//   change once a step.
// Before tensor_parallel().
enum class Scaling : std::uint8_t { tensor, blocks };
struct ReducedPrecision {
  Precision precision = Precision::fp8;
  Scaling scaling = Scaling::tensor;
  bool dispatched = false;  // experts get tokens, and gradients, in it
};
std::unique_ptr<Strategy> reduced_precision(const ReducedPrecision& parameters);

// GEMMs of gradients of weights add to the sum of the microbatches' gradients, in its type, and no kernel of
// its own reads what they have written and adds it (Megatron-LM's gradient_accumulation_fusion; DeepGEMM's
// kernels for gradients of weights, deepseek-ai/DeepGEMM pull request 95). Gradients that no GEMM computes
// (of an embedding that is looked up), or one of patches (a convolution), are added as before.
std::unique_ptr<Strategy> fused_accumulation();

// Sequence parallelism beside tensor parallelism (Korthikanti et al., arXiv 2205.05198): between the parts
// that tensor parallelism divides each rank of axis "tp" computes its part of the tokens. What was an
// all-reduce is a reduce-scatter, and what needs all tokens gathers them. As Megatron-LM does it, gradients
// of weights gather the layer's input again while the gradient of the input is computed, and the
// reduce-scatter of that gradient runs beside the gradients of weights. After tensor_parallel(), before
// recomputation.
std::unique_ptr<Strategy> sequence_parallel();

// Expert parallelism over axis "ep" (GShard, arXiv 2006.16668; Megatron-Core's MoE, arXiv 2504.14960): the
// routed experts of a layer are divided among the ranks, and tokens go to their experts and back, forward and
// backward (stream ep). Axes "etp", which divides each expert as "tp" divides an MLP, and "ep" may lie across
// others: the experts' ranks are those of "tp" and "dp" counted anew (folded_mesh()), and with as many again
// in "edp" have copies of the same experts. How tokens and experts meet:
// - all_to_all: an all-to-all of copies, one for each expert of a token; by counts (all-to-all-v) where the
//   router is not even, and then each rank computes as many copies as it gets;
// - dispatch: the operations dispatch and combine of the collective library, whose algorithm says how often a
//   token travels and which way (direct, deepep, deepep_low_latency); who sends them makes no copies, and
//   gets their sums;
// - fetch: tokens stay, and each rank gets the experts that it has not (Janus: Liu et al., SIGCOMM'23);
//   expert_fetch() moves them.
// Does nothing for a model without experts. After tensor_parallel(), before sequence_parallel(), which it
// needs where "tp" has more than one rank, as in Megatron-Core.
enum class ExpertExchange : std::uint8_t { all_to_all, dispatch, fetch };
struct ExpertParallelism {
  std::shared_ptr<const Router> router;
  std::uint32_t iterations = 1;  // of the job
  ExpertExchange exchange = ExpertExchange::all_to_all;
  std::int64_t ranks_per_host = 8;        // dispatch: so many ranks of "ep" behind each other are on a host
  Precision precision = Precision::half;  // of what is sent to experts; what comes back is in half precision
  ConfigNode where{};                     // for errors: the router's
};
std::unique_ptr<Strategy> expert_parallel(ExpertParallelism parameters);

// ExpertExchange::fetch over axis "ep", made of "ep_within", the ranks of a host, and "ep_across": before
// each forward of a layer with experts ranks of one place get the experts of each other's, and then ranks of
// a host those of each other, so that a host gets each expert once (Janus; stream ep). Their gradients are
// summed up the other way after each backward, within hosts first. After pipeline_parallel(), before
// data_parallel().
struct ExpertFetch {
  std::uint32_t ahead = 1;  // layers: how much ahead of its use a layer's experts are fetched
  bool again = false;       // for the backward, too; else the forward's are kept
};
std::unique_ptr<Strategy> expert_fetch(const ExpertFetch& parameters);
// What a router is asked about for a job, and of how many layers.
RoutingShape routing_shape(const Model::Routed& routed, const Mesh& mesh);
std::uint32_t layers_with_experts(const Model& model);
// Communication of sequence parallelism in pieces, beside the GEMM of a body's layer that waits for it or
// that it waits for: of the inputs that are gathered before a GEMM, and of the sums that are reduce-scattered
// behind one. What runs beside the gradients of weights stays as it is (Transformer Engine's "bulk" overlap).
// - ring_exchange: a rank computes with its own tokens while it passes them on and gets those of the next
//   rank; partial sums are passed on and added to (Wang et al., "Overlap Communication with Dependent
//   Computation via Decomposition in Large Deep Learning Models", ASPLOS 2023; Transformer Engine's
//   "ring_exchange");
// - pipelined: the collective and the GEMM are cut into as many pieces; a piece is gathered while the one
//   before is computed, or summed while the one behind is (Transformer Engine's "pipeline").
// The GEMMs of the pieces fill each other's last waves, as they do on Transformer Engine's streams for
// computation (split_overlap_rs() and split_overlap_ag() of its userbuffers, which take several in turn).
// After sequence_parallel(), before recomputation.
enum class OverlapMethod : std::uint8_t { none, ring_exchange, pipelined };
struct TensorOverlap {
  OverlapMethod gathers = OverlapMethod::none;
  OverlapMethod reduce_scatters = OverlapMethod::none;
  std::int64_t pieces = 4;  // of what is pipelined; Transformer Engine's num_splits
};
std::unique_ptr<Strategy> tensor_overlap(const TensorOverlap& parameters);

// Gradients of parameters that each rank computed for its part of the tokens only (norms, biases) are
// all-reduced over "tp" when all others are there (Megatron-LM's finalize_model_grads). After
// data_parallel().
std::unique_ptr<Strategy> sequence_gradients();

// Activations of the body's layers are not kept: each backward computes the layer's forward again (Chen et
// al., arXiv 1604.06174; Megatron-LM's --recompute-granularity full), communication and all.
std::unique_ptr<Strategy> full_recomputation();

// What the core of the attention keeps, which grows with the square of the sequence, is not kept: each
// backward computes the core of its layer's forward again before its own (Korthikanti et al., arXiv
// 2205.05198, section 5; Megatron-LM's --recompute-granularity selective), communication of context
// parallelism and all. As Megatron does it, a fused attention, too, although that keeps no scores.
std::unique_ptr<Strategy> selective_recomputation();

// What some modules of a layer give is not kept: the backward of the part that they stand in computes it
// again before all else (Megatron-Core's --recompute-modules; DeepSeek-V3, arXiv 2412.19437, sections 3.2.3
// and 3.3.3, has all three). First of all strategies, so that it is divided and cast as the forward is.
struct RecomputedModules {
  bool norms = false, latent_up = false, activations = false;
  bool has(Module module) const {
    return (module == Module::norm && norms) || (module == Module::latent_up && latent_up) ||
           (module == Module::activation && activations);
  }
};
std::unique_ptr<Strategy> module_recomputation(const RecomputedModules& modules);

// The layers of the body over the stages of axis "pp", so many in each part of the plan's placement, first
// and last part with an end of the model; steps in the order of the plan. Gradients of parameters that both
// ends share are all-reduced between the stages that hold them (stream pp); where these have different
// meshes, they are exchanged and added (StageReshardings).
struct PipelineParallel {
  std::shared_ptr<const PipelinePlan> plan;
  std::vector<std::uint32_t> layers;  // by part
  // Between stages each rank of axis "tp" sends 1/t of the boundary tensor and the receivers gather it.
  bool scatter_gather = true;
  // Stages do not wait for what they send.
  bool overlap_transfers = true;
  // All messages of a stage are in one stream (PipelineTransfers::ordered).
  bool ordered_transfers = false;
  // Of a GPU, that dispatch and combine hold while pairs of a forward and a backward overlap.
  std::int64_t held_multiprocessors = 0;
};
std::unique_ptr<Strategy> pipeline_parallel(PipelineParallel parameters);
// What lies behind each part of the model but the last, which have so many layers of the body.
std::vector<Tensor> boundary_tensors(const Model& model, const std::vector<std::uint32_t>& layers);

// Data parallelism over axis "replicas" (the ranks that hold the same parameters): all gradients of a stage
// are all-reduced (stream dp) after its last backward, in pieces of `bucket` bytes (0: in one). With
// `overlap`, the layers' gradients go out during the last microbatch's backward, whenever layers have filled
// a bucket; what remains follows after it. Gradients of chunks that the schedule has steps for are reduced at
// these, in pieces of a bucket (PipelineStepKind::reduce; not beside `overlap`). A bidirectional pipeline's
// copies of the model are summed in the same collective.
struct DataParallelism {
  Bytes bucket = 0;
  bool overlap = false;
  // Each rank gets the sum of its part only: a reduce-scatter, for an optimizer that is divided.
  bool sharded = false;
  ParameterSet set = ParameterSet::common;  // whose gradients
};
std::unique_ptr<Strategy> data_parallel(const DataParallelism& parameters);
// The buckets that overlap with the last backward: layers of the body fill them in the order in which it
// comes to them; what does not fill one is in none. Each is due behind a layer of a chunk, as in
// ChunkGraph::reductions.
struct GradientBucket {
  std::size_t chunk = 0, layer = 0;
  Bytes bytes = 0;
};
std::vector<GradientBucket> gradient_buckets(const TrainingGraph& graph, const StageGraph& stage, Bytes size,
                                             ParameterSet set);
// Local SGD (Stich, arXiv 1805.09767; federated averaging: McMahan et al., AISTATS 2017): replicas take
// `steps` steps of their own, each with an optimizer, and then all-reduce their parameters, in the type of
// gradients (stream dp), to their mean. An iteration is a round of so many steps. In the place of
// data_parallel(); optimizers are not divided.
struct LocalSteps {
  std::uint32_t steps = 1;
  Bytes bucket = 0;  // of one all-reduce; 0: all in one
  ParameterSet set = ParameterSet::common;
};
std::unique_ptr<Strategy> local_steps(const LocalSteps& parameters);

// Parameter servers: the last `servers` coordinates of axis "dp" are ranks that compute no part of the model.
// In the place of data_parallel(), of jobs that have no other parallelism.
//
// Synchronous, without `staleness`: gradients are all-reduced among workers and servers as data_parallel()
// has it; the servers contribute nothing, which the all-reduce's algorithm has to know (parameter_server:
// Jiang et al., BytePS, OSDI 2020).
//
// With a staleness s: each server has its part of all parameters. An iteration is a clock of each worker: it
// pulls the parameters, computes, and pushes its gradients, in buckets during its last backward with
// `overlap`; a server applies a push when it is there. It answers a pull when it has applied the worker's
// pushes before, and those of all workers of the clock s + 1 before: so a worker is at most s clocks ahead of
// the slowest (stale synchronous parallel: Ho et al., NIPS 2013; bounded delay: Li et al., OSDI 2014,
// section 3.4; s = 0 is bulk synchronous). Asynchronous: all other workers' pushes are not waited for
// (Downpour SGD: Dean et al., NIPS 2012, with n_push = n_fetch = 1).
struct ParameterServers {
  std::uint32_t servers = 1;
  Bytes bucket = 0;  // of pushes and of pulls; 0: all in one
  bool overlap = false;
  enum class Consistency : std::uint8_t {
    collective,
    stale,
    asynchronous
  } consistency = Consistency::collective;
  std::uint32_t staleness = 0;
  bool optimizer = true;  // Adam for each push, else its sum only; not of `collective`
};
std::unique_ptr<Strategy> parameter_servers(const ParameterServers& parameters);

// How many ranks hold the same parameters of a set as a rank, and a collective of them for the ranks of a
// stage (stream dp, no bytes yet; `name` follows the axis). After pipeline_parallel().
std::uint32_t replica_count(const TrainingGraph& graph, ParameterSet set);
GraphNode among_replicas(TrainingGraph& graph, std::uint32_t stage, const std::string& name,
                         CollectiveKind kind, ParameterSet set);

// Among how many of these ranks the copies are divided, where an optimizer divides them: all, or the ranks of
// axis "shards" where axis "dp_unsharded" counts those that have the same part. And the collective of them.
std::uint32_t shard_count(const TrainingGraph& graph, ParameterSet set);
std::uint32_t unsharded_count(const TrainingGraph& graph, ParameterSet set);
GraphNode among_shards(TrainingGraph& graph, std::uint32_t stage, const std::string& name,
                       CollectiveKind kind, ParameterSet set);

// Adam over the stage's parameters when their gradients are there; `sharded`: over this rank's part of them.
std::unique_ptr<Strategy> optimizer(bool sharded = false);
// Of so many parameters of a stage or layer those that a rank updates, `sharded` as above.
std::int64_t updated_parameters(const TrainingGraph& graph, std::int64_t parameters, ParameterSet set,
                                bool sharded);
// Adam over so many parameters, with what it needs of the memory.
GraphNode optimizer_step(std::int64_t parameters, Bytes gradient_bytes, std::int64_t reduced = 0);

// The same with a share of each rank's parameters updated by the CPUs of its host (stream offload): their
// gradients are copied there, the CPUs update the parameters, whose states are in the host's memory, and the
// parameters are copied back, in half precision. In pieces of `bucket` bytes of gradients (0: in one), of
// which one is copied back while the next is updated and the one behind comes (Megatron-Core's
// --optimizer-cpu-offload with --optimizer-offload-fraction and --overlap-cpu-optimizer-d2h-h2d). What
// gradients() of other ranks are summed up to is complete before.
//
// With `gradients` they are copied layer by layer in each microbatch's backward and none of them stay on the
// GPU (ZeRO-Offload: Ren et al., USENIX ATC'21); of several microbatches the CPUs sum them up. Replicas have
// to divide them then (ShardedReplicas), where there are any.
//
// The CPUs need as long as what an update reads and writes of their memory takes at `cpu_bandwidth`: for each
// parameter the gradient, three states in fp32 each way, and the parameter in half precision. Of the CPUs of
// a host, which all its ranks share. The default is what ZeRO-Offload's CPU-Adam reaches on two Xeon 8168:
// 2.57 s for 10 billion parameters (Ren et al., table 4), 28 bytes each, 109 GB/s; from 1 to 8 billion it is
// 93 to 127.
struct OptimizerOffload {
  double share = 1;
  bool gradients = false;
  bool sums_up = false;  // several microbatches, with `gradients`
  Bytes bucket = 256 * kMegabyte;
  BitRate cpu_bandwidth = 109 * 8 * kGbps;
  bool sharded = false;  // as of optimizer()
};
std::unique_ptr<Strategy> optimizer_offload(const OptimizerOffload& parameters);
// Of so many parameters those that are updated on the host.
std::int64_t offloaded(std::int64_t parameters, double share);
// Of a layer, for one rank; what the ends of the model share counts with `carrier`, the first layer or the
// last.
std::int64_t carried_parameters(const TrainingGraph& graph, std::uint32_t layer, std::uint32_t carrier,
                                ParameterSet set);
// Of a layer of the stage, those whose gradients its backward completes: what the ends of the model share
// counts with the first of them that the stage has, or else with the last.
std::int64_t completed_parameters(const TrainingGraph& graph, const StageGraph& stage, std::uint32_t layer,
                                  ParameterSet set);

// Parameters that a divided optimizer has updated are gathered by all replicas (stream dp), in pieces of
// `bucket` bytes (0: in one): after the optimizer, or, with `overlap`, when an iteration begins, layer by
// layer in the order of the forward, whose first microbatch waits for those that it comes to (Megatron-LM's
// distributed optimizer, after ZeRO-1: Rajbhandari et al., SC'20; --overlap-param-gather). After optimizer().
std::unique_ptr<Strategy> parameter_gather(Bytes bucket, bool overlap,
                                           ParameterSet set = ParameterSet::common);

// Weights of the layers' GEMMs are kept in FP8 and gathered so, one byte each, by replicas that divide the
// optimizer or the parameters; norms, biases, routers, embedding and logits stay in half precision
// (Transformer Engine's fp8_model_init() with Megatron-Core's --fp8-param-gather, which takes it with the
// distributed optimizer or FSDP; torchao's enable_fsdp_float8_all_gather). Counts them (LayerGraph::reduced,
// StageGraph::reduced) for those who move and keep parameters. Not counted: the all-reduce of the greatest
// values that new scales come from, 4 bytes a weight matrix, or for 128 x 128 elements of it. After
// pipeline_parallel(), before sharded_replicas() and optimizer().
std::unique_ptr<Strategy> reduced_parameters();

// ZeRO-2 and 3 (Rajbhandari et al., SC'20), FSDP (Zhao et al., VLDB 2023): each rank of the replicas keeps
// its part of gradients, or of parameters too, beside its part of the optimizer's states. A layer's gradients
// are reduce-scattered after each microbatch's backward of it (stream dp). With `parameters` its parameters
// are gathered before each forward of it, and given up after it, and gathered again for the backward, `ahead`
// layers ahead. Where axis "dp_unsharded" has several ranks (PyTorch's HSDP), parts are all-reduced among
// these. The all-reduces have a queue of their own beside gathers and reduce-scatters, as in PyTorch since
// 2023 (pull request 106080; all_reduce_stream in torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py).
// In the place of data_parallel(); without parameters followed by parameter_gather().
struct ShardedReplicas {
  bool parameters = false;
  // What is given up between forward and backward: all (ZeRO-3's way); the layers of the body, the ends of
  // the model staying as FSDP's root does; or nothing (FSDP's reshard_after_forward=False).
  enum class Reshard : std::uint8_t { all, layers, nothing } reshard = Reshard::layers;
  std::uint32_t ahead = 1;  // FSDP's forward and backward prefetch
  // What each tensor costs where a matrix is gathered by itself into a list of as many tensors as ranks have
  // parts of it, and its gradient reduce-scattered out of one: the host makes them and PyTorch copies them
  // one by one, and the GPU computes nothing meanwhile (DeepSpeed of 2021, _allgather_param in
  // deepspeed/runtime/zero/partition_parameters.py; ProcessGroupNCCL's all-gather of lists). 0: no lists.
  Time list_entry = 0;
  // What has fewer parameters has no list: DeepSpeed keeps it whole (stage3_param_persistence_threshold).
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
std::unique_ptr<Strategy> sharded_replicas(const ShardedReplicas& parameters);

// Says what memory the job needs (LayerMemory, StageGraph::resident, GraphNode::memory): parameters in half
// precision, and in reduced precision a copy and its transpose, or, of those that are kept in FP8, the
// transpose alone; sums of gradients; for Adam in mixed
// precision 12 bytes a parameter, a copy in fp32 and two moments (Rajbhandari et al., SC'20); activations
// from a layer's forward to its backward, by what its operators save. Does nothing for a model whose layers
// do not say what they save. Behind all others.
struct MemoryAccounting {
  // What a forward keeps of a layer of the body: all that is saved; all but what is made in the core of the
  // attention; its input.
  enum class Kept : std::uint8_t { all, without_core, input } kept = Kept::all;
  bool optimizer = true;
  // Divided among replicas.
  bool states = false, gradients = false, parameters = false;
  Precision precision = Precision::half;  // of the GEMMs of weights
  double offloaded = 0;                   // OptimizerOffload::share
  bool offloads_gradients = false;
};
std::unique_ptr<Strategy> memory_accounting(const MemoryAccounting& parameters);

// What a forward keeps of a layer of the body for its backward.
MemoryChange kept_activations(TrainingGraph& graph, const LayerGraph& layer, MemoryAccounting::Kept kept);

// What forwards keep of a share of the body's layers goes to the host's memory, behind each forward of the
// layer, and comes back `ahead` layers before its backward, one copy after the other (stream offload). Of
// each chunk those are the first layers, whose backwards are farthest away (Transformer Engine's
// get_cpu_offload_context(), Megatron-Core's --cpu-offloading-num-layers; of what full recomputation keeps:
// DeepSpeed's cpu_checkpointing). After pipeline_parallel().
struct ActivationOffload {
  double share = 1;  // of the layers; rounded to a number of them
  std::uint32_t ahead = 1;
  MemoryAccounting::Kept kept = MemoryAccounting::Kept::all;
};
std::unique_ptr<Strategy> activation_offload(const ActivationOffload& parameters);

// What each rank writes of a checkpoint: parameters in half precision and the optimizer's states, 14 bytes a
// parameter, once: of what replicas have copies of the first one writes it, or, `divided`, each a part. After
// all strategies. By rank of the graph's mesh.
std::vector<Bytes> checkpoint_bytes(const TrainingGraph& graph, const MemoryAccounting& memory, bool divided);
// What each rank reads of it to go on: the parameters and states that it has.
std::vector<Bytes> restored_bytes(const TrainingGraph& graph, const MemoryAccounting& memory);

}  // namespace netsim
