// InfiniBand's congestion control at the channel adapter (InfiniBand Architecture Specification, volume 1,
// annex A10). Switches mark packets with FECN, and the receiver returns BECN (here a CNP). The sender moves
// through a table of injection delays.
//
// Each queue pair has an index CCTI into the congestion control table. A BECN adds ccti_increase, up to
// ccti_limit. The CCTI timer subtracts 1, down to ccti_min.
//
// Entry i of the table is the gap after a packet, as a multiple of the packet's own time on the wire. So the
// rate is line / (1 + entry(i)). As in the annex, an entry is a multiplier of 14 bits over 2^shift, shift 0
// to 3, with the finest shift that fits.
//
// The table is generated: entry(i) is delay_step i (linear), delay_step i^2 (quadratic) or (1 + delay_step)^i
// - 1 (exponential). In the last one every step takes the same share of the rate.
//
// The annex has one timer per port and service level. Here every queue pair has its own, which starts when
// its CCTI leaves ccti_min and is not restarted by further BECNs.
#include <algorithm>
#include <vector>

#include "sim/core/registry.h"
#include "sim/transport/congestion/congestion_math.h"

namespace netsim {
namespace {

enum class Table { linear, quadratic, exponential };

// ccti_increase, ccti_limit, ccti_min and ccti_timer (150 units of 1.024 us) are settings found to work on
// hardware. The source is Gran et al., First Experiences with Congestion Control in InfiniBand Hardware,
// IPDPS 2010.
//
// The table is the vendor's default in LLNL's study of InfiniBand congestion control (opensm-cc-conf-gen.rb):
// 7 us (i / 95)^2 at 0.218 us a packet. The annex returns a BECN for every FECN, so cnp_interval is 0.
struct CctParameters {
  std::int64_t ccti_increase = 1;
  std::int64_t ccti_limit = 127;
  std::int64_t ccti_min = 0;
  Time ccti_timer = 153'600 * kNanosecond;
  Table table = Table::quadratic;
  double delay_step = 0.00356;
  Time cnp_interval = 0;
};

Parameters<CctParameters> ib_cct_parameters() {
  using P = CctParameters;
  return Parameters<P>()
      .integer("ccti_increase", &P::ccti_increase, {0, 255}, "increase of the table index for a BECN")
      .integer("ccti_limit", &P::ccti_limit, {0, 65535}, "largest table index")
      .integer("ccti_min", &P::ccti_min, {0, 65535}, "smallest table index")
      .time("ccti_timer", &P::ccti_timer, {kNanosecond, kSecond},
            "time after which the table index falls by 1")
      .choice(
          "table", &P::table,
          {{"linear", Table::linear}, {"quadratic", Table::quadratic}, {"exponential", Table::exponential}},
          "how the delay grows with the table index")
      .real("delay_step", &P::delay_step, {0, 16383},
            "entry 1 of the table: delay after a packet, as a multiple of the packet's transmission time")
      .time("cnp_interval", &P::cnp_interval, {0, kSecond},
            "receiver: least time between BECNs of one queue pair, 0: one for every marked packet");
}

struct IbCctState {
  std::int64_t index;  // CCTI - ccti_min
  Time due;            // time of the timer that counts
};

class IbCct final : public CongestionControl {
 public:
  explicit IbCct(const CctParameters& p) : p_(p) {
    for (std::int64_t i = p.ccti_min; i <= p.ccti_limit; ++i) delays_.push_back(held(delay(i)));
  }

  CongestionNeeds needs() const override {
    return {.base_rtt = false, .cnp_interval = p_.cnp_interval, .state_bytes = sizeof(IbCctState)};
  }

  void start(CongestionContext& c) const override { set(c, 0); }

  void on_cnp(CongestionContext& c) const override {
    IbCctState& s = state_of<IbCctState>(c);
    const std::int64_t before = s.index;
    s.index = std::min(before + p_.ccti_increase, p_.ccti_limit - p_.ccti_min);
    if (before == 0 && s.index > 0) s.due = c.timer[0] = c.now + p_.ccti_timer;
    set(c, s.index);
  }

  void on_timer(CongestionContext& c, unsigned) const override {
    IbCctState& s = state_of<IbCctState>(c);
    if (s.index == 0 || c.now != s.due) return;  // requested before the queue pair began anew
    --s.index;
    if (s.index > 0) s.due = c.timer[0] = c.now + p_.ccti_timer;
    set(c, s.index);
  }

 private:
  static constexpr double kMultipliers = 1 << 14;
  static constexpr int kFinestShift = 3;

  double delay(std::int64_t i) const {
    const auto n = static_cast<double>(i);
    if (p_.table == Table::linear) return p_.delay_step * n;
    if (p_.table == Table::quadratic) return p_.delay_step * n * n;
    return power(1 + p_.delay_step, i) - 1;
  }
  // Returns the nearest delay that an entry of the table can hold.
  static double held(double delay) {
    for (int shift = kFinestShift; shift >= 0; --shift) {
      const double unit = 1.0 / (1 << shift);
      const double nearest = delay / unit + 0.5;
      if (nearest < kMultipliers) return static_cast<double>(static_cast<std::int64_t>(nearest)) * unit;
    }
    return kMultipliers - 1;
  }
  void set(CongestionContext& c, std::int64_t index) const {
    c.rate = to_rate(static_cast<double>(c.line_rate) / (1 + delays_[static_cast<std::size_t>(index)]),
                     c.line_rate);
  }

  CctParameters p_;
  std::vector<double> delays_;  // entry 0 is that of ccti_min
};

const Registration<CongestionControl> kIbCct{
    "ib_cct", "InfiniBand's FECN/BECN congestion control with a table of injection delays (IBA annex A10)",
    ib_cct_parameters(), [](const CctParameters& p, const ConfigNode& node) {
      if (p.ccti_min > p.ccti_limit) node.fail("ccti_min is above ccti_limit");
      return std::make_unique<IbCct>(p);
    }};

}  // namespace
}  // namespace netsim
