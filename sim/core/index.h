// The index that stands for no element. Elements of arenas are named by 32-bit indices (law 9).
#pragma once

#include <cstdint>

namespace netsim {

inline constexpr std::uint32_t kNoIndex = UINT32_MAX;

}  // namespace netsim
