// Binomial tree (Thakur, Rabenseifner, Gropp, Int. J. of High Performance Computing Applications 19, 2005).
// Section 4 has the tree. Place i, counted from the root, has the parent i without its lowest bit. Its
// children are i + 1, i + 2, i + 4, ... below that bit.
//
// It takes ceil(log2 p) steps. A step moves n bytes in a broadcast and a reduce, and a subtree's bytes in a
// gather and a scatter. An all-reduce is a reduce and a broadcast. Sends are MPI's blocking ones: a rank
// sends to one child after the other.
//
// In a gather and a scatter, the subtree of place i is the places from i to i + its lowest bit. So its ranks
// are consecutive, except where they wrap around from p-1 to 0. A rank collects them in its scratch, at the
// numbers that they would have if numbers continued after p-1. At the root, subtrees that do not wrap around
// go directly to its buffer.
#include <algorithm>
#include <bit>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/tree_plan.h"
#include "sim/collectives/library/nccl/nccl_traits.h"
#include "sim/core/registry.h"

namespace netsim {
namespace {

// Returns the lowest bit of a place. The bits below it are those of the places in the subtree.
std::uint32_t lowest_bit(std::uint32_t place, std::uint32_t ranks) {
  return place == 0 ? std::bit_ceil(ranks) : place & (~place + 1);
}
// Returns the number of children of a place.
std::uint32_t child_count(std::uint32_t place, std::uint32_t ranks) {
  std::uint32_t count = 0;
  for (std::uint32_t bit = lowest_bit(place, ranks) / 2; bit != 0; bit /= 2) {
    if (place + bit < ranks) ++count;
  }
  return count;
}
// Returns child `index`, the one with the largest subtree first. The last child is place + 1, the one before
// it place + 2, and so on.
std::uint32_t child_at(std::uint32_t place, std::uint32_t ranks, std::uint32_t index) {
  return place + (1U << (child_count(place, ranks) - 1 - index));
}

class BinomialTreePlan final : public TreePlan {
 public:
  BinomialTreePlan(CollectiveKind kind, std::uint32_t ranks, std::uint32_t root)
      : TreePlan("binomial_tree", kind, ranks, root, {.serial_sends = true}) {}

 private:
  TreeNode node(std::uint32_t rank, std::uint32_t) const override {
    const std::uint32_t place = from_root(rank);
    TreeNode node;
    if (place != 0) node.parent = from_rank_0(place & (place - 1));
    const std::uint32_t children = child_count(place, ranks_);
    for (std::uint32_t i = 0; i < children; ++i) node.add_child(from_rank_0(child_at(place, ranks_, i)));
    return node;
  }
};

// BinomialPartsPlan: the plan of a gather or a scatter.
class BinomialPartsPlan final : public RegularPlan {
 public:
  BinomialPartsPlan(CollectiveKind kind, std::uint32_t ranks, std::uint32_t root)
      : RegularPlan("binomial_tree", kind, ranks, root) {}

  std::uint32_t chunks() const override { return ranks_; }
  std::uint32_t scratch_chunks(std::uint32_t rank) const override {
    const std::uint32_t size = subtree(from_root(rank));
    const bool none = size == 1 || (size == ranks_ && root_ == 0);
    return none ? 0 : rank + size;
  }
  // The largest message is that of the root's first or second child.
  std::uint32_t largest_count() const override {
    const std::uint32_t half = std::bit_ceil(ranks_) / 2;
    return std::max({1U, half / 2, ranks_ - half});
  }
  bool in_place() const override { return false; }
  bool serial_sends() const override { return true; }
  std::uint32_t blocks(std::uint32_t) const override { return 1; }
  std::uint32_t steps(std::uint32_t rank, std::uint32_t) const override {
    const std::uint32_t place = from_root(rank);
    if (place == 0) return child_count(0, ranks_) + 1 + (crossing_child() == kNoIndex ? 0 : 2);
    return subtree(place) == 1 ? 1 : child_count(place, ranks_) + 2;
  }
  // A scatter is a gather backwards.
  Step step(std::uint32_t rank, std::uint32_t block, std::uint32_t index) const override {
    const bool gathers = kind_ == CollectiveKind::gather;
    if (!gathers) index = steps(rank, block) - 1 - index;
    const std::uint32_t place = from_root(rank);
    const Transfer transfer = place == 0 ? at_root(index) : elsewhere(rank, place, index);
    return gathers ? gathered(transfer) : scattered(transfer);
  }

 private:
  // Transfer: `count` chunks that a gather receives from a rank, sends to a rank, or copies.
  struct Transfer {
    ChunkAt near, far;  // chunks at this rank; for a copy, where they were (Buffer::input is the user's)
    std::uint32_t count = 1;
    std::uint32_t from = kNoIndex, to = kNoIndex;
  };

  std::uint32_t subtree(std::uint32_t place) const {
    return std::min(lowest_bit(place, ranks_), ranks_ - place);
  }
  // Returns whether the ranks of a subtree wrap around from the last rank to the first.
  bool crosses_end(std::uint32_t place) const {
    const std::uint32_t first = from_rank_0(place);
    return first + subtree(place) > ranks_;
  }
  // Returns the number of the root's child whose subtree wraps around, in the order in which a gather
  // receives them. There is at most one.
  std::uint32_t crossing_child() const {
    const std::uint32_t children = child_count(0, ranks_);
    for (std::uint32_t i = 0; i < children; ++i) {
      if (crosses_end(1U << i)) return i;
    }
    return kNoIndex;
  }

  // at_root() and elsewhere() return step `index` of a rank: first it receives, then every rank but the root
  // sends.
  Transfer at_root(std::uint32_t index) const {
    const std::uint32_t children = child_count(0, ranks_);
    if (index == 0) return {{Buffer::output, root_}, {Buffer::input, 0}, 1, kNoIndex, kNoIndex};
    if (index > children) return out_of_scratch(index - children - 1);
    const std::uint32_t child = 1U << (index - 1), first = from_rank_0(child);
    const Buffer buffer = crosses_end(child) ? Buffer::scratch : Buffer::output;
    return {{buffer, first}, {}, subtree(child), first, kNoIndex};
  }
  // Copies a part of the subtree that wraps around: the ranks before the wrap, or those after it.
  Transfer out_of_scratch(std::uint32_t part) const {
    const std::uint32_t child = 1U << crossing_child(), first = from_rank_0(child);
    if (part == 0)
      return {{Buffer::output, first}, {Buffer::scratch, first}, ranks_ - first, kNoIndex, kNoIndex};
    const std::uint32_t behind = first + subtree(child) - ranks_;
    return {{Buffer::output, 0}, {Buffer::scratch, ranks_}, behind, kNoIndex, kNoIndex};
  }
  Transfer elsewhere(std::uint32_t rank, std::uint32_t place, std::uint32_t index) const {
    const std::uint32_t parent = from_rank_0(place & (place - 1)), size = subtree(place);
    if (size == 1) return {{Buffer::input, 0}, {}, 1, kNoIndex, parent};
    if (index == 0) return {{Buffer::scratch, rank}, {Buffer::input, 0}, 1, kNoIndex, kNoIndex};
    if (index == child_count(place, ranks_) + 1) return {{Buffer::scratch, rank}, {}, size, kNoIndex, parent};
    const std::uint32_t below = 1U << (index - 1);
    return {
        {Buffer::scratch, rank + below}, {}, subtree(place + below), from_rank_0(place + below), kNoIndex};
  }

  static Step gathered(const Transfer& transfer) {
    Step step;
    step.count = transfer.count;
    if (transfer.to != kNoIndex) {
      step.kind = Step::Kind::send;
      step.source = transfer.near;
      step.to = {transfer.to, 0};
    } else if (transfer.from != kNoIndex) {
      step.kind = Step::Kind::receive;
      step.destination = transfer.near;
      step.from = {transfer.from, 0};
    } else {
      step.kind = Step::Kind::copy;
      step.source = transfer.far;
      step.destination = transfer.near;
    }
    return step;
  }
  // In a scatter the root's output is its input, and a rank's own input is its output.
  static ChunkAt other_way(ChunkAt at) {
    if (at.buffer == Buffer::scratch) return at;
    return {at.buffer == Buffer::input ? Buffer::output : Buffer::input, at.chunk};
  }
  static Step scattered(const Transfer& transfer) {
    Step step;
    step.count = transfer.count;
    if (transfer.to != kNoIndex) {
      step.kind = Step::Kind::receive;
      step.destination = other_way(transfer.near);
      step.from = {transfer.to, 0};
    } else if (transfer.from != kNoIndex) {
      step.kind = Step::Kind::send;
      step.source = other_way(transfer.near);
      step.to = {transfer.from, 0};
    } else {
      step.kind = Step::Kind::copy;
      step.source = other_way(transfer.near);
      step.destination = other_way(transfer.far);
    }
    return step;
  }
};

class BinomialTree final : public CollectiveAlgorithm, public WithNcclTraits {
 public:
  PlanTraits traits() const override { return {.order = RankOrder::domains}; }
  bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce ||
           kind == CollectiveKind::all_reduce || kind == CollectiveKind::gather ||
           kind == CollectiveKind::scatter;
  }
  NcclTraits nccl_traits() const override { return {.family = CostFamily::tree}; }
  std::unique_ptr<Plan> plan(CollectiveKind kind, const GroupShape& shape) const override {
    if (kind == CollectiveKind::gather || kind == CollectiveKind::scatter) {
      check_chunks("binomial_tree", kind, shape.ranks, std::uint64_t{shape.ranks} * 2);
      return std::make_unique<BinomialPartsPlan>(kind, shape.ranks, shape.root);
    }
    return std::make_unique<BinomialTreePlan>(kind, shape.ranks, has_root(kind) ? shape.root : 0);
  }
};

const Registration<CollectiveAlgorithm> kBinomialTree{
    "binomial_tree",
    "runs broadcast, reduce, all-reduce, gather and scatter over a binomial tree in log2(p) steps, for small "
    "buffers",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<BinomialTree>(); }};

}  // namespace
}  // namespace netsim
