#include "sim/collectives/proof/rank_sets.h"

#include <algorithm>

namespace netsim {

std::optional<RankSets::Set> RankSets::join(Set a, Set b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  if (a.count != kMany && b.count != kMany) [[likely]] {
    const std::uint32_t ahead = distance(a.first, b.first), behind = distance(b.first, a.first);
    if (ahead < a.count || behind < b.count) return std::nullopt;
    if (ahead == a.count) return cyclic(a.first, a.count + b.count);
    if (behind == b.count) return cyclic(b.first, a.count + b.count);
  }
  Ranges merged = expand(a);
  const Ranges other = expand(b);
  merged.insert(merged.end(), other.begin(), other.end());
  std::sort(merged.begin(), merged.end());
  Ranges result;
  for (const Range& range : merged) {
    if (!result.empty() && range.first < result.back().second) return std::nullopt;
    if (!result.empty() && range.first == result.back().second) {
      result.back().second = range.second;
    } else {
      result.push_back(range);
    }
  }
  return intern(result);
}

RankSets::Ranges RankSets::expand(Set set) const {
  if (set.count == kMany) return *lists_[set.first];
  const std::uint32_t until_end = ranks_ - set.first;
  if (set.count <= until_end) return {{set.first, set.first + set.count}};
  return {{0, set.count - until_end}, {set.first, ranks_}};
}

RankSets::Set RankSets::intern(const Ranges& ranges) {
  if (ranges.size() == 1) return cyclic(ranges[0].first, ranges[0].second - ranges[0].first);
  if (ranges.size() == 2 && ranges[0].first == 0 && ranges[1].second == ranks_) {
    return cyclic(ranges[1].first, ranks_ - ranges[1].first + ranges[0].second);
  }
  const auto [entry, fresh] = numbers_.try_emplace(ranges, static_cast<std::uint32_t>(lists_.size()));
  if (fresh) lists_.push_back(&entry->first);
  return {entry->second, kMany};
}

std::string RankSets::text(Set set) const {
  if (set.empty()) return "{}";
  std::string result;
  for (const auto& [first, end] : expand(set)) {
    result += (result.empty() ? "{" : ", ") + std::to_string(first);
    if (end - first > 1) result += "-" + std::to_string(end - 1);
  }
  return result + "}";
}

}  // namespace netsim
