// PortMarker: the decisions of a custom marker at one switch port: which data packets get an ECN mark.
// Marker::make_port() creates one for each port.
//
// It may keep any state of its port and is called by one thread at a time. It must be deterministic and must
// not allocate after its construction. RandomStream of PortContext (port_scheduler.h) gives random numbers.
#pragma once

#include <cstdint>

#include "sim/core/units.h"
#include "sim/network/packet_view.h"

namespace netsim {

// The queue of a data packet's priority, without the packet itself.
struct MarkedQueue {
  Bytes bytes = 0;
  std::uint32_t packets = 0;
};

class PortMarker {
 public:
  virtual ~PortMarker() = default;
  // Returns whether a data packet that must wait is marked, before it joins the queue.
  virtual bool marks_joining(const PacketView& /*packet*/, const MarkedQueue& /*queue*/, Time /*now*/) {
    return false;
  }
  // Returns whether a data packet is marked that leaves now. `waited` is its time in the queue; 0 for a
  // packet that found the port free.
  virtual bool marks_leaving(const PacketView& /*packet*/, const MarkedQueue& /*queue*/, Time /*waited*/,
                             Time /*now*/) {
    return false;
  }
};

}  // namespace netsim
