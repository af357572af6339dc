#include "sim/collectives/library/link_jumps.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace netsim {

std::vector<std::uint32_t> link_jumps(const std::vector<std::vector<GpuId>>& linked,
                                      std::span<const GpuId> members) {
  const auto count = static_cast<std::uint32_t>(members.size());
  std::vector<std::uint32_t> jumps;
  if (linked.empty() || count < 3) return jumps;
  const auto has = [&](std::uint32_t from, std::uint32_t jump) {
    const std::vector<GpuId>& there = linked[members[from]];
    return std::binary_search(there.begin(), there.end(), members[(from + jump) % count]);
  };
  std::map<GpuId, std::uint32_t> place;
  for (std::uint32_t i = 0; i < count; ++i) place[members[i]] = i;
  for (const GpuId gpu : linked[members[0]]) {
    const auto at = place.find(gpu);
    if (at == place.end() || std::gcd(at->second, count) != 1) continue;
    std::uint32_t from = 0;
    while (from < count && has(from, at->second)) ++from;
    if (from == count) jumps.push_back(at->second);
  }
  const auto order = [count](std::uint32_t jump) {
    return 2 * std::min(jump, count - jump) + (2 * jump > count);
  };
  std::sort(jumps.begin(), jumps.end(),
            [&](std::uint32_t a, std::uint32_t b) { return order(a) < order(b); });
  return jumps;
}

RankLinks rank_links(const std::vector<std::vector<GpuId>>& linked, std::span<const GpuId> members) {
  RankLinks links;
  if (linked.empty()) return links;
  std::map<GpuId, std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < members.size(); ++rank) ranks[members[rank]] = rank;
  links.resize(members.size());
  for (std::uint32_t rank = 0; rank < members.size(); ++rank) {
    for (const GpuId gpu : linked[members[rank]]) {
      if (const auto at = ranks.find(gpu); at != ranks.end()) links[rank].push_back(at->second);
    }
    std::sort(links[rank].begin(), links[rank].end());
  }
  return links;
}

}  // namespace netsim
