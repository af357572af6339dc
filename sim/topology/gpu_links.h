// Usable rates of links between GPUs, each way, as NCCL and RCCL count them (src/graph/topo.h of both).
// Readers of files that name only generations take their rates here.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "sim/core/units.h"

namespace netsim {

// Returns a rate in GB/s as bit/s, rounded.
constexpr BitRate giga_bytes(double rate) { return static_cast<BitRate>(rate * 8e9 + 0.5); }

// Returns the rate of one NVLink of a GPU by its compute capability (NCCL's `sm`; SM60_NVLINK_BW and so on).
constexpr BitRate nvlink_rate_of(std::int64_t compute_capability) {
  constexpr std::array<std::pair<std::int64_t, double>, 5> kFrom{
      {{60, 18.0}, {70, 20.0}, {80, 20.0}, {90, 20.6}, {100, 40.1}}};
  if (compute_capability == 86 || compute_capability == 89) return giga_bytes(12.0);
  double rate = kFrom[0].second;
  for (const auto& [from, value] : kFrom) {
    if (compute_capability >= from) rate = value;
  }
  return giga_bytes(rate);
}

// Rates of one xGMI link by RCCL: VEGA_XGMI_WIDTH, MI200_XGMI_WIDTH and GFX94X_XGMI_WIDTH.
inline constexpr BitRate kVegaXgmi = giga_bytes(24), kMi200Xgmi = giga_bytes(36),
                         kGfx94xXgmi = giga_bytes(48);

}  // namespace netsim
