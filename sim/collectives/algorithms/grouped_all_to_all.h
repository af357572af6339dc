// GroupedAllToAllPlan: the common part of all-to-alls that divide the ranks into groups of one size. They
// send between groups what they collected within them (two_step.cpp, three_step.cpp).
#pragma once

#include <cstdint>
#include <memory>

#include "sim/collectives/algorithms/grouping.h"

namespace netsim {

class GroupedAllToAllPlan : public RegularPlan {
 public:
  GroupedAllToAllPlan(const char* algorithm, std::uint32_t ranks, std::uint32_t group)
      : RegularPlan(algorithm, CollectiveKind::all_to_all, ranks), group_(group) {}

  std::uint32_t chunks() const override { return ranks_; }
  bool in_place() const override { return false; }

 protected:
  std::uint32_t groups() const { return ranks_ / group_; }
  std::uint32_t group_of_rank(std::uint32_t rank) const { return rank / group_; }
  std::uint32_t inside(std::uint32_t rank) const { return rank % group_; }
  std::uint32_t rank_of(std::uint32_t group, std::uint32_t inside) const { return group * group_ + inside; }
  // Return the member of the rank's group at a distance after or before it. Distance 0 is the rank itself.
  std::uint32_t inside_behind(std::uint32_t rank, std::uint32_t distance) const {
    return (inside(rank) + distance) % group_;
  }
  std::uint32_t inside_before(std::uint32_t rank, std::uint32_t distance) const {
    return (inside(rank) + group_ - distance) % group_;
  }

  // Sends to the member at that distance after the rank.
  Step give(std::uint32_t rank, std::uint32_t distance, ChunkAt source, std::uint32_t to_block) const {
    Step step;
    step.kind = Step::Kind::send;
    step.source = source;
    step.to = {rank_of(group_of_rank(rank), inside_behind(rank, distance)), to_block};
    return step;
  }
  // Receives from the member at that distance before the rank. At distance 0 it copies the rank's own chunk,
  // `own`.
  Step take(std::uint32_t rank, std::uint32_t distance, ChunkAt own, ChunkAt destination,
            std::uint32_t from_block) const {
    Step step;
    step.destination = destination;
    if (distance == 0) {
      step.kind = Step::Kind::copy;
      step.source = own;
    } else {
      step.kind = Step::Kind::receive;
      step.from = {rank_of(group_of_rank(rank), inside_before(rank, distance)), from_block};
    }
    return step;
  }

  std::uint32_t group_;
};

// GroupedAllToAll: the algorithm whose plans are of type P and whose name is P::kName.
template <class P>
class GroupedAllToAll final : public CollectiveAlgorithm {
 public:
  explicit GroupedAllToAll(const GroupParameters& p) : parameters_(p) {}
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_to_all; }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    check_all_to_all(P::kName, kind, shape.ranks);
    return std::make_unique<P>(shape.ranks, group_of(parameters_, P::kName, kind, shape.ranks));
  }

 private:
  GroupParameters parameters_;
};

}  // namespace netsim
