// CongestionControl: sets the rate and window with which a queue pair may send. It costs one virtual call for
// each ACK or CNP that it asks for. The object holds only parameters and is shared; its state for a queue
// pair is stored beside the queue pair, in state_bytes bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/core/units.h"
#include "sim/network/telemetry.h"

namespace netsim {

inline constexpr std::size_t kMaxCongestionStateBytes = 512;
inline constexpr unsigned kCongestionTimers = 2;
inline constexpr Bytes kNoWindow = INT64_MAX;

// State of a queue pair as congestion control sees it, and the place for its decisions. Packet sequence
// numbers count packets and wrap at 2^32. Compare them by their difference as a signed number.
struct CongestionContext {
  Time now = 0;
  BitRate line_rate = 0;       // rate of the NIC's port
  Time base_rtt = 0;           // round trip of a full packet and its ACK on the idle path
  Bytes mtu = 0;               // payload bytes of a full packet
  std::uint32_t hops = 0;      // number of links of the path between the NICs
  std::uint32_t next_psn = 0;  // psn of the next packet
  // In and out: paced rate, integer bit/s, clamped to 1 .. line_rate. At 1 bit/s a packet of 1 kB takes over
  // two hours, and no ACK comes to raise the rate. A control by rate therefore needs a least rate of its own.
  BitRate rate = 0;
  // In and out: payload bytes that may be unacknowledged when a packet is started (see whole_packets). A
  // control by rate leaves it as it is.
  Bytes window = kNoWindow;
  std::byte* state = nullptr;  // state_bytes, zeroed before start(), aligned to 16
  // Out: on_timer(i) is called at this time, which must be later than now.
  std::array<Time, kCongestionTimers> timer{kNever, kNever};
};

// Feedback: the content of an ACK that acknowledges packets for the first time, or of a NACK. A NACK may
// acknowledge none; then `packets` and `bytes` are 0. ACKs that repeat an earlier one are not reported.
struct Feedback {
  std::uint32_t acknowledged_psn = 0;  // all packets before this one have arrived
  std::uint32_t packets = 0;           // packets acknowledged now for the first time
  Bytes bytes = 0;                     // their payload
  // Number of ECN-marked packets that arrived since the last ACK: 0 or 1 with an ACK for each packet. It is 0
  // unless marks are returned in ACKs (`ecn_echo`, CongestionNeeds::ack_echo).
  std::uint32_t marked = 0;
  Time rtt = 0;  // time since the packet that caused the ACK was sent; 0: not measured
  // Telemetry of that packet, in the order of its way. Empty without telemetry.
  std::span<const TelemetryHop> hops;
};

// Needs of a congestion control from the rest of the network. It is queried once.
struct CongestionNeeds {
  bool acks = false;  // calls of on_ack
  // It works as published only with an ACK for each packet. That is then the default, which
  // `transport.acknowledge.every` overrides. An ACK may therefore cover several packets (Feedback::packets).
  bool every_ack = false;
  bool sent_bytes = false;  // calls of on_sent
  // ECN marks are returned in ACKs (Feedback::marked) even if the transport's `ecn_echo` is CNP. It causes no
  // calls of on_cnp().
  bool ack_echo = false;
  bool timestamps = false;  // measured round-trip times (Feedback::rtt)
  // A changed rate also applies to a wait for the next packet that has begun. Without it, a change acts from
  // the packet after that.
  bool pace_again = false;
  // A packet starts only if all of it fits into the window, or it is the only one.
  bool whole_packets = false;
  bool paces_packets = false;     // the wait after any packet is that of a full payload
  bool telemetry = false;         // Feedback::hops: switches write INT into data packets
  bool base_rtt = true;           // CongestionContext::base_rtt affects its decisions
  Time cnp_interval = kNever;     // least time between two CNPs of a queue pair; kNever: no CNPs
  std::uint32_t data_header = 0;  // bytes added to every data packet
  std::uint32_t ack_header = 0;   // bytes added to every ACK
  std::size_t state_bytes = 0;    // at most kMaxCongestionStateBytes
};

// A key of a component's section that has no effect with its other keys, and the reason.
struct IdleKey {
  const char* key;
  const char* why;
};

class CongestionControl {
 public:
  static constexpr const char* kComponentKind = "congestion_control";
  virtual ~CongestionControl() = default;
  virtual CongestionNeeds needs() const { return {}; }

  virtual void start(CongestionContext& context) const { context.rate = context.line_rate; }
  // Called for a CNP. If the transport's `ecn_echo` is `ack`, it is called for an ACK with a mark, after
  // on_ack.
  virtual void on_cnp(CongestionContext&) const {}
  // Called for an ACK or NACK, as Feedback says; never for a timeout of the retransmission timer.
  virtual void on_ack(CongestionContext&, const Feedback&) const {}
  // Called when a packet was started; `bytes` is its size on the wire.
  virtual void on_sent(CongestionContext&, Bytes /*bytes*/) const {}
  // Called when a timer expires. Timers cannot be cancelled, so it must ignore one that has become
  // meaningless.
  virtual void on_timer(CongestionContext&, unsigned /*timer*/) const {}

  // Returns why it cannot work with a path, for a note: the parameter, its value, and a remedy. Empty if it
  // can. `round_trip` is that of the idle path; base_rtt may be given by the user. Called once for a queue
  // pair.
  virtual std::string objection(const CongestionContext& /*path*/, Time /*round_trip*/) const { return {}; }
  // Returns keys without effect, for notes if the user gave them.
  virtual std::vector<IdleKey> idle_keys() const { return {}; }
};

}  // namespace netsim
