// TIMELY (Mittal et al., TIMELY: RTT-based Congestion Control for the Datacenter, SIGCOMM 2015, algorithm 1):
// the rate follows the gradient of the round-trip time.
//
// Once per round trip (the first ACK of a packet sent after the last update; the paper's completion events):
//   d = (1 - alpha) d + alpha (rtt - previous rtt),  gradient = d / minimum_rtt
//   rtt < t_low:             increase
//   rtt > t_high:            rate (1 - beta (1 - t_high / rtt))
//   gradient <= 0:           increase
//   otherwise:               rate max(0, 1 - beta gradient)
// An increase adds rate_ai, or rate_hai after hai_after increases in a row.
//
// Two details follow the RDMA model that accompanies HPCC, with which netsim is compared
// (alibaba-edu/High-Precision-Congestion-Control, rdma-hw.cc HandleAckTimely). The first round trip only sets
// the previous rtt. Increases below t_low count towards hyperactive increase and may be hyperactive too; the
// paper's are not.
//
// The NIC sends single packets; the paper's segments of 16 KB and more are not modelled. Each of its segments
// has its own completion event, so each packet here has an ACK by default.
//
// If an idle round trip is above t_high, the rate only falls. If it is above t_low, only the gradient ever
// raises it.

#include <fmt/format.h>

#include <optional>

#include "sim/core/config.h"
#include "sim/core/registry.h"
#include "sim/transport/congestion/congestion_math.h"

namespace netsim {
namespace {

// alpha, beta, t_low and t_high are the model's defaults (the paper: beta 0.8, 50 us, 500 us; alpha not
// given). minimum_rtt is 20 us, that of the paper's 10 Gb/s network. rate_ai and rate_hai are from the
// model's run.py, 10 and 50 Mb/s per 10 Gb/s (the paper: 10 Mb/s, five times that after five increases).
//
// minimum_rate is RdmaHw's MinRate of 100 Mb/s (at 100 Gb/s; run.py sets 1 Gb/s).
struct TimelyParameters {
  double alpha = 0.875;
  double beta = 0.8;
  Time t_low = 50 * kMicrosecond;
  Time t_high = 500 * kMicrosecond;
  Time minimum_rtt = 20 * kMicrosecond;
  std::optional<BitRate> rate_ai;
  std::optional<BitRate> rate_hai;
  std::int64_t hai_after = 5;
  std::optional<BitRate> minimum_rate;
  Time resolution = kNanosecond;
  std::int64_t header = 0;
};

Parameters<TimelyParameters> timely_parameters() {
  using P = TimelyParameters;
  constexpr Range<BitRate> kRates{0, 100'000 * kGbps};
  return Parameters<P>()
      .real("alpha", &P::alpha, {0, 1}, "weight of the newest difference of round-trip times")
      .real("beta", &P::beta, {0, 1}, "how strongly the rate decreases")
      .time("t_low", &P::t_low, {0, kSecond}, "the rate increases below this round-trip time")
      .time("t_high", &P::t_high, {0, kSecond}, "the rate decreases above it, whatever the gradient")
      .time("minimum_rtt", &P::minimum_rtt, {kNanosecond, kSecond},
            "round-trip time by which the gradient is normalised")
      .rate("rate_ai", &P::rate_ai, kRates, "line rate / 1000", "additive step; 100 Mb/s at 100 Gb/s")
      .rate("rate_hai", &P::rate_hai, kRates, "line rate / 200",
            "step of hyperactive increase; 500 Mb/s at 100 Gb/s")
      .integer("hai_after", &P::hai_after, {0, 1'000'000}, "increases in a row until they are hyperactive")
      .rate("minimum_rate", &P::minimum_rate, kRates, "line rate / 1000", "floor; 100 Mb/s at 100 Gb/s")
      .time("resolution", &P::resolution, {kPicosecond, kMillisecond},
            "resolution of the NIC's clock: round-trip times are rounded down to multiples of it")
      .integer("header", &P::header, {0, 1024}, "bytes of the timestamp in every data packet and ACK");
}

struct TimelyState {
  double rate;
  double difference;  // d, in picoseconds
  Time rtt;           // the previous round-trip time
  std::int64_t increases;
  std::uint32_t round_end;
  bool started;
};

class Timely final : public CongestionControl {
 public:
  explicit Timely(const TimelyParameters& p) : p_(p) {}

  CongestionNeeds needs() const override {
    const auto header = static_cast<std::uint32_t>(p_.header);
    return {.acks = true,
            .every_ack = true,
            .timestamps = true,
            .base_rtt = false,
            .data_header = header,
            .ack_header = header,
            .state_bytes = sizeof(TimelyState)};
  }

  void start(CongestionContext& c) const override {
    c.rate = c.line_rate;
    state_of<TimelyState>(c).rate = static_cast<double>(c.line_rate);
  }

  void on_ack(CongestionContext& c, const Feedback& f) const override {
    if (f.rtt == 0) return;
    TimelyState& s = state_of<TimelyState>(c);
    if (s.started && !after(f.acknowledged_psn, s.round_end)) return;
    const Time rtt = f.rtt / p_.resolution * p_.resolution;
    if (s.started) update(c, s, rtt);
    if (!s.started || after(c.next_psn, s.round_end)) {
      s.round_end = c.next_psn;
      s.rtt = rtt;
    }
    s.started = true;
  }

  std::string objection(const CongestionContext&, Time round_trip) const override {
    if (round_trip > p_.t_high) {
      return fmt::format(
          "TIMELY's t_high {} is below it, so the rate only falls; set t_low and t_high above it",
          format_time(p_.t_high));
    }
    if (round_trip < p_.t_low) return {};
    return fmt::format(
        "TIMELY's t_low {} is not above it, so delays never count as low and the rate follows their gradient "
        "alone; set t_low above it",
        format_time(p_.t_low));
  }

 private:
  void update(CongestionContext& c, TimelyState& s, Time rtt) const {
    s.difference = (1 - p_.alpha) * s.difference + p_.alpha * static_cast<double>(rtt - s.rtt);
    const double gradient = s.difference / static_cast<double>(p_.minimum_rtt);
    if (rtt < p_.t_low || (rtt <= p_.t_high && gradient <= 0)) return increase(c, s);
    const double excess =
        rtt > p_.t_high ? 1 - static_cast<double>(p_.t_high) / static_cast<double>(rtt) : gradient;
    const double kept = std::max(0.0, 1 - p_.beta * excess);
    const double floor = p_.minimum_rate ? static_cast<double>(*p_.minimum_rate) : line(c) / 1000;
    s.increases = 0;
    set(c, s, std::max(floor, s.rate * kept));
  }

  void increase(CongestionContext& c, TimelyState& s) const {
    const double ai = p_.rate_ai ? static_cast<double>(*p_.rate_ai) : line(c) / 1000;
    const double hai = p_.rate_hai ? static_cast<double>(*p_.rate_hai) : line(c) / 200;
    const double added = s.increases < p_.hai_after ? ai : hai;
    ++s.increases;
    set(c, s, s.rate + added);
  }

  static double line(const CongestionContext& c) { return static_cast<double>(c.line_rate); }
  static void set(CongestionContext& c, TimelyState& s, double rate) {
    s.rate = std::min(rate, line(c));
    c.rate = to_rate(s.rate, c.line_rate);
  }

  TimelyParameters p_;
};

const Registration<CongestionControl> kTimely{
    "timely", "TIMELY: rates from the gradient of round-trip times (SIGCOMM 2015)", timely_parameters(),
    [](const TimelyParameters& p, const ConfigNode& node) {
      if (p.t_low > p.t_high) node.fail("t_low is above t_high");
      return std::make_unique<Timely>(p);
    }};

}  // namespace
}  // namespace netsim
