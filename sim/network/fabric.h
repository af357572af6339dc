// Fabric: ports, links and output-queued shared-buffer switches, packet by packet.
//
// A packet that meets an idle port starts its transmission at once and costs one event a hop; one that waits
// costs a second, when the port is free again (section 6 of the design). A packet leaves queue, shared buffer
// and ingress count when its transmission starts; what is decided at dequeue (ECN, INT) sees what remains
// then.
//
// Switches (per atom of kind fabric_switch) have one of three kinds of flow control:
//  pfc      one shared buffer; a lossless class's packets count against the link they came from: first its
//           reserve, then the shared pool up to alpha x what is free there (dynamic threshold, Choudhury and
//           Hahne, ToN 1998), then its headroom. Crossing the threshold sends a PFC pause (IEEE 802.1Qbb)
//           upstream, ahead of all waiting packets; falling `resume_offset` below it sends the resume. Pauses
//           last until resumed.
//  credits  a buffer for each link and class; a sender transmits only what it holds credits for and gets them
//           back when packets leave the buffer (InfiniBand Architecture Specification 1.4, volume 1,
//           section 7.9). Nothing is ever dropped.
//  none     classes share the pool per egress queue and are dropped above the threshold, as are the classes
//  that
//           are not lossless under pfc.
//
// Ports outside switches (NICs, GPUs, NVSwitch stages) have room for everything, unless their links carry
// credits.
//
// Parts: fabric.cpp (building, events), shared_buffer.cpp (admission, PFC, credits, ECN), packet_routing.cpp,
// link_faults.cpp, fabric_reports.cpp (counters, notes, deadlock).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/event_loop.h"
#include "sim/core/parameters.h"
#include "sim/core/random.h"
#include "sim/network/arbiter.h"
#include "sim/network/counters.h"
#include "sim/network/faults.h"
#include "sim/network/packet.h"
#include "sim/network/policies.h"
#include "sim/topology/topology.h"

namespace netsim {

// Priorities of a port: link control (never paused), congestion notifications (lossy, tiny), then the data
// classes, each with its acknowledgements. The first two always go first.
inline constexpr std::uint8_t kControlPriority = 0;
inline constexpr std::uint8_t kCnpPriority = 1;
inline constexpr std::uint8_t kDataPriority = 2;  // of class 0

// Where a packet goes next, as one number: what kind of event its arrival is, and that event's target.
enum class StepKind : std::uint32_t { port = 0, receive = 1, control = 2, deliver = 3, route = 4 };
static_assert(static_cast<int>(EventKind::arrival) == 0 && static_cast<int>(EventKind::receive) == 1 &&
              static_cast<int>(EventKind::control) == 2 && static_cast<int>(EventKind::deliver) == 3 &&
              static_cast<int>(EventKind::route) == 4);
inline constexpr unsigned kStepShift = 29;
constexpr std::uint32_t make_step(StepKind kind, std::uint32_t target) {
  return static_cast<std::uint32_t>(kind) << kStepShift | target;
}

// What a link control frame says to the port it arrives at.
enum class LinkControl : std::uint32_t { resume = 0, pause = 1, credit = 2 };
constexpr std::uint32_t make_link_control(LinkControl what, std::uint32_t priority) {
  return priority << 2 | static_cast<std::uint32_t>(what);
}

enum class FlowControl : std::uint8_t { pfc, credits, none };
enum class Forwarding : std::uint8_t { store_and_forward, cut_through };

// The section `network.switch`.
struct SwitchParameters {
  Bytes buffer = 32 * kMegabyte;
  double alpha = 0.125;
  Bytes reserve = 4096;
  Bytes resume_offset = 3072;
  FlowControl flow_control = FlowControl::pfc;
  Bytes headroom = 0;
  Time pfc_response = 0;
  Bytes pfc_frame = 64;
  Bytes credit_buffer = 0;
  std::int64_t classes = 1;
  ConfigNode lossless;
  ConfigNode scheduler;
  ConfigNode marker;
  ConfigNode routing;
  Forwarding forwarding = Forwarding::store_and_forward;
  Time latency = 0;
  std::int64_t queue_limit = 0;
};

// The section `network`.
struct FabricParameters {
  SwitchParameters switches;
  ConfigNode faults;
  Time detection_delay = 100 * kMicrosecond;
  Time transmission_resolution = 0;
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
  // A link went down or came back `detection_delay` ago: down_ports() tells which are to be avoided.
  virtual void routes_changed() = 0;
};

class Fabric {
 public:
  // `node`: the section that `parameters` were read from, for messages. `largest_packet`: payload and headers
  // of the largest packet that the transport makes. ConfigError for what does not fit together (headroom and
  // reserves beyond the buffer, unknown links in `faults`).
  Fabric(EventLoop& loop, const Graph& graph, const FabricParameters& parameters, const ConfigNode& node,
         Bytes largest_packet, std::uint64_t seed);
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  void set_source(PacketSource* source) { source_ = source; }
  // Next hops for packets that are routed one by one; must outlive the fabric or the next call.
  void set_routes(const Routes* routes) { routes_ = routes; }
  // Whether the source has packets for this port: only then it is asked, whenever the port has nothing else
  // to send.
  void set_source_ready(PortId port, bool ready) {
    Port& p = ports_[port];
    p.flags = ready ? p.flags | kHasSource : p.flags & ~kHasSource;
  }
  void set_departure_hook(PortId port) { ports_[port].flags |= kTellsDepartures; }
  // Switches write INT into data packets from now on; before the first packet.
  void enable_telemetry();
  // Packets have a place for time stamps only.
  void enable_timestamps() { packets_.enable_telemetry(); }

  PacketArena& packets() { return packets_; }
  std::uint32_t classes() const { return classes_; }
  // The priority that congestion notifications travel in: with credits there is none without flow control.
  std::uint8_t cnp_priority() const {
    return parameters_.flow_control == FlowControl::credits ? kDataPriority : kCnpPriority;
  }
  // Adds a path: successive steps; returns the index of its first. Ports first, then what becomes of the
  // packet.
  std::uint32_t add_path(const std::vector<std::uint32_t>& steps);
  // The ports at the beginning of the path that begins at `first`. Valid until a path is added.
  std::span<const PortId> ports_of_path(std::uint32_t first) const;
  // A step after which every switch chooses the next hop of every packet, until the NIC `destination`, where
  // the steps after this one follow. The path has the source's port before it. set_route_step() says where in
  // the paths the step lies, before a packet takes it. Only where routes_packets().
  std::uint32_t route_step(NodeId destination);
  void set_route_step(std::uint32_t step, std::uint32_t index);
  bool routes_packets() const { return packet_routing_ != PacketRouting::per_flow; }

  // A packet that is at `port`'s node: transmitted at once if it may, else queued (or dropped). Takes the
  // packet over. packet.path must index the step after `port`.
  void enqueue(PortId port, std::uint32_t packet);
  // Transmits a packet made for the free port `port`. Only from PacketSource::port_free or when
  // can_transmit().
  void transmit(PortId port, std::uint32_t packet);
  // Whether a priority must not be sent: PFC pause or too few credits.
  bool paused(PortId port, std::uint8_t priority) const { return (ports_[port].paused >> priority & 1) != 0; }
  // Makes sure that the port asks for work as soon as it is free.
  void wake(PortId port) {
    Port& p = ports_[port];
    if (p.wake) return;
    p.wake = true;
    loop_.schedule(std::max(loop_.now(), p.busy_until), p.origin, EventKind::departure, port);
  }
  // A congestion notification is about to leave by this port, alone or in an ACK.
  void count_cnp(PortId port) { ++rare_[port].cnps; }
  Origin& origin(PortId port) { return ports_[port].origin; }
  Bytes overhead(PortId port) const { return ports_[port].overhead; }
  // Time to put so many bytes on a wire of this rate, or to pace them, in the network's resolution.
  Time serialisation(Bytes wire, BitRate rate) const {
    const Time exact = transmission_time(wire, rate);
    return resolution_ == 0 ? exact : (exact + resolution_ / 2) / resolution_ * resolution_;
  }
  // The NIC's own choice among its classes, by the switches' scheduler: `ready`, bit per class, of which at
  // least one is not paused; `head(c)`: bytes of the packet that class c would send.
  template <class Head>
  std::uint32_t select_class(PortId port, std::uint32_t ready, Head head) {
    return arbiter_.select(port, ready, head);
  }
  void class_emptied(PortId port, std::uint32_t traffic_class) { arbiter_.emptied(port, traffic_class); }
  // Bit per data class that must not be sent.
  std::uint32_t paused_classes(PortId port) const {
    return static_cast<std::uint32_t>(ports_[port].paused) >> kDataPriority;
  }

  // What the routing policy's choices depend on besides the flow; each switch combines it with its node.
  std::uint64_t routing_seed() const { return seed_; }
  const RoutingPolicy& routing() const { return *routing_; }
  // Ports of links that are known to be down.
  const std::vector<bool>& down_ports() const { return known_down_; }
  // Time from handing the first of a message's packets to the idle first port of `path` until the last has
  // arrived behind the last port: `full` packets of `full_bytes` after a first of `first_bytes`, the last of
  // `last_bytes` (as buffers count them). `packets` > 0.
  Time ideal_time(std::span<const PortId> path, std::uint64_t packets, Bytes first_bytes, Bytes full_bytes,
                  Bytes last_bytes) const;

  // Counters and state, for tables, laws and reports.
  PortCounters counters(PortId port) const;
  Bytes queued(PortId port) const;
  std::uint64_t pfc_pauses() const { return pauses_sent_; }
  std::uint64_t pfc_resumes() const { return resumes_sent_; }
  std::uint64_t events_fingerprint() const;
  // PFC headroom of the link into `port ^ 1`'s node, by the formula in shared_buffer.cpp.
  Bytes computed_headroom(PortId port) const;
  std::vector<std::string> notes() const;
  std::vector<std::string> waiting(std::size_t limit) const;
  // Ports that wait for each other in a circle, so that no packet in them can ever move; empty while there
  // are none. Found at most 1 ms (or 4 times the longest link's delay) after the last of them was paused,
  // when the event loop is stopped.
  const std::vector<PortId>& deadlock() const { return deadlock_; }

  // Digest of an event at an entity: order matters within one entity, entities are added up.
  static std::uint64_t digest(std::uint64_t before, const Event& event) {
    return (before ^ (static_cast<std::uint64_t>(event.time) + event.key)) * 0x9e3779b97f4a7c15ULL +
           event.target;
  }

 private:
  static constexpr std::uint32_t kHasSource = 1, kTellsDepartures = 2, kCutThrough = 4, kBuffered = 8,
                                 kTelemetry = 16, kFaulty = 32, kCredits = 64, kReturnsCredits = 128,
                                 kMarksAtEnqueue = 256, kArbitrated = 512;
  static constexpr std::uint32_t kSpecial = kTelemetry | kFaulty | kCredits;
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // The part of a port that every packet touches: one cache line.
  struct alignas(64) Port {
    Time busy_until = 0;
    Origin origin;
    std::uint64_t digest = 0;
    Bytes wire_bytes = 0;
    std::uint64_t data_packets = 0;
    Time delay = 0;  // until the far end handles the packet: link and, at a switch, its latency
    std::uint16_t ps_per_byte = 0;  // 0: the rate does not divide 8 x 10^12; divide
    std::uint16_t overhead = 0;
    std::uint32_t buffer = kNone;  // index in buffers_ of the switch that this port belongs to
    std::uint8_t waiting = 0;      // bit per non-empty queue
    std::uint8_t paused = 0;       // bit per priority that must not be sent
    bool wake = false;             // a departure event is pending
    std::uint8_t unused = 0;
    std::uint32_t flags = 0;
  };
  static_assert(sizeof(Port) == 64);
  struct alignas(32) Queue {
    std::uint32_t head = kNone, tail = kNone;
    Bytes bytes = 0, max_bytes = 0;
    std::uint32_t packets = 0;
    std::uint32_t mark_above = UINT32_MAX;  // bytes: red.kmin, here so that most packets need not look there
  };
  // What a node holds of one link's packets of one class: indexed by the port at the link's far end (who is
  // paused or given credits).
  struct alignas(32) Ingress {
    Bytes used = 0;           // pfc: reserve and shared pool; credits: what waits
    Bytes headroom_used = 0;  // credits: freed and not yet returned
    Bytes headroom = 0;       // limit; credits: the whole buffer
    std::uint32_t max_headroom_used = 0;
    bool pausing = false;
  };
  struct alignas(64) Buffer {
    Bytes shared_total = 0, shared_used = 0;
    std::int64_t alpha_2_16 = 0;
    Bytes free() const { return shared_total - shared_used; }
    Bytes threshold() const { return (free() * alpha_2_16) >> 16; }
  };
  struct Rare {
    BitRate rate = 0;
    Time link_delay = 0;
    RedLine red;
    RandomStream random;
    std::uint64_t marks = 0, drops = 0, cnps = 0, pauses = 0, lost = 0;
    Time paused_time = 0;
    double loss = 0;
    RandomStream loss_random;
    Time next_down = kNever;
    bool down = false;
    std::uint8_t watched = 0;  // bit per priority with a watch event pending
  };
  struct Credits {
    Bytes left = 0;
    Bytes largest = 0;  // packet: less than this is no credit
    Bytes frame = 0;    // on the wire of what returns credits; 0: carried along, at no cost
    Bytes quantum = 0;  // returned at a time
  };
  struct RoutedPath {
    NodeId destination = kNoId;
    std::uint32_t step = 0;  // index in paths_ of the route step; what follows it is for the destination
  };

  // By priority, then port: what packets of one class touch lies close together.
  std::size_t queue_index(PortId port, std::uint32_t priority) const {
    return static_cast<std::size_t>(priority) * ports_.size() + port;
  }
  Queue& queue(PortId port, std::uint32_t priority) { return queues_[queue_index(port, priority)]; }
  const Queue& queue(PortId port, std::uint32_t priority) const {
    return queues_[queue_index(port, priority)];
  }
  // Of the link that `port` transmits on, at its far end; `priority` of data.
  std::size_t class_index(PortId port, std::uint32_t priority) const {
    return static_cast<std::size_t>(port) * classes_ + (priority - kDataPriority);
  }
  Time& paused_since(PortId port, std::uint32_t priority) {
    return paused_since_[queue_index(port, priority)];
  }
  bool lossless(std::uint32_t priority) const { return (lossless_ >> priority & 1) != 0; }
  bool at_switch(PortId port) const {
    return graph_.node(graph_.port(port).node).kind == NodeKind::fabric_switch;
  }

  void set_handlers();
  void build_port(PortId port, const Marker& marker);
  void build_classes(const ConfigNode& node);
  void build_buffers(const ConfigNode& node);
  void build_credits(const ConfigNode& node);
  void set_rate(PortId port, BitRate rate);
  void set_forwarding(PortId port);
  bool transmit_special(PortId port, std::uint32_t packet, std::int64_t wire, Time arrival);
  void on_arrival(const Event& event);
  void on_departure(const Event& event);
  void on_link_control(const Event& event);
  void set_paused(PortId port, std::uint32_t priority);
  void set_running(PortId port, std::uint32_t priority);
  std::uint32_t dequeue(PortId port, std::uint32_t priority);
  void drop(PortId port, std::uint32_t packet);

  // shared_buffer.cpp
  bool admit(PortId port, const Packet& packet);
  bool admit_lossless(Buffer& buffer, const Packet& packet);
  void leave_buffer(PortId port, const Packet& packet);
  void leave_lossless(Buffer& buffer, const Packet& packet);
  void send_pfc(PortId paused_port, std::uint32_t priority, bool pause);
  void send_control(PortId to, std::uint32_t message, std::uint32_t credit, Bytes frame);
  void mark(PortId port, Packet& packet, Bytes queue_bytes);
  void consume_credit(PortId port, std::uint32_t priority, Bytes bytes);
  void transmit_and_return_credit(PortId port, std::uint32_t packet);
  void return_credit(PortId port, std::uint32_t priority, Bytes bytes);
  void receive_credit(PortId port, std::uint32_t priority, Bytes bytes);

  // packet_routing.cpp
  void on_route(const Event& event);
  PortId choose_port(NodeId node, std::span<const PortId> hops, std::uint8_t priority);
  PortId least_loaded(std::span<const PortId> hops, std::uint32_t first, std::uint8_t priority) const;

  // link_faults.cpp
  void build_faults(std::uint64_t seed);
  void on_link_state(const Event& event);
  void take_down(PortId port);
  void bring_up(PortId port);
  Time next_down(PortId port, Time after) const;

  // fabric_reports.cpp
  void watch(PortId port, std::uint32_t priority);
  void on_watch(const Event& event);
  bool find_deadlock();
  std::vector<bool> stuck_queues() const;
  std::vector<PortId> waits_for(PortId port, std::uint32_t priority) const;

  EventLoop& loop_;
  const Graph& graph_;
  SwitchParameters parameters_;
  Time detection_delay_;
  Time resolution_;
  Bytes largest_packet_;
  std::uint64_t seed_;
  PacketSource* source_ = nullptr;
  const Routes* routes_ = nullptr;
  std::unique_ptr<RoutingPolicy> routing_;
  PacketRouting packet_routing_ = PacketRouting::per_flow;
  std::uint32_t classes_ = 1;
  std::uint32_t priorities_ = 3;
  std::uint32_t lossless_ = 0;  // bit per priority
  std::uint32_t queue_limit_ = UINT32_MAX;
  Arbiter arbiter_;
  PacketArena packets_;
  std::vector<Port> ports_;
  const void* ports_base_ = nullptr;
  const void* data_queues_base_ = nullptr;  // of class 0
  std::vector<Queue> queues_;
  std::vector<Time> paused_since_;
  std::vector<Ingress> ingress_;
  std::vector<Credits> credits_;  // like ingress_; empty where no link has credits
  std::vector<Buffer> buffers_;
  std::vector<Rare> rare_;
  std::vector<std::uint32_t> paths_;
  std::vector<RoutedPath> routed_;
  std::vector<std::uint32_t> turns_;   // per node: whose turn it is among equal next hops
  std::vector<RandomStream> choices_;  // per node
  FaultPlan faults_;
  std::vector<bool> known_down_;
  std::vector<PortId> deadlock_;
  Time watch_after_ = 1 * kMillisecond;
  Time searched_ = 0;  // when a deadlock was last looked for
  std::uint64_t pauses_sent_ = 0, resumes_sent_ = 0;
};

// --- the packet path, inline
// -----------------------------------------------------------------------------------------

inline void Fabric::transmit(PortId port, std::uint32_t packet) {
  Port& p = ports_[port];
  Packet& k = packets_[packet];
  const Time now = loop_.now();
  const std::int64_t wire = static_cast<std::int64_t>(k.bytes) + p.overhead;
  const Time busy = p.ps_per_byte != 0 ? wire * p.ps_per_byte : serialisation(wire, rare_[port].rate);
  p.busy_until = now + busy;
  p.wire_bytes += wire;
  p.data_packets += k.kind == PacketKind::data ? 1 : 0;
  const Time from = (p.flags & kCutThrough) != 0 ? now : now + busy;
  if ((p.flags & kSpecial) != 0 && !transmit_special(port, packet, wire, from + p.delay)) [[unlikely]]
    return;
  if (k.kind == PacketKind::link_control) [[unlikely]] {
    loop_.schedule(now + busy + rare_[port].link_delay, p.origin, EventKind::link_control, port ^ 1U,
                   static_cast<std::uint64_t>(k.psn) << 8 | k.message);
    packets_.release(packet);
    return;
  }
  k.ingress = port;
  const std::uint32_t step = paths_[k.path++];
  loop_.schedule(from + p.delay, p.origin, static_cast<EventKind>(step >> kStepShift),
                 step & ((1U << kStepShift) - 1), packet);
  if ((p.flags & kTellsDepartures) != 0 && k.kind == PacketKind::data) source_->departed(port, k.bytes);
}

inline void Fabric::enqueue(PortId port, std::uint32_t packet) {
  Port& p = ports_[port];
  const std::uint8_t priority = packets_[packet].priority;
  if (!p.wake && loop_.now() >= p.busy_until && ((p.waiting & ~p.paused) | (p.paused >> priority & 1)) == 0)
      [[likely]] {
    if ((p.flags & kReturnsCredits) != 0) [[unlikely]] {
      transmit_and_return_credit(port, packet);
    } else {
      transmit(port, packet);
    }
    if ((p.flags & kHasSource) != 0) wake(port);
    return;
  }
  if ((p.flags & kBuffered) != 0 && !admit(port, packets_[packet])) [[unlikely]] {
    drop(port, packet);
    return;
  }
  Packet& k = packets_[packet];  // only now: admit() may have made a PFC frame
  Queue& q = queue(port, priority);
  if ((p.flags & kMarksAtEnqueue) != 0 && q.bytes > q.mark_above && k.kind == PacketKind::data) {
    mark(port, k, q.bytes);
  }
  k.next = kNone;
  if (q.head == kNone) {
    q.head = q.tail = packet;
    p.waiting = static_cast<std::uint8_t>(p.waiting | 1U << priority);
  } else {
    packets_[q.tail].next = packet;
    q.tail = packet;
  }
  ++q.packets;
  q.bytes += k.bytes;
  if (q.bytes > q.max_bytes) q.max_bytes = q.bytes;
  if (!p.wake && (p.waiting & ~p.paused) != 0) wake(port);
}

}  // namespace netsim
