#include "sim/transport/connections/aggregation_places.h"

#include <algorithm>
#include <optional>
#include <span>

#include "sim/network/aggregation/key_table.h"
#include "sim/network/path.h"

namespace netsim {

// Any other GPU of the aggregation group gives the port, because all are at one switch.
PortId port_into_aggregation(const Cluster& cluster, GpuId gpu, const SwitchAggregation& aggregation) {
  const auto other = std::find_if(aggregation.members.begin(), aggregation.members.end(),
                                  [&](GpuId member) { return member != gpu; });
  const GpuId to = other != aggregation.members.end() ? *other : aggregation.head;
  const HostRouteKind way = to == gpu ? HostRouteKind::packets : cluster.way(gpu, to);
  if (way != HostRouteKind::nvlink && way != HostRouteKind::nvlink_fabric) return kNoId;
  const std::vector<PortId> path = scale_up_path(cluster, gpu, to);
  return path.size() == 2 ? path.front() : kNoId;
}

MulticastSwitch multicast_switch(const Cluster& cluster, const SwitchAggregation& aggregation) {
  const PortId port = port_into_aggregation(cluster, aggregation.head, aggregation);
  if (port == kNoId) return {};
  const NodeId node = cluster.graph.port(port).peer_node;
  return {node, cluster.graph.node(node).combining.groups};
}

namespace {

bool contains(std::span<const GpuId> gpus, GpuId gpu) {
  return std::find(gpus.begin(), gpus.end(), gpu) != gpus.end();
}

// Returns why switches cannot serve a best-effort group that has a tree; empty if they can.
std::string best_effort_objection(const TransportState& state, const Fabric& fabric, const MemberTree& made,
                                  const BestEffort& rules) {
  if (made.members.size() > AggregatorTable::kMostWorkers + 1) {
    return std::to_string(made.members.size() - 1) + " workers, but packets have a bitmap for " +
           std::to_string(AggregatorTable::kMostWorkers);
  }
  for (const AggregationTree::Switch& one : made.tree.switches) {
    const std::optional<std::int64_t>& size = fabric.switch_parameters(one.node).aggregators;
    const std::string& name = state.cluster.graph.node(one.node).name;
    if (!one.reduces) continue;
    if (!size) {
      return name +
             " has no aggregators (network.switch.aggregators must be given; in ATP's paper a switch has "
             "20000)";
    }
    if (rules.aggregators <= *size) continue;
    return "aggregators: " + std::to_string(rules.aggregators) + ", but " + name + " has " +
           std::to_string(*size) + " (network.switch.aggregators)";
  }
  return "";
}

// Returns why there is no all-reduce tree of the group; empty if there is one.
std::string tree_objection(const TransportState& state, const Fabric& fabric,
                           const SwitchAggregation& aggregation) {
  const MemberTree made = tree_of(state.cluster, fabric, aggregation);
  if (!made.tree.refused.empty() || aggregation.pool.slots == 0) return made.tree.refused;
  const FabricTransport& transport =
      state.transports[state.transport_between(made.members[0], made.members[1])];
  const AggregationPool pool = pool_over(transport, aggregation.pool);
  const Bytes packet = pool.payload + pool.header;
  const Bytes largest = transport.largest_packet();
  if (packet > largest) {
    return "packets of " + std::to_string(pool.payload) + " B and headers of " + std::to_string(pool.header) +
           " B exceed the fabric's largest packet of " + std::to_string(largest) + " B (transport.mtu)";
  }
  if (pool.best_effort.window != 0) return best_effort_objection(state, fabric, made, pool.best_effort);
  for (const AggregationTree::Switch& one : made.tree.switches) {
    const Bytes memory = fabric.switch_parameters(one.node).aggregation_memory;
    const Bytes needed = Bytes{pool.kept()} * pool.payload;
    const bool shares = dynamic_cast<const SharesKeyTables*>(pool.protocol.get()) != nullptr &&
                        fabric.switch_parameters(one.node).aggregation_pairs.has_value();
    if (shares || !one.reduces || memory == 0 || needed <= memory) continue;
    const std::string sums = pool.kept() == 2 * pool.slots
                                 ? "two copies of " + std::to_string(pool.slots) + " slots of "
                                 : std::to_string(pool.kept()) + " sums of ";
    return sums + std::to_string(pool.payload) + " B take " + std::to_string(needed) + " B of " +
           state.cluster.graph.node(one.node).name + ", which has " + std::to_string(memory) +
           " B (network.switch.aggregation_memory)";
  }
  return "";
}

std::string name_of(const Cluster& cluster, GpuId gpu) {
  return cluster.graph.node(cluster.gpus[gpu].node).name;
}

}  // namespace

std::vector<PortId> MemberTree::links() const {
  std::vector<PortId> ports = tree.nic_ports;
  for (const AggregationTree::Switch& one : tree.switches) {
    if (one.up != kNoId) ports.push_back(one.up);
  }
  return ports;
}

std::span<const GpuId> tree_members(const SwitchAggregation& aggregation) {
  return aggregation.others.size() > aggregation.members.size() ? aggregation.others : aggregation.members;
}

namespace {

// Returns the tree of a best-effort group. Its root is the switch of the parameter server. Besides it only
// the switches of the workers' NICs add up.
AggregationTree best_effort_tree(const Cluster& cluster, const Fabric& fabric,
                                 const SwitchAggregation& aggregation, const std::vector<NodeId>& nics) {
  AggregationTree refused;
  const std::uint32_t server = aggregation.pool.best_effort.server;
  if (server >= nics.size()) {
    refused.refused = "the parameter server is host " + std::to_string(server) + " of " +
                      std::to_string(nics.size()) + " (server: 0 to " + std::to_string(nics.size() - 1) + ")";
    return refused;
  }
  std::vector<NodeId> racks;
  racks.reserve(nics.size());
  for (const NodeId nic : nics) {
    const PortId port = port_into_tree(cluster.graph, nic, fabric.down_ports(), aggregation.number);
    racks.push_back(port == kNoId ? kNoId : cluster.graph.port(port).peer_node);
  }
  const NodeId root = racks[server];
  if (root != kNoId && !fabric.adds_up(root)) {
    refused.refused = cluster.graph.node(root).name +
                      ", the switch of the parameter server, does not add up (network.switch.aggregation, "
                      "aggregation_switches)";
    return refused;
  }
  const auto adds = [&](NodeId node) {
    return fabric.adds_up(node) && std::find(racks.begin(), racks.end(), node) != racks.end();
  };
  return aggregation_tree(cluster.graph, nics, fabric.down_ports(), adds, aggregation.number, true, root);
}

}  // namespace

MemberTree tree_of(const Cluster& cluster, const Fabric& fabric, const SwitchAggregation& aggregation) {
  MemberTree made;
  made.members = tree_members(aggregation);
  std::vector<NodeId> nics;
  for (std::size_t i = 0; i < made.members.size(); ++i) {
    const GpuId member = made.members[i], next = made.members[(i + 1) % made.members.size()];
    if (member == next || cluster.way(member, next) != HostRouteKind::packets) {
      made.tree.refused = name_of(cluster, member) + " and " + name_of(cluster, next) +
                          " are joined by other links than those of a fabric's switches";
      return made;
    }
    made.ends.push_back(cluster.nic_ends(member, next, aggregation.number).from);
    nics.push_back(made.ends.back().nic);
  }
  std::vector<NodeId> sorted = nics;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
    made.tree.refused = "two members would share " + cluster.graph.node(*twice).name;
    return made;
  }
  if (aggregation.pool.best_effort.window != 0) {
    made.tree = best_effort_tree(cluster, fabric, aggregation, nics);
    return made;
  }
  made.tree = aggregation_tree(
      cluster.graph, nics, fabric.down_ports(), [&](NodeId node) { return fabric.adds_up(node); },
      aggregation.number, aggregation.pool.slots != 0 || aggregation.pool.passes);
  return made;
}

AggregationPool pool_over(const FabricTransport& transport, AggregationPool pool) {
  if (pool.payload == 0) pool.payload = transport.parameters.mtu;
  if (pool.header == 0) pool.header = transport.framing.header;
  if (pool.timeout == 0) pool.timeout = transport.parameters.retransmission_timeout;
  return pool;
}

Bytes payload_into(const AggregationTree& tree, const Fabric& fabric, const FabricTransport& transport,
                   const AggregationPool& pool) {
  if (pool.slots != 0) return pool_over(transport, pool).payload;
  const SwitchParameters& rules = fabric.switch_parameters(tree.switches.front().node);
  const Bytes mtu = transport.parameters.mtu;
  return rules.aggregation_payload != 0 ? std::min(mtu, rules.aggregation_payload) : mtu;
}

bool aggregates(const Cluster& cluster, const Fabric& fabric) {
  for (NodeId node = 0; node < cluster.graph.node_count(); ++node) {
    if (is_switch(cluster.graph, node) && fabric.adds_up(node)) return true;
  }
  return false;
}

std::string objection(const TransportState& state, const Fabric& fabric,
                      const SwitchAggregation& aggregation) {
  const Cluster& cluster = state.cluster;
  if (aggregation.allreduce) return tree_objection(state, fabric, aggregation);
  const Graph& graph = cluster.graph;
  const auto switch_of = [&](GpuId gpu) {
    const PortId port = port_into_aggregation(cluster, gpu, aggregation);
    return port == kNoId ? kNoId : graph.port(port).peer_node;
  };
  const NodeId joint = switch_of(aggregation.head);
  for (const GpuId member : aggregation.members) {
    if (member == aggregation.head && aggregation.members.size() > 1) continue;
    if (joint == kNoId || switch_of(member) != joint)
      return "no switch joins " + name_of(cluster, aggregation.head) + " and " + name_of(cluster, member) +
             " directly";
  }
  if (graph.node(joint).combining.efficiency > 0) return "";
  return graph.node(joint).name + " of a " + cluster.group_of(aggregation.head).kind +
         " neither copies nor adds up (NVSwitches do since H100)";
}

namespace {

bool gives(const SwitchAggregation& aggregation, GpuId member) {
  return contains(aggregation.members, member);
}
bool takes(const SwitchAggregation& aggregation, GpuId member) {
  return aggregation.others.empty() || contains(aggregation.others, member);
}

// TreeStreams: streams of a tree, by switch. `up` counts the streams of packets that leave it for its parent,
// and `down` the copies of the sum that come from there. `wanted` counts the copies that bring a member the
// sum.
struct TreeStreams {
  std::vector<std::uint32_t> up, down, wanted;
};

// A switch that adds up has one stream in each direction, any other one those of its children.
TreeStreams streams_of(const MemberTree& made, const SwitchAggregation& aggregation) {
  const AggregationTree& tree = made.tree;
  const std::vector<std::uint32_t> none(tree.switches.size(), 0);
  TreeStreams streams{none, none, none};
  for (std::size_t i = 0; i < made.members.size(); ++i) {
    streams.up[tree.leaf[i]] += gives(aggregation, made.members[i]) ? 1 : 0;
    ++streams.down[tree.leaf[i]];
    streams.wanted[tree.leaf[i]] += takes(aggregation, made.members[i]) ? 1 : 0;
  }
  for (std::size_t at = tree.switches.size(); at-- > 1;) {
    const AggregationTree::Switch& one = tree.switches[at];
    if (one.reduces) {
      streams.up[at] = std::min(streams.up[at], 1U);
      streams.wanted[at] = std::min(streams.wanted[at], 1U);
      streams.down[at] = 1;
    }
    streams.up[one.parent] += streams.up[at];
    streams.down[one.parent] += streams.down[at];
    streams.wanted[one.parent] += streams.wanted[at];
  }
  return streams;
}

void count_link(MessageCost& cost, const Graph& graph, PortId port) {
  ++cost.links[static_cast<std::size_t>(graph.port(port).link.kind)];
}

// Returns the cost of packets in an all-reduce tree. On the way up each sending member sends to its switch,
// and each switch above such members sends one sum, or their packets. On the way down all switches and
// members get a copy, whole or bare.
MessageCost tree_cost(const TransportState& state, const Fabric& fabric,
                      const SwitchAggregation& aggregation) {
  const MemberTree made = tree_of(state.cluster, fabric, aggregation);
  const auto& [members, ends, tree] = made;
  MessageCost cost;
  if (!tree.refused.empty()) return cost;
  const Graph& graph = state.cluster.graph;
  cost.payload = payload_into(tree, fabric, state.transports[state.transport_between(members[0], members[1])],
                              aggregation.pool);
  for (std::size_t i = 0; i < members.size(); ++i) {
    for (int way = gives(aggregation, members[i]) ? 0 : 1; way < 2; ++way) {
      for (const PortId port : ends[i].ports) count_link(cost, graph, port);
      count_link(cost, graph, tree.nic_ports[i]);
    }
  }
  const TreeStreams streams = streams_of(made, aggregation);
  for (std::size_t at = tree.switches.size(); at-- > 1;) {
    for (std::uint32_t i = 0; i < streams.up[at] + streams.down[at]; ++i)
      count_link(cost, graph, tree.switches[at].up);
  }
  return cost;
}

}  // namespace

std::vector<PortId> ports_of_tree(const Cluster& cluster, const Fabric& fabric,
                                  const SwitchAggregation& aggregation) {
  const MemberTree made = tree_of(cluster, fabric, aggregation);
  const AggregationTree& tree = made.tree;
  std::vector<PortId> ports;
  if (!tree.refused.empty()) return ports;
  for (std::size_t i = 0; i < made.members.size(); ++i) {
    std::vector<PortId> own = made.ends[i].ports;
    own.push_back(tree.nic_ports[i]);
    if (gives(aggregation, made.members[i])) ports.insert(ports.end(), own.begin(), own.end());
    if (!takes(aggregation, made.members[i])) continue;
    const std::vector<PortId> back = reversed(own);
    ports.insert(ports.end(), back.begin(), back.end());
  }
  const TreeStreams streams = streams_of(made, aggregation);
  for (std::size_t at = 1; at < tree.switches.size(); ++at) {
    ports.insert(ports.end(), streams.up[at], tree.switches[at].up);
    ports.insert(ports.end(), streams.wanted[at], tree.switches[at].up ^ 1U);
  }
  return ports;
}

MessageCost aggregation_cost(const TransportState& state, const Fabric& fabric,
                             const SwitchAggregation& aggregation, AggregationUse use) {
  if (use == AggregationUse::allreduce) return tree_cost(state, fabric, aggregation);
  const Cluster& cluster = state.cluster;
  const PortId head = port_into_aggregation(cluster, aggregation.head, aggregation);
  MessageCost cost;
  cost.payload = cluster.graph.node(cluster.graph.port(head).peer_node).combining.piece;
  count_link(cost, cluster.graph, head);
  for (const GpuId member : aggregation.members)
    count_link(cost, cluster.graph, port_into_aggregation(cluster, member, aggregation));
  return cost;
}

}  // namespace netsim
