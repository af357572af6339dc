// Event: plain data (law 9), ordered by (time, origin, origin's sequence) (law 2).
#pragma once

#include <cstdint>

#include "sim/core/units.h"

namespace netsim {

// EventKind: selects the handler of an event in the event loop. One list holds the kinds of all folders,
// because a kind is part of the event's plain data. A message to another process is the event itself.
enum class EventKind : std::uint32_t {
  arrival,           // target: egress port that the packet wants next, argument: packet
  receive,           // target: queue pair at the destination's NIC, argument: packet
  control,           // target: queue pair at the source's NIC, argument: packet (ACK, NACK, CNP)
  deliver,           // target: queue pair at the destination's GPU, argument: packet
  route,             // target: destination or hop (network/port.h), argument: packet at a switch
  link_control,      // target: port to pause, resume or give credit, argument: see LinkControl
  departure,         // target: port that may transmit again
  pace,              // target: queue pair that may send again
  congestion_timer,  // target: queue pair, argument: timer number
  retransmission,    // target: queue pair, argument: 0; or argument: 1 + the timer's place in the TimerQueue
  ideal_delivery,    // target: destination GPU, argument: message
  executor,          // target: GPU, argument: see ExecutorEvents
  compute_done,      // target: device of ComputeDevices, argument: number of the scheduled end
  job,               // target: rank of the run, argument: slot of the task in its job
  notice,            // remote events only: information for the far end of a queue pair; target: queue pair
  reply_timer,       // target: queue pair at the destination's NIC, whose reliability holds a reply back
  count
};

struct Event {
  Time time;
  std::uint64_t key;  // origin << 40 | sequence; gives the order within one time (law 2)
  std::uint32_t target;
  EventKind kind;
  std::uint64_t argument;
};
static_assert(sizeof(Event) == 32);

inline bool before(const Event& a, const Event& b) {
  return a.time < b.time || (a.time == b.time && a.key < b.key);
}

// Origin: gives out the (origin, sequence) keys of one entity. Every entity that schedules events holds one.
// Its id is below 2^24 and unique among entities.
class Origin {
 public:
  Origin() = default;
  explicit Origin(std::uint32_t id) : next_(static_cast<std::uint64_t>(id) << 40) {}
  std::uint64_t next_key() { return next_++; }

 private:
  std::uint64_t next_ = 0;
};

}  // namespace netsim
