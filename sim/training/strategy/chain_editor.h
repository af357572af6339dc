// ChainEditor: a chain that is made out of another one. Nodes name what they wait for by number instead of by
// distance, so that one node may become many without those behind it losing what they wait for.
//
//   ChainEditor edit(chain);
//   for (std::size_t i = 0; i < chain.size(); ++i) edit.stands(i, edit.add(chain[i], edit.waits_for(i)));
//   chain = edit.finish();
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/training/strategy/training_graph.h"

namespace netsim {

class ChainEditor {
 public:
  // Of a node of the new chain; kBefore: of what lies before the chain.
  using Number = std::int32_t;
  using Numbers = std::vector<Number>;
  static constexpr Number kBefore = -1;

  // `from` outlives this.
  explicit ChainEditor(const Chain& from) : from_(from) {}

  // What a node of the old chain waits for, all of which is done already.
  Numbers waits_for(std::size_t old) const;
  // Who waited for the old node waits for this one.
  void stands(std::size_t old, Number number);
  // Appends a node that waits for those (at least one).
  Number add(GraphNode node, const Numbers& after);
  Number last() const { return static_cast<Number>(chain_.size()) - 1; }
  Chain finish() { return std::move(chain_); }

 private:
  const Chain& from_;
  Numbers stands_;  // by old node
  Chain chain_;
};

// Messages along an axis, which wraps: to the rank `offset` further on, and from the one as far back.
struct RingMessages {
  std::string send, receive;  // names
  Stream stream = Stream::cp;
  PeerExpression to, from;
  bool core = false;
};
// Appends both and returns the receive.
ChainEditor::Number pass_on(ChainEditor& edit, const RingMessages& ring, Bytes bytes,
                            const ChainEditor::Numbers& after);

// The operators of the attention's core in nodes of their own, which are marked so (GraphNode::core).
Chain isolate_core(const Chain& chain);

}  // namespace netsim
