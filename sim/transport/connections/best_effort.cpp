// The part of AggregationSessions for best-effort groups (aggregator_table.h). Workers send to the parameter
// server through switches that add up what they can. The server completes the sums, and the same switches
// multicast its results to the workers.
//
// The server is a member. It adds its own data itself, and its message ends when all workers have the result.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "sim/network/path.h"
#include "sim/transport/connections/aggregation_sessions.h"
#include "sim/transport/psn_window.h"

namespace netsim {

// Returns the ports from the root of the tree to the server, and back to the root.
std::vector<PortId> AggregationSessions::way_by_server(const MemberTree& made, std::uint32_t server) {
  const std::vector<PortId> back = [&] {
    std::vector<PortId> ports = made.ends[server].ports;
    ports.push_back(made.tree.nic_ports[server]);
    return ports;
  }();
  std::vector<PortId> way = reversed(back);
  way.insert(way.end(), back.begin(), back.end());
  return way;
}

// Chooses the aggregators of a new session, which must have its members.
void AggregationSessions::begin_best_effort(JobId job, std::uint32_t number, const MemberTree& made,
                                            const BestEffort& rules) {
  Session& session = trees_.sessions[number];
  session.server = rules.server;
  session.gives[session.server] = 0;
  best_effort_.jobs.insert(job);
  std::int64_t count = AggregatorTable::kMostAggregators;
  for (const AggregationTree::Switch& one : made.tree.switches) {
    if (one.reduces) count = std::min(count, *connections_.fabric().switch_parameters(one.node).aggregators);
  }
  std::uint32_t first = 0;
  if (rules.aggregators != 0) {
    first = own_aggregators(job, made, rules.aggregators);
    count = rules.aggregators;
  }
  session.indices = std::make_unique<AggregatorIndices>(hash_combine(job, number), rules.window, first,
                                                        static_cast<std::uint32_t>(count));
}

// Returns the first of the aggregators that only the job uses.
std::uint32_t AggregationSessions::own_aggregators(JobId job, const MemberTree& made, std::uint32_t count) {
  const auto [own, is_new] = best_effort_.own.try_emplace(job, best_effort_.next_own);
  if (!is_new) return own->second;
  best_effort_.next_own += count;
  for (const AggregationTree::Switch& one : made.tree.switches) {
    if (!one.reduces) continue;
    const std::int64_t size = *connections_.fabric().switch_parameters(one.node).aggregators;
    if (best_effort_.next_own <= size) continue;
    throw InputError(fmt::format(
        "{} jobs with aggregators of their own need {} of {}, which has {} "
        "(network.switch.aggregators, atp: aggregators)",
        best_effort_.own.size(), best_effort_.next_own, state_.cluster.graph.node(one.node).name, size));
  }
  return own->second;
}

// Returns the bit of a worker; 0 for the server, and for the members of other groups.
std::uint64_t AggregationSessions::worker_bit(const Session& session, std::uint32_t member) {
  if (session.indices == nullptr || member == session.server) return 0;
  return std::uint64_t{1} << (member < session.server ? member : member - 1);
}

// Data of a worker goes on from the root to the server. The server's results begin at the root.
void AggregationSessions::set_best_effort_path(const Session& session, const MemberTree& made,
                                               std::uint32_t member, const TreeEntries& entries) {
  const std::uint32_t server = session.in[session.server];
  std::vector<std::uint32_t> steps = steps_up(made, member, entries);
  if (member == session.server) {
    steps.back() = step_of(entries.copies);
  } else {
    const std::vector<PortId> by_server = way_by_server(made, session.server);
    steps.insert(steps.end(), by_server.begin(),
                 by_server.begin() + static_cast<std::ptrdiff_t>(by_server.size() / 2));
  }
  connections_.set_aggregation_path(session.in[member], std::move(steps), server);
}

// Makes the window of a member, which packets may reach before it sends.
void AggregationSessions::use_best_effort(std::uint32_t id, const AggregationPool& pool) {
  const QueuePairRecord& record = state_.records[id];
  const Session& session = trees_.sessions[record.session];
  const std::uint32_t key = key_of_member(record.member);
  if (record.member != session.server)
    return sender_.use_pool(id, pool, key, worker_bit(session, record.member));
  std::uint64_t workers = 0;
  for (std::uint32_t member = 0; member < session.gpus.size(); ++member)
    workers |= worker_bit(session, member);
  sender_.serve_pool(id, pool, key, workers);
}

// Handles a packet of a best-effort group: at the server data of workers, at a worker a result.
void AggregationSessions::best_effort_delivered(std::uint32_t id, std::uint32_t packet) {
  const QueuePairRecord& record = state_.records[id];
  Session& session = trees_.sessions[record.session];
  if (record.member == session.server) return contribution_delivered(session, packet);
  check_sum(id, packet);
  const Packet& result = fabric_.packets()[packet];
  const std::uint32_t before = state_.senders[id].acknowledged;
  bool complete = sender_.sum_arrived(id, result.psn, 1, result.marked);
  for (; complete; complete = sender_.is_oldest_complete(id)) allreduce_sum_delivered(id, packet);
  if (before == state_.senders[session.in[session.server]].acknowledged) server_delivered(session, packet);
  if (!waiting_.empty() && trees_.table.is_idle(record.session)) send_waiting();
}

void AggregationSessions::contribution_delivered(Session& session, std::uint32_t packet) {
  const Packet& k = fabric_.packets()[packet];
  const std::uint32_t id = session.in[session.server], psn = k.psn;
  if (state_.senders[id].injector == kNone) begin_to_send(id);
  const Contribution data{fabric_.packets().workers(packet), k.message, k.marked, k.collided};
  const ServerWindow::Arrival arrival = sender_.add_contribution(id, psn, data);
  if (arrival == ServerWindow::Arrival::dropped || arrival == ServerWindow::Arrival::repeats) {
    ++best_effort_.dropped;
    return;
  }
  ++best_effort_.added;
  if (arrival != ServerWindow::Arrival::completes) return;
  ++best_effort_.sums;
  best_effort_.sent += session.gpus.size() - 1;
  session.indices->choose_next(psn, sender_.server_sum(id, psn).collided);
}

// Ends the server's messages whose results all workers have. Called when the last worker may have got one.
void AggregationSessions::server_delivered(Session& session, std::uint32_t packet) {
  const std::uint32_t server = session.in[session.server];
  std::uint32_t first = state_.senders[server].sent_end;
  for (std::uint32_t member = 0; member < session.in.size(); ++member) {
    const std::uint32_t has = state_.senders[session.in[member]].acknowledged;
    if (member != session.server && earlier(has, first)) first = has;
  }
  sender_.acknowledge_results(server, first);
  while (sender_.is_oldest_complete(server)) allreduce_sum_delivered(server, packet);
}

void AggregationSessions::note_best_effort(std::vector<std::string>& notes) const {
  const Fabric& fabric = connections_.fabric();
  bool given = false;
  for (NodeId node = 0; node < state_.cluster.graph.node_count(); ++node)
    given = given || (fabric.adds_up(node) && fabric.switch_parameters(node).aggregators);
  if (!given) return;
  const bool used = best_effort_.sums > 0;
  if (used) notes.push_back(best_effort_share());
  notes.push_back(fmt::format(
      "network.switch.aggregators is given, so the run uses one core: all jobs share the aggregators of a "
      "switch (engine.sets has no effect){}",
      used ? "" : "; nothing used them (algorithm atp)"));
}

std::string AggregationSessions::best_effort_share() const {
  const std::uint64_t most = best_effort_.sent - best_effort_.sums;
  const double share = most == 0 ? 100
                                 : 100 * static_cast<double>(best_effort_.sent - best_effort_.added) /
                                       static_cast<double>(most);
  std::uint32_t size = 0;
  AggregationCounters sum;
  const SwitchAggregations& aggregations = fabric_.aggregations();
  for (const SwitchAggregations::Adder& adder : aggregations.adders()) sum += adder.counters;
  for (std::uint32_t i = 0; i < aggregations.nodes_with_tables().size(); ++i)
    size = std::max(size, aggregations.table(i).size());
  return fmt::format(
      "ATP aggregated {:.1f} %: {} aggregators of a switch for {} job{}; {} packets found no free one, {} "
      "were sent again, and the parameter server dropped {} that it had (network.switch.aggregators)",
      share, size, best_effort_.jobs.size(), best_effort_.jobs.size() == 1 ? "" : "s", sum.collided,
      sum.flushed, best_effort_.dropped);
}

}  // namespace netsim
