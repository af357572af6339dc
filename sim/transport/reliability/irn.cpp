// IRN (Mittal et al., Revisiting Network Support for RDMA, SIGCOMM 2018): selective repeat. The receiver
// keeps packets that arrive out of order and names them in its NACKs. The sender repeats only missing
// packets.
//
// It limits what is in flight by the bandwidth-delay product (BDP-FC), so that a network without PFC loses
// little.
//
// Timeouts are RTO_high 320 us, and RTO_low 100 us while at most 3 packets are in flight (sections 3.1 and
// 4.1). The cap is 1 BDP of the network's longest path in the paper. Here it is 1.25 BDP of the queue pair's
// own path by default.
//
// The margin allows for ACKs that wait behind other packets. In the paper paths shorter than the longest have
// such a margin too.
//
// In flight are all packets from the first missing one on, as in the paper's BDP-FC. Section 3.2 defines it
// as the difference between the sequence number of the packet and the last one acknowledged. Simulators of
// the HPCC family count the same (snd_nxt - snd_una).
//
// So packets that arrived behind a gap hold the sender back until the gap is closed. With `in_flight:
// selective` they do not, as TCP counts with SACK (RFC 6675, `pipe`).
#include "sim/core/registry.h"
#include "sim/transport/reliability/reliability.h"

namespace netsim {
namespace {

enum class InFlight { cumulative, selective };

struct IrnParameters {
  Time timeout_high = 320 * kMicrosecond;
  Time timeout_low = 100 * kMicrosecond;
  std::int64_t low_packets = 3;
  double bdp_cap = 1.25;
  InFlight in_flight = InFlight::cumulative;
  std::int64_t reorder_tolerance = 0;
};

Parameters<IrnParameters> irn_parameters() {
  using P = IrnParameters;
  return Parameters<P>()
      .time("timeout_high", &P::timeout_high, {1 * kMicrosecond, 100 * kSecond},
            "retransmission timeout with more than low_packets in flight")
      .time("timeout_low", &P::timeout_low, {1 * kMicrosecond, 100 * kSecond},
            "retransmission timeout with at most low_packets in flight")
      .integer("low_packets", &P::low_packets, {0, 1'000'000}, "see timeout_low")
      .real("bdp_cap", &P::bdp_cap, {0, 1'000'000},
            "packets in flight, in bandwidth-delay products of the path; 0: no limit")
      .choice("in_flight", &P::in_flight,
              {{"cumulative", InFlight::cumulative}, {"selective", InFlight::selective}},
              "packets in flight as windows, cap and timeouts count them: all from the first missing one on "
              "(the paper's BDP-FC), or without those known to have arrived (TCP with SACK)")
      .integer("reorder_tolerance", &P::reorder_tolerance, {0, 1'000'000'000},
               "a packet counts as lost when a packet sent that many packets later has arrived before it; "
               "raise it for per-packet routing, which reorders");
}

class Irn final : public Reliability {
 public:
  explicit Irn(const IrnParameters& p) : p_(p) {}
  ReliabilityPlan compile() const override {
    ReliabilityPlan plan;
    plan.selective = true;
    plan.cumulative = p_.in_flight == InFlight::cumulative;
    plan.timeout = p_.timeout_high;
    plan.low_timeout = p_.timeout_low;
    plan.low_packets = static_cast<std::uint32_t>(p_.low_packets);
    plan.bdp_cap = p_.bdp_cap;
    plan.reorder_tolerance = static_cast<std::uint32_t>(p_.reorder_tolerance);
    return plan;
  }

 private:
  IrnParameters p_;
};

const Registration<Reliability> kIrn{
    "irn",
    "selective repeat: packets are accepted in any order, only lost ones are sent again (SIGCOMM 2018)",
    irn_parameters(), [](const IrnParameters& p, const ConfigNode&) { return std::make_unique<Irn>(p); }};

}  // namespace
}  // namespace netsim
