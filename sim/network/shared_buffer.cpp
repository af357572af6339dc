// The switches' buffers: who may wait in them, who is paused, who is given credits, who is marked.
#include <fmt/format.h>

#include "sim/core/errors.h"
#include "sim/network/fabric.h"

namespace netsim {
namespace {

// InfiniBand's flow control packet: 6 B and a delimiter at both ends (InfiniBand Architecture
// Specification 1.4, volume 1, section 7.9.4).
constexpr Bytes kCreditFrameBytes = 8;

}  // namespace

// What can still arrive after the pause is decided: the pause frame waits for one packet that is being sent
// the other way, takes its own time and the link's; meanwhile and until its last bit has come the sender
// fills the link; and the sender finishes the packet it had begun. C (2 t_prop + t_response) + 2 MTU + PFC
// frame, as in the survey of switch guides (papers: headroom >= C (2 t_prop + t_proc) + 2 MTU + 64 B), in
// bytes as buffers count them, plus the packet that crossed the threshold.
Bytes Fabric::computed_headroom(PortId port) const {
  const LinkSpec& link = graph_.port(port).link;
  const LinkSpec& back = graph_.port(port ^ 1U).link;
  __extension__ using Wide = __int128;
  const Time loop_time = link.delay + parameters_.latency + back.delay + parameters_.pfc_response +
                         transmission_time(largest_packet_ + back.overhead, back.rate) +
                         transmission_time(parameters_.pfc_frame + back.overhead, back.rate);
  const Wide in_flight = static_cast<Wide>(loop_time) * link.rate / (8 * kSecond);
  return static_cast<Bytes>(in_flight) + 2 * largest_packet_;
}

void Fabric::build_classes(const ConfigNode& node) {
  const ConfigNode& given = parameters_.lossless;
  if (parameters_.flow_control != FlowControl::pfc) {
    if (!given.is_null()) given.fail("'lossless' chooses classes for pfc; flow_control is something else");
    return;
  }
  const std::uint32_t all = ((1U << classes_) - 1) << kDataPriority;
  if (given.is_null() || (given.is_scalar() && given.text() == "all")) {
    lossless_ = all;
  } else if (given.is_sequence()) {
    for (const ConfigNode& item : given.items()) {
      const std::int64_t c = read_integer(item);
      if (c < 0 || c >= classes_) out_of_range(item, "0", std::to_string(classes_ - 1));
      lossless_ |= 1U << (kDataPriority + static_cast<std::uint32_t>(c));
    }
  } else if (!given.is_scalar() || given.text() != "none") {
    (given.is_null() ? node : given).fail("expected all, none or a list of classes");
  }
}

void Fabric::build_buffers(const ConfigNode& node) {
  std::vector<std::uint32_t> buffer_of_atom(graph_.atom_count(), kNone);
  std::vector<Bytes> set_aside;
  for (PortId id = 0; id < graph_.port_count(); ++id) {
    if (!at_switch(id)) continue;
    std::uint32_t& index = buffer_of_atom[graph_.node(graph_.port(id).node).atom];
    if (index == kNone) {
      index = static_cast<std::uint32_t>(buffers_.size());
      buffers_.emplace_back();
      set_aside.push_back(0);
    }
    ports_[id].buffer = index;
    ports_[id].flags |= kBuffered;
    for (std::uint32_t priority = kDataPriority; priority < kDataPriority + classes_; ++priority) {
      if (!lossless(priority)) continue;
      Ingress& in = ingress_[class_index(id ^ 1U, priority)];
      in.headroom = parameters_.headroom != 0 ? parameters_.headroom : computed_headroom(id ^ 1U);
      set_aside[index] += in.headroom + parameters_.reserve;
    }
  }
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (set_aside[i] >= parameters_.buffer) {
      const ConfigNode* given = node.find("buffer");
      (given != nullptr ? *given : node)
          .fail(fmt::format("a switch's buffer of {} B does not hold the headroom and reserves of its links, "
                            "{} B: allowed is more than that (or a smaller headroom or reserve)",
                            parameters_.buffer, set_aside[i]));
    }
    buffers_[i].shared_total = parameters_.buffer - set_aside[i];
    buffers_[i].alpha_2_16 = static_cast<std::int64_t>(parameters_.alpha * 65536.0);
  }
}

// Credits of links into switches, where the network works so, and of links that bring their own (NVLink).
void Fabric::build_credits(const ConfigNode& node) {
  const bool switches = parameters_.flow_control == FlowControl::credits;
  for (PortId id = 0; id < graph_.port_count(); ++id) {
    const PortSpec& spec = graph_.port(id);
    const bool into_switch = switches && graph_.node(spec.peer_node).kind == NodeKind::fabric_switch;
    if (!into_switch && spec.link.credits == 0) continue;
    if (credits_.empty()) credits_.resize(ingress_.size());
    const Bytes largest = into_switch ? largest_packet_ : spec.link.mtu;
    Bytes room = into_switch ? parameters_.credit_buffer : spec.link.credits;
    if (room == 0) {
      // A round trip's worth, with a packet in the way at each end; a quarter more, because credits come back
      // a quarter of the buffer at a time.
      const LinkSpec& back = graph_.port(id ^ 1U).link;
      __extension__ using Wide = __int128;
      const Time loop_time = spec.link.delay + back.delay + parameters_.latency +
                             transmission_time(largest + back.overhead, back.rate) +
                             transmission_time(largest + spec.link.overhead, spec.link.rate);
      const Wide in_flight = static_cast<Wide>(loop_time) * spec.link.rate / (8 * kSecond);
      room = (static_cast<Bytes>(in_flight) + 2 * largest) * 4 / 3 + 1;
    }
    if (room < 2 * largest) {
      node.fail(fmt::format("a credit buffer of {} B for link {} does not hold two packets of {} B", room,
                            graph_.port_name(id), largest));
    }
    ports_[id].flags |= kCredits;
    for (std::uint32_t priority = kDataPriority; priority < kDataPriority + classes_; ++priority) {
      ingress_[class_index(id, priority)].headroom = room;
      credits_[class_index(id, priority)] = {room, largest, into_switch ? kCreditFrameBytes : 0, room / 4};
    }
    for (const PortId next : graph_.ports_of(spec.peer_node)) ports_[next].flags |= kReturnsCredits;
  }
}

void Fabric::mark(PortId port, Packet& packet, Bytes queue_bytes) {
  Rare& rare = rare_[port];
  if (queue_bytes <= rare.red.kmin) return;  // a threshold beyond 4 GB
  bool marked = queue_bytes > rare.red.kmax || rare.red.kmin == rare.red.kmax;
  if (!marked) {
    const double probability = rare.red.pmax * static_cast<double>(queue_bytes - rare.red.kmin) /
                               static_cast<double>(rare.red.kmax - rare.red.kmin);
    marked = rare.random.uniform() < probability;
  }
  if (!marked) return;
  packet.marked = true;
  ++rare.marks;
}

bool Fabric::admit(PortId port, const Packet& packet) {
  if (packet.priority == kControlPriority) return true;
  const Queue& q = queue(port, packet.priority);
  if (q.packets >= queue_limit_) return false;
  if (parameters_.flow_control == FlowControl::credits) {
    Ingress& in = ingress_[class_index(packet.ingress, packet.priority)];
    in.used += packet.bytes;
    NETSIM_CHECK(in.used <= in.headroom, "a credit buffer overflows");
    in.max_headroom_used = std::max(in.max_headroom_used, static_cast<std::uint32_t>(in.used));
    return true;
  }
  Buffer& buffer = buffers_[ports_[port].buffer];
  if (lossless(packet.priority)) return admit_lossless(buffer, packet);
  if (q.bytes + packet.bytes > buffer.threshold() || packet.bytes > buffer.free()) return false;
  buffer.shared_used += packet.bytes;
  return true;
}

bool Fabric::admit_lossless(Buffer& buffer, const Packet& packet) {
  Ingress& in = ingress_[class_index(packet.ingress, packet.priority)];
  const Bytes size = packet.bytes;
  const Bytes threshold = buffer.threshold();
  const Bytes beyond = std::max<Bytes>(in.used + size - parameters_.reserve, 0);
  const Bytes more = beyond - std::max<Bytes>(in.used - parameters_.reserve, 0);  // of the shared pool
  if (in.headroom_used == 0 && beyond <= std::max<Bytes>(threshold, 0) && more <= buffer.free()) {
    buffer.shared_used += more;
    in.used += size;
  } else if (in.headroom_used + size <= in.headroom) {
    in.headroom_used += size;
    in.max_headroom_used = std::max(in.max_headroom_used, static_cast<std::uint32_t>(in.headroom_used));
  } else {
    return false;
  }
  if (!in.pausing && (in.headroom_used > 0 || in.used - parameters_.reserve >= buffer.threshold())) {
    in.pausing = true;
    ++pauses_sent_;
    send_pfc(packet.ingress, packet.priority, true);
  }
  return true;
}

void Fabric::leave_buffer(PortId port, const Packet& packet) {
  if (packet.priority == kControlPriority) return;
  if (parameters_.flow_control == FlowControl::credits) {
    ingress_[class_index(packet.ingress, packet.priority)].used -= packet.bytes;
    return;
  }
  Buffer& buffer = buffers_[ports_[port].buffer];
  if (lossless(packet.priority)) {
    leave_lossless(buffer, packet);
  } else {
    buffer.shared_used -= packet.bytes;
  }
}

void Fabric::leave_lossless(Buffer& buffer, const Packet& packet) {
  Ingress& in = ingress_[class_index(packet.ingress, packet.priority)];
  const Bytes from_headroom = std::min<Bytes>(in.headroom_used, packet.bytes);
  in.headroom_used -= from_headroom;
  const Bytes before = std::max<Bytes>(in.used - parameters_.reserve, 0);
  in.used -= packet.bytes - from_headroom;
  const Bytes after = std::max<Bytes>(in.used - parameters_.reserve, 0);
  buffer.shared_used -= before - after;
  if (!in.pausing || in.headroom_used != 0) return;
  if (after == 0 || after + parameters_.resume_offset <= buffer.threshold()) {
    in.pausing = false;
    ++resumes_sent_;
    send_pfc(packet.ingress, packet.priority, false);
  }
}

void Fabric::send_pfc(PortId paused_port, std::uint32_t priority, bool pause) {
  send_control(paused_port, make_link_control(pause ? LinkControl::pause : LinkControl::resume, priority), 0,
               parameters_.pfc_frame);
}

// Sends a frame to the node whose port is meant, over that link's other direction.
void Fabric::send_control(PortId to, std::uint32_t message, std::uint32_t credit, Bytes frame_bytes) {
  const std::uint32_t index = packets_.allocate();
  Packet& frame = packets_[index];
  frame = Packet{};
  frame.bytes = static_cast<std::uint32_t>(frame_bytes);
  frame.kind = PacketKind::link_control;
  frame.priority = kControlPriority;
  frame.message = message;
  frame.psn = credit;
  enqueue(to ^ 1U, index);
}

void Fabric::consume_credit(PortId port, std::uint32_t priority, Bytes bytes) {
  Credits& credits = credits_[class_index(port, priority)];
  credits.left -= bytes;
  if (credits.left < credits.largest) {
    ++rare_[port].pauses;
    set_paused(port, priority);
  }
}

// The credit last: its frame may leave by the same port and then comes after the packet.
void Fabric::transmit_and_return_credit(PortId port, std::uint32_t packet) {
  const Packet k = packets_[packet];
  transmit(port, packet);
  return_credit(k.ingress, k.priority, k.bytes);
}

// `bytes` that came over `port`'s link have left the far end's buffer.
void Fabric::return_credit(PortId port, std::uint32_t priority, Bytes bytes) {
  if (priority < kDataPriority || (ports_[port].flags & kCredits) == 0) return;
  const Credits& credits = credits_[class_index(port, priority)];
  Bytes& owed = ingress_[class_index(port, priority)].headroom_used;
  owed += bytes;
  if (owed < credits.quantum) return;
  const auto given = static_cast<std::uint32_t>(owed);
  owed = 0;
  const std::uint32_t message = make_link_control(LinkControl::credit, priority);
  if (credits.frame != 0) {
    send_control(port, message, given, credits.frame);
    return;
  }
  loop_.schedule(loop_.now() + rare_[port ^ 1U].link_delay, ports_[port ^ 1U].origin, EventKind::link_control,
                 port, static_cast<std::uint64_t>(given) << 8 | message);
}

void Fabric::receive_credit(PortId port, std::uint32_t priority, Bytes bytes) {
  Credits& credits = credits_[class_index(port, priority)];
  credits.left += bytes;
  if (credits.left >= credits.largest) set_running(port, priority);
}

}  // namespace netsim
