// SelectiveSender: the state of selective repeat at a queue pair's sender. It holds which packets arrived out
// of order, and which gaps between them must be sent again. `acknowledged` is the first psn not acknowledged;
// all psns here are at or above it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/core/units.h"
#include "sim/transport/psn_window.h"

namespace netsim {

struct SelectiveSender {
  PsnWindow<std::uint8_t> arrived{0};
  std::uint32_t arrived_count = 0;
  std::uint32_t repeat_next = 0;  // gaps before this psn have been sent again
  std::uint32_t repeat_end = 0;   // gaps before this psn must be sent again
  std::uint32_t timer_end = 0;    // next_psn when the retransmission timer began
  Time last_sent = 0;             // time at which the last packet was made
  Time quiet_since = 0;           // start of the first of the timeouts in a row

  // Moves to the next gap that must be sent again. Returns false if there is none.
  bool has_gap(std::uint32_t acknowledged) {
    if (earlier(repeat_next, acknowledged)) repeat_next = acknowledged;
    while (earlier(repeat_next, repeat_end) && arrived.get(acknowledged, repeat_next) != 0) ++repeat_next;
    return earlier(repeat_next, repeat_end);
  }
  // Returns the gap that has_gap() found and moves past it.
  std::uint32_t take_gap() { return repeat_next++; }

  // Called for a NACK, which names a packet that arrived. Packets sent more than `tolerance` packets before
  // it that did not arrive are taken for lost.
  void note_arrival(std::uint32_t acknowledged, std::uint32_t psn, std::uint32_t tolerance) {
    if (note_arrived(acknowledged, psn))
      repeat_before(acknowledged, psn - std::min(tolerance, psn - acknowledged));
  }
  // Returns whether the packet was not known to have arrived.
  bool note_arrived(std::uint32_t acknowledged, std::uint32_t psn) {
    if (earlier(psn, acknowledged) || arrived.get(acknowledged, psn) != 0) return false;
    arrived.set(acknowledged, psn, 1);
    ++arrived_count;
    return true;
  }
  // Makes all missing packets before `end` be sent again, unless they have been.
  void repeat_before(std::uint32_t acknowledged, std::uint32_t end) {
    if (earlier(repeat_end, acknowledged)) repeat_end = acknowledged;
    if (earlier(repeat_end, end)) repeat_end = end;
  }
  // Called when all packets before `before` are acknowledged.
  void forget_arrivals(std::uint32_t acknowledged, std::uint32_t before) {
    for (std::uint32_t psn = acknowledged; arrived_count > 0 && psn != before; ++psn) {
      if (arrived.get(acknowledged, psn) == 0) continue;
      arrived.clear(psn);
      --arrived_count;
    }
  }
  // Makes all missing packets before `end` be sent again.
  void repeat_until(std::uint32_t acknowledged, std::uint32_t end) {
    repeat_next = acknowledged;
    repeat_end = end;
  }

 private:
  static bool earlier(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) < 0; }
};

}  // namespace netsim
