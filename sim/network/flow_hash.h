// choose_by_hash(): chooses one of `count` equal next hops by a flow's hash. Policies use it for flows
// without a choice of their own.
#pragma once

#include "sim/core/random.h"

namespace netsim {

inline std::uint32_t choose_by_hash(std::uint64_t flow, std::uint64_t seed, std::uint32_t count) {
  return static_cast<std::uint32_t>((static_cast<UInt128>(hash_combine(flow, seed)) * count) >> 64);
}

}  // namespace netsim
