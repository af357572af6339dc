// DCTCP (Alizadeh et al., Data Center TCP, SIGCOMM 2010) reacts to the fraction of marked packets rather than
// to any single mark.
//
// Once per window of data (the first ACK of a packet sent after the last update):
//   alpha = (1 - g) alpha + g F,  F the fraction of the window's packets that were marked; 1 at first.
// By default each packet is acknowledged, the paper's simplest way to tell exactly which ones were marked
// (section 3.1). A mark cuts by the factor (1 - alpha/2), once per window. A further cut waits until the
// packets sent before the first cut are acknowledged. A window that ends outside of such a wait adds one
// step.
//
// Two forms:
//
// window: the paper's congestion window in bytes, sent at line rate; the step is one packet. It starts with
// the bytes that the path holds, as in RDMA senders, without TCP's slow start. It grows only while it limits
// the sender (see RFC 7661).
//
// As in TCP, nothing is sent beyond the window (RFC 5681, section 2), so a packet waits until all of it fits.
//
// rate: a paced rate, as in the RDMA model that accompanies HPCC, with which netsim is compared
// (alibaba-edu/High-Precision-Congestion-Control, rdma-hw.cc HandleAckDctcp). The step is rate_ai. The
// transport's `window` and `window_scales` add the window with which that model is run.
#include <algorithm>
#include <optional>

#include "sim/core/registry.h"
#include "sim/transport/congestion/congestion_math.h"

namespace netsim {
namespace {

enum class DctcpForm { window, rate };

// g is from the paper, section 3.4, and run.py. The initial alpha is from RFC 8257, section 4.2. rate_ai: TCP
// adds one packet per round trip; run.py computes 615 Mb/s from 1 KB and 13 us.
//
// minimum_rate is RdmaHw's MinRate of 100 Mb/s (at 100 Gb/s; run.py sets 1 Gb/s).
struct DctcpParameters {
  DctcpForm form = DctcpForm::window;
  double g = 1.0 / 16;
  std::optional<Bytes> initial_window;
  std::optional<BitRate> rate_ai;
  std::optional<BitRate> minimum_rate;
};

Parameters<DctcpParameters> dctcp_parameters() {
  using P = DctcpParameters;
  constexpr Range<BitRate> kRates{0, 100'000 * kGbps};
  return Parameters<P>()
      .choice("form", &P::form, {{"window", DctcpForm::window}, {"rate", DctcpForm::rate}},
              "what is controlled: a window as in TCP, or a rate as in the ns-3 RDMA model")
      .real("g", &P::g, {1e-6, 1}, "gain of alpha")
      .bytes("initial_window", &P::initial_window, {1, 1000 * kGigabyte}, "line rate x base RTT",
             "form window: initial payload in flight")
      .rate("rate_ai", &P::rate_ai, kRates, "one packet per base RTT",
            "form rate: increase for a window of data without a cut")
      .rate("minimum_rate", &P::minimum_rate, kRates, "line rate / 1000",
            "form rate: floor; 100 Mb/s at 100 Gb/s");
}

struct DctcpState {
  double alpha;
  double size;                        // window in bytes, or rate in bit/s
  std::int64_t marked, acknowledged;  // numbers of packets since the last update
  std::uint32_t window_end;           // an ACK beyond this psn ends the window of data
  std::uint32_t cut_end;              // an ACK beyond this psn ends the wait after a cut
  bool started, waiting;
};

class Dctcp final : public CongestionControl {
 public:
  explicit Dctcp(const DctcpParameters& p) : p_(p) {}

  CongestionNeeds needs() const override {
    return {.acks = true,
            .every_ack = true,
            .ack_echo = true,
            .whole_packets = p_.form == DctcpForm::window,
            .state_bytes = sizeof(DctcpState)};
  }

  std::vector<IdleKey> idle_keys() const override {
    if (p_.form == DctcpForm::rate) return {{"initial_window", "it belongs to form: window"}};
    return {{"rate_ai", "it belongs to form: rate"}, {"minimum_rate", "it belongs to form: rate"}};
  }

  void start(CongestionContext& c) const override {
    DctcpState& s = state_of<DctcpState>(c);
    c.rate = c.line_rate;
    s.alpha = 1;
    s.size = static_cast<double>(c.line_rate);
    if (p_.form == DctcpForm::rate) return;
    s.size = p_.initial_window ? static_cast<double>(*p_.initial_window) : bytes_in(s.size, c.base_rtt);
    s.size = std::max(s.size, static_cast<double>(c.mtu));
    c.window = to_window(s.size);
  }

  void on_ack(CongestionContext& c, const Feedback& f) const override {
    DctcpState& s = state_of<DctcpState>(c);
    s.marked += f.marked;
    s.acknowledged += f.packets;
    const bool window_over = !s.started || after(f.acknowledged_psn, s.window_end);
    if (window_over) end_window(c, s);
    if (s.waiting && after(f.acknowledged_psn, s.cut_end)) s.waiting = false;
    double size = s.size;
    if (f.marked != 0 && !s.waiting) {
      size *= 1 - s.alpha / 2;
      s.waiting = true;
      s.cut_end = c.next_psn;
    }
    if (window_over && !s.waiting && full(c, s, f)) size += step(c);
    if (size != s.size) set(c, s, size);
  }

 private:
  // Ends a window of data. The first ACK only opens the first window, to which its packets and marks count.
  void end_window(const CongestionContext& c, DctcpState& s) const {
    if (s.started) {
      const double seen = static_cast<double>(std::max<std::int64_t>(1, s.acknowledged));
      const double fraction = std::min(1.0, static_cast<double>(s.marked) / seen);
      s.alpha = (1 - p_.g) * s.alpha + p_.g * fraction;
      s.marked = s.acknowledged = 0;
    }
    s.started = true;
    s.window_end = c.next_psn;
  }

  // Returns whether the window had no space for another packet while the acknowledged ones were still in
  // flight.
  bool full(const CongestionContext& c, const DctcpState& s, const Feedback& f) const {
    if (p_.form == DctcpForm::rate) return true;
    const std::uint32_t in_flight = c.next_psn - f.acknowledged_psn + f.packets;
    return (static_cast<double>(in_flight) + 1) * static_cast<double>(c.mtu) > s.size;
  }

  double step(const CongestionContext& c) const {
    const auto packet = static_cast<double>(c.mtu);
    if (p_.form == DctcpForm::window) return packet;
    if (p_.rate_ai) return static_cast<double>(*p_.rate_ai);
    return packet * 8e12 / static_cast<double>(std::max<Time>(1, c.base_rtt));
  }

  void set(CongestionContext& c, DctcpState& s, double size) const {
    if (p_.form == DctcpForm::window) {
      s.size = std::max(size, static_cast<double>(c.mtu));
      c.window = to_window(s.size);
      return;
    }
    const auto line = static_cast<double>(c.line_rate);
    const double floor = p_.minimum_rate ? static_cast<double>(*p_.minimum_rate) : line / 1000;
    s.size = std::min(std::max(size, floor), line);
    c.rate = to_rate(s.size, c.line_rate);
  }

  DctcpParameters p_;
};

const Registration<CongestionControl> kDctcp{
    "dctcp", "DCTCP: cuts by the fraction of packets that were marked (SIGCOMM 2010), as window or rate",
    dctcp_parameters(),
    [](const DctcpParameters& p, const ConfigNode&) { return std::make_unique<Dctcp>(p); }};

}  // namespace
}  // namespace netsim
