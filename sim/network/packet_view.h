// PacketView: a packet as policies that are called for each packet see it (port_scheduler.h, port_marker.h,
// switch_router.h).
#pragma once

#include <cstdint>

#include "sim/core/units.h"
#include "sim/network/packet.h"
#include "sim/network/packet_tag.h"

namespace netsim {

struct PacketView {
  PacketKind kind = PacketKind::data;
  std::uint8_t traffic_class = 0;
  bool marked = false;    // ECN: congestion experienced
  std::uint32_t psn = 0;  // packet sequence number; of a reply: the next one that the receiver expects
  Bytes bytes = 0;        // payload and headers, as buffers count them
  PacketTag tag;
};

// Returns the view of the packet with this index. Its tag must have been set.
inline PacketView view_of(const PacketArena& packets, std::uint32_t index, std::uint32_t traffic_class) {
  const Packet& k = packets[index];
  return {k.kind,
          static_cast<std::uint8_t>(traffic_class),
          k.marked,
          k.psn,
          static_cast<Bytes>(k.bytes),
          packets.tag(index)};
}

}  // namespace netsim
