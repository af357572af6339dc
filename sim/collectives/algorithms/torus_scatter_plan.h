// TorusScatterPlan: a reduce_scatter in which every rank of a torus is the root of its own part, as in
// Camdoop's all-to-all case. Each part is cut into one piece for each of the root's trees (TorusTrees).
//
// A rank has a position relative to each root. For each position it sends one piece over each of its links.
// All ranks send the pieces of the same position at the same time, so a link is always busy, as in a ring.
//
// The constructor finds the order. In each slot of time each link takes one of the pieces whose sums are
// complete. It is the one with the longest path to its root. A thread block for each link sends in this
// order. Another for each link receives in the order of the neighbour that sends there, and adds. One of them
// waits for the other where both add to the same piece.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/algorithms/regular_plan.h"
#include "sim/collectives/algorithms/torus_trees.h"

namespace netsim {

class TorusScatterPlan final : public RegularPlan {
 public:
  TorusScatterPlan(const char* algorithm, CollectiveKind kind, TorusTrees trees);

  std::uint32_t chunks() const override { return ranks_ * trees_.count(); }
  bool in_place() const override { return true; }
  std::uint32_t blocks(std::uint32_t) const override { return 2 * trees_.links(); }
  std::uint32_t steps(std::uint32_t, std::uint32_t) const override { return ranks_ - 1; }
  Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const override;

 private:
  // Piece: the piece of a tree that a rank at `position` relative to the root sends.
  struct Piece {
    std::uint32_t position = 0, tree = 0;
    // The receive step after which the piece is complete (sending), or for which the addition waits
    // (receiving). kNoIndex: none.
    std::uint32_t after_link = kNoIndex, after_step = 0;
  };
  // Place: the slot of time in which a piece is sent, its link, and its index in the order of the link.
  struct Place {
    std::uint32_t slot = kNoIndex, link = 0, index = 0;
  };

  std::size_t number(std::uint32_t position, std::uint32_t tree) const {
    return std::size_t{position} * trees_.count() + tree;
  }
  std::vector<std::uint32_t> depths() const;
  void order_pieces();
  void chain_additions();
  std::uint32_t receiving(std::uint32_t link) const { return trees_.links() + link; }
  ChunkAt chunk(std::uint32_t root, std::uint32_t tree) const {
    return {whole(), root * trees_.count() + tree};
  }

  TorusTrees trees_;
  std::vector<Place> places_;                 // by number()
  std::vector<std::vector<Piece>> sent_;      // by link, in order
  std::vector<std::vector<Piece>> received_;  // by link of the sender, in order
};

}  // namespace netsim
