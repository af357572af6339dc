#include "sim/transport/connections/aggregation_sessions.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "sim/network/path.h"
#include "sim/topology/aggregation_tree.h"
#include "sim/transport/flow_ends.h"

namespace netsim {

// ---- Sessions

std::size_t AggregationSessions::KeyHash::operator()(const Key& key) const {
  std::uint64_t hash = hash_combine(key.aggregation, key.communication);
  hash = hash_combine(hash, key.tag);
  return static_cast<std::size_t>(hash_combine(hash, static_cast<std::uint64_t>(key.job) << 16 |
                                                         static_cast<std::uint64_t>(key.traffic_class) << 8 |
                                                         static_cast<std::uint64_t>(key.use)));
}

// Returns the session of the messages with this key; kNone if switches lack the memory for one now.
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
    const std::uint32_t made = new_session(key, number);
    if (made == kNone) return kNone;
    same.push_back(made);
    return session_of_[key] = made;
  }
  session_of_.erase(sessions_[*idle].key);
  sessions_[*idle].key = key;
  return session_of_[key] = *idle;
}

// Creates a session. `number` is its number among the sessions of its head. Returns kNone if switches lack
// the memory for its tree.
std::uint32_t AggregationSessions::new_session(const Key& key, std::uint32_t number) {
  const auto session = static_cast<std::uint32_t>(sessions_.size());
  sessions_.emplace_back().key = key;
  if (key.use == AggregationUse::allreduce) {
    if (connect_tree(session)) return session;
    sessions_.pop_back();
    return kNone;
  }
  if (key.use == AggregationUse::multicast) {
    connect_multicast(session, number);
  } else {
    connect_reduction(session, number);
  }
  return session;
}

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

// Returns whether the session can be used. Otherwise a link of its tree is known to be down, or it has given
// back its memory. A session with messages in flight stays, because other members have sent theirs.
bool AggregationSessions::is_whole(Session& session) const {
  if (session.ports.empty() || session.on_their_way > 0) return true;
  if (session.memory.empty()) return false;
  if (session.looked_at == state_.route_changes) return true;
  const std::vector<bool>& down = connections_.fabric().down_ports();
  const bool whole = std::none_of(session.ports.begin(), session.ports.end(),
                                  [&](PortId port) { return down[port] || down[port ^ 1U]; });
  if (whole) session.looked_at = state_.route_changes;
  return whole;
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
  const std::uint32_t step = fabric_.aggregations().add({.members = 0, .branches = std::move(branches)});
  connections_.set_aggregation_path(
      in, {port_into_aggregation(cluster, aggregation.head, aggregation), step_of(step)}, in);
  sessions_[session].in.push_back(in);
  sessions_[session].copies.assign(aggregation.members.size(), 0);
}

void AggregationSessions::connect_reduction(std::uint32_t session, std::uint32_t number) {
  const SwitchAggregation& aggregation = group(sessions_[session].key);
  const Cluster& cluster = state_.cluster;
  SwitchAggregations& switches = fabric_.aggregations();
  const auto members = static_cast<std::uint32_t>(aggregation.members.size());
  const PortId up = port_into_aggregation(state_.cluster, aggregation.head, aggregation);
  SwitchAggregations::At at;
  at.members = members;
  if (members > 1) at.adder = switches.adder_of(state_.cluster.graph.port(up).peer_node, 0);
  const std::uint32_t entry = switches.add(std::move(at));
  for (std::uint32_t i = 0; i < aggregation.members.size(); ++i) {
    const std::uint32_t in = new_pair(session, i, aggregation.members[i], aggregation.head, 2 * number + 1);
    connections_.set_aggregation_path(
        in,
        {port_into_aggregation(cluster, aggregation.members[i], aggregation), step_of(entry + i),
         port_into_aggregation(cluster, aggregation.head, aggregation) ^ 1U},
        in);
    sessions_[session].in.push_back(in);
  }
}

// ---- Reports

std::vector<std::string> AggregationSessions::notes() const {
  std::vector<std::string> notes;
  AggregationCounters sum;
  for (const SwitchAggregations::Adder& adder : fabric_.aggregations().adders()) sum += adder.counters;
  if (sum.discarded + sum.repeated > 0) {
    notes.push_back(fmt::format(
        "switches added up {} sums; {} packets came again to pools of slots: {} of them got a sum that was "
        "complete, and {} waited for other workers (the algorithm's timeout)",
        sum.sums, sum.discarded + sum.repeated, sum.repeated, sum.discarded));
  }
  if (sum.unfinished > 0) {
    notes.push_back(fmt::format(
        "{} of {} sums left switches without the packets of all hosts, as their tables had no place; hosts "
        "added up the parts (switchagg: front, back)",
        sum.unfinished, sum.sums + sum.unfinished));
  }
  if (pool_has_payload_) {
    notes.emplace_back(
        "network.switch.aggregation_payload has no effect on trees with a pool of slots: the size of their "
        "packets is the algorithm's (switchml and switchagg: payload) or transport.mtu (netreduce)");
  }
  if (pool_has_outstanding_) {
    notes.emplace_back(
        "network.switch.aggregation_outstanding has no effect on trees with a pool of slots: a worker has as "
        "many packets in flight as the pool has slots (switchml: slots; others: window)");
  }
  if (waited_ > 0) {
    notes.push_back(fmt::format(
        "{} messages into aggregation trees waited until other trees gave back memory of switches "
        "(network.switch.aggregation_memory, aggregation_groups)",
        waited_));
  }
  for (const auto& [node, use] : memory_.uses()) {
    const SwitchParameters& limits = connections_.fabric().switch_parameters(node);
    if (limits.aggregation_memory == 0 && limits.aggregation_groups == 0) continue;
    notes.push_back(fmt::format(
        "aggregation trees took at most {} B of the memory of {}, {} trees at once (network.switch."
        "aggregation_memory and aggregation_groups limit them)",
        use.most, state_.cluster.graph.node(node).name, use.most_trees));
  }
  return notes;
}

void AggregationSessions::add_to(std::map<NodeId, AggregatingSwitch>& switches) const {
  for (const SwitchAggregations::Adder& adder : fabric_.aggregations().adders())
    switches[adder.node].counters += adder.counters;
  for (const auto& [node, use] : memory_.uses()) {
    AggregatingSwitch& one = switches[node];
    one.memory = use.most;
    one.trees = use.most_trees;
    one.waited = use.waited;
    one.taken = use.bytes;
    one.trees_now = use.trees;
  }
  for (const Session& session : sessions_) {
    if (session.on_their_way == 0) continue;
    for (const AggregationMemory::Share& share : session.memory) switches[share.node].used += share.bytes;
  }
}

// ---- Messages

AggregationSessions::Key AggregationSessions::key_of(const Message& message) {
  const AggregationUse use = message.aggregation_use;
  const std::uint8_t traffic_class =
      use == AggregationUse::allreduce ? message.traits.traffic_class : std::uint8_t{0};
  return {message.aggregation, use, traffic_class, message.traits.job, message.communication, message.tag};
}

MessageHandle AggregationSessions::send(const SendRequest& request) {
  const Key key = key_of(request.message);
  const auto before = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& waiting) {
    return key_of(waiting.request.message) == key;
  });
  const std::uint32_t session = before != waiting_.end() ? kNone : session_of(key);
  if (session != kNone) return send(sessions_[session], request);
  const NodeId node = before != waiting_.end() ? before->node : lacking_;
  ++waited_;
  memory_.count_waiting(node);
  waiting_.push_back({request, node});
  return {};
}

// Sends the messages that waited for memory and have it now, in order of send().
void AggregationSessions::send_waiting() {
  std::deque<Waiting> waiting;
  waiting.swap(waiting_);
  for (const Waiting& one : waiting) {
    const std::uint32_t session = session_of(key_of(one.request.message));
    if (session == kNone) {
      waiting_.push_back({one.request, lacking_});
    } else {
      send(sessions_[session], one.request);
    }
  }
}

MessageHandle AggregationSessions::send(Session& session, const SendRequest& request) {
  const Message& message = request.message;
  const AggregationUse use = message.aggregation_use;
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
    const bool pool = state_.senders[id].selective;
    if (pool) {
      const Place place = places_.at(id);
      Session& session = sessions_[place.session];
      if (!session.parts.empty() && !take_part(session, place.member, packet)) return;
      check_sum(session, packet);
    }
    if (!sender_.sum_arrived(id, fabric_.packets()[packet].psn)) return;
    do {
      allreduce_sum_delivered(id, packet);
    } while (pool && sender_.is_oldest_complete(id));
    if (!waiting_.empty() && sessions_[places_.at(id).session].on_their_way == 0) send_waiting();
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

// Adds a sum that may be unfinished to what the member has of the packet. Returns whether the sum of all
// members is there, and puts it into the packet.
bool AggregationSessions::take_part(Session& session, std::uint32_t member, std::uint32_t packet) {
  Packet& part = fabric_.packets()[packet];
  const std::size_t slots = session.parts.size() / session.gpus.size();
  std::uint32_t& sum = session.parts[member * slots + (part.psn & (slots - 1))];
  sum += part.message;
  if (sum != SlotWindow::value(session.keys, part.psn)) return false;
  part.message = std::exchange(sum, 0);
  return true;
}

// Checks that a sum holds the packets of all members, each exactly once.
void AggregationSessions::check_sum(const Session& session, std::uint32_t packet) const {
  const Packet& sum = fabric_.packets()[packet];
  NETSIM_CHECK(sum.message == SlotWindow::value(session.keys, sum.psn),
               "a sum does not hold the packet of every member exactly once");
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
