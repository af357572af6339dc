#include "sim/transport/packet_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>
#include <utility>

#include "sim/core/registry.h"
#include "sim/transport/packet_network_impl.h"

namespace netsim {
namespace {

// Address space is set aside for so many.
constexpr std::size_t kMaxQueuePairs = std::size_t{1} << 26;

const Parameters<AcknowledgeParameters>& acknowledge() {
  static const auto parameters = Parameters<AcknowledgeParameters>().integer(
      "every", &AcknowledgeParameters::every, {1, 65536},
      "the host's NIC (dgx_a100 256, single_nic 1); 1 where congestion control needs every ACK or marks come "
      "back in ACKs",
      "a queue pair asks for an ACK in one of at most so many packets, a power of two, besides the last of "
      "each message and one that closes its window");
  return parameters;
}

const Parameters<TransportParameters>& transport() {
  using P = TransportParameters;
  // Timeout and retry count: InfiniBand local ACK timeout 4.096 us x 2^14 and 7 retries, the usual verbs
  // defaults.
  static const auto parameters =
      Parameters<P>()
          .bytes("mtu", &P::mtu, {64, 65536}, "payload of a packet on the scale-out fabric")
          .integer("queue_pairs", &P::queue_pairs, {1, 65536},
                   "queue pairs between two GPUs' NICs; each has a path of its own")
          .section("acknowledge", &P::acknowledge, acknowledge(), "when a sender asks for acknowledgements")
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

TransportParameters read_transport(const ConfigNode& node) {
  if (const ConfigNode* old = node.find("ack_every"); old != nullptr) {
    throw ConfigError(old->key_place(),
                      "unknown key 'ack_every': it is `acknowledge: {every: N}` now, N a power of two "
                      "(transport.acknowledge.every)");
  }
  TransportParameters parameters = transport().parse(node);
  const std::int64_t every = parameters.acknowledge.every.value_or(1);
  if (!std::has_single_bit(static_cast<std::uint64_t>(every))) {
    node.find("acknowledge")
        ->find("every")
        ->fail(std::to_string(every) + " is no power of two (allowed: 1, 2, 4, ... 65536)");
  }
  return parameters;
}

// The hosts' NICs decide where the user does not, but not against a congestion control that lives on ACKs,
// nor where marks would wait for them.
Acknowledging acknowledging(const TransportParameters& parameters, const CongestionNeeds& needs,
                            const Cluster& cluster) {
  if (parameters.acknowledge.every) return {*parameters.acknowledge.every, ""};
  if (needs.every_ack) return {1, "congestion control needs every ACK"};
  if (parameters.ecn_echo == EcnEcho::ack) return {1, "marks come back in ACKs"};
  return {cluster.acknowledge_every, "the host's NIC"};
}

std::unique_ptr<CongestionControl> congestion_control(const TransportParameters& parameters) {
  return Registry<CongestionControl>::instance().create(parameters.congestion_control, "dcqcn");
}

const ConfigNode& switch_section(const ConfigNode& network_node) {
  const ConfigNode* section = network_node.find("switch");
  return section != nullptr ? *section : network_node;
}

ReliabilityPlan reliability(const TransportParameters& parameters) {
  ReliabilityPlan plan =
      Registry<Reliability>::instance().create(parameters.reliability, "go_back_n")->compile();
  if (plan.timeout == 0) plan.timeout = parameters.retransmission_timeout;
  plan.retries = static_cast<std::uint32_t>(parameters.retries);
  for (std::uint32_t i = 0; i <= plan.retries; ++i)
    plan.patience += backed_off(parameters.retransmission_timeout, parameters.retransmission_backoff, i);
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
  const Framing f = framing(state_.parameters.framing);
  return state_.parameters.mtu + f.header + f.first_header + state_.needs.data_header;
}

TransportState::TransportState(const Cluster& cluster_in, const ConfigNode& node)
    : cluster(cluster_in),
      parameters(read_transport(node)),
      framing(netsim::framing(parameters.framing)),
      reliability(netsim::reliability(parameters)),
      congestion_control(netsim::congestion_control(parameters)),
      needs(congestion_control->needs()),
      acknowledge_every(static_cast<std::uint32_t>(acknowledging(parameters, needs, cluster).every)),
      echo_in_acks(needs.ack_echo || parameters.ecn_echo == EcnEcho::ack),
      stamps(needs.telemetry || needs.timestamps),
      senders(kMaxQueuePairs),
      receivers(kMaxQueuePairs),
      records(kMaxQueuePairs),
      outstanding(kMaxQueuePairs),
      selective(kMaxQueuePairs),
      state_stride(sizeof(PathConstants) + (needs.state_bytes + 15) / 16 * 16),
      congestion(kMaxQueuePairs * state_stride),
      injector_of_port(cluster.graph.port_count(), kNone),
      gate_of_port(cluster.graph.port_count(), kNone),
      connections(cluster.gpus.size()) {}

PacketNetworkImpl::PacketNetworkImpl(Engine& engine, const Cluster& cluster, const Partition& partition,
                                     const ConfigNode& network_node, const ConfigNode& transport_node,
                                     std::uint64_t seed, FlowObserver observer)
    : cluster_(cluster),
      state_(cluster, transport_node),
      fabric_(engine, cluster.graph, partition, fabric_parameters().parse(network_node, {"kind"}),
              switch_section(network_node), largest_packet(), seed),
      observer_(std::move(observer)),
      routes_(cluster.routes.get()) {
  state_.framing.header += state_.needs.data_header;
  state_.framing.ack += state_.needs.ack_header;
  for (const Gpu& gpu : cluster.gpus) state_.set_of_gpu.push_back(partition.set_of(gpu.node));
  state_.observed = static_cast<bool>(observer_);
  state_.delivered_reader = engine.add_reader(delivered_);
  state_.acknowledged_reader = engine.add_reader(acknowledged_);
  state_.vanished_reader = engine.add_reader(vanished_);
  fabric_.set_routes(routes_);
  fabric_.on_routes_changed([this] { routes_changed(); });
  if (state_.needs.telemetry) fabric_.enable_telemetry();
  if (state_.needs.timestamps) fabric_.enable_timestamps();
  for (std::uint32_t set = 0; set < engine.sets(); ++set) {
    parts_.push_back(std::make_unique<TransportPart>(engine.set(set), fabric_.part(set), state_, *this));
  }
}

// ---- Reports

NetworkCounters PacketNetworkImpl::counters() const {
  NetworkCounters c;
  for (const auto& part : parts_) {
    const NetworkCounters& own = part->counts();
    c.packets += own.packets;
    c.retransmissions += own.retransmissions;
    c.flows_started += own.flows_started;
    c.flows_done += own.flows_done;
    c.bytes_delivered += own.bytes_delivered;
    c.bytes_sent += own.bytes_sent;
    c.bytes_cancelled += own.bytes_cancelled;
  }
  for (PortId id = 0; id < cluster_.graph.port_count(); ++id) {
    const PortSpec& spec = cluster_.graph.port(id);
    const PortCounters port = fabric_.counters(id);
    c.packet_hops[static_cast<std::size_t>(spec.link.kind)] += port.data_packets;
    c.ecn_marks += port.ecn_marks;
    c.drops += port.drops;
    c.no_route += port.no_route;
    c.credit_stalls += port.credit_stalls;
    c.pfc_pauses += port.pauses;
    c.pfc_resumes += port.pauses - fabric_.pfc_paused(id);
    c.cnps += port.cnps;
    c.lost += port.lost;
    if (cluster_.graph.node(spec.node).kind == NodeKind::fabric_switch)
      c.max_queue = std::max(c.max_queue, port.max_queue);
  }
  return c;
}

// Their numbers tell nothing: with several threads it is chance who comes first.
std::vector<std::uint32_t> PacketNetworkImpl::queue_pairs() const {
  std::vector<std::uint32_t> ids;
  for (std::uint32_t id = 0; id < state_.senders.size(); ++id) {
    if (state_.records[id].identity.source != kNone) ids.push_back(id);
  }
  const auto place = [&](std::uint32_t id) {
    const QueuePairIdentity& n = state_.records[id].identity;
    return std::tuple(n.source, n.destination, state_.senders[id].traffic_class, n.number, n.job);
  };
  std::sort(ids.begin(), ids.end(), [&](std::uint32_t a, std::uint32_t b) { return place(a) < place(b); });
  return ids;
}

// Messages that are not finished.
bool PacketNetworkImpl::busy(std::uint32_t id) const {
  const Sender& s = state_.senders[id];
  return s.oldest != kNone || s.waiting != kNone || state_.records[id].held != 0;
}

QueuePairView PacketNetworkImpl::queue_pair_view(std::uint32_t id) const {
  const Sender& s = state_.senders[id];
  const QueuePairIdentity& n = state_.records[id].identity;
  const TransportPart& part = *parts_[state_.set_of_gpu[n.source]];
  return {n.source, n.destination, n.number, part.acknowledged_payload(id), s.rate, busy(id), n.use};
}

std::uint64_t PacketNetworkImpl::packets_fingerprint() const {
  std::uint64_t sum = 0;
  for (const auto& part : parts_) sum += part->packets_fingerprint();
  return sum;
}

std::uint64_t PacketNetworkImpl::events_fingerprint() const {
  std::uint64_t sum = fabric_.events_fingerprint();
  for (std::uint32_t id = 0; id < state_.senders.size(); ++id) {
    if (state_.records[id].identity.source != kNone) sum += digest(id);
  }
  for (const auto& part : parts_) sum += part->late_digest();
  return sum + ended_digest_;
}

std::uint64_t PacketNetworkImpl::digest(std::uint32_t id) const {
  const std::uint64_t key = state_.receivers[id].key;
  return hash_combine(key, state_.senders[id].digest) + hash_combine(~key, state_.receivers[id].digest);
}

std::vector<std::string> PacketNetworkImpl::waiting(std::size_t limit) const {
  std::vector<std::string> lines;
  if (deadlocked()) lines = fabric_.waiting(limit);
  for (const std::uint32_t id : queue_pairs()) {
    if (lines.size() >= limit) break;
    if (!busy(id)) continue;
    const Sender& s = state_.senders[id];
    const QueuePairIdentity& n = state_.records[id].identity;
    const auto nic = [&](std::uint32_t gpu) { return cluster_.graph.node(cluster_.gpus[gpu].nic).name; };
    const std::uint32_t held = state_.records[id].held;
    const std::uint64_t packets = parts_[state_.set_of_gpu[n.source]]->packets_known(id);
    lines.push_back(fmt::format("queue pair {}->{}#{}: {} of {} packets acknowledged{}{}{}", nic(n.source),
                                nic(n.destination), n.number, s.acknowledged, packets,
                                held != 0 ? fmt::format(", {} messages held back", held) : "",
                                s.failed ? ", gave up after its retries" : "", dead_link(id)));
  }
  if (deadlocked()) return lines;
  for (std::string& line : fabric_.waiting(limit - lines.size())) lines.push_back(std::move(line));
  return lines;
}

PathObjection PacketNetworkImpl::worst_path() const {
  PathObjection worst;
  for (const auto& part : parts_) {
    if (part->objection().before(worst)) worst = part->objection();
  }
  return worst;
}

// Why nothing of a queue pair arrives: a link on its way, or on its ACKs', that is known to be down.
std::string PacketNetworkImpl::dead_link(std::uint32_t id) const {
  if (state_.senders[id].scale_up) return "";
  const std::vector<bool>& down = fabric_.down_ports();
  const auto tell = [&](std::span<const PortId> path, std::uint32_t from, std::uint32_t to,
                        const char* what) {
    const auto dead = std::find_if(path.begin(), path.end(), [&](PortId port) { return down[port]; });
    if (dead == path.end()) return std::string();
    const Graph& graph = cluster_.graph;
    const bool fixed = fabric_.routing().fixed_path(graph.node(cluster_.gpus[from].nic).name,
                                                    graph.node(cluster_.gpus[to].nic).name) != nullptr;
    return fmt::format("; {} way leads over {}, which is down{}", what, graph.port_name(*dead),
                       fixed ? " (routing: static keeps to it unless `reroute: true`)" : "");
  };
  const QueuePairIdentity& n = state_.records[id].identity;
  const std::string data =
      tell(fabric_.ports_of_path(state_.records[id].idle.first), n.source, n.destination, "its");
  if (!data.empty()) return data;
  return tell(fabric_.ports_of_path(state_.receivers[id].back_path - 1), n.destination, n.source,
              "its ACKs'");
}

std::vector<std::string> PacketNetworkImpl::notes() const {
  std::vector<std::string> notes = fabric_.notes();
  if (fabric_.routes_packets() && !state_.reliability.selective) {
    notes.push_back(
        "packets are routed one by one but taken in order only (reliability: go_back_n): each that "
        "overtakes another makes the sender start again");
  }
  if (const PathObjection worst = worst_path(); !worst.text.empty()) {
    notes.push_back(
        fmt::format("congestion control does not fit the way from GPU {} to GPU {}, idle round trip "
                    "{}: {}",
                    worst.source, worst.destination, format_time(worst.round_trip), worst.text));
  }
  return notes;
}

// ---- Flows: over when both ends are done with them, which they are in the same order: that of the psns of
// their last packets.

void PacketNetworkImpl::flow_delivered(const FlowDelivered& flow) {
  HalfFlow half;
  if (take_half(flow.queue_pair, false, half)) {
    end_flow(flow, half.acknowledged);
  } else {
    wait_for_other_end(flow.queue_pair, true, {flow, 0, kNone});
  }
}

void PacketNetworkImpl::flow_acknowledged(const FlowAcknowledged& flow) {
  HalfFlow half;
  if (take_half(flow.queue_pair, true, half)) {
    end_flow(half.delivered, flow.acknowledged);
  } else {
    wait_for_other_end(flow.queue_pair, false, {{}, flow.acknowledged, kNone});
  }
}

void PacketNetworkImpl::wait_for_other_end(std::uint32_t queue_pair, bool delivered, const HalfFlow& half) {
  const std::uint32_t index = half_flows_.add(half);
  HalfFlows& list = half_flows_of_[queue_pair];
  list.delivered = delivered;
  if (list.oldest == kNone) {
    list.oldest = index;
  } else {
    half_flows_[list.newest].next = index;
  }
  list.newest = index;
}

// The queue pair's oldest flow of which this end is known. False: there is none.
bool PacketNetworkImpl::take_half(std::uint32_t queue_pair, bool delivered, HalfFlow& half) {
  if (half_flows_of_.size() <= queue_pair) half_flows_of_.resize(queue_pair + std::size_t{1});
  HalfFlows& list = half_flows_of_[queue_pair];
  if (list.oldest == kNone || list.delivered != delivered) return false;
  const std::uint32_t index = list.oldest;
  half = half_flows_[index];
  list.oldest = half.next;
  half_flows_.release(index);
  return true;
}

// Lists of different queue pairs may come in any order: their numbers are chance.
void PacketNetworkImpl::report_unacknowledged() {
  std::vector<FlowRecord> flows;
  for (HalfFlows& list : half_flows_of_) {
    if (!list.delivered) continue;
    for (; list.oldest != kNone; list.oldest = half_flows_[list.oldest].next)
      flows.push_back(record_of(half_flows_[list.oldest].delivered, 0));
  }
  std::sort(flows.begin(), flows.end(), [](const FlowRecord& a, const FlowRecord& b) {
    return std::pair(a.end, a.id) < std::pair(b.end, b.id);
  });
  for (const FlowRecord& flow : flows) observer_(flow);
}

FlowRecord PacketNetworkImpl::record_of(const FlowDelivered& flow, Time acknowledged) const {
  return {hash_combine(state_.receivers[flow.queue_pair].key, flow.number),
          flow.request,
          state_.records[flow.queue_pair].identity.number,
          flow.start,
          flow.delivered,
          acknowledged,
          flow.ideal};
}

void PacketNetworkImpl::end_flow(const FlowDelivered& flow, Time acknowledged) {
  observer_(record_of(flow, acknowledged));
  queue_pair_ended(flow.queue_pair);
}

void PacketNetworkImpl::flow_vanished(const FlowVanished& flow) { queue_pair_ended(flow.queue_pair); }

// If it was for one message only. Looks at the queue pairs whose messages ended longest ago. No set runs now.
void PacketNetworkImpl::queue_pair_ended(std::uint32_t ended) {
  if (state_.senders[ended].counted) ended_.push_back(ended);
  constexpr std::size_t kLooks = 3;  // for each one that comes
  for (std::size_t i = 0; i < kLooks && ended_first_ < (keeps_ended_ ? forgotten_ : ended_.size()); ++i) {
    const std::uint32_t id = ended_[ended_first_++];
    if (!state_.outstanding[id].none() || state_.senders[id].ready) {
      ended_.push_back(id);  // again later
      continue;
    }
    ended_digest_ += digest(id);
    parts_[state_.set_of_gpu[state_.records[id].identity.source]]->give_back(id);
    state_.records[id].identity.source = kNone;
  }
  if (2 * ended_first_ > ended_.size()) {
    ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(ended_first_));
    forgotten_ -= std::min(forgotten_, ended_first_);
    ended_first_ = 0;
  }
}

std::unique_ptr<PacketNetwork> PacketNetwork::create(Engine& engine, const Cluster& cluster,
                                                     const Partition& partition,
                                                     const ConfigNode& network_node,
                                                     const ConfigNode& transport_node, std::uint64_t seed,
                                                     FlowObserver observer) {
  return std::make_unique<PacketNetworkImpl>(engine, cluster, partition, network_node, transport_node, seed,
                                             std::move(observer));
}

const ParameterTable& PacketNetwork::network_parameters() { return fabric_parameters().table(); }
const ParameterTable& PacketNetwork::transport_parameters() { return transport().table(); }
Acknowledging PacketNetwork::acknowledging(const Cluster& cluster, const ConfigNode& node) {
  const TransportParameters parameters = read_transport(node);
  return netsim::acknowledging(parameters, congestion_control(parameters)->needs(), cluster);
}

}  // namespace netsim
