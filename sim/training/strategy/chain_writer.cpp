#include "sim/training/strategy/chain_writer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/core/errors.h"

namespace netsim {

ChainWriter::Position ChainWriter::append(BlockBuilder& block, const GraphNode& node,
                                          const std::vector<Position>& after) const {
  const Position position = append_operation(block, node, after);
  const bool computes = node.kind == GraphNode::Kind::compute;
  if (node.pieces > 1 && (computes || communicates(node))) {
    builder_.cut(node.name, node.pieces, node.pieces_key,
                 computes ? std::optional<Stream>() : std::optional<Stream>(node.stream));
  }
  if (!graph_.layer_memory.empty() && !node.memory.empty()) block.add_memory(block.items() - 1, node.memory);
  return position;
}

ChainWriter::Position ChainWriter::append(BlockBuilder& block, const Chain& chain,
                                          const std::vector<Position>& after) const {
  // By node; the first entry is for what precedes the chain.
  std::vector<std::vector<Position>> done{after};
  for (const GraphNode& node : chain) done.push_back({append(block, node, waits_for(node, done))});
  return block.size() - 1;
}

std::vector<ChainWriter::Position> ChainWriter::append_beside(BlockBuilder& block,
                                                              const std::vector<GraphNode>& nodes,
                                                              const std::vector<Position>& after) const {
  std::vector<Position> positions;
  positions.reserve(nodes.size());
  std::vector<std::vector<Position>> done{after};
  for (const GraphNode& node : nodes) {
    positions.push_back(append(block, node, node.after.empty() ? after : waits_for(node, done)));
    done.push_back({positions.back()});
  }
  return positions;
}

std::vector<ChainWriter::Position> ChainWriter::waits_for(const GraphNode& node,
                                                          const std::vector<std::vector<Position>>& done) {
  if (node.after.empty()) return done.back();
  std::vector<Position> positions;
  for (const std::uint32_t back : node.after) {
    const std::vector<Position>& of_node = done[done.size() - std::min<std::size_t>(back, done.size())];
    positions.insert(positions.end(), of_node.begin(), of_node.end());
  }
  return positions;
}

ChainWriter::Position ChainWriter::append_operation(BlockBuilder& block, const GraphNode& node,
                                                    const std::vector<Position>& after) const {
  switch (node.kind) {
    case GraphNode::Kind::compute:
      return compute(block, node, after);
    case GraphNode::Kind::collective:
      return collective(block, node, after);
    case GraphNode::Kind::sum:
      NETSIM_CHECK(graph_.sharding.parts(node.sum.over) == 1, "a strategy divides what none of them sums up");
      break;
    case GraphNode::Kind::exchange:
      NETSIM_CHECK(graph_.sharding.parts(node.exchange.over) == 1,
                   "a strategy divides experts or tables, and none exchanges");
      break;
    case GraphNode::Kind::send:
    case GraphNode::Kind::receive:
      return message(block, node, after);
    case GraphNode::Kind::copy_to_host:
    case GraphNode::Kind::copy_from_host:
    case GraphNode::Kind::host_compute:
      return of_host(block, node, after);
    case GraphNode::Kind::host_launch:
      return launch(block, node, after);
    case GraphNode::Kind::share:
      NETSIM_CHECK(false, "what stages share is not in a chain");
      break;
  }
  return after.empty() ? block.size() - 1 : after.back();
}

bool ChainWriter::is_routed(const Operator& op) {
  const auto along = [](const Traffic& traffic) {
    return std::any_of(traffic.tensor.begin(), traffic.tensor.end(),
                       [](const Extent& e) { return is_routed(e); });
  };
  return is_routed(op.m) || is_routed(op.n) || is_routed(op.k) ||
         std::any_of(op.traffic.begin(), op.traffic.end(), along);
}

ChainWriter::Position ChainWriter::compute(BlockBuilder& block, const GraphNode& node,
                                           const std::vector<Position>& after) const {
  const Work work =
      node.operators.empty() ? node.work : work_of(node.work.name, node.operators, graph_.sharding);
  const bool routed = std::any_of(node.operators.begin(), node.operators.end(),
                                  [](const Operator& op) { return is_routed(op); });
  const std::string name = node.name == work.name ? std::string() : node.name;
  if (node.update_plus_one != 0) return update(block, node, after);
  if (node.rows_plus_one == 0 || !routed) return block.compute(work, after, name);
  // Each number of token copies has a work of its own.
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

ChainWriter::Position ChainWriter::update(BlockBuilder& block, const GraphNode& node,
                                          const std::vector<Position>& after) const {
  ProgramOp op;
  op.kind = TaskKind::compute;
  op.unordered = true;
  op.work = builder_.work(node.work);
  op.name = builder_.name(node.name);
  return block.add(std::move(op), after);
}

ChainWriter::Position ChainWriter::collective(BlockBuilder& block, const GraphNode& node,
                                              const std::vector<Position>& after) const {
  if (node.counts_plus_one == 0 && node.row_bytes == 0)
    return block.collective(node.name, node.collective, node.stream, node.queue, node.group, node.bytes,
                            after);
  ProgramOp op = operation(node, TaskKind::collective);
  op.collective = node.collective;
  op.group = node.group;
  op.counts_plus_one = node.counts_plus_one;
  op.choice_plus_one = node.choice_plus_one;
  op.table_plus_one = bytes_by_rows(
      node, [&](std::int64_t rows) { return std::max<std::int64_t>(1, rows) * node.row_bytes; });
  return block.add(std::move(op), after);
}

ChainWriter::Position ChainWriter::of_host(BlockBuilder& block, const GraphNode& node,
                                           const std::vector<Position>& after) const {
  ProgramOp op = operation(node, node.kind == GraphNode::Kind::copy_to_host     ? TaskKind::copy_to_host
                                 : node.kind == GraphNode::Kind::copy_from_host ? TaskKind::copy_from_host
                                                                                : TaskKind::host_compute);
  if (op.kind == TaskKind::host_compute) {
    op.work = builder_.work(node.work);
    return block.add(std::move(op), after);
  }
  op.bytes = node.bytes;
  op.table_plus_one =
      bytes_by_rows(node, [&](std::int64_t rows) { return node.bytes + rows * node.row_bytes; });
  return block.add(std::move(op), after);
}

ChainWriter::Position ChainWriter::launch(BlockBuilder& block, const GraphNode& node,
                                          const std::vector<Position>& after) const {
  ProgramOp op = operation(node, TaskKind::host_thread);
  op.work = builder_.work(node.work);
  return block.add(std::move(op), node.ahead ? std::vector<Position>{} : after);
}

ChainWriter::Position ChainWriter::message(BlockBuilder& block, const GraphNode& node,
                                           const std::vector<Position>& after) const {
  const bool sends = node.kind == GraphNode::Kind::send;
  ProgramOp op = operation(node, sends ? TaskKind::send : TaskKind::receive);
  op.unordered = sends || node.stored;
  op.raw = node.stored;
  op.peer = node.peer;
  op.bytes = node.bytes;
  return block.add(std::move(op), after);
}

ProgramOp ChainWriter::operation(const GraphNode& node, TaskKind kind) const {
  ProgramOp op;
  op.kind = kind;
  op.stream = node.stream;
  op.queue = node.queue;
  op.name = builder_.name(node.name);
  return op;
}

std::uint32_t ChainWriter::bytes_by_rows(const GraphNode& node,
                                         const std::function<Bytes(std::int64_t rows)>& bytes_of) const {
  if (node.row_bytes == 0) return 0;
  std::vector<std::int64_t> bytes = graph_.routed_rows[node.rows_plus_one - 1];
  for (std::int64_t& rows : bytes) rows = bytes_of(rows);
  return builder_.table(std::move(bytes)) + 1;
}

}  // namespace netsim
