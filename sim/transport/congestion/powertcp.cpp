// PowerTCP (Addanki, Apostolaki, Ghobadi, Schmid, Vanbever, NSDI 2022) and its form without switches,
// theta-PowerTCP. The window follows power. Power is the product of the current, which arrives at a queue,
// and of the voltage, which is on the way.
//
// PowertcpForm `int` is algorithm 1. Switches write their load into every data packet, as for HPCC. A port
// has rate b and queue q, and has sent at rate mu since the last reading; T is the idle round trip.
//   current = dq/dt + mu,  voltage = q + b T,  normalised power = current voltage / (b^2 T).
// The port with the most power counts. Its power is smoothed over T with the weight of the time between its
// readings. Every ACK sets the window and the rate w / T:
//   w = gamma (w_old / power + beta) + (1 - gamma) w.
// The window w_old is the one at the beginning of the round trip, so that one queue does not cause two
// reactions.
//
// PowertcpForm `delay` is algorithm 2. Power is (dRTT/dt + 1) RTT / T. It is smoothed with every ACK, and the
// window moves once per round trip.
//
// The paper leaves details open. The authors' simulator (inet-tub/ns3-datacenter, rdma-hw.cc,
// UpdateRatePower) has them, and they are the same here.
//
//  - Power counts relative to a target: the equilibrium times 0.95 (int), or 1.05 T idle (delay).
//  - Gamma is 0.9, in the delay form 0.7. Beta is that of 150 Mb/s at 25 Gb/s.
//  - The slope dRTT/dt + 1 is at least 0.5.
//  - Power starts at 1. The first ACK's readings are only remembered. A reading counts for at most T.
//  - The window stays between those of minimum_rate and of the line.
// The paper's beta is the line's bandwidth-delay product divided by the flows that share a NIC (section 3.3).
#include <fmt/format.h>

#include <array>
#include <optional>

#include "sim/core/config.h"
#include "sim/core/registry.h"
#include "sim/transport/congestion/congestion_math.h"

namespace netsim {
namespace {

enum class PowertcpForm { in_band, delay };

// The headers are HPCC's, whose INT form `int` uses. The sender of form `delay` keeps times itself.
struct PowerTcpParameters {
  PowertcpForm form = PowertcpForm::in_band;
  double gamma = 0;
  double eta = 0.95;
  double rtt_margin = 1.05;
  std::optional<BitRate> rate_ai;
  std::optional<BitRate> minimum_rate;
  Time base_rtt = 0;
  std::optional<std::int64_t> data_header;
  std::optional<std::int64_t> ack_header;
};

Parameters<PowerTcpParameters> powertcp_parameters() {
  using P = PowerTcpParameters;
  constexpr Range<BitRate> kRates{0, 100'000 * kGbps};
  return Parameters<P>()
      .choice("form", &P::form, {{"int", PowertcpForm::in_band}, {"delay", PowertcpForm::delay}},
              "power from the telemetry of switches (PowerTCP), or from round trips alone (theta-PowerTCP)")
      .real("gamma", &P::gamma, {0, 1}, "weight of a new window; 0: by form, int 0.9, delay 0.7")
      .real("eta", &P::eta, {0.01, 1}, "int: target power, as a share of the power at equilibrium")
      .real("rtt_margin", &P::rtt_margin, {1, 100}, "delay: target round trip, in base RTTs")
      .rate("rate_ai", &P::rate_ai, kRates, "line rate x 3/500",
            "additive increase beta, as a rate: the window's is rate_ai x base RTT; 600 Mb/s at 100 Gb/s")
      .rate("minimum_rate", &P::minimum_rate, kRates, "line rate / 1000", "floor; 100 Mb/s at 100 Gb/s")
      .time("base_rtt", &P::base_rtt, {0, kSecond}, "T, the round trip without queues; 0: the path's own")
      .integer("data_header", &P::data_header, {0, 1024}, "by form",
               "bytes of telemetry in every data packet; int 42, delay 0")
      .integer("ack_header", &P::ack_header, {0, 1024}, "by form",
               "bytes of telemetry in every ACK; int 42, delay 0");
}

// A hop's telemetry in compact form: `sent` wraps at 2^32.
struct PowertcpReading {
  Time time;
  std::uint32_t sent, queue;
};

struct PowertcpState {
  std::array<PowertcpReading, kTelemetryHops> last;
  Time rtt, acknowledged;  // form delay: the last ACK's round trip, and when the ACK came
  double window, reference;
  double power;             // smoothed
  std::uint32_t round_end;  // an ACK beyond this psn belongs to the next round trip
  std::uint8_t hops;
  bool started;
};
static_assert(sizeof(PowertcpState) <= 128);

class PowerTcp final : public CongestionControl {
 public:
  explicit PowerTcp(const PowerTcpParameters& p)
      : p_(p),
        in_band_(p.form == PowertcpForm::in_band),
        gamma_(p.gamma != 0 ? p.gamma
               : in_band_   ? 0.9
                            : 0.7) {}

  CongestionNeeds needs() const override {
    const std::int64_t header = in_band_ ? 42 : 0;
    return {.acks = true,
            .every_ack = true,
            .timestamps = !in_band_,
            .pace_again = true,
            .telemetry = in_band_,
            .base_rtt = p_.base_rtt == 0,
            .data_header = static_cast<std::uint32_t>(p_.data_header.value_or(header)),
            .ack_header = static_cast<std::uint32_t>(p_.ack_header.value_or(header)),
            .state_bytes = sizeof(PowertcpState)};
  }

  std::vector<IdleKey> idle_keys() const override {
    if (in_band_) return {{"rtt_margin", "it belongs to form: delay"}};
    return {{"eta", "it belongs to form: int"}};
  }

  void start(CongestionContext& c) const override {
    PowertcpState& s = state_of<PowertcpState>(c);
    s.power = 1;
    s.window = s.reference = bytes_in(static_cast<double>(c.line_rate), base_rtt(c));
    c.rate = c.line_rate;
    c.window = to_window(s.window);
  }

  void on_ack(CongestionContext& c, const Feedback& f) const override {
    PowertcpState& s = state_of<PowertcpState>(c);
    const bool round_over = !s.started || after(f.acknowledged_psn, s.round_end);
    const bool known = in_band_ ? measure_power(c, s, f) : measure_delay(c, s, f);
    if (known && (in_band_ || round_over)) move_window(c, s);
    if (!round_over) return;
    s.reference = s.window;
    if (!s.started || after(c.next_psn, s.round_end)) s.round_end = c.next_psn;
    s.started = true;
  }

  // Objects unless T is short by less than what the target leaves free, which costs little.
  std::string objection(const CongestionContext& c, Time round_trip) const override {
    const Time base = base_rtt(c);
    const double share = static_cast<double>(base) / static_cast<double>(round_trip);
    if (share >= (in_band_ ? p_.eta : 1 / p_.rtt_margin)) return {};
    return fmt::format(
        "PowerTCP's T ({}base_rtt {}) is shorter, so a flow's window holds {:.1f} % of the path's "
        "bandwidth-delay product; set base_rtt to {}, or to 0 for each path's own",
        p_.base_rtt != 0 ? "" : "transport.", format_time(base), 100 * share, format_time(round_trip));
  }

 private:
  static constexpr double kLeastSlope = 0.5;  // least value of dRTT/dt + 1
  static constexpr double kSentWraps = 4294967296.0;

  Time base_rtt(const CongestionContext& c) const {
    return std::max<Time>(1, p_.base_rtt != 0 ? p_.base_rtt : c.base_rtt);
  }

  // Returns whether the readings can be compared with the last ones.
  static bool follows(const PowertcpState& s, const Feedback& f, std::uint8_t hops) {
    if (hops != s.hops) return false;
    for (std::uint8_t i = 0; i < hops; ++i) {
      const Time dt = f.hops[i].time - s.last[i].time;
      if (dt <= 0 || bytes_in(static_cast<double>(f.hops[i].rate), dt) >= kSentWraps) return false;
    }
    return true;
  }

  bool measure_power(const CongestionContext& c, PowertcpState& s, const Feedback& f) const {
    const auto hops = static_cast<std::uint8_t>(std::min<std::size_t>(f.hops.size(), kTelemetryHops));
    if (hops == 0) return false;
    const bool comparable = follows(s, f, hops);
    const Time base = base_rtt(c);
    double most = -1;
    Time elapsed = 0;
    for (std::uint8_t i = 0; i < hops; ++i) {
      const TelemetryHop& hop = f.hops[i];
      const PowertcpReading now{hop.time, static_cast<std::uint32_t>(hop.sent),
                                static_cast<std::uint32_t>(std::min<Bytes>(hop.queue, UINT32_MAX))};
      if (comparable) {
        const Time dt = now.time - s.last[i].time;
        const double power = normalised_power(s.last[i], now, static_cast<double>(hop.rate), base);
        if (power > most) {
          most = power;
          elapsed = dt;
        }
      }
      s.last[i] = now;
    }
    s.hops = hops;
    if (comparable) smooth(s, most, elapsed, base);
    return comparable;
  }

  static double normalised_power(const PowertcpReading& before, const PowertcpReading& now, double rate,
                                 Time base) {
    const double arrived = static_cast<double>(now.sent - before.sent) + static_cast<double>(now.queue) -
                           static_cast<double>(before.queue);
    const double current = std::max(arrived, 0.0) / bytes_in(rate, now.time - before.time);
    const double voltage = static_cast<double>(now.queue) / bytes_in(rate, base) + 1;
    return current * voltage;
  }

  bool measure_delay(const CongestionContext& c, PowertcpState& s, const Feedback& f) const {
    if (f.rtt <= 0) return false;
    const Time dt = c.now - s.acknowledged;
    const bool comparable = s.rtt > 0;
    if (comparable && dt <= 0) return false;
    const Time base = base_rtt(c);
    if (comparable) {
      const double slope = static_cast<double>(f.rtt - s.rtt) / static_cast<double>(dt) + 1;
      const double target = p_.rtt_margin * static_cast<double>(base);
      smooth(s, std::max(slope, kLeastSlope) * static_cast<double>(f.rtt) / target, dt, base);
    }
    s.rtt = f.rtt;
    s.acknowledged = c.now;
    return comparable;
  }

  static void smooth(PowertcpState& s, double power, Time elapsed, Time base) {
    const auto weight = static_cast<double>(std::min(elapsed, base));
    const auto whole = static_cast<double>(base);
    s.power = (s.power * (whole - weight) + power * weight) / whole;
  }

  void move_window(CongestionContext& c, PowertcpState& s) const {
    const Time base = base_rtt(c);
    const auto line = static_cast<double>(c.line_rate);
    const double beta = bytes_in(p_.rate_ai ? static_cast<double>(*p_.rate_ai) : line * 3 / 500, base);
    const double floor =
        bytes_in(p_.minimum_rate ? static_cast<double>(*p_.minimum_rate) : line / 1000, base);
    const double most = bytes_in(line, base);
    const double power = in_band_ ? s.power / p_.eta : s.power;
    // Without power, because a link was idle for a round trip, the division gives infinity, so the whole
    // window.
    const double wanted = gamma_ * (s.reference / power + beta) + (1 - gamma_) * s.window;
    s.window = std::min(std::max(wanted, floor), most);
    c.window = to_window(s.window);
    c.rate = to_rate(s.window * 8e12 / static_cast<double>(base), c.line_rate);
  }

  PowerTcpParameters p_;
  bool in_band_;
  double gamma_;
};

const Registration<CongestionControl> kPowerTcp{
    "powertcp",
    "PowerTCP: windows from the power at queues, by in-band telemetry or by delay alone (NSDI 2022)",
    powertcp_parameters(),
    [](const PowerTcpParameters& p, const ConfigNode&) { return std::make_unique<PowerTcp>(p); }};

}  // namespace
}  // namespace netsim
