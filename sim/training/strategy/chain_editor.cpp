#include "sim/training/strategy/chain_editor.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "sim/core/errors.h"

namespace netsim {

ChainEditor::Numbers ChainEditor::waits_for(std::size_t old) const {
  Numbers numbers;
  const auto wait = [&](std::size_t back) {
    if (back > old) {
      numbers.push_back(kBefore);
    } else {
      numbers.insert(numbers.end(), stands_[old - back].begin(), stands_[old - back].end());
    }
  };
  for (const std::uint32_t back : from_[old].after) wait(back);
  if (numbers.empty()) wait(1);
  return numbers;
}

void ChainEditor::stands(std::size_t old, Numbers numbers) {
  NETSIM_CHECK(old == stands_.size(), "nodes of a chain are replaced in order");
  stands_.push_back(std::move(numbers));
}

ChainEditor::Number ChainEditor::add(GraphNode node, const Numbers& after) {
  const Number number = last() + 1;
  Numbers sorted = after;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  node.after.clear();
  if (sorted != Numbers{number - 1}) {
    for (const Number other : sorted) node.after.push_back(static_cast<std::uint32_t>(number - other));
  }
  chain_.push_back(std::move(node));
  return number;
}

ChainEditor::Number pass_on(ChainEditor& edit, const RingMessages& ring, Bytes bytes,
                            const ChainEditor::Numbers& after) {
  GraphNode node;
  node.stream = ring.stream;
  node.bytes = bytes;
  node.core = ring.core;
  node.kind = GraphNode::Kind::send;
  node.name = ring.send;
  node.peer = ring.to;
  edit.add(node, after);
  node.kind = GraphNode::Kind::receive;
  node.name = ring.receive;
  node.peer = ring.from;
  return edit.add(std::move(node), after);
}

namespace {

bool of_core(const Operator& op) { return op.core.has_value(); }

// Returns a node with some of the operators of another.
GraphNode part_of(const GraphNode& node, std::vector<Operator> operators) {
  GraphNode part = node;
  part.core = of_core(operators.front());
  part.name = node.name + "." + operators.front().name;
  part.work.name = part.name;
  part.operators = std::move(operators);
  return part;
}

}  // namespace

Chain isolate_core(const Chain& chain) {
  ChainEditor edit(chain);
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const GraphNode& node = chain[i];
    ChainEditor::Numbers after = edit.waits_for(i);
    if (node.core || std::none_of(node.operators.begin(), node.operators.end(), of_core)) {
      edit.stands(i, edit.add(node, after));
      continue;
    }
    for (auto begin = node.operators.begin(); begin != node.operators.end();) {
      const bool core = of_core(*begin);
      const auto end = std::find_if(begin, node.operators.end(),
                                    [core](const Operator& op) { return of_core(op) != core; });
      after = {edit.add(part_of(node, {begin, end}), after)};
      begin = end;
    }
    edit.stands(i, after.front());
  }
  return edit.finish();
}

}  // namespace netsim
