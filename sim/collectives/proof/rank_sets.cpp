#include "sim/collectives/proof/rank_sets.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/core/modulo.h"

namespace netsim {

RankSets::RankSets(std::uint32_t ranks)
    : ranks_(ranks), hops_{{1, 1}}, trees_{{kNone, kNone, 0, false, false}, {kWhole, kWhole, 1, true, true}} {
  while (span_ < ranks) span_ *= 2;
}

std::optional<RankSets::Set> RankSets::join(Set a, Set b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  // A single rank fits any hop.
  const bool alike = a.hop() == b.hop() || a.count() == 1 || b.count() == 1;
  if (alike && a.count() != kMany && b.count() != kMany) [[likely]] {
    const std::uint32_t hop = std::max(a.hop(), b.hop());
    const std::uint32_t ahead = hops(a.first, b.first, hop), behind = ahead == 0 ? 0 : ranks_ - ahead;
    if (ahead < a.count() || behind < b.count()) return std::nullopt;
    if (ahead == a.count()) return cyclic(a.first, a.count() + b.count(), hop);
    if (behind == b.count()) return cyclic(b.first, a.count() + b.count(), hop);
    if (a.count() == 1 && b.count() == 1) {
      if (const std::optional<Set> both = pair(a.first, b.first)) return both;
    }
  }
  const std::optional<std::uint32_t> both = join(tree_of(a), tree_of(b));
  return both ? std::optional(set_of(*both)) : std::nullopt;
}

// Returns a set that is a progression. All ranks, and all but one, are a range for any hop.
RankSets::Set RankSets::cyclic(std::uint32_t first, std::uint32_t count, std::uint32_t hop) const {
  if (count == ranks_) return all();
  if (hop == 0 || count + 1 < ranks_) return Set::of(first, count, hop);
  return {after(first, std::uint64_t{ranks_} - hops_[hop].ranks + 1), count};
}

// Returns two ranks that are not neighbours as a progression, if a progression with their distance reaches
// all ranks.
std::optional<RankSets::Set> RankSets::pair(std::uint32_t a, std::uint32_t b) {
  if (distance(a, b) > ranks_ / 2) std::swap(a, b);
  const std::uint32_t hop = distance(a, b);
  const auto [entry, fresh] = hop_numbers_.try_emplace(hop, 0);
  if (fresh && hops_.size() < kMostHops && std::gcd(hop, ranks_) == 1) {
    entry->second = static_cast<std::uint32_t>(hops_.size());
    hops_.push_back({hop, inverse_modulo(hop, ranks_)});
  }
  return entry->second == 0 ? std::nullopt : std::optional(cyclic(a, 2, entry->second));
}

std::optional<std::uint32_t> RankSets::join(std::uint32_t a, std::uint32_t b) {
  if (a == kNone) return b;
  if (b == kNone) return a;
  if (a == kWhole || b == kWhole) return std::nullopt;
  const std::optional<std::uint32_t> low = join(trees_[a].low, trees_[b].low);
  const std::optional<std::uint32_t> high = low ? join(trees_[a].high, trees_[b].high) : std::nullopt;
  return high ? std::optional(tree(*low, *high)) : std::nullopt;
}

// Returns the tree with these halves.
std::uint32_t RankSets::tree(std::uint32_t low, std::uint32_t high) {
  if (low == high && low <= kWhole) return low;
  const auto [entry, fresh] =
      numbers_.try_emplace(std::uint64_t{low} << 32 | high, static_cast<std::uint32_t>(trees_.size()));
  if (fresh) {
    const Tree &a = trees_[low], &b = trees_[high];
    const std::uint32_t ranges = a.ranges + b.ranges - (a.ends && b.begins ? 1 : 0);
    trees_.push_back({low, high, ranges, a.begins, b.ends});
  }
  return entry->second;
}

std::uint32_t RankSets::tree_of(Set set) {
  if (set.count() == kMany) return set.first;
  std::uint32_t whole = kNone;
  for (const Range& range : ranges_of(set)) whole = *join(whole, tree_of(range, 0, span_));
  return whole;
}

// Returns the tree of the range's ranks among those from `begin` on.
std::uint32_t RankSets::tree_of(Range range, std::uint32_t begin, std::uint32_t span) {
  if (range.second <= begin || range.first >= begin + span) return kNone;
  if (range.first <= begin && range.second >= begin + span) return kWhole;
  const std::uint32_t low = tree_of(range, begin, span / 2);
  return tree(low, tree_of(range, begin + span / 2, span / 2));
}

void RankSets::append(Ranges& ranges, std::uint32_t tree, std::uint32_t begin, std::uint32_t span) const {
  if (tree == kNone) return;
  if (tree > kWhole) {
    append(ranges, trees_[tree].low, begin, span / 2);
    append(ranges, trees_[tree].high, begin + span / 2, span / 2);
  } else if (!ranges.empty() && ranges.back().second == begin) {
    ranges.back().second = begin + span;
  } else {
    ranges.emplace_back(begin, begin + span);
  }
}

RankSets::Ranges RankSets::ranges_of(Set set) const {
  Ranges ranges;
  if (set.hop() != 0) {
    std::vector<std::uint32_t> all(set.count(), set.first);
    for (std::uint32_t i = 1; i < set.count(); ++i) all[i] = after(all[i - 1], hops_[set.hop()].ranks);
    std::sort(all.begin(), all.end());
    for (const std::uint32_t rank : all) {
      if (ranges.empty() || ranges.back().second != rank) ranges.emplace_back(rank, rank);
      ++ranges.back().second;
    }
    return ranges;
  }
  if (set.count() == kMany) {
    append(ranges, set.first, 0, span_);
    return ranges;
  }
  const std::uint32_t until_end = ranks_ - set.first;
  if (set.count() <= until_end) return {{set.first, set.first + set.count()}};
  return {{0, set.count() - until_end}, {set.first, ranks_}};
}

// Returns a range if the tree is one, also around the end.
RankSets::Set RankSets::set_of(std::uint32_t tree) const {
  const Set many{tree, kMany};
  if (trees_[tree].ranges > 2) return many;
  const Ranges ranges = ranges_of(many);
  if (ranges.size() == 1) return cyclic(ranges[0].first, ranges[0].second - ranges[0].first);
  if (ranges[0].first != 0 || ranges[1].second != ranks_) return many;
  return cyclic(ranges[1].first, ranks_ - ranges[1].first + ranges[0].second);
}

std::string RankSets::text(Set set) const {
  if (set.empty()) return "{}";
  std::string result;
  for (const auto& [first, end] : ranges_of(set)) {
    result += (result.empty() ? "{" : ", ") + std::to_string(first);
    if (end - first > 1) result += "-" + std::to_string(end - 1);
  }
  return result + "}";
}

}  // namespace netsim
