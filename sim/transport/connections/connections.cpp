#include "sim/transport/connections/connections.h"

#include <algorithm>
#include <string>
#include <tuple>

#include "sim/core/random.h"
#include "sim/network/path.h"

namespace netsim {

namespace {
// Numbers of the two queue pairs of a GPU with itself, for copies to and from its host's memory.
constexpr std::uint32_t kToHost = 0, kFromHost = 1;
}  // namespace

Connections::Connections(TransportState& state, Fabric& fabric)
    : cluster_(state.cluster),
      state_(state),
      fabric_(fabric),
      routes_(state.cluster.routes.get()),
      down_at_start_(fabric.down_ports()),
      known_(state.cluster.gpus.size()) {
  fabric_.set_routes(routes_);
  fabric_.on_routes_changed([this] { routes_changed(); });
}

void Connections::add_sender(Sender& sender) {
  senders_.push_back(&sender);
  free_.emplace_back();
}

// ---- Lookup of queue pairs

Connections::Lane Connections::lane_of(const Message& message) const {
  const bool scale_up = is_scale_up(cluster_.way(message.source, message.destination));
  std::uint32_t number = message.traits.channel;
  if (message.source == message.destination) {
    number = message.traits.from_host ? kFromHost : kToHost;
  } else if (scale_up) {
    if (message.traits.own_queue_pair) number = 0;
  } else if (!message.traits.own_queue_pair) {
    const std::uint8_t transport = state_.transport_between(message.source, message.destination);
    number %= static_cast<std::uint32_t>(state_.transports[transport].parameters.queue_pairs);
  }
  // Each class has its own queue pairs.
  return {number, scale_up ? std::uint8_t{0} : message.traits.traffic_class};
}

std::uint64_t Connections::flow_of(const Message& message, const Lane& lane) const {
  return hash_combine(static_cast<std::uint64_t>(cluster_.gpu_number(message.source)) << 32 |
                          cluster_.gpu_number(message.destination),
                      lane.packed());
}

std::uint32_t Connections::queue_pair(const Message& message) {
  const Lane to = lane_of(message);
  const std::uint64_t lane = to.packed();
  if (message.traits.only_message && !is_scale_up(cluster_.way(message.source, message.destination)))
    return new_pair(message, to);
  auto& known = known_[message.source];
  const std::uint64_t key = static_cast<std::uint64_t>(message.destination) << 40 | lane;
  const std::uint64_t job = static_cast<std::uint64_t>(message.traits.job) << 32;
  const auto at = std::lower_bound(known.begin(), known.end(), std::pair(key, job));
  if (at != known.end() && at->first == key && at->second >> 32 == message.traits.job)
    return static_cast<std::uint32_t>(at->second);
  const std::uint32_t id = new_pair(message, to);
  known.insert(at, {key, job | id});
  return id;
}

void Connections::begin_anew(GpuId source, JobId job) {
  for (const auto& [lane, pair] : known_[source]) {
    const auto id = static_cast<std::uint32_t>(pair);
    if (pair >> 32 == job && !state_.senders[id].scale_up) sender_of(source).begin_anew(id);
  }
}

// ---- Cost of messages, before there is a queue pair

MessageCost Connections::cost(const Message& message) const {
  MessageCost cost;
  const auto count = [&](std::span<const PortId> ports) {
    for (const PortId port : ports)
      ++cost.links[static_cast<std::size_t>(cluster_.graph.port(port).link.kind)];
  };
  if (is_scale_up(cluster_.way(message.source, message.destination))) {
    const std::vector<PortId> path = scale_up_path(cluster_, message.source, message.destination);
    if (!path.empty()) cost.payload = cluster_.graph.port(path.front()).link.mtu;
    count(path);
    return cost;
  }
  const Lane lane = lane_of(message);
  const Ends ends = cluster_.nic_ends(message.source, message.destination, lane.number);
  cost.payload =
      state_.transports[state_.transport_between(message.source, message.destination)].parameters.mtu;
  const std::vector<PortId> way =
      ports_of_steps(nic_path(cluster_.graph, *cluster_.routes, down_at_start_,
                              {ends.from.nic, ends.to.nic, flow_of(message, lane), message.traits.path_hint},
                              fabric_.routing(), fabric_.channels(), fabric_.routing_seed()));
  count(way);
  if (fabric_.routes_packets() && way.size() > 1) count_detours(cost, ends);
  count(ends.from.ports);
  count(ends.to.ports);
  return cost;
}

// Counts the links of detours. With very many intermediates it takes a sample that is evenly distributed
// among them.
void Connections::count_detours(MessageCost& cost, const Ends& ends) const {
  constexpr std::uint32_t kMost = 256;
  const RoutingPlan plan = fabric_.routing().compile();
  const std::uint32_t all = cluster_.routes->intermediates();
  if (!plan.detours() || all == 0) return;
  cost.always = plan.detour == RoutingPlan::Detour::always;
  cost.detours = std::min(all, kMost);
  const auto count = [&](PortId port) {
    ++cost.detour_links[static_cast<std::size_t>(cluster_.graph.port(port).link.kind)];
  };
  for (std::uint32_t i = 0; i < cost.detours; ++i) {
    const auto via = static_cast<std::uint32_t>(std::uint64_t{i} * all / cost.detours);
    for (const PortId port : nic_path_over(cluster_.graph, *cluster_.routes, ends.from.nic, ends.to.nic, via))
      count(port);
    for (const PortId port : ends.from.ports) count(port);
    for (const PortId port : ends.to.ports) count(port);
  }
}

bool Connections::ways_differ() const {
  const RoutingPlan plan = fabric_.routing().compile();
  if (plan.detour != RoutingPlan::Detour::never && !plan.per_packet()) return true;
  for (const HostGroup& group : cluster_.groups) {
    for (std::uint32_t fabric = 0; fabric < group.fabrics.size(); ++fabric) {
      if (cluster_.fabrics[group.fabrics[fabric]].scale_up) continue;
      for (std::uint32_t gpu = 0; gpu < group.gpus; ++gpu) {
        if (group.ways.nearest(gpu, fabric) > 1) return true;
      }
    }
  }
  return false;
}

// ---- New queue pairs

// Creates a queue pair, reusing the id of one that is over if possible. Runs in the source's logical process.
// Flow identifiers and ways do not depend on the id, so other jobs have no effect on them.
std::uint32_t Connections::new_pair(const Message& message, const Lane& lane) {
  const std::uint32_t id = take_number(state_.set_of_gpu[message.source]);
  QueuePairRecord& record = state_.records[id];
  record.identity = {message.source, message.destination, message.traits.job, lane.number,
                     record.identity.use};
  state_.receivers[id].key = flow_of(message, lane);
  if (is_scale_up(cluster_.way(message.source, message.destination))) {
    connect_scale_up(id);
    return id;
  }
  // A step of packets that are routed one by one cannot be overwritten, so such queue pairs are not reused.
  if (message.traits.only_message && !fabric_.routes_packets()) {
    state_.outstanding.make(id, 1);
    state_.senders[id].counted = state_.receivers[id].counted = true;
  }
  if (message.traits.only_message && message.traits.priority != 0 && state_.nic_levels == 1 && !state_.tagged)
    ignored_priorities_ = true;
  connect_scale_out(id, lane.traffic_class);
  return id;
}

// Returns a new id or one to be reused, with both halves in their initial state. A reused id keeps only the
// space of its paths.
std::uint32_t Connections::take_number(std::uint32_t set) {
  if (free_[set].empty()) return new_number();
  const std::uint32_t id = free_[set].back();
  free_[set].pop_back();
  QueuePairRecord again;
  again.identity.use = state_.records[id].identity.use + 1;
  again.data = state_.records[id].data;
  again.back = state_.records[id].back;
  again.idle = state_.records[id].idle;
  again.hinted = state_.records[id].hinted;
  Arena<HintedPath>& paths = senders_[set]->hinted_paths();
  for (std::uint32_t at = again.hinted; at != kNone; at = paths[at].next) paths[at].hint = kNoPathHint;
  state_.records[id] = again;
  state_.senders[id] = SenderState{};
  if (state_.selective) {
    state_.selective_senders[id] = SelectiveSender{};
    state_.selective_receivers[id] = SelectiveReceiver{};
  }
  if (id < former_paths_.size()) former_paths_[id].set_free();
  make_halves(id);
  return id;
}

std::uint32_t Connections::new_number() {
  const auto id = static_cast<std::uint32_t>(state_.senders.grow(1));
  state_.records.make(id, 1);
  if (state_.selective) {
    state_.selective_senders.make(id, 1);
    state_.selective_receivers.make(id, 1);
  }
  make_halves(id);
  return id;
}

void Connections::make_halves(std::uint32_t id) {
  state_.receivers.make(id, 1);
  state_.ideal_messages.make(id, 1);
  state_.congestion.make(id * state_.state_stride, state_.state_stride);
  if (state_.nic_levels > 1) state_.levels.make(id, 1);
  if (!state_.own_reliability) return;
  state_.reliability_states.make(id * state_.reliability_stride, state_.reliability_stride);
  state_.arrival_stamps.make(id, 1);
}

void Connections::connect_scale_up(std::uint32_t id) {
  const QueuePairIdentity& pair = state_.records[id].identity;
  std::vector<std::uint32_t> path = scale_up_path(cluster_, pair.source, pair.destination);
  NETSIM_CHECK(!path.empty(), "a copy to the memory of a host without a CPU");
  if (pair.source == pair.destination && pair.number == kFromHost) path = reversed(path);
  SenderState& s = state_.senders[id];
  s.injector = sender_of(pair.source).injector(path.front(), path.front());
  s.scale_up = true;
  s.mtu = static_cast<std::uint32_t>(cluster_.graph.port(path.front()).link.mtu);
  s.rate = s.line_rate = cluster_.graph.port(path.front()).link.rate;
  s.overhead = static_cast<std::uint16_t>(fabric_.overhead(path.front()));
  path.push_back(make_step(StepKind::deliver, id));
  s.path = fabric_.add_path(path) + 1;
}

std::uint32_t Connections::aggregation_pair(const AggregationPair& pair) {
  const std::uint32_t id = new_number();
  QueuePairRecord& record = state_.records[id];
  record.identity = {pair.source, pair.destination, pair.job, pair.number, record.identity.use};
  record.efficiency = pair.combining.efficiency;
  record.header = pair.header;
  state_.receivers[id].key = aggregation_key(pair.source, pair.destination, pair.number);
  std::vector<std::uint32_t> idle(pair.idle.begin(), pair.idle.end());
  idle.push_back(make_step(StepKind::deliver, id));
  put_path(record.idle, idle, nullptr);
  const PortId first = pair.idle.front(), wire = pair.wire != kNoId ? pair.wire : first;
  SenderState& s = state_.senders[id];
  s.transport = pair.transport;
  s.traffic_class = pair.traffic_class;
  record.wire = pair.wire;
  s.injector = kNone;
  s.scale_up = s.aggregation = true;
  s.window = pair.window;
  s.mtu = static_cast<std::uint32_t>(pair.combining.piece);
  s.rate = s.line_rate = cluster_.graph.port(wire).link.rate;
  s.overhead = static_cast<std::uint16_t>(fabric_.overhead(wire));
  return id;
}

void Connections::begin_aggregation_pair(std::uint32_t id) {
  const QueuePairRecord& record = state_.records[id];
  SenderState& s = state_.senders[id];
  const PortId first = fabric_.ports_of_path(record.idle.first)[0];
  const bool tree = record.wire != kNoId;
  s.injector =
      sender_of(record.identity.source)
          .injector(first, tree ? record.wire : first, tree ? state_.of(s).parameters.nic_buffer : 0);
}

void Connections::set_aggregation_path(std::uint32_t id, std::vector<std::uint32_t> steps,
                                       std::uint32_t delivered_as) {
  steps.push_back(make_step(StepKind::deliver, delivered_as));
  state_.senders[id].path = fabric_.add_path(steps) + 1;
}

void Connections::connect_scale_out(std::uint32_t id, std::uint8_t traffic_class) {
  if (traffic_class >= fabric_.classes()) {
    throw ConfigError("a flow is of class " + std::to_string(traffic_class) +
                      ", but network.switch.classes is " + std::to_string(fabric_.classes()));
  }
  SenderState& s = state_.senders[id];
  ReceiverState& r = state_.receivers[id];
  const GpuId source = state_.records[id].identity.source;
  s.transport = r.transport = state_.transport_between(source, state_.records[id].identity.destination);
  const FabricTransport& transport = state_.of(s);
  s.traffic_class = r.traffic_class = traffic_class;
  s.selective = r.selective = transport.reliability.selective;
  r.echo_in_acks = transport.echo_in_acks;
  r.reacts_to_marks = transport.echo_in_acks || transport.needs.cnp_interval != kNever;
  s.mtu = static_cast<std::uint32_t>(transport.parameters.mtu);
  const Ends way = ends(id);
  r.pcie = !way.to.ports.empty();
  if (r.pcie) r.gpu_port = way.to.ports.back() ^ 1U;
  // If links that are down leave no way, the original way is used.
  if (!route(id, *routes_, false)) {
    NETSIM_CHECK(route(id, *cluster_.routes, false),
                 "no route from " + cluster_.graph.node(way.from.nic).name);
  }
  const std::span<const PortId> ports = fabric_.ports_of_path(state_.records[id].idle.first);
  const PortId first = ports[0], wire = ports[way.from.ports.size()];
  s.injector = sender_of(source).injector(first, wire, transport.parameters.nic_buffer);
  s.ask_shift = transport.ask_shift[cluster_.hosts[cluster_.gpus[source].host].group] & 31U;
  s.line_rate = s.rate = cluster_.graph.port(wire).link.rate;
  s.overhead = static_cast<std::uint16_t>(fabric_.overhead(wire));
  PathConstants& path = state_.path_constants(id);
  path.hops = static_cast<std::uint32_t>(ports.size() - way.from.ports.size() - way.to.ports.size());
  const Time round_trip = idle_round_trip(id, way);
  path.base_rtt = transport.parameters.base_rtt != 0 ? transport.parameters.base_rtt : round_trip;
  sender_of(source).begin(id, round_trip);
}

// Returns the time of a full packet from NIC to NIC and of its ACK back, in an idle network.
Time Connections::idle_round_trip(std::uint32_t id, const Ends& ends) const {
  const std::span<const PortId> ports = fabric_.ports_of_path(state_.records[id].idle.first);
  const std::span<const PortId> wires = ports.subspan(ends.from.ports.size(), state_.path_constants(id).hops);
  const FabricTransport& transport = state_.of(state_.senders[id]);
  const Bytes data = transport.parameters.mtu + transport.framing.header;
  const Bytes ack = transport.framing.ack;
  const std::vector<PortId> back = ports_of_steps(ack_steps(id, ends, *cluster_.routes));
  return fabric_.ideal_time(wires, {1, data, data, data}) + fabric_.ideal_time(back, {1, ack, ack, ack});
}

// ---- All queue pairs

std::vector<std::uint32_t> Connections::queue_pairs() const {
  std::vector<std::uint32_t> ids;
  for (std::uint32_t id = 0; id < state_.senders.size(); ++id) {
    if (!state_.records[id].identity.source.is_none()) ids.push_back(id);
  }
  const auto place = [&](std::uint32_t id) {
    const QueuePairIdentity& n = state_.records[id].identity;
    return std::tuple(n.source, n.destination, state_.senders[id].traffic_class, n.number, n.job);
  };
  std::sort(ids.begin(), ids.end(), [&](std::uint32_t a, std::uint32_t b) { return place(a) < place(b); });
  return ids;
}

std::uint64_t Connections::digest(std::uint32_t id) const {
  const std::uint64_t key = state_.receivers[id].key;
  return hash_combine(key, state_.senders[id].digest) + hash_combine(~key, state_.receivers[id].digest);
}

std::uint64_t Connections::events_digest() const {
  std::uint64_t sum = ended_digest_;
  for (std::uint32_t id = 0; id < state_.senders.size(); ++id) {
    if (!state_.records[id].identity.source.is_none()) sum += digest(id);
  }
  for (const Sender* sender : senders_) sum += sender->late_digest();
  return sum;
}

// ---- Reuse

// Checks the queue pairs whose messages ended longest ago, and reuses those of which nothing is in flight.
void Connections::message_ended(std::uint32_t ended) {
  if (state_.senders[ended].counted) ended_.push_back(ended);
  constexpr std::size_t kLooks = 3;  // queue pairs checked per call
  for (std::size_t i = 0; i < kLooks && ended_first_ < (keeps_ended_ ? forgotten_ : ended_.size()); ++i) {
    const std::uint32_t id = ended_[ended_first_++];
    if (state_.outstanding[id].none() && !state_.senders[id].ready) {
      use_again(id);
    } else {
      ended_.push_back(id);  // to be checked again later
    }
  }
  if (2 * ended_first_ > ended_.size()) {
    ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(ended_first_));
    forgotten_ -= std::min(forgotten_, ended_first_);
    ended_first_ = 0;
  }
}

void Connections::use_again(std::uint32_t id) {
  GpuId& source = state_.records[id].identity.source;
  ended_digest_ += digest(id);
  sender_of(source).end(id);
  free_[state_.set_of_gpu[source]].push_back(id);
  source = GpuId::none();
}

}  // namespace netsim
