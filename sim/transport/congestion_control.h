// CongestionControl: how fast a queue pair may send. One virtual call per ACK or CNP that it asked for; the
// state of a queue pair lives inline in the queue pair (at most 128 B), the object itself holds parameters
// only and is shared.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sim/core/units.h"

namespace netsim {

inline constexpr std::size_t kCongestionStateBytes = 128;
inline constexpr unsigned kCongestionTimers = 2;

// What congestion control sees of a queue pair, and where it puts its decisions.
struct CongestionContext {
  Time now = 0;
  BitRate line_rate = 0;       // of the NIC's port
  BitRate rate = 0;            // in and out: paced rate, integer bit/s, at most line_rate
  std::byte* state = nullptr;  // kCongestionStateBytes, zeroed before start()
  std::array<Time, kCongestionTimers> timer{kNever,
                                            kNever};  // out: call on_timer(i) at that time (later than now)
};

class CongestionControl {
 public:
  static constexpr const char* kComponentKind = "congestion_control";
  virtual ~CongestionControl() = default;
  // Which calls it wants; asked once.
  virtual bool wants_acks() const { return false; }
  virtual bool wants_sent_bytes() const { return false; }
  // The receiver's part: the least time between two CNPs of one queue pair; kNever: no CNPs.
  virtual Time cnp_interval() const { return kNever; }

  virtual void start(CongestionContext& context) const { context.rate = context.line_rate; }
  virtual void on_cnp(CongestionContext&) const {}
  virtual void on_ack(CongestionContext&, Bytes /*acknowledged*/) const {}
  virtual void on_sent(CongestionContext&, Bytes /*bytes*/) const {}
  // Timers cannot be cancelled: one that has become meaningless is ignored here.
  virtual void on_timer(CongestionContext&, unsigned /*timer*/) const {}
};

}  // namespace netsim
