// A reliability that is called for each packet and reply: selective repeat with two rules of TCP. The
// receiver holds ACKs back for some packets or some time (delayed ACKs, RFC 5681, section 4.2). The sender
// takes a packet for lost when three later ones have arrived (DupThresh of RFC 6675).
#include <memory>

#include "sim/core/plugin.h"
#include "sim/core/registry.h"
#include "sim/transport/reliability/reliability.h"

NETSIM_PLUGIN

namespace netsim {
namespace {

struct TimedAcksParameters {
  std::int64_t every = 4;
  Time delay = 5 * kMicrosecond;
  Time timeout = 320 * kMicrosecond;  // IRN's RTO_high (Mittal et al., SIGCOMM 2018)
};

constexpr std::uint32_t kDuplicateThreshold = 3;

// The receiver's state of one queue pair.
struct HeldBack {
  std::uint32_t acks;  // requested and not sent
  bool timer;
};

class TimedAcks final : public Reliability {
 public:
  explicit TimedAcks(const TimedAcksParameters& p) : p_(p) {}

  ReliabilityPlan compile() const override {
    ReliabilityPlan plan;
    plan.selective = plan.own = true;
    plan.timeout = p_.timeout;
    plan.receiver_state_bytes = sizeof(HeldBack);
    return plan;
  }

  Reply on_arrival(ReceiverContext& c, const Arrival& arrival) const override {
    auto& held = c.state_as<HeldBack>();
    if (arrival.duplicate) return {.kind = Reply::Kind::ack};
    if (arrival.psn != arrival.expected) return {.kind = Reply::Kind::nack, .word = arrival.psn};
    if (!arrival.ack_requested) return {};
    if (++held.acks >= p_.every) return release(held);
    if (!held.timer) c.timer = c.now + p_.delay;
    held.timer = true;
    return {};
  }
  Reply on_reply_timer(ReceiverContext& c) const override {
    auto& held = c.state_as<HeldBack>();
    held.timer = false;
    return held.acks > 0 ? release(held) : Reply{};
  }

  void on_reply(SenderContext& c, const Reply& reply) const override {
    if (reply.kind != Reply::Kind::nack) return;
    c.set_arrived(reply.word);
    std::uint32_t later = 0, psn = c.next_psn;
    while (later < kDuplicateThreshold && psn != c.acknowledged) later += c.has_arrived(--psn) ? 1 : 0;
    if (later == kDuplicateThreshold) c.repeat_missing_before(psn);
  }

 private:
  static Reply release(HeldBack& held) {
    held.acks = 0;
    return {.kind = Reply::Kind::ack};
  }

  TimedAcksParameters p_;
};

const Registration<Reliability> kRegistration{
    "timed_acks", "selective repeat with ACKs that are held back, and losses that three later packets tell",
    Parameters<TimedAcksParameters>()
        .integer("every", &TimedAcksParameters::every, {1, 1 << 20}, "requested ACKs that one ACK answers")
        .time("delay", &TimedAcksParameters::delay, {1 * kNanosecond, 1 * kSecond},
              "time that an ACK may wait")
        .time("timeout", &TimedAcksParameters::timeout, {1 * kMicrosecond, 100 * kSecond},
              "time after which all that is missing is sent again"),
    [](const TimedAcksParameters& p, const ConfigNode&) { return std::make_unique<TimedAcks>(p); }};

}  // namespace
}  // namespace netsim
