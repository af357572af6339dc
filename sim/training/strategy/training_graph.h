// TrainingGraph: one iteration of a training job, between the model and the program. A model and a mesh make
// it. Strategies (strategy.h) rewrite it one after the other (divide, recompute, pipeline, reduce, update),
// and make_program() writes the result as role programs.
//
// The graph consists of chains, whose nodes run one after the other unless GraphNode::after says otherwise. A
// chain follows the one before it through the compute stream: its first computation begins when the
// computations before it have ended. So a communication at the end of a chain runs beside the next layer. A
// computation behind it, which may have no work, makes the next layer wait for it.
//
// All layers of one kind share one LayerGraph, whatever their number and place. So the size of a graph grows
// with the differences between ranks, not with the job.
//
// Where stages have meshes of their own, each mesh has a graph, to which all strategies are applied. The
// program of a stage is then written from the graph of its mesh.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/training/model/operators.h"
#include "sim/training/strategy/mesh.h"
#include "sim/training/strategy/pipeline_program.h"
#include "sim/training/strategy/scheduled_pipeline.h"
#include "sim/workload/memory_plan.h"
#include "sim/workload/program/program.h"

namespace netsim {

// GraphNode: one operation of a chain. `sum` and `exchange` do nothing, unless their dimension is divided;
// then a strategy has to replace them by a collective. `send` and `receive` are the two ends of a message.
// `host_compute` runs on the host's CPUs, `host_launch` on a thread of the rank's process. `share` exchanges
// gradients with a stage of another mesh at the end of an iteration (StageReshardings).
struct GraphNode {
  enum class Kind : std::uint8_t {
    compute,
    sum,
    exchange,
    collective,
    send,
    receive,
    copy_to_host,
    copy_from_host,
    host_compute,
    host_launch,
    share
  };
  Kind kind = Kind::compute;
  std::string name;  // name of the operation in tables
  // compute: the operators to be divided, and the name of their work. Without operators, `work` is taken as
  // it is. host_compute, host_launch: the work.
  std::vector<Operator> operators;
  Work work;
  PartialSum sum;
  Exchange exchange;
  CollectiveKind collective = CollectiveKind::all_reduce;
  Stream stream = Stream::tp;
  std::uint32_t queue = 0;  // queue number within the stream
  std::uint32_t group = 0;  // group number in the program
  PeerExpression peer;      // peer of a send or receive
  // send, receive: stored into the peer's memory as one message, without kernels of a library. Such messages
  // wait for nothing but what GraphNode::after says.
  bool stored = false;
  std::uint32_t stage = 0;  // nodes of kind share: the stage that the data is exchanged with
  Bytes bytes = 0;
  // collective: the counts of an all-to-all-v and a table that chooses among them. Both are stored in the
  // program, as in ProgramOp.
  std::uint32_t counts_plus_one = 0, choice_plus_one = 0;
  // Index + 1 in TrainingGraph::routed_rows: the number of token copies that the experts of each rank get.
  // Operators along `routed` compute that many rows. A collective has row_bytes per copy, if that is not 0. A
  // copy to or from the host has row_bytes per copy in addition to `bytes`. With 0, all ranks get the number
  // that the sharding gives.
  std::uint32_t rows_plus_one = 0;
  Bytes row_bytes = 0;
  // The nodes of the chain that this node waits for, as distances back; 1 is the node before. An empty list
  // means the node before. The first node of a chain waits for what precedes the chain.
  std::vector<std::uint32_t> after;
  bool ahead = false;            // host_launch: it waits for nothing but those before it in its queue
  bool weight_gradient = false;  // a communication that only gradients of weights wait for
  bool core = false;             // part of the attention's core, or communication for it
  // The node is one of so many pieces of an operation, which a strategy has cut. `pieces_key` says where a
  // user sets their number.
  std::uint32_t pieces = 1;
  const char* pieces_key = nullptr;
  // ChunkGraph::reductions: the node runs only after the backward that completes the layer's gradients.
  bool of_complete_gradients = false;
  // A step of the optimizer that the stage numbers with this - 1 (ChunkGraph::updates). It runs as soon as
  // what it waits for is done, beside all other computations.
  std::uint32_t update_plus_one = 0;
  TaskMemory memory;  // set where TrainingGraph::layer_memory gives the memory that is needed
};
using Chain = std::vector<GraphNode>;
// Returns whether the node moves data. A sum or exchange that no strategy has replaced by a collective does
// nothing.
inline bool communicates(const GraphNode& node) {
  return node.kind != GraphNode::Kind::compute && node.kind != GraphNode::Kind::host_compute &&
         node.kind != GraphNode::Kind::host_launch && node.kind != GraphNode::Kind::sum &&
         node.kind != GraphNode::Kind::exchange;
}

// Makes the node one of so many pieces of what it was.
inline void cut_into(GraphNode& node, std::int64_t pieces, const char* key) {
  if (pieces < 2) return;
  node.pieces *= static_cast<std::uint32_t>(pieces);
  node.pieces_key = key;
}

// Returns a node for each piece of `bytes`, of at most `piece` bytes; 0 means one piece. The last piece may
// be smaller.
inline std::vector<GraphNode> in_pieces(GraphNode node, Bytes bytes, Bytes piece) {
  std::vector<GraphNode> pieces;
  for (; bytes > 0; bytes -= node.bytes) {
    node.bytes = piece == 0 ? bytes : std::min(bytes, piece);
    pieces.push_back(node);
  }
  return pieces;
}

// LayerGraph: all layers of one kind.
struct LayerGraph {
  std::string name;
  Chain forward;
  Chain recompute;  // the part of the forward that each backward computes again first
  Chain backward;   // the whole backward; in two parts it is `input` and `weights`
  Chain input, weights;
  // The chains of a layer where a forward and a backward overlap as a pair. The backward is whole. Its
  // gradients of weights come after the next communication, which they help to hide.
  struct Paired {
    Chain forward, recompute, backward;
  };
  Paired paired;
  std::vector<Tensor> parameters;
  // Number of the layer's parameters on one rank that are kept and gathered in FP8, by ParameterSet.
  std::array<std::int64_t, 2> reduced{};
  std::vector<Saved> saved;  // tensors that the forward saves for the backward
  // Bytes of the results of sums that a forward keeps where the backward computes the forward again.
  Bytes kept_sums = 0;
  // Bytes of communication buffers (of context parallelism) while a forward or a backward runs.
  Bytes forward_buffers = 0;
  Bytes backward_buffers = 0;
  // The layer belongs to the body, which has many like it. Each of them is one block of the program.
  bool repeats = false;
};

// LayerMemory: the memory that pipeline steps allocate and release for a layer, by what they compute.
struct LayerMemory {
  TaskMemory forward, backward, input, weights;
};

// ChunkGraph: the computation and communication of one chunk of a stage.
struct ChunkGraph {
  std::vector<std::uint32_t> layers;  // indices in TrainingGraph::layers, in the order of the model
  std::uint32_t first_layer = 0;      // number, in the model's body, of its first layer of the body
  // Reductions to begin as soon as a backward has computed a layer's gradients, by layer counted from the end
  // of the chunk. ReplicaTraffic says whether after each microbatch or only the last. Nothing in the backward
  // waits for them. Each waits for the backward, or for the earlier reductions that GraphNode::after names.
  std::vector<std::vector<GraphNode>> reductions;
  // Reductions at the schedule's step that reduces the chunk's gradients, as in `reductions`.
  std::vector<GraphNode> reduced_at_step;
  // Gathers, by layer, that run one after the other before a forward computes the layer and those behind it.
  // They precede the first microbatch's forward, from the beginning of the iteration on, or each forward
  // (ReplicaTraffic). Each waits for what precedes the gathers, or for the earlier ones of its layer that
  // GraphNode::after names.
  std::vector<std::vector<GraphNode>> gathers;
  // Gathers before each backward that computes gradients of activations, by layer counted from the end of the
  // chunk.
  std::vector<std::vector<GraphNode>> gathers_again;
  // The steps of the optimizer in the previous iteration that the layer's parameters come from, by layer and
  // by GraphNode::update_plus_one - 1; may be empty. The gathers before the first forward of the layer in an
  // iteration wait for them. Without gathers, the forward's first computation does.
  std::vector<std::vector<std::uint32_t>> updates;
  // Copies to the host after each forward of a layer, by layer. Nothing in the forward waits for them.
  std::vector<std::vector<GraphNode>> stores;
  // Copies back from the host before each backward that computes gradients of activations, by layer counted
  // from the end of the chunk. They begin as far ahead as ReplicaTraffic says of gathers. They share one
  // queue with `stores`, so that nothing is copied back before it has left.
  std::vector<std::vector<GraphNode>> loads;
};

// ReplicaTraffic: when replicas run the gathers and reductions of ChunkGraph.
struct ReplicaTraffic {
  // Gathers run before each forward, not only before the first of an iteration.
  bool every_gather = false;
  // Reductions run after each backward, not only after the last of an iteration.
  bool every_reduction = false;
  // every_gather: a layer's gather begins when the layer `ahead` places before it begins to be computed, in
  // the same step. With 0 it begins when the layer before is done.
  std::uint32_t ahead = 1;
};

// ParameterSet: parameters by the ranks that hold copies of them. Routed experts form a set of their own
// where their copies lie on other ranks (axis "edp") than those of all else. The common parameters have
// copies along "dp".
enum class ParameterSet : std::uint8_t { common, experts };

// FinishNode: an operation of a stage once an iteration, after the stage's last computation.
struct FinishNode {
  GraphNode node;
  // The operations that the node waits for. 0 means the last computation and what the stage waits for behind
  // it. i + 1 means node i of the list. kReductions means the last operations of ChunkGraph::reductions and
  // reduced_at_step.
  std::vector<std::uint32_t> after;
  static constexpr std::uint32_t kReductions = UINT32_MAX;
};

struct StageGraph {
  std::vector<ChunkGraph> chunks;
  std::vector<FinishNode> finish;
  // Operations, as in a chain, at each of the schedule's steps that update weights (delayed_updates.cpp).
  // `finish` is empty then.
  Chain update;
  // Operations, as in a chain, when all steps and `finish` are done TrainingGraph::local_steps times.
  Chain average;
  // Dependencies of the next node of `finish`, as in FinishNode::after.
  std::vector<std::uint32_t> finished{0};
  std::array<std::int64_t, 2> parameters{};  // number of parameters of one rank, all chunks, by ParameterSet
  std::array<std::int64_t, 2> reduced{};     // number of these that are kept in FP8, as LayerGraph::reduced
  MemoryUse resident;                        // memory in use throughout the iteration

  std::int64_t parameters_of(ParameterSet set) const { return parameters[static_cast<std::size_t>(set)]; }
  std::int64_t reduced_of(ParameterSet set) const { return reduced[static_cast<std::size_t>(set)]; }

  bool holds(std::uint32_t layer) const {
    return std::any_of(chunks.begin(), chunks.end(), [layer](const ChunkGraph& chunk) {
      return std::find(chunk.layers.begin(), chunk.layers.end(), layer) != chunk.layers.end();
    });
  }

  // Appends a node to `finish`. All nodes appended in a row wait for the same, `finished`.
  void add_finish(GraphNode node) { finish.push_back({std::move(node), finished}); }
  // Appends a node for each piece of `bytes`, of at most `piece` bytes; 0 means one piece.
  void add_finish(const GraphNode& node, Bytes bytes, Bytes piece) {
    for (GraphNode& part : in_pieces(node, bytes, piece)) add_finish(std::move(part));
  }
};

struct TrainingGraph {
  // Declares the mesh's axes, and a communicator along each axis but the pipeline's, whose stages exchange
  // messages in pairs. The mesh's axis "replicas" says which ranks hold the same parameters. `job_builder`
  // must outlive the graph.
  TrainingGraph(ProgramBuilder& job_builder, Mesh job_mesh, Model job_model);

  Mesh mesh;
  Model model;
  ProgramBuilder& builder;  // strategies declare further groups in it
  Sharding sharding;
  std::vector<LayerGraph> layers;  // the first layer, the last, then the kinds of the body
  static constexpr std::uint32_t kFirst = 0, kLast = 1, kBody = 2;

  // Results of expert_parallel.cpp. `experts_apart` says whether ParameterSet::experts is not empty.
  // `routed_rows` holds tables of the number of token copies, as table_value() reads them.
  bool experts_apart = false;
  std::vector<std::vector<std::int64_t>> routed_rows;

  // Results of pipeline_parallel.cpp, which divides the layers among stages.
  std::shared_ptr<const ScheduledPipeline> plan;
  PipelineTransfers transfers;
  std::vector<StageGraph> stages;

  ReplicaTraffic replica_traffic;

  // Number of equal parts of a microbatch that a stage computes in turns (sub_batches.cpp). The model is that
  // of one part.
  std::uint32_t sub_batches = 1;
  // Returns the cost of a node of a recomputation, where recomputations are divided among windows of
  // communication (recompute_windows.cpp); else empty.
  std::function<double(const GraphNode&)> recompute_cost;

  // Number of times that the stages' programs run in an iteration.
  std::uint32_t local_steps = 1;
  // Parameter servers: the ranks of axis "dp" from coordinate `first` on. They compute no part of the model
  // and run the block `block`.
  struct Servers {
    std::uint32_t first = 0;
    std::uint32_t block = 0;
  };
  std::optional<Servers> servers;
  // Memory by layer; empty until account_memory() has set it.
  std::vector<LayerMemory> layer_memory;
};

// Returns the set to which a tensor of parameters belongs.
ParameterSet set_of(const Tensor& tensor, const TrainingGraph& graph);
// Returns the number of the layer's parameters of a set on one rank.
std::int64_t parameters_of(const LayerGraph& layer, const TrainingGraph& graph, ParameterSet set);

// Returns the graph as a program with one role for each stage of the pipeline. The content of the graph's
// builder moves into it.
Program make_program(const TrainingGraph& graph);
// Does so for the graphs of several meshes, which are laid out and share one builder. `graph_of` has the
// index of each stage's graph. The program has a role for each class of ranks of
// PipelineTransfers::reshardings, which all graphs have in common.
Program make_program(const std::vector<TrainingGraph>& graphs, const std::vector<std::uint32_t>& graph_of);

}  // namespace netsim
