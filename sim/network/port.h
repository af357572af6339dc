// Port and Queue: the data of ports that every packet uses, packed by cache lines.
#pragma once

#include <cstdint>

#include "sim/core/event.h"
#include "sim/core/index.h"
#include "sim/core/units.h"
#include "sim/topology/routes.h"

namespace netsim {

// Priorities of a port: link control (never paused), congestion notifications (lossy and small), then the
// data queues, which also carry acknowledgements. Data queues are ordered by virtual channel, then class. The
// first two priorities always go first.
inline constexpr std::uint8_t kControlPriority = 0;
inline constexpr std::uint8_t kCnpPriority = 1;
inline constexpr std::uint8_t kDataPriority = 2;  // class 0 in virtual channel 0

// A step: the event kind of a packet's next arrival and that event's target, in one number.
enum class StepKind : std::uint32_t { port = 0, receive = 1, control = 2, deliver = 3, route = 4 };
static_assert(static_cast<int>(EventKind::arrival) == 0 && static_cast<int>(EventKind::receive) == 1 &&
              static_cast<int>(EventKind::control) == 2 && static_cast<int>(EventKind::deliver) == 3 &&
              static_cast<int>(EventKind::route) == 4);
inline constexpr unsigned kStepShift = 29;
constexpr std::uint32_t make_step(StepKind kind, std::uint32_t target) {
  return static_cast<std::uint32_t>(kind) << kStepShift | target;
}
// The target of a route step has one of three forms. Without a flag it is a destination, to which the switch
// chooses the hop. With kGivenHop it is a hop, where the fabric has virtual channels; a port step instead
// keeps the packet's channel.
//
// With kAggregationTarget and without kGivenHop it is a multicast or reduction at the switch
// (switch_aggregations.h).
inline constexpr std::uint32_t kGivenHop = 1U << 28;
inline constexpr std::uint32_t kAggregationTarget = 1U << 27;
inline constexpr unsigned kChannelShift = 25;
constexpr std::uint32_t make_hop_step(Hop hop) {
  return make_step(StepKind::route, kGivenHop | hop.channel << kChannelShift | hop.port);
}
constexpr Hop given_hop(std::uint32_t target) {
  return {target & ((1U << kChannelShift) - 1), target >> kChannelShift & 7U};
}
// is_port_step() returns whether the step leads to a port, port_of_step() which port.
constexpr bool is_port_step(std::uint32_t step) {
  return step >> kStepShift == static_cast<std::uint32_t>(StepKind::port) ||
         (step >> kStepShift == static_cast<std::uint32_t>(StepKind::route) && (step & kGivenHop) != 0);
}
constexpr PortId port_of_step(std::uint32_t step) {
  return (step & kGivenHop) != 0 ? given_hop(step).port : step;
}

// The meaning of a link control frame for the port that receives it.
enum class LinkControl : std::uint32_t { resume = 0, pause = 1, credit = 2 };
constexpr std::uint32_t make_link_control(LinkControl what, std::uint32_t priority) {
  return priority << 2 | static_cast<std::uint32_t>(what);
}

// Returns the digest of an entity's events, extended by one. Order matters within an entity; digests of
// several entities are added. The entity's index is not part of it.
constexpr std::uint64_t event_digest(std::uint64_t before, const Event& event) {
  return (before ^ (static_cast<std::uint64_t>(event.time) + event.key)) * 0x9e3779b97f4a7c15ULL +
         static_cast<std::uint64_t>(event.kind);
}

namespace fabric {

// Flags of a port. Most packets find none of the flags in kExamined set.
inline constexpr std::uint32_t kHasSource = 1;  // the source (queue pairs of a NIC) has packets for the port
inline constexpr std::uint32_t kTellsDepartures = 2;  // the source is notified of each data packet
inline constexpr std::uint32_t kCutThrough = 4;  // the far end may forward a packet before it has all of it
inline constexpr std::uint32_t kBuffered = 8;    // a switch's port: waiting packets take space in its buffer
inline constexpr std::uint32_t kTelemetry = 16;  // the port writes INT into data packets
inline constexpr std::uint32_t kFaulty = 32;     // the link is in the fault schedule
inline constexpr std::uint32_t kCredits = 64;    // the port sends only while it has credits
inline constexpr std::uint32_t kReturnsCredits = 128;  // the port's node has a link with credits into it
inline constexpr std::uint32_t kMarksAtEnqueue = 256;  // ECN is decided when a packet joins its queue
inline constexpr std::uint32_t kArbitrated = 512;      // classes are not served in strict order
inline constexpr std::uint32_t kLeavesSet = 1024;      // the far end is in another logical process
inline constexpr std::uint32_t kReadsHeader = 2048;    // cut-through after the header has arrived
inline constexpr std::uint32_t kOnlyLast = 4096;       // only a message's last packet matters at the far end
inline constexpr std::uint32_t kEscapes = 8192;        // packets may leave by an escape channel (switches)
inline constexpr std::uint32_t kOwnScheduler = 16384;  // a PortScheduler orders the waiting packets
inline constexpr std::uint32_t kOwnMarker = 32768;     // a PortMarker decides about ECN
// Flags that PortArbiter::transmit_examined() handles.
inline constexpr std::uint32_t kExamined = kTelemetry | kFaulty | kCredits;

// slot() returns a port's place in an array that has all even ports first, then all odd ones. `ports`, an
// even number, is the array's size. The two ports of a link have neighbouring numbers and may be in different
// logical processes.
//
// Arrays with less than a cache line per port use this order so that two such ports share no line.
constexpr std::size_t slot(PortId port, std::size_t ports) { return (port >> 1) + (port & 1U) * (ports / 2); }
constexpr PortId port_of_slot(std::size_t slot, std::size_t ports) {
  return static_cast<PortId>(slot < ports / 2 ? 2 * slot : 2 * (slot - ports / 2) + 1);
}

// The part of a port that every packet uses: one cache line.
struct alignas(64) Port {
  Time busy_until = 0;
  Origin origin;
  std::uint64_t digest = 0;
  Bytes wire_bytes = 0;
  std::uint64_t data_packets = 0;
  // The link's delay, plus the latency of a switch at the far end.
  Time delay = 0;
  std::uint16_t ps_per_byte = 0;  // transmission time of a byte, ps; 0 if it is not a whole number
  std::uint16_t overhead = 0;
  std::uint32_t buffer = kNoIndex;  // index in FabricState::buffers of the port's switch
  std::uint8_t waiting = 0;         // bit per non-empty queue
  std::uint8_t paused = 0;          // bit per priority that must not be sent
  bool wake = false;                // a departure event is pending
  // The bits of `paused` that the far end holds back, by PFC pause or for lack of credits. The others are set
  // because the port's circuit is down.
  std::uint8_t paused_by_peer = 0;
  std::uint32_t flags = 0;
};
static_assert(sizeof(Port) == 64);
struct alignas(32) Queue {
  // First and last packet. With kOwnScheduler packets are in PortQueues, and a data queue's head only says
  // whether it holds any.
  std::uint32_t head = kNoIndex, tail = kNoIndex;
  Bytes bytes = 0;
  Bytes max_bytes = 0;  // largest total of all the port's queues when a packet joined this one
  std::uint32_t packets = 0;
  // Bytes (red.kmin) above which packets may be marked. It is kept here so that most packets need not read
  // RedLine.
  std::uint32_t mark_above = UINT32_MAX;
};

}  // namespace fabric

}  // namespace netsim
