#include "sim/transport/packet_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "sim/core/registry.h"
#include "sim/network/fabric.h"
#include "sim/network/path.h"
#include "sim/transport/congestion_control.h"

namespace netsim {
namespace {

// RoCEv2 framing (InfiniBand Architecture Specification 1.4, annex A17): Ethernet 14, IPv4 20, UDP 8, BTH 12,
// ICRC 4, FCS 4; RETH 16 in a message's first packet; AETH 4 in an ACK. A CNP carries 16 reserved bytes after
// the BTH.
constexpr std::uint32_t kHeaderBytes = 62, kRethBytes = 16, kAckBytes = 66, kCnpBytes = 78;

struct TransportParameters {
  Bytes mtu = 4096;
  std::int64_t queue_pairs = 4;
  std::int64_t ack_every = 1;
  Bytes nic_buffer = 64 * kKibibyte;
  Time retransmission_timeout = 67'108'864 * kNanosecond;
  std::int64_t retries = 7;
  ConfigNode congestion_control;
};

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

constexpr std::uint32_t kNone = UINT32_MAX;

struct Message {
  SendRequest request;
  Time start = 0;
  std::uint64_t number = 0;    // within its queue pair
  std::uint32_t next = kNone;  // in the queue pair, oldest first
  std::uint32_t first_psn = 0;
  std::uint32_t packets = 0;
  std::uint32_t holders = 0;  // sender until acknowledged, receiver until delivered
};

// The sender's half of a queue pair, at the source's NIC.
struct alignas(64) Sender {
  std::uint32_t path = 0;  // of data, after the first port
  std::uint32_t injector = 0;
  std::uint32_t next_psn = 0;
  std::uint32_t acknowledged = 0;  // first psn not acknowledged
  std::uint32_t sent_end = 0;      // one past the highest psn ever sent
  std::uint32_t current = kNone;   // message that next_psn belongs to
  std::uint32_t oldest = kNone;    // first message not fully acknowledged
  std::uint32_t newest = kNone;
  std::uint32_t next_ready = kNone;
  bool ready = false;   // in its injector's ring
  bool pacing = false;  // a pace event is pending
  bool scale_up = false;
  bool timer = false;  // a retransmission event is pending
  BitRate rate = 0;
  BitRate line_rate = 0;
  std::uint32_t timer_snapshot = 0;  // `acknowledged` when the timer was set
  std::uint32_t timeouts = 0;        // in a row
  std::uint32_t end_psn = 0;         // one past the last psn of the newest message
  std::uint32_t mtu = 0;
  std::uint64_t messages = 0;
  std::uint64_t digest = 0;
  bool failed = false;
  alignas(16) std::byte congestion[kCongestionStateBytes] = {};
};

// The receiver's half, at the destination.
struct alignas(64) Receiver {
  std::uint64_t key = 0;  // hash of (source, destination, number): names the flow in fingerprints
  Time last_cnp = 0;
  std::uint64_t digest = 0;
  std::uint32_t expected = 0;
  std::uint32_t unacknowledged = 0;
  std::uint32_t back_path = 0;  // of ACKs, after the first port
  PortId back_port = 0;         // the NIC's port
  bool cnp_sent = false;
  bool nack_sent = false;
  bool pcie = false;    // goes on to the GPU over PCIe
  PortId gpu_port = 0;  // the NIC's port to the GPU
};

// What makes packets for one first port: a NIC (Ethernet port, or the PCIe link that feeds it), or a GPU's
// NVLink port.
struct Injector {
  PortId port = 0;
  std::uint32_t gate = kNone;                // PCIe: limits what is between GPU and wire
  std::uint32_t head = kNone, tail = kNone;  // ring of queue pairs that may send, served round robin
};

struct Gate {
  Bytes credit = 0;
  std::vector<std::uint32_t> injectors;
};

struct Names {
  std::uint32_t source, destination, number;
};

class PacketNetworkImpl final : public PacketNetwork, private PacketSource {
 public:
  PacketNetworkImpl(EventLoop& loop, const Cluster& cluster, const ConfigNode& network,
                    const ConfigNode& transport_node, std::uint64_t seed, FlowObserver observer);

  void set_listener(MessageListener* listener) override { listener_ = listener; }
  void send(const SendRequest& request) override;
  Reach reach(std::uint32_t source, std::uint32_t destination) const override {
    if (source == destination) return Reach::self;
    return cluster_.same_host(source, destination) ? Reach::scale_up : Reach::scale_out;
  }
  std::uint32_t gpu_count() const override { return static_cast<std::uint32_t>(cluster_.gpus.size()); }
  NetworkCounters counters() const override;
  PortCounters port_counters(PortId port) const override;
  std::uint64_t packets_fingerprint() const override { return packets_fingerprint_; }
  std::uint64_t events_fingerprint() const override;
  std::vector<std::string> waiting(std::size_t limit) const override;
  std::vector<std::string> notes() const override { return fabric_.notes(); }

 private:
  void port_free(PortId port) override;
  void departed(PortId port, Bytes bytes) override;

  std::uint32_t queue_pair(const SendRequest& request);
  void connect_scale_up(std::uint32_t id, const Names& names);
  void connect_scale_out(std::uint32_t id, const Names& names);
  std::uint32_t injector(PortId first, PortId gate);
  std::uint32_t add_message(std::uint32_t id, const SendRequest& request);
  void join_ring(std::uint32_t id);
  void make_ready(std::uint32_t id);
  std::uint32_t make_packet(std::uint32_t id);
  void pace(std::uint32_t id, Bytes wire_bytes);
  void arm_timer(std::uint32_t id);

  void on_receive(const Event& event);
  void accept(std::uint32_t id, std::uint32_t packet);
  void reply(std::uint32_t id, PacketKind kind, std::uint32_t bytes, std::uint8_t priority);
  void on_deliver(const Event& event);
  void on_control(const Event& event);
  void on_ack(std::uint32_t id, std::uint32_t next_expected);
  void go_back(std::uint32_t id);
  void on_pace(const Event& event);
  void on_congestion_timer(const Event& event);
  void on_retransmission(const Event& event);
  void delivered(std::uint32_t id, std::uint32_t message);
  void release(std::uint32_t message);
  template <class Call>
  void control(std::uint32_t id, Call call);

  EventLoop& loop_;
  const Cluster& cluster_;
  TransportParameters parameters_;
  Fabric fabric_;
  FlowObserver observer_;
  MessageListener* listener_ = nullptr;
  std::unique_ptr<CongestionControl> congestion_control_;
  bool wants_acks_ = false, wants_sent_ = false;
  Time cnp_interval_ = kNever;
  std::vector<Sender> senders_;
  std::vector<Receiver> receivers_;
  const void* senders_base_ = nullptr;
  const void* receivers_base_ = nullptr;
  std::vector<Names> names_;
  std::vector<Injector> injectors_;
  std::vector<std::uint32_t> injector_of_port_;
  std::vector<Gate> gates_;
  std::vector<std::uint32_t> gate_of_port_;
  // Per source GPU: (destination << 8 | number) to queue pair, sorted.
  std::vector<std::vector<std::pair<std::uint64_t, std::uint32_t>>> connections_;
  std::vector<Message> messages_;
  std::uint32_t free_message_ = kNone;
  NetworkCounters counts_;
  std::uint64_t packets_fingerprint_ = 0;
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
  wants_acks_ = congestion_control_->wants_acks();
  wants_sent_ = congestion_control_->wants_sent_bytes();
  cnp_interval_ = congestion_control_->cnp_interval();
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

// --- connections
// -----------------------------------------------------------------------------------------------------

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
  const std::uint64_t seed = fabric_.flow_seed(0);
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
  CongestionContext context;
  context.now = loop_.now();
  context.line_rate = context.rate = s.line_rate;
  context.state = s.congestion;
  congestion_control_->start(context);
  s.rate = context.rate;
}

// --- sending
// ---------------------------------------------------------------------------------------------------------

std::uint32_t PacketNetworkImpl::add_message(std::uint32_t id, const SendRequest& request) {
  std::uint32_t index = free_message_;
  if (index == kNone) {
    index = static_cast<std::uint32_t>(messages_.size());
    messages_.emplace_back();
  } else {
    free_message_ = messages_[index].next;
  }
  Sender& s = senders_[id];
  Message& m = messages_[index];
  m = Message{};
  m.request = request;
  m.start = loop_.now();
  m.number = s.messages++;
  m.first_psn = s.end_psn;
  m.packets = static_cast<std::uint32_t>((request.bytes + s.mtu - 1) / s.mtu);
  m.holders = s.scale_up ? 1 : 2;
  s.end_psn += m.packets;
  if (s.newest != kNone) messages_[s.newest].next = index;
  s.newest = index;
  if (s.oldest == kNone) s.oldest = index;
  if (s.current == kNone) s.current = index;
  return index;
}

void PacketNetworkImpl::send(const SendRequest& request) {
  NETSIM_CHECK(request.bytes > 0 && request.source != request.destination, "empty or self-addressed message");
  const std::uint32_t id = queue_pair(request);
  add_message(id, request);
  const Sender& s = senders_[id];
  if (!s.scale_up) {
    ++counts_.flows_started;
    counts_.bytes_sent += request.bytes;
  }
  if (!s.ready && !s.pacing && !s.failed) make_ready(id);
}

// To the end of its injector's ring.
void PacketNetworkImpl::join_ring(std::uint32_t id) {
  Sender& s = senders_[id];
  Injector& in = injectors_[s.injector];
  s.ready = true;
  s.next_ready = kNone;
  if (in.head == kNone) {
    in.head = id;
  } else {
    senders_[in.tail].next_ready = id;
  }
  in.tail = id;
}

void PacketNetworkImpl::make_ready(std::uint32_t id) {
  join_ring(id);
  const Injector& in = injectors_[senders_[id].injector];
  fabric_.set_source_ready(in.port, true);
  fabric_.wake(in.port);
}

void PacketNetworkImpl::port_free(PortId port) {
  Injector& in = injectors_[injector_of_port_[port]];
  if (in.head == kNone || (in.gate != kNone && gates_[in.gate].credit <= 0)) {
    fabric_.set_source_ready(port, false);  // make_ready() or departed() turn it on again
    return;
  }
  // Data held back by PFC: the resume wakes the port.
  if (fabric_.paused(port, kDataPriority)) return;
  const std::uint32_t id = in.head;
  in.head = senders_[id].next_ready;
  if (in.head == kNone) in.tail = kNone;
  senders_[id].ready = false;
  if (senders_[id].current != kNone) {
    const std::uint32_t packet = make_packet(id);
    const Bytes bytes = fabric_.packets()[packet].bytes;
    if (in.gate != kNone) gates_[in.gate].credit -= bytes;
    fabric_.transmit(port, packet);
    pace(id, bytes + 20);
  }
  if (in.head != kNone) {
    fabric_.wake(port);
  } else {
    fabric_.set_source_ready(port, false);
  }
}

std::uint32_t PacketNetworkImpl::make_packet(std::uint32_t id) {
  Sender& s = senders_[id];
  const Message& m = messages_[s.current];
  const std::uint32_t number = s.next_psn - m.first_psn;
  const Bytes payload = std::min<Bytes>(s.mtu, m.request.bytes - static_cast<Bytes>(number) * s.mtu);
  const std::uint32_t index = fabric_.packets().allocate();
  Packet& k = fabric_.packets()[index];
  k.queue_pair = id;
  k.psn = s.next_psn++;
  k.bytes =
      static_cast<std::uint32_t>(payload) + (s.scale_up ? 0 : kHeaderBytes + (number == 0 ? kRethBytes : 0));
  k.path = s.path;
  k.message = s.current;
  k.kind = PacketKind::data;
  k.priority = kDataPriority;
  k.marked = false;
  k.last = number + 1 == m.packets;
  if (k.last) s.current = m.next;
  if (s.scale_up) return index;
  if (static_cast<std::int32_t>(s.next_psn - s.sent_end) > 0) {
    s.sent_end = s.next_psn;
  } else {
    ++counts_.retransmissions;
  }
  if (!s.timer) arm_timer(id);
  return index;
}

// Puts the queue pair back in the ring, now or when its rate allows the next packet.
void PacketNetworkImpl::pace(std::uint32_t id, Bytes wire_bytes) {
  Sender& s = senders_[id];
  if (wants_sent_ && !s.scale_up) {
    control(id, [&](CongestionContext& c) { congestion_control_->on_sent(c, wire_bytes); });
  }
  if (s.rate >= s.line_rate) {
    if (s.current != kNone) join_ring(id);
    return;
  }
  s.pacing = true;  // also after the last packet: a following message must not overtake its rate
  loop_.schedule(loop_.now() + transmission_time(wire_bytes, s.rate),
                 fabric_.origin(injectors_[s.injector].port), EventKind::pace, id);
}

void PacketNetworkImpl::on_pace(const Event& event) {
  Sender& s = senders_[event.target];
  s.digest = Fabric::digest(s.digest, event);
  s.pacing = false;
  if (s.current != kNone && !s.ready) make_ready(event.target);
}

void PacketNetworkImpl::departed(PortId port, Bytes bytes) {
  Gate& gate = gates_[gate_of_port_[port]];
  gate.credit += bytes;
  for (std::uint32_t index : gate.injectors) {
    const Injector& in = injectors_[index];
    if (in.head == kNone) continue;
    fabric_.set_source_ready(in.port, true);
    fabric_.wake(in.port);
  }
}

// --- receiving
// -------------------------------------------------------------------------------------------------------

void PacketNetworkImpl::on_receive(const Event& event) {
  const std::uint32_t id = event.target;
  const auto packet = static_cast<std::uint32_t>(event.argument);
  Receiver& r = receivers_[id];
  r.digest = Fabric::digest(r.digest, event);
  const Packet& k = fabric_.packets()[packet];
  if (k.marked && cnp_interval_ != kNever && (!r.cnp_sent || loop_.now() - r.last_cnp >= cnp_interval_)) {
    r.cnp_sent = true;
    r.last_cnp = loop_.now();
    ++counts_.cnps;
    reply(id, PacketKind::cnp, kCnpBytes, kCnpPriority);
  }
  accept(id, packet);
}

void PacketNetworkImpl::accept(std::uint32_t id, std::uint32_t packet) {
  Receiver& r = receivers_[id];
  const Packet k = fabric_.packets()[packet];
  if (k.psn != r.expected) [[unlikely]] {
    fabric_.packets().release(packet);
    if (static_cast<std::int32_t>(k.psn - r.expected) < 0) {
      reply(id, PacketKind::ack, kAckBytes, kDataPriority);  // a duplicate: the ACK may have been late
    } else if (!r.nack_sent) {
      r.nack_sent = true;
      reply(id, PacketKind::nack, kAckBytes, kDataPriority);
    }
    return;
  }
  ++r.expected;
  r.nack_sent = false;
  ++counts_.packets;
  packets_fingerprint_ += hash_combine(hash_combine(r.key, k.psn), static_cast<std::uint64_t>(loop_.now()));
  const bool acknowledge = k.last || ++r.unacknowledged >= static_cast<std::uint32_t>(parameters_.ack_every);
  if (r.pcie) {
    fabric_.enqueue(r.gpu_port, packet);
  } else {
    fabric_.packets().release(packet);
  }
  if (acknowledge) {
    r.unacknowledged = 0;
    reply(id, PacketKind::ack, kAckBytes, kDataPriority);
  }
  if (!r.pcie && k.last) delivered(id, k.message);
}

void PacketNetworkImpl::reply(std::uint32_t id, PacketKind kind, std::uint32_t bytes, std::uint8_t priority) {
  const Receiver& r = receivers_[id];
  const std::uint32_t index = fabric_.packets().allocate();
  Packet& k = fabric_.packets()[index];
  k.queue_pair = id;
  k.psn = r.expected;
  k.bytes = bytes;
  k.path = r.back_path;
  k.kind = kind;
  k.priority = priority;
  k.marked = k.last = false;
  fabric_.enqueue(r.back_port, index);
}

void PacketNetworkImpl::on_deliver(const Event& event) {
  const std::uint32_t id = event.target;
  const auto packet = static_cast<std::uint32_t>(event.argument);
  Receiver& r = receivers_[id];
  r.digest = Fabric::digest(r.digest, event);
  const Packet& k = fabric_.packets()[packet];
  const bool last = k.last;
  const std::uint32_t message = k.message;
  fabric_.packets().release(packet);
  if (senders_[id].scale_up) ++counts_.packets;
  if (last) delivered(id, message);
}

void PacketNetworkImpl::delivered(std::uint32_t id, std::uint32_t message) {
  const SendRequest request = messages_[message].request;
  const bool scale_up = senders_[id].scale_up;
  if (!scale_up) {
    ++counts_.flows_done;
    counts_.bytes_delivered += request.bytes;
    if (observer_) {
      const Message& m = messages_[message];
      observer_(
          {hash_combine(receivers_[id].key, m.number), request, names_[id].number, m.start, loop_.now()});
    }
  } else {
    Sender& s = senders_[id];
    s.oldest = messages_[message].next;
    if (s.oldest == kNone) s.newest = kNone;
  }
  release(message);
  listener_->message_delivered(request);
  if (scale_up) listener_->message_sent(request);
}

void PacketNetworkImpl::release(std::uint32_t message) {
  if (--messages_[message].holders != 0) return;
  messages_[message].next = free_message_;
  free_message_ = message;
}

// --- acknowledgements and congestion control
// -------------------------------------------------------------------------

template <class Call>
void PacketNetworkImpl::control(std::uint32_t id, Call call) {
  Sender& s = senders_[id];
  CongestionContext context;
  context.now = loop_.now();
  context.line_rate = s.line_rate;
  context.rate = s.rate;
  context.state = s.congestion;
  call(context);
  s.rate = std::clamp<BitRate>(context.rate, 1, s.line_rate);
  for (unsigned i = 0; i < kCongestionTimers; ++i) {
    if (context.timer[i] == kNever) continue;
    loop_.schedule(context.timer[i], fabric_.origin(injectors_[s.injector].port), EventKind::congestion_timer,
                   id, i);
  }
}

void PacketNetworkImpl::on_control(const Event& event) {
  const std::uint32_t id = event.target;
  const auto packet = static_cast<std::uint32_t>(event.argument);
  Sender& s = senders_[id];
  s.digest = Fabric::digest(s.digest, event);
  const Packet& k = fabric_.packets()[packet];
  const PacketKind kind = k.kind;
  const std::uint32_t psn = k.psn;
  fabric_.packets().release(packet);
  if (kind == PacketKind::cnp) {
    control(id, [&](CongestionContext& c) { congestion_control_->on_cnp(c); });
    return;
  }
  on_ack(id, psn);
  if (kind == PacketKind::nack) go_back(id);
}

void PacketNetworkImpl::on_ack(std::uint32_t id, std::uint32_t next_expected) {
  Sender* s = &senders_[id];
  const auto fresh = static_cast<std::int32_t>(next_expected - s->acknowledged);
  if (fresh <= 0) return;
  s->acknowledged = next_expected;
  // An ACK that overtook a go-back: what it covers need not be sent again.
  if (static_cast<std::int32_t>(next_expected - s->next_psn) > 0) go_back(id);
  if (wants_acks_) {
    const Bytes bytes = static_cast<Bytes>(fresh) * s->mtu;
    control(id, [&](CongestionContext& c) { congestion_control_->on_ack(c, bytes); });
  }
  while (s->oldest != kNone) {
    const Message& m = messages_[s->oldest];
    if (static_cast<std::int32_t>(s->acknowledged - (m.first_psn + m.packets)) < 0) break;
    const std::uint32_t done = s->oldest;
    const SendRequest request = m.request;
    s->oldest = m.next;
    if (s->oldest == kNone) s->newest = kNone;
    release(done);
    listener_->message_sent(request);
    s = &senders_[id];  // the listener may have sent on a new queue pair
  }
}

// Go-back-N: the next packet is the first one not acknowledged.
void PacketNetworkImpl::go_back(std::uint32_t id) {
  Sender& s = senders_[id];
  s.next_psn = s.acknowledged;
  s.current = s.oldest;
  while (s.current != kNone) {
    const Message& m = messages_[s.current];
    if (static_cast<std::int32_t>(s.next_psn - (m.first_psn + m.packets)) < 0) break;
    s.current = m.next;
  }
  if (s.current != kNone && !s.ready && !s.pacing && !s.failed) make_ready(id);
}

void PacketNetworkImpl::on_congestion_timer(const Event& event) {
  Sender& s = senders_[event.target];
  s.digest = Fabric::digest(s.digest, event);
  const auto timer = static_cast<unsigned>(event.argument);
  control(event.target, [&](CongestionContext& c) { congestion_control_->on_timer(c, timer); });
}

void PacketNetworkImpl::arm_timer(std::uint32_t id) {
  Sender& s = senders_[id];
  s.timer = true;
  s.timer_snapshot = s.acknowledged;
  loop_.schedule(loop_.now() + parameters_.retransmission_timeout,
                 fabric_.origin(injectors_[s.injector].port), EventKind::retransmission, id);
}

// Looks whether there was progress since it was set; so a queue pair costs one timer event a timeout, not one
// a packet.
void PacketNetworkImpl::on_retransmission(const Event& event) {
  const std::uint32_t id = event.target;
  Sender& s = senders_[id];
  s.digest = Fabric::digest(s.digest, event);
  s.timer = false;
  if (s.acknowledged == s.sent_end) return;
  if (s.acknowledged != s.timer_snapshot) {
    s.timeouts = 0;
  } else if (++s.timeouts > static_cast<std::uint32_t>(parameters_.retries)) {
    s.failed = true;  // as a real queue pair's error state: the stall report names it
    s.current = kNone;
    return;
  } else {
    go_back(id);
  }
  arm_timer(id);
}

// --- reports
// ---------------------------------------------------------------------------------------------------------

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

}  // namespace

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
