#include "sim/collectives/algorithms/torus_trees.h"

#include <utility>

namespace netsim {

TorusTrees::TorusTrees(Dimensions dimensions) : sizes_(std::move(dimensions)) {
  strides_.reserve(sizes_.size());
  for (const std::uint32_t size : sizes_) {
    strides_.push_back(positions_);
    positions_ *= size;
    both_ways_ = both_ways_ && size > 2;
  }
}

std::uint32_t TorusTrees::moved(std::uint32_t position, std::uint32_t dimension, std::uint32_t steps) const {
  const std::uint32_t at = coordinate(position, dimension);
  const std::uint32_t to = (at + steps) % sizes_[dimension];
  return position - at * strides_[dimension] + to * strides_[dimension];
}

std::uint32_t TorusTrees::along(std::uint32_t position, std::uint32_t link) const {
  const std::uint32_t dimension = link % dimensions();
  return moved(position, dimension, link < dimensions() ? sizes_[dimension] - 1 : 1);
}

std::uint32_t TorusTrees::link_up(std::uint32_t position, std::uint32_t tree) const {
  const std::uint32_t own = tree % dimensions(), first = tree - own;  // first link of the tree's direction
  if (coordinate(position, own) == 0) return tree;
  std::uint32_t dimension = (own + 1) % dimensions();
  while (coordinate(position, dimension) == 0) dimension = (dimension + 1) % dimensions();
  return first + dimension;
}

TreeNode TorusTrees::node(std::uint32_t position, std::uint32_t tree) const {
  TreeNode node;
  if (position != 0) node.parent = along(position, link_up(position, tree));
  const std::uint32_t first = tree - tree % dimensions();
  for (std::uint32_t link = first; link < first + dimensions(); ++link) {
    const std::uint32_t child = along(position, opposite(link));
    if (child != 0 && link_up(child, tree) == link) node.add_child(child);
  }
  return node;
}

std::uint32_t TorusTrees::depth(std::uint32_t position, std::uint32_t tree) const {
  std::uint32_t links = 0;
  for (; position != 0; position = along(position, link_up(position, tree))) ++links;
  return links;
}

std::uint32_t TorusTrees::relative(std::uint32_t rank, std::uint32_t root) const {
  std::uint32_t position = rank;
  for (std::uint32_t d = 0; d < dimensions(); ++d)
    position = moved(position, d, sizes_[d] - coordinate(root, d));
  return position;
}

std::uint32_t TorusTrees::absolute(std::uint32_t position, std::uint32_t root) const {
  std::uint32_t rank = position;
  for (std::uint32_t d = 0; d < dimensions(); ++d) rank = moved(rank, d, coordinate(root, d));
  return rank;
}

}  // namespace netsim
