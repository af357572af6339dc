// RankSets: sets of ranks in 8 bytes each, for the proof. Exact.
//
// What a chunk holds in a ring or a tree is a cyclic range of ranks (first, first+1, ... mod p), and in a
// ring of hops of another length a progression (first, first+h, ... mod p, where h and p have no common
// divisor; of such h there are fifteen at most); so a Set is one of these. Any other set is a binary tree
// over the ranks, whose subtrees without ranks and with all of theirs are not written down, and of which
// equal ones are kept once (as in binary decision diagrams, Bryant, IEEE Transactions on Computers, 1986): a
// set that differs from another one in a few ranks costs some dozen bytes for each of them and each level of
// the tree, however many ranges it has. A range is never written in another way, so that equal ranges are
// equal values; of other sets equal() tells.
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
  static constexpr std::uint32_t kCountBits = 28;
  static constexpr std::uint32_t kMany = (std::uint32_t{1} << kCountBits) - 1;
  static constexpr std::uint32_t kMostHops = std::uint32_t{1} << (32 - kCountBits);  // and that of 1
  struct Set {
    std::uint32_t first = 0;   // of a tree: its number
    std::uint32_t length = 0;  // count(), and hop() in the upper bits
    static constexpr Set of(std::uint32_t first, std::uint32_t count, std::uint32_t hop) {
      return {first, count | hop << kCountBits};
    }
    // 0: it is empty; kMany: it is a tree.
    constexpr std::uint32_t count() const { return length & kMany; }
    // The number of the hop; 0: of 1, as that of ranges and trees.
    constexpr std::uint32_t hop() const { return length >> kCountBits; }
    bool operator==(const Set&) const = default;
    bool empty() const { return length == 0; }
  };

  explicit RankSets(std::uint32_t ranks);  // ranks < kMany
  Set single(std::uint32_t rank) const { return {rank, 1}; }
  Set all() const { return {0, ranks_}; }
  // a + b, or nothing if they have a rank in common.
  std::optional<Set> join(Set a, Set b);
  bool equal(Set a, Set b) { return a == b || tree_of(a) == tree_of(b); }
  // "{0-3, 5}"
  std::string text(Set set) const;

 private:
  using Range = std::pair<std::uint32_t, std::uint32_t>;  // first, end; not cyclic
  using Ranges = std::vector<Range>;                      // sorted, disjoint, not adjacent
  // From a rank to the next one of a progression, 2 to p / 2; and h^-1 modulo p.
  struct Hop {
    std::uint32_t ranks, inverse;
  };
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
  std::uint32_t after(std::uint32_t rank, std::uint64_t ranks) const {
    return static_cast<std::uint32_t>((rank + ranks) % ranks_);
  }
  // Hops from one rank to another one.
  std::uint32_t hops(std::uint32_t from, std::uint32_t to, std::uint32_t hop) const {
    const std::uint32_t ranks = distance(from, to);
    return hop == 0 ? ranks : after(0, std::uint64_t{ranks} * hops_[hop].inverse);
  }
  Set cyclic(std::uint32_t first, std::uint32_t count, std::uint32_t hop = 0) const;
  std::optional<Set> pair(std::uint32_t a, std::uint32_t b);
  std::uint32_t tree(std::uint32_t low, std::uint32_t high);
  std::uint32_t tree_of(Set set);
  std::uint32_t tree_of(Range range, std::uint32_t begin, std::uint32_t span);
  std::optional<std::uint32_t> join(std::uint32_t a, std::uint32_t b);
  void append(Ranges& ranges, std::uint32_t tree, std::uint32_t begin, std::uint32_t span) const;
  Ranges ranges_of(Set set) const;
  Set set_of(std::uint32_t tree) const;

  std::uint32_t ranks_;
  std::uint32_t span_ = 1;                                        // of the root: a power of two
  std::vector<Hop> hops_;                                         // by number
  std::unordered_map<std::uint32_t, std::uint32_t> hop_numbers_;  // by ranks; never iterated
  std::vector<Tree> trees_;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;  // by both subtrees; never iterated
};

}  // namespace netsim
