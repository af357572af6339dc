// DCQCN (Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015): rate-based, driven
// by CNPs.
//
// Each queue pair has a current rate RC, a target rate RT and a congestion estimate alpha, which is 1 at the
// first CNP. A decrease is RC = RC (1 - alpha/2). Increases come from a timer and optionally a byte counter;
// a decrease restarts both.
//
// Increases begin with fast recovery, RC = (RT+RC)/2. Then come additive increases (RT += rate_ai) and hyper
// increases (RT += rate_hai), each followed by RC = (RT+RC)/2.
//
// Two profiles:
//
// sigcomm15: the paper's equations (1) to (4). Every CNP sets RT = RC, decreases the rate, then sets
// alpha = (1-g) alpha + g. After every alpha_timer without a CNP, alpha = (1-g) alpha.
//
// vendor: the behaviour of the NIC vendor's products, as in the RDMA model that accompanies HPCC
// (alibaba-edu/High-Precision-Congestion-Control, rdma-hw.cc, *Mlx). From the first CNP on, alpha changes
// every alpha_timer. It becomes (1-g) alpha + g if a CNP came since the last time, else (1-g) alpha; the
// first CNP does not count.
//
// Every decrease_interval the rate decreases if a CNP came since the last decrease. Decreases come 1 ns after
// alpha's change where both fall together. RT = RC only if there was an increase since the last decrease, so
// that recovery aims at the rate at which congestion began. An increase due at the time of a decrease comes
// first.
//
// Alpha's periods need no events: they are accounted for when alpha is used. The increase timer stops while
// RC and RT are the line rate, because it could change nothing.
//
// The effect of a decrease is noticed a round trip later. Many decreases during one round trip can halve the
// rate down to its floor. Such a path has only full rate and floor.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sim/core/config.h"
#include "sim/core/registry.h"
#include "sim/transport/congestion/congestion_math.h"

namespace netsim {
namespace {

enum class Profile { vendor, sigcomm15 };

struct DcqcnParameters {
  Profile profile = Profile::vendor;
  double g = 1.0 / 256;
  std::optional<Time> alpha_timer;
  std::optional<Time> decrease_interval;
  std::optional<Time> increase_timer;
  std::optional<Bytes> byte_counter;
  std::optional<std::int64_t> fast_recovery_steps;
  std::optional<BitRate> rate_ai;
  std::optional<BitRate> rate_hai;
  std::optional<BitRate> minimum_rate;
  std::optional<Time> cnp_interval;
};

// Defaults of sigcomm15 are from section 5 of the paper. They are g 1/256, K and T 55 us, B 10 MB, F 5, RAI
// 40 Mb/s, and CNPs at most every 50 us. The paper gives no RHAI and no floor. They are ten times RAI, as in
// QCN (IEEE 802.1Qau, DCQCN's model), and 1/1000 of the line rate.
//
// Defaults of vendor are from run.py "dcqcn" of the simulator. The times are 1, 4 and 300 us, g is 1/256, and
// there is one fast recovery step. RAI is 5 and RHAI 50 Mb/s per 25 Gb/s, and the floor 1 Gb/s at 100 Gb/s.
//
// In vendor CNPs come at most every 4 us, the interval of decreases, because more would have no effect.
Parameters<DcqcnParameters> dcqcn_parameters() {
  using P = DcqcnParameters;
  constexpr Range<BitRate> kRates{0, 100'000 * kGbps};
  const std::string by = "by profile";
  return Parameters<P>()
      .choice("profile", &P::profile, {{"vendor", Profile::vendor}, {"sigcomm15", Profile::sigcomm15}},
              "the NIC vendor's rules or the paper's, and the constants that go with them")
      .real("g", &P::g, {1e-6, 1}, "gain of alpha")
      .time("alpha_timer", &P::alpha_timer, {kNanosecond, kSecond}, by,
            "alpha period; vendor 1 us, sigcomm15 55 us")
      .time(
          "decrease_interval", &P::decrease_interval, {0, kSecond}, by,
          "vendor: how often the rate may decrease, 4 us; sigcomm15: CNPs that follow a decrease sooner are "
          "ignored, 0: none")
      .time("increase_timer", &P::increase_timer, {0, kSecond}, by,
            "time between increases, 0: no timer; vendor 300 us, sigcomm15 55 us")
      .bytes("byte_counter", &P::byte_counter, {0, 1000 * kGigabyte}, by,
             "bytes sent between increases, 0: no byte counter; vendor 0, sigcomm15 10 MB")
      .integer("fast_recovery_steps", &P::fast_recovery_steps, {0, 1000}, by,
               "increases before additive ones; vendor 1, sigcomm15 5")
      .rate("rate_ai", &P::rate_ai, kRates, by,
            "additive increase; vendor 1/5000 of the line rate (20 Mb/s at 100 Gb/s), sigcomm15 40 Mb/s")
      .rate("rate_hai", &P::rate_hai, kRates, by,
            "hyper increase; vendor 1/500 of the line rate (200 Mb/s at 100 Gb/s), sigcomm15 400 Mb/s")
      .rate("minimum_rate", &P::minimum_rate, kRates, by,
            "floor; vendor 1/100 of the line rate (1 Gb/s at 100 Gb/s), sigcomm15 1/1000")
      .time(
          "cnp_interval", &P::cnp_interval, {0, kSecond}, by,
          "receiver: least time between CNPs of one queue pair, 0: one for every marked packet; vendor 4 us, "
          "sigcomm15 50 us");
}

struct DcqcnState {
  double rate, target;
  double alpha;
  // vendor: start of the alpha and decrease periods, at the first CNP; sigcomm15: time of the last CNP.
  Time epoch;
  std::int64_t periods;  // vendor: number of alpha periods accounted for since epoch
  Time next_increase;    // kNever: the timer is stopped
  Time increase_event;   // time of the pending timer; kNever: none
  Time next_decrease;    // vendor: kNever if none is pending
  Time last_decrease;
  Bytes sent;  // bytes sent since the byte counter's last step
  std::int32_t timer_stage, byte_stage;
  bool started, cnp_in_period, increased;
};

constexpr unsigned kIncrease = 0, kDecrease = 1;

class Dcqcn final : public CongestionControl {
 public:
  explicit Dcqcn(const DcqcnParameters& p)
      : p_(p),
        vendor_(p.profile == Profile::vendor),
        alpha_timer_(p.alpha_timer.value_or((vendor_ ? 1 : 55) * kMicrosecond)),
        decrease_interval_(p.decrease_interval.value_or(vendor_ ? 4 * kMicrosecond : 0)),
        increase_timer_(p.increase_timer.value_or((vendor_ ? 300 : 55) * kMicrosecond)),
        byte_counter_(p.byte_counter.value_or(vendor_ ? 0 : 10 * kMegabyte)),
        steps_(p.fast_recovery_steps.value_or(vendor_ ? 1 : 5)) {}

  CongestionNeeds needs() const override {
    return {.sent_bytes = byte_counter_ != 0,
            .base_rtt = false,
            .cnp_interval = cnp_interval(),
            .state_bytes = sizeof(DcqcnState)};
  }

  void on_cnp(CongestionContext& c) const override {
    DcqcnState& s = state_of<DcqcnState>(c);
    const bool first = !s.started;
    if (first) begin(c, s);
    if (vendor_) {
      advance_alpha(s, c.now);
      s.cnp_in_period = !first;
      if (s.next_decrease != kNever) return;
      const Time since = c.now - s.epoch - kDecreaseLag;
      s.next_decrease = c.now - since + (since / decrease_interval_ + 1) * decrease_interval_;
      c.timer[kDecrease] = s.next_decrease;
    } else {
      if (!first && c.now - s.last_decrease < decrease_interval_) return;
      s.alpha *= power(1 - p_.g, (c.now - s.epoch) / alpha_timer_);
      decrease(c, s);
      s.alpha = (1 - p_.g) * s.alpha + p_.g;
      s.epoch = c.now;
    }
  }

  void on_timer(CongestionContext& c, unsigned timer) const override {
    DcqcnState& s = state_of<DcqcnState>(c);
    // The timer was requested before the queue pair began anew.
    if (!s.started || c.now != (timer == kDecrease ? s.next_decrease : s.increase_event)) return;
    if (timer == kDecrease) {
      s.next_decrease = kNever;
      advance_alpha(s, c.now);
      decrease(c, s);
    } else {
      s.increase_event = kNever;
      if (c.now == s.next_increase) timed_increase(c, s);
      await_increase(c, s);
    }
  }

  void on_sent(CongestionContext& c, Bytes bytes) const override {
    DcqcnState& s = state_of<DcqcnState>(c);
    if (!s.started || c.rate >= c.line_rate) return;
    s.sent += bytes;
    if (s.sent < byte_counter_) return;
    s.sent -= byte_counter_;
    ++s.byte_stage;
    increase(c, s);
  }

  std::string objection(const CongestionContext& c, Time round_trip) const override {
    const Time interval = std::max({decrease_interval_, cnp_interval(), Time{1}});
    const Time allowed = round_trip / halvings_to_floor(static_cast<double>(c.line_rate));
    if (interval > allowed) return {};
    return fmt::format(
        "DCQCN decreases every {} ({}) before the first decrease has an effect, often enough to reach the "
        "minimum rate; set it to more than {}",
        format_time(interval), cnp_interval() > decrease_interval_ ? "cnp_interval" : "decrease_interval",
        format_time(allowed));
  }

 private:
  Time cnp_interval() const { return p_.cnp_interval.value_or((vendor_ ? 4 : 50) * kMicrosecond); }
  double floor(double line) const {
    return p_.minimum_rate ? static_cast<double>(*p_.minimum_rate) : line / (vendor_ ? 100 : 1000);
  }
  // Returns the number of halvings that take the rate to its floor. A decrease takes at most half of the
  // rate.
  std::int64_t halvings_to_floor(double line) const {
    constexpr std::int64_t kMost = 64;
    std::int64_t n = 1;
    for (double rate = line / 2; rate > floor(line) && n < kMost; rate /= 2) ++n;
    return n;
  }

  // The vendor's decreases come 1 ns after the alpha period that ends with them.
  static constexpr Time kDecreaseLag = kNanosecond;

  static void begin(const CongestionContext& c, DcqcnState& s) {
    s = DcqcnState{};
    s.started = true;
    s.alpha = 1;
    s.rate = s.target = static_cast<double>(c.rate);
    s.epoch = s.last_decrease = c.now;
    s.next_increase = s.increase_event = s.next_decrease = kNever;
  }

  // vendor: accounts for the alpha periods that ended up to `now`. The first may have had CNPs; the others
  // had none.
  void advance_alpha(DcqcnState& s, Time now) const {
    const std::int64_t ended = (now - s.epoch) / alpha_timer_;
    const std::int64_t fresh = ended - s.periods;
    if (fresh <= 0) return;
    s.periods = ended;
    s.alpha = (1 - p_.g) * s.alpha + (s.cnp_in_period ? p_.g : 0);
    s.cnp_in_period = false;
    s.alpha *= power(1 - p_.g, fresh - 1);
  }

  void decrease(CongestionContext& c, DcqcnState& s) const {
    if (s.next_increase == c.now) timed_increase(c, s);
    if (!vendor_ || s.increased) s.target = s.rate;
    s.increased = false;
    set_rate(c, s, s.rate * (1 - s.alpha / 2));
    s.last_decrease = c.now;
    s.timer_stage = s.byte_stage = 0;
    s.sent = 0;
    s.next_increase = increase_timer_ == 0 ? kNever : c.now + increase_timer_;
    await_increase(c, s);
  }

  // Requests the increase timer. Timers cannot be cancelled, and decreases keep postponing this one. So only
  // one event is pending at a time, and one that comes too early requests the next.
  static void await_increase(CongestionContext& c, DcqcnState& s) {
    if (s.increase_event != kNever || s.next_increase == kNever) return;
    s.increase_event = c.timer[kIncrease] = s.next_increase;
  }

  void timed_increase(CongestionContext& c, DcqcnState& s) const {
    ++s.timer_stage;
    increase(c, s);
    const bool full = c.rate >= c.line_rate && s.target >= static_cast<double>(c.line_rate);
    s.next_increase = full ? kNever : c.now + increase_timer_;
  }

  void increase(CongestionContext& c, DcqcnState& s) const {
    s.increased = true;
    const auto line = static_cast<double>(c.line_rate);
    // Hyper increase starts when both have passed the additive step. If one of them is off, it starts one
    // step later.
    const bool alone = byte_counter_ == 0 || increase_timer_ == 0;
    const std::int64_t high = std::max(s.timer_stage, s.byte_stage);
    const std::int64_t low = alone ? high - 1 : std::min(s.timer_stage, s.byte_stage);
    if (high > steps_) s.target = std::min(s.target + (low > steps_ ? rate_hai(line) : rate_ai(line)), line);
    set_rate(c, s, (s.rate + s.target) / 2);
  }

  double rate_ai(double line) const {
    if (p_.rate_ai) return static_cast<double>(*p_.rate_ai);
    return vendor_ ? line / 5000 : 40e6;
  }
  double rate_hai(double line) const {
    if (p_.rate_hai) return static_cast<double>(*p_.rate_hai);
    return vendor_ ? line / 500 : 400e6;
  }

  void set_rate(CongestionContext& c, DcqcnState& s, double rate) const {
    const auto line = static_cast<double>(c.line_rate);
    s.rate = std::clamp(rate, std::min(floor(line), line), line);
    c.rate = to_rate(s.rate, c.line_rate);
  }

  DcqcnParameters p_;
  bool vendor_;
  Time alpha_timer_;
  Time decrease_interval_;
  Time increase_timer_;
  Bytes byte_counter_;
  std::int64_t steps_;
};

const Registration<CongestionControl> kDcqcn{
    "dcqcn",
    "DCQCN: CNP-driven rate control of RoCE NICs (SIGCOMM 2015), in the NIC vendor's or the paper's profile",
    dcqcn_parameters(), [](const DcqcnParameters& p, const ConfigNode& node) {
      if (p.profile == Profile::vendor && p.decrease_interval == 0) {
        node.fail(
            "decrease_interval is 0: the vendor's profile needs an interval between its checks for CNPs");
      }
      return std::make_unique<Dcqcn>(p);
    }};

}  // namespace
}  // namespace netsim
