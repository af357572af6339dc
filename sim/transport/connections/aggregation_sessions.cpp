#include "sim/transport/connections/aggregation_sessions.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <span>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "sim/network/path.h"
#include "sim/topology/aggregation_tree.h"
#include "sim/transport/flow_ends.h"

namespace netsim {

// ---- Sessions

// Creates a session and makes it serve the key. Returns kNone if switches lack the memory for its tree.
std::uint32_t AggregationSessions::new_session(AggregationDirectory& directory, const Key& key) {
  const SwitchAggregation& aggregation = group(key);
  const bool tree = key.use == AggregationUse::allreduce;
  std::uint32_t session = std::exchange(directory.spare, kNone);
  if (session == kNone) {
    session = directory.table.add(tree ? static_cast<std::uint32_t>(tree_members(aggregation).size())
                                       : std::uint32_t{0});
    directory.sessions.make(session, 1);
  }
  if (tree && !connect_tree(key, session)) {
    directory.spare = session;
    return kNone;
  }
  if (!tree) {
    const std::uint32_t number = sessions_of_head_[aggregation.head]++;
    const std::lock_guard lock(trees_.mutex);  // for the lists of groups at switches
    key.use == AggregationUse::multicast ? connect_multicast(key, session, number)
                                         : connect_reduction(key, session, number);
  }
  // The places of sums that leave unfinished follow from the numbers of packets, which begin at 0 in a
  // session. So each communication has a session of its own.
  directory.table.bind_new(session, key, directory.sessions[session].parts.empty());
  return session;
}

std::uint32_t AggregationSessions::new_pair(const Key& key, std::uint32_t session, std::uint32_t member,
                                            std::uint32_t source, std::uint32_t destination,
                                            std::uint32_t number) {
  const Cluster& cluster = state_.cluster;
  const SwitchAggregation& aggregation = group(key);
  const PortId up = port_into_aggregation(cluster, source, aggregation),
               down = port_into_aggregation(cluster, destination, aggregation) ^ 1U;
  Connections::AggregationPair pair{source, destination, key.job, kBeyondChannels + number, {up, down}};
  pair.combining = cluster.graph.node(cluster.graph.port(up).peer_node).combining;
  pair.combining.efficiency *= aggregation.share;
  const std::uint32_t id = connections_.aggregation_pair(pair);
  state_.records[id].session = session;
  state_.records[id].member = member;
  return id;
}

void AggregationSessions::connect_multicast(const Key& key, std::uint32_t session, std::uint32_t number) {
  const SwitchAggregation& aggregation = group(key);
  const Cluster& cluster = state_.cluster;
  std::vector<SwitchAggregations::Branch> branches;
  for (std::uint32_t i = 0; i < aggregation.members.size(); ++i) {
    const GpuId member = aggregation.members[i];
    const std::uint32_t out = new_pair(key, session, i, aggregation.head, member, 2 * number);
    own_.sessions[session].out.push_back(out);
    branches.push_back({port_into_aggregation(cluster, member, aggregation) ^ 1U, 0});
    branches.back().path = connections_.path_of(out) + 2;
  }
  const std::uint32_t in = new_pair(key, session, 0, aggregation.head, aggregation.head, 2 * number + 1);
  const std::uint32_t step = fabric_.aggregations().add({.members = 0, .branches = std::move(branches)});
  connections_.set_aggregation_path(
      in, {port_into_aggregation(cluster, aggregation.head, aggregation), step_of(step)}, in);
  own_.sessions[session].in.push_back(in);
  own_.sessions[session].copies.assign(aggregation.members.size(), 0);
}

void AggregationSessions::connect_reduction(const Key& key, std::uint32_t session, std::uint32_t number) {
  const SwitchAggregation& aggregation = group(key);
  const Cluster& cluster = state_.cluster;
  SwitchAggregations& switches = fabric_.aggregations();
  const auto members = static_cast<std::uint32_t>(aggregation.members.size());
  const PortId up = port_into_aggregation(state_.cluster, aggregation.head, aggregation);
  SwitchAggregations::At at;
  at.members = members;
  if (members > 1) at.adder = switches.adder_of(state_.cluster.graph.port(up).peer_node);
  const std::uint32_t entry = switches.add(std::move(at));
  for (std::uint32_t i = 0; i < aggregation.members.size(); ++i) {
    const std::uint32_t in =
        new_pair(key, session, i, aggregation.members[i], aggregation.head, 2 * number + 1);
    connections_.set_aggregation_path(
        in,
        {port_into_aggregation(cluster, aggregation.members[i], aggregation), step_of(entry + i),
         port_into_aggregation(cluster, aggregation.head, aggregation) ^ 1U},
        in);
    own_.sessions[session].in.push_back(in);
  }
}

// ---- Reports

std::vector<std::string> AggregationSessions::notes() const {
  std::vector<std::string> notes;
  note_best_effort(notes);
  AggregationCounters sum;
  for (const SwitchAggregations::Adder& adder : fabric_.aggregations().adders()) sum += adder.counters;
  if (sum.discarded + sum.repeated > 0) {
    notes.push_back(fmt::format(
        "switches added up {} sums; {} packets came again to pools of slots: {} of them got a sum that was "
        "complete, and {} waited for other workers (the algorithm's timeout)",
        sum.sums, sum.discarded + sum.repeated, sum.repeated, sum.discarded));
  }
  note_key_stores(notes);
  if (sum.unfinished > 0 && fabric_.aggregations().key_stores().empty()) {
    notes.push_back(fmt::format(
        "{} of {} sums left switches without the packets of all hosts, as their tables had no place; hosts "
        "added up the parts (switchagg: front, back)",
        sum.unfinished, sum.sums + sum.unfinished));
  }
  if (trees_.pool_has_payload) {
    notes.emplace_back(
        "network.switch.aggregation_payload has no effect on trees with a pool of slots: the size of their "
        "packets is the algorithm's (switchml and switchagg: payload) or transport.mtu (netreduce)");
  }
  if (trees_.pool_has_outstanding) {
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
  bool limited = false;
  for (const auto& [node, use] : trees_.memory.uses()) {
    const SwitchParameters& limits = connections_.fabric().switch_parameters(node);
    if (limits.aggregation_memory == 0 && limits.aggregation_groups == 0) continue;
    limited = true;
    notes.push_back(fmt::format(
        "aggregation trees took at most {} B of the memory of {}, {} trees at once (network.switch."
        "aggregation_memory and aggregation_groups limit them)",
        use.most, state_.cluster.graph.node(node).name, use.most_trees));
  }
  if (limited) {
    notes.emplace_back(
        "network.switch.aggregation_memory or aggregation_groups is given, so the run uses one core: a tree "
        "takes memory of all its switches at once (engine.sets has no effect)");
  }
  return notes;
}

void AggregationSessions::add_to(std::map<NodeId, AggregatingSwitch>& switches) const {
  for (const SwitchAggregations::Adder& adder : fabric_.aggregations().adders())
    switches[adder.node].counters += adder.counters;
  for (const auto& [node, use] : trees_.memory.uses()) {
    AggregatingSwitch& one = switches[node];
    one.memory = use.most;
    one.trees = use.most_trees;
    one.waited = use.waited;
    one.taken = use.bytes;
    one.trees_now = use.trees;
  }
  // All logical processes know all trees.
  std::map<NodeId, Bytes> used;
  for (std::uint32_t tree = 0; tree < trees_.table.size(); ++tree) {
    if (trees_.table.is_idle(tree)) continue;
    for (const AggregationMemory::Share& share : trees_.sessions[tree].memory)
      used[share.node] += share.bytes;
  }
  for (const auto& [node, bytes] : used) switches[node].used = bytes;
  const SwitchAggregations& aggregations = fabric_.aggregations();
  for (std::uint32_t table = 0; table < aggregations.nodes_with_tables().size(); ++table) {
    switches[aggregations.nodes_with_tables()[table]].aggregators = aggregations.table(table).most_used();
  }
}

// ---- Messages

// Returns the index of the sender among the members of a tree, whose count of messages decides which session
// takes the message. 0 with other groups.
std::uint32_t AggregationSessions::member_of(const Message& message) const {
  if (message.aggregation_use != AggregationUse::allreduce) return 0;
  const std::span<const GpuId> gpus = tree_members(*state_.aggregations[message.aggregation]);
  return static_cast<std::uint32_t>(std::find(gpus.begin(), gpus.end(), message.source) - gpus.begin());
}

// Returns the session of a message, which counts as in flight from now on. kNone if switches lack the memory
// for its tree now.
std::uint32_t AggregationSessions::begin(AggregationDirectory& directory, const Key& key,
                                         const Message& message) {
  const std::uint32_t member = member_of(message);
  std::uint32_t session = directory.table.find(key, member);
  if (session == kNone) session = new_session(directory, key);
  if (session == kNone) return kNone;
  const std::size_t members = group(key).members.size();
  std::uint64_t ways = 1;
  if (key.use == AggregationUse::multicast) {
    ways = members;
  } else if (key.use == AggregationUse::allreduce) {
    ways += directory.sessions[session].gpus.size() - members;
  }
  directory.table.begin(session, member, ways);
  if (key.use == AggregationUse::allreduce && directory.ledger != nullptr)
    set_.write(directory.ledger->began_reader(), AggregationLedger::Began{key, session, member});
  return session;
}

MessageHandle AggregationSessions::send(const SendRequest& request) {
  const Key key = Key::of(request.message);
  const auto before = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& waiting) {
    return Key::of(waiting.request.message) == key;
  });
  std::uint32_t session = kNone;
  if (before == waiting_.end()) {
    AggregationDirectory& directory = directory_of(key.use);
    std::unique_lock lock(trees_.mutex, std::defer_lock);
    if (&directory == &trees_) lock.lock();
    session = begin(directory, key, request.message);
  }
  if (session != kNone) return send_on(session, request);
  const NodeId node = before != waiting_.end() ? before->node : lacking_;
  ++waited_;
  trees_.memory.count_waiting(node);
  waiting_.push_back({request, node});
  return {};
}

// Sends the messages that waited for memory and have it now, in order of send().
void AggregationSessions::send_waiting() {
  std::deque<Waiting> waiting;
  waiting.swap(waiting_);
  for (const Waiting& one : waiting) {
    const Message& message = one.request.message;
    const std::uint32_t session = begin(trees_, Key::of(message), message);
    if (session == kNone) {
      waiting_.push_back({one.request, lacking_});
    } else {
      send_on(session, one.request);
    }
  }
}

MessageHandle AggregationSessions::send_on(std::uint32_t number, const SendRequest& request) {
  const Message& message = request.message;
  const AggregationUse use = message.aggregation_use;
  Session& session = directory_of(use).sessions[number];
  const std::span<const GpuId> members = state_.aggregations[message.aggregation]->members;
  std::uint32_t pair = session.in.front();
  std::size_t copies = 0;
  if (use == AggregationUse::multicast) {
    copies = members.size();
  } else {
    const std::span<const GpuId> gpus =
        use == AggregationUse::allreduce ? std::span<const GpuId>(session.gpus) : members;
    pair =
        session
            .in[static_cast<std::size_t>(std::find(gpus.begin(), gpus.end(), message.source) - gpus.begin())];
    copies = gpus.size() - members.size();
  }
  if (copies > 0) {
    const std::lock_guard lock(session.lock);
    session.open.push_back({message, loop_.now(), static_cast<std::uint32_t>(copies)});
  }
  if (state_.senders[pair].injector == kNone) begin_to_send(pair);
  return sender_.send(pair, request);
}

// Completes a queue pair in its own logical process, which may not be that of the session's creator.
void AggregationSessions::begin_to_send(std::uint32_t id) {
  connections_.begin_aggregation_pair(id);
  const SenderState& s = state_.senders[id];
  if (!s.selective) return;
  const QueuePairRecord& record = state_.records[id];
  const AggregationPool pool = pool_over(state_.of(s), group(trees_.table.key(record.session)).pool);
  if (pool.best_effort.window != 0) return use_best_effort(id, pool);
  sender_.use_pool(id, pool, key_of_member(record.member));
}

void AggregationSessions::delivered(std::uint32_t id, std::uint32_t packet) {
  if (state_.records[id].tree) sender_.fold_digest(id);
  if (state_.senders[id].window != UINT32_MAX) {
    const bool pool = state_.senders[id].selective;
    if (pool) {
      const Session& session = trees_.sessions[state_.records[id].session];
      if (session.indices != nullptr) return best_effort_delivered(id, packet);
      if (!session.parts.empty() && !take_part(id, packet)) return;
      check_sum(id, packet);
    }
    const Packet& sum = fabric_.packets()[packet];
    const std::uint32_t psn = sum.psn;
    const std::uint32_t packets = pool ? 1 : in_order(id, psn, sum.ack_request).packets;
    if (packets == 0 || !sender_.sum_arrived(id, psn, packets, false)) return;
    do {
      allreduce_sum_delivered(id, packet);
    } while (sender_.is_oldest_complete(id));
    if (!waiting_.empty() && trees_.table.is_idle(state_.records[id].session)) send_waiting();
    return;
  }
  if (state_.records[id].tree) {
    const Packet& copy = fabric_.packets()[packet];
    for (std::uint32_t left = in_order(id, copy.psn, copy.ack_request).messages; left > 0; --left)
      allreduce_copy_delivered(id, packet);
    return;
  }
  if (!fabric_.packets()[packet].ack_request) return;  // its message is not complete
  if (own_.table.key(state_.records[id].session).use == AggregationUse::multicast) {
    copy_delivered(id, packet);
  } else {
    sum_delivered(id, packet);
  }
}

// Adds a sum that may be unfinished to what the member has of the packet. Returns whether the sum of all
// members is there, and puts it into the packet.
bool AggregationSessions::take_part(std::uint32_t id, std::uint32_t packet) {
  const std::uint32_t member = state_.records[id].member;
  Session& session = trees_.sessions[state_.records[id].session];
  Packet& part = fabric_.packets()[packet];
  const std::size_t slots = session.parts.size() / session.gpus.size();
  std::uint32_t& sum = session.parts[member * slots + (part.psn & (slots - 1))];
  sum += part.message;
  if (sum != PoolWindow::value(session.keys, part.psn)) return false;
  part.message = std::exchange(sum, 0);
  return true;
}

// Takes a packet from a tree without a pool. Returns the packets and messages that are complete in order with
// it. There are none if a packet before it was lost on a link and will come again.
AggregationSessions::InOrder AggregationSessions::in_order(std::uint32_t id, std::uint32_t psn, bool last) {
  ReceiverState& r = state_.receivers[id];
  SelectiveReceiver& kept = state_.selective_receivers[id];
  if (psn != r.expected) {
    kept.keep(r.expected, psn, last, false);
    return {};
  }
  const SelectiveReceiver::Advance advance = kept.advance(r.expected, last, false);
  const std::uint32_t packets = advance.expected - r.expected;
  r.expected = advance.expected;
  return {packets, advance.messages};
}

// Checks that a sum holds the packets of all members, each exactly once.
void AggregationSessions::check_sum(std::uint32_t id, std::uint32_t packet) const {
  const Session& session = trees_.sessions[state_.records[id].session];
  const Packet& sum = fabric_.packets()[packet];
  NETSIM_CHECK(sum.message == PoolWindow::value(session.keys, sum.psn),
               "a sum does not hold the packet of every member exactly once");
}

// Notes that a message has ended at its sender, or a copy at a member that sends nothing. It is called before
// the listener, which may send on the session that is idle now.
void AggregationSessions::tell_ended(const Key& key, std::uint32_t id, bool sends) {
  const QueuePairRecord& record = state_.records[id];
  if (trees_.ledger != nullptr)
    set_.write(trees_.ledger->ended_reader(), AggregationLedger::Ended{key, record.member, sends});
  trees_.table.end(record.session, 1);
}

void AggregationSessions::allreduce_sum_delivered(std::uint32_t id, std::uint32_t packet) {
  Sender::Ended ended = sender_.end_oldest(id);
  Message& message = ended.request.message;
  message.destination = message.source;
  counts_.bytes_delivered += message.bytes;
  tell_ended(Key::of(message), id, true);
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
  const QueuePairRecord& record = state_.records[id];
  if (trees_.sessions[record.session].takes[record.member] != 0)
    state_.listener->message_delivered({message, message.bytes, told});
  state_.listener->message_sent({ended.request, message.bytes, told});
}

// Delivers a message of the only sender to a GPU that does not send. The sender itself is notified by its own
// copy.
void AggregationSessions::allreduce_copy_delivered(std::uint32_t id, std::uint32_t packet) {
  const QueuePairRecord& record = state_.records[id];
  Session& session = trees_.sessions[record.session];
  const Session::Open open = take_copy(session, record.member);
  Message copy = open.message;
  copy.destination = session.gpus[record.member];
  DelayTeller* const told = delays(id, copy.bytes, open.start, packet);
  tell_ended(Key::of(open.message), id, false);
  state_.listener->message_delivered({copy, copy.bytes, told});
}

// Returns the next message of those that are copied to a member, with the number of members that have not
// received it yet.
AggregationSession::Open AggregationSessions::take_copy(Session& session, std::uint32_t member) {
  const std::lock_guard lock(session.lock);
  Session::Open& open = session.open[static_cast<std::size_t>(session.copies[member]++ - session.first_open)];
  --open.left;
  const Session::Open taken = open;
  // At 0 the first open message is complete: all GPUs have those sent before it.
  if (taken.left == 0) {
    session.open.pop_front();
    ++session.first_open;
  }
  return taken;
}

// Returns the delays by the packet that arrived last; `id` is its queue pair.
DelayTeller* AggregationSessions::delays(std::uint32_t id, Bytes bytes, Time start, std::uint32_t packet) {
  if (!state_.traced) return nullptr;
  return delays_.of(id, bytes, loop_.now() - start, fabric_.packets().trace_of(packet));
}

void AggregationSessions::copy_delivered(std::uint32_t id, std::uint32_t packet) {
  const QueuePairRecord& record = state_.records[id];
  Session& session = own_.sessions[record.session];
  const Session::Open open = take_copy(session, record.member);
  Message copy = open.message;
  copy.destination = group(own_.table.key(record.session)).members[record.member];
  DelayTeller* const told = delays(id, copy.bytes, open.start, packet);
  own_.table.end(record.session, 1);
  if (open.left > 0) return state_.listener->message_delivered({copy, copy.bytes, told});
  const Sender::Ended ended = sender_.end_oldest(session.in.front());
  state_.listener->message_delivered({copy, copy.bytes, told});
  state_.listener->message_sent({ended.request, ended.bytes});
}

// Delivers a sum. The messages are ended first, because the listener may send more, also on this session.
void AggregationSessions::sum_delivered(std::uint32_t id, std::uint32_t packet) {
  const QueuePairRecord& record = state_.records[id];
  const Session& session = own_.sessions[record.session];
  std::vector<Sender::Ended> ended;
  ended.reserve(session.in.size());
  for (const std::uint32_t pair : session.in) ended.push_back(sender_.end_oldest(pair));
  own_.table.end(record.session, session.in.size());
  const Sender::Ended& last = ended[record.member];
  state_.listener->message_delivered(
      {last.request.message, last.bytes, delays(id, last.bytes, last.start, packet)});
  for (const Sender::Ended& one : ended) state_.listener->message_sent({one.request, one.bytes});
}

}  // namespace netsim
