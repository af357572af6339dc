#include "sim/transport/packet_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "sim/topology/fabric_sections.h"
#include "sim/transport/idle_keys.h"
#include "sim/transport/packet_network_impl.h"

namespace netsim {
namespace {

const ConfigNode& switch_section(const ConfigNode& network_node) {
  const ConfigNode* section = network_node.find("switch");
  return section != nullptr ? *section : network_node;
}

// Returns the scopes of all packet fabrics. Empty if all are alike, because no fabric has a section of its
// own.
std::vector<FabricScope> fabric_scopes(const TransportState& state, const FabricParameters& parameters) {
  const std::vector<const ConfigNode*> sections = fabric_sections(parameters.fabrics, state.cluster);
  std::vector<FabricScope> scopes;
  bool own = state.transports.size() > 1;
  for (std::size_t i = 0; i < sections.size(); ++i) {
    const ClusterFabric& fabric = state.cluster.fabrics[i];
    if (fabric.scale_up) continue;
    const FabricTransport& transport = state.transports[state.transport_of_fabric[i]];
    own = own || sections[i] != nullptr;
    scopes.push_back({fabric.first_switch, fabric.end_switch, sections[i], transport.largest_packet(),
                      transport.needs.telemetry});
  }
  if (!own) scopes.clear();
  return scopes;
}

}  // namespace

PacketNetworkImpl::PacketNetworkImpl(Engine& engine, const Cluster& cluster, const Partition& partition,
                                     const ConfigNode& network_node, const ConfigNode& transport_node,
                                     std::uint64_t seed, FlowObserver observer)
    : cluster_(cluster),
      state_(cluster, transport_node),
      parameters_(fabric_parameters().parse(network_node, {"kind"})),
      fabric_(engine, cluster.graph, cluster.routes.get(), partition, parameters_,
              switch_section(network_node), state_.transports.front().largest_packet(), seed,
              fabric_scopes(state_, parameters_)),
      flows_(engine, state_, connections_, std::move(observer)) {
  state_.tagged = fabric_.has_tags();
  state_.selective = state_.selective || netsim::aggregates(cluster_, fabric_);
  for (const Gpu& gpu : cluster.gpus) state_.set_of_gpu.push_back(partition.set_of(gpu.node));
  for (const FabricTransport& transport : state_.transports) {
    if (transport.needs.telemetry) fabric_.enable_telemetry();
    if (transport.needs.timestamps) fabric_.enable_timestamps();
  }
  if (engine.sets() > 1 && netsim::aggregates(cluster_, fabric_)) connections_.trees().open_ledger(engine);
  for (std::uint32_t set = 0; set < engine.sets(); ++set) {
    shards_.push_back(
        std::make_unique<TransportShard>(engine.set(set), fabric_.shard(set), state_, connections_, fabric_));
    connections_.add_sender(shards_.back()->sender());
  }
  idle_keys_ = find_idle_keys(network_node, transport_node);
}

std::vector<std::string> PacketNetworkImpl::find_idle_keys(const ConfigNode& network,
                                                           const ConfigNode& transport) const {
  std::vector<std::string> notes = idle_network_keys(network, parameters_, cluster_);
  const auto add = [&](const ConfigNode& section, const std::string& path, const FabricTransport& of) {
    for (std::string& note : idle_transport_keys(section, path, of, cluster_))
      notes.push_back(std::move(note));
  };
  if (state_.transports.size() == 1) add(transport, "transport", state_.transports.front());
  const std::vector<const ConfigNode*> sections =
      fabric_sections(state_.transports.front().parameters.fabrics, cluster_);
  for (std::size_t i = 0; i < sections.size(); ++i) {
    if (sections[i] == nullptr) continue;
    add(*sections[i], "transport.fabrics." + cluster_.fabrics[i].name,
        state_.transports[state_.transport_of_fabric[i]]);
  }
  return notes;
}

MessageHandle PacketNetworkImpl::send(const SendRequest& request) {
  const Message& message = request.message;
  NETSIM_CHECK(message.bytes > 0 && !message.source.is_none() && !message.destination.is_none(),
               "a message without bytes, source or destination");
  if (!message.aggregation.is_none())
    return shards_[state_.set_of_gpu[message.source]]->aggregations().send(request);
  const std::uint32_t id = connections_.queue_pair(message), hint = message.traits.path_hint;
  const std::uint32_t way = hint == kNoPathHint ? kNone : connections_.hinted_path(id, hint);
  return sender_of(message.source).send(id, request, way);
}

std::vector<PortId> PacketNetworkImpl::path_of(const Message& message) const {
  if (message.aggregation.is_none()) return connections_.path_of(message);
  if (message.aggregation_use != AggregationUse::allreduce) return {};
  return ports_of_tree(cluster_, fabric_, *state_.aggregations[message.aggregation]);
}

bool PacketNetworkImpl::set_path(const MessageHandle& message, std::uint32_t path_hint) {
  if (message.is_none()) return false;
  Sender& sender = sender_of(message.source);
  const std::uint32_t id = sender.queue_pair_of(message);
  return id != kNone && sender.set_path(message, path_hint, connections_.hinted_path(id, path_hint));
}

// ---- Reports

NetworkCounters PacketNetworkImpl::counters() const {
  NetworkCounters c;
  for (const auto& shard : shards_) add_counters(network_counters(), c, shard->counts());
  c.circuit_changes = fabric_.circuits().counters().changes;
  for (PortId id = 0; id < cluster_.graph.port_count(); ++id) {
    const PortSpec& spec = cluster_.graph.port(id);
    const PortCounters port = fabric_.counters(id);
    c.packet_hops[static_cast<std::size_t>(spec.link.kind)] += port.data_packets;
    c.pfc_resumes += port.pauses - fabric_.pfc_paused(id);
    const auto own = is_switch(cluster_.graph, spec.node) ? NetworkCounterInfo::Ports::switches
                                                          : NetworkCounterInfo::Ports::hosts;
    for (const NetworkCounterInfo& info : network_counters()) {
      if (info.of_ports && (info.ports == own || info.ports == NetworkCounterInfo::Ports::all))
        add_counter(c, info.field, info.sum, value_of(port, *info.of_ports));
    }
  }
  return c;
}

QueuePairView PacketNetworkImpl::queue_pair_view(std::uint32_t id) const {
  const SenderState& s = state_.senders[id];
  const QueuePairIdentity& n = state_.records[id].identity;
  return {n.source, n.destination, n.number, sender_of(n.source).acknowledged_payload(id),
          s.rate,   busy(id),      n.use,    n.job};
}

std::uint64_t PacketNetworkImpl::packets_fingerprint() const {
  std::uint64_t sum = 0;
  for (const auto& shard : shards_) sum += shard->receiver().packets_fingerprint();
  return sum;
}

TransportFigures PacketNetworkImpl::transport_figures(std::uint32_t fabric) const {
  const FabricTransport& transport = state_.transports[state_.transport_of_fabric[fabric]];
  return {transport.parameters.mtu,
          static_cast<std::uint32_t>(transport.parameters.queue_pairs),
          transport.reliability.timeout,
          transport.needs.cnp_interval != kNever || transport.needs.ack_echo,
          transport.parameters.window != 0 || transport.reliability.bdp_cap > 0,
          transport.parameters.nic_priorities > 1 || state_.tagged};
}

PathObjection PacketNetworkImpl::worst_path(std::size_t transport) const {
  PathObjection worst;
  for (const auto& shard : shards_) {
    const PathObjection& own = shard->sender().objections()[transport];
    if (own.before(worst)) worst = own;
  }
  return worst;
}

// Returns whether a packet fabric uses the transport.
bool PacketNetworkImpl::is_used(std::size_t transport) const {
  for (std::size_t i = 0; i < cluster_.fabrics.size(); ++i) {
    if (!cluster_.fabrics[i].scale_up && state_.transport_of_fabric[i] == transport) return true;
  }
  return false;
}

std::string PacketNetworkImpl::fabric_with(std::size_t transport) const {
  if (transport == 0 || cluster_.packet_fabric_names().size() == 1) return "";
  const auto& of = state_.transport_of_fabric;
  const auto at = std::find(of.begin(), of.end(), transport);
  return cluster_.fabrics[static_cast<std::size_t>(at - of.begin())].name;
}

std::vector<AggregatingSwitch> PacketNetworkImpl::aggregating_switches() const {
  std::map<NodeId, AggregatingSwitch> by_node;
  shards_.front()->aggregations().add_to(by_node);
  std::vector<AggregatingSwitch> switches;
  switches.reserve(by_node.size());
  for (auto& [node, one] : by_node) {
    const AggregationCounters& c = one.counters;
    if (c.packets == 0 && c.collided == 0 && c.flushed == 0 && one.waited == 0) continue;
    one.node = node;
    switches.push_back(one);
  }
  return switches;
}

std::vector<std::string> PacketNetworkImpl::notes() const {
  std::vector<std::string> notes = fabric_.notes();
  notes.insert(notes.end(), idle_keys_.begin(), idle_keys_.end());
  for (std::string& note : shards_.front()->aggregations().notes()) notes.push_back(std::move(note));
  if (connections_.ignored_priorities()) {
    notes.push_back(
        "priorities of messages with queue pairs of their own had no effect: NICs serve all queue pairs in "
        "turn; transport.nic_priorities gives NICs levels of priority");
  }
  if (connections_.ignored_hints()) {
    notes.push_back(
        "path hints of messages had no effect: switches choose the hop of each packet; with network.switch."
        "routing: ecmp, hints choose the paths of flows");
  }
  for (std::size_t i = 0; i < state_.transports.size(); ++i) {
    if (!is_used(i)) continue;
    const std::string name = fabric_with(i);
    const std::string where = name.empty() ? "" : "fabric " + name + ": ";
    const FabricTransport& transport = state_.transports[i];
    if (const std::int64_t every = transport.parameters.acknowledge.every.value_or(1);
        every > 1 && transport.needs.every_ack) {
      notes.push_back(where +
                      fmt::format("an ACK answers up to {} packets, but the congestion control expects an "
                                  "ACK for each and reacts late; acknowledge.every: 1 gives it every ACK",
                                  every));
    }
    if (fabric_.spreads_flows() && !transport.reliability.selective) {
      notes.push_back(where +
                      "packets are routed one by one but accepted in order only (reliability: go_back_n): "
                      "each packet that overtakes another makes the sender go back; " +
                      (name.empty() ? "transport" : "transport.fabrics." + name) +
                      ".reliability: {kind: irn, reorder_tolerance: N} accepts packets out of order, and "
                      "counts one as lost "
                      "only when a packet sent N later has arrived");
    }
    if (const PathObjection worst = worst_path(i); !worst.text.empty()) {
      notes.push_back(
          where +
          fmt::format(
              "congestion control does not fit the path from GPU {} to GPU {}, idle round trip {}{}: {}",
              worst.source, worst.destination, format_time(worst.round_trip),
              state_.transports[i].parameters.cnp_delay != 0
                  ? " and cnp_delay " + format_time(state_.transports[i].parameters.cnp_delay)
                  : "",
              worst.text));
    }
  }
  return notes;
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
const ParameterTable& PacketNetwork::transport_parameters() { return transport_parameter_table(); }
Acknowledging PacketNetwork::acknowledging(const Cluster& cluster, const ConfigNode& node,
                                           const std::string& fabric) {
  const TransportParameters common = read_transport(node);
  const TransportParameters parameters = fabric_transport(common, common.fabrics.find(fabric));
  return netsim::acknowledging(parameters, make_congestion_control(parameters)->needs(), cluster);
}

}  // namespace netsim
