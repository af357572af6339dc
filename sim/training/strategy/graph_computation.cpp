#include "sim/training/strategy/graph_computation.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/core/errors.h"
#include "sim/training/strategy/chain_writer.h"

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
        break;
    }
    NETSIM_CHECK(false, "a step that communicates computes nothing");
    return {};
  }
  std::optional<Position> reduce(BlockBuilder& block, std::uint32_t stage, std::uint32_t chunk,
                                 const std::vector<Position>& after) const override {
    std::optional<Position> last;
    for (const GraphNode& node : graph_.stages[stage].chunks[chunk].reduced_at_step)
      last = writer_.append(block, node, after);
    return last;
  }

 private:
  const ChunkGraph& chunk(const StageStep& step, std::uint32_t number) const {
    return graph_.stages[step.stage].chunks[number];
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
    if (is_gathered_again(part, part.layers.size() - 1 - i)) give_up(part.gathers, i, memory);
    return memory;
  }
  // Returns the memory of a layer's backward; `i` counts layers from the end. The backward allocates the
  // memory that reductions behind it release.
  TaskMemory backward_memory(const ChunkGraph& part, std::size_t i, PipelineStepKind kind) const {
    if (graph_.layer_memory.empty()) return {};
    const LayerMemory& layer = graph_.layer_memory[part.layers[part.layers.size() - 1 - i]];
    TaskMemory memory = kind == PipelineStepKind::weight_backward  ? layer.weights
                        : kind == PipelineStepKind::input_backward ? layer.input
                                                                   : layer.backward;
    if (kind != PipelineStepKind::weight_backward) {
      const bool again = is_gathered_again(part, i);
      give_up(again ? part.gathers_again : part.gathers, again ? i : part.layers.size() - 1 - i, memory);
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

  // Gathers: the gathers for the layers of a step, which run one after the other.
  class Gathers {
   public:
    // `layers` holds the gathers by layer, in the order in which layers are computed, and may be shorter.
    // `begin` holds the positions that the first gathers wait for. Without `ahead`, gathers do not wait for
    // layers.
    Gathers(const ChainWriter& writer, const std::vector<std::vector<GraphNode>>* layers,
            std::vector<Position> begin, std::optional<std::uint32_t> ahead)
        : writer_(writer), layers_(layers), begin_(std::move(begin)), ahead_(ahead) {}

    // Has to be called before each layer is appended. `before` is the end of the layer before it, if there is
    // one. Appends the gathers that may begin now. Returns the positions that the layer has to wait for.
    std::vector<Position> next(BlockBuilder& block, std::optional<Position> before) {
      const std::size_t layer = layer_++;
      if (layers_ == nullptr) return {};
      const std::size_t end = std::min(layers_->size(), layer + 1 + ahead_.value_or(0));
      std::vector<Position> after = begin_;
      if (ahead_ && before) after = {*before};
      while (appended_.size() < end) {
        std::vector<Position>& done = appended_.emplace_back();
        for (const GraphNode& gather : (*layers_)[appended_.size() - 1])
          done.push_back(writer_.append(block, gather, after));
      }
      return layer < appended_.size() ? appended_[layer] : std::vector<Position>();
    }

   private:
    const ChainWriter& writer_;
    const std::vector<std::vector<GraphNode>>* layers_;
    std::vector<Position> begin_;
    std::optional<std::uint32_t> ahead_;
    std::vector<std::vector<Position>> appended_;  // by layer
    std::size_t layer_ = 0;
  };
  Gathers forward_gathers(const ChunkGraph& part, const StageStep& step,
                          const std::vector<Position>& inputs) const {
    if (graph_.replica_traffic.every_gather)
      return {writer_, &part.gathers, inputs, graph_.replica_traffic.ahead};
    return {writer_, step.needs_parameters ? &part.gathers : nullptr, {}, std::nullopt};
  }
  // `layers` holds gathers or copies from the host. They begin when the step's input has arrived; without an
  // input, when the step before is done.
  Gathers backward_gathers(const std::vector<std::vector<GraphNode>>& layers, const StageStep& step,
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
    const ChunkGraph& part = chunk(step, step.chunk);
    Gathers gathers = forward_gathers(part, step, after);
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
    std::vector<Position> after = inputs.backward;
    const ChunkGraph& part = chunk(step, step.chunk);
    const char* name = step.kind == PipelineStepKind::weight_backward ? "_weights" : "_backward";
    Gathers gathers = backward_gathers(part.gathers_again, step, inputs);
    Gathers loads = backward_gathers(part.loads, step, inputs);
    Results result;
    for (std::size_t i = 0; i < part.layers.size(); ++i) {
      const LayerGraph& next = graph_.layers[part.layers[part.layers.size() - 1 - i]];
      const std::vector<const Chain*> chains = backward_chains(next, step.kind);
      const std::optional<Position> before = i > 0 ? std::optional<Position>(result.backward) : std::nullopt;
      std::vector<Position> gathered = gathers.next(block, before);
      const std::vector<Position> loaded = loads.next(block, before);
      gathered.insert(gathered.end(), loaded.begin(), loaded.end());
      if (before && (!gathered.empty() || begins_with_communication(*chains.front()))) after = {*before};
      after.insert(after.end(), gathered.begin(), gathered.end());
      const Position begin = block.size();
      result.backward = layer(block, next, name, chains, after, backward_memory(part, i, step.kind));
      note_layer(block, part, part.layers.size() - 1 - i, begin, result);
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

  // Appends the two chains in turns. Each turn goes up to the next communication, which is hidden by the
  // computation of the other chain.
  Results overlapped(BlockBuilder& block, const StageStep& step, const Inputs& inputs) const {
    std::vector<const GraphNode*> forward, backward;
    std::vector<std::size_t> ends;          // ends of the layers in `backward`
    std::vector<std::size_t> forward_ends;  // ends of the layers in `forward`
    // By node: the memory that its layer allocates at it, and that it releases at its end.
    std::map<std::size_t, TaskMemory> forward_needs, backward_needs;
    const auto need = [](std::map<std::size_t, TaskMemory>& needs, const TaskMemory& layer, std::size_t first,
                         std::size_t end) {
      needs[first].begin.insert(needs[first].begin.end(), layer.begin.begin(), layer.begin.end());
      needs[end - 1].end.insert(needs[end - 1].end.end(), layer.end.begin(), layer.end.end());
    };
    const ChunkGraph& forward_part = chunk(step, step.chunk);
    for (std::size_t i = 0; i < forward_part.layers.size(); ++i) {
      const std::size_t first = forward.size();
      for (const GraphNode& node : graph_.layers[forward_part.layers[i]].paired.forward)
        forward.push_back(&node);
      need(forward_needs, forward_memory(forward_part, i), first, forward.size());
      forward_ends.push_back(forward.size());
    }
    const ChunkGraph& part = chunk(step, step.backward_chunk);
    for (std::size_t i = part.layers.size(); i-- > 0;) {
      const std::size_t first = backward.size();
      for (const Chain* chain :
           backward_chains(graph_.layers[part.layers[i]], PipelineStepKind::overlapped)) {
        for (const GraphNode& node : *chain) backward.push_back(&node);
      }
      ends.push_back(backward.size());
      need(backward_needs, backward_memory(part, part.layers.size() - 1 - i, PipelineStepKind::backward),
           first, backward.size());
    }
    Inputs first = inputs;
    std::vector<std::vector<Position>> forward_done, backward_done;  // as in ChainWriter::append()
    if (step.needs_parameters || graph_.replica_traffic.every_gather)
      gather_all(block, chunk(step, step.chunk).gathers, first.forward);
    gather_all(block, part.gathers_again, first.backward);
    gather_all(block, part.loads, first.backward);
    forward_done.push_back(first.forward);
    backward_done.push_back(first.backward);
    Results results;
    std::size_t layer = 0, forward_layer = 0;
    for (std::size_t f = 0, b = 0; f < forward.size() || b < backward.size();) {
      for (const std::size_t end = turn_end(backward, b); b < end; ++b) {
        const Position begin = block.size();
        results.backward = append_next(block, *backward[b], backward_done, backward_needs[b]);
        note_layer(block, part, part.layers.size() - 1 - layer_of(ends, b), begin, results);
        for (; layer < ends.size() && ends[layer] == b + 1; ++layer) {
          if (reduces(step)) reduce(block, part, layer, step.completes_gradients, results);
        }
      }
      for (const std::size_t end = turn_end(forward, f); f < end; ++f) {
        const Position begin = block.size();
        results.forward = append_next(block, *forward[f], forward_done, forward_needs[f]);
        note_layer(block, forward_part, layer_of(forward_ends, f), begin, results);
        for (; forward_layer < forward_ends.size() && forward_ends[forward_layer] == f + 1; ++forward_layer)
          store(block, forward_part, forward_layer, results.forward);
      }
    }
    return results;
  }
  // Returns the layer to which a node of a chain belongs, from the ends of the layers in the chain.
  static std::size_t layer_of(const std::vector<std::size_t>& ends, std::size_t node) {
    return static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), node) - ends.begin());
  }
  // Returns the end of a turn: behind the next communication and those that follow it directly, or the end of
  // the chain. Where a chain has no communication, it is behind the next node.
  static std::size_t turn_end(const std::vector<const GraphNode*>& chain, std::size_t begin) {
    const auto talks = [](const GraphNode* node) { return communicates(*node); };
    if (std::none_of(chain.begin(), chain.end(), talks)) return std::min(begin + 1, chain.size());
    const auto first = std::find_if(chain.begin() + static_cast<std::ptrdiff_t>(begin), chain.end(), talks);
    return static_cast<std::size_t>(std::find_if_not(first, chain.end(), talks) - chain.begin());
  }
  // Appends all gathers before a pair of chains that run as one.
  void gather_all(BlockBuilder& block, const std::vector<std::vector<GraphNode>>& layers,
                  std::vector<Position>& after) const {
    for (const std::vector<GraphNode>& gathers : layers) {
      for (const GraphNode& gather : gathers)
        after.push_back(writer_.append(block, gather, std::vector<Position>()));
    }
  }
  Position append_next(BlockBuilder& block, const GraphNode& node, std::vector<std::vector<Position>>& done,
                       const TaskMemory& memory) const {
    done.push_back({writer_.append(block, node, ChainWriter::waits_for(node, done))});
    block.add_memory(block.items() - 1, memory);
    return done.back().front();
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
