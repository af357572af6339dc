// The places of aggregation groups in a cluster. They are the ports and trees through which the messages of a
// group go. They tell what the messages cost, and why a network cannot carry them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/network/fabric.h"
#include "sim/topology/aggregation_tree.h"
#include "sim/topology/topology.h"
#include "sim/transport/packet_network.h"
#include "sim/transport/transport_state.h"

namespace netsim {

// An all-reduce tree and the ways of its members to it. The members are those of the aggregation group and
// the others; one of the two lists contains all.
struct MemberTree {
  std::span<const GpuId> members;
  std::vector<Cluster::NicEnd> ends;  // by member
  AggregationTree tree;
  // Returns the ports on the ways up from the members' NICs to the root, each once.
  std::vector<PortId> links() const;
};

// Returns the ports that data passes in an all-reduce tree: those of all members, and those between switches.
// A port occurs once for each stream of data, so several times where a switch forwards packets one by one.
// Empty if there is no tree. Packets of headers alone are left out.
std::vector<PortId> ports_of_tree(const Cluster& cluster, const Fabric& fabric,
                                  const SwitchAggregation& aggregation);
MemberTree tree_of(const Cluster& cluster, const Fabric& fabric, const SwitchAggregation& aggregation);
// Returns the pool with the transport's values where it has none of its own.
AggregationPool pool_over(const FabricTransport& transport, AggregationPool pool);
// Returns the GPUs of an all-reduce tree.
std::span<const GpuId> tree_members(const SwitchAggregation& aggregation);
// Returns the payload bytes of a packet into an all-reduce tree with or without a pool of slots.
Bytes payload_into(const AggregationTree& tree, const Fabric& fabric, const FabricTransport& transport,
                   const AggregationPool& pool);

// Returns the port by which a GPU reaches the switch that joins it with the other GPUs of an aggregation
// group. kNoId: no such port reaches all of them. The way back is the same link.
PortId port_into_aggregation(const Cluster& cluster, GpuId gpu, const SwitchAggregation& aggregation);
// Implements Endpoint::multicast_switch().
MulticastSwitch multicast_switch(const Cluster& cluster, const SwitchAggregation& aggregation);
// Returns whether any switch of the cluster's fabrics sums.
bool aggregates(const Cluster& cluster, const Fabric& fabric);
// Returns why the cluster's switches cannot serve the aggregation group, in words; empty if they can.
std::string objection(const TransportState& state, const Fabric& fabric,
                      const SwitchAggregation& aggregation);
// Implements PacketNetwork::aggregation_cost().
MessageCost aggregation_cost(const TransportState& state, const Fabric& fabric,
                             const SwitchAggregation& aggregation, AggregationUse use);

}  // namespace netsim
