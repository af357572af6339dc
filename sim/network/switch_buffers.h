// SwitchBuffers: who may wait in a switch. Keeps the account of shared buffers, of each link's part in them,
// of credit buffers and of ECN; says what follows from it, and leaves it to the PortArbiter and BackPressure
// to do it. Which rules hold is said in fabric.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/network/fabric_state.h"
#include "sim/network/packet.h"

namespace netsim {

class SwitchBuffers {
 public:
  enum class Admission : std::uint8_t {
    refused,          // there is no room: the packet is lost
    admitted,         // it has its room
    admitted_as_last  // so it has, and the sender that it came from is to be paused
  };

  explicit SwitchBuffers(FabricState& state)
      : state_(state),
        port_count_(state.ports.size()),
        data_queues_(state.data_queues),
        ingress_(state.ingress.data()),
        buffers_(state.buffers.data()) {}

  // A packet that joins `queue` of a port of switch buffer `buffer`. Link control takes none of its room, and
  // neither does what the switch has copied or added up.
  Admission admit(std::uint32_t buffer, const fabric::Queue& queue, const Packet& packet) {
    if (packet.came_in == kNoRoom) return Admission::admitted;
    Buffer& pool = buffers_[buffer];
    if (queue.packets >= pool.queue_limit) return Admission::refused;
    if ((pool.lossless >> packet.priority & 1) == 0) return admit_other(pool, queue, packet);
    return admit_lossless(pool, packet);
  }
  // A packet that has waited in switch buffer `buffer` is sent. True: the sender that it came from is to be
  // resumed.
  bool leave(std::uint32_t buffer, const Packet& packet) {
    if (packet.came_in == kNoRoom) return false;
    Buffer& pool = buffers_[buffer];
    if ((pool.lossless >> packet.priority & 1) != 0) return leave_lossless(pool, packet);
    leave_other(pool, packet);
    return false;
  }
  // ECN: marks the data packet, or not, by the bytes in its queue.
  void mark(PortId port, Packet& packet, Bytes queue_bytes);

  // Whether the node behind `port` has paused it for want of room.
  bool is_pausing(PortId port, std::uint32_t priority) const {
    return ingress_[class_index(port, priority)].pausing;
  }

  // Credits of a link, from its sender's side: `port` transmits on it. False: what is left is not enough for
  // another packet.
  bool use_credit(PortId port, std::uint32_t priority, Bytes bytes);
  bool add_credit(PortId port, std::uint32_t priority, Bytes bytes);
  bool has_credit(PortId port, std::uint32_t priority) const {
    const fabric::Credits& credits = state_.credits[class_index(port, priority)];
    return credits.left >= credits.largest;
  }
  // From its receiver's side: `bytes` that came over `port`'s link have left the buffer there. Bytes of
  // credit that are due to the sender now; 0: none yet.
  std::uint32_t free_credit(PortId port, std::uint32_t priority, Bytes bytes);
  // All that is owed to the sender, due or not.
  std::uint32_t take_owed_credit(PortId port, std::uint32_t priority);
  // What was on its way to the sender is lost: it is owed again.
  void owe_credit(PortId port, std::uint32_t priority, Bytes bytes) {
    ingress_[class_index(port, priority)].headroom_used += bytes;
  }
  // Size of the frame that returns credit; 0: it is carried along, at no cost.
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
  // The state's, as far as every packet needs them.
  const std::size_t port_count_;
  const std::uint32_t data_queues_;
  Ingress* ingress_;
  Buffer* buffers_;
};

inline SwitchBuffers::Admission SwitchBuffers::admit_lossless(Buffer& buffer, const Packet& packet) {
  Ingress& in = ingress_[class_index(packet.ingress, packet.came_in)];
  const Bytes size = packet.bytes;
  const Bytes threshold = buffer.threshold();
  const Bytes beyond = std::max<Bytes>(in.used + size - buffer.reserve, 0);
  const Bytes more = beyond - std::max<Bytes>(in.used - buffer.reserve, 0);  // of the shared pool
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
  Ingress& in = ingress_[class_index(packet.ingress, packet.came_in)];
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
