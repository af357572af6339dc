// Levels of flows by bytes: by what a flow has sent, where sizes are unknown, or by what it has left.
// PIAS: Bai et al., "Information-agnostic flow scheduling for commodity data centers", NSDI 2015.
// Aalo: Chowdhury and Stoica, "Efficient coflow scheduling without prior knowledge", SIGCOMM 2015.
// Levels by bytes left: Alizadeh et al., "pFabric", SIGCOMM 2013, which also tries a few levels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/units.h"

namespace netsim {

// Aalo's defaults: the first level ends at 10 MB, each other one at 10 times the end of that before it.
inline constexpr Bytes kAaloFirst = 10 * kMegabyte;
inline constexpr std::uint32_t kAaloFactor = 10, kAaloLevels = 10;

// Returns the ends of the first `levels` - 1 levels; the last one has no end. Ends beyond the range of Bytes
// are left out. `first` and `levels` are at least 1, `factor` at least 2.
std::vector<Bytes> exponential_thresholds(Bytes first, std::uint32_t factor, std::uint32_t levels);

// Returns thresholds with which the levels by bytes left carry equal shares of all bytes of flows with these
// sizes. Every byte counts at what its flow has left when it is sent. Equal thresholds are merged, so there
// may be fewer than `levels` - 1. Sizes are at least 1.
std::vector<Bytes> equal_share_thresholds(std::span<const Bytes> sizes, std::uint32_t levels);

// Returns the level of a flow that has sent `sent` bytes, 0 for the first. A flow whose bytes reach a
// threshold is in the next level. Thresholds ascend.
std::uint32_t level_of_sent(Bytes sent, std::span<const Bytes> thresholds);

// Returns the level of a flow with `left` bytes left, 0 for the fewest. A flow with just a threshold's bytes
// left is still in the level below it.
std::uint32_t level_of_left(Bytes left, std::span<const Bytes> thresholds);

// Returns how many bytes a flow may still send in its level by bytes sent; INT64_MAX in the last one.
Bytes left_in_level(Bytes sent, std::span<const Bytes> thresholds);

}  // namespace netsim
