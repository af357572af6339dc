#include "sim/workload/strategy/training_graph.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/core/errors.h"

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
  return graph;
}

// Writes chains into blocks.
class ChainWriter {
 public:
  ChainWriter(const TrainingGraph& graph, ProgramBuilder& builder) : graph_(graph), builder_(builder) {}

  // Appends one node and returns the position that completes it: its own, or that of what is before it where
  // there is nothing to do.
  Position append(BlockBuilder& block, const GraphNode& node, const std::vector<Position>& after) const {
    switch (node.kind) {
      case GraphNode::Kind::compute:
        return compute(block, node, after);
      case GraphNode::Kind::collective:
        return collective(block, node, after);
      case GraphNode::Kind::sum:
        NETSIM_CHECK(graph_.sharding.parts(node.sum.over) == 1,
                     "a strategy divides what none of them sums up");
        break;
      case GraphNode::Kind::exchange:
        NETSIM_CHECK(graph_.sharding.parts(Dimension::experts) == 1,
                     "a strategy divides experts, and none exchanges");
        break;
    }
    return after.empty() ? block.size() - 1 : after.back();
  }

  // A chain whose first node waits for `after`.
  Position append(BlockBuilder& block, const Chain& chain, const std::vector<Position>& after) const {
    ChainInPart part{{after}};
    for (const GraphNode& node : chain) append(block, node, part);
    return block.size() - 1;
  }
  // A chain whose nodes come one by one: the positions that complete each, first of what is before the chain.
  struct ChainInPart {
    std::vector<std::vector<Position>> done;
  };
  Position append(BlockBuilder& block, const GraphNode& node, ChainInPart& part) const {
    part.done.push_back({append(block, node, waits_for(node, part.done))});
    return part.done.back().front();
  }

 private:
  static std::vector<Position> waits_for(const GraphNode& node,
                                         const std::vector<std::vector<Position>>& done) {
    if (node.after.empty()) return done.back();
    std::vector<Position> positions;
    for (const std::uint32_t back : node.after) {
      const std::vector<Position>& of_node = done[done.size() - std::min<std::size_t>(back, done.size())];
      positions.insert(positions.end(), of_node.begin(), of_node.end());
    }
    return positions;
  }

  static bool is_routed(const Extent& extent) { return extent.along == Dimension::routed; }
  static bool is_routed(const Operator& op) {
    const auto along = [](const Traffic& traffic) {
      return std::any_of(traffic.tensor.begin(), traffic.tensor.end(),
                         [](const Extent& e) { return is_routed(e); });
    };
    return is_routed(op.m) || is_routed(op.n) || is_routed(op.k) ||
           std::any_of(op.traffic.begin(), op.traffic.end(), along);
  }

  Position compute(BlockBuilder& block, const GraphNode& node, const std::vector<Position>& after) const {
    const Work work =
        node.operators.empty() ? node.work : work_of(node.work.name, node.operators, graph_.sharding);
    const bool routed = std::any_of(node.operators.begin(), node.operators.end(),
                                    [](const Operator& op) { return is_routed(op); });
    const std::string name = node.name == work.name ? std::string() : node.name;
    if (node.rows_plus_one == 0 || !routed) return block.compute(work, after, name);
    // Each number of copies is work of its own.
    std::map<std::int64_t, std::uint32_t> works;
    std::vector<std::int64_t> choice;
    for (const std::int64_t rows : graph_.routed_rows[node.rows_plus_one - 1]) {
      const auto [it, added] = works.try_emplace(rows, 0);
      if (added) {
        Sharding sharding = graph_.sharding;
        sharding.set_routed(rows);
        it->second = builder_.work(work_of(node.work.name, node.operators, sharding));
      }
      choice.push_back(it->second);
    }
    ProgramOp op;
    op.kind = TaskKind::compute;
    op.work = static_cast<std::uint32_t>(choice.front());
    op.name = builder_.name(node.name);
    if (works.size() > 1) op.choice_plus_one = builder_.table(std::move(choice)) + 1;
    return block.add(std::move(op), after);
  }

  Position collective(BlockBuilder& block, const GraphNode& node, const std::vector<Position>& after) const {
    if (node.counts_plus_one == 0 && node.row_bytes == 0)
      return block.collective(node.name, node.collective, node.stream, node.queue, node.group, node.bytes,
                              after);
    ProgramOp op;
    op.kind = TaskKind::collective;
    op.collective = node.collective;
    op.stream = node.stream;
    op.queue = node.queue;
    op.group = node.group;
    op.name = builder_.name(node.name);
    op.counts_plus_one = node.counts_plus_one;
    op.choice_plus_one = node.choice_plus_one;
    if (node.row_bytes != 0) {
      std::vector<std::int64_t> bytes = graph_.routed_rows[node.rows_plus_one - 1];
      for (std::int64_t& rows : bytes) rows = std::max<std::int64_t>(1, rows) * node.row_bytes;
      op.table_plus_one = builder_.table(std::move(bytes)) + 1;
    }
    return block.add(std::move(op), after);
  }

  const TrainingGraph& graph_;
  ProgramBuilder& builder_;
};

class GraphComputation final : public StageComputation {
 public:
  GraphComputation(const TrainingGraph& graph, ProgramBuilder& builder)
      : graph_(graph), builder_(builder), writer_(graph, builder) {}

  Results append(BlockBuilder& block, const StageStep& step, const Inputs& inputs) const override {
    switch (step.kind) {
      case PipelineStepKind::forward:
        return {forward(block, step, inputs.forward), 0, {}};
      case PipelineStepKind::overlapped:
        return overlapped(block, step, inputs);
      case PipelineStepKind::backward:
      case PipelineStepKind::input_backward:
      case PipelineStepKind::weight_backward:
        break;
    }
    return backward(block, step, inputs.backward);
  }

 private:
  const ChunkGraph& chunk(const StageStep& step, std::uint32_t number) const {
    return graph_.stages[step.stage].chunks[number];
  }

  // Chains of one layer, in a block of their own where many layers are alike. The first node waits for
  // `after`, which is used up.
  Position layer(BlockBuilder& block, const LayerGraph& layer, const char* direction,
                 const std::vector<const Chain*>& chains, std::vector<Position>& after) const {
    if (!layer.repeats || chains.back()->empty()) {
      for (const Chain* chain : chains) writer_.append(block, *chain, std::exchange(after, {}));
      return block.size() - 1;
    }
    BlockBuilder one(builder_, layer.name + direction);
    for (Position& position : after) position = block.seen_from_next(position);
    for (const Chain* chain : chains) writer_.append(one, *chain, std::exchange(after, {}));
    block.repeat(one.finish());
    return block.size() - 1;
  }

  Position forward(BlockBuilder& block, const StageStep& step, std::vector<Position> after) const {
    const ChunkGraph& part = chunk(step, step.chunk);
    for (std::size_t i = 0; i < part.layers.size(); ++i) {
      const LayerGraph& next = graph_.layers[part.layers[i]];
      if (step.needs_parameters && i < part.gathers.size() && !part.gathers[i].empty()) {
        if (i > 0) after = {block.size() - 1};
        for (const GraphNode& gather : part.gathers[i])
          after.push_back(writer_.append(block, gather, std::vector<Position>()));
      }
      layer(block, next, "_forward", {&next.forward}, after);
    }
    return block.size() - 1;
  }

  static std::vector<const Chain*> backward_chains(const LayerGraph& layer, PipelineStepKind kind) {
    std::vector<const Chain*> chains;
    if (kind != PipelineStepKind::weight_backward && !layer.recompute.empty())
      chains.push_back(&layer.recompute);
    chains.push_back(kind == PipelineStepKind::weight_backward  ? &layer.weights
                     : kind == PipelineStepKind::input_backward ? &layer.input
                                                                : &layer.backward);
    return chains;
  }

  Results backward(BlockBuilder& block, const StageStep& step, std::vector<Position> after) const {
    const ChunkGraph& part = chunk(step, step.chunk);
    const char* name = step.kind == PipelineStepKind::weight_backward ? "_weights" : "_backward";
    Results result;
    for (std::size_t i = 0; i < part.layers.size(); ++i) {
      const LayerGraph& next = graph_.layers[part.layers[part.layers.size() - 1 - i]];
      result.backward = layer(block, next, name, backward_chains(next, step.kind), after);
      if (step.completes_gradients) reduce(block, part, i, result);
    }
    return result;
  }
  void reduce(BlockBuilder& block, const ChunkGraph& part, std::size_t i, Results& results) const {
    if (i >= part.reductions.size()) return;
    for (const GraphNode& reduction : part.reductions[i])
      results.aside = writer_.append(block, reduction, {results.backward});
  }

  // Node by node in turn, so that the communication of one hides behind what the other computes.
  Results overlapped(BlockBuilder& block, const StageStep& step, const Inputs& inputs) const {
    std::vector<const GraphNode*> forward, backward;
    std::vector<std::size_t> ends;  // of the layers, in `backward`
    for (const std::uint32_t i : chunk(step, step.chunk).layers) {
      for (const GraphNode& node : graph_.layers[i].forward) forward.push_back(&node);
    }
    const ChunkGraph& part = chunk(step, step.backward_chunk);
    for (std::size_t i = part.layers.size(); i-- > 0;) {
      for (const Chain* chain : backward_chains(graph_.layers[part.layers[i]], PipelineStepKind::backward)) {
        for (const GraphNode& node : *chain) backward.push_back(&node);
      }
      ends.push_back(backward.size());
    }
    Inputs first = inputs;
    if (step.needs_parameters) {
      for (const std::vector<GraphNode>& gathers : chunk(step, step.chunk).gathers) {
        for (const GraphNode& gather : gathers)
          first.forward.push_back(writer_.append(block, gather, std::vector<Position>()));
      }
    }
    Results results;
    ChainWriter::ChainInPart forwards{{first.forward}}, backwards{{first.backward}};
    std::size_t layer = 0;
    for (std::size_t i = 0; i < forward.size() || i < backward.size(); ++i) {
      if (i < backward.size()) results.backward = writer_.append(block, *backward[i], backwards);
      if (i < forward.size()) results.forward = writer_.append(block, *forward[i], forwards);
      for (; layer < ends.size() && ends[layer] == i + 1; ++layer) {
        if (step.completes_gradients) reduce(block, part, layer, results);
      }
    }
    return results;
  }
  const TrainingGraph& graph_;
  ProgramBuilder& builder_;
  ChainWriter writer_;
};

void append_finish(BlockBuilder& main, const StageGraph& stage, const PipelineProgram::End& end,
                   const ChainWriter& writer) {
  std::vector<Position> done{end.computed};
  for (const FinishNode& next : stage.finish) {
    std::vector<Position> after;
    for (const std::uint32_t i : next.after)
      after.push_back(i == FinishNode::kReductions ? end.aside.value_or(end.computed) : done[i]);
    done.push_back(writer.append(main, next.node, after));
  }
}

}  // namespace

TrainingGraph::TrainingGraph(const std::string& job, Mesh job_mesh, Model job_model)
    : mesh(std::move(job_mesh)), model(std::move(job_model)), builder(job) {
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

std::int64_t parameters_of(const LayerGraph& layer, const TrainingGraph& graph, ParameterSet set) {
  std::int64_t parameters = 0;
  for (const Tensor& tensor : layer.parameters) {
    const bool experts = graph.experts_apart && of_routed_experts(tensor);
    if (experts == (set == ParameterSet::experts)) parameters += graph.sharding.local(tensor);
  }
  return parameters;
}

Program make_program(TrainingGraph graph) {
  const GraphComputation computation(graph, graph.builder);
  const ChainWriter writer(graph, graph.builder);
  const PipelineProgram pipeline(graph.builder, *graph.plan, graph.transfers, computation);
  for (std::uint32_t stage = 0; stage < graph.stages.size(); ++stage) {
    const std::string name = "stage_" + std::to_string(stage);
    BlockBuilder main(graph.builder, name);
    append_finish(main, graph.stages[stage], pipeline.append(main, stage), writer);
    graph.builder.role({name, {{graph.transfers.axis, {stage}}}, main.finish()});
  }
  return graph.builder.finish();
}

}  // namespace netsim
