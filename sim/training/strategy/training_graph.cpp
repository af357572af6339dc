#include "sim/training/strategy/training_graph.h"

#include <map>
#include <numeric>
#include <utility>

#include "sim/training/strategy/chain_writer.h"
#include "sim/training/strategy/graph_computation.h"
#include "sim/workload/program/iteration_edges.h"

namespace netsim {
namespace {

using Position = BlockBuilder::Position;

Chain chain_of(const std::vector<ModelPart>& parts) {
  Chain chain;
  for (const ModelPart& part : parts) {
    GraphNode compute;
    compute.name = part.name;
    compute.operators = part.operators;
    compute.work.name = part.name;
    chain.push_back(std::move(compute));
    if (part.sum) {
      GraphNode sum;
      sum.kind = GraphNode::Kind::sum;
      sum.name = part.sum->name;
      sum.sum = *part.sum;
      chain.push_back(std::move(sum));
    }
    if (part.exchange) {
      GraphNode exchange;
      exchange.kind = GraphNode::Kind::exchange;
      exchange.name = part.exchange->name;
      exchange.exchange = *part.exchange;
      chain.push_back(std::move(exchange));
    }
  }
  return chain;
}

LayerGraph graph_of(const ModelLayer& layer) {
  LayerGraph graph;
  graph.name = layer.name;
  graph.forward = chain_of(layer.forward);
  graph.backward = chain_of(layer.backward);
  graph.parameters = layer.parameters;
  for (const ModelPart& part : layer.forward) {
    for (const Operator& op : part.operators)
      graph.saved.insert(graph.saved.end(), op.saved.begin(), op.saved.end());
  }
  return graph;
}

// StageWriter: writes the stages of a graph, which must outlive it.
class StageWriter {
 public:
  explicit StageWriter(const TrainingGraph& graph)
      : graph_(graph),
        computation_(graph_computation(graph, graph.builder)),
        writer_(graph, graph.builder),
        pipeline_(graph.builder, *graph.plan, graph.transfers, *computation_) {}

  // Returns the role of a stage without its ranks.
  ProgramRole role(std::uint32_t stage, std::uint32_t rank_class, const std::string& name) const {
    BlockBuilder main(graph_.builder, name);
    std::vector<Position> done;
    PipelineProgram::End end;
    std::vector<MarkedOperations> marks;
    for (std::uint32_t step = 0; step < graph_.local_steps; ++step) {
      end = pipeline_.append(main, stage, rank_class);
      marks.insert(marks.end(), end.marks.begin(), end.marks.end());
      done = append_finish(main, stage, rank_class, end);
    }
    if (!graph_.stages[stage].average.empty())
      done = {writer_.append(main, graph_.stages[stage].average, done)};
    std::uint32_t block = main.finish();
    if (!end.updates.awaited.empty())
      block = connect_iterations(graph_.builder, block, edges(end.updates), end.computed);
    return {name, {}, block, graph_.stages[stage].resident, std::move(marks)};
  }

 private:
  // Appends the operations of FinishNode. Returns the positions of those that are done last.
  std::vector<Position> append_finish(BlockBuilder& main, std::uint32_t number, std::uint32_t rank_class,
                                      PipelineProgram::End& end) const {
    const StageGraph& stage = graph_.stages[number];
    std::vector<Position> done{end.computed};
    const auto positions = [&](const std::vector<std::uint32_t>& nodes) {
      std::vector<Position> all;
      all.reserve(nodes.size());
      for (const std::uint32_t i : nodes) {
        if (i == FinishNode::kReductions && !end.aside.empty()) {
          end.aside.append_to(all);
        } else {
          all.push_back(i == FinishNode::kReductions ? end.computed : done[i]);
        }
        if (i == 0) all.insert(all.end(), end.waits.begin(), end.waits.end());
      }
      return all;
    };
    for (const FinishNode& next : stage.finish) {
      done.push_back(next.node.kind == GraphNode::Kind::share
                         ? pipeline_.append_shared(main, number, rank_class, next.node.stage,
                                                   positions(next.after), !graph_.layer_memory.empty())
                         : writer_.append(main, next.node, positions(next.after)));
      if (next.node.update_plus_one != 0)
        end.updates.run.push_back({next.node.update_plus_one - 1, done.back()});
    }
    return positions(stage.finished);
  }

  // Returns the edges from the updates of one iteration to what waits for them in the next.
  static std::vector<IterationEdge> edges(const UpdatePlaces& updates) {
    std::map<std::uint32_t, Position> run;
    for (const UpdatePlaces::Place& place : updates.run) run[place.update] = place.position;
    std::vector<IterationEdge> edges;
    edges.reserve(updates.awaited.size());
    for (const UpdatePlaces::Place& place : updates.awaited)
      edges.push_back({place.position, run.at(place.update)});
    return edges;
  }

  const TrainingGraph& graph_;
  std::unique_ptr<const StageComputation> computation_;  // its address must not change
  ChainWriter writer_;
  PipelineProgram pipeline_;
};

std::vector<std::uint32_t> coordinates(std::uint32_t begin, std::uint32_t end) {
  std::vector<std::uint32_t> all(end - begin);
  std::iota(all.begin(), all.end(), begin);
  return all;
}

}  // namespace

TrainingGraph::TrainingGraph(ProgramBuilder& job_builder, Mesh job_mesh, Model job_model)
    : mesh(std::move(job_mesh)), model(std::move(job_model)), builder(job_builder) {
  mesh.declare(builder);
  for (const ProgramAxis& axis : mesh.axes()) {
    if (axis.size > 1 && axis.name != "pp") builder.group(mesh.along({axis.name}));
  }
  layers = {graph_of(model.first), graph_of(model.last)};
  for (const ModelLayer& kind : model.kinds) {
    layers.push_back(graph_of(kind));
    layers.back().repeats = true;
  }
}

ParameterSet set_of(const Tensor& tensor, const TrainingGraph& graph) {
  return graph.experts_apart && of_routed_experts(tensor) ? ParameterSet::experts : ParameterSet::common;
}

std::int64_t parameters_of(const LayerGraph& layer, const TrainingGraph& graph, ParameterSet set) {
  std::int64_t parameters = 0;
  for (const Tensor& tensor : layer.parameters) {
    if (set_of(tensor, graph) == set) parameters += graph.sharding.local(tensor);
  }
  return parameters;
}

Program make_program(const TrainingGraph& graph) {
  const StageWriter writer(graph);
  for (std::uint32_t stage = 0; stage < graph.stages.size(); ++stage) {
    const std::string name = "stage_" + std::to_string(stage);
    ProgramRole role = writer.role(stage, 0, name);
    role.where = {{graph.transfers.axis, {stage}}};
    if (graph.servers) role.where.push_back({graph.mesh.index("dp"), coordinates(0, graph.servers->first)});
    graph.builder.role(std::move(role));
  }
  if (graph.servers) {
    graph.builder.role({"server",
                        {{graph.mesh.index("dp"), coordinates(graph.servers->first, graph.mesh.size("dp"))}},
                        graph.servers->block,
                        {}});
  }
  graph.builder.program().counts_memory = !graph.layer_memory.empty();
  return graph.builder.finish();
}

Program make_program(const std::vector<TrainingGraph>& graphs, const std::vector<std::uint32_t>& graph_of) {
  const TrainingGraph& any = graphs.front();
  const StageReshardings& reshardings = *any.transfers.reshardings;
  std::vector<StageWriter> writers;
  writers.reserve(graphs.size());
  for (const TrainingGraph& graph : graphs) writers.emplace_back(graph);
  for (std::uint32_t stage = 0; stage < graph_of.size(); ++stage) {
    const auto& classes = reshardings.classes(stage);
    for (std::uint32_t i = 0; i < classes.size(); ++i) {
      const std::string name = "stage_" + std::to_string(stage) + (i == 0 ? "" : "." + std::to_string(i));
      ProgramRole role = writers[graph_of[stage]].role(stage, i, name);
      role.where = {{any.transfers.axis, {classes[i].begin(), classes[i].end()}}};
      any.builder.role(std::move(role));
    }
  }
  any.builder.program().counts_memory = !any.layer_memory.empty();
  return any.builder.finish();
}

}  // namespace netsim
