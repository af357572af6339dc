// Ports as the packet path sees them: plain data, packed by cache lines.
#pragma once

#include <cstdint>

#include "sim/core/event.h"
#include "sim/core/index.h"
#include "sim/core/units.h"
#include "sim/topology/routes.h"

namespace netsim {

// Priorities of a port: link control (never paused), congestion notifications (lossy, tiny), then the data
// queues, each with its acknowledgements: all classes of virtual channel 0, all of channel 1, ... The first
// two always go first.
inline constexpr std::uint8_t kControlPriority = 0;
inline constexpr std::uint8_t kCnpPriority = 1;
inline constexpr std::uint8_t kDataPriority = 2;  // of class 0 in channel 0

// Where a packet goes next, as one number: what kind of event its arrival is, and that event's target.
enum class StepKind : std::uint32_t { port = 0, receive = 1, control = 2, deliver = 3, route = 4 };
static_assert(static_cast<int>(EventKind::arrival) == 0 && static_cast<int>(EventKind::receive) == 1 &&
              static_cast<int>(EventKind::control) == 2 && static_cast<int>(EventKind::deliver) == 3 &&
              static_cast<int>(EventKind::route) == 4);
inline constexpr unsigned kStepShift = 29;
constexpr std::uint32_t make_step(StepKind kind, std::uint32_t target) {
  return static_cast<std::uint32_t>(kind) << kStepShift | target;
}
// The target of a route step: a destination, which the switch chooses the hop to, or the hop itself, where
// the fabric has virtual channels. A port step keeps the packet in its channel. Or, without kGivenHop, a fan:
// the switch copies the packet or adds it up (switch_fans.h).
inline constexpr std::uint32_t kGivenHop = 1U << 28;
inline constexpr std::uint32_t kFanTarget = 1U << 27;
inline constexpr unsigned kChannelShift = 25;
constexpr std::uint32_t make_hop_step(Hop hop) {
  return make_step(StepKind::route, kGivenHop | hop.channel << kChannelShift | hop.port);
}
constexpr Hop given_hop(std::uint32_t target) {
  return {target & ((1U << kChannelShift) - 1), target >> kChannelShift & 7U};
}
// Whether the step leads to a port, and which.
constexpr bool is_port_step(std::uint32_t step) {
  return step >> kStepShift == static_cast<std::uint32_t>(StepKind::port) ||
         (step >> kStepShift == static_cast<std::uint32_t>(StepKind::route) && (step & kGivenHop) != 0);
}
constexpr PortId port_of_step(std::uint32_t step) {
  return (step & kGivenHop) != 0 ? given_hop(step).port : step;
}

// What a link control frame says to the port it arrives at.
enum class LinkControl : std::uint32_t { resume = 0, pause = 1, credit = 2 };
constexpr std::uint32_t make_link_control(LinkControl what, std::uint32_t priority) {
  return priority << 2 | static_cast<std::uint32_t>(what);
}

// Digest of an event at an entity: order matters within one entity, entities are added up. What the entity
// is called is no part of it.
constexpr std::uint64_t event_digest(std::uint64_t before, const Event& event) {
  return (before ^ (static_cast<std::uint64_t>(event.time) + event.key)) * 0x9e3779b97f4a7c15ULL +
         static_cast<std::uint64_t>(event.kind);
}

namespace fabric {

// Flags of a port. Most packets find none of those set that ask for more than to be sent on.
inline constexpr std::uint32_t kHasSource = 1;         // a NIC's queue pairs have packets for it
inline constexpr std::uint32_t kTellsDepartures = 2;   // its source wants to know of each data packet
inline constexpr std::uint32_t kCutThrough = 4;        // the far end need not have the whole packet
inline constexpr std::uint32_t kBuffered = 8;          // of a switch: what waits takes room in its buffer
inline constexpr std::uint32_t kTelemetry = 16;        // writes INT into data packets
inline constexpr std::uint32_t kFaulty = 32;           // its link is in the fault plan
inline constexpr std::uint32_t kCredits = 64;          // sends only what it has credits for
inline constexpr std::uint32_t kReturnsCredits = 128;  // of a node into which a link has credits
inline constexpr std::uint32_t kMarksAtEnqueue = 256;  // ECN is decided when a packet joins its queue
inline constexpr std::uint32_t kArbitrated = 512;      // its classes are not served in strict order
inline constexpr std::uint32_t kLeavesSet = 1024;      // its far end belongs to another set
inline constexpr std::uint32_t kReadsHeader = 2048;    // cut-through, once a packet's header is there
inline constexpr std::uint32_t kOnlyLast = 4096;       // only a message's last packet matters at the far end
inline constexpr std::uint32_t kEscapes = 8192;  // of a switch that packets may leave by an escape channel
// Those behind PortArbiter::transmit_examined().
inline constexpr std::uint32_t kExamined = kTelemetry | kFaulty | kCredits;

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
  std::uint32_t buffer = kNoIndex;  // index in buffers of the switch that this port belongs to
  std::uint8_t waiting = 0;         // bit per non-empty queue
  std::uint8_t paused = 0;          // bit per priority that must not be sent
  bool wake = false;                // a departure event is pending
  std::uint8_t pressed = 0;  // those of `paused` that the far end holds back; the others wait for light
  std::uint32_t flags = 0;
};
static_assert(sizeof(Port) == 64);
struct alignas(32) Queue {
  std::uint32_t head = kNoIndex, tail = kNoIndex;
  Bytes bytes = 0;
  Bytes max_bytes = 0;  // of all the port's queues, when a packet joined this one
  std::uint32_t packets = 0;
  std::uint32_t mark_above = UINT32_MAX;  // bytes: red.kmin, here so that most packets need not look there
};

}  // namespace fabric

}  // namespace netsim
