#include "sim/transport/packet_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/core/registry.h"
#include "sim/transport/packet_network_impl.h"

namespace netsim {
namespace {

const Parameters<TransportParameters>& transport() {
  using P = TransportParameters;
  // Timeout and retry count: InfiniBand local ACK timeout 4.096 us x 2^14 and 7 retries, the usual verbs
  // defaults.
  static const auto parameters =
      Parameters<P>()
          .bytes("mtu", &P::mtu, {64, 65536}, "payload of a packet on the scale-out fabric")
          .integer("queue_pairs", &P::queue_pairs, {1, 65536},
                   "queue pairs between two GPUs' NICs; each has a path of its own")
          .integer("ack_every", &P::ack_every, {1, 65536},
                   "the receiver acknowledges every so many packets, and the last of each message")
          .choice(
              "framing", &P::framing,
              {{"roce_v2", FramingKind::roce_v2},
               {"infiniband", FramingKind::infiniband},
               {"ns3", FramingKind::ns3}},
              "headers of packets: RoCEv2 62 B (+16 first), ACK 66; InfiniBand 26 B (+16 first), ACK 30; the "
              "HPCC-family ns-3 model 36 B, ACK 48")
          .choice("ecn_echo", &P::ecn_echo, {{"cnp", EcnEcho::cnp}, {"ack", EcnEcho::ack}},
                  "how ECN marks come back: in CNPs of their own, or as a flag of the ACK (the ns-3 model)")
          .bytes("nic_buffer", &P::nic_buffer, {4 * kKibibyte, 1 * kGigabyte},
                 "data that a NIC fetches over PCIe ahead of its wire")
          .component("reliability", &P::reliability, "reliability", "go_back_n",
                     "what happens when packets do not arrive, or not in order")
          .time("retransmission_timeout", &P::retransmission_timeout, {1 * kMicrosecond, 100 * kSecond},
                "after this long without progress a queue pair starts again from the first unacknowledged "
                "packet")
          .integer("retransmission_backoff", &P::retransmission_backoff, {1, 16},
                   "each timeout in a row is so many times as long as the one before")
          .integer(
              "retries", &P::retries, {0, 1000},
              "timeouts in a row after which a queue pair gives up; where `reliability` has shorter ones, "
              "as many of them as last as long")
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

const ConfigNode& switch_section(const ConfigNode& network_node) {
  const ConfigNode* section = network_node.find("switch");
  return section != nullptr ? *section : network_node;
}

ReliabilityPlan reliability(const TransportParameters& parameters) {
  ReliabilityPlan plan =
      Registry<Reliability>::instance().create(parameters.reliability, "go_back_n")->compile();
  if (plan.timeout == 0) plan.timeout = parameters.retransmission_timeout;
  // Shorter timeouts do not make a queue pair give up sooner: IRN's are only just longer than a round trip.
  const std::int64_t factor = std::max<std::int64_t>(parameters.retransmission_timeout / plan.timeout, 1);
  plan.retries =
      static_cast<std::uint32_t>(std::min<std::int64_t>(parameters.retries * factor, UINT32_MAX - 1));
  return plan;
}

}  // namespace

// RoCEv2 (InfiniBand Architecture Specification 1.4, annex A17): Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4,
// FCS 4; RETH 16 in a message's first packet; AETH 4 in an ACK; a CNP carries 16 reserved bytes after the
// BTH. InfiniBand within a subnet (section 5): LRH 8, BTH 12, ICRC 4, VCRC 2. ns3: PPP 2, IPv4 20, UDP 8,
// sequence number 6; its ACK is padded to 48 and carries the congestion notification.
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

Bytes PacketNetworkImpl::largest_packet() const {
  const Framing f = framing(parameters_.framing);
  return parameters_.mtu + f.header + f.first_header + needs_.data_header;
}

PacketNetworkImpl::PacketNetworkImpl(EventLoop& loop, const Cluster& cluster, const ConfigNode& network_node,
                                     const ConfigNode& transport_node, std::uint64_t seed,
                                     FlowObserver observer)
    : loop_(loop),
      cluster_(cluster),
      parameters_(transport().parse(transport_node)),
      framing_(framing(parameters_.framing)),
      reliability_(reliability(parameters_)),
      congestion_control_(
          Registry<CongestionControl>::instance().create(parameters_.congestion_control, "dcqcn")),
      needs_(congestion_control_->needs()),
      echo_in_acks_(needs_.ack_echo || parameters_.ecn_echo == EcnEcho::ack),
      stamps_(needs_.telemetry || needs_.timestamps),
      fabric_(loop, cluster.graph, fabric_parameters().parse(network_node, {"kind"}),
              switch_section(network_node), largest_packet(), seed),
      observer_(std::move(observer)),
      routes_(cluster.routes.get()),
      state_stride_((needs_.state_bytes + 15) / 16 * 16) {
  framing_.header += needs_.data_header;
  framing_.ack += needs_.ack_header;
  fabric_.set_source(this);
  fabric_.set_routes(routes_);
  if (needs_.telemetry) fabric_.enable_telemetry();
  if (needs_.timestamps) fabric_.enable_timestamps();
  injector_of_port_.assign(cluster.graph.port_count(), kNone);
  gate_of_port_.assign(cluster.graph.port_count(), kNone);
  connections_.resize(cluster.gpus.size());
  const auto handle = [&]<void (PacketNetworkImpl::*Method)(const Event&)>(EventKind kind) {
    loop_.set_handler(
        kind, [](void* self, const Event& e) { (static_cast<PacketNetworkImpl*>(self)->*Method)(e); }, this);
  };
  handle.operator()<&PacketNetworkImpl::on_receive>(EventKind::receive);
  handle.operator()<&PacketNetworkImpl::on_deliver>(EventKind::deliver);
  handle.operator()<&PacketNetworkImpl::on_control>(EventKind::control);
  handle.operator()<&PacketNetworkImpl::on_pace>(EventKind::pace);
  handle.operator()<&PacketNetworkImpl::on_congestion_timer>(EventKind::congestion_timer);
  handle.operator()<&PacketNetworkImpl::on_retransmission>(EventKind::retransmission);
  const void* const* packets = fabric_.packets().base();
  loop_.set_prefetch(EventKind::receive, &receivers_base_, sizeof(Receiver), packets, sizeof(Packet));
  loop_.set_prefetch(EventKind::control, &senders_base_, sizeof(Sender), packets, sizeof(Packet));
  loop_.set_prefetch(EventKind::pace, &senders_base_, sizeof(Sender), nullptr, 0);
}

// ---- Reports

NetworkCounters PacketNetworkImpl::counters() const {
  NetworkCounters c = counts_;
  for (PortId id = 0; id < cluster_.graph.port_count(); ++id) {
    const PortSpec& spec = cluster_.graph.port(id);
    const PortCounters port = fabric_.counters(id);
    c.packet_hops[static_cast<std::size_t>(spec.link.kind)] += port.data_packets;
    c.ecn_marks += port.ecn_marks;
    c.drops += port.drops;
    c.cnps += port.cnps;
    c.lost += port.lost;
    if (cluster_.graph.node(spec.node).kind == NodeKind::fabric_switch)
      c.max_queue = std::max(c.max_queue, port.max_queue);
  }
  c.pfc_pauses = fabric_.pfc_pauses();
  c.pfc_resumes = fabric_.pfc_resumes();
  return c;
}

QueuePairView PacketNetworkImpl::queue_pair_view(std::uint32_t id) const {
  const Sender& s = senders_[id];
  const Names& n = names_[id];
  return {n.source, n.destination,    n.number, static_cast<Bytes>(s.acknowledged) * s.mtu,
          s.rate,   s.oldest != kNone};
}

std::uint64_t PacketNetworkImpl::events_fingerprint() const {
  std::uint64_t sum = fabric_.events_fingerprint();
  for (std::size_t id = 0; id < senders_.size(); ++id) {
    sum += hash_combine(receivers_[id].key, senders_[id].digest) +
           hash_combine(~receivers_[id].key, receivers_[id].digest);
  }
  return sum;
}

std::vector<std::string> PacketNetworkImpl::waiting(std::size_t limit) const {
  std::vector<std::string> lines;
  if (deadlocked()) lines = fabric_.waiting(limit);
  for (std::size_t id = 0; id < senders_.size() && lines.size() < limit; ++id) {
    const Sender& s = senders_[id];
    if (s.oldest == kNone) continue;
    const Names& n = names_[id];
    lines.push_back(fmt::format("queue pair {}->{}#{}: {} of {} packets acknowledged{}", n.source,
                                n.destination, n.number, s.acknowledged, s.end_psn,
                                s.failed ? ", gave up after its retries" : ""));
  }
  if (deadlocked()) return lines;
  for (std::string& line : fabric_.waiting(limit - lines.size())) lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> PacketNetworkImpl::notes() const {
  std::vector<std::string> notes = fabric_.notes();
  if (fabric_.routes_packets() && !reliability_.selective) {
    notes.push_back(
        "packets are routed one by one but taken in order only (reliability: go_back_n): each that "
        "overtakes another makes the sender start again");
  }
  return notes;
}

std::unique_ptr<PacketNetwork> PacketNetwork::create(EventLoop& loop, const Cluster& cluster,
                                                     const ConfigNode& network_node,
                                                     const ConfigNode& transport_node, std::uint64_t seed,
                                                     FlowObserver observer) {
  return std::make_unique<PacketNetworkImpl>(loop, cluster, network_node, transport_node, seed,
                                             std::move(observer));
}

const ParameterTable& PacketNetwork::network_parameters() { return fabric_parameters().table(); }
const ParameterTable& PacketNetwork::transport_parameters() { return transport().table(); }

}  // namespace netsim
