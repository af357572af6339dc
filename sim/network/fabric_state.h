// What the parts of a fabric share, as plain arrays: every element belongs to the atom that its port or node
// is of, and only the part with that atom's set changes it while events are executed. Private to the room.
//
// Whose they are within a part: ports and queues of the PortArbiter; ingress, credits, buffers and marking of
// SwitchBuffers; pauses of BackPressure; links of LinkState; paths, routed, turns and choices of
// PacketForwarding.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/core/random.h"
#include "sim/core/reserved_array.h"
#include "sim/network/class_arbiter.h"
#include "sim/network/fabric_parameters.h"
#include "sim/network/policies.h"
#include "sim/network/port.h"
#include "sim/topology/partition.h"
#include "sim/topology/topology.h"

namespace netsim {

namespace fabric {

// What a node holds of one link's packets of one data queue: indexed by the port at the link's far end (who
// is paused or given credits).
struct alignas(32) Ingress {
  Bytes used = 0;           // pfc: reserve and shared pool; credits: what waits
  Bytes headroom_used = 0;  // credits: freed and not yet returned
  Bytes headroom = 0;       // limit; credits: the whole buffer
  std::uint32_t max_headroom_used = 0;
  bool pausing = false;
};
struct alignas(64) Buffer {
  Bytes shared_total = 0, shared_used = 0;
  std::int64_t alpha_2_16 = 0;
  Bytes reserve = 0, resume_offset = 0;
  std::uint32_t lossless = 0;              // bit per priority
  std::uint32_t queue_limit = UINT32_MAX;  // packets
  bool credits = false;                    // FlowControl::credits
  Bytes free() const { return shared_total - shared_used; }
  Bytes threshold() const { return (free() * alpha_2_16) >> 16; }
};
// ECN at a port of a switch.
struct alignas(64) Marking {
  RedLine red;
  RandomStream random;
};
// One direction of a link: its times, and what the fault plan says of it.
struct alignas(64) Link {
  BitRate rate = 0;
  Time delay = 0;
  Time header = 0;  // transmission time of what a cut-through switch reads,
  Bytes header_bytes = 0;
  // Busy until the rate last changed, and the bytes up to there.
  Time busy_before = 0;
  Bytes wire_bytes_before = 0;
  double loss = 0;
  RandomStream loss_random;
  // When this direction goes down next; when either does, which is what classes with flow control ask.
  Time next_down = kNever, link_next_down = kNever;
  // The link did not carry what was sent while it was down or dark: time of all of that, and the last
  // transmission.
  Time lost_time = 0, lost_from = 0, lost_until = -1;
  Time dark_at = kNever;  // when mirrors move whether or not packets are under way (CircuitLaw::lose)
  bool down = false, link_down = false;
  bool cut_through = false;  // as kCutThrough; read by all sets, so it is not beside flags that change
};
// Of a port: how often and how long it was held back, by PFC, or where the link has credits by their want.
struct alignas(32) Pauses {
  std::uint64_t count = 0;
  Time time = 0;
  bool abandoned = false;    // the link is known to be down: nothing is held back here
  bool dark = false;         // its link is a circuit that carries no light
  std::uint8_t unheard = 0;  // bit per priority held back until the far end has said whether it may be sent
};
// What is counted beside the packet path: see PortCounters.
struct alignas(64) Tallies {
  std::uint64_t marks = 0, drops = 0, no_route = 0, cnps = 0, lost = 0;
};
struct Credits {
  Bytes left = 0;
  Bytes largest = 0;  // packet: less than this is no credit
  Bytes frame = 0;    // on the wire of what returns credits; 0: carried along, at no cost
  Bytes quantum = 0;  // returned at a time
};
struct RoutedPath {
  std::uint64_t flow = 0;  // what RoutingPlan::Choice::per_flow goes by
  NodeId destination = kNoId;
  std::uint32_t step = 0;  // index in paths of the route step; what follows it is for the destination
};

}  // namespace fabric

struct FabricState {
  // `channels`: virtual channels of each link. ConfigError, at `node`, where the data queues are too many.
  FabricState(const Graph& graph, const SwitchRules& common, std::uint32_t channels, const ConfigNode& node);

  // By priority, then port: what packets of one class touch lies close together.
  std::size_t queue_index(PortId port, std::uint32_t priority) const {
    return static_cast<std::size_t>(priority) * ports.size() + fabric::slot(port, ports.size());
  }
  std::uint32_t priority_of_queue(std::size_t index) const {
    return static_cast<std::uint32_t>(index / ports.size());
  }
  PortId port_of_queue(std::size_t index) const {
    return fabric::port_of_slot(index % ports.size(), ports.size());
  }
  fabric::Queue& queue(PortId port, std::uint32_t priority) { return queues[queue_index(port, priority)]; }
  const fabric::Queue& queue(PortId port, std::uint32_t priority) const {
    return queues[queue_index(port, priority)];
  }
  // Of the link that `port` transmits on, at its far end; `priority` of data.
  std::size_t class_index(PortId port, std::uint32_t priority) const {
    return fabric::slot(port, ports.size()) * data_queues + (priority - kDataPriority);
  }
  std::uint32_t class_of(std::uint32_t priority) const { return (priority - kDataPriority) % classes; }
  // Of a packet: link control and congestion notifications are in none, which counts as the first.
  std::uint32_t channel_of(std::uint32_t priority) const {
    return priority < kDataPriority ? 0 : (priority - kDataPriority) / classes;
  }
  // Of the switches at one end of the port's link or both, which are of one fabric; of links without any
  // those that all fabrics share. Of a switch.
  const SwitchRules& rules_at(PortId port) const { return rules[rules_of_port[port]]; }
  const SwitchRules& rules_of(NodeId node) const { return rules[rules_of_node[node]]; }
  bool is_lossless(PortId port, std::uint32_t priority) const {
    return (rules_at(port).lossless >> priority & 1) != 0;
  }
  bool at_switch(PortId port) const {
    return graph.node(graph.port(port).node).kind == NodeKind::fabric_switch;
  }
  Bytes queued(PortId port) const;
  // Time to put so many bytes on a wire of this rate, or to pace them, in the network's resolution.
  Time serialisation(Bytes wire, BitRate rate) const {
    const Time exact = transmission_time(wire, rate);
    return resolution == 0 ? exact : (exact + resolution / 2) / resolution * resolution;
  }
  // Time until a switch has read what it needs of a packet to pass it on: its first bytes, or all if it has
  // fewer.
  Time header_time(PortId port, Bytes bytes) const {
    const fabric::Link& link = links[port];
    return bytes >= link.header_bytes ? link.header : transmission_time(bytes, link.rate);
  }
  fabric::Pauses& pauses_of(PortId port) { return pauses[fabric::slot(port, ports.size())]; }
  const fabric::Pauses& pauses_of(PortId port) const { return pauses[fabric::slot(port, ports.size())]; }
  // Whether packets of this priority go over the link only while both its directions are up: pauses and
  // credits come back over the other one.
  bool needs_both_ways(PortId port, std::uint32_t priority) const {
    return priority >= kDataPriority &&
           (is_lossless(port, priority) || (ports[port].flags & fabric::kCredits) != 0);
  }

  // What `network.tiers` says of the switch besides.
  const SwitchParameters& of_switch(NodeId node) const {
    const SwitchRules& own = rules_of(node);
    const auto tier = own.tiers.find(graph.node(node).tier);
    return tier != own.tiers.end() ? tier->second : own.switches;
  }
  // The switches from `first` up to before `end`, and the links at them, have rules of their own.
  void add_rules(SwitchRules own, NodeId first, NodeId end);
  // Returns the bytes that the switch at the port's far end reads of a packet before it may pass it on; 0:
  // all of it.
  Bytes cut_through_header(PortId port) const;
  // By port: links where packets are dropped rather than waited for without end; empty: none.
  std::vector<bool> lossy_links() const;

  const Graph& graph;
  std::vector<SwitchRules> rules;  // first those that all fabrics share
  std::vector<std::uint8_t> rules_of_node, rules_of_port;
  Time resolution = 0;
  std::uint32_t classes = 1;
  std::uint32_t channels = 1;
  std::uint32_t data_queues = 1;  // of a port: classes x channels
  std::uint32_t priorities = 3;
  // By channel and priority: the priority of the same class in that channel.
  std::array<std::array<std::uint8_t, 8>, kMaxClasses> in_channel{};
  RoutingPlan routing;
  const RoutingPolicy* policy = nullptr;
  std::uint64_t routing_seed = 0;  // what its choices depend on besides the flow, combined with the node
  // Whether each switch finds the next hop of each packet: because the policy wants it so, or because
  // circuits come and go while packets are on their way.
  bool routes_packets = false;
  // The channel that packets take any shortest way in and leave by add_hops() where it is held back; kNoId:
  // there is none.
  std::uint32_t adaptive_channel = kNoId;
  bool telemetry = false;          // packets have a place for it
  const Routes* routes = nullptr;  // for packets that are routed one by one
  ClassArbiter arbiter;
  std::vector<fabric::Port> ports;
  std::vector<std::uint32_t> far_set;  // by port: the set of its far end
  std::vector<fabric::Queue> queues;
  std::vector<Time> paused_since;      // like queues
  std::vector<Time> held_time;         // like queues: held back until it was last released, in all
  std::vector<fabric::Pauses> pauses;  // by slot of the port
  std::vector<fabric::Ingress> ingress;
  std::vector<fabric::Credits> credits;  // like ingress; empty where no link has credits
  std::vector<fabric::Buffer> buffers;
  std::vector<fabric::Marking> marking;  // by port
  std::vector<fabric::Link> links;       // by port
  std::vector<fabric::Tallies> tallies;  // by port
  std::vector<BitRate> best_rates;    // by port: highest rate during the run; empty: no fault changes rates
  std::uint64_t passage_changes = 0;  // how often set_passage() was called
  ReservedArray<std::uint32_t> paths;
  ReservedArray<fabric::RoutedPath> routed;
  std::vector<std::uint32_t> turns;   // per node: whose turn it is among equal next hops
  std::vector<RandomStream> choices;  // per node
};

}  // namespace netsim
