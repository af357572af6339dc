// PacketTrace: the ports at which a packet waited, and for how long. Traces lie in an array beside the
// packets, by packet index, and only if enabled. The sender sets which packets record one (Packet::traced).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "sim/core/units.h"
#include "sim/topology/graph.h"

namespace netsim {

class PacketTrace {
 public:
  // Wait of the packet at one port.
  struct Wait {
    PortId port = kNoId;  // kNoId: sum of the ports for which there was no place
    // Total time, and the part of it in which the port must not send the packet's priority.
    Time all = 0;
    Time held_back = 0;
  };
  // The largest number of ports that a packet can wait at in a fat tree of three tiers between hosts with
  // PCIe.
  static constexpr std::uint32_t kPlaces = 8;

  // Starts the trace of a packet that is created at `now`.
  void begin(Time now) {
    ready_ = now;
    count_ = 0;
  }
  // Records a wait before the packet was created as if the packet had waited itself.
  void waited_before(PortId port, Time held_back) { add({port, held_back, held_back}); }
  // Records that the packet joins the queue of its present port. `held` is the total time for which the
  // port's priority has been held back so far.
  void queued(Time held) { held_ = held; }
  // Records that the port sends the packet at `now`, to reach the next one at `arrival`. `held()` returns the
  // time of queued() as of now; it is called only if the packet waited.
  template <class Held>
  void sent(PortId port, Time now, Time arrival, Held held) {
    if (now > ready_) add({port, now - ready_, held() - held_});
    ready_ = arrival;
  }

  // Returns the waits in the order of the ports on the way.
  std::span<const Wait> waits() const { return {waits_.data(), count_}; }

 private:
  void add(const Wait& wait) {
    if (count_ < kPlaces) {
      waits_[count_++] = wait;
      return;
    }
    Wait& last = waits_.back();
    last = {kNoId, last.all + wait.all, last.held_back + wait.held_back};
  }

  Time ready_ = 0;  // time at which the packet arrived at its present port
  Time held_ = 0;
  std::uint32_t count_ = 0;
  std::array<Wait, kPlaces> waits_;
};

}  // namespace netsim
