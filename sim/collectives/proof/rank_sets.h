// RankSets: sets of ranks in 8 bytes each, for the proof. Exact.
//
// What a chunk holds in a ring or a tree is a cyclic range of ranks (first, first+1, ... mod p), so a Set is
// one such range. Any other set is a binary tree over the ranks, whose subtrees without ranks and with all of
// theirs are not written down, and of which equal ones are kept once (as in binary decision diagrams, Bryant,
// IEEE Transactions on Computers, 1986): a set that differs from another one in a few ranks costs some dozen
// bytes for each of them and each level of the tree, however many ranges it has. Both forms are canonical:
// equal sets are equal values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace netsim {

class RankSets {
 public:
  struct Set {
    std::uint32_t first = 0;
    std::uint32_t count = 0;  // 0: empty; kMany: `first` numbers a tree
    bool operator==(const Set&) const = default;
    bool empty() const { return count == 0; }
  };

  static constexpr std::uint32_t kMany = UINT32_MAX;
  explicit RankSets(std::uint32_t ranks);  // ranks < 2^31
  Set single(std::uint32_t rank) const { return {rank, 1}; }
  Set all() const { return {0, ranks_}; }
  // a + b, or nothing if they have a rank in common.
  std::optional<Set> join(Set a, Set b);
  // "{0-3, 5}"
  std::string text(Set set) const;

 private:
  using Range = std::pair<std::uint32_t, std::uint32_t>;  // first, end; not cyclic
  using Ranges = std::vector<Range>;                      // sorted, disjoint, not adjacent
  // Trees, by number: one without ranks, one with all, and those that have both.
  static constexpr std::uint32_t kNone = 0, kWhole = 1;
  struct Tree {
    std::uint32_t low = kNone, high = kNone;
    std::uint32_t ranges = 0;
    bool begins = false, ends = false;  // with a rank
  };

  std::uint32_t distance(std::uint32_t from, std::uint32_t to) const {
    return to >= from ? to - from : to + (ranks_ - from);
  }
  Set cyclic(std::uint32_t first, std::uint32_t count) const {
    return count == ranks_ ? all() : Set{first, count};
  }
  std::uint32_t tree(std::uint32_t low, std::uint32_t high);
  std::uint32_t tree_of(Set set);
  std::uint32_t tree_of(Range range, std::uint32_t begin, std::uint32_t span);
  std::optional<std::uint32_t> join(std::uint32_t a, std::uint32_t b);
  void append(Ranges& ranges, std::uint32_t tree, std::uint32_t begin, std::uint32_t span) const;
  Ranges ranges_of(Set set) const;
  Set set_of(std::uint32_t tree) const;

  std::uint32_t ranks_;
  std::uint32_t span_ = 1;  // of the root: a power of two
  std::vector<Tree> trees_;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;  // by both subtrees; never iterated
};

}  // namespace netsim
