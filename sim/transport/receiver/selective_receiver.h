// SelectiveReceiver: the packets of a queue pair that arrived out of order and are kept.
#pragma once

#include <cstdint>

#include "sim/transport/psn_window.h"

namespace netsim {

struct SelectiveReceiver {
  // `asking` is a packet within a message that requests an ACK. The last packet of a message always requests
  // one.
  enum class Kept : std::uint8_t { absent, inner, asking, last };
  // The psns and messages that became complete with an expected packet.
  struct Advance {
    std::uint32_t expected;  // next expected psn
    std::uint32_t messages;  // messages whose last packets are now in order
    bool asked;              // whether one of the packets requested an ACK
  };

  bool has(std::uint32_t expected, std::uint32_t psn) const {
    return kept.get(expected, psn) != Kept::absent;
  }
  void keep(std::uint32_t expected, std::uint32_t psn, bool last, bool asking) {
    const Kept inner = asking ? Kept::asking : Kept::inner;
    kept.set(expected, psn, last ? Kept::last : inner);
  }
  // Called when the packet `expected` arrives. Moves past all kept packets that follow it.
  Advance advance(std::uint32_t expected, bool last, bool asking) {
    Advance result{expected + 1, last ? 1U : 0U, asking};
    for (;; ++result.expected) {
      const Kept entry = kept.get(result.expected, result.expected);
      if (entry == Kept::absent) return result;
      if (entry == Kept::last) ++result.messages;
      if (entry != Kept::inner) result.asked = true;
      kept.clear(result.expected);
    }
  }

  PsnWindow<Kept> kept{Kept::absent};
};

}  // namespace netsim
