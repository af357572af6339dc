#include "sim/collectives/algorithms/tree_plan.h"

#include <algorithm>

namespace netsim {

TreePlan::TreePlan(const char* algorithm, CollectiveKind kind, std::uint32_t ranks, std::uint32_t root,
                   const TreeOptions& options)
    : RegularPlan(algorithm, kind, ranks, root), options_(options) {}

bool TreePlan::goes_down(std::uint32_t block) const {
  return kind_ == CollectiveKind::all_reduce ? block % 2 == 1 : kind_ == CollectiveKind::broadcast;
}
std::uint32_t TreePlan::tree_of(std::uint32_t block) const {
  return kind_ == CollectiveKind::all_reduce ? block / 2 : block;
}
std::uint32_t TreePlan::up(std::uint32_t tree) const {
  return kind_ == CollectiveKind::all_reduce ? 2 * tree : tree;
}
std::uint32_t TreePlan::down(std::uint32_t tree) const {
  return kind_ == CollectiveKind::all_reduce ? 2 * tree + 1 : tree;
}

// Return the number of steps for one chunk.
std::uint32_t TreePlan::steps_up(const TreeNode& node) { return std::max(1U, node.child_count); }
std::uint32_t TreePlan::steps_down(const TreeNode& node) const {
  if (!node.is_root()) return std::max(1U, node.child_count);
  return node.child_count - (turns() ? 1 : 0);
}

std::uint32_t TreePlan::steps(std::uint32_t rank, std::uint32_t block) const {
  const TreeNode at = node(rank, tree_of(block));
  return options_.chunks * (goes_down(block) ? steps_down(at) : steps_up(at));
}

Step TreePlan::step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const {
  const std::uint32_t tree = tree_of(block);
  const TreeNode at = node(rank, tree);
  if (!goes_down(block)) return step_up(at, tree, index);
  return at.is_root() ? step_down_at_root(at, tree, index) : step_down(rank, at, tree, index);
}

std::uint32_t TreePlan::child_taken(const TreeNode& node, std::uint32_t index) const {
  return node.children[options_.last_child_first ? node.child_count - 1 - index : index];
}

// Adds each child's sum. The last step sends the result on: up, or at the root down.
Step TreePlan::step_up(const TreeNode& node, std::uint32_t tree, std::uint32_t index) const {
  using Kind = Step::Kind;
  const std::uint32_t part = index % steps_up(node);
  Step step;
  step.source = step.destination = {whole(), tree * options_.chunks + index / steps_up(node)};
  if (node.child_count != 0) step.from = {child_taken(node, part), up(tree)};
  if (part + 1 < node.child_count || (node.is_root() && !turns())) {
    step.kind = Kind::receive_reduce_copy;
  } else if (node.is_root()) {
    step.kind = Kind::receive_reduce_copy_send;
    step.to = {node.children[0], down(tree)};
  } else {
    step.kind = node.child_count == 0 ? Kind::send : Kind::receive_reduce_send;
    step.to = {node.parent, up(tree)};
  }
  return step;
}

// Receives from the parent, and sends to one child after the other.
Step TreePlan::step_down(std::uint32_t rank, const TreeNode& at, std::uint32_t tree,
                         std::uint32_t index) const {
  using Kind = Step::Kind;
  const std::uint32_t chunk = index / steps_down(at), part = index % steps_down(at);
  Step step;
  step.source = step.destination = {whole(), tree * options_.chunks + chunk};
  if (part == 0) {
    const TreeNode parent = node(at.parent, tree);
    const bool allreduce = turns() && parent.is_root() && parent.children[0] == rank;
    step.kind = at.child_count == 0 ? Kind::receive : Kind::receive_copy_send;
    step.from = {at.parent, allreduce ? up(tree) : down(tree)};
    wait_for_sum(step, at, tree, chunk);
  } else {
    step.kind = Kind::send;
  }
  if (part < at.child_count) step.to = {at.children[part], down(tree)};
  return step;
}

Step TreePlan::step_down_at_root(const TreeNode& node, std::uint32_t tree, std::uint32_t index) const {
  const std::uint32_t chunk = index / steps_down(node), part = index % steps_down(node);
  Step step;
  step.kind = Step::Kind::send;
  step.source = step.destination = {whole(), tree * options_.chunks + chunk};
  step.to = {node.children[part + (turns() ? 1 : 0)], down(tree)};
  wait_for_sum(step, node, tree, options_.chained ? chunk : options_.chunks - 1);
  return step;
}

void TreePlan::wait_for_sum(Step& step, const TreeNode& node, std::uint32_t tree, std::uint32_t chunk) const {
  if (kind_ != CollectiveKind::all_reduce) return;
  step.after_block = up(tree);
  step.after_step = (chunk + 1) * steps_up(node) - 1;
}

}  // namespace netsim
