// SlotArbiter: Fastpass' arbiter for a network whose paths have different delays. It allocates one slot after
// the other, and gives each flow that it serves a path.
//
// Each slot is a maximal matching of sources and destinations, and edge colours spread its flows over the
// fabric (fastpass.h). Packets of different slots may come to a port at the same time, because paths have
// different lengths. Each port of a path is therefore reserved for the time for which the packets need it. A
// flow is served only on a path whose ports are all free then, so no packet meets another one at a port.
//
// Proof: a packet that finds all ports of its path idle passes each at the times that were reserved. Take the
// first packet that finds a port busy. The one that it meets never waited, so it is there at its reserved
// time. Then the two reservations of the port overlap, which contradicts is_free().
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sim/core/units.h"
#include "sim/scheduling/flow/rules/fastpass.h"

namespace netsim {

// SlotStep: a port of a path with the time for which the packets of a slot need it. Both times count from
// when the source begins to send, ps.
struct SlotStep {
  std::uint32_t port = 0;
  Time begin = 0, end = 0;
};

struct SlotPath {
  std::vector<SlotStep> steps;  // empty: the path is not known, and is always free
  ClosPath place;               // uplinks of the path; none of its fields counts where the ends' rack is one
};

// SlotTurn: what the arbiter keeps of a flow from one slot to the next. The caller stores it.
struct SlotTurn {
  std::uint32_t blocked = 0;      // slots in a row in which it was asked and had no free path
  Time booked = kNever;           // begin of the slot that is booked for it
  std::uint32_t booked_path = 0;  // by index
};

struct SlotFlow : SlotDemand {
  std::span<const SlotPath> paths;           // at least one
  std::uint32_t from_rack = 0, to_rack = 0;  // below the size of `pod_of`
  SlotTurn* turn = nullptr;
};

// SlotGrant: a flow that is served in a slot, and its path, by indices.
struct SlotGrant {
  std::uint32_t flow = 0, path = 0;
};

// PortCalendar: the times for which ports are reserved.
class PortCalendar {
 public:
  // Returns whether all ports of the path are free if the source begins to send at `begin`.
  bool is_free(std::span<const SlotStep> path, Time begin) const;
  void reserve(std::span<const SlotStep> path, Time begin);
  // Takes back a reservation.
  void cancel(std::span<const SlotStep> path, Time begin);
  // Forgets reservations that are over at `now`, of ports that are reserved later.
  void set_now(Time now) { now_ = now; }
  // Returns when the last reservation ends; 0: there was none.
  Time last_end() const { return last_end_; }

 private:
  struct Reservation {
    Time begin, end;
    bool operator==(const Reservation&) const = default;
  };
  std::vector<std::vector<Reservation>> ports_;
  Time now_ = 0, last_end_ = 0;
};

class SlotArbiter {
 public:
  // Returns the flows that are served in the slot from `now` to `now + length`. Slots must be asked for in
  // the order of time. `interfaces` is above all numbers of ends, and `pod_of` has the pod of each rack.
  //
  // A flow that is not served has a busy end, or needs a port that is reserved. If the second happens for as
  // long as reservations reach, the first slot in which it can be served is booked for it. So each flow is
  // served in the end, if flows before it in the order leave its ends free.
  std::vector<SlotGrant> serve(Time now, Time length, std::span<const SlotFlow> flows,
                               std::uint32_t interfaces, std::span<const std::uint32_t> pod_of,
                               SlotOrder order);

 private:
  static constexpr std::uint32_t kNoPath = UINT32_MAX;

  bool ends_are_free(const SlotFlow& flow) const;
  void set_ends(const SlotFlow& flow, bool busy);
  std::uint32_t free_path(const SlotFlow& flow, Time begin) const;
  void grant(std::span<const SlotFlow> flows, std::uint32_t flow, std::uint32_t path);
  void serve_booked(std::span<const SlotFlow> flows);
  void match(std::span<const SlotFlow> flows, std::span<const std::uint32_t> order);
  void block(std::span<const SlotFlow> flows, std::uint32_t flow);
  void book(const SlotFlow& flow);
  void place(std::span<const SlotFlow> flows, std::span<const std::uint32_t> pod_of);

  PortCalendar calendar_;
  Time now_ = 0, length_ = 0;  // of the present slot
  std::uint32_t patience_ = 0;
  std::vector<std::uint8_t> sends_, receives_;  // by interface
  std::vector<std::uint8_t> blocked_;           // by flow: it has no free path in this slot
  std::vector<std::uint32_t> matched_;          // flows with free ends that have no path yet
  std::vector<SlotGrant> grants_;
};

}  // namespace netsim
