// PacketTrace: where a packet waited on its way. Lies in an array beside the packets, by packet index, and
// only where somebody asks for it; the sender says which packets write one (Packet::traced).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "sim/core/units.h"
#include "sim/topology/graph.h"

namespace netsim {

class PacketTrace {
 public:
  // Of one port.
  struct Wait {
    PortId port = kNoId;  // kNoId: of several ports, for which there was no place
    Time all = 0;
    Time held_back = 0;  // of it, while the port might not send the packet's priority
  };
  // As many ports as a packet can wait at in a fat tree of three tiers between hosts with PCIe.
  static constexpr std::uint32_t kPlaces = 8;

  // The packet is made at `now`.
  void begin(Time now) {
    ready_ = now;
    count_ = 0;
  }
  // What was waited for before the packet was made; counts as if the packet had.
  void waited_before(PortId port, Time held_back) { add({port, held_back, held_back}); }
  // It joins the queue of its present port, whose priority had been held back for `held` in all by now.
  void queued(Time held) { held_ = held; }
  // The port sends it at `now`, and it will be at the next one at `arrival`. `held`: as of queued(); asked
  // only where the packet waited.
  template <class Held>
  void sent(PortId port, Time now, Time arrival, Held held) {
    if (now > ready_) add({port, now - ready_, held() - held_});
    ready_ = arrival;
  }

  // In the order of the way.
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

  Time ready_ = 0;  // when it is at its present port
  Time held_ = 0;
  std::uint32_t count_ = 0;
  std::array<Wait, kPlaces> waits_;
};

}  // namespace netsim
