// What the parts of a fabric share, as plain arrays: every element belongs to the atom that its port or node
// is of, and only the part with that atom's set changes it while events are executed. Private to the room.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/event.h"
#include "sim/core/parameters.h"
#include "sim/core/random.h"
#include "sim/core/reserved_array.h"
#include "sim/network/arbiter.h"
#include "sim/network/packet.h"
#include "sim/network/policies.h"
#include "sim/topology/partition.h"
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
  Bytes buffer = 0;
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
  Bytes header = 64;
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

namespace fabric {

inline constexpr std::uint32_t kHasSource = 1, kTellsDepartures = 2, kCutThrough = 4, kBuffered = 8,
                               kTelemetry = 16, kFaulty = 32, kCredits = 64, kReturnsCredits = 128,
                               kMarksAtEnqueue = 256, kArbitrated = 512, kCut = 1024, kReadsHeader = 2048,
                               kOnlyLast = 4096;
inline constexpr std::uint32_t kSpecial = kTelemetry | kFaulty | kCredits;
inline constexpr std::uint32_t kNone = UINT32_MAX;

// The two ports of a link are neighbours by number, and may be of two sets, which must not share a cache
// line: arrays of less than a line per port have all even ports first, then all odd ones. Of `ports`, an even
// number.
constexpr std::size_t slot(PortId port, std::size_t ports) { return (port >> 1) + (port & 1U) * (ports / 2); }
constexpr PortId port_of_slot(std::size_t slot, std::size_t ports) {
  return static_cast<PortId>(slot < ports / 2 ? 2 * slot : 2 * (slot - ports / 2) + 1);
}

// The part of a port that every packet touches: one cache line.
struct alignas(64) Port {
  Time busy_until = 0;
  Origin origin;
  std::uint64_t digest = 0;
  Bytes wire_bytes = 0;
  std::uint64_t data_packets = 0;
  Time delay = 0;                 // until the far end handles the packet: link and, at a switch, its latency
  std::uint16_t ps_per_byte = 0;  // 0: the rate does not divide 8 x 10^12; divide
  std::uint16_t overhead = 0;
  std::uint32_t buffer = kNone;  // index in buffers of the switch that this port belongs to
  std::uint8_t waiting = 0;      // bit per non-empty queue
  std::uint8_t paused = 0;       // bit per priority that must not be sent
  bool wake = false;             // a departure event is pending
  std::uint8_t unused = 0;
  std::uint32_t flags = 0;
};
static_assert(sizeof(Port) == 64);
struct alignas(32) Queue {
  std::uint32_t head = kNone, tail = kNone;
  Bytes bytes = 0;
  Bytes max_bytes = 0;  // of all the port's queues, when a packet joined this one
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
  Time header = 0;  // transmission time of what a cut-through switch reads
  RedLine red;
  RandomStream random;
  // Pauses and the time they took: by PFC, or where the link has credits by their want.
  std::uint64_t marks = 0, drops = 0, no_route = 0, cnps = 0, pauses = 0, lost = 0;
  Time paused_time = 0;
  // Busy until the rate last changed, and the bytes up to there.
  Time busy_before = 0;
  Bytes wire_bytes_before = 0;
  double loss = 0;
  RandomStream loss_random;
  // When this direction goes down next; when either does, which is what classes with flow control ask.
  Time next_down = kNever, link_next_down = kNever;
  bool down = false, link_down = false;
  bool abandoned = false;    // known to be down: nothing is held back here
  std::uint8_t unheard = 0;  // bit per priority held back until the far end has said whether it may be sent
  bool cut_through = false;  // as kCutThrough; read by all sets, so it is not beside flags that change
};
struct Credits {
  Bytes left = 0;
  Bytes largest = 0;  // packet: less than this is no credit
  Bytes frame = 0;    // on the wire of what returns credits; 0: carried along, at no cost
  Bytes quantum = 0;  // returned at a time
};
struct RoutedPath {
  NodeId destination = kNoId;
  std::uint32_t step = 0;  // index in paths of the route step; what follows it is for the destination
};

}  // namespace fabric

struct FabricState {
  FabricState(const Graph& graph, const SwitchParameters& parameters);

  // By priority, then port: what packets of one class touch lies close together.
  std::size_t queue_index(PortId port, std::uint32_t priority) const {
    return static_cast<std::size_t>(priority) * ports.size() + fabric::slot(port, ports.size());
  }
  std::uint32_t priority_of_queue(std::size_t index) const {
    return static_cast<std::uint32_t>(index / ports.size());
  }
  PortId port_of_queue(std::size_t index) const {
    return fabric::port_of_slot(index % ports.size(), ports.size());
  }
  fabric::Queue& queue(PortId port, std::uint32_t priority) { return queues[queue_index(port, priority)]; }
  const fabric::Queue& queue(PortId port, std::uint32_t priority) const {
    return queues[queue_index(port, priority)];
  }
  // Of the link that `port` transmits on, at its far end; `priority` of data.
  std::size_t class_index(PortId port, std::uint32_t priority) const {
    return fabric::slot(port, ports.size()) * classes + (priority - kDataPriority);
  }
  bool is_lossless(std::uint32_t priority) const { return (lossless >> priority & 1) != 0; }
  bool at_switch(PortId port) const {
    return graph.node(graph.port(port).node).kind == NodeKind::fabric_switch;
  }
  Bytes queued(PortId port) const;
  // Time to put so many bytes on a wire of this rate, or to pace them, in the network's resolution.
  Time serialisation(Bytes wire, BitRate rate) const {
    const Time exact = transmission_time(wire, rate);
    return resolution == 0 ? exact : (exact + resolution / 2) / resolution * resolution;
  }
  // Time until a switch has read what it needs of a packet to pass it on: its first bytes, or all if it has
  // fewer.
  Time header_time(PortId port, Bytes bytes) const {
    return bytes >= parameters.header ? rare[port].header : transmission_time(bytes, rare[port].rate);
  }
  // Whether packets of this priority go over the link only while both its directions are up: pauses and
  // credits come back over the other one.
  bool needs_both_ways(PortId port, std::uint32_t priority) const {
    return priority >= kDataPriority &&
           (is_lossless(priority) || (ports[port].flags & fabric::kCredits) != 0);
  }

  const Graph& graph;
  SwitchParameters parameters;
  Time resolution = 0;
  std::uint32_t classes = 1;
  std::uint32_t priorities = 3;
  std::uint32_t lossless = 0;  // bit per priority
  std::uint32_t queue_limit = UINT32_MAX;
  PacketRouting packet_routing = PacketRouting::per_flow;
  bool telemetry = false;          // packets have a place for it
  const Routes* routes = nullptr;  // for packets that are routed one by one
  Arbiter arbiter;
  std::vector<fabric::Port> ports;
  std::vector<std::uint32_t> far_set;  // by port: the set of its far end
  std::vector<fabric::Queue> queues;
  std::vector<Time> paused_since;
  std::vector<fabric::Ingress> ingress;
  std::vector<fabric::Credits> credits;  // like ingress; empty where no link has credits
  std::vector<fabric::Buffer> buffers;
  std::vector<fabric::Rare> rare;
  ReservedArray<std::uint32_t> paths;
  ReservedArray<fabric::RoutedPath> routed;
  std::vector<std::uint32_t> turns;   // per node: whose turn it is among equal next hops
  std::vector<RandomStream> choices;  // per node
};

}  // namespace netsim
