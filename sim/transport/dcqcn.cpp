// DCQCN (Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015): rate-based, driven
// by CNPs.
//
// Per queue pair: current rate RC, target rate RT, congestion estimate alpha. A CNP within an alpha period
// makes alpha = (1-g) alpha + g, none alpha = (1-g) alpha. A decrease sets RT = RC and RC = RC (1 - alpha/2).
// Increases come from a timer and, where it is on, a byte counter: fast recovery RC = (RT+RC)/2, then
// additive (RT += rate_ai), then hyper increase (RT += rate_hai).
//
// Two profiles (constants: HPCC's published simulator, run.py "dcqcn" and "dcqcn_paper"; SIGCOMM'15 section
// 5):
//  vendor       what the NIC vendor ships and ns-3's RDMA model follows: alpha every 1 us, decreases at most
//  every 4 us
//               on a grid that starts with the first CNP, increase every 300 us, one fast recovery step, no
//               byte counter.
//  sigcomm15    50 / 50 / 55 us, 10 MB byte counter, five fast recovery steps, the decrease at the CNP
//  itself.
// Alpha's periods need no events: they are caught up with when a CNP or a decrease asks for alpha.
#include <algorithm>
#include <cstring>

#include "sim/core/registry.h"
#include "sim/transport/congestion_control.h"

namespace netsim {
namespace {

enum class Profile { vendor, sigcomm15 };

// 0: as the profile says.
struct DcqcnParameters {
  Profile profile = Profile::vendor;
  double g = 1.0 / 256;
  Time alpha_timer = 0;
  Time decrease_interval = 0;
  Time increase_timer = 0;
  Bytes byte_counter = 0;
  std::int64_t fast_recovery_steps = 0;
  BitRate rate_ai = 0;
  BitRate rate_hai = 0;
  BitRate minimum_rate = 0;
  Time cnp_interval = 0;
};

Parameters<DcqcnParameters> parameters() {
  using P = DcqcnParameters;
  return Parameters<P>()
      .choice("profile", &P::profile, {{"vendor", Profile::vendor}, {"sigcomm15", Profile::sigcomm15}},
              "which set of constants the other parameters default to (shown as 0 here)")
      .real("g", &P::g, {1e-6, 1}, "gain of alpha")
      .time("alpha_timer", &P::alpha_timer, {0, kSecond}, "alpha period; vendor 1 us, sigcomm15 50 us")
      .time("decrease_interval", &P::decrease_interval, {0, kSecond},
            "least time between decreases; vendor 4 us, sigcomm15 50 us")
      .time("increase_timer", &P::increase_timer, {0, kSecond}, "vendor 300 us, sigcomm15 55 us")
      .bytes("byte_counter", &P::byte_counter, {0, 1000 * kGigabyte},
             "bytes sent between increases; vendor: none (the byte counter is off), sigcomm15 10 MB")
      .integer("fast_recovery_steps", &P::fast_recovery_steps, {0, 1000}, "vendor 1, sigcomm15 5")
      .rate("rate_ai", &P::rate_ai, {0, 100'000 * kGbps},
            "additive increase; vendor 1/5000 of the line rate (20 Mb/s at 100 Gb/s), sigcomm15 40 Mb/s")
      .rate("rate_hai", &P::rate_hai, {0, 100'000 * kGbps},
            "hyper increase; vendor 1/500 of the line rate (200 Mb/s at 100 Gb/s), sigcomm15 400 Mb/s")
      .rate("minimum_rate", &P::minimum_rate, {0, 100'000 * kGbps},
            "floor; vendor 1/100 of the line rate (1 Gb/s at 100 Gb/s), sigcomm15 1/1000")
      .time("cnp_interval", &P::cnp_interval, {0, kSecond},
            "receiver: least time between CNPs of one queue pair; vendor 4 us, sigcomm15 50 us");
}

struct State {
  double alpha;
  double target;
  Time epoch;            // of the alpha and decrease periods: the first CNP
  std::int64_t periods;  // alpha periods accounted for since epoch
  Time next_increase;    // kNever: off
  Time next_decrease;    // kNever: none pending
  Time last_decrease;
  Bytes sent;  // since the byte counter's last step
  std::int32_t timer_stage, byte_stage;
  bool started, cnp_in_period, cnp_since_decrease, increased;
};
static_assert(sizeof(State) <= kMaxCongestionStateBytes);

constexpr unsigned kIncrease = 0, kDecrease = 1;

// x^n by squaring: the same bits on every machine.
double power(double x, std::int64_t n) {
  double result = 1;
  for (; n > 0; n >>= 1, x *= x) {
    if ((n & 1) != 0) result *= x;
  }
  return result;
}

class Dcqcn final : public CongestionControl {
 public:
  explicit Dcqcn(DcqcnParameters p) : p_(p) {
    const bool vendor = p.profile == Profile::vendor;
    const auto fill = [](auto& value, auto fallback) {
      if (value == 0) value = fallback;
    };
    fill(p_.alpha_timer, (vendor ? 1 : 50) * kMicrosecond);
    fill(p_.decrease_interval, (vendor ? 4 : 50) * kMicrosecond);
    fill(p_.increase_timer, (vendor ? 300 : 55) * kMicrosecond);
    fill(p_.cnp_interval, (vendor ? 4 : 50) * kMicrosecond);
    fill(p_.fast_recovery_steps, static_cast<std::int64_t>(vendor ? 1 : 5));
    fill(p_.byte_counter, vendor ? 0 : 10 * kMegabyte);
  }

  CongestionNeeds needs() const override {
    return {
        .sent_bytes = p_.byte_counter != 0, .cnp_interval = p_.cnp_interval, .state_bytes = sizeof(State)};
  }

  void on_cnp(CongestionContext& c) const override {
    State& s = state(c);
    if (!s.started) {
      s = State{};
      s.started = true;
      s.alpha = 1;
      s.target = static_cast<double>(c.rate);
      s.epoch = c.now;
      s.next_increase = s.next_decrease = kNever;
      s.last_decrease = c.now - p_.decrease_interval;
    }
    advance_alpha(s, c.now);
    s.cnp_in_period = s.cnp_since_decrease = true;
    if (p_.profile == Profile::sigcomm15) {
      if (c.now - s.last_decrease >= p_.decrease_interval) decrease(c, s);
    } else if (s.next_decrease == kNever) {
      const Time periods = (c.now - s.epoch) / p_.decrease_interval + 1;
      s.next_decrease = s.epoch + periods * p_.decrease_interval;
      c.timer[kDecrease] = s.next_decrease;
    }
  }

  void on_timer(CongestionContext& c, unsigned timer) const override {
    State& s = state(c);
    if (timer == kDecrease && c.now == s.next_decrease) {
      s.next_decrease = kNever;
      advance_alpha(s, c.now);
      if (s.cnp_since_decrease) decrease(c, s);
    } else if (timer == kIncrease && c.now == s.next_increase) {
      ++s.timer_stage;
      increase(c, s);
      const bool full = c.rate >= c.line_rate && s.target >= static_cast<double>(c.line_rate);
      s.next_increase = full ? kNever : c.now + p_.increase_timer;
      c.timer[kIncrease] = s.next_increase;
    }
  }

  void on_sent(CongestionContext& c, Bytes bytes) const override {
    State& s = state(c);
    if (!s.started || c.rate >= c.line_rate) return;
    s.sent += bytes;
    if (s.sent < p_.byte_counter) return;
    s.sent -= p_.byte_counter;
    ++s.byte_stage;
    increase(c, s);
  }

 private:
  static State& state(CongestionContext& c) { return *reinterpret_cast<State*>(c.state); }

  // Accounts for the alpha periods that ended up to `now`: the first may have seen CNPs, the others had none.
  void advance_alpha(State& s, Time now) const {
    const std::int64_t ended = (now - s.epoch) / p_.alpha_timer;
    const std::int64_t fresh = ended - s.periods;
    if (fresh <= 0) return;
    s.periods = ended;
    s.alpha = (1 - p_.g) * s.alpha + (s.cnp_in_period ? p_.g : 0);
    s.cnp_in_period = false;
    s.alpha *= power(1 - p_.g, fresh - 1);
  }

  void decrease(CongestionContext& c, State& s) const {
    s.cnp_since_decrease = false;
    // Several decreases in a row keep the target of the first, so that recovery aims where the trouble began.
    if (p_.profile == Profile::sigcomm15 || s.increased) s.target = static_cast<double>(c.rate);
    s.increased = false;
    set_rate(c, static_cast<double>(c.rate) * (1 - s.alpha / 2));
    s.last_decrease = c.now;
    s.timer_stage = s.byte_stage = 0;
    s.sent = 0;
    s.next_increase = c.now + p_.increase_timer;
    c.timer[kIncrease] = s.next_increase;
  }

  void increase(CongestionContext& c, State& s) const {
    s.increased = true;
    const auto line = static_cast<double>(c.line_rate);
    const std::int64_t steps = p_.fast_recovery_steps;
    const std::int64_t high = std::max(s.timer_stage, s.byte_stage);
    const std::int64_t low = p_.byte_counter == 0 ? high : std::min(s.timer_stage, s.byte_stage);
    if (high > steps) {
      s.target += low > steps + (p_.byte_counter == 0 ? 1 : 0) ? rate_hai(line) : rate_ai(line);
      s.target = std::min(s.target, line);
    }
    set_rate(c, (static_cast<double>(c.rate) + s.target) / 2);
  }

  double rate_ai(double line) const {
    if (p_.rate_ai != 0) return static_cast<double>(p_.rate_ai);
    return p_.profile == Profile::vendor ? line / 5000 : 40e6;
  }
  double rate_hai(double line) const {
    if (p_.rate_hai != 0) return static_cast<double>(p_.rate_hai);
    return p_.profile == Profile::vendor ? line / 500 : 400e6;
  }

  void set_rate(CongestionContext& c, double rate) const {
    const auto line = static_cast<double>(c.line_rate);
    const double minimum = p_.minimum_rate != 0 ? static_cast<double>(p_.minimum_rate)
                                                : line / (p_.profile == Profile::vendor ? 100 : 1000);
    rate = std::clamp(rate, std::min(minimum, line), line);
    // Within 0.5 Mb/s of the line rate is the line rate: halving the distance alone never arrives there.
    c.rate = line - rate < 0.5e6 ? c.line_rate : static_cast<BitRate>(rate + 0.5);
  }

  DcqcnParameters p_;
};

const Registration<CongestionControl> kDcqcn{
    "dcqcn",
    "DCQCN: CNP-driven rate control of RoCE NICs (SIGCOMM 2015), in the NIC vendor's or the paper's profile",
    parameters(), [](const DcqcnParameters& p, const ConfigNode&) { return std::make_unique<Dcqcn>(p); }};

}  // namespace
}  // namespace netsim
