// TrainingGraph: one iteration of a training job between model and program. A model and a mesh make it,
// strategies rewrite it one after the other (divide, recompute, pipeline, reduce, update), and what comes out
// is written as role programs.
//
// Its pieces are chains: nodes that run one after the other. Layers of one kind are one LayerGraph, whatever
// their number and place, so that a graph is as large as the differences between its ranks and not as the
// job.
//
// Where stages have meshes of their own there is a graph for each mesh, to which all strategies are applied,
// and each stage is written as that of its mesh has it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/training/model/operators.h"
#include "sim/training/strategy/mesh.h"
#include "sim/training/strategy/pipeline_plan.h"
#include "sim/training/strategy/pipeline_program.h"
#include "sim/workload/memory_plan.h"
#include "sim/workload/program/program.h"

namespace netsim {

// Computes, or sums up or exchanges (which is nothing unless what it sums over, or the experts, are divided,
// and then a strategy has to make a collective of it), or communicates: a collective, one end of a message,
// a copy to the host's memory or from there; or the host's CPUs compute; or it shares gradients with a stage
// of another mesh, at the end of an iteration (StageReshardings).
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
    share
  };
  Kind kind = Kind::compute;
  std::string name;  // of the operation, in tables
  // compute: operators to be divided, and the name of their work; or, without operators, the work as it is.
  // host_compute: the work.
  std::vector<Operator> operators;
  Work work;
  PartialSum sum;
  Exchange exchange;
  CollectiveKind collective = CollectiveKind::all_reduce;
  Stream stream = Stream::tp;
  std::uint32_t queue = 0;  // of the stream
  std::uint32_t group = 0;  // of the program
  PeerExpression peer;      // of a send or receive
  std::uint32_t stage = 0;  // share: with which
  Bytes bytes = 0;
  // collective: of an all-to-all-v, its counts and a table that chooses them, both in the program, as in
  // ProgramOp.
  std::uint32_t counts_plus_one = 0, choice_plus_one = 0;
  // How many copies of tokens each rank's experts get, in TrainingGraph::routed_rows: operators along
  // `routed` compute so many, a collective has row_bytes for each, if that is not 0, and a copy row_bytes for
  // each besides `bytes`. 0: all get what the sharding says.
  std::uint32_t rows_plus_one = 0;
  Bytes row_bytes = 0;
  // How many nodes of its chain back each of those stands that it waits for: 1 is the one before. Empty: that
  // one. What lies before the chain is what its first node waits for.
  std::vector<std::uint32_t> after;
  bool weight_gradient = false;  // a communication that only gradients of weights wait for
  bool core = false;             // of the attention's core, or communication for it
  // ChunkGraph::reductions: only behind the backward that completes the layer's gradients.
  bool of_complete_gradients = false;
  TaskMemory memory;  // where TrainingGraph::layer_memory says what memory is needed
};
using Chain = std::vector<GraphNode>;
// Sums and exchanges that no strategy has made a collective of do nothing.
inline bool communicates(const GraphNode& node) {
  return node.kind != GraphNode::Kind::compute && node.kind != GraphNode::Kind::host_compute &&
         node.kind != GraphNode::Kind::sum && node.kind != GraphNode::Kind::exchange;
}

// The node for each piece of `bytes`, of at most `piece` (0: one of all); the last may be smaller.
inline std::vector<GraphNode> in_pieces(GraphNode node, Bytes bytes, Bytes piece) {
  std::vector<GraphNode> pieces;
  for (; bytes > 0; bytes -= node.bytes) {
    node.bytes = piece == 0 ? bytes : std::min(bytes, piece);
    pieces.push_back(node);
  }
  return pieces;
}

// A layer of one kind.
struct LayerGraph {
  std::string name;
  Chain forward;
  Chain recompute;  // what a backward computes again before anything else
  Chain backward;   // whole; as two: `input` and `weights`
  Chain input, weights;
  // As a pair computes them, a forward and a backward that overlap: the backward whole, with gradients of
  // weights behind the next communication, which they help to hide.
  struct Paired {
    Chain forward, recompute, backward;
  };
  Paired paired;
  std::vector<Tensor> parameters;
  // Of those of one rank, by ParameterSet: so many are kept and gathered in FP8.
  std::array<std::int64_t, 2> reduced{};
  std::vector<Saved> saved;    // by the forward for the backward
  Bytes forward_buffers = 0;   // of communication, while a forward runs: context parallelism's
  Bytes backward_buffers = 0;  // and a backward
  bool repeats = false;        // of the body: many alike, one block of the program each
};

// What the steps of a pipeline allocate and release of a layer, by what they compute.
struct LayerMemory {
  TaskMemory forward, backward, input, weights;
};

// What a stage computes in one chunk.
struct ChunkGraph {
  std::vector<std::uint32_t> layers;  // indices in TrainingGraph::layers, in the order of the model
  // By layer, counted from the end of the chunk: what is reduced as soon as a backward has computed the
  // layer's gradients, that of the last microbatch or all (ReplicaTraffic); nobody in the backward waits for
  // it. Each waits for the backward, or for those before it that GraphNode::after names.
  std::vector<std::vector<GraphNode>> reductions;
  // What is reduced, one after the other, at the step of the schedule that reduces the chunk's gradients.
  std::vector<GraphNode> reduced_at_step;
  // By layer: what is gathered, one after the other, before a forward computes the layer and those behind it:
  // from the beginning of the iteration on before the first microbatch's, or before all.
  std::vector<std::vector<GraphNode>> gathers;
  // By layer, counted from the end of the chunk: what is gathered before each backward that computes
  // gradients of activations.
  std::vector<std::vector<GraphNode>> gathers_again;
  // By layer: what is copied to the host behind each forward of it; nobody in the forward waits for it.
  std::vector<std::vector<GraphNode>> stores;
  // By layer, counted from the end of the chunk: what is copied back before each backward that computes
  // gradients of activations, as far ahead as ReplicaTraffic says of gathers. One queue with `stores`, or
  // what is copied back might not have left yet.
  std::vector<std::vector<GraphNode>> loads;
};

// When the nodes of ChunkGraph are due that replicas have with each other.
struct ReplicaTraffic {
  bool every_gather = false;     // gathers: before each forward, not the first of an iteration only
  bool every_reduction = false;  // reductions: after each backward, not the last of an iteration only
  // every_gather: a layer's gather begins when the layer that is so many before it begins to be computed, in
  // the same step; 0: when the one before is done.
  std::uint32_t ahead = 1;
};

// Parameters by the ranks that have copies of them: those of routed experts where experts have copies on
// other ranks than all else (axis "edp"), and the common ones, which have them along "dp".
enum class ParameterSet : std::uint8_t { common, experts };

// What a stage does once an iteration, after its last computation.
struct FinishNode {
  GraphNode node;
  // 0: the last computation, and what the stage waits for behind it; i + 1: node i of the list; kReductions:
  // the last of ChunkGraph::reductions and reduced_at_step.
  std::vector<std::uint32_t> after;
  static constexpr std::uint32_t kReductions = UINT32_MAX;
};

struct StageGraph {
  std::vector<ChunkGraph> chunks;
  std::vector<FinishNode> finish;
  // What it does, one after the other, when TrainingGraph::local_steps times all of its steps and `finish`
  // are done.
  std::vector<GraphNode> average;
  std::vector<std::uint32_t> finished{0};    // what a next node would wait for, as in FinishNode::after
  std::array<std::int64_t, 2> parameters{};  // of one rank, all chunks, by ParameterSet
  std::array<std::int64_t, 2> reduced{};     // of these, as LayerGraph::reduced
  MemoryUse resident;                        // what is in memory all the time

  std::int64_t parameters_of(ParameterSet set) const { return parameters[static_cast<std::size_t>(set)]; }
  std::int64_t reduced_of(ParameterSet set) const { return reduced[static_cast<std::size_t>(set)]; }

  // Appends to `finish`; the nodes that are appended next wait for the same.
  void add_finish(GraphNode node) { finish.push_back({std::move(node), finished}); }
  // The same of `bytes` in all, in pieces of `piece` bytes; 0: in one.
  void add_finish(const GraphNode& node, Bytes bytes, Bytes piece) {
    for (GraphNode& part : in_pieces(node, bytes, piece)) add_finish(std::move(part));
  }
};

struct TrainingGraph {
  // Declares the mesh's axes, and a communicator along each but the pipeline's, whose stages talk in pairs.
  // The mesh says which axes hold the same parameters: its axis "replicas". `job_builder` outlives this.
  TrainingGraph(ProgramBuilder& job_builder, Mesh job_mesh, Model job_model);

  Mesh mesh;
  Model model;
  ProgramBuilder& builder;  // strategies declare further groups here
  Sharding sharding;
  std::vector<LayerGraph> layers;  // first, last, then the kinds of the body
  static constexpr std::uint32_t kFirst = 0, kLast = 1, kBody = 2;

  // Of expert parallelism: whether ParameterSet::experts is not empty, and tables of copies of tokens, as
  // table_value() reads them.
  bool experts_apart = false;
  std::vector<std::vector<std::int64_t>> routed_rows;

  // Of the pipeline strategy, which divides the layers among stages.
  std::shared_ptr<const PipelinePlan> plan;
  PipelineTransfers transfers;
  std::vector<StageGraph> stages;

  ReplicaTraffic replica_traffic;

  // How often the stages' programs are run in an iteration.
  std::uint32_t local_steps = 1;
  // Ranks of axis "dp" from this coordinate on are servers, which compute no part of the model but play this
  // block.
  struct Servers {
    std::uint32_t first = 0;
    std::uint32_t block = 0;
  };
  std::optional<Servers> servers;
  // By layer; empty: nobody has counted memory.
  std::vector<LayerMemory> layer_memory;
};

// Of a layer, on one rank.
std::int64_t parameters_of(const LayerGraph& layer, const TrainingGraph& graph, ParameterSet set);

// One way to divide or change the work of a job; one file each. Their order is that of the list in which a
// workload names them.
class Strategy {
 public:
  virtual ~Strategy() = default;
  // What is divided, by all strategies before the first of them is applied.
  virtual void divide(const Mesh&, Sharding&) const {}
  virtual void apply(TrainingGraph& graph) const = 0;
};
void apply_strategies(const std::vector<std::unique_ptr<Strategy>>& strategies, TrainingGraph& graph);

// The graph as a program: one role for each stage of the pipeline. What its builder has goes into it.
Program make_program(const TrainingGraph& graph);
// The same of graphs with one builder, of meshes that are laid out: `graph_of` says which is that of a stage.
// A role for each class of ranks (PipelineTransfers::reshardings, which all have).
Program make_program(const std::vector<TrainingGraph>& graphs, const std::vector<std::uint32_t>& graph_of);

}  // namespace netsim
