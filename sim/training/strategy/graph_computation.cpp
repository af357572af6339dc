#include "sim/training/strategy/graph_computation.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "sim/core/errors.h"
#include "sim/training/strategy/layer_gathers.h"

namespace netsim {
namespace {

class GraphComputation final : public StageComputation {
 public:
  using Position = BlockBuilder::Position;

  GraphComputation(const TrainingGraph& graph, ProgramBuilder& builder)
      : graph_(graph), builder_(builder), writer_(graph, builder) {}

  Results append(BlockBuilder& block, const StageStep& step, const Inputs& inputs) const override {
    switch (step.kind) {
      case PipelineStepKind::forward:
        return forward(block, step, inputs.forward);
      case PipelineStepKind::overlapped:
        return overlapped(block, step, inputs);
      case PipelineStepKind::backward:
      case PipelineStepKind::input_backward:
      case PipelineStepKind::weight_backward:
        return backward(block, step, inputs);
      case PipelineStepKind::send_forward:
      case PipelineStepKind::receive_forward:
      case PipelineStepKind::send_backward:
      case PipelineStepKind::receive_backward:
      case PipelineStepKind::reduce:
      case PipelineStepKind::update:
        break;
    }
    NETSIM_CHECK(false, "a step that communicates computes nothing");
    return {};
  }
  OperationsAside reduce(BlockBuilder& block, std::uint32_t stage, std::uint32_t chunk,
                         const std::vector<Position>& after) const override {
    const std::vector<GraphNode>& nodes = graph_.stages[stage].chunks[chunk].reduced_at_step;
    const std::vector<Position> positions = writer_.append_beside(block, nodes, after);
    OperationsAside last;
    for (std::size_t i = 0; i < nodes.size(); ++i) last.add(nodes[i].stream, nodes[i].queue, positions[i]);
    return last;
  }
  OperationsAside update(BlockBuilder& block, std::uint32_t stage, std::uint32_t,
                         const std::vector<Position>& after) const override {
    const Chain& chain = graph_.stages[stage].update;
    OperationsAside last;
    if (!chain.empty()) last.add(Stream::dp, 0, writer_.append(block, chain, after));
    return last;
  }

 private:
  const ChunkGraph& chunk(const StageStep& step, std::uint32_t number) const {
    return graph_.stages[step.stage].chunks[number];
  }

  // Returns the index in the part of the layer that is number `i` from the other end.
  static std::size_t from_end(const ChunkGraph& part, std::size_t i) { return part.layers.size() - 1 - i; }
  const LayerGraph& layer_from_end(const ChunkGraph& part, std::size_t i) const {
    return graph_.layers[part.layers[from_end(part, i)]];
  }

  // ---- Memory

  static void give_up(const std::vector<std::vector<GraphNode>>& gathers, std::size_t i, TaskMemory& memory) {
    if (i >= gathers.size()) return;
    for (const GraphNode& gather : gathers[i]) {
      for (const MemoryChange& change : gather.memory.begin) memory.end.push_back(change.reversed());
    }
  }
  static bool is_gathered_again(const ChunkGraph& part, std::size_t from_end) {
    return from_end < part.gathers_again.size() && !part.gathers_again[from_end].empty();
  }
  // Returns the memory of a layer's forward; `i` counts layers from the beginning. Gathered parameters are
  // released after the forward if the backward gathers them again.
  TaskMemory forward_memory(const ChunkGraph& part, std::size_t i) const {
    if (graph_.layer_memory.empty()) return {};
    TaskMemory memory = graph_.layer_memory[part.layers[i]].forward;
    if (is_gathered_again(part, from_end(part, i))) give_up(part.gathers, i, memory);
    return memory;
  }
  TaskMemory layer_backward(const ChunkGraph& part, std::size_t i, PipelineStepKind kind) const {
    if (graph_.layer_memory.empty()) return {};
    const LayerMemory& layer = graph_.layer_memory[part.layers[from_end(part, i)]];
    return kind == PipelineStepKind::weight_backward  ? layer.weights
           : kind == PipelineStepKind::input_backward ? layer.input
                                                      : layer.backward;
  }
  // Returns the memory of a layer's backward; `i` counts layers from the end. The backward allocates the
  // memory that reductions behind it release.
  TaskMemory backward_memory(const ChunkGraph& part, std::size_t i, PipelineStepKind kind) const {
    if (graph_.layer_memory.empty()) return {};
    TaskMemory memory = layer_backward(part, i, kind);
    if (kind != PipelineStepKind::weight_backward) {
      const bool again = is_gathered_again(part, i);
      give_up(again ? part.gathers_again : part.gathers, again ? i : from_end(part, i), memory);
    }
    if (kind == PipelineStepKind::input_backward || i >= part.reductions.size()) return memory;
    for (const GraphNode& reduction : part.reductions[i]) {
      for (const MemoryChange& change : reduction.memory.end) memory.begin.push_back(change.reversed());
    }
    return memory;
  }

  // Appends chains of one layer, in a block of their own where many layers are alike. The first node waits
  // for `after`, which is emptied.
  Position layer(BlockBuilder& block, const LayerGraph& layer, const char* direction,
                 const std::vector<const Chain*>& chains, std::vector<Position>& after,
                 const TaskMemory& memory) const {
    if (!layer.repeats || chains.back()->empty()) {
      const std::size_t first = block.items();
      append(block, chains, after);
      block.add_memory(first, memory);
      return block.size() - 1;
    }
    BlockBuilder one(builder_, layer.name + direction);
    for (Position& position : after) position = block.seen_from_next(position);
    append(one, chains, after);
    one.add_memory(0, memory);
    block.repeat(one.finish());
    return block.size() - 1;
  }
  void append(BlockBuilder& block, const std::vector<const Chain*>& chains,
              std::vector<Position>& after) const {
    for (const Chain* chain : chains) {
      if (chain != chains.front() && begins_with_communication(*chain)) after = {block.size() - 1};
      writer_.append(block, *chain, std::exchange(after, {}));
    }
  }
  // A computation waits for the one before by its stream. A communication has to wait explicitly, unless it
  // concerns tensors that the forward kept.
  static bool begins_with_communication(const Chain& chain) {
    return !chain.empty() && chain.front().kind != GraphNode::Kind::compute && !chain.front().weight_gradient;
  }

  StepGathers forward_gathers(const ChunkGraph& part, const StageStep& step,
                              const std::vector<Position>& inputs) const {
    if (graph_.replica_traffic.every_gather)
      return {writer_, &part.gathers, inputs, graph_.replica_traffic.ahead};
    return {writer_, step.needs_parameters ? &part.gathers : nullptr, {}, std::nullopt};
  }
  // `layers` holds gathers or copies from the host. They begin when the step's input has arrived; without an
  // input, when the step before is done.
  StepGathers backward_gathers(const std::vector<std::vector<GraphNode>>& layers, const StageStep& step,
                               const Inputs& inputs) const {
    const bool gathers = step.kind != PipelineStepKind::weight_backward;
    return {writer_, gathers ? &layers : nullptr, inputs.backward.empty() ? inputs.before : inputs.backward,
            graph_.replica_traffic.ahead};
  }

  // Notes that the operations from `begin` to the end of the block work for layer `i` of a part, counted from
  // its beginning. Only layers of the body have a number.
  void note_layer(const BlockBuilder& block, const ChunkGraph& part, std::size_t i, Position begin,
                  Results& results) const {
    if (begin == block.size() || !graph_.layers[part.layers[i]].repeats) return;
    const std::size_t before = part.layers.front() == TrainingGraph::kFirst ? 1 : 0;
    const auto number = static_cast<std::uint32_t>(part.first_layer + i - before);
    if (!results.layers.empty() && results.layers.back().layer == number &&
        results.layers.back().end == begin) {
      results.layers.back().end = block.size();
    } else {
      results.layers.push_back({begin, block.size(), number});
    }
  }

  Results forward(BlockBuilder& block, const StageStep& step, std::vector<Position> after) const {
    if (graph_.sub_batches > 1) return forward_of_parts(block, step, after);
    const ChunkGraph& part = chunk(step, step.chunk);
    StepGathers gathers = forward_gathers(part, step, after);
    std::optional<Position> before;
    Results result;
    for (std::size_t i = 0; i < part.layers.size(); ++i) {
      const LayerGraph& next = graph_.layers[part.layers[i]];
      const std::vector<Position> gathered = gathers.next(block, before);
      if (before && (!gathered.empty() || begins_with_communication(next.forward))) after = {*before};
      after.insert(after.end(), gathered.begin(), gathered.end());
      if (step.needs_parameters && i < part.updates.size())
        await(part.updates[i], gathered, first_computation(next.forward, block.size()), result.updates);
      const Position begin = block.size();
      before = layer(block, next, "_forward", {&next.forward}, after, forward_memory(part, i));
      store(block, part, i, *before);
      note_layer(block, part, i, begin, result);
    }
    result.forward = before.value_or(block.size() - 1);
    return result;
  }
  // Returns the position of the first computation of a chain that is appended at `begin`.
  static Position first_computation(const Chain& chain, Position begin) {
    for (const GraphNode& node : chain) {
      if (node.kind == GraphNode::Kind::compute) break;
      if (communicates(node)) ++begin;
    }
    return begin;
  }
  // Adds that the gathers, or without gathers the computation, wait for updates of the previous iteration.
  static void await(const std::vector<std::uint32_t>& numbers, const std::vector<Position>& gathers,
                    Position computation, UpdatePlaces& places) {
    for (const std::uint32_t update : numbers) {
      for (const Position gather : gathers) places.awaited.push_back({update, gather});
      if (gathers.empty()) places.awaited.push_back({update, computation});
    }
  }
  void store(BlockBuilder& block, const ChunkGraph& part, std::size_t i, Position computed) const {
    if (i >= part.stores.size()) return;
    for (const GraphNode& copy : part.stores[i]) writer_.append(block, copy, {computed});
  }

  static std::vector<const Chain*> backward_chains(const LayerGraph& layer, PipelineStepKind kind) {
    const bool paired = kind == PipelineStepKind::overlapped;
    std::vector<const Chain*> chains;
    if (kind != PipelineStepKind::weight_backward && !layer.recompute.empty())
      chains.push_back(paired ? &layer.paired.recompute : &layer.recompute);
    chains.push_back(kind == PipelineStepKind::weight_backward  ? &layer.weights
                     : kind == PipelineStepKind::input_backward ? &layer.input
                     : paired                                   ? &layer.paired.backward
                                                                : &layer.backward);
    return chains;
  }

  Results backward(BlockBuilder& block, const StageStep& step, const Inputs& inputs) const {
    if (graph_.sub_batches > 1) return backward_of_parts(block, step, inputs);
    if (graph_.recompute_cost && step.kind != PipelineStepKind::weight_backward)
      return backward_with_windows(block, step, inputs);
    std::vector<Position> after = inputs.backward;
    const ChunkGraph& part = chunk(step, step.chunk);
    const char* name = step.kind == PipelineStepKind::weight_backward ? "_weights" : "_backward";
    StepGathers gathers = backward_gathers(part.gathers_again, step, inputs);
    StepGathers loads = backward_gathers(part.loads, step, inputs);
    Results result;
    for (std::size_t i = 0; i < part.layers.size(); ++i) {
      const LayerGraph& next = layer_from_end(part, i);
      const std::vector<const Chain*> chains = backward_chains(next, step.kind);
      const std::optional<Position> before = i > 0 ? std::optional<Position>(result.backward) : std::nullopt;
      std::vector<Position> gathered = gathers.next(block, before);
      const std::vector<Position> loaded = loads.next(block, before);
      gathered.insert(gathered.end(), loaded.begin(), loaded.end());
      if (before && (!gathered.empty() || begins_with_communication(*chains.front()))) after = {*before};
      after.insert(after.end(), gathered.begin(), gathered.end());
      const Position begin = block.size();
      result.backward = layer(block, next, name, chains, after, backward_memory(part, i, step.kind));
      note_layer(block, part, from_end(part, i), begin, result);
      if (reduces(step)) reduce(block, part, i, step.completes_gradients, result);
    }
    return result;
  }
  bool reduces(const StageStep& step) const {
    const bool every =
        graph_.replica_traffic.every_reduction && step.kind != PipelineStepKind::input_backward;
    return every || step.completes_gradients;
  }
  // `completes` says that no later backward adds to the gradients.
  void reduce(BlockBuilder& block, const ChunkGraph& part, std::size_t i, bool completes,
              Results& results) const {
    if (i >= part.reductions.size()) return;
    std::vector<std::vector<Position>> done{{results.backward}};
    for (const GraphNode& reduction : part.reductions[i]) {
      std::vector<Position> after =
          reduction.after.empty() ? done.front() : ChainWriter::waits_for(reduction, done);
      if (reduction.of_complete_gradients && !completes) {
        done.push_back(std::move(after));
        continue;
      }
      const Position position = writer_.append(block, reduction, after);
      done.push_back({position});
      if (reduction.update_plus_one != 0) {
        results.updates.run.push_back({reduction.update_plus_one - 1, position});
      } else {
        results.aside.add(reduction.stream, reduction.queue, position);
      }
    }
  }

  // ---- Chains in turns

  // Returns the memory of a layer in one of several lanes. `own` is what each lane needs. `all` also has what
  // the microbatch as a whole needs: the first lane allocates it, the last one releases it.
  static TaskMemory in_lane(TaskMemory own, const TaskMemory& all, std::size_t lane, std::size_t lanes) {
    if (lane == 0) own.begin = all.begin;
    if (lane + 1 == lanes) own.end = all.end;
    return own;
  }
  // Notes every node of a lane as an operation of its layer. `layer_of` returns a layer's index in the part.
  template <class LayerOf>
  void note_nodes(TurnLane& lane, BlockBuilder& block, const ChunkGraph& part, Results& results,
                  LayerOf layer_of) const {
    lane.appended = [this, &block, &part, &results, layer_of](const TurnLane::Layer& layer, const GraphNode&,
                                                              Position begin) {
      note_layer(block, part, layer_of(layer.number), begin, results);
    };
  }

  // Notes where the backward of a lane is complete. With `reduces` the gradients of each layer are reduced
  // behind its backward.
  void note_backward(TurnLane& lane, BlockBuilder& block, const StageStep& step, const ChunkGraph& part,
                     bool reduces, Results& results) const {
    lane.end_layer = [this, &block, &step, &part, reduces, &results](const TurnLane::Layer& layer,
                                                                     Position last) {
      results.backward = last;
      if (reduces) reduce(block, part, layer.number, step.completes_gradients, results);
    };
  }

  // Appends a forward and a backward that overlap as a pair.
  Results overlapped(BlockBuilder& block, const StageStep& step, const Inputs& inputs) const {
    const ChunkGraph &forward_part = chunk(step, step.chunk), &part = chunk(step, step.backward_chunk);
    Inputs first = inputs;
    if (step.needs_parameters || graph_.replica_traffic.every_gather)
      gather_all(block, forward_part.gathers, first.forward);
    gather_all(block, part.gathers_again, first.backward);
    gather_all(block, part.loads, first.backward);
    TurnLane forward(first.forward), backward(first.backward);
    for (std::size_t i = 0; i < forward_part.layers.size(); ++i)
      forward.add_layer({&graph_.layers[forward_part.layers[i]].paired.forward}, i,
                        forward_memory(forward_part, i));
    for (std::size_t i = 0; i < part.layers.size(); ++i)
      backward.add_layer(backward_chains(layer_from_end(part, i), PipelineStepKind::overlapped), i,
                         backward_memory(part, i, PipelineStepKind::backward));
    Results results;
    note_nodes(forward, block, forward_part, results, [](std::size_t i) { return i; });
    note_nodes(backward, block, part, results, [&](std::size_t i) { return from_end(part, i); });
    forward.end_layer = [&](const TurnLane::Layer& layer, Position last) {
      results.forward = last;
      store(block, forward_part, layer.number, last);
    };
    note_backward(backward, block, step, part, reduces(step), results);
    ChainTurns(writer_, block).alternate({&backward, &forward});
    return results;
  }
  // Appends all gathers before a pair of chains that run as one.
  void gather_all(BlockBuilder& block, const std::vector<std::vector<GraphNode>>& layers,
                  std::vector<Position>& after) const {
    for (const std::vector<GraphNode>& gathers : layers) {
      const std::vector<Position> gathered = writer_.append_beside(block, gathers, {});
      after.insert(after.end(), gathered.begin(), gathered.end());
    }
  }
  LayerGathers gathers_of_backward(const ChunkGraph& part, const StageStep& step,
                                   const Inputs& inputs) const {
    return {{backward_gathers(part.gathers_again, step, inputs), backward_gathers(part.loads, step, inputs)},
            part.layers.size()};
  }
  static std::vector<TurnLane*> pointers(std::vector<TurnLane>& lanes) {
    std::vector<TurnLane*> all;
    all.reserve(lanes.size());
    for (TurnLane& lane : lanes) all.push_back(&lane);
    return all;
  }

  // Appends the forwards of the parts of a microbatch.
  Results forward_of_parts(BlockBuilder& block, const StageStep& step,
                           const std::vector<Position>& after) const {
    const ChunkGraph& part = chunk(step, step.chunk);
    Results results;
    LayerGathers gathers({forward_gathers(part, step, after)}, part.layers.size());
    std::vector<bool> awaited(part.layers.size(), !step.needs_parameters);
    std::vector<TurnLane> lanes(graph_.sub_batches, TurnLane(after));
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      gathers.begin_layers_of(lanes[lane], block);
      for (std::size_t i = 0; i < part.layers.size(); ++i) {
        TaskMemory own;
        if (!graph_.layer_memory.empty()) own = graph_.layer_memory[part.layers[i]].forward;
        lanes[lane].add_layer({&graph_.layers[part.layers[i]].forward}, i,
                              in_lane(std::move(own), forward_memory(part, i), lane, lanes.size()));
      }
      lanes[lane].appended = [&](const TurnLane::Layer& layer, const GraphNode& node, Position begin) {
        note_layer(block, part, layer.number, begin, results);
        if (awaited[layer.number] || node.kind != GraphNode::Kind::compute) return;
        awaited[layer.number] = true;
        if (layer.number < part.updates.size())
          await(part.updates[layer.number], gathers.of(layer.number), begin, results.updates);
      };
      lanes[lane].end_layer = [&](const TurnLane::Layer&, Position last) { results.forward = last; };
    }
    ChainTurns(writer_, block).alternate(pointers(lanes));
    return results;
  }

  // Appends the backwards of the parts of a microbatch. Gradients are reduced behind the last one.
  Results backward_of_parts(BlockBuilder& block, const StageStep& step, const Inputs& inputs) const {
    const ChunkGraph& part = chunk(step, step.chunk);
    Results results;
    LayerGathers gathers = gathers_of_backward(part, step, inputs);
    std::vector<TurnLane> lanes(graph_.sub_batches, TurnLane(inputs.backward));
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      gathers.begin_layers_of(lanes[lane], block);
      for (std::size_t i = 0; i < part.layers.size(); ++i)
        lanes[lane].add_layer(backward_chains(layer_from_end(part, i), step.kind), i,
                              in_lane(layer_backward(part, i, step.kind), backward_memory(part, i, step.kind),
                                      lane, lanes.size()));
      note_nodes(lanes[lane], block, part, results, [&](std::size_t i) { return from_end(part, i); });
      const bool last_lane = lane + 1 == lanes.size();
      note_backward(lanes[lane], block, step, part, last_lane && reduces(step), results);
    }
    ChainTurns(writer_, block).alternate(pointers(lanes));
    return results;
  }

  // Appends a backward, and in its windows of communication the recomputation of the layer before.
  Results backward_with_windows(BlockBuilder& block, const StageStep& step, const Inputs& inputs) const {
    const ChunkGraph& part = chunk(step, step.chunk);
    Results results;
    LayerGathers gathers = gathers_of_backward(part, step, inputs);
    TurnLane lane(inputs.backward), again(inputs.backward);
    gathers.begin_layers_of(lane, block);
    gathers.begin_layers_of(again, block);
    for (std::size_t i = 0; i < part.layers.size(); ++i) {
      const LayerGraph& layer = layer_from_end(part, i);
      TaskMemory memory = backward_memory(part, i, step.kind);
      // The recomputation is the first to allocate what the backward releases.
      if (!layer.recompute.empty())
        again.add_layer({&layer.recompute}, i, {std::exchange(memory.begin, {}), {}});
      const std::vector<const Chain*> chains = backward_chains(layer, step.kind);
      lane.add_layer({chains.back()}, i, memory);
    }
    for (TurnLane* each : {&lane, &again})
      note_nodes(*each, block, part, results, [&](std::size_t i) { return from_end(part, i); });
    note_backward(lane, block, step, part, reduces(step), results);
    ChainTurns(writer_, block).fill_windows(lane, again, graph_.recompute_cost);
    return results;
  }

  const TrainingGraph& graph_;
  ProgramBuilder& builder_;
  ChainWriter writer_;
};

}  // namespace

std::unique_ptr<const StageComputation> graph_computation(const TrainingGraph& graph,
                                                          ProgramBuilder& builder) {
  return std::make_unique<const GraphComputation>(graph, builder);
}

}  // namespace netsim
