#include "sim/network/fabric.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/core/registry.h"

namespace netsim {
namespace {

// PFC frame: 64 B Ethernet frame (IEEE 802.1Qbb).
constexpr std::uint32_t kPfcFrameBytes = 64;
// What a buffer counts beyond the payload in the largest frame: RoCEv2 headers of a message's first packet
// (62 + 16 B).
constexpr Bytes kLargestHeader = 78;

}  // namespace

const Parameters<FabricParameters>& fabric_parameters() {
  // Buffer, alpha, reserve and resume offset as in HPCC's ns-3 switch (Li et al., SIGCOMM 2019;
  // switch-mmu.cc): dynamic threshold free/8, 4 KB reserve, resume 3 KB below.
  static const auto parameters =
      Parameters<FabricParameters>()
          .bytes("buffer", &FabricParameters::buffer, {1, 1000 * kGigabyte},
                 "shared packet buffer of a switch")
          .real("alpha", &FabricParameters::alpha, {1.0 / 65536, 1024},
                "dynamic threshold: a link (lossless) or egress queue (lossy) may use alpha x the free "
                "shared buffer")
          .bytes("reserve", &FabricParameters::reserve, {0, 1000 * kGigabyte},
                 "buffer set aside for each link into a switch, not shared")
          .bytes("resume_offset", &FabricParameters::resume_offset, {0, 1000 * kGigabyte},
                 "a paused link is resumed when it uses this much less than the threshold")
          .flag("pfc", &FabricParameters::pfc, "data is lossless (PFC); false: dropped above the threshold")
          .bytes("headroom", &FabricParameters::headroom, {0, 1000 * kGigabyte},
                 "buffer set aside for each link to hold what arrives after a pause was sent; 0: computed "
                 "from the link's "
                 "speed and delay")
          .time("pfc_response", &FabricParameters::pfc_response, {0, 1 * kSecond},
                "time a paused sender needs to stop, for the computed headroom")
          .component("marker", &FabricParameters::marker, "marker", "red", "ECN marking at each switch port")
          .component("routing", &FabricParameters::routing, "routing_policy", "ecmp",
                     "choice among equal-cost next hops");
  return parameters;
}

Fabric::Fabric(EventLoop& loop, const Graph& graph, const FabricParameters& parameters,
               const ConfigNode& node, Bytes mtu, std::uint64_t seed)
    : loop_(loop),
      graph_(graph),
      parameters_(parameters),
      mtu_(mtu),
      seed_(hash_combine(RandomStream(seed, "ecmp").key(), 0)) {
  const std::size_t n = graph.port_count();
  ports_.resize(n);
  ports_base_ = ports_.data();
  queues_.resize(n * kPriorities);
  ingress_.resize(n);
  rare_.resize(n);
  routing_ = Registry<RoutingPolicy>::instance().create(parameters.routing, "ecmp");
  const auto marker = Registry<Marker>::instance().create(parameters.marker, "red");
  for (PortId id = 0; id < n; ++id) {
    const PortSpec& spec = graph.port(id);
    Port& p = ports_[id];
    p.origin = Origin(id);
    p.delay = spec.link.delay;
    p.overhead = static_cast<std::uint16_t>(spec.link.overhead);
    const std::int64_t ps = 8 * kSecond / spec.link.rate;
    if (8 * kSecond % spec.link.rate == 0 && ps <= UINT16_MAX) p.ps_per_byte = static_cast<std::uint16_t>(ps);
    if (spec.link.cut_through) p.flags |= kCutThrough;
    rare_[id].rate = spec.link.rate;
    if (graph.node(spec.node).kind == NodeKind::fabric_switch) {
      rare_[id].red = marker->compile(spec.link.rate);
      rare_[id].random = RandomStream(seed, "ecn", id);
    }
  }
  build_buffers(node);
  loop.set_handler(
      EventKind::arrival, [](void* self, const Event& e) { static_cast<Fabric*>(self)->on_arrival(e); },
      this);
  loop.set_handler(
      EventKind::departure, [](void* self, const Event& e) { static_cast<Fabric*>(self)->on_departure(e); },
      this);
  loop.set_handler(
      EventKind::pfc, [](void* self, const Event& e) { static_cast<Fabric*>(self)->on_pfc(e); }, this);
  loop.set_prefetch(EventKind::arrival, &ports_base_, sizeof(Port), packets_.base(), sizeof(Packet));
  loop.set_prefetch(EventKind::departure, &ports_base_, sizeof(Port), nullptr, 0);
}

// What can still arrive after the pause is decided: the pause frame waits for one packet that is being sent
// the other way, takes its own time and the link's; meanwhile and until its last bit has come the sender
// fills the link; and the sender finishes the packet it had begun. C (2 t_prop + t_response) + 2 MTU + PFC
// frame, as in the survey of switch guides (papers: headroom >= C (2 t_prop + t_proc) + 2 MTU + 64 B), in
// bytes as buffers count them, plus the packet that crossed the threshold.
Bytes Fabric::computed_headroom(PortId port) const {
  const LinkSpec& link = graph_.port(port).link;
  const LinkSpec& back = graph_.port(port ^ 1U).link;
  __extension__ using Wide = __int128;
  const Time loop_time = link.delay + back.delay + parameters_.pfc_response +
                         transmission_time(mtu_ + kLargestHeader + back.overhead, back.rate) +
                         transmission_time(static_cast<Bytes>(kPfcFrameBytes) + back.overhead, back.rate);
  const Wide in_flight = static_cast<Wide>(loop_time) * link.rate / (8 * kSecond);
  return static_cast<Bytes>(in_flight) + 2 * (mtu_ + kLargestHeader);
}

void Fabric::build_buffers(const ConfigNode& node) {
  std::vector<std::uint32_t> buffer_of_atom(graph_.atom_count(), kNone);
  std::vector<Bytes> set_aside;
  for (PortId id = 0; id < graph_.port_count(); ++id) {
    const PortSpec& spec = graph_.port(id);
    const Node& owner = graph_.node(spec.node);
    if (owner.kind != NodeKind::fabric_switch) continue;
    std::uint32_t& index = buffer_of_atom[owner.atom];
    if (index == kNone) {
      index = static_cast<std::uint32_t>(buffers_.size());
      buffers_.emplace_back();
      set_aside.push_back(0);
    }
    ports_[id].buffer = index;
    ports_[id].flags |= kBuffered;
    Ingress& in = ingress_[id ^ 1U];
    if (parameters_.pfc)
      in.headroom = parameters_.headroom != 0 ? parameters_.headroom : computed_headroom(id ^ 1U);
    set_aside[index] += in.headroom + (parameters_.pfc ? parameters_.reserve : 0);
  }
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (set_aside[i] >= parameters_.buffer) {
      const ConfigNode* given = node.find("buffer");
      (given != nullptr ? *given : node)
          .fail(fmt::format("a switch's buffer of {} B does not hold the headroom and reserves of its links, "
                            "{} B: allowed is "
                            "more than that (or a smaller headroom or reserve)",
                            parameters_.buffer, set_aside[i]));
    }
    buffers_[i].shared_total = parameters_.buffer - set_aside[i];
    buffers_[i].alpha_2_16 = static_cast<std::int64_t>(parameters_.alpha * 65536.0);
  }
}

std::uint32_t Fabric::add_path(const std::vector<std::uint32_t>& steps) {
  const auto first = static_cast<std::uint32_t>(paths_.size());
  paths_.insert(paths_.end(), steps.begin(), steps.end());
  return first;
}

void Fabric::on_arrival(const Event& event) {
  Port& p = ports_[event.target];
  p.digest = digest(p.digest, event);
  enqueue(event.target, static_cast<std::uint32_t>(event.argument));
}

void Fabric::on_departure(const Event& event) {
  Port& p = ports_[event.target];
  p.digest = digest(p.digest, event);
  p.wake = false;
  const std::uint32_t ready = p.waiting & ~static_cast<std::uint32_t>(p.paused);
  if (ready != 0) {
    transmit(event.target, dequeue(event.target, static_cast<std::uint32_t>(std::countr_zero(ready))));
    if ((p.waiting & ~p.paused) != 0 || (p.flags & kHasSource) != 0) wake(event.target);
  } else if ((p.flags & kHasSource) != 0) {
    source_->port_free(event.target);
  }
}

std::uint32_t Fabric::dequeue(PortId port, std::uint32_t priority) {
  Port& p = ports_[port];
  Queue& q = queue(port, priority);
  const std::uint32_t packet = q.head;
  q.head = packets_[packet].next;
  q.bytes -= packets_[packet].bytes;
  if (q.head == kNone) {
    q.tail = kNone;
    p.waiting = static_cast<std::uint8_t>(p.waiting & ~(1U << priority));
  }
  if ((p.flags & kBuffered) != 0) {
    leave_buffer(port, packets_[packet]);
    if (q.bytes > rare_[port].red.kmin && packets_[packet].kind == PacketKind::data) {
      mark(port, packets_[packet], q.bytes);
    }
  }
  return packet;
}

void Fabric::mark(PortId port, Packet& packet, Bytes left) {
  Rare& rare = rare_[port];
  bool marked = left >= rare.red.kmax;
  if (!marked) {
    const double probability = rare.red.pmax * static_cast<double>(left - rare.red.kmin) /
                               static_cast<double>(rare.red.kmax - rare.red.kmin);
    marked = rare.random.uniform() < probability;
  }
  if (!marked) return;
  packet.marked = true;
  ++rare.marks;
}

bool Fabric::admit(PortId port, const Packet& packet) {
  Buffer& buffer = buffers_[ports_[port].buffer];
  if (packet.priority == kControlPriority) return true;
  if (packet.priority == kDataPriority && parameters_.pfc) return admit_lossless(buffer, packet);
  if (queue(port, packet.priority).bytes + packet.bytes > buffer.threshold()) return false;
  buffer.shared_used += packet.bytes;
  return true;
}

bool Fabric::admit_lossless(Buffer& buffer, const Packet& packet) {
  Ingress& in = ingress_[packet.ingress];
  const Bytes size = packet.bytes;
  const Bytes threshold = buffer.threshold();
  const Bytes beyond = std::max<Bytes>(in.used + size - parameters_.reserve, 0);
  if (in.headroom_used == 0 && beyond <= std::max<Bytes>(threshold, 0)) {
    buffer.shared_used += beyond - std::max<Bytes>(in.used - parameters_.reserve, 0);
    in.used += size;
  } else if (in.headroom_used + size <= in.headroom) {
    in.headroom_used += size;
  } else {
    return false;
  }
  if (!in.pausing && (in.headroom_used > 0 || in.used - parameters_.reserve >= buffer.threshold())) {
    in.pausing = true;
    ++pauses_sent_;
    send_pfc(packet.ingress, true);
  }
  return true;
}

void Fabric::leave_buffer(PortId port, const Packet& packet) {
  if (packet.priority == kControlPriority) return;
  Buffer& buffer = buffers_[ports_[port].buffer];
  if (packet.priority != kDataPriority || !parameters_.pfc) {
    buffer.shared_used -= packet.bytes;
    return;
  }
  Ingress& in = ingress_[packet.ingress];
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
    send_pfc(packet.ingress, false);
  }
}

// Sends a PFC frame to the node whose port is to be paused, over that link's other direction.
void Fabric::send_pfc(PortId paused_port, bool pause) {
  const std::uint32_t index = packets_.allocate();
  Packet& frame = packets_[index];
  frame = Packet{};
  frame.bytes = kPfcFrameBytes;
  frame.kind = PacketKind::pfc;
  frame.priority = kControlPriority;
  frame.message = static_cast<std::uint32_t>(kDataPriority) << 1 | (pause ? 1U : 0U);
  enqueue(paused_port ^ 1U, index);
}

void Fabric::on_pfc(const Event& event) {
  Port& p = ports_[event.target];
  p.digest = digest(p.digest, event);
  const auto priority = static_cast<std::uint32_t>(event.argument >> 1);
  Queue& q = queue(event.target, priority);
  Rare& rare = rare_[event.target];
  if ((event.argument & 1) != 0) {
    p.paused = static_cast<std::uint8_t>(p.paused | 1U << priority);
    q.paused_since = loop_.now();
    ++rare.pauses;
    return;
  }
  p.paused = static_cast<std::uint8_t>(p.paused & ~(1U << priority));
  rare.paused_time += loop_.now() - q.paused_since;
  if (p.waiting != 0 || (p.flags & kHasSource) != 0) wake(event.target);
}

void Fabric::drop(PortId port, std::uint32_t packet) {
  ++rare_[port].drops;
  packets_.release(packet);
}

Fabric::Counters Fabric::counters(PortId port) const {
  const Port& p = ports_[port];
  const Rare& rare = rare_[port];
  Counters c;
  c.wire_bytes = p.wire_bytes;
  c.data_packets = p.data_packets;
  c.marks = rare.marks;
  c.drops = rare.drops;
  c.pauses = rare.pauses;
  c.paused = rare.paused_time;
  for (std::uint32_t i = 0; i < kPriorities; ++i) {
    const Queue& q = queue(port, i);
    c.max_queue = std::max(c.max_queue, q.max_bytes);
    if ((p.paused >> i & 1) != 0) c.paused += loop_.now() - q.paused_since;
  }
  return c;
}

std::uint64_t Fabric::events_fingerprint() const {
  std::uint64_t sum = 0;
  for (PortId id = 0; id < ports_.size(); ++id) sum += hash_combine(id, ports_[id].digest);
  return sum;
}

Bytes Fabric::queued(PortId port) const {
  Bytes sum = 0;
  for (std::uint32_t i = 0; i < kPriorities; ++i) sum += queue(port, i).bytes;
  return sum;
}

std::vector<std::string> Fabric::notes() const {
  std::vector<std::string> notes;
  if (!parameters_.pfc || parameters_.headroom == 0) return notes;
  Bytes needed = 0;
  for (PortId id = 0; id < ports_.size(); ++id) {
    if ((ports_[id].flags & kBuffered) != 0) needed = std::max(needed, computed_headroom(id ^ 1U));
  }
  if (parameters_.headroom < needed) {
    notes.push_back(
        fmt::format("PFC headroom of {} B is below the {} B that losslessness needs: drops are possible",
                    parameters_.headroom, needed));
  }
  return notes;
}

std::vector<std::string> Fabric::waiting(std::size_t limit) const {
  std::vector<std::string> lines;
  for (PortId id = 0; id < ports_.size() && lines.size() < limit; ++id) {
    const Bytes bytes = queued(id);
    if (bytes == 0) continue;
    lines.push_back(fmt::format(
        "port {}: {} B wait{}", graph_.port_name(id), bytes,
        ports_[id].paused != 0 ? fmt::format(", paused by {}", graph_.node(graph_.port(id).peer_node).name)
                               : ""));
  }
  return lines;
}

}  // namespace netsim
