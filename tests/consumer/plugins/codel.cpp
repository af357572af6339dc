// A marker that is called for each packet: CoDel (Nichols and Jacobson, RFC 8289) with ECN marks in the place
// of drops. It marks by the time that packets have waited, which no line of queue lengths can express.
#include <cmath>
#include <memory>

#include "sim/core/plugin.h"
#include "sim/core/registry.h"
#include "sim/network/policies.h"

NETSIM_PLUGIN

namespace netsim {
namespace {

// RFC 8289, sections 4.2 to 4.4, has 5 ms and 100 ms for the Internet. An interval is a round trip, the
// target a twentieth to a tenth of it; here they are those of a data centre.
struct CodelParameters {
  Time target = 5 * kMicrosecond;
  Time interval = 50 * kMicrosecond;
};

constexpr Bytes kOnePacket = 4174;  // a queue of at most one full packet is never marked

class CodelPort final : public PortMarker {
 public:
  explicit CodelPort(const CodelParameters& p) : p_(p) {}

  // The first mark comes when packets have waited too long for an interval. The distance of the others falls
  // with the square root of their number (RFC 8289, section 5.5).
  bool marks_leaving(const PacketView&, const MarkedQueue& queue, Time waited, Time now) override {
    if (waited < p_.target || queue.bytes <= kOnePacket) {
      above_since_ = kNever;
      marking_ = false;
      return false;
    }
    if (above_since_ == kNever) above_since_ = now;
    if (marking_ ? now < next_ : now - above_since_ < p_.interval) return false;
    count_ = marking_ ? count_ + 1 : 1;
    next_ = (marking_ ? next_ : now) +
            static_cast<Time>(static_cast<double>(p_.interval) / std::sqrt(static_cast<double>(count_)));
    return marking_ = true;
  }

 private:
  CodelParameters p_;
  Time above_since_ = kNever, next_ = 0;
  bool marking_ = false;
  std::uint32_t count_ = 0;
};

class Codel final : public Marker {
 public:
  explicit Codel(const CodelParameters& p) : p_(p) {}
  RedLine compile(BitRate) const override { return {.own = true}; }
  std::unique_ptr<PortMarker> make_port(const PortContext&) const override {
    return std::make_unique<CodelPort>(p_);
  }

 private:
  CodelParameters p_;
};

const Registration<Marker> kRegistration{
    "codel", "marks by the time that packets have waited (RFC 8289)",
    Parameters<CodelParameters>()
        .time("target", &CodelParameters::target, {0, 1 * kSecond}, "time that packets may always wait")
        .time("interval", &CodelParameters::interval, {1 * kNanosecond, 1 * kSecond},
              "time after which packets that wait longer are marked"),
    [](const CodelParameters& p, const ConfigNode&) { return std::make_unique<Codel>(p); }};

}  // namespace
}  // namespace netsim
