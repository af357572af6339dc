// ChainTurns: appends several chains of a pipeline step to one block in turns. So the computation of one
// chain hides the communication of another, although all of them share one compute stream.
//
// - alternate(): each turn of a chain goes up to its next communication. A forward and a backward that
//   overlap as a pair run so, and so do the parts of a microbatch (sub_batches.cpp).
// - fill_windows(): behind each communication of a backward comes a share of the next layer's recomputation
//   (recompute_windows.cpp).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "sim/training/strategy/chain_writer.h"

namespace netsim {

// TurnLane: the chains of all layers of a step, one after the other.
struct TurnLane {
  using Position = BlockBuilder::Position;
  // Layer: the number that the owner gave the layer, and the index behind its last node.
  struct Layer {
    std::size_t number = 0, end = 0;
  };

  explicit TurnLane(std::vector<Position> before) : done{std::move(before)} {}

  // Appends the chains of a layer. The memory is allocated at their first node and released at their last.
  void add_layer(const std::vector<const Chain*>& chains, std::size_t number, const TaskMemory& memory);
  bool finished() const { return next == nodes.size(); }
  // Returns the end of a turn: behind the next communication and those that follow it directly, or the end of
  // the chain. Where a chain has no communication, it is behind the next node.
  std::size_t turn_end() const;

  std::vector<const GraphNode*> nodes;
  std::vector<Layer> layers;
  std::map<std::size_t, TaskMemory> needs;  // by node: memory allocated at it and released at its end
  std::vector<std::vector<Position>> done;  // by node, as ChainWriter::waits_for() takes them
  std::size_t next = 0, layer = 0;          // the next node, and the layer that it belongs to

  // Called before the first node of a layer. Returns positions that the node has to wait for.
  std::function<std::vector<Position>(const Layer&)> begin_layer;
  // Called when a node was appended, whose first operation is at `begin`.
  std::function<void(const Layer&, const GraphNode&, Position begin)> appended;
  // Called when a layer is complete. `last` is the position that completes its last node.
  std::function<void(const Layer&, Position last)> end_layer;
};

class ChainTurns {
 public:
  using Position = BlockBuilder::Position;

  ChainTurns(const ChainWriter& writer, BlockBuilder& block) : writer_(writer), block_(block) {}

  // Appends all lanes, a turn of each after the other.
  void alternate(const std::vector<TurnLane*>& lanes);

  // Appends both lanes, whose layers have increasing numbers. All of a layer of `filler` precedes the layer
  // of `lane` with the same number. Behind each communication of a layer of `lane` comes a share of the next
  // layer of `filler`. The share is that of the communication's bytes in those of its layer. `cost` returns
  // the cost of a node of `filler`.
  void fill_windows(TurnLane& lane, TurnLane& filler, const std::function<double(const GraphNode&)>& cost);

 private:
  void append_up_to(TurnLane& lane, std::size_t end);
  void append_next(TurnLane& lane);
  void end_layers(TurnLane& lane);

  const ChainWriter& writer_;
  BlockBuilder& block_;
};

}  // namespace netsim
