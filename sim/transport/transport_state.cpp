#include "sim/transport/transport_state.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "sim/core/errors.h"
#include "sim/topology/fabric_sections.h"

namespace netsim {
namespace {

// Number of queue pairs for which address space is reserved.
constexpr std::size_t kMaxQueuePairs = std::size_t{1} << 26, kMaxAggregations = std::size_t{1} << 24;

std::vector<std::uint8_t> ask_shifts(const TransportParameters& parameters, const CongestionNeeds& needs,
                                     const Cluster& cluster) {
  std::vector<std::uint8_t> shifts;
  const Acknowledging common = acknowledging(parameters, needs, cluster);
  for (const HostGroup& group : cluster.groups) {
    const std::int64_t every = common.every.value_or(group.acknowledge_every);
    shifts.push_back(static_cast<std::uint8_t>(std::countr_zero(static_cast<std::uint64_t>(every))));
  }
  return shifts;
}

// Returns the transports. `of_fabric` gets, by fabric, the index of its transport; 0 is the common one.
std::vector<FabricTransport> make_transports(const ConfigNode& node, const Cluster& cluster,
                                             std::vector<std::uint8_t>& of_fabric) {
  const TransportParameters common = read_transport(node);
  std::vector<FabricTransport> transports;
  transports.emplace_back(common, cluster);
  for (const ConfigNode* section : fabric_sections(common.fabrics, cluster)) {
    if (section != nullptr) transports.emplace_back(fabric_transport(common, section), cluster);
    of_fabric.push_back(section != nullptr ? static_cast<std::uint8_t>(transports.size() - 1)
                                           : std::uint8_t{0});
  }
  NETSIM_CHECK(transports.size() <= UINT8_MAX, "too many fabrics");
  return transports;
}

template <class Is>
bool any_of(const std::vector<FabricTransport>& transports, Is is) {
  return std::any_of(transports.begin(), transports.end(), is);
}

std::size_t most_state_bytes(const std::vector<FabricTransport>& transports) {
  std::size_t most = 0;
  for (const FabricTransport& transport : transports) most = std::max(most, transport.needs.state_bytes);
  return most;
}

std::uint32_t most_nic_levels(const std::vector<FabricTransport>& transports) {
  std::int64_t most = 1;
  for (const FabricTransport& transport : transports)
    most = std::max(most, transport.parameters.nic_priorities);
  return static_cast<std::uint32_t>(most);
}

// Returns the bytes of one half's state, in whole cache lines, because the halves may be in different
// threads.
std::size_t most_reliability_bytes(const std::vector<FabricTransport>& transports) {
  std::size_t most = 0;
  for (const FabricTransport& transport : transports) {
    const ReliabilityPlan& plan = transport.reliability;
    most = std::max({most, plan.sender_state_bytes, plan.receiver_state_bytes});
  }
  return std::max<std::size_t>((most + 63) / 64, 1) * 64;
}

}  // namespace

FabricTransport::FabricTransport(TransportParameters parameters_in, const Cluster& cluster)
    : framing(netsim::framing(parameters_in.framing)),
      congestion_control(make_congestion_control(parameters_in)),
      reliability_rules(make_reliability(parameters_in)),
      reliability(reliability_plan(parameters_in, *reliability_rules)),
      parameters(std::move(parameters_in)) {
  needs = congestion_control->needs();
  framing.header += needs.data_header;
  framing.ack += needs.ack_header;
  echo_in_acks = needs.ack_echo || parameters.ecn_echo == EcnEcho::ack;
  stamps = needs.telemetry || needs.timestamps;
  ask_shift = ask_shifts(parameters, needs, cluster);
}

TransportState::TransportState(const Cluster& cluster_in, const ConfigNode& node)
    : cluster(cluster_in),
      transports(make_transports(node, cluster, transport_of_fabric)),
      selective(any_of(transports, [](const FabricTransport& t) { return t.reliability.selective; })),
      own_reliability(any_of(transports, [](const FabricTransport& t) { return t.reliability.own; })),
      nic_levels(most_nic_levels(transports)),
      aggregations(kMaxAggregations),
      senders(kMaxQueuePairs),
      receivers(kMaxQueuePairs),
      records(kMaxQueuePairs),
      ideal_messages(kMaxQueuePairs),
      outstanding(kMaxQueuePairs),
      pace_limits(kMaxQueuePairs),
      levels(nic_levels > 1 ? kMaxQueuePairs : 1),
      selective_senders(kMaxQueuePairs),
      selective_receivers(kMaxQueuePairs),
      reliability_stride(2 * most_reliability_bytes(transports)),
      reliability_states(own_reliability ? kMaxQueuePairs * reliability_stride : 1),
      arrival_stamps(own_reliability ? kMaxQueuePairs : 1),
      state_stride(sizeof(PathConstants) + (most_state_bytes(transports) + 15) / 16 * 16),
      congestion(kMaxQueuePairs * state_stride),
      injector_of_port(cluster.graph.port_count(), kNone),
      gate_of_port(cluster.graph.port_count(), kNone) {}

AggregationId TransportState::add_aggregation(const SwitchAggregation& aggregation) {
  const std::size_t id = aggregations.grow(1);
  aggregations[id] = &aggregation;
  return static_cast<std::uint32_t>(id);
}

}  // namespace netsim
