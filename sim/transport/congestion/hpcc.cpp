// HPCC (Li et al., HPCC: High Precision Congestion Control, SIGCOMM 2019, algorithm 1). Switches write their
// load into every data packet (INT), and the ACK brings it back. The sender sets its window W and its rate
// W/T so that the busiest link is used to eta.
//
// The bytes in flight of a link over its capacity T B are estimated from two readings of INT. The estimate is
// smoothed over T with the weight of the time between the readings. With k = u / eta:
//   u = min(queue now, before) / (T B) + (rate it sent at) / B,
//   k >= 1, or max_stage additive steps in a row:  W = Wc / k + W_AI,  otherwise  W = Wc + W_AI.
// Wc, the reference window, moves to W once per round trip. In between (fast reaction) every ACK computes W
// from the same Wc, so that one event does not cause two reactions.
//
// The paper leaves details open. They follow the authors' simulator, with which netsim is compared
// (alibaba-edu/High-Precision-Congestion-Control, rdma-hw.cc and int-header.h).
//
//  - The first ACK's telemetry is only stored. u starts at 1, and the next round trip begins at the packet
//  then
//    due.
//  - The time between readings counts as at most T. The queue is the smaller of the two readings.
//  - W_AI is given as a rate, W_AI = rate_ai T. Rates are bounded by minimum_rate and the line.
//  - A changed rate also moves the packet that is waiting (`pace_again`).
//
// An ACK is only stored if its path has another length than the last one's, or its readings do not go forward
// in time. Then the path has changed, or packets overtook each other. The paper's path ID does the same
// (4.1).
//
// Every packet's INT is needed (section 3.1: the receiver copies it into an ACK for each packet). So each
// packet is acknowledged by default.
//
// A window of the line rate times T fills a path only if T is not shorter than its round trip. In the paper T
// is the network's longest base RTT (3.2).
#include <fmt/format.h>

#include <array>
#include <optional>

#include "sim/core/config.h"
#include "sim/core/registry.h"
#include "sim/transport/congestion/congestion_math.h"

namespace netsim {
namespace {

enum class Rates { single, per_hop };

// eta and max_stage are from section 5.1 of the paper. rate_ai is from the simulator's run.py, 10 Mb/s per 25
// Gb/s (the paper's W_AI of 80 B in 13 us is 49 Mb/s). minimum_rate is RdmaHw's MinRate of 100 Mb/s (at 100
// Gb/s; run.py sets 1 Gb/s).
//
// The headers have five hops of 8 B and a count of 2 B (int-header.h).
struct HpccParameters {
  double eta = 0.95;
  std::int64_t max_stage = 5;
  std::optional<BitRate> rate_ai;
  std::optional<BitRate> minimum_rate;
  bool fast_reaction = true;
  Rates rates = Rates::single;
  bool quantise = false;
  std::optional<std::int64_t> unit_multiplier;
  Time base_rtt = 0;
  std::int64_t data_header = 42;
  std::int64_t ack_header = 42;
};

Parameters<HpccParameters> hpcc_parameters() {
  using P = HpccParameters;
  constexpr Range<BitRate> kRates{0, 100'000 * kGbps};
  return Parameters<P>()
      .real("eta", &P::eta, {0.01, 1}, "target utilisation of the busiest link")
      .integer("max_stage", &P::max_stage, {0, 1'000'000},
               "additive steps in a row until the window follows the utilisation again; 0: it always does")
      .rate("rate_ai", &P::rate_ai, kRates, "line rate / 2500",
            "additive step, as a rate: the window's is rate_ai x base RTT; 40 Mb/s at 100 Gb/s")
      .rate("minimum_rate", &P::minimum_rate, kRates, "line rate / 1000", "floor; 100 Mb/s at 100 Gb/s")
      .flag("fast_reaction", &P::fast_reaction, "react to every ACK, not only once per round trip")
      .choice("rates", &P::rates, {{"single", Rates::single}, {"per_hop", Rates::per_hop}},
              "one window for the busiest link, or one for every hop, of which the smallest holds")
      .flag("quantise", &P::quantise,
            "read telemetry as the INT header holds it: time 24 bits of 1 ns, sent bytes 20 bits of 128 B, "
            "queue 17 bits of 80 B, the latter two times unit_multiplier")
      .integer("unit_multiplier", &P::unit_multiplier, {1, 1'000'000}, "line rate / 25 Gb/s",
               "of the units of the INT header; only with quantise")
      .time("base_rtt", &P::base_rtt, {0, kSecond}, "T, the round trip without queues; 0: the path's own")
      .integer("data_header", &P::data_header, {0, 1024}, "bytes of INT in every data packet")
      .integer("ack_header", &P::ack_header, {0, 1024}, "bytes of INT in every ACK");
}

// A hop's telemetry as the sender reads it.
struct HpccReading {
  Time time;
  Bytes sent;
  Bytes queue;
};

struct Loop {
  double utilisation;     // u, smoothed
  double reference_rate;  // Wc / T
  std::int64_t stage;     // additive steps in a row
};

struct HpccState {
  std::array<HpccReading, kTelemetryHops> last;
  std::array<Loop, kTelemetryHops> loop;  // [0] alone with a single rate
  std::uint32_t hops;
  std::uint32_t round_end;  // an ACK beyond this psn belongs to the next round trip
  bool started;
};

class Hpcc final : public CongestionControl {
 public:
  explicit Hpcc(const HpccParameters& p) : p_(p) {}

  CongestionNeeds needs() const override {
    return {.acks = true,
            .every_ack = true,
            .pace_again = true,
            .telemetry = true,
            .base_rtt = p_.base_rtt == 0,
            .data_header = static_cast<std::uint32_t>(p_.data_header),
            .ack_header = static_cast<std::uint32_t>(p_.ack_header),
            .state_bytes = sizeof(HpccState)};
  }

  std::vector<IdleKey> idle_keys() const override {
    if (p_.quantise) return {};
    return {{"unit_multiplier", "readings are exact (quantise: false)"}};
  }

  void start(CongestionContext& c) const override {
    c.rate = c.line_rate;
    c.window = to_window(bytes_in(static_cast<double>(c.line_rate), base_rtt(c)));
    for (Loop& loop : state_of<HpccState>(c).loop) loop = {1, static_cast<double>(c.line_rate), 0};
  }

  void on_ack(CongestionContext& c, const Feedback& f) const override {
    if (f.hops.empty()) return;
    HpccState& s = state_of<HpccState>(c);
    const bool round_over = !s.started || after(f.acknowledged_psn, s.round_end);
    if (!round_over && !p_.fast_reaction) return;
    std::array<HpccReading, kTelemetryHops> now;
    const auto hops = static_cast<std::uint32_t>(std::min<std::size_t>(f.hops.size(), kTelemetryHops));
    for (std::uint32_t i = 0; i < hops; ++i) now[i] = read(c, f.hops[i]);
    if (s.started && follows(s, now, hops)) react(c, s, now, f, hops, round_over);
    s.last = now;
    s.hops = hops;
    if (!s.started || (round_over && after(c.next_psn, s.round_end))) s.round_end = c.next_psn;
    s.started = true;
  }

  // Objects unless T is short by less than what eta leaves free, which costs nothing.
  std::string objection(const CongestionContext& c, Time round_trip) const override {
    const Time base = base_rtt(c);
    const double share = static_cast<double>(base) / static_cast<double>(round_trip);
    if (share >= p_.eta) return {};
    return fmt::format(
        "HPCC's T ({}base_rtt {}) is shorter, so a flow's window holds {:.1f} % of the path's "
        "bandwidth-delay product; set base_rtt to {}, or to 0 for each path's own",
        p_.base_rtt != 0 ? "" : "transport.", format_time(base), 100 * share, format_time(round_trip));
  }

 private:
  static constexpr Time kClock = (1 << 24) * kNanosecond;  // value at which the header's time wraps
  static constexpr Bytes kSentUnits = 1 << 20, kQueueUnits = 1 << 17;
  static constexpr Bytes kSentUnit = 128, kQueueUnit = 80;

  Time base_rtt(const CongestionContext& c) const {
    return std::max<Time>(1, p_.base_rtt != 0 ? p_.base_rtt : c.base_rtt);
  }
  std::int64_t multiplier(const CongestionContext& c) const {
    return p_.unit_multiplier.value_or(std::max<std::int64_t>(1, c.line_rate / (25 * kGbps)));
  }

  HpccReading read(const CongestionContext& c, const TelemetryHop& hop) const {
    if (!p_.quantise) return {hop.time, hop.sent, hop.queue};
    const Bytes sent_unit = kSentUnit * multiplier(c), queue_unit = kQueueUnit * multiplier(c);
    return {hop.time / kNanosecond * kNanosecond % kClock, hop.sent / sent_unit % kSentUnits * sent_unit,
            hop.queue / queue_unit % kQueueUnits * queue_unit};
  }
  Time elapsed(const HpccReading& now, const HpccReading& before) const {
    const Time t = now.time - before.time;
    return p_.quantise && t < 0 ? t + kClock : t;
  }
  Bytes sent(const CongestionContext& c, const HpccReading& now, const HpccReading& before) const {
    const Bytes bytes = now.sent - before.sent;
    return p_.quantise && bytes < 0 ? bytes + kSentUnits * kSentUnit * multiplier(c) : bytes;
  }
  // Returns whether the readings can be compared with the last ones.
  bool follows(const HpccState& s, const std::array<HpccReading, kTelemetryHops>& now,
               std::uint32_t hops) const {
    if (hops != s.hops) return false;
    for (std::uint32_t i = 0; i < hops; ++i) {
      if (elapsed(now[i], s.last[i]) <= 0) return false;
      if (!p_.quantise && now[i].sent < s.last[i].sent) return false;
    }
    return true;
  }

  void react(CongestionContext& c, HpccState& s, const std::array<HpccReading, kTelemetryHops>& now,
             const Feedback& f, std::uint32_t hops, bool round_over) const {
    const Time base = base_rtt(c);
    double busiest = 0;
    Time busiest_elapsed = 0;
    double rate = static_cast<double>(c.line_rate);
    for (std::uint32_t i = 0; i < hops; ++i) {
      const Time dt = elapsed(now[i], s.last[i]);
      const auto capacity = static_cast<double>(f.hops[i].rate);
      const double sent_rate =
          static_cast<double>(sent(c, now[i], s.last[i])) * 8e12 / static_cast<double>(dt);
      const auto queue = static_cast<double>(std::min(now[i].queue, s.last[i].queue));
      const double u = sent_rate / capacity + queue / bytes_in(capacity, base);
      if (p_.rates == Rates::per_hop) {
        rate = std::min(rate, step(c, s.loop[i], u, dt, base, round_over));
      } else if (i == 0 || u > busiest) {
        busiest = u;
        busiest_elapsed = dt;
      }
    }
    if (p_.rates == Rates::single) rate = step(c, s.loop[0], busiest, busiest_elapsed, base, round_over);
    c.rate = to_rate(rate, c.line_rate);
    c.window = to_window(bytes_in(rate, base));
  }

  // Returns the rate that one reading u of the loop's link allows; u was taken over `dt`.
  double step(const CongestionContext& c, Loop& loop, double u, Time dt, Time base, bool round_over) const {
    const auto weight = static_cast<double>(std::min(dt, base));
    const auto whole = static_cast<double>(base);
    loop.utilisation = (loop.utilisation * (whole - weight) + u * weight) / whole;
    const double k = loop.utilisation / p_.eta;
    const bool follow = k >= 1 || loop.stage >= p_.max_stage;
    const auto line = static_cast<double>(c.line_rate);
    const double added = p_.rate_ai ? static_cast<double>(*p_.rate_ai) : line / 2500;
    const double floor = p_.minimum_rate ? static_cast<double>(*p_.minimum_rate) : line / 1000;
    // If k = 0, because a link was idle for a round trip, the division gives infinity, so the line rate.
    const double rate =
        std::min(std::max((follow ? loop.reference_rate / k : loop.reference_rate) + added, floor), line);
    if (round_over) {
      loop.reference_rate = rate;
      loop.stage = follow ? 0 : loop.stage + 1;
    }
    return rate;
  }

  HpccParameters p_;
};

const Registration<CongestionControl> kHpcc{
    "hpcc", "HPCC: windows from in-band telemetry, for near-empty queues (SIGCOMM 2019)", hpcc_parameters(),
    [](const HpccParameters& p, const ConfigNode&) { return std::make_unique<Hpcc>(p); }};

}  // namespace
}  // namespace netsim
