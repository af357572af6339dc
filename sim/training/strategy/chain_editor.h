// ChainEditor: makes a new chain out of another one. Nodes name what they wait for by number instead of by
// distance. So one node may become many, and the nodes behind it still wait for the right ones.
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
  // Number of a node of the new chain. kBefore stands for what precedes the chain.
  using Number = std::int32_t;
  using Numbers = std::vector<Number>;
  static constexpr Number kBefore = -1;

  // `from` must outlive this.
  explicit ChainEditor(const Chain& from) : from_(from) {}

  // Returns the nodes of the new chain that a node of the old chain waits for. All of these must have been
  // added already.
  Numbers waits_for(std::size_t old) const;
  // Makes all nodes that wait for the old node wait for `number`, or for all `numbers`.
  void stands(std::size_t old, Number number) { stands(old, Numbers{number}); }
  void stands(std::size_t old, Numbers numbers);
  // Appends a node that waits for the nodes of `after`, at least one. Returns its number.
  Number add(GraphNode node, const Numbers& after);
  Number last() const { return static_cast<Number>(chain_.size()) - 1; }
  Chain finish() { return std::move(chain_); }

 private:
  const Chain& from_;
  std::vector<Numbers> stands_;  // by old node: the numbers that stand for it
  Chain chain_;
};

// RingMessages: messages along an axis, which wraps. A rank sends to the rank at an offset and receives from
// the one at the opposite offset.
struct RingMessages {
  std::string send, receive;  // names of the operations
  Stream stream = Stream::cp;
  PeerExpression to, from;
  bool core = false;
};
// Appends the send and the receive of `bytes`. Returns the receive.
ChainEditor::Number pass_on(ChainEditor& edit, const RingMessages& ring, Bytes bytes,
                            const ChainEditor::Numbers& after);

// Returns the chain with the operators of the attention's core in nodes of their own, which have
// GraphNode::core set.
Chain isolate_core(const Chain& chain);

}  // namespace netsim
