#include "sim/transport/transport_parameters.h"

#include <algorithm>
#include <bit>
#include <string>

#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/topology/fabric_sections.h"

namespace netsim {
namespace {

const Parameters<AcknowledgeParameters>& acknowledge() {
  static const auto parameters = Parameters<AcknowledgeParameters>().integer(
      "every", &AcknowledgeParameters::every, {1, 65536},
      "the host's NIC (dgx_a100 256, single_nic 1); 1 where congestion control needs every ACK or marks come "
      "back in ACKs",
      "interval of ACK requests in packets, at most, a power of two; a queue pair also asks in the last "
      "packet of each message and in one that closes its window");
  return parameters;
}

// Returns the parameters that a fabric may set for itself.
Parameters<TransportParameters> parameters_of_fabric() {
  using P = TransportParameters;
  // The defaults of timeout and retry count are those usual for verbs: InfiniBand's local ACK timeout 4.096
  // us x 2^14, and 7 retries.
  auto parameters =
      Parameters<P>()
          .bytes("mtu", &P::mtu, {64, 65536}, "payload of a packet on the scale-out fabric")
          .integer("queue_pairs", &P::queue_pairs, {1, 65536},
                   "queue pairs between two GPUs' NICs; each has a path of its own")
          .section("acknowledge", &P::acknowledge, acknowledge(),
                   "rules by which a sender asks for acknowledgements")
          .choice(
              "framing", &P::framing,
              {{"roce_v2", FramingKind::roce_v2},
               {"infiniband", FramingKind::infiniband},
               {"ns3", FramingKind::ns3}},
              "headers of packets: RoCEv2 62 B (+16 first), ACK 66; InfiniBand 26 B (+16 first), ACK 30; the "
              "HPCC-family ns-3 model 36 B, ACK 48")
          .choice("ecn_echo", &P::ecn_echo, {{"cnp", EcnEcho::cnp}, {"ack", EcnEcho::ack}},
                  "how ECN marks come back: in CNPs of their own, or as a flag of the ACK (the ns-3 model)")
          .time("cnp_delay", &P::cnp_delay, {0, 1 * kSecond},
                "time from the arrival of a marked packet at the receiver's NIC until its CNP leaves; 0: at "
                "once, as in the NICs of ns-3's models")
          .bytes("nic_buffer", &P::nic_buffer, {4 * kKibibyte, 1 * kGigabyte},
                 "data that a NIC fetches over PCIe ahead of its wire")
          .integer("nic_priorities", &P::nic_priorities, {1, kMaxNicLevels},
                   "levels of priority by which a NIC serves its queue pairs, the highest first and those of "
                   "a level in turn; a queue pair has the level of its present message's priority, at most "
                   "the highest; 1: all in turn")
          .component("reliability", &P::reliability, "reliability", "go_back_n",
                     "reaction to packets that do not arrive, or not in order")
          .time("retransmission_timeout", &P::retransmission_timeout, {1 * kMicrosecond, 100 * kSecond},
                "a queue pair that has asked for an acknowledgement and receives no new one for this long "
                "sends again from the first unacknowledged packet on (InfiniBand's T_tr, 4.096 us x 2^n)")
          .integer("retransmission_backoff", &P::retransmission_backoff, {1, 16},
                   "factor from each timeout in a row to the next")
          .integer("retries", &P::retries, {0, 1000},
                   "timeouts in a row after which a queue pair gives up; shorter timeouts of `reliability` "
                   "count in proportion")
          .bytes("window", &P::window, {0, 1000 * kGigabyte},
                 "payload that a queue pair may have unacknowledged when it starts a packet, whatever "
                 "congestion "
                 "control says; 0: no limit")
          .flag("window_scales", &P::window_scales,
                "the window shrinks with the rate that congestion control allows: x rate / line rate")
          .time("base_rtt", &P::base_rtt, {0, 1 * kSecond},
                "round trip of an idle network, for congestion control; 0: computed for each path")
          .component("congestion_control", &P::congestion_control, "congestion_control", "dcqcn",
                     "how fast a queue pair may send");
  return parameters;
}

const ParameterTable& table_of_fabric() {
  static const ParameterTable table = parameters_of_fabric().table();
  return table;
}

const Parameters<TransportParameters>& transport() {
  static const auto parameters =
      parameters_of_fabric().sections("fabrics", &TransportParameters::fabrics, table_of_fabric(),
                                      "values that differ in one of several packet fabrics, by its name: "
                                      "{rack: {mtu: 1 KiB, ...}}; other values are as for all fabrics");
  return parameters;
}

void refuse_ack_every(const ConfigNode& node) {
  if (const ConfigNode* old = node.find("ack_every"); old != nullptr) {
    throw ConfigError(old->key_place(),
                      "unknown key 'ack_every': it is `acknowledge: {every: N}` now, N a power of two "
                      "(transport.acknowledge.every)");
  }
}

void check_every(const TransportParameters& parameters, const ConfigNode& node) {
  const std::int64_t every = parameters.acknowledge.every.value_or(1);
  if (std::has_single_bit(static_cast<std::uint64_t>(every))) return;
  node.find("acknowledge")
      ->find("every")
      ->fail(std::to_string(every) + " is no power of two (allowed: 1, 2, 4, ... 65536)");
}

}  // namespace

const ParameterTable& transport_parameter_table() { return transport().table(); }

TransportParameters read_transport(const ConfigNode& node) {
  refuse_ack_every(node);
  TransportParameters parameters = transport().parse(node);
  check_every(parameters, node);
  return parameters;
}

TransportParameters fabric_transport(const TransportParameters& common, const ConfigNode* section) {
  if (section == nullptr) return common;
  refuse_ack_every(*section);
  check_fabric_keys(*section, transport_parameter_table(), table_of_fabric(), "transport");
  TransportParameters parameters = transport().parse_over(common, *section);
  check_every(parameters, *section);
  return parameters;
}

// Returns the configured value, else that of the hosts' NICs. Each packet is acknowledged if congestion
// control needs every ACK, or if marks are returned in ACKs.
Acknowledging acknowledging(const TransportParameters& parameters, const CongestionNeeds& needs,
                            const Cluster& cluster) {
  if (parameters.acknowledge.every) return {*parameters.acknowledge.every, ""};
  if (needs.every_ack) return {1, "congestion control needs every ACK"};
  if (parameters.ecn_echo == EcnEcho::ack) return {1, "marks come back in ACKs"};
  const std::int64_t first = cluster.groups.front().acknowledge_every;
  for (const HostGroup& group : cluster.groups) {
    if (group.acknowledge_every != first) return {std::nullopt, "each host's NIC"};
  }
  return {first, "the host's NIC"};
}

std::unique_ptr<CongestionControl> make_congestion_control(const TransportParameters& parameters) {
  return Registry<CongestionControl>::instance().create(parameters.congestion_control, "dcqcn");
}

std::unique_ptr<Reliability> make_reliability(const TransportParameters& parameters) {
  return Registry<Reliability>::instance().create(parameters.reliability, "go_back_n");
}

ReliabilityPlan reliability_plan(const TransportParameters& parameters, const Reliability& reliability) {
  ReliabilityPlan plan = reliability.compile();
  NETSIM_CHECK(!plan.own || plan.selective, "a reliability with `own` must be `selective`");
  NETSIM_CHECK(std::max(plan.sender_state_bytes, plan.receiver_state_bytes) <= kMaxReliabilityStateBytes,
               "a reliability asks for too many bytes of state");
  if (plan.timeout == 0) plan.timeout = parameters.retransmission_timeout;
  plan.retries = static_cast<std::uint32_t>(parameters.retries);
  for (std::uint32_t i = 0; i <= plan.retries; ++i)
    plan.patience += backed_off(parameters.retransmission_timeout, parameters.retransmission_backoff, i);
  return plan;
}

// Framing by kind. RoCEv2 (InfiniBand Architecture Specification 1.4, annex A17): Ethernet 14, IPv4 20, UDP
// 8, BTH 12, ICRC 4, FCS 4. In addition RETH 16 in a message's first packet, AETH 4 in an ACK, and 16
// reserved bytes after the BTH in a CNP.
//
// InfiniBand within a subnet (section 5): LRH 8, BTH 12, ICRC 4, VCRC 2. ns3: PPP 2, IPv4 20, UDP 8, sequence
// number 6. Its ACK is padded to 48 bytes and carries the congestion notification.
Framing framing(FramingKind kind) {
  switch (kind) {
    case FramingKind::roce_v2:
      return {62, 16, 66, 78};
    case FramingKind::infiniband:
      return {26, 16, 30, 42};
    case FramingKind::ns3:
      break;
  }
  return {36, 0, 48, 48};
}

}  // namespace netsim
