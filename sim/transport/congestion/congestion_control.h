// CongestionControl: how fast, and with how much in flight, a queue pair may send. One virtual call per ACK
// or CNP that it asked for. The object holds parameters only and is shared; what it remembers of a queue pair
// lies beside the queue pair, as many bytes as it asks for.
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

// What congestion control sees of a queue pair, and where it puts its decisions. Packet sequence numbers
// count packets and wrap at 2^32: compare them by their difference as a signed number.
struct CongestionContext {
  Time now = 0;
  BitRate line_rate = 0;       // of the NIC's port
  Time base_rtt = 0;           // of the path when idle: a full packet there, its ACK back
  Bytes mtu = 0;               // payload of a full packet
  std::uint32_t hops = 0;      // links of the path between the NICs
  std::uint32_t next_psn = 0;  // the next packet to be sent
  BitRate rate = 0;            // in and out: paced rate, integer bit/s, clamped to 1 .. line_rate
  Bytes window = kNoWindow;    // in and out: payload that may be unacknowledged when a packet is started (see
                               // whole_packets)
  std::byte* state = nullptr;  // state_bytes(), zeroed before start(), aligned to 16
  std::array<Time, kCongestionTimers> timer{kNever, kNever};  // out: call on_timer(i) then (later than now)
};

// What an acknowledgement tells.
struct Feedback {
  std::uint32_t acknowledged_psn = 0;  // all packets before this one have arrived
  std::uint32_t packets = 0;           // acknowledged now for the first time
  Bytes bytes = 0;                     // their payload
  std::uint32_t marked = 0;  // ECN-marked packets that arrived since the last ACK (ECN echo in ACKs)
  Time rtt = 0;              // since the packet that caused the ACK was sent; 0: not measured
  std::span<const TelemetryHop> hops;  // what that packet saw, in the order of its way; empty: no telemetry
};

// What a congestion control needs of the rest of the network; asked once.
struct CongestionNeeds {
  bool acks = false;           // on_ack
  bool every_ack = false;      // works as published only with an ACK for each packet: the default then
  bool sent_bytes = false;     // on_sent
  bool ack_echo = false;       // ECN marks come back in ACKs even where the transport's `ecn_echo` says CNP
  bool timestamps = false;     // Feedback::rtt
  bool pace_again = false;     // a changed rate applies to the wait for the next packet that has begun
  bool whole_packets = false;  // a packet starts only if all of it fits into the window, or alone
  bool paces_packets = false;  // the wait after any packet is that of a full payload
  bool telemetry = false;      // Feedback::hops: switches write INT into data packets
  bool base_rtt = true;        // CongestionContext::base_rtt decides something
  Time cnp_interval = kNever;  // receiver: the least time between two CNPs of a queue pair; kNever: none
  std::uint32_t data_header = 0;  // bytes that it adds to every data packet
  std::uint32_t ack_header = 0;   // and to every ACK
  std::size_t state_bytes = 0;    // at most kMaxCongestionStateBytes
};

// A key of a component's section that changes nothing beside its other keys, and why.
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
  // A CNP came, or, where the transport's `ecn_echo` is `ack`, an ACK with a mark (after on_ack).
  virtual void on_cnp(CongestionContext&) const {}
  virtual void on_ack(CongestionContext&, const Feedback&) const {}
  // A packet was started; `bytes` as on the wire.
  virtual void on_sent(CongestionContext&, Bytes /*bytes*/) const {}
  // Timers cannot be cancelled: one that has become meaningless is ignored here.
  virtual void on_timer(CongestionContext&, unsigned /*timer*/) const {}

  // Why it cannot work with a path, for a Note: the parameter, its value, and what would do; empty where it
  // can. `round_trip`: of the idle path; base_rtt may be what the user gave. Asked once for a queue pair.
  virtual std::string objection(const CongestionContext& /*path*/, Time /*round_trip*/) const { return {}; }
  // For Notes, where the user gave them.
  virtual std::vector<IdleKey> idle_keys() const { return {}; }
};

}  // namespace netsim
