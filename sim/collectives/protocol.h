// Protocol: how NCCL's kernels move the data of a connection and signal its arrival (NCCL 2.30,
// src/device/prims_*.h). A sender with LL or LL128 writes a flag into every 8 or 128 bytes, which the
// receiver polls. It needs no fence and has a low latency, but the flags take bandwidth. Simple moves slices
// and signals each slice once, behind a fence.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sim/core/units.h"

namespace netsim {

enum class Protocol : std::uint8_t { simple, ll, ll128 };
// The protocols, from the lowest latency to the highest bandwidth.
inline constexpr std::array kProtocols = {Protocol::ll, Protocol::ll128, Protocol::simple};

// Returns the name that NCCL and MSCCL use.
constexpr const char* to_string(Protocol protocol) {
  constexpr const char* kNames[] = {"Simple", "LL", "LL128"};
  return kNames[static_cast<std::size_t>(protocol)];
}

// Returns the bytes on the wire for `data` bytes. LL sends lines of 16 bytes with 8 of data, LL128 lines of
// 128 bytes with 120 of data.
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
