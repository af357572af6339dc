// TreePlan: broadcast, reduce and all_reduce over trees of ranks. Each tree has an equal part of the buffer.
// Sums go up a tree to its root, and the result comes down from the root.
//
// In an all_reduce thread block 2t goes up tree t and 2t + 1 goes down. A reduce or a broadcast has one
// thread block a tree. The step that receives the last child's sum, or the parent's data, also sends it on.
//
// At the root of an all_reduce the thread block that goes up sends the sum directly to the first child. The
// other children get it from the thread block that goes down. Elsewhere the thread block that goes down waits
// for the one that goes up. This costs no time, because the data from above contains the data that the rank
// has sent up. It makes the order of the two provable at the rank.
#pragma once

#include <array>

#include "sim/collectives/algorithms/regular_plan.h"

namespace netsim {

// TreeNode: a rank's neighbours in a tree.
struct TreeNode {
  std::uint32_t parent = kNoIndex;           // kNoIndex: the rank is the root
  std::array<std::uint32_t, 32> children{};  // in the order in which they get the data that comes down
  std::uint32_t child_count = 0;

  void add_child(std::uint32_t child) { children[child_count++] = child; }
  bool is_root() const { return parent == kNoIndex; }
};

struct TreeOptions {
  std::uint32_t trees = 1;
  // Number of chunks of a tree's part of the buffer, which pass through the tree one after the other.
  std::uint32_t chunks = 1;
  // Whether the sums of children are received in the opposite order.
  bool last_child_first = true;
  // In an all_reduce, whether a chunk comes down as soon as its sum is at the root. Otherwise all sums of the
  // tree come first.
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
  // Returns whether, at the root of an all_reduce, the step that completes a sum also sends it down.
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
