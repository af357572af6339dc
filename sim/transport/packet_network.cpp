#include "sim/transport/packet_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/core/registry.h"
#include "sim/network/path.h"
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
          .integer("queue_pairs", &P::queue_pairs, {1, 256},
                   "queue pairs between two GPUs' NICs; each has a path of its own")
          .integer("ack_every", &P::ack_every, {1, 65536},
                   "the receiver acknowledges every so many packets, and the last of each message")
          .bytes("nic_buffer", &P::nic_buffer, {4 * kKibibyte, 1 * kGigabyte},
                 "data that a NIC fetches over PCIe ahead of its wire")
          .time("retransmission_timeout", &P::retransmission_timeout, {1 * kMicrosecond, 100 * kSecond},
                "go-back-N from the first unacknowledged packet after this long without progress")
          .integer("retries", &P::retries, {0, 1000}, "timeouts in a row after which a queue pair gives up")
          .component("congestion_control", &P::congestion_control, "congestion_control", "dcqcn",
                     "how fast a queue pair may send");
  return parameters;
}

struct NetworkParameters {
  FabricParameters fabric;
};

const Parameters<NetworkParameters>& network() {
  static const auto parameters =
      Parameters<NetworkParameters>().section("switch", &NetworkParameters::fabric, fabric_parameters(),
                                              "buffers, PFC, ECN marking and routing of the switches");
  return parameters;
}

TransportParameters read_transport(const ConfigNode& node) { return transport().parse(node); }

const ConfigNode& switch_section(const ConfigNode& network_node) {
  const ConfigNode* section = network_node.find("switch");
  return section != nullptr ? *section : network_node;
}

}  // namespace

PacketNetworkImpl::PacketNetworkImpl(EventLoop& loop, const Cluster& cluster, const ConfigNode& network_node,
                                     const ConfigNode& transport_node, std::uint64_t seed,
                                     FlowObserver observer)
    : loop_(loop),
      cluster_(cluster),
      parameters_(read_transport(transport_node)),
      fabric_(loop, cluster.graph, network().parse(network_node, {"kind"}).fabric,
              switch_section(network_node), parameters_.mtu, seed),
      observer_(std::move(observer)),
      congestion_control_(
          Registry<CongestionControl>::instance().create(parameters_.congestion_control, "dcqcn")) {
  fabric_.set_source(this);
  needs_ = congestion_control_->needs();
  state_stride_ = (needs_.state_bytes + 15) / 16 * 16;
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

// ---- Connections

std::uint32_t PacketNetworkImpl::queue_pair(const SendRequest& request) {
  const std::uint32_t number = cluster_.same_host(request.source, request.destination)
                                   ? 0
                                   : request.channel % static_cast<std::uint32_t>(parameters_.queue_pairs);
  auto& known = connections_[request.source];
  const std::uint64_t key = static_cast<std::uint64_t>(request.destination) << 8 | number;
  const auto at =
      std::lower_bound(known.begin(), known.end(), std::pair<std::uint64_t, std::uint32_t>(key, 0));
  if (at != known.end() && at->first == key) return at->second;
  const auto id = static_cast<std::uint32_t>(senders_.size());
  known.insert(at, {key, id});
  senders_.emplace_back();
  receivers_.emplace_back();
  congestion_.resize(congestion_.size() + state_stride_);
  senders_base_ = senders_.data();
  receivers_base_ = receivers_.data();
  names_.push_back({request.source, request.destination, number});
  receivers_[id].key =
      hash_combine(static_cast<std::uint64_t>(request.source) << 32 | request.destination, number);
  if (cluster_.same_host(request.source, request.destination)) {
    connect_scale_up(id, names_.back());
  } else {
    connect_scale_out(id, names_.back());
  }
  return id;
}

std::uint32_t PacketNetworkImpl::injector(PortId first, PortId gate) {
  std::uint32_t& index = injector_of_port_[first];
  if (index != kNone) return index;
  index = static_cast<std::uint32_t>(injectors_.size());
  Injector made;
  made.port = first;
  if (gate != first) {
    std::uint32_t& gate_index = gate_of_port_[gate];
    if (gate_index == kNone) {
      gate_index = static_cast<std::uint32_t>(gates_.size());
      gates_.push_back({parameters_.nic_buffer, {}});
      fabric_.set_departure_hook(gate);
    }
    gates_[gate_index].injectors.push_back(index);
    made.gate = gate_index;
  }
  injectors_.push_back(made);
  return index;
}

void PacketNetworkImpl::connect_scale_up(std::uint32_t id, const Names& names) {
  const Gpu& from = cluster_.gpus[names.source];
  const Gpu& to = cluster_.gpus[names.destination];
  std::vector<std::uint32_t> path = scale_up_path(cluster_.graph, from.node, to.node);
  NETSIM_CHECK(!path.empty(), "GPUs of one host are not joined: " + cluster_.graph.node(from.node).name);
  Sender& s = senders_[id];
  s.injector = injector(path.front(), path.front());
  s.scale_up = true;
  s.mtu = static_cast<std::uint32_t>(cluster_.graph.port(path.front()).link.mtu);
  s.rate = s.line_rate = cluster_.graph.port(path.front()).link.rate;
  path.push_back(make_step(StepKind::deliver, id));
  s.path = fabric_.add_path(path) + 1;
}

void PacketNetworkImpl::connect_scale_out(std::uint32_t id, const Names& names) {
  const Gpu& from = cluster_.gpus[names.source];
  const Gpu& to = cluster_.gpus[names.destination];
  Sender& s = senders_[id];
  Receiver& r = receivers_[id];
  const std::uint64_t seed = fabric_.routing_seed();
  std::vector<std::uint32_t> path = scale_out_path(cluster_, from, to, fabric_.routing(), r.key, seed);
  const std::size_t wire = from.node != from.nic ? 1 : 0;  // the NIC's port in the path
  s.injector = injector(path.front(), path[wire]);
  s.mtu = static_cast<std::uint32_t>(parameters_.mtu);
  s.line_rate = s.rate = cluster_.graph.port(path[wire]).link.rate;
  r.pcie = to.node != to.nic;
  if (r.pcie) {
    r.gpu_port = path.back();
    path.back() = make_step(StepKind::receive, id);  // the receiver hands it on to gpu_port itself
    path.push_back(make_step(StepKind::deliver, id));
  } else {
    path.push_back(make_step(StepKind::receive, id));
  }
  s.path = fabric_.add_path(path) + 1;
  // The ACKs' five-tuple is another one, so they may take another way.
  std::vector<std::uint32_t> back =
      nic_path(cluster_, to.nic, from.nic, fabric_.routing(), hash_combine(r.key, 1), seed);
  r.back_port = back.front();
  back.push_back(make_step(StepKind::control, id));
  r.back_path = fabric_.add_path(back) + 1;
  CongestionContext context = congestion_context(id);
  congestion_control_->start(context);
  s.rate = context.rate;
}

// ---- Reports

NetworkCounters PacketNetworkImpl::counters() const {
  NetworkCounters c = counts_;
  for (PortId id = 0; id < cluster_.graph.port_count(); ++id) {
    const PortSpec& spec = cluster_.graph.port(id);
    const Fabric::Counters port = fabric_.counters(id);
    c.packet_hops[static_cast<std::size_t>(spec.link.kind)] += port.data_packets;
    c.ecn_marks += port.marks;
    c.drops += port.drops;
    if (cluster_.graph.node(spec.node).kind == NodeKind::fabric_switch)
      c.max_queue = std::max(c.max_queue, port.max_queue);
  }
  c.pfc_pauses = fabric_.pfc_pauses();
  c.pfc_resumes = fabric_.pfc_resumes();
  return c;
}

PortCounters PacketNetworkImpl::port_counters(PortId port) const {
  const Fabric::Counters c = fabric_.counters(port);
  return {c.wire_bytes, c.data_packets, c.marks, c.drops, c.pauses, c.paused, c.max_queue};
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
  for (std::size_t id = 0; id < senders_.size() && lines.size() < limit; ++id) {
    const Sender& s = senders_[id];
    if (s.oldest == kNone) continue;
    const Names& n = names_[id];
    lines.push_back(fmt::format("queue pair {}->{}#{}: {} of {} packets acknowledged{}", n.source,
                                n.destination, n.number, s.acknowledged, s.end_psn,
                                s.failed ? ", gave up after its retries" : ""));
  }
  for (std::string& line : fabric_.waiting(limit - lines.size())) lines.push_back(std::move(line));
  return lines;
}

std::unique_ptr<PacketNetwork> PacketNetwork::create(EventLoop& loop, const Cluster& cluster,
                                                     const ConfigNode& network_node,
                                                     const ConfigNode& transport_node, std::uint64_t seed,
                                                     FlowObserver observer) {
  return std::make_unique<PacketNetworkImpl>(loop, cluster, network_node, transport_node, seed,
                                             std::move(observer));
}

const ParameterTable& PacketNetwork::network_parameters() { return network().table(); }
const ParameterTable& PacketNetwork::transport_parameters() { return transport().table(); }

}  // namespace netsim
