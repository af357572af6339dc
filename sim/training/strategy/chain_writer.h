// ChainWriter: writes the chains of a training graph into blocks of a program.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/training/strategy/training_graph.h"

namespace netsim {

class ChainWriter {
 public:
  using Position = BlockBuilder::Position;

  ChainWriter(const TrainingGraph& graph, ProgramBuilder& builder) : graph_(graph), builder_(builder) {}

  // Appends one node and returns the position that completes it. That is its own, or, where there is nothing
  // to do, that of the operation before it.
  Position append(BlockBuilder& block, const GraphNode& node, const std::vector<Position>& after) const;

  // Appends a chain whose first node waits for `after`. Returns the position of the last operation.
  Position append(BlockBuilder& block, const Chain& chain, const std::vector<Position>& after) const;

  // Appends operations that wait for `after`, or for the earlier ones that GraphNode::after names. Returns
  // the position of each.
  std::vector<Position> append_beside(BlockBuilder& block, const std::vector<GraphNode>& nodes,
                                      const std::vector<Position>& after) const;

  // Returns the positions that a node waits for. `done` has those that complete each node of the chain before
  // it; its first entry is for what precedes the chain.
  static std::vector<Position> waits_for(const GraphNode& node,
                                         const std::vector<std::vector<Position>>& done);

 private:
  Position append_operation(BlockBuilder& block, const GraphNode& node,
                            const std::vector<Position>& after) const;

  static bool is_routed(const Extent& extent) { return extent.along == Dimension::routed; }
  static bool is_routed(const Operator& op);

  Position compute(BlockBuilder& block, const GraphNode& node, const std::vector<Position>& after) const;

  // Appends a step of the optimizer that is in no order with other computations.
  Position update(BlockBuilder& block, const GraphNode& node, const std::vector<Position>& after) const;

  Position collective(BlockBuilder& block, const GraphNode& node, const std::vector<Position>& after) const;

  Position of_host(BlockBuilder& block, const GraphNode& node, const std::vector<Position>& after) const;

  // Appends a launch by the host, which waits for those before it in its queue.
  Position launch(BlockBuilder& block, const GraphNode& node, const std::vector<Position>& after) const;

  // Appends a message. Sends wait only for what they send; receives run one after the other.
  Position message(BlockBuilder& block, const GraphNode& node, const std::vector<Position>& after) const;

  // Returns an operation with the fields that all operations but computations on the GPU have.
  ProgramOp operation(const GraphNode& node, TaskKind kind) const;
  // Returns ProgramOp::table_plus_one for bytes that depend on the number of token copies that each rank's
  // experts get.
  std::uint32_t bytes_by_rows(const GraphNode& node,
                              const std::function<Bytes(std::int64_t rows)>& bytes_of) const;

  const TrainingGraph& graph_;
  ProgramBuilder& builder_;
};

}  // namespace netsim
