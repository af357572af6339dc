// RankSets: sets of ranks in 8 bytes each, for the proof. Exact.
//
// What a chunk holds in a ring or a tree is a cyclic range of ranks (first, first+1, ... mod p), so a Set is
// one such range. Any other set is kept once, as a sorted list of ranges, and the Set refers to it. Both
// forms are canonical: equal sets are equal values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace netsim {

class RankSets {
 public:
  struct Set {
    std::uint32_t first = 0;
    std::uint32_t count = 0;  // 0: empty; kMany: `first` numbers a list of ranges
    bool operator==(const Set&) const = default;
    bool empty() const { return count == 0; }
  };

  static constexpr std::uint32_t kMany = UINT32_MAX;
  explicit RankSets(std::uint32_t ranks) : ranks_(ranks) {}  // ranks < 2^32 - 1
  Set single(std::uint32_t rank) const { return {rank, 1}; }
  Set all() const { return {0, ranks_}; }
  // a + b, or nothing if they have a rank in common.
  std::optional<Set> join(Set a, Set b);
  // "{0-3, 5}"
  std::string text(Set set) const;

 private:
  using Range = std::pair<std::uint32_t, std::uint32_t>;  // first, end; not cyclic
  using Ranges = std::vector<Range>;                      // sorted, disjoint, not adjacent

  std::uint32_t distance(std::uint32_t from, std::uint32_t to) const {
    return to >= from ? to - from : to + (ranks_ - from);
  }
  Set cyclic(std::uint32_t first, std::uint32_t count) const {
    return count == ranks_ ? all() : Set{first, count};
  }
  Ranges expand(Set set) const;
  Set intern(const Ranges& ranges);

  std::uint32_t ranks_;
  std::map<Ranges, std::uint32_t> numbers_;
  std::vector<const Ranges*> lists_;  // keys of numbers_
};

}  // namespace netsim
