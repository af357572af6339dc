// Protocol: how NCCL's kernels tell each other that data is there (NCCL 2.30, src/device/prims_*.h): Simple
// by a flag and a fence per slot, LL by a flag in every 8 bytes, LL128 by one in every 128.
#pragma once

#include <cstddef>
#include <cstdint>

namespace netsim {

enum class Protocol : std::uint8_t { simple, ll, ll128 };

// As NCCL and MSCCL write them.
constexpr const char* to_string(Protocol protocol) {
  constexpr const char* kNames[] = {"Simple", "LL", "LL128"};
  return kNames[static_cast<std::size_t>(protocol)];
}

}  // namespace netsim
