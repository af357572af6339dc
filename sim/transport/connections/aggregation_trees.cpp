// The part of AggregationSessions that creates all-reduce trees: queue pairs, paths, the switches' groups and
// their memory.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "sim/network/path.h"
#include "sim/topology/aggregation_tree.h"
#include "sim/transport/connections/aggregation_sessions.h"

namespace netsim {

namespace {

bool has(std::span<const GpuId> gpus, GpuId gpu) {
  return std::find(gpus.begin(), gpus.end(), gpu) != gpus.end();
}

// Returns the packets of a member that may be in flight. `busy` packets keep its way busy.
std::uint32_t window_of(const AggregationPool& pool, const SwitchParameters& rules, std::uint32_t busy) {
  if (pool.slots != 0) return pool.slots;
  return rules.aggregation_outstanding != 0 ? static_cast<std::uint32_t>(rules.aggregation_outstanding)
                                            : busy;
}

}  // namespace

// Returns the key of a member of a pool of slots (SlotWindow).
std::uint32_t AggregationSessions::key_of_member(std::uint32_t member) {
  return static_cast<std::uint32_t>(hash_combine(member, 0x706f6f6c)) | 1U;
}

// Notes the members of a session: which of them give data, and which take the sum.
void AggregationSessions::set_members(Session& session, const SwitchAggregation& aggregation,
                                      std::span<const GpuId> members) {
  session.gives.clear();
  session.takes.clear();
  session.gpus.assign(members.begin(), members.end());
  session.copies.assign(members.size(), 0);
  session.gives.reserve(members.size());
  session.takes.reserve(members.size());
  for (const GpuId gpu : members) {
    session.gives.push_back(
        aggregation.members.size() == members.size() || has(aggregation.members, gpu) ? 1 : 0);
    session.takes.push_back(aggregation.others.size() == members.size() || has(aggregation.others, gpu) ? 1
                                                                                                        : 0);
  }
}

// Returns the ways of all members of a tree whose packets have at most `full` bytes.
AggregationSessions::TreeWays AggregationSessions::ways_of(const MemberTree& made,
                                                           const AggregationPool& pool, Bytes full) const {
  const Fabric& fabric = connections_.fabric();
  const auto& [members, ends, tree] = made;
  const SwitchParameters& rules = fabric.switch_parameters(tree.switches.front().node);
  const bool best_effort = pool.best_effort.window != 0;
  const std::vector<PortId> by_server =
      best_effort ? way_by_server(made, pool.best_effort.server) : std::vector<PortId>();
  TreeWays ways;
  ways.ports.reserve(members.size());
  ways.heights.reserve(members.size());
  Time latest = 0, slowest = 1;
  for (std::uint32_t i = 0; i < members.size(); ++i) {
    std::vector<PortId> way = ends[i].ports;
    const std::vector<PortId> up = tree.way_up(i), down = tree.way_down(i), onward = reversed(ends[i].ports);
    way.insert(way.end(), up.begin(), up.end());
    if (i != pool.best_effort.server) way.insert(way.end(), by_server.begin(), by_server.end());
    ways.heights.push_back(way.size());
    way.insert(way.end(), down.begin(), down.end());
    way.insert(way.end(), onward.begin(), onward.end());
    const Time latency = static_cast<Time>(up.size()) * rules.aggregation_latency;
    latest = std::max(latest, fabric.ideal_time(way, {1, full, full, full}) + latency);
    for (const PortId port : way) {
      const BitRate rate = state_.cluster.graph.port(port).link.rate;
      slowest = std::max(slowest, fabric_.serialisation(full + fabric.overhead(port), rate));
    }
    ways.ports.push_back(std::move(way));
  }
  ways.busy = static_cast<std::uint32_t>(latest / slowest + 2);
  return ways;
}

// Creates an all-reduce tree. Returns false if switches lack the memory for now. First come the members'
// queue pairs, whose ways down continue the switches' branches. Then come the switches, each after its
// children, and last the ways up.
bool AggregationSessions::connect_tree(const Key& key, std::uint32_t number) {
  Session& session = trees_.sessions[number];
  const Cluster& cluster = state_.cluster;
  const Fabric& fabric = connections_.fabric();
  const SwitchAggregation& aggregation = group(key);
  std::unique_ptr<const MemberTree>& laid = trees_.laid[key.aggregation];
  if (laid == nullptr) laid = std::make_unique<const MemberTree>(tree_of(cluster, fabric, aggregation));
  const MemberTree& made = *laid;
  const AggregationTree& tree = made.tree;
  const std::span<const GpuId> members = made.members;
  if (!tree.refused.empty()) throw InputError("an aggregation tree can no longer be built: " + tree.refused);
  set_members(session, aggregation, members);

  const SwitchParameters& rules = fabric.switch_parameters(tree.switches.front().node);
  Connections::AggregationPair pair;
  pair.job = key.job;
  pair.number = kBeyondChannels + aggregation.number;
  pair.traffic_class = key.traffic_class;
  pair.transport = state_.transport_between(members[0], members[1]);
  const FabricTransport& transport = state_.transports[pair.transport];
  const AggregationPool pool = pool_over(transport, aggregation.pool);
  pair.header = pool.slots != 0 ? static_cast<std::uint32_t>(pool.header) : transport.framing.header;
  pair.combining = {1, payload_into(tree, fabric, transport, pool)};
  const TreeWays ways = ways_of(made, pool, pair.combining.piece + pair.header);
  const bool best_effort = pool.best_effort.window != 0;
  const std::uint32_t window = window_of(pool, rules, ways.busy);
  TreeRules of_tree{window, pool.slots, pair.combining.piece, pool.protocol,
                    pool.slots != 0 ? pool.kept() : window};
  if (best_effort) {
    begin_best_effort(key.job, number, made, pool.best_effort);
    of_tree = {};
    of_tree.indices = session.indices.get();
  }
  of_tree.format = aggregation.format;
  of_tree.job = key.job;
  if (!take_memory(session, tree, of_tree)) return false;
  trees_.pool_has_payload = trees_.pool_has_payload || (pool.slots != 0 && rules.aggregation_payload != 0);
  trees_.pool_has_outstanding =
      trees_.pool_has_outstanding || (pool.slots != 0 && rules.aggregation_outstanding != 0);
  const std::uint32_t tree_number = trees_.trees++;
  session.header = std::max(pair.header, 1U);
  for (std::uint32_t i = 0; i < members.size(); ++i) {
    pair.window = session.gives[i] != 0 || best_effort ? window : UINT32_MAX;
    pair.source = pair.destination = members[i];
    pair.idle = ways.ports[i];
    pair.wire = tree.nic_ports[i];
    session.in.push_back(connections_.aggregation_pair(pair));
    QueuePairRecord& record = state_.records[session.in.back()];
    record.session = number;
    record.member = i;
    record.tree = true;
    record.tree_number = tree_number;
    if (pool.slots == 0) continue;
    NETSIM_CHECK(best_effort || (session.gives[i] != 0 && session.takes[i] != 0),
                 "a pool whose members are not all alike");
    state_.senders[session.in.back()].selective = true;
    session.keys += key_of_member(i);
  }

  if (pool.leaves_unfinished()) session.parts.assign(members.size() * pool.slots, 0);
  const TreeEntries entries = connect_switches(number, made, ways.heights, of_tree);
  for (std::uint32_t i = 0; i < members.size(); ++i) {
    if (best_effort) {
      set_best_effort_path(session, made, i, entries);
    } else {
      connections_.set_aggregation_path(session.in[i], steps_up(made, i, entries), session.in[i]);
    }
  }
  session.ports = made.links();
  return true;
}

// Takes memory of the tree's switches. Sessions with nothing in flight give theirs back where it does not
// suffice. Returns false if it does not suffice then either.
bool AggregationSessions::take_memory(Session& session, const AggregationTree& tree, const TreeRules& rules) {
  const bool shares_tables = dynamic_cast<const SharesKeyTables*>(rules.protocol.get()) != nullptr;
  const Bytes own = Bytes{rules.kept} * rules.payload;
  std::vector<AggregationMemory::Share> shares;
  shares.reserve(tree.switches.size());
  for (const AggregationTree::Switch& one : tree.switches) {
    const bool shared =
        shares_tables && connections_.fabric().switch_parameters(one.node).aggregation_pairs.has_value();
    if (one.reduces) shares.push_back({one.node, shared ? 0 : own});
  }
  for (const AggregationMemory::Share& share : shares) {
    const SwitchParameters& limits = connections_.fabric().switch_parameters(share.node);
    if (limits.aggregation_memory != 0 && share.bytes > limits.aggregation_memory) {
      throw InputError(fmt::format(
          "{} has no memory for the aggregation tree of a collective: its sums take {} B, allowed "
          "are {} B (network.switch.aggregation_memory)",
          state_.cluster.graph.node(share.node).name, share.bytes, limits.aggregation_memory));
    }
    while (!trees_.memory.fits(share, limits)) {
      if (free_memory(share.node)) continue;
      lacking_ = share.node;
      return false;
    }
  }
  if (trees_.ledger == nullptr) {
    for (const AggregationMemory::Share& share : shares) trees_.memory.take(share);
  }
  session.memory = std::move(shares);
  return true;
}

// Takes the memory of the oldest session with nothing in flight at this switch, at all its switches. Returns
// whether there was one.
bool AggregationSessions::free_memory(NodeId node) {
  for (std::uint32_t session = 0; session < trees_.table.size(); ++session) {
    Session& idle = trees_.sessions[session];
    if (idle.gave_back || !trees_.table.is_idle(session)) continue;
    if (std::none_of(idle.memory.begin(), idle.memory.end(),
                     [&](const AggregationMemory::Share& share) { return share.node == node; }))
      continue;
    for (const AggregationMemory::Share& share : idle.memory) trees_.memory.give_back(share);
    idle.gave_back = true;
    trees_.table.retire(session);
    return true;
  }
  return false;
}

// Creates the aggregation groups of the switches, each after its children. `heights` holds, by member, the
// number of ports on its way to the root, those in its host included.
AggregationSessions::TreeEntries AggregationSessions::connect_switches(
    std::uint32_t number, const MemberTree& made, const std::vector<std::size_t>& heights,
    const TreeRules& rules) {
  const Session& session = trees_.sessions[number];
  const AggregationTree& tree = made.tree;
  TreeEntries entries{std::vector<std::uint32_t>(made.members.size(), 0),
                      std::vector<std::uint32_t>(tree.switches.size(), 0)};
  std::unordered_map<PortId, std::vector<Below>> behind;  // by the port that leads down; never iterated
  for (std::uint32_t i = 0; i < tree.nic_ports.size(); ++i) {
    const std::size_t links = tree.way_up(i).size();
    Below below{.port = tree.nic_ports[i] ^ 1U, .steps = {}};
    below.path = connections_.path_of(session.in[i]) + static_cast<std::uint32_t>(heights[i] + links);
    below.gives = session.gives[i] != 0;
    below.takes = session.takes[i] != 0;
    below.entry = &entries.gpus[i];
    below.keys = rules.slots != 0 ? key_of_member(i) : 0;
    below.workers = worker_bit(session, i);
    if (!tree.switches[tree.leaf[i]].reduces) {
      const std::vector<PortId> onward = reversed(made.ends[i].ports);
      below.steps.assign(onward.begin(), onward.end());
      below.steps.push_back(make_step(StepKind::deliver, session.in[i]));
    }
    behind[tree.nic_ports[i] ^ 1U].push_back(std::move(below));
  }
  for (auto at = static_cast<std::uint32_t>(tree.switches.size()); at-- > 0;) {
    const AggregationTree::Switch& one = tree.switches[at];
    std::vector<Below> children;
    for (const PortId port : one.down) {
      for (Below& below : behind.at(port)) children.push_back(std::move(below));
    }
    const PortId above = one.up ^ 1U;
    if (!one.reduces) {  // its children become those of its parent
      for (Below& child : children) {
        child.steps.insert(child.steps.begin(), make_hop_step({child.port, 0}));
        child.port = above;
      }
      behind[above] = std::move(children);
      continue;
    }
    Below here = connect_switch(number, one, std::move(children), rules);
    if (one.up == kNoId) {
      entries.copies = here.copies;
      continue;
    }
    here.port = above;
    here.entry = &entries.switches[at];
    if (!tree.switches[one.parent].reduces) here.steps = {step_of(here.copies)};
    behind[above] = {std::move(here)};
  }
  return entries;
}

// Creates the aggregation groups of one switch, which sum and copy. Sets the entries of its children. Returns
// the switch as a member, without its port and entry.
AggregationSessions::Below AggregationSessions::connect_switch(std::uint32_t number,
                                                               const AggregationTree::Switch& one,
                                                               std::vector<Below> children,
                                                               const TreeRules& rules) {
  const Session& session = trees_.sessions[number];
  const SwitchParameters& of_switch = connections_.fabric().switch_parameters(one.node);
  const bool adds = std::count(session.gives.begin(), session.gives.end(), 1) > 1;
  SwitchAggregations::At up, down;
  Below here;
  for (const Below& child : children) {
    if (rules.indices != nullptr && !child.gives) continue;  // the parameter server
    up.members += child.gives ? 1 : 0;
    here.workers |= child.workers;
    const std::uint32_t path = child.steps.empty() ? child.path : connections_.add_path(child.steps);
    down.branches.push_back({child.port, path, child.takes ? 0 : session.header});
    here.gives = here.gives || child.gives;
    here.takes = here.takes || child.takes;
    here.keys += child.keys;
  }
  up.latency = adds ? of_switch.aggregation_latency : 0;
  up.open = rules.open;
  up.slots = rules.slots;
  up.protocol = rules.protocol;
  up.keys = here.keys;
  up.job = rules.job;
  up.store = shared_tables(one.node, rules);
  if (adds || rules.indices != nullptr) {
    up.adder = fabric_.aggregations().adder_of(one.node);
    up.rate = rate_of_format(of_switch.aggregation_rates, rules.format, of_switch.aggregation_rate);
  }
  if (rules.indices != nullptr) {
    up.latency = of_switch.aggregation_latency;
    up.table = down.table =
        fabric_.aggregations().table_of(one.node, static_cast<std::uint32_t>(*of_switch.aggregators));
    up.session = down.session = number;
    up.indices = down.indices = rules.indices;
    up.workers = here.workers;
  }
  if (one.up == kNoId && rules.indices == nullptr) {
    up.branches = std::move(down.branches);
  } else {
    here.copies = fabric_.aggregations().add(std::move(down));
    here.path = connections_.add_path({step_of(here.copies)});
  }
  std::uint32_t entry = fabric_.aggregations().add(std::move(up));
  for (const Below& child : children) {
    if (child.gives) *child.entry = entry++;
  }
  return here;
}

// Returns the steps of a member's packets from its first port to the root.
std::vector<std::uint32_t> AggregationSessions::steps_up(const MemberTree& made, std::size_t member,
                                                         const TreeEntries& entries) const {
  const std::vector<PortId>& own = made.ends[member].ports;
  std::vector<std::uint32_t> steps(own.begin(), own.end());
  steps.push_back(made.tree.nic_ports[member]);
  std::uint32_t entry = entries.gpus[member];
  for (std::uint32_t at = made.tree.leaf[member]; at != kNoId; at = made.tree.switches[at].parent) {
    const AggregationTree::Switch& one = made.tree.switches[at];
    if (!one.reduces) {
      steps.push_back(make_hop_step({one.up, 0}));
      continue;
    }
    steps.push_back(step_of(entry));
    entry = entries.switches[at];
    if (one.up != kNoId) steps.push_back(one.up);
  }
  return steps;
}

}  // namespace netsim
