#include "sim/training/strategy/piece_messages.h"

#include <utility>

namespace netsim {

PeersOnRing peers_on_ring(const TrainingGraph& graph, const std::string& axis, std::uint32_t most) {
  PeersOnRing peers{{{}}, {{}}};
  peers.to.reserve(most + 1);
  peers.from.reserve(most + 1);
  for (std::int32_t distance = 1; distance <= static_cast<std::int32_t>(most); ++distance) {
    peers.to.push_back(graph.mesh.next(graph.builder, axis, distance));
    peers.from.push_back(graph.mesh.next(graph.builder, axis, -distance));
  }
  return peers;
}

PieceMessages::Number PieceMessages::message(ChainEditor& edit, GraphNode::Kind kind, std::size_t distance,
                                             Bytes bytes, bool stored, const Numbers& after) const {
  const bool sends = kind == GraphNode::Kind::send;
  GraphNode node;
  node.kind = kind;
  node.stream = stream_;
  node.name = sends ? send_ : receive_;
  node.peer = (sends ? peers_.to : peers_.from)[distance];
  node.bytes = bytes;
  node.stored = stored;
  cut_into(node, static_cast<std::int64_t>(peers_.to.size()), key_);
  return edit.add(std::move(node), after);
}

std::pair<PieceMessages::Number, PieceMessages::Number> PieceMessages::store_at_all(
    ChainEditor& edit, std::int64_t ranks, std::int64_t pieces, Bytes bytes, const Numbers& after,
    const std::function<Number(std::int64_t, const Numbers&)>& compute) const {
  Numbers sent = after, received = after;
  Number computed = 0;
  for (std::int64_t i = 0; i < ranks * pieces; ++i) {
    if (const auto distance = static_cast<std::size_t>(i / pieces); distance > 0) {
      sent = {send(edit, distance, bytes, true, sent)};
      received = {receive(edit, distance, bytes, true, received)};
    }
    computed = compute(i, received);
  }
  return {received.front(), computed};
}

GraphNode with_operators(const GraphNode& node, std::vector<Operator> operators) {
  GraphNode part = node;
  if (operators.size() < node.operators.size()) part.name = node.name + "." + operators.front().name;
  part.work.name = part.name;
  part.operators = std::move(operators);
  return part;
}

ChainEditor::Number joined(ChainEditor& edit, const GraphNode& like, const ChainEditor::Numbers& all) {
  if (all.size() == 1) return all.front();
  GraphNode node = like;
  node.name = like.name + ".summed";
  node.work = {node.name, {}};
  node.operators.clear();
  return edit.add(std::move(node), all);
}

}  // namespace netsim
