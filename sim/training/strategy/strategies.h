// The strategies of a training job, each of which rewrites a TrainingGraph. Each has a .cpp file of its own.
// A job has a list of them. The comments here say which strategies each one has to follow or precede;
// Ptdp::strategies() in ptdp.cpp fixes the whole order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sim/core/units.h"
#include "sim/training/strategy/training_graph.h"
#include "sim/workload/routing/router.h"

namespace netsim {

// Bytes of a parameter in half precision, and of the state that Adam keeps per parameter in fp32: a copy of
// it, momentum and variance.
inline constexpr std::int64_t kParameterBytes = 2, kOptimizerBytes = 12;
// In FP8 each block of kScaledElements elements has one scale of kScaleBytes bytes (DeepSeek-V3, arXiv
// 2412.19437, section 3.3.2; DeepEP's x_scales).
inline constexpr std::int64_t kScaledElements = 128, kScaleBytes = 4;
// Returns the bytes of so many parameters as they are gathered. `reduced` of them are kept in FP8
// (reduced_parameters()).
constexpr Bytes parameter_bytes(std::int64_t parameters, std::int64_t reduced) {
  return kParameterBytes * (parameters - reduced) + reduced;
}
// Returns the size of one of `parts` equal parts; the last part may be smaller.
constexpr std::int64_t equal_part(std::int64_t whole, std::int64_t parts) {
  return (whole + parts - 1) / parts;
}

// Context parallelism over axis "cp". Each rank holds its part of every sequence and computes everything that
// concerns a single token for its own tokens. Its queries attend to the keys and values of all ranks. A
// sequence is cut into twice as many chunks as ranks. A rank's part is one chunk from either end, so that
// causal attention is the same work on all ranks. Megatron-Core does so; Brandon et al. give the reason
// ("Striped Attention", arXiv 2311.09431).
//
// The exchange says how a rank gets the keys and values (stream cp).
// - ring: blocks of them go round a ring. Each is passed on while attention to it is computed. In the
//   backward, the gradients of the blocks go round with them (Liu et al., "Ring Attention", arXiv 2310.01889;
//   Transformer Engine's "p2p"). Transformer Engine's backward begins with the block that the forward ended
//   with. So cp - 1 transfers return a block and its gradient to their owner.
// - all_gather: all keys and values are gathered before the attention, forward and backward. Their gradients
//   are reduce-scattered after it (Dubey et al., "The Llama 3 Herd of Models", arXiv 2407.21783, section
//   3.3.2).
// - all_to_all: a rank gets the queries, keys and values of all tokens for a part of the heads. The output
//   goes back the same way (Jacobs et al., "DeepSpeed-Ulysses", arXiv 2309.14509).
// - hybrid: all_to_all over axis "cp_heads" and ring over axis "cp_tokens", which "cp" is made of (Fang and
//   Zhao, "USP", arXiv 2405.07719; Transformer Engine's "a2a+p2p").
//
// Has to precede tensor_parallel().
enum class ContextExchange : std::uint8_t { ring, all_gather, all_to_all, hybrid };
std::unique_ptr<Strategy> context_parallel(ContextExchange exchange);
// Returns why a model cannot be trained with this exchange, in words for the user; "" if it can.
std::string refuse_context(const Model& model, ContextExchange exchange);

// Megatron-LM's tensor parallelism over axis "tp" (Shoeybi et al., arXiv 1909.08053). Heads, the inner
// dimension of the MLP and the vocabulary are divided. Each partial sum is all-reduced (stream tp) before
// anything else is computed.
std::unique_ptr<Strategy> tensor_parallel();

// Divides the embedding tables of a recommendation model over axis "replicas", which has copies of all else.
// The sources are Naumov et al. (arXiv 1906.00091, section 3) and Mudigere et al. (arXiv 2104.05158). The
// communication is on stream ep. Computation that does not need it runs meanwhile (Exchange::beside). Does
// nothing for a model without tables.
// - tables: each rank has whole tables. All-to-alls take indices to them and rows back, and then gradients of
//   rows.
// - rows: each rank has some rows of every table. Indices are all-gathered, sums of rows reduce-scattered,
//   and their gradients all-gathered. The memory traffic for writing partial sums of other ranks' samples is
//   not counted.
enum class TableDivision : std::uint8_t { tables, rows };
std::unique_ptr<Strategy> embedding_parallel(TableDivision division);

// Reduced precision: the GEMMs of the body's weight matrices, forward and backward, run in FP8 or less.
// Attention, embedding, logits and everything between the GEMMs stay in half precision. The scaling says
// which kernels write the operands.
// - tensor: as NVIDIA's Transformer Engine, which scales whole tensors by their earlier values. A
//   memory-bound kernel before the GEMM (a norm, an activation) writes the operand in the reduced precision,
//   as Transformer Engine fuses the cast. Without such a kernel, a cast kernel reads 2 bytes and writes the
//   value and its transpose.
// - blocks: as DeepSeek-V3 (arXiv 2412.19437, sections 3.3.2, 3.3.3 and 3.5.2). It scales each 128 elements
//   of a token, and 128 x 128 of a weight, by their present values. A cast kernel runs before each GEMM, and
//   each 128 elements get a scale of 4 bytes.
//
// With blocks, a forward's cast reads 2 bytes and writes 1. A gradient is written twice, scaled along the
// channels for the gradient of the input and along the tokens for that of the weights. The saved input is
// scaled anew along the tokens (read 1, write 1) for the gradients of weights. Tokens that are dispatched to
// experts in FP8 are not cast again. Weights are not cast, because they change once a step.
//
// Has to precede tensor_parallel().
enum class Scaling : std::uint8_t { tensor, blocks };
struct ReducedPrecision {
  Precision precision = Precision::fp8;
  Scaling scaling = Scaling::tensor;
  bool dispatched = false;  // tokens and their gradients reach the experts in this precision
};
std::unique_ptr<Strategy> reduced_precision(const ReducedPrecision& parameters);

// GEMMs of weight gradients add to the sum of the microbatches' gradients, in its type. No separate kernel
// reads their results and adds them (Megatron-LM's gradient_accumulation_fusion; DeepGEMM's kernels for
// weight gradients, deepseek-ai/DeepGEMM pull request 95). Gradients that no GEMM computes (an embedding
// lookup), or a GEMM of patches (a convolution), are added by a separate kernel as before.
std::unique_ptr<Strategy> fused_accumulation();

// Sequence parallelism beside tensor parallelism (Korthikanti et al., arXiv 2205.05198). Between the parts
// that tensor parallelism divides, each rank of axis "tp" computes its part of the tokens. An all-reduce
// becomes a reduce-scatter, and an operator that needs all tokens gathers them.
//
// As in Megatron-LM, the layer's input is gathered again for the gradients of weights, while the gradient of
// the input is computed. The reduce-scatter of that gradient runs beside the gradients of weights. Has to
// follow tensor_parallel() and precede recomputation.
std::unique_ptr<Strategy> sequence_parallel();

// Expert parallelism over axis "ep" (GShard, arXiv 2006.16668; Megatron-Core's MoE, arXiv 2504.14960). The
// routed experts of a layer are divided among the ranks. Tokens go to their experts and back, forward and
// backward (stream ep).
//
// Axis "etp" divides each expert as "tp" divides an MLP. "etp" and "ep" may lie across other axes: they
// number the ranks of "tp" and "dp" anew (folded_mesh()). The ranks of "edp" hold copies of the same experts.
// The exchange says how tokens and experts meet.
// - all_to_all: an all-to-all moves the copies of tokens, one for each expert of a token. Where the router is
//   not even, it is an all-to-all-v, and each rank computes as many copies as it gets.
// - dispatch: the collective operations dispatch and combine move the tokens. Their algorithm (direct,
//   deepep, deepep_low_latency) says how often a token travels and which way. The sender makes no copies and
//   gets their sums.
// - fetch: tokens stay, and each rank gets the experts that it does not hold (Janus: Liu et al., SIGCOMM'23).
//   expert_fetch() moves them.
//
// Does nothing for a model without experts. Has to follow tensor_parallel() and precede sequence_parallel().
// As in Megatron-Core, it needs the latter where "tp" has more than one rank.
enum class ExpertExchange : std::uint8_t { all_to_all, dispatch, fetch };
struct ExpertParallelism {
  std::shared_ptr<const Router> router;
  std::uint32_t iterations = 1;  // iterations of the job
  ExpertExchange exchange = ExpertExchange::all_to_all;
  std::int64_t ranks_per_host = 8;  // dispatch: number of consecutive ranks of "ep" on one host
  // Precision of what is sent to experts; results come back in half precision.
  Precision precision = Precision::half;
  ConfigNode where{};  // configuration of the router, for errors
};
std::unique_ptr<Strategy> expert_parallel(ExpertParallelism parameters);

// ExpertExchange::fetch over axis "ep", which is made of "ep_within", the ranks of a host, and "ep_across".
// Before each forward of a layer with experts, ranks with the same place in their hosts first exchange
// experts. Then the ranks of a host exchange theirs, so that a host gets each expert once (Janus; stream ep).
//
// After each backward, the gradients are summed up in the reverse order, within hosts first. Has to follow
// pipeline_parallel() and precede data_parallel().
struct ExpertFetch {
  std::uint32_t ahead = 1;  // number of layers ahead of its use at which a layer's experts are fetched
  bool again = false;       // fetches experts again for the backward; otherwise those of the forward are kept
};
std::unique_ptr<Strategy> expert_fetch(const ExpertFetch& parameters);
// Returns the properties of a job that its router depends on, and the number of layers with experts.
RoutingShape routing_shape(const Model::Routed& routed, const Mesh& mesh);
std::uint32_t layers_with_experts(const Model& model);
// Communication of sequence parallelism in pieces, beside the GEMM of a body's layer that it waits for or
// that waits for it. It concerns inputs that are gathered before a GEMM, and sums that are reduce-scattered
// behind one. Communication beside the gradients of weights stays as it is (Transformer Engine's "bulk"
// overlap).
// - ring_exchange: a rank computes with its own tokens while it passes them on and gets those of the next
//   rank. Partial sums are passed on and added to. Transformer Engine calls it "ring_exchange" (Wang et al.,
//   "Overlap Communication with Dependent Computation via Decomposition in Large Deep Learning Models",
//   ASPLOS 2023).
// - pipelined: the collective and the GEMM are cut into equally many pieces. A piece is gathered while the
//   piece before is computed, or summed while the next one is computed (Transformer Engine's "pipeline").
//
// The GEMMs of the pieces fill each other's last waves. They do so on Transformer Engine's compute streams,
// several of which split_overlap_rs() and split_overlap_ag() of its userbuffers take in turn. Has to follow
// sequence_parallel() and precede recomputation.
enum class OverlapMethod : std::uint8_t { none, ring_exchange, pipelined };
struct TensorOverlap {
  OverlapMethod gathers = OverlapMethod::none;
  OverlapMethod reduce_scatters = OverlapMethod::none;
  std::int64_t pieces = 4;  // pipelined: number of pieces; Transformer Engine's num_splits
};
std::unique_ptr<Strategy> tensor_overlap(const TensorOverlap& parameters);

// All-reduces over "tp" the gradients of parameters that each rank computed for its part of the tokens only
// (norms, biases). It does so when all other gradients are complete (Megatron-LM's finalize_model_grads). Has
// to follow data_parallel().
std::unique_ptr<Strategy> sequence_gradients();

// Full recomputation: activations of the body's layers are not kept. Each backward computes the layer's
// forward again, with its communication (Chen et al., arXiv 1604.06174; Megatron-LM's --recompute-granularity
// full).
std::unique_ptr<Strategy> full_recomputation();

// Selective recomputation: the activations in the core of the attention, which grow with the square of the
// sequence, are not kept. Each backward first computes the core of its layer's forward again, with the
// communication of context parallelism. It is Megatron-LM's --recompute-granularity selective (Korthikanti et
// al., arXiv 2205.05198, section 5). As in Megatron, this includes a fused attention, although that keeps no
// scores.
std::unique_ptr<Strategy> selective_recomputation();

// The results of some modules of a layer are not kept. The backward of the part that contains a module
// computes it again first (Megatron-Core's --recompute-modules; DeepSeek-V3, arXiv 2412.19437, sections 3.2.3
// and 3.3.3, has all three). Has to be the first strategy, so that the recomputation is divided and cast as
// the forward is.
struct RecomputedModules {
  bool norms = false, latent_up = false, activations = false;
  bool has(Module module) const {
    return (module == Module::norm && norms) || (module == Module::latent_up && latent_up) ||
           (module == Module::activation && activations);
  }
};
std::unique_ptr<Strategy> module_recomputation(const RecomputedModules& modules);

// Divides the layers of the body among the stages of axis "pp". The first and the last part of the plan's
// placement also have an end of the model. Steps run in the order of the plan. Gradients of parameters that
// both ends share are all-reduced between the stages that hold them (stream pp). Where these have different
// meshes, the gradients are exchanged and added (StageReshardings).
struct PipelineParallel {
  std::shared_ptr<const PipelinePlan> plan;
  std::vector<std::uint32_t> layers;  // number of layers of the body, by part
  // Between stages, each rank of axis "tp" sends 1/t of the boundary tensor and the receivers gather it.
  bool scatter_gather = true;
  // Stages do not wait for their sends.
  bool overlap_transfers = true;
  // All messages of a stage are on one stream (PipelineTransfers::ordered).
  bool ordered_transfers = false;
  // Multiprocessors of a GPU that dispatch and combine hold while a forward and a backward overlap.
  std::int64_t held_multiprocessors = 0;
};
std::unique_ptr<Strategy> pipeline_parallel(PipelineParallel parameters);
// Returns the boundary tensor behind each part of the model but the last. `layers` holds the number of layers
// of the body by part.
std::vector<Tensor> boundary_tensors(const Model& model, const std::vector<std::uint32_t>& layers);

// Data parallelism over axis "replicas", the ranks that hold the same parameters. All gradients of a stage
// are all-reduced (stream dp) after its last backward, in pieces of `bucket` bytes (0: in one piece). The
// copies of the model in a bidirectional pipeline are summed in the same collective.
//
// With `overlap`, gradients are all-reduced during the last microbatch's backward, whenever layers have
// filled a bucket. The remainder follows after it. Without `overlap`, gradients of chunks for which the
// schedule has reduction steps (PipelineStepKind::reduce) are reduced at these, in pieces of a bucket.
struct DataParallelism {
  Bytes bucket = 0;
  bool overlap = false;
  // Each rank gets only the sum of its part, by a reduce-scatter, for a divided optimizer.
  bool sharded = false;
  ParameterSet set = ParameterSet::common;  // the parameters whose gradients are reduced
};
std::unique_ptr<Strategy> data_parallel(const DataParallelism& parameters);
// GradientBucket: a bucket that overlaps with the last backward. Layers of the body fill buckets in the order
// in which the backward computes them. A remainder that does not fill a bucket is in none. Each bucket is due
// behind a layer of a chunk, as in ChunkGraph::reductions.
struct GradientBucket {
  std::size_t chunk = 0, layer = 0;
  Bytes bytes = 0;
};
std::vector<GradientBucket> gradient_buckets(const TrainingGraph& graph, const StageGraph& stage, Bytes size,
                                             ParameterSet set);
// Local SGD (Stich, arXiv 1805.09767; federated averaging: McMahan et al., AISTATS 2017). Replicas take
// `steps` steps alone, each with an optimizer. Then they all-reduce their parameters to the mean, in the type
// of gradients (stream dp). An iteration is a round of so many steps. Takes the place of data_parallel();
// optimizers are not divided.
struct LocalSteps {
  std::uint32_t steps = 1;
  Bytes bucket = 0;  // bytes of one all-reduce; 0: all in one
  ParameterSet set = ParameterSet::common;
};
std::unique_ptr<Strategy> local_steps(const LocalSteps& parameters);

// Parameter servers: the last `servers` coordinates of axis "dp" are ranks that compute no part of the model.
// Takes the place of data_parallel(), in jobs that have no other parallelism.
//
// `collective`: gradients are all-reduced among workers and servers as by data_parallel(). The servers
// contribute nothing, which the all-reduce's algorithm has to know (parameter_server: Jiang et al., BytePS,
// OSDI 2020).
//
// `stale`, with a staleness s: each server holds its part of all parameters. An iteration is one clock of
// each worker. The worker pulls the parameters, computes, and pushes its gradients, in buckets during its
// last backward with `overlap`. A server applies a push when it has arrived. It answers a pull after the
// worker's own earlier pushes, and all workers' pushes of the clock s + 1 before. So a worker is at most s
// clocks ahead of the slowest; s = 0 is bulk synchronous. Sources: stale synchronous parallel (Ho et al.,
// NIPS 2013) and bounded delay (Li et al., OSDI 2014, section 3.4).
//
// `asynchronous`: pulls do not wait for pushes of other workers (Downpour SGD: Dean et al., NIPS 2012, with
// n_push = n_fetch = 1).
struct ParameterServers {
  std::uint32_t servers = 1;
  Bytes bucket = 0;  // bytes of one push and of one pull; 0: all in one
  bool overlap = false;
  enum class Consistency : std::uint8_t {
    collective,
    stale,
    asynchronous
  } consistency = Consistency::collective;
  std::uint32_t staleness = 0;
  bool optimizer = true;  // stale, asynchronous: each push runs Adam; otherwise it is only summed
};
std::unique_ptr<Strategy> parameter_servers(const ParameterServers& parameters);

// Returns how many ranks hold the same parameters of a set. among_replicas() returns a collective of these
// ranks of a stage, on stream dp and without bytes; `name` follows the axis. Both need pipeline_parallel() to
// have been applied.
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

// Runs Adam over the stage's parameters when their gradients are complete. With `sharded`, it runs over this
// rank's part of them.
std::unique_ptr<Strategy> optimizer(bool sharded = false);
// Returns how many of a stage's or layer's parameters a rank updates, `sharded` as above.
std::int64_t updated_parameters(const TrainingGraph& graph, std::int64_t parameters, ParameterSet set,
                                bool sharded);
// Returns a node that runs Adam over so many parameters, with the memory that it needs.
GraphNode optimizer_step(std::int64_t parameters, Bytes gradient_bytes, std::int64_t reduced = 0);

// Runs the optimizer with a share of each rank's parameters updated by the CPUs of its host (stream offload).
// Gradients are copied to the host when their sum over ranks is complete. The CPUs update the parameters,
// whose states are in the host's memory. The parameters are copied back in half precision.
//
// The work is in pieces of `bucket` bytes of gradients (0: in one piece). One piece is copied back while the
// next is updated and the one behind it arrives (Megatron-Core's --optimizer-cpu-offload with
// --optimizer-offload-fraction and --overlap-cpu-optimizer-d2h-h2d).
//
// With `gradients`, they are copied layer by layer in each microbatch's backward, and none stay on the GPU
// (ZeRO-Offload: Ren et al., USENIX ATC'21). The CPUs sum those of several microbatches. Replicas, where
// there are any, then have to divide the gradients (ShardedReplicas).
//
// An update takes the time of its reads and writes of the host's memory at `cpu_bandwidth`, which all ranks
// of a host share. For each parameter these are the gradient, three states in fp32 each way, and the
// parameter in half precision. The default, 109 GB/s, is the rate of ZeRO-Offload's CPU-Adam on two Xeon
// 8168. It needs 2.57 s for 10 billion parameters of 28 bytes each (Ren et al., table 4). From 1 to 8 billion
// parameters it is 93 to 127 GB/s.
struct OptimizerOffload {
  double share = 1;
  bool gradients = false;
  bool sums_up = false;  // with `gradients`: there are several microbatches, whose gradients the CPUs sum
  Bytes bucket = 256 * kMegabyte;
  BitRate cpu_bandwidth = 109 * 8 * kGbps;
  bool sharded = false;  // as in optimizer()
};
std::unique_ptr<Strategy> optimizer_offload(const OptimizerOffload& parameters);
// Returns how many of so many parameters are updated on the host.
std::int64_t offloaded(std::int64_t parameters, double share);
// Returns the number of a layer's parameters on one rank. Parameters that the ends of the model share count
// with `carrier`, which is the first layer or the last.
std::int64_t carried_parameters(const TrainingGraph& graph, std::uint32_t layer, std::uint32_t carrier,
                                ParameterSet set);
// Returns the number of a layer's parameters whose gradients its backward completes. Parameters that the ends
// of the model share count with the first end that the stage has, or else with the last.
std::int64_t completed_parameters(const TrainingGraph& graph, const StageGraph& stage, std::uint32_t layer,
                                  ParameterSet set);

// Gathers the parameters that a divided optimizer has updated, by all replicas (stream dp), in pieces of
// `bucket` bytes (0: in one piece). They are gathered after the optimizer. With `overlap` they are gathered
// layer by layer from the beginning of an iteration, in the order of the forward. The first microbatch then
// waits for each layer's parameters (Megatron-LM's distributed optimizer with --overlap-param-gather, after
// ZeRO-1: Rajbhandari et al., SC'20). Has to follow optimizer().
std::unique_ptr<Strategy> parameter_gather(Bytes bucket, bool overlap,
                                           ParameterSet set = ParameterSet::common);

// Weights of the layers' GEMMs are kept in FP8. Replicas that divide the optimizer or the parameters gather
// them at one byte each. Norms, biases, routers, embedding and logits stay in half precision. Transformer
// Engine's fp8_model_init() does so with Megatron-Core's --fp8-param-gather, which needs the distributed
// optimizer or FSDP; so does torchao's enable_fsdp_float8_all_gather.
//
// Counts these weights (LayerGraph::reduced, StageGraph::reduced) for the strategies that move and keep
// parameters. The all-reduce of the greatest values, from which new scales are computed, is not simulated. It
// has 4 bytes per weight matrix, or per 128 x 128 elements. Has to follow pipeline_parallel() and precede
// sharded_replicas() and optimizer().
std::unique_ptr<Strategy> reduced_parameters();

// ZeRO-2 and 3 (Rajbhandari et al., SC'20), FSDP (Zhao et al., VLDB 2023). Each of the replicas keeps its
// part of the gradients, or of the parameters too, beside its part of the optimizer's states. A layer's
// gradients are reduce-scattered after each microbatch's backward of it (stream dp).
//
// With `parameters`, a layer's parameters are gathered before each forward of it, released after it, and
// gathered again for the backward, `ahead` layers ahead.
//
// Where axis "dp_unsharded" has several ranks (PyTorch's HSDP), parts are all-reduced among these. The
// all-reduces have a queue of their own beside gathers and reduce-scatters, as in PyTorch since 2023 (pull
// request 106080; all_reduce_stream in torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py).
//
// Takes the place of data_parallel(). Without `parameters`, parameter_gather() has to follow.
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
std::unique_ptr<Strategy> sharded_replicas(const ShardedReplicas& parameters);

// Says how much memory the job needs (LayerMemory, StageGraph::resident, GraphNode::memory). It counts:
// - parameters in half precision. In reduced precision there is also a copy and its transpose; parameters
//   that are kept in FP8 have only the transpose beside them.
// - sums of gradients.
// - for Adam in mixed precision 12 bytes a parameter, a copy in fp32 and two moments (Rajbhandari et al.,
//   SC'20).
// - activations from a layer's forward to its backward, by what its operators save.
//
// Does nothing for a model whose layers do not say what they save. Has to follow all other strategies.
struct MemoryAccounting {
  // The data that a forward keeps of a layer of the body. `all` is everything that its operators save,
  // `without_core` all but results inside the attention's core, `input` the layer's input only.
  enum class Kept : std::uint8_t { all, without_core, input } kept = Kept::all;
  bool optimizer = true;
  // Divided among replicas.
  bool states = false, gradients = false, parameters = false;
  Precision precision = Precision::half;  // precision of the GEMMs of weights
  double offloaded = 0;                   // OptimizerOffload::share
  bool offloads_gradients = false;
};
std::unique_ptr<Strategy> memory_accounting(const MemoryAccounting& parameters);

// Returns the memory that a forward keeps of a layer of the body for its backward.
MemoryChange kept_activations(TrainingGraph& graph, const LayerGraph& layer, MemoryAccounting::Kept kept);

// Activation offload: what forwards keep of a share of the body's layers is copied to the host's memory,
// behind each forward of the layer. It comes back `ahead` layers before its backward, one copy after the
// other (stream offload). The layers are the first ones of each chunk, whose backwards are farthest away.
//
// Transformer Engine's get_cpu_offload_context() and Megatron-Core's --cpu-offloading-num-layers do so.
// DeepSpeed's cpu_checkpointing does it with what full recomputation keeps. Has to follow
// pipeline_parallel().
struct ActivationOffload {
  double share = 1;  // share of the layers, rounded to a whole number of them
  std::uint32_t ahead = 1;
  MemoryAccounting::Kept kept = MemoryAccounting::Kept::all;
};
std::unique_ptr<Strategy> activation_offload(const ActivationOffload& parameters);

// Returns the bytes that each rank writes of a checkpoint, by rank of the graph's mesh. A checkpoint has each
// parameter in half precision and its optimizer states once, 14 bytes together. The first replica writes all
// data that replicas have copies of, or, with `divided`, each writes a part. All strategies have to be
// applied before.
std::vector<Bytes> checkpoint_bytes(const TrainingGraph& graph, const MemoryAccounting& memory, bool divided);
// Returns the bytes that each rank reads of a checkpoint to continue: its parameters and states.
std::vector<Bytes> restored_bytes(const TrainingGraph& graph, const MemoryAccounting& memory);

}  // namespace netsim
