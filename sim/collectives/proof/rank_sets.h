// RankSets: exact sets of ranks in 8 bytes each, for the proof.
//
// A chunk in a ring or a tree holds a cyclic range of ranks (first, first+1, ... mod p). In a ring of hops of
// another length it holds a progression (first, first+h, ... mod p). There h and p have no common divisor; at
// most fifteen such h are used. A Set stores these directly.
//
// Any other set is a binary tree over the ranks. Subtrees without ranks and subtrees with all of their ranks
// are not stored. Equal subtrees are stored once (as in binary decision diagrams, Bryant, IEEE Transactions
// on Computers, 1986).
//
// So a set that differs from another one in a few ranks costs little memory. It takes some dozen bytes for
// each such rank and level of the tree. The number of its ranges does not matter. A range has only one
// representation, so equal ranges are equal values. For other sets equal() decides.
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
  // Largest number of hop lengths, the hop of 1 included.
  static constexpr std::uint32_t kMostHops = std::uint32_t{1} << (32 - kCountBits);
  struct Set {
    std::uint32_t first = 0;   // first rank; for a tree its number
    std::uint32_t length = 0;  // count(), with hop() in the upper bits
    static constexpr Set of(std::uint32_t first, std::uint32_t count, std::uint32_t hop) {
      return {first, count | hop << kCountBits};
    }
    // Returns the number of ranks. 0: the set is empty; kMany: it is a tree.
    constexpr std::uint32_t count() const { return length & kMany; }
    // Returns the number of the hop. 0: a hop of 1, as for ranges and trees.
    constexpr std::uint32_t hop() const { return length >> kCountBits; }
    bool operator==(const Set&) const = default;
    bool empty() const { return length == 0; }
  };

  explicit RankSets(std::uint32_t ranks);  // ranks < kMany
  Set single(std::uint32_t rank) const { return {rank, 1}; }
  Set all() const { return {0, ranks_}; }
  // Returns a + b, or nullopt if they have a rank in common.
  std::optional<Set> join(Set a, Set b);
  bool equal(Set a, Set b) { return a == b || tree_of(a) == tree_of(b); }
  // Returns the set in words: "{0-3, 5}".
  std::string text(Set set) const;

 private:
  using Range = std::pair<std::uint32_t, std::uint32_t>;  // first and end; not cyclic
  using Ranges = std::vector<Range>;                      // sorted, disjoint, not adjacent
  // Hop: the distance from a rank to the next one of a progression, 2 to p / 2, and its inverse modulo p.
  struct Hop {
    std::uint32_t ranks, inverse;
  };
  // Numbers of the trees without ranks and with all ranks. All other trees have some.
  static constexpr std::uint32_t kNone = 0, kWhole = 1;
  struct Tree {
    std::uint32_t low = kNone, high = kNone;
    std::uint32_t ranges = 0;
    bool begins = false, ends = false;  // whether the tree's first and last rank are in the set
  };

  std::uint32_t distance(std::uint32_t from, std::uint32_t to) const {
    return to >= from ? to - from : to + (ranks_ - from);
  }
  std::uint32_t after(std::uint32_t rank, std::uint64_t ranks) const {
    return static_cast<std::uint32_t>((rank + ranks) % ranks_);
  }
  // Returns the number of hops from one rank to another.
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
  std::uint32_t span_ = 1;                                        // ranks that the root spans: a power of two
  std::vector<Hop> hops_;                                         // by number
  std::unordered_map<std::uint32_t, std::uint32_t> hop_numbers_;  // by distance in ranks; never iterated
  std::vector<Tree> trees_;
  // Numbers of the trees by those of both subtrees; never iterated.
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
};

}  // namespace netsim
