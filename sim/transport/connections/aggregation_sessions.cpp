#include "sim/transport/connections/aggregation_sessions.h"

#include <algorithm>
#include <span>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "sim/network/path.h"
#include "sim/topology/aggregation_tree.h"
#include "sim/transport/flow_ends.h"

namespace netsim {

namespace {

// Returns the path step at which a switch applies this aggregation group.
std::uint32_t step_of_aggregation(std::uint32_t aggregation) {
  return make_step(StepKind::route, kAggregationTarget | aggregation);
}

bool has(std::span<const GpuId> gpus, GpuId gpu) {
  return std::find(gpus.begin(), gpus.end(), gpu) != gpus.end();
}

}  // namespace

// ---- Sessions

std::size_t AggregationSessions::KeyHash::operator()(const Key& key) const {
  std::uint64_t hash = hash_combine(key.aggregation, key.communication);
  hash = hash_combine(hash, key.tag);
  return static_cast<std::size_t>(hash_combine(hash, static_cast<std::uint64_t>(key.job) << 16 |
                                                         static_cast<std::uint64_t>(key.traffic_class) << 8 |
                                                         static_cast<std::uint64_t>(key.use)));
}

std::uint32_t AggregationSessions::session_of(const Key& key) {
  if (const auto known = session_of_.find(key); known != session_of_.end()) {
    if (is_whole(sessions_[known->second])) return known->second;
    session_of_.erase(known);
  }
  const Key of_aggregation{key.aggregation, key.use, key.traffic_class, key.job, 0, 0};
  std::vector<std::uint32_t>& same = sessions_of_aggregation_[of_aggregation];
  std::erase_if(same, [&](std::uint32_t session) { return !is_whole(sessions_[session]); });
  const auto idle = std::find_if(same.begin(), same.end(),
                                 [&](std::uint32_t session) { return sessions_[session].on_their_way == 0; });
  if (idle == same.end()) {
    const std::uint32_t number =
        key.use == AggregationUse::allreduce ? 0 : sessions_of_head_[group(key).head]++;
    same.push_back(new_session(key, number));
    return session_of_[key] = same.back();
  }
  session_of_.erase(sessions_[*idle].key);
  sessions_[*idle].key = key;
  return session_of_[key] = *idle;
}

// Creates a session. `number` is its number among the sessions of its head.
std::uint32_t AggregationSessions::new_session(const Key& key, std::uint32_t number) {
  const auto session = static_cast<std::uint32_t>(sessions_.size());
  sessions_.emplace_back().key = key;
  if (key.use == AggregationUse::allreduce) {
    connect_tree(session);
  } else if (key.use == AggregationUse::multicast) {
    connect_multicast(session, number);
  } else {
    connect_reduction(session, number);
  }
  return session;
}

// Queue pairs of aggregation groups have numbers above all channels. A session has 2 numbers, one for each
// direction at the switch; a tree has 1.
constexpr std::uint32_t kBeyondChannels = 1U << 31;

std::uint32_t AggregationSessions::new_pair(std::uint32_t session, std::uint32_t member, std::uint32_t source,
                                            std::uint32_t destination, std::uint32_t number) {
  const Cluster& cluster = state_.cluster;
  const SwitchAggregation& aggregation = group(sessions_[session].key);
  const PortId up = port_into_aggregation(cluster, source, aggregation),
               down = port_into_aggregation(cluster, destination, aggregation) ^ 1U;
  Connections::AggregationPair pair{
      source, destination, sessions_[session].key.job, kBeyondChannels + number, {up, down}};
  pair.combining = cluster.graph.node(cluster.graph.port(up).peer_node).combining;
  pair.combining.efficiency *= aggregation.share;
  const std::uint32_t id = connections_.aggregation_pair(pair);
  places_[id] = {session, member};
  return id;
}

// Returns whether no link of the session's tree is known to be down. A session with messages in flight counts
// as whole, because a lost packet ends the run.
bool AggregationSessions::is_whole(Session& session) const {
  if (session.ports.empty() || session.on_their_way > 0 || session.looked_at == state_.route_changes)
    return true;
  const std::vector<bool>& down = connections_.fabric().down_ports();
  const bool whole = std::none_of(session.ports.begin(), session.ports.end(),
                                  [&](PortId port) { return down[port] || down[port ^ 1U]; });
  if (whole) session.looked_at = state_.route_changes;
  return whole;
}

// Creates an all-reduce tree. First come the members' queue pairs, whose ways down continue the switches'
// branches. Then come the switches, each after its children, and last the ways up.
void AggregationSessions::connect_tree(std::uint32_t number) {
  Session& session = sessions_[number];
  const Cluster& cluster = state_.cluster;
  const Fabric& fabric = connections_.fabric();
  const SwitchAggregation& aggregation = group(session.key);
  const auto [members, ends, tree] = tree_of(cluster, fabric, aggregation);
  if (!tree.refused.empty()) throw InputError("an aggregation tree can no longer be built: " + tree.refused);
  session.gpus.assign(members.begin(), members.end());
  session.copies.assign(members.size(), 0);
  for (const GpuId gpu : members) {
    session.gives.push_back(
        aggregation.members.size() == members.size() || has(aggregation.members, gpu) ? 1 : 0);
    session.takes.push_back(aggregation.others.size() == members.size() || has(aggregation.others, gpu) ? 1
                                                                                                        : 0);
  }

  const SwitchParameters& rules = fabric.switch_parameters(tree.switches.front().node);
  Connections::AggregationPair pair;
  pair.job = session.key.job;
  pair.number = kBeyondChannels + trees_++;
  pair.traffic_class = session.key.traffic_class;
  pair.transport = state_.transport_between(members[0], members[1]);
  const FabricTransport& transport = state_.transports[pair.transport];
  pair.header = transport.framing.header;
  pair.combining = {1, payload_into(tree, fabric, transport)};
  std::vector<std::vector<PortId>> ways;  // way from each member to the root and back
  std::vector<std::size_t> heights;       // number of ports of the way to the root
  Time latest = 0, slowest = 1;
  const Bytes full = pair.combining.piece + pair.header;
  for (std::size_t i = 0; i < members.size(); ++i) {
    std::vector<PortId> way = ends[i].ports;
    const std::vector<PortId> up = tree.way_up(i), down = tree.way_down(i), onward = reversed(ends[i].ports);
    way.insert(way.end(), up.begin(), up.end());
    heights.push_back(way.size());
    way.insert(way.end(), down.begin(), down.end());
    way.insert(way.end(), onward.begin(), onward.end());
    const Time latency = static_cast<Time>(up.size()) * rules.aggregation_latency;
    latest = std::max(latest, fabric.ideal_time(way, {1, full, full, full}) + latency);
    for (const PortId port : way)
      slowest = std::max(slowest, fabric_.serialisation(full + fabric.overhead(port), fabric.rate(port)));
    ways.push_back(std::move(way));
  }
  const auto busy = static_cast<std::uint32_t>(latest / slowest + 2);
  const std::uint32_t window =
      rules.aggregation_outstanding != 0 ? static_cast<std::uint32_t>(rules.aggregation_outstanding) : busy;
  session.header = std::max(pair.header, 1U);
  for (std::uint32_t i = 0; i < members.size(); ++i) {
    pair.window = session.gives[i] != 0 ? window : UINT32_MAX;
    pair.source = pair.destination = members[i];
    pair.idle = ways[i];
    pair.wire = tree.nic_ports[i];
    session.in.push_back(connections_.aggregation_pair(pair));
    places_[session.in.back()] = {number, i};
  }

  const std::vector<std::uint32_t> turns = connect_switches(number, tree, heights, window);
  for (std::uint32_t i = 0; i < members.size(); ++i) {
    std::vector<std::uint32_t> steps(ends[i].ports.begin(), ends[i].ports.end());
    std::uint32_t at = tree.leaf[i];
    for (const PortId port : tree.way_up(i)) {
      steps.push_back(port);
      steps.push_back(step_of_aggregation(turns[at]));
      at = tree.switches[at].parent;
    }
    connections_.set_aggregation_path(session.in[i], std::move(steps), session.in[i]);
  }
  for (const AggregationTree::Switch& one : tree.switches) {
    if (one.up != kNoId) session.ports.push_back(one.up);
  }
  session.ports.insert(session.ports.end(), tree.nic_ports.begin(), tree.nic_ports.end());
  session.looked_at = state_.route_changes;
}

// Creates the aggregation groups of the switches. `heights` holds, by member, the number of ports on its way
// to the root, those in its host included. Returns the aggregation groups that sum, by switch.
std::vector<std::uint32_t> AggregationSessions::connect_switches(std::uint32_t number,
                                                                 const AggregationTree& tree,
                                                                 const std::vector<std::size_t>& heights,
                                                                 std::uint32_t open) {
  // The subtree behind a port that leads down: the path of packets to it, and whether a GPU in it sends or
  // receives sums.
  struct Below {
    std::uint32_t path = 0;
    bool gives = false, takes = false;
  };
  const Session& session = sessions_[number];
  const bool adds = std::count(session.gives.begin(), session.gives.end(), 1) > 1;
  std::unordered_map<PortId, Below> behind;
  for (std::uint32_t i = 0; i < tree.nic_ports.size(); ++i) {
    const std::size_t links = tree.way_up(i).size();
    behind[tree.nic_ports[i] ^ 1U] = {
        connections_.path_of(session.in[i]) + static_cast<std::uint32_t>(heights[i] + links),
        session.gives[i] != 0, session.takes[i] != 0};
  }
  std::vector<std::uint32_t> adding(tree.switches.size());
  for (auto at = static_cast<std::uint32_t>(tree.switches.size()); at-- > 0;) {
    const AggregationTree::Switch& one = tree.switches[at];
    SwitchAggregations::At up, down;
    Below here;
    for (const PortId port : one.down) {
      const Below& below = behind.at(port);
      if (below.gives) up.from.push_back(port ^ 1U);
      down.branches.push_back({port, below.path, below.takes ? 0 : session.header});
      here.gives = here.gives || below.gives;
      here.takes = here.takes || below.takes;
    }
    std::sort(up.from.begin(), up.from.end());
    up.latency = adds ? connections_.fabric().switch_parameters(one.node).aggregation_latency : 0;
    up.open = open;
    if (one.up == kNoId) {
      up.branches = std::move(down.branches);
    } else {
      const std::uint32_t copies = fabric_.aggregations().add(std::move(down));
      here.path = connections_.add_path({step_of_aggregation(copies)});
      behind[one.up ^ 1U] = here;
    }
    adding[at] = fabric_.aggregations().add(std::move(up));
  }
  return adding;
}

void AggregationSessions::connect_multicast(std::uint32_t session, std::uint32_t number) {
  const SwitchAggregation& aggregation = group(sessions_[session].key);
  const Cluster& cluster = state_.cluster;
  std::vector<SwitchAggregations::Branch> branches;
  for (std::uint32_t i = 0; i < aggregation.members.size(); ++i) {
    const GpuId member = aggregation.members[i];
    const std::uint32_t out = new_pair(session, i, aggregation.head, member, 2 * number);
    sessions_[session].out.push_back(out);
    branches.push_back({port_into_aggregation(cluster, member, aggregation) ^ 1U, 0});
    branches.back().path = connections_.path_of(out) + 2;
  }
  const std::uint32_t in = new_pair(session, 0, aggregation.head, aggregation.head, 2 * number + 1);
  const std::uint32_t step = fabric_.aggregations().add({.from = {}, .branches = std::move(branches)});
  connections_.set_aggregation_path(
      in, {port_into_aggregation(cluster, aggregation.head, aggregation), step_of_aggregation(step)}, in);
  sessions_[session].in.push_back(in);
  sessions_[session].copies.assign(aggregation.members.size(), 0);
}

void AggregationSessions::connect_reduction(std::uint32_t session, std::uint32_t number) {
  const SwitchAggregation& aggregation = group(sessions_[session].key);
  const Cluster& cluster = state_.cluster;
  std::vector<PortId> from;
  for (const GpuId member : aggregation.members)
    from.push_back(port_into_aggregation(cluster, member, aggregation));
  std::sort(from.begin(), from.end());
  const std::uint32_t step = fabric_.aggregations().add({.from = std::move(from), .branches = {}});
  for (std::uint32_t i = 0; i < aggregation.members.size(); ++i) {
    const std::uint32_t in = new_pair(session, i, aggregation.members[i], aggregation.head, 2 * number + 1);
    connections_.set_aggregation_path(
        in,
        {port_into_aggregation(cluster, aggregation.members[i], aggregation), step_of_aggregation(step),
         port_into_aggregation(cluster, aggregation.head, aggregation) ^ 1U},
        in);
    sessions_[session].in.push_back(in);
  }
}

// ---- Messages

MessageHandle AggregationSessions::send(const SendRequest& request) {
  const Message& message = request.message;
  const AggregationUse use = message.aggregation_use;
  const std::uint8_t traffic_class =
      use == AggregationUse::allreduce ? message.traits.traffic_class : std::uint8_t{0};
  Session& session = sessions_[session_of(
      {message.aggregation, use, traffic_class, message.traits.job, message.communication, message.tag})];
  const std::span<const GpuId> members = group(session.key).members;
  if (use == AggregationUse::multicast) {
    session.on_their_way += members.size();
    session.open.push_back({message, loop_.now(), static_cast<std::uint32_t>(members.size())});
    return sender_.send(session.in.front(), request);
  }
  const std::span<const GpuId> gpus =
      use == AggregationUse::allreduce ? std::span<const GpuId>(session.gpus) : members;
  ++session.on_their_way;
  if (const std::size_t silent = gpus.size() - members.size(); silent > 0) {
    session.on_their_way += silent;
    session.open.push_back({message, loop_.now(), static_cast<std::uint32_t>(silent)});
  }
  const auto member = std::find(gpus.begin(), gpus.end(), message.source) - gpus.begin();
  return sender_.send(session.in[static_cast<std::size_t>(member)], request);
}

void AggregationSessions::delivered(std::uint32_t id, std::uint32_t packet) {
  if (state_.senders[id].window != UINT32_MAX) {
    if (sender_.sum_arrived(id)) allreduce_sum_delivered(id, packet);
    return;
  }
  if (!fabric_.packets()[packet].ack_request) return;  // its message is not complete
  const Place place = places_.at(id);
  Session& session = sessions_[place.session];
  if (session.key.use == AggregationUse::allreduce) {
    allreduce_copy_delivered(session, place.member, id, packet);
  } else if (session.key.use == AggregationUse::multicast) {
    copy_delivered(session, place.member, id, packet);
  } else {
    sum_delivered(session, place.member, id, packet);
  }
}

void AggregationSessions::allreduce_sum_delivered(std::uint32_t id, std::uint32_t packet) {
  Sender::Ended ended = sender_.end_oldest(id);
  Message& message = ended.request.message;
  message.destination = message.source;
  counts_.bytes_delivered += message.bytes;
  if (!message.credit) {
    ++counts_.flows_done;
    if (state_.observed) {
      const Time ideal = ideal_times_.of_message(id, message.bytes, ended.start);
      set_.write(state_.delivered_reader,
                 FlowDelivered{id, message, message.bytes, ended.number, ended.start, loop_.now(), ideal});
      set_.write(state_.acknowledged_reader, FlowAcknowledged{id, loop_.now()});
    }
  }
  DelayTeller* const told = delays(id, message.bytes, ended.start, packet);
  const Place place = places_.at(id);
  Session& session = sessions_[place.session];
  --session.on_their_way;
  if (session.takes[place.member] != 0) state_.listener->message_delivered({message, message.bytes, told});
  state_.listener->message_sent({ended.request, message.bytes, told});
}

// Delivers a message of the only sender to a GPU that does not send. The sender itself is notified by its own
// copy.
void AggregationSessions::allreduce_copy_delivered(Session& session, std::uint32_t member, std::uint32_t id,
                                                   std::uint32_t packet) {
  Session::Open& open = session.open[static_cast<std::size_t>(session.copies[member]++ - session.first_open)];
  Message copy = open.message;
  copy.destination = session.gpus[member];
  DelayTeller* const told = delays(id, copy.bytes, open.start, packet);
  --session.on_their_way;
  // At 0 the first open message is complete: all GPUs have those sent before it.
  if (--open.left == 0) {
    session.open.pop_front();
    ++session.first_open;
  }
  state_.listener->message_delivered({copy, copy.bytes, told});
}

// Returns the delays by the packet that arrived last; `id` is its queue pair.
DelayTeller* AggregationSessions::delays(std::uint32_t id, Bytes bytes, Time start, std::uint32_t packet) {
  if (!state_.traced) return nullptr;
  return delays_.of(id, bytes, loop_.now() - start, fabric_.packets().trace_of(packet));
}

void AggregationSessions::copy_delivered(Session& session, std::uint32_t member, std::uint32_t id,
                                         std::uint32_t packet) {
  Session::Open& open = session.open[static_cast<std::size_t>(session.copies[member]++ - session.first_open)];
  Message copy = open.message;
  copy.destination = group(session.key).members[member];
  DelayTeller* const told = delays(id, copy.bytes, open.start, packet);
  --session.on_their_way;
  if (--open.left > 0) return state_.listener->message_delivered({copy, copy.bytes, told});
  // The first open message is complete: every member has those sent before it.
  session.open.pop_front();
  ++session.first_open;
  const Sender::Ended ended = sender_.end_oldest(session.in.front());
  state_.listener->message_delivered({copy, copy.bytes, told});
  state_.listener->message_sent({ended.request, ended.bytes});
}

// Delivers a sum. The messages are ended first, because the listener may send more, also on this session.
void AggregationSessions::sum_delivered(Session& session, std::uint32_t member, std::uint32_t id,
                                        std::uint32_t packet) {
  std::vector<Sender::Ended> ended;
  for (const std::uint32_t pair : session.in) ended.push_back(sender_.end_oldest(pair));
  session.on_their_way -= session.in.size();
  const Sender::Ended& last = ended[member];
  state_.listener->message_delivered(
      {last.request.message, last.bytes, delays(id, last.bytes, last.start, packet)});
  for (const Sender::Ended& one : ended) state_.listener->message_sent({one.request, one.bytes});
}

}  // namespace netsim
