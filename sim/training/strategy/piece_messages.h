// PieceMessages: messages by which the ranks of an axis exchange pieces with each other, for strategies that
// overlap pieces with GEMMs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/training/strategy/chain_editor.h"

namespace netsim {

// PeersOnRing: the ranks at distance 1, 2, ... ahead and behind on the ring of an axis; entry 0 is not used.
struct PeersOnRing {
  std::vector<PeerExpression> to, from;
};
// Returns the peers up to a distance along a plain axis.
PeersOnRing peers_on_ring(const TrainingGraph& graph, const std::string& axis, std::uint32_t most);

class PieceMessages {
 public:
  using Number = ChainEditor::Number;
  using Numbers = ChainEditor::Numbers;

  // The operations are named AXIS_send_DIRECTION and AXIS_receive_DIRECTION. `key` is that of
  // GraphNode::pieces_key.
  PieceMessages(const PeersOnRing& peers, Stream stream, const std::string& axis,
                const std::string& direction, const char* key)
      : peers_(peers),
        stream_(stream),
        key_(key),
        send_(axis + "_send_" + direction),
        receive_(axis + "_receive_" + direction) {}

  // Appends the send to the rank at a distance, or the receive from the one behind. Stored messages use no
  // kernel of the library (GraphNode::stored).
  Number send(ChainEditor& edit, std::size_t distance, Bytes bytes, bool stored, const Numbers& after) const {
    return message(edit, GraphNode::Kind::send, distance, bytes, stored, after);
  }
  Number receive(ChainEditor& edit, std::size_t distance, Bytes bytes, bool stored,
                 const Numbers& after) const {
    return message(edit, GraphNode::Kind::receive, distance, bytes, stored, after);
  }

  // Appends the messages by which every rank stores `pieces` pieces of `bytes` at each of the other ranks,
  // one after the other. `compute(i, after)` appends what is computed with piece i, and returns its node. The
  // first `pieces` of the ranks x pieces are the rank's own, then come those of the nearest rank behind.
  // Returns the nodes that complete the messages and the computations.
  std::pair<Number, Number> store_at_all(
      ChainEditor& edit, std::int64_t ranks, std::int64_t pieces, Bytes bytes, const Numbers& after,
      const std::function<Number(std::int64_t, const Numbers&)>& compute) const;

 private:
  Number message(ChainEditor& edit, GraphNode::Kind kind, std::size_t distance, Bytes bytes, bool stored,
                 const Numbers& after) const;

  PeersOnRing peers_;
  Stream stream_;
  const char* key_;
  std::string send_, receive_;
};

// Returns a copy of a node with some of its operators.
GraphNode with_operators(const GraphNode& node, std::vector<Operator> operators);
// Returns a node that is done when all of them are. It computes in the place of `like` and takes no time.
ChainEditor::Number joined(ChainEditor& edit, const GraphNode& like, const ChainEditor::Numbers& all);

}  // namespace netsim
