// TreePlan: broadcast, reduce and all_reduce over trees of ranks. The buffer is an equal part for each tree;
// sums go up it to its root, and from the root the result comes down.
//
// Thread blocks: of an all_reduce, 2t goes up tree t and 2t + 1 down; a reduce or a broadcast has one a tree.
// The last child's sum, or what comes from the parent, is passed on in the step that takes it. At the root
// of an all_reduce the sum goes from the thread block that goes up straight down to the first child; other
// children get it from the one that goes down. Elsewhere the one that goes down waits for the rank's one that
// goes up: it costs nothing, because what comes down contains what the rank has sent up, but it makes the
// order of the two provable at the rank.
#pragma once

#include <array>

#include "sim/collectives/algorithms/regular_plan.h"

namespace netsim {

// A rank in a tree.
struct TreeNode {
  std::uint32_t parent = kNoIndex;           // kNoIndex: it is the root
  std::array<std::uint32_t, 32> children{};  // in the order in which they get what comes down
  std::uint32_t child_count = 0;

  void add_child(std::uint32_t child) { children[child_count++] = child; }
  bool is_root() const { return parent == kNoIndex; }
};

struct TreeOptions {
  std::uint32_t trees = 1;
  // Of a tree's part of the buffer, one after the other through the tree.
  std::uint32_t chunks = 1;
  // The sums of children are taken in the opposite order.
  bool last_child_first = true;
  // Of an all_reduce: a chunk comes down as soon as its sum is at the root, not when all of the tree's are.
  bool chained = true;
  bool serial_sends = false;  // Plan::serial_sends()
};

class TreePlan : public RegularPlan {
 public:
  TreePlan(const char* algorithm, CollectiveKind kind, std::uint32_t ranks, std::uint32_t root,
           const TreeOptions& options);

  std::uint32_t chunks() const override { return options_.trees * options_.chunks; }
  bool in_place() const override { return true; }
  bool serial_sends() const override { return options_.serial_sends; }
  std::uint32_t blocks(std::uint32_t) const override {
    return options_.trees * (kind_ == CollectiveKind::all_reduce ? 2 : 1);
  }
  std::uint32_t steps(std::uint32_t rank, std::uint32_t block) const override;
  Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const override;

 protected:
  virtual TreeNode node(std::uint32_t rank, std::uint32_t tree) const = 0;

 private:
  bool goes_down(std::uint32_t block) const;
  std::uint32_t tree_of(std::uint32_t block) const;
  std::uint32_t up(std::uint32_t tree) const;
  std::uint32_t down(std::uint32_t tree) const;
  // At the root of an all_reduce the step that completes a sum sends it down.
  bool turns() const { return kind_ == CollectiveKind::all_reduce && options_.chained; }
  static std::uint32_t steps_up(const TreeNode& node);
  std::uint32_t steps_down(const TreeNode& node) const;
  std::uint32_t child_taken(const TreeNode& node, std::uint32_t index) const;
  Step step_up(const TreeNode& node, std::uint32_t tree, std::uint32_t index) const;
  Step step_down(std::uint32_t rank, const TreeNode& at, std::uint32_t tree, std::uint32_t index) const;
  Step step_down_at_root(const TreeNode& node, std::uint32_t tree, std::uint32_t index) const;
  void wait_for_sum(Step& step, const TreeNode& node, std::uint32_t tree, std::uint32_t chunk) const;

  TreeOptions options_;
};

}  // namespace netsim
