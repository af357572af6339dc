#include "sim/scheduling/flow/rules/thresholds.h"

#include <algorithm>

namespace netsim {

std::vector<Bytes> exponential_thresholds(Bytes first, std::uint32_t factor, std::uint32_t levels) {
  std::vector<Bytes> thresholds;
  for (Bytes next = first; thresholds.size() + 1 < levels; next *= factor) {
    thresholds.push_back(next);
    if (next > INT64_MAX / factor) break;
  }
  return thresholds;
}

std::vector<Bytes> equal_share_thresholds(std::span<const Bytes> sizes, std::uint32_t levels) {
  std::vector<Bytes> sorted(sizes.begin(), sizes.end()), thresholds;
  std::sort(sorted.begin(), sorted.end());
  Int128 total = 0, below = 0;  // bytes of all flows, and of those that are not larger than the last one seen
  for (const Bytes size : sorted) total += size;
  std::size_t smaller = 0;
  for (std::uint32_t level = 1; level < levels && !sorted.empty(); ++level) {
    const Int128 share = (total * level + levels - 1) / levels;
    // A flow has min(size, x) bytes that are sent when it has at most x left.
    const auto larger = [&] { return static_cast<Int128>(sorted.size() - smaller); };
    while (smaller < sorted.size() && below + larger() * sorted[smaller] < share) below += sorted[smaller++];
    if (smaller == sorted.size()) break;
    const auto threshold = static_cast<Bytes>((share - below + larger() - 1) / larger());
    if (thresholds.empty() || threshold > thresholds.back()) thresholds.push_back(threshold);
  }
  return thresholds;
}

std::uint32_t level_of_sent(Bytes sent, std::span<const Bytes> thresholds) {
  return static_cast<std::uint32_t>(std::upper_bound(thresholds.begin(), thresholds.end(), sent) -
                                    thresholds.begin());
}

std::uint32_t level_of_left(Bytes left, std::span<const Bytes> thresholds) {
  return static_cast<std::uint32_t>(std::lower_bound(thresholds.begin(), thresholds.end(), left) -
                                    thresholds.begin());
}

Bytes left_in_level(Bytes sent, std::span<const Bytes> thresholds) {
  const std::uint32_t level = level_of_sent(sent, thresholds);
  return level < thresholds.size() ? thresholds[level] - sent : INT64_MAX;
}

}  // namespace netsim
