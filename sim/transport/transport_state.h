// TransportState: the transport's data that the logical processes share: constant values, and arrays by queue
// pair. Private to the packet network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "sim/core/reserved_array.h"
#include "sim/network/telemetry.h"
#include "sim/topology/topology.h"
#include "sim/transport/endpoint.h"
#include "sim/transport/queue_pair.h"
#include "sim/transport/receiver/selective_receiver.h"
#include "sim/transport/sender/selective_sender.h"
#include "sim/transport/transport_parameters.h"

namespace netsim {

// FabricTransport: the transport of a fabric's queue pairs, made from one section of the configuration.
struct FabricTransport {
  FabricTransport(TransportParameters parameters_in, const Cluster& cluster);

  Framing framing;  // with the bytes that congestion control adds
  CongestionNeeds needs;
  bool echo_in_acks = false, stamps = false;
  std::unique_ptr<CongestionControl> congestion_control;
  std::unique_ptr<Reliability> reliability_rules;  // called only with reliability.own
  ReliabilityPlan reliability;
  TransportParameters parameters;
  std::vector<std::uint8_t> ask_shift;  // by group of hosts: see SenderState

  Bytes largest_packet() const { return parameters.mtu + framing.header + framing.first_header; }
};

struct TransportState {
  // `node` is the section `transport`.
  TransportState(const Cluster& cluster_in, const ConfigNode& node);

  const Cluster& cluster;
  // Transport 0 is common to all fabrics; the others belong to fabrics with a section of their own. Queue
  // pairs store their index in `transports`.
  std::vector<std::uint8_t> transport_of_fabric;  // by number in Cluster::fabrics
  std::vector<FabricTransport> transports;
  bool selective = false;        // whether any of them uses selective repeat, or switches add up
  bool own_reliability = false;  // whether any of them has ReliabilityPlan::own
  std::uint32_t nic_levels = 1;  // largest TransportParameters::nic_priorities
  // Returns the transport of queue pairs between two GPUs whose way is HostRouteKind::packets.
  std::uint8_t transport_between(std::uint32_t from, std::uint32_t to) const {
    return transports.size() == 1 ? std::uint8_t{0} : transport_of_fabric[cluster.packet_fabric(from, to)];
  }
  const FabricTransport& of(const SenderState& s) const { return transports[s.transport]; }
  // Implements Endpoint::add_aggregation().
  AggregationId add_aggregation(const SwitchAggregation& aggregation);
  MessageListener* listener = nullptr;
  bool observed = false;  // flows are written into the journal
  bool tagged = false;    // packets carry a PacketTag
  bool traced = false;    // deliveries are reported with delays: last packets record traces
  std::uint32_t delivered_reader = 0, acknowledged_reader = 0, vanished_reader = 0;
  std::vector<std::uint32_t> set_of_gpu;
  // By AggregationId; the groups belong to the callers of add_aggregation().
  ReservedArray<const SwitchAggregation*> aggregations;
  // The following arrays are indexed by queue pair.
  ReservedArray<SenderState> senders;
  ReservedArray<ReceiverState> receivers;
  ReservedArray<QueuePairRecord> records;
  ReservedArray<IdealMessage> ideal_messages;
  ReservedArray<Outstanding> outstanding;  // for queue pairs with `counted`
  ReservedArray<PaceLimits> pace_limits;   // for queue pairs with `limited`
  // Levels of priority in injectors; only with nic_levels > 1.
  ReservedArray<std::uint8_t> levels;
  // States of senders and receivers with selective repeat, and of senders into pools of slots. Empty without
  // `selective`.
  ReservedArray<SelectiveSender> selective_senders;
  ReservedArray<SelectiveReceiver> selective_receivers;
  // Only for ReliabilityPlan::own. Each half's state has reliability_stride / 2 bytes, first the sender's.
  std::size_t reliability_stride;
  ReservedArray<std::byte> reliability_states;
  ReservedArray<Telemetry> arrival_stamps;  // telemetry of the packet that arrived last
  std::byte* sender_reliability(std::size_t id) { return &reliability_states[id * reliability_stride]; }
  std::byte* receiver_reliability(std::size_t id) { return sender_reliability(id) + reliability_stride / 2; }
  std::size_t state_stride;
  ReservedArray<std::byte> congestion;  // PathConstants and congestion state, state_stride bytes each
  PathConstants& path_constants(std::size_t id) {
    return reinterpret_cast<PathConstants&>(congestion[id * state_stride]);
  }
  const PathConstants& path_constants(std::size_t id) const {
    return reinterpret_cast<const PathConstants&>(congestion[id * state_stride]);
  }
  // Returns the queue pair's congestion control state, which is stored after its PathConstants.
  std::byte* congestion_state(std::size_t id) {
    return &congestion[id * state_stride] + sizeof(PathConstants);
  }
  std::uint64_t route_changes = 0;  // number of changes of routes
  Time routes_changed_at = -1;      // time of the last change
  // The ports of the ways that queue pairs had before routes changed, for ideal times.
  struct FormerWays {
    std::uint32_t use = 0;  // QueuePairIdentity::use
    std::vector<std::vector<PortId>> ways;
  };
  std::map<std::uint32_t, FormerWays> former_ways;
  // By port. The numbers are indices in the Injectors of the port's logical process.
  std::vector<std::uint32_t> injector_of_port, gate_of_port;
};

}  // namespace netsim
