// TorusTrees: spanning trees of a torus that share no directed link. So each can carry its own part of a
// buffer at the rate of a link. Sums go up each tree to its root.
//
// Positions are coordinates relative to the root, which is at 0. A tree has a dimension j and a direction;
// its sums move against the direction. At a position with coordinate j = 0 they move along j. Elsewhere they
// move along the next dimension after j, cyclically, whose coordinate is not 0, and along j last.
//
// At every position the trees of one direction move along different dimensions: each dimension with
// coordinate 0 serves its own tree, the others take turns. So every link carries at most one tree. A path
// leaves coordinate j = 0 in its first move, clears the other dimensions and ends along j, so each is a tree.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/algorithms/dimensions.h"
#include "sim/collectives/algorithms/tree_plan.h"

namespace netsim {

class TorusTrees {
 public:
  // All dimensions have at least two ranks. A dimension of two ranks has one link, so with one of them all
  // trees have one direction.
  explicit TorusTrees(Dimensions dimensions);

  std::uint32_t positions() const { return positions_; }
  // Returns the number of trees: two for each dimension, or one where a dimension has two ranks.
  std::uint32_t count() const { return both_ways_ ? 2 * dimensions() : dimensions(); }
  // Returns the number of links from a position to its neighbours that trees use for sums. Link l leads along
  // dimension l mod d, backward for l < d and forward for others.
  std::uint32_t links() const { return count(); }
  // Returns the position at the far end of a link, which may be one that trees do not use.
  std::uint32_t along(std::uint32_t position, std::uint32_t link) const;
  // Returns the link in the opposite direction, which trees may not use.
  std::uint32_t opposite(std::uint32_t link) const { return (link + dimensions()) % (2 * dimensions()); }
  // Returns the link on which a position other than the root sends the sums of a tree.
  std::uint32_t link_up(std::uint32_t position, std::uint32_t tree) const;
  // Returns the neighbours of a position in a tree, as positions.
  TreeNode node(std::uint32_t position, std::uint32_t tree) const;
  // Returns the number of links from a position to the root.
  std::uint32_t depth(std::uint32_t position, std::uint32_t tree) const;

  // Return the position of a rank relative to a root, and the inverse; ranks are numbered with the first
  // dimension fastest.
  std::uint32_t relative(std::uint32_t rank, std::uint32_t root) const;
  std::uint32_t absolute(std::uint32_t position, std::uint32_t root) const;

 private:
  std::uint32_t dimensions() const { return static_cast<std::uint32_t>(sizes_.size()); }
  std::uint32_t coordinate(std::uint32_t position, std::uint32_t dimension) const {
    return position / strides_[dimension] % sizes_[dimension];
  }
  // Returns the position `steps` further on in a dimension, cyclically.
  std::uint32_t moved(std::uint32_t position, std::uint32_t dimension, std::uint32_t steps) const;

  Dimensions sizes_;
  std::vector<std::uint32_t> strides_;  // by dimension: difference of positions one step apart
  std::uint32_t positions_ = 1;
  bool both_ways_ = true;
};

}  // namespace netsim
