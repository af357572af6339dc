// SwitchBuffers: admission of packets to switch buffers. It keeps the account of shared buffers, of each
// link's share in them and of credit buffers, and decides ECN marks. PortArbiter and BackPressure act on its
// results; fabric.h describes the rules.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/network/fabric_state.h"
#include "sim/network/packet.h"

namespace netsim {

class SwitchBuffers {
 public:
  enum class Admission : std::uint8_t {
    refused,          // there is no space; the packet is lost
    admitted,         // the packet has its space
    admitted_as_last  // the packet has its space, and its sender must be paused
  };

  explicit SwitchBuffers(FabricState& state)
      : state_(state),
        port_count_(state.ports.size()),
        data_queues_(state.data_queues),
        ingress_(state.ingress.data()),
        buffers_(state.buffers.data()) {}

  // Admits a packet that joins `queue` of a port of switch buffer `buffer`. Link control takes no space, and
  // neither do packets that the switch has copied or summed.
  Admission admit(std::uint32_t buffer, const fabric::Queue& queue, const Packet& packet) {
    if (packet.ingress_queue == kNoIngressQueue) return Admission::admitted;
    Buffer& pool = buffers_[buffer];
    if (queue.packets >= pool.queue_limit) return Admission::refused;
    if ((pool.lossless >> packet.priority & 1) == 0) return admit_other(pool, queue, packet);
    return admit_lossless(pool, packet);
  }
  // Releases the space of a packet that waited in switch buffer `buffer` and is sent now. Returns whether its
  // sender must be resumed.
  bool leave(std::uint32_t buffer, const Packet& packet) {
    if (packet.ingress_queue == kNoIngressQueue) return false;
    Buffer& pool = buffers_[buffer];
    if ((pool.lossless >> packet.priority & 1) != 0) return leave_lossless(pool, packet);
    leave_other(pool, packet);
    return false;
  }
  // Decides by the bytes in its queue whether the data packet gets an ECN mark.
  void mark(PortId port, Packet& packet, Bytes queue_bytes);
  // Marks the packet and counts it.
  void set_mark(PortId port, Packet& packet) {
    packet.marked = true;
    ++state_.tallies[port].marks;
  }

  // Returns whether the node at the far end of `port` has paused it.
  bool is_pausing(PortId port, std::uint32_t priority) const {
    return ingress_[class_index(port, priority)].pausing;
  }

  // Sender's side of a link with credits. use_credit() is called when `port` transmits; add_credit() when
  // credits arrive. Both return whether the credits left are enough for another packet.
  bool use_credit(PortId port, std::uint32_t priority, Bytes bytes);
  bool add_credit(PortId port, std::uint32_t priority, Bytes bytes);
  bool has_credit(PortId port, std::uint32_t priority) const {
    const fabric::Credits& credits = state_.credits[class_index(port, priority)];
    return credits.left >= credits.largest;
  }
  // Receiver's side: `bytes` that arrived over `port`'s link have left the buffer at its far end. Returns the
  // bytes of credit to send now, or 0 if they are not due yet.
  std::uint32_t free_credit(PortId port, std::uint32_t priority, Bytes bytes);
  // Returns all credit owed to the sender, due or not, and clears it.
  std::uint32_t take_owed_credit(PortId port, std::uint32_t priority);
  // Adds credit that was lost on the wire to the credit owed to the sender.
  void owe_credit(PortId port, std::uint32_t priority, Bytes bytes) {
    ingress_[class_index(port, priority)].headroom_used += bytes;
  }
  // Returns the bytes of the frame that returns credit. 0 means that it is returned at no cost.
  Bytes credit_frame(PortId port, std::uint32_t priority) const {
    return state_.credits[class_index(port, priority)].frame;
  }

 private:
  using Ingress = fabric::Ingress;
  using Buffer = fabric::Buffer;

  std::size_t class_index(PortId port, std::uint32_t priority) const {
    return fabric::slot(port, port_count_) * data_queues_ + (priority - kDataPriority);
  }
  Admission admit_lossless(Buffer& buffer, const Packet& packet);
  Admission admit_other(Buffer& buffer, const fabric::Queue& queue, const Packet& packet);
  bool leave_lossless(Buffer& buffer, const Packet& packet);
  void leave_other(Buffer& buffer, const Packet& packet);

  FabricState& state_;
  // Copies of values in the state that every packet uses.
  const std::size_t port_count_;
  const std::uint32_t data_queues_;
  Ingress* ingress_;
  Buffer* buffers_;
};

inline SwitchBuffers::Admission SwitchBuffers::admit_lossless(Buffer& buffer, const Packet& packet) {
  Ingress& in = ingress_[class_index(packet.ingress, packet.ingress_queue)];
  const Bytes size = packet.bytes;
  const Bytes threshold = buffer.threshold();
  const Bytes beyond = std::max<Bytes>(in.used + size - buffer.reserve, 0);
  // Bytes taken from the shared pool.
  const Bytes more = beyond - std::max<Bytes>(in.used - buffer.reserve, 0);
  if (in.headroom_used == 0 && beyond <= std::max<Bytes>(threshold, 0) && more <= buffer.free()) [[likely]] {
    buffer.shared_used += more;
    in.used += size;
  } else if (in.headroom_used + size <= in.headroom) {
    in.headroom_used += size;
    in.max_headroom_used = std::max(in.max_headroom_used, static_cast<std::uint32_t>(in.headroom_used));
  } else {
    return Admission::refused;
  }
  if (in.pausing || (in.headroom_used == 0 && in.used - buffer.reserve < buffer.threshold())) [[likely]]
    return Admission::admitted;
  in.pausing = true;
  return Admission::admitted_as_last;
}

inline bool SwitchBuffers::leave_lossless(Buffer& buffer, const Packet& packet) {
  Ingress& in = ingress_[class_index(packet.ingress, packet.ingress_queue)];
  const Bytes from_headroom = std::min<Bytes>(in.headroom_used, packet.bytes);
  in.headroom_used -= from_headroom;
  const Bytes before = std::max<Bytes>(in.used - buffer.reserve, 0);
  in.used -= packet.bytes - from_headroom;
  const Bytes after = std::max<Bytes>(in.used - buffer.reserve, 0);
  buffer.shared_used -= before - after;
  if (!in.pausing || in.headroom_used != 0) [[likely]]
    return false;
  if (after != 0 && after + buffer.resume_offset > buffer.threshold()) return false;
  in.pausing = false;
  return true;
}

}  // namespace netsim
