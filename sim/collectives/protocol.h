// Protocol: how NCCL's kernels move the data of a connection and tell each other that it is there (NCCL 2.30,
// src/device/prims_*.h). Who sends by LL or LL128 writes a flag beside the data, in every 8 bytes or in every
// 128, which the receiver polls: no fence, little latency, but the flags take room on the wire. Simple moves
// slices and says once for each that it is there, behind a fence.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sim/core/units.h"

namespace netsim {

enum class Protocol : std::uint8_t { simple, ll, ll128 };
// From the least latency to the most bandwidth.
inline constexpr std::array kProtocols = {Protocol::ll, Protocol::ll128, Protocol::simple};

// As NCCL and MSCCL write them.
constexpr const char* to_string(Protocol protocol) {
  constexpr const char* kNames[] = {"Simple", "LL", "LL128"};
  return kNames[static_cast<std::size_t>(protocol)];
}

// Of so many bytes of data: LL sends lines of 16 bytes with 8 of data, LL128 lines of 128 with 120.
constexpr Bytes bytes_on_wire(Protocol protocol, Bytes data) {
  constexpr Bytes kDataOfLine = 8, kDataOfLongLine = 120;
  switch (protocol) {
    case Protocol::ll:
      return (data + kDataOfLine - 1) / kDataOfLine * 16;
    case Protocol::ll128:
      return (data + kDataOfLongLine - 1) / kDataOfLongLine * 128;
    case Protocol::simple:
      break;
  }
  return data;
}

}  // namespace netsim
