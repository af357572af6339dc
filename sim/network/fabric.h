// Fabric: ports, links and output-queued shared-buffer switches, packet by packet.
//
// A packet that meets an idle port starts its transmission at once and costs one event a hop; one that waits
// costs a second, when the port is free again (section 6 of the design). A packet leaves queue, shared buffer
// and ingress count when its transmission starts; ECN is decided there, on what remains in the queue.
//
// Switches (per atom of kind fabric_switch): one shared buffer; a lossless priority's packets count against
// the link they came from: first its reserve, then the shared pool up to alpha x what is free there (dynamic
// threshold, Choudhury and Hahne, ToN 1998), then its headroom. Crossing the threshold sends a PFC pause
// (IEEE 802.1Qbb) upstream, ahead of all waiting packets; falling `resume_offset` below it sends the resume.
// Pauses last until resumed. Priorities that are not lossless share the pool per egress queue and are dropped
// above the threshold.
//
// Ports outside switches (NICs, GPUs, NVSwitch stages) have room for everything.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/event_loop.h"
#include "sim/core/parameters.h"
#include "sim/core/random.h"
#include "sim/network/packet.h"
#include "sim/network/policies.h"
#include "sim/topology/topology.h"

namespace netsim {

// Queues of a port, served strictly in this order.
inline constexpr std::uint32_t kPriorities = 4;
inline constexpr std::uint8_t kControlPriority = 0;  // PFC frames: never paused
inline constexpr std::uint8_t kCnpPriority = 1;      // congestion notifications: lossy, tiny
inline constexpr std::uint8_t kDataPriority = 2;     // data and its acknowledgements: lossless under PFC

// Where a packet goes next, as one number: what kind of event its arrival is, and that event's target.
enum class StepKind : std::uint32_t { port = 0, receive = 1, control = 2, deliver = 3 };
static_assert(static_cast<int>(EventKind::arrival) == 0 && static_cast<int>(EventKind::receive) == 1 &&
              static_cast<int>(EventKind::control) == 2 && static_cast<int>(EventKind::deliver) == 3);
constexpr std::uint32_t make_step(StepKind kind, std::uint32_t target) {
  return static_cast<std::uint32_t>(kind) << 30 | target;
}

struct FabricParameters {
  Bytes buffer = 32 * kMegabyte;
  double alpha = 0.125;
  Bytes reserve = 4096;
  Bytes resume_offset = 3072;
  bool pfc = true;
  Bytes headroom = 0;
  Time pfc_response = 0;
  ConfigNode marker;
  ConfigNode routing;
};
const Parameters<FabricParameters>& fabric_parameters();

// Who makes packets for a port on demand (a NIC).
class PacketSource {
 public:
  virtual ~PacketSource() = default;
  // The port could transmit and nothing waits in it: transmit() one packet, then wake() the port if there are
  // more.
  virtual void port_free(PortId port) = 0;
  // A data packet left the port `port`, which was marked with set_departure_hook().
  virtual void departed(PortId port, Bytes bytes) = 0;
};

class Fabric {
 public:
  // `node`: the section that `parameters` were read from, for messages. `mtu`: the largest payload that the
  // transport puts in a packet. Handles arrival, departure and pfc events. ConfigError if headroom and
  // reserves do not fit in a switch's buffer.
  Fabric(EventLoop& loop, const Graph& graph, const FabricParameters& parameters, const ConfigNode& node,
         Bytes mtu, std::uint64_t seed);
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  void set_source(PacketSource* source) { source_ = source; }
  // Whether the source has packets for this port: only then it is asked, whenever the port has nothing else
  // to send.
  void set_source_ready(PortId port, bool ready) {
    Port& p = ports_[port];
    p.flags = static_cast<std::uint8_t>(ready ? p.flags | kHasSource : p.flags & ~kHasSource);
  }
  void set_departure_hook(PortId port) { ports_[port].flags |= kTellsDepartures; }

  PacketArena& packets() { return packets_; }
  // Adds a path: successive steps; returns the index of its first. Ports first, then what becomes of the
  // packet.
  std::uint32_t add_path(const std::vector<std::uint32_t>& steps);

  // A packet that is at `port`'s node: transmitted at once if it may, else queued (or dropped). Takes the
  // packet over. packet.path must index the step after `port`.
  void enqueue(PortId port, std::uint32_t packet);
  // Transmits a packet made for the free port `port`. Only from PacketSource::port_free or when
  // can_transmit().
  void transmit(PortId port, std::uint32_t packet);
  bool paused(PortId port, std::uint8_t priority) const { return (ports_[port].paused >> priority & 1) != 0; }
  // Makes sure that the port asks for work as soon as it is free.
  void wake(PortId port) {
    Port& p = ports_[port];
    if (p.wake) return;
    p.wake = true;
    loop_.schedule(std::max(loop_.now(), p.busy_until), p.origin, EventKind::departure, port);
  }
  Origin& origin(PortId port) { return ports_[port].origin; }

  // What the routing policy's choices depend on besides the flow; each switch combines it with its node.
  std::uint64_t routing_seed() const { return seed_; }
  const RoutingPolicy& routing() const { return *routing_; }

  // Counters and state, for tables, laws and reports.
  struct Counters {
    Bytes wire_bytes = 0, max_queue = 0;
    std::uint64_t data_packets = 0, marks = 0, drops = 0, pauses = 0;
    Time paused = 0;
  };
  Counters counters(PortId port) const;
  Bytes queued(PortId port) const;
  std::uint64_t pfc_pauses() const { return pauses_sent_; }
  std::uint64_t pfc_resumes() const { return resumes_sent_; }
  std::uint64_t events_fingerprint() const;
  // PFC headroom of the link into `port ^ 1`'s node, by the formula in fabric.cpp.
  Bytes computed_headroom(PortId port) const;
  std::vector<std::string> notes() const;
  std::vector<std::string> waiting(std::size_t limit) const;

  // Digest of an event at an entity: order matters within one entity, entities are added up.
  static std::uint64_t digest(std::uint64_t before, const Event& event) {
    return (before ^ (static_cast<std::uint64_t>(event.time) + event.key)) * 0x9e3779b97f4a7c15ULL +
           event.target;
  }

 private:
  static constexpr std::uint8_t kHasSource = 1, kTellsDepartures = 2, kCutThrough = 4, kBuffered = 8;
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // The part of a port that every packet touches: one cache line.
  struct alignas(64) Port {
    Time busy_until = 0;
    Origin origin;
    std::uint64_t digest = 0;
    Bytes wire_bytes = 0;
    std::uint64_t data_packets = 0;
    Time delay = 0;
    std::uint16_t ps_per_byte = 0;  // 0: the rate does not divide 8 x 10^12; divide
    std::uint16_t overhead = 0;
    std::uint32_t buffer = kNone;  // index in buffers_ of the switch that this port belongs to
    std::uint8_t waiting = 0;      // bit per non-empty queue
    std::uint8_t paused = 0;       // bit per paused priority
    std::uint8_t flags = 0;
    bool wake = false;  // a departure event is pending
    std::uint32_t unused = 0;
  };
  static_assert(sizeof(Port) == 64);
  struct alignas(32) Queue {
    std::uint32_t head = kNone, tail = kNone;
    Bytes bytes = 0, max_bytes = 0;
    Time paused_since = 0;
  };
  // What a switch holds of one link's lossless packets: indexed by the port at the link's far end (who is
  // paused).
  struct alignas(32) Ingress {
    Bytes used = 0;  // reserve and shared pool
    Bytes headroom_used = 0;
    Bytes headroom = 0;  // limit
    bool pausing = false;
  };
  struct alignas(64) Buffer {
    Bytes shared_total = 0, shared_used = 0;
    std::int64_t alpha_2_16 = 0;
    Bytes threshold() const { return ((shared_total - shared_used) * alpha_2_16) >> 16; }
  };
  struct Rare {
    BitRate rate = 0;
    RedLine red;
    RandomStream random;
    std::uint64_t marks = 0, drops = 0, pauses = 0;
    Time paused_time = 0;
  };

  Queue& queue(PortId port, std::uint32_t priority) { return queues_[port * kPriorities + priority]; }
  const Queue& queue(PortId port, std::uint32_t priority) const {
    return queues_[port * kPriorities + priority];
  }
  void build_buffers(const ConfigNode& node);
  void on_arrival(const Event& event);
  void on_departure(const Event& event);
  void on_pfc(const Event& event);
  bool admit(PortId port, const Packet& packet);
  bool admit_lossless(Buffer& buffer, const Packet& packet);
  void leave_buffer(PortId port, const Packet& packet);
  void send_pfc(PortId paused_port, bool pause);
  void mark(PortId port, Packet& packet, Bytes left);
  std::uint32_t dequeue(PortId port, std::uint32_t priority);
  void drop(PortId port, std::uint32_t packet);

  EventLoop& loop_;
  const Graph& graph_;
  FabricParameters parameters_;
  Bytes mtu_;
  std::uint64_t seed_;
  PacketSource* source_ = nullptr;
  std::unique_ptr<RoutingPolicy> routing_;
  PacketArena packets_;
  std::vector<Port> ports_;
  const void* ports_base_ = nullptr;
  std::vector<Queue> queues_;
  std::vector<Ingress> ingress_;
  std::vector<Buffer> buffers_;
  std::vector<Rare> rare_;
  std::vector<std::uint32_t> paths_;
  std::uint64_t pauses_sent_ = 0, resumes_sent_ = 0;
};

// --- the packet path, inline
// -----------------------------------------------------------------------------------------

inline void Fabric::transmit(PortId port, std::uint32_t packet) {
  Port& p = ports_[port];
  Packet& k = packets_[packet];
  const Time now = loop_.now();
  const std::int64_t wire = static_cast<std::int64_t>(k.bytes) + p.overhead;
  const Time busy = p.ps_per_byte != 0 ? wire * p.ps_per_byte : transmission_time(wire, rare_[port].rate);
  p.busy_until = now + busy;
  p.wire_bytes += wire;
  p.data_packets += k.kind == PacketKind::data ? 1 : 0;
  const Time from = (p.flags & kCutThrough) != 0 ? now : now + busy;
  if (k.kind == PacketKind::pfc) [[unlikely]] {
    loop_.schedule(from + p.delay, p.origin, EventKind::pfc, port ^ 1U, k.message);
    packets_.release(packet);
    return;
  }
  k.ingress = port;
  const std::uint32_t step = paths_[k.path++];
  loop_.schedule(from + p.delay, p.origin, static_cast<EventKind>(step >> 30), step & 0x3fffffffU, packet);
  if ((p.flags & kTellsDepartures) != 0 && k.kind == PacketKind::data) source_->departed(port, k.bytes);
}

inline void Fabric::enqueue(PortId port, std::uint32_t packet) {
  Port& p = ports_[port];
  const std::uint8_t priority = packets_[packet].priority;
  if (!p.wake && loop_.now() >= p.busy_until && ((p.waiting & ~p.paused) | (p.paused >> priority & 1)) == 0)
      [[likely]] {
    transmit(port, packet);
    if ((p.flags & kHasSource) != 0) wake(port);
    return;
  }
  if ((p.flags & kBuffered) != 0 && !admit(port, packets_[packet])) [[unlikely]] {
    drop(port, packet);
    return;
  }
  Packet& k = packets_[packet];  // only now: admit() may have made a PFC frame
  Queue& q = queue(port, priority);
  k.next = kNone;
  if (q.head == kNone) {
    q.head = q.tail = packet;
    p.waiting = static_cast<std::uint8_t>(p.waiting | 1U << priority);
  } else {
    packets_[q.tail].next = packet;
    q.tail = packet;
  }
  q.bytes += k.bytes;
  if (q.bytes > q.max_bytes) q.max_bytes = q.bytes;
  if (!p.wake && (p.waiting & ~p.paused) != 0) wake(port);
}

}  // namespace netsim
