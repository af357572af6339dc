#include "sim/network/switch_buffers.h"

#include "sim/core/errors.h"

namespace netsim {

void SwitchBuffers::mark(PortId port, Packet& packet, Bytes queue_bytes) {
  fabric::Marking& marking = state_.marking[port];
  const RedLine& red = marking.red;
  if (queue_bytes <= red.kmin) return;  // kmin is beyond the 4 GB that mark_above can hold
  bool marked = queue_bytes > red.kmax || red.kmin == red.kmax;
  if (!marked) {
    const double probability =
        red.pmax * static_cast<double>(queue_bytes - red.kmin) / static_cast<double>(red.kmax - red.kmin);
    marked = marking.random.uniform() < probability;
  }
  if (marked) set_mark(port, packet);
}

// Admits a packet of a class that is not lossless. With credits there is always space, by the sender's
// account. Else it must stay below the threshold.
SwitchBuffers::Admission SwitchBuffers::admit_other(Buffer& buffer, const fabric::Queue& queue,
                                                    const Packet& packet) {
  if (buffer.credits) {
    Ingress& in = ingress_[class_index(packet.ingress, packet.ingress_queue)];
    in.used += packet.bytes;
    NETSIM_CHECK(in.used <= in.headroom, "a credit buffer overflows");
    in.max_headroom_used = std::max(in.max_headroom_used, static_cast<std::uint32_t>(in.used));
    return Admission::admitted;
  }
  if (queue.bytes + packet.bytes > buffer.threshold() || packet.bytes > buffer.free())
    return Admission::refused;
  buffer.shared_used += packet.bytes;
  return Admission::admitted;
}

void SwitchBuffers::leave_other(Buffer& buffer, const Packet& packet) {
  if (buffer.credits) {
    ingress_[class_index(packet.ingress, packet.ingress_queue)].used -= packet.bytes;
  } else {
    buffer.shared_used -= packet.bytes;
  }
}

bool SwitchBuffers::use_credit(PortId port, std::uint32_t priority, Bytes bytes) {
  state_.credits[class_index(port, priority)].left -= bytes;
  return has_credit(port, priority);
}

bool SwitchBuffers::add_credit(PortId port, std::uint32_t priority, Bytes bytes) {
  state_.credits[class_index(port, priority)].left += bytes;
  return has_credit(port, priority);
}

std::uint32_t SwitchBuffers::free_credit(PortId port, std::uint32_t priority, Bytes bytes) {
  if (priority < kDataPriority || state_.credits.empty()) return 0;
  // Only the limits may be read here; `left` belongs to the far end.
  const fabric::Credits& credits = state_.credits[class_index(port, priority)];
  if (credits.quantum == 0) return 0;
  Bytes& owed = ingress_[class_index(port, priority)].headroom_used;
  owed += bytes;
  return owed < credits.quantum ? 0 : take_owed_credit(port, priority);
}

std::uint32_t SwitchBuffers::take_owed_credit(PortId port, std::uint32_t priority) {
  Bytes& owed = ingress_[class_index(port, priority)].headroom_used;
  const auto due = static_cast<std::uint32_t>(owed);
  owed = 0;
  return due;
}

}  // namespace netsim
