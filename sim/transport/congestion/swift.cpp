// Swift: a window that keeps the fabric's delay at a target. It is algorithm 1 of Kumar et al., Swift: Delay
// is Simple and Effective for Congestion Control in the Datacenter, SIGCOMM 2020.
//
// Every ACK compares the round-trip time with
//   target = base_target + switches per_hop + flow scaling,
//   flow scaling = a / sqrt(cwnd) + b, within 0 .. fs_range, where a and b make it fs_range at fs_min_cwnd
//   and 0 at fs_max_cwnd packets (section 3.5): many flows, each with a small window, are allowed a longer
//   queue.
// Below the target cwnd grows by ai packets per round trip (ai / cwnd per packet acknowledged; below one
// packet, ai). At or above it, at most once per round trip: cwnd (1 - min(beta (rtt - target) / rtt,
// max_mdf)).
//
// cwnd counts packets, and a packet leaves only while all of it fits, as in the published implementation
// named below (send_packets). cwnd may be below one. Then a packet leaves every rtt / cwnd, whatever its
// size, as a paced rate of cwnd mtu / rtt.
//
// A packet that waits keeps its time when the rate changes, as with Carousel's timing wheel (3.3). With cwnd
// >= 1 packets leave at line rate.
//
// Each packet is acknowledged by default, because the paper takes a delay from every ACK and its pace from
// that. A path cannot be filled if its idle round trip is not below the target of the window that fills it.
//
// Two parts are not modelled. One is the second window, for endpoint delays, because netsim's NICs and hosts
// add none (the round-trip time is the fabric's). The other is the reaction to loss, which congestion control
// is not notified of.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/core/config.h"
#include "sim/core/registry.h"
#include "sim/transport/congestion/congestion_math.h"

namespace netsim {
namespace {

// The paper gives fs_min_cwnd 0.1 and fs_max_cwnd 100 (section 3.5) and the least window, 0.001 packets
// (3.2), but few other values. The others are from a published implementation of the paper, Broadcom's
// csg-htsim, swift.cpp. They are ai, beta, max_mdf, base_target, per_hop = base_target / 6.55, fs_range = 5
// base_target and max_cwnd.
struct SwiftParameters {
  Time base_target = 20 * kMicrosecond;
  Time per_hop = 3053 * kNanosecond;
  Time fs_range = 100 * kMicrosecond;
  double fs_min_cwnd = 0.1;
  double fs_max_cwnd = 100;
  double ai = 1;
  double beta = 0.8;
  double max_mdf = 0.5;
  double min_cwnd = 0.001;
  double max_cwnd = 1000;
  std::optional<Bytes> initial_window;
};

Parameters<SwiftParameters> swift_parameters() {
  using P = SwiftParameters;
  return Parameters<P>()
      .time("base_target", &P::base_target, {0, kSecond}, "target delay without switches and flow scaling")
      .time("per_hop", &P::per_hop, {0, kSecond}, "delay added to the target for every switch on the path")
      .time("fs_range", &P::fs_range, {0, kSecond},
            "largest delay that flow scaling adds; 0: no flow scaling")
      .real("fs_min_cwnd", &P::fs_min_cwnd, {1e-6, 1e6},
            "window in packets at and below which all of fs_range is added")
      .real("fs_max_cwnd", &P::fs_max_cwnd, {1e-6, 1e6},
            "window in packets at and above which nothing is added")
      .real("ai", &P::ai, {0, 1000}, "packets added per round trip")
      .real("beta", &P::beta, {0, 1}, "how strongly the window decreases with the delay above the target")
      .real("max_mdf", &P::max_mdf, {0, 1}, "largest share of the window that one decrease removes")
      .real("min_cwnd", &P::min_cwnd, {1e-6, 1}, "least window in packets")
      .real("max_cwnd", &P::max_cwnd, {1, 1e9}, "largest window in packets")
      .bytes("initial_window", &P::initial_window, {1, 1000 * kGigabyte}, "line rate x base RTT",
             "initial payload in flight");
}

struct SwiftState {
  double cwnd;  // packets
  Time last_decrease;
  bool decreased;  // whether last_decrease is set
};

class Swift final : public CongestionControl {
 public:
  explicit Swift(const SwiftParameters& p) : p_(p) {
    const double at_min = 1 / std::sqrt(p.fs_min_cwnd), at_max = 1 / std::sqrt(p.fs_max_cwnd);
    a_ = static_cast<double>(p.fs_range) / (at_min - at_max);
    b_ = -a_ * at_max;
  }

  CongestionNeeds needs() const override {
    return {.acks = true,
            .every_ack = true,
            .timestamps = true,
            .whole_packets = true,
            .paces_packets = true,
            .state_bytes = sizeof(SwiftState)};
  }

  std::vector<IdleKey> idle_keys() const override {
    if (p_.fs_range != 0) return {};
    return {{"fs_min_cwnd", "there is no flow scaling (fs_range: 0)"},
            {"fs_max_cwnd", "there is no flow scaling (fs_range: 0)"}};
  }

  void start(CongestionContext& c) const override {
    SwiftState& s = state_of<SwiftState>(c);
    const double bytes = p_.initial_window ? static_cast<double>(*p_.initial_window)
                                           : bytes_in(static_cast<double>(c.line_rate), c.base_rtt);
    s.cwnd = std::min(std::max(bytes / static_cast<double>(c.mtu), 1.0), p_.max_cwnd);
    set(c, s, std::max<Time>(1, c.base_rtt));
  }

  void on_ack(CongestionContext& c, const Feedback& f) const override {
    if (f.rtt <= 0) return;
    SwiftState& s = state_of<SwiftState>(c);
    const double before = s.cwnd;
    const auto delay = static_cast<double>(f.rtt);
    const double target = this->target(c, s.cwnd);
    if (delay < target) {
      const double added = p_.ai * static_cast<double>(f.packets);
      s.cwnd += s.cwnd >= 1 ? added / s.cwnd : added;
    } else if (!s.decreased || c.now - s.last_decrease >= f.rtt) {
      s.cwnd *= std::max(1 - p_.beta * ((delay - target) / delay), 1 - p_.max_mdf);
    }
    s.cwnd = std::clamp(s.cwnd, p_.min_cwnd, p_.max_cwnd);
    if (s.cwnd < before) {
      s.last_decrease = c.now;
      s.decreased = true;
    }
    set(c, s, f.rtt);
  }

  std::string objection(const CongestionContext& c, Time round_trip) const override {
    const double full = bytes_in(static_cast<double>(c.line_rate), round_trip) / static_cast<double>(c.mtu);
    const double target = this->target(c, std::clamp(full, p_.min_cwnd, p_.max_cwnd));
    if (static_cast<double>(round_trip) < target) return {};
    const Time short_of = round_trip - static_cast<Time>(target);
    return fmt::format(
        "Swift's target delay there is {} (base_target {}), so its window shrinks even in an idle network; "
        "set base_target above {}",
        format_time(static_cast<Time>(target)), format_time(p_.base_target),
        format_time(p_.base_target + short_of));
  }

 private:
  double target(const CongestionContext& c, double cwnd) const {
    const Time switches = c.hops > 1 ? c.hops - 1 : 0;
    const double scaling = std::clamp(a_ / std::sqrt(cwnd) + b_, 0.0, static_cast<double>(p_.fs_range));
    return static_cast<double>(p_.base_target + switches * p_.per_hop) + scaling;
  }

  static void set(CongestionContext& c, const SwiftState& s, Time rtt) {
    const double bytes = s.cwnd * static_cast<double>(c.mtu);
    c.window = to_window(bytes);
    c.rate = s.cwnd >= 1 ? c.line_rate : to_rate(bytes * 8e12 / static_cast<double>(rtt), c.line_rate);
  }

  SwiftParameters p_;
  double a_, b_;
};

const Registration<CongestionControl> kSwift{
    "swift", "Swift: a window that holds the delay at a target (SIGCOMM 2020)", swift_parameters(),
    [](const SwiftParameters& p, const ConfigNode& node) {
      if (p.fs_min_cwnd >= p.fs_max_cwnd) node.fail("fs_min_cwnd is not below fs_max_cwnd");
      return std::make_unique<Swift>(p);
    }};

}  // namespace
}  // namespace netsim
