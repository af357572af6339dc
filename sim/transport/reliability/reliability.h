// Reliability: a queue pair's reaction to packets that are lost or arrive out of order. Most components are
// compiled to plain data, on which sender and receiver branch. One with ReliabilityPlan::own is called for
// each packet and each reply instead.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "sim/core/units.h"
#include "sim/transport/receiver/selective_receiver.h"
#include "sim/transport/sender/selective_sender.h"

namespace netsim {

struct ReliabilityPlan {
  // False: the receiver accepts packets in order only, and a gap makes the sender go back. True: the receiver
  // keeps packets that arrive out of order, and the sender repeats only missing ones.
  bool selective = false;
  // Not selective: whether the receiver repeats a NACK. It does when sequence numbers that do not rise show
  // that the sender has restarted and lost the expected packet again.
  bool repeat_nack = false;
  // Selective: whether packets that arrived out of order still count as in flight.
  bool cumulative = false;
  Time timeout = 0;               // 0: the transport's retransmission_timeout
  Time low_timeout = 0;           // timeout while at most low_packets are in flight; 0: none
  std::uint32_t low_packets = 0;  // see low_timeout
  std::uint32_t retries = 0;      // timeouts in a row before the queue pair fails; set by the transport
  // Least time before the queue pair fails: as long as the transport's own timeouts take together.
  Time patience = 0;
  double bdp_cap = 0;  // most bandwidth-delay products in flight; 0: no limit
  // A packet counts as lost when one that was sent this many packets later has arrived.
  std::uint32_t reorder_tolerance = 0;
  // The component's own functions decide which packets the receiver keeps, what it replies and when, and what
  // the sender sends again. Only with `selective`.
  bool own = false;
  // With `own`: bytes of the component's state in each half of a queue pair, at most
  // kMaxReliabilityStateBytes.
  std::size_t sender_state_bytes = 0, receiver_state_bytes = 0;
};
inline constexpr std::size_t kMaxReliabilityStateBytes = 512;

// Returns a timeout that follows `timeouts` others in a row. Each is `factor` times as long as the one
// before, until they exceed 100 s.
inline Time backed_off(Time wait, std::int64_t factor, std::uint32_t timeouts) {
  for (; timeouts > 0 && factor > 1 && wait < 100 * kSecond; --timeouts) wait *= factor;
  return wait;
}

// ---- For components with ReliabilityPlan::own. Packet sequence numbers wrap at 2^32. Compare them by their
// difference as a signed number.

// A data packet at the receiver.
struct Arrival {
  std::uint32_t psn = 0;
  std::uint32_t expected = 0;  // first psn that had not arrived before this packet
  bool duplicate = false;      // the packet had arrived before
  bool kept = true;            // false: keeps() refused it
  // The sender asked for an ACK with this packet, or with a kept one that is in order now. A sender whose
  // window is full has always asked for one.
  bool ack_requested = false;
  std::uint32_t messages = 0;  // messages that are complete now
};

// A reply of the receiver, as both ends see it.
struct Reply {
  enum class Kind : std::uint8_t { none, ack, nack };
  Kind kind = Kind::none;
  // 32 bits that a NACK carries to the sender's on_reply(), such as a psn or a bitmap. An ACK carries none.
  std::uint32_t word = 0;
  // First psn that had not arrived when the reply was made. The transport sets it.
  std::uint32_t expected = 0;
};

// The receiver's half of a queue pair.
struct ReceiverContext {
  Time now = 0;
  std::uint32_t expected = 0;  // first psn that has not arrived
  const SelectiveReceiver& packets;
  std::byte* state = nullptr;  // receiver_state_bytes, zeroed at the beginning, aligned to 16
  // Out: on_reply_timer() is called at this time, which must be later than now. Timers cannot be cancelled.
  Time timer = kNever;

  // Returns whether a packet at or above `expected` has arrived and is kept.
  bool has(std::uint32_t psn) const { return packets.has(expected, psn); }
  template <class State>
  State& state_as() const {
    return *reinterpret_cast<State*>(state);
  }
};

// The sender's half of a queue pair.
struct SenderContext {
  Time now = 0;
  Time base_rtt = 0;                     // round trip of a full packet and its ACK on the idle path
  std::uint32_t acknowledged = 0;        // first psn that the receiver has not acknowledged
  std::uint32_t next_psn = 0;            // psn of the next new packet
  std::uint32_t newly_acknowledged = 0;  // packets that this reply acknowledges for the first time
  SelectiveSender& packets;
  std::byte* state = nullptr;  // sender_state_bytes, zeroed at the beginning, aligned to 16

  // These concern the packets from `acknowledged` to `next_psn` - 1, and ignore others. A packet that has
  // arrived is not sent again.
  bool has_arrived(std::uint32_t psn) const { return packets.arrived.get(acknowledged, psn) != 0; }
  void set_arrived(std::uint32_t psn) {
    if (clamped(psn) == psn && psn != next_psn) packets.note_arrived(acknowledged, psn);
  }
  // Sends all packets before `psn` again that have not arrived, but none a second time.
  void repeat_missing_before(std::uint32_t psn) { packets.repeat_before(acknowledged, clamped(psn)); }
  // Does the same and sends those again that were sent again before.
  void repeat_again_before(std::uint32_t psn) { packets.repeat_until(acknowledged, clamped(psn)); }
  // Returns the psn from `acknowledged` to `next_psn` that is nearest to `psn`.
  std::uint32_t clamped(std::uint32_t psn) const {
    const auto ahead = static_cast<std::int32_t>(psn - acknowledged);
    const auto all = static_cast<std::int32_t>(next_psn - acknowledged);
    return acknowledged + static_cast<std::uint32_t>(std::clamp(ahead, 0, all));
  }
  template <class State>
  State& state_as() const {
    return *reinterpret_cast<State*>(state);
  }
};

class Reliability {
 public:
  static constexpr const char* kComponentKind = "reliability";
  virtual ~Reliability() = default;
  virtual ReliabilityPlan compile() const = 0;

  // These functions are called only with ReliabilityPlan::own. The object serves all queue pairs, from
  // several threads; what changes is in the contexts' state. The defaults are plain selective repeat.

  // Returns whether the receiver keeps a packet that arrived before the expected one. It drops others.
  virtual bool keeps(ReceiverContext&, const Arrival& /*arrival*/) const { return true; }
  // Returns the reply to a data packet. Kind::none holds it back until on_reply_timer() or another packet.
  virtual Reply on_arrival(ReceiverContext&, const Arrival& arrival) const {
    const bool ahead = static_cast<std::int32_t>(arrival.psn - arrival.expected) > 0;
    if (ahead) return {.kind = Reply::Kind::nack, .word = arrival.psn};
    return {.kind = arrival.duplicate || arrival.ack_requested ? Reply::Kind::ack : Reply::Kind::none};
  }
  virtual Reply on_reply_timer(ReceiverContext&) const { return {}; }
  // Called when a reply is at the sender. The packets before reply.expected are acknowledged by then.
  virtual void on_reply(SenderContext& c, const Reply& reply) const {
    if (reply.kind != Reply::Kind::nack) return;
    c.set_arrived(reply.word);
    c.repeat_missing_before(reply.word);
  }
  // Called when the plan's timeout has passed without an acknowledgement of something new.
  virtual void on_timeout(SenderContext& c) const { c.repeat_again_before(c.next_psn); }
};

}  // namespace netsim
