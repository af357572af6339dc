#include "sim/training/strategy/weight_gradients.h"

#include <vector>

#include "sim/training/strategy/chain_editor.h"

namespace netsim {

std::string weights_name(const std::string& name) {
  constexpr std::string_view kBackward = "_backward";
  const std::size_t at = name.find(kBackward);
  return (at == std::string::npos ? name : name.substr(0, at)) + "_weights";
}

std::pair<GraphNode, GraphNode> split_gradients(const GraphNode& node) {
  GraphNode input = node, weights = node;
  input.work.name += "_input";
  weights.work.name = weights.name = weights_name(node.name);
  std::erase_if(input.operators, [](const Operator& op) { return op.weight_gradient; });
  std::erase_if(weights.operators, [](const Operator& op) { return !op.weight_gradient; });
  return {std::move(input), std::move(weights)};
}

Chain put_off_weights(const Chain& backward) {
  ChainEditor edit(backward);
  std::vector<std::pair<GraphNode, ChainEditor::Number>> put_off;
  const auto append_weights = [&] {
    for (auto& [node, after] : put_off) edit.add(std::move(node), {after});
    put_off.clear();
  };
  for (std::size_t i = 0; i < backward.size(); ++i) {
    const ChainEditor::Numbers after = edit.waits_for(i);
    auto [input, weights] = split_gradients(backward[i]);
    const bool both = !input.operators.empty() && !weights.operators.empty();
    if (!both) input = backward[i];
    edit.stands(i, edit.add(std::move(input), after));
    if (both) put_off.emplace_back(std::move(weights), edit.last());
    if (communicates(backward[i])) append_weights();
  }
  append_weights();
  return edit.finish();
}

}  // namespace netsim
