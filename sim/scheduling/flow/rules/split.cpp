#include "sim/scheduling/flow/rules/split.h"

#include <algorithm>

namespace netsim {
namespace {

constexpr UInt128 wide(std::int64_t number) { return static_cast<UInt128>(number); }

}  // namespace

BitRate rate_by_links(const SplitWay& way) {
  return std::min(way.host_rate, way.nic_rate / (BitRate{1} + way.others));
}

BitRate mean_with(BitRate measured, Bytes bytes, Time time) {
  const UInt128 rate = wide(bytes) * wide(8 * kSecond) / wide(time);
  const auto share = static_cast<BitRate>(std::clamp(rate, wide(1), wide(INT64_MAX)));
  return measured == 0 ? share : static_cast<BitRate>((wide(measured) + wide(share)) / 2);
}

void weigh_ways(SplitBy by, std::span<const SplitWay> ways, std::span<BitRate> weights) {
  const bool known = by == SplitBy::measured &&
                     std::all_of(ways.begin(), ways.end(), [](const SplitWay& w) { return w.measured > 0; });
  for (std::size_t i = 0; i < ways.size(); ++i) {
    if (by == SplitBy::links) {
      weights[i] = rate_by_links(ways[i]);
    } else {
      weights[i] = known ? ways[i].measured : 1;
    }
  }
}

void divide_bytes(Bytes bytes, std::span<const BitRate> weights, std::span<Bytes> shares) {
  UInt128 sum = 0;
  for (const BitRate weight : weights) sum += wide(weight);
  Bytes rest = bytes;
  for (std::size_t i = 1; i < shares.size(); ++i) {
    shares[i] = sum == 0 ? 0 : static_cast<Bytes>(wide(bytes) * wide(weights[i]) / sum);
    rest -= shares[i];
  }
  shares[0] = rest;
}

}  // namespace netsim
