// FabricState: the arrays that the shards of a fabric share. Every element belongs to the atom of its port or
// node. While events are executed, only the shard with that atom changes it. Private to sim/network.
//
// Within a shard each array has one owner. PortArbiter owns ports and queues, BackPressure pauses, and
// LinkState links. SwitchBuffers owns ingress, credits, buffers and marking. PacketForwarding owns paths,
// routed, turns and choices.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/core/random.h"
#include "sim/core/reserved_array.h"
#include "sim/network/aggregation/switch_aggregations.h"
#include "sim/network/class_arbiter.h"
#include "sim/network/fabric_parameters.h"
#include "sim/network/policies.h"
#include "sim/network/port.h"
#include "sim/topology/partition.h"
#include "sim/topology/topology.h"

namespace netsim {

namespace fabric {

// Ingress: the packets of one link and data queue that a node holds. The index is the port at the link's far
// end, which is paused or gets credits.
struct alignas(32) Ingress {
  Bytes used = 0;           // bytes: with pfc in the reserve and shared pool, with credits all that wait
  Bytes headroom_used = 0;  // bytes; with credits: freed but not yet returned to the sender
  Bytes headroom = 0;       // limit in bytes; with credits: the whole buffer
  std::uint32_t max_headroom_used = 0;
  bool pausing = false;
};
// The shared buffer of a switch. Sizes are bytes.
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
// ECN marking at a port of a switch.
struct alignas(64) Marking {
  RedLine red;
  RandomStream random;
  std::unique_ptr<PortMarker> own;  // with kOwnMarker
};
// The packets of a port with kOwnScheduler, and the object that orders them.
struct alignas(64) ScheduledPort {
  PortQueues queues;
  std::unique_ptr<PortScheduler> scheduler;
};
// One direction of a link: its rate, its times, and its state by the fault schedule.
struct alignas(64) Link {
  BitRate rate = 0;
  Time delay = 0;
  Time header = 0;  // transmission time of the header that a cut-through switch reads
  Bytes header_bytes = 0;
  // Transmission time up to the last change of rate, and the bytes transmitted up to then.
  Time busy_before = 0;
  Bytes wire_bytes_before = 0;
  double loss = 0;
  RandomStream loss_random;
  // When this direction goes down next, and when either direction does. Classes with flow control depend on
  // the latter.
  Time next_down = kNever, link_next_down = kNever;
  // Total time of transmissions that the link did not carry because it was down, and the last such
  // transmission.
  Time lost_time = 0, lost_from = 0, lost_until = -1;
  Time circuit_down_at =
      kNever;  // when the mirrors move, with or without packets in flight (CircuitChangeMode::lose)
  bool down = false, link_down = false;
  // Like kCutThrough. All shards read it, so it is kept apart from flags that change.
  bool cut_through = false;
};
// How often and for how long a port was held back, by PFC or for lack of credits.
struct alignas(32) Pauses {
  std::uint64_t count = 0;
  Time time = 0;
  bool abandoned = false;                // the link is known to be down, so nothing is held back here
  bool circuit_down = false;             // the link is a circuit that is down
  std::uint8_t awaiting_peer_state = 0;  // bit per priority held back until the far end has sent its state
};
// Counts of rare events at a port; see PortCounters.
struct alignas(64) Tallies {
  std::uint64_t marks = 0, drops = 0, no_route = 0, cnps = 0, lost = 0, link_repeats = 0;
};
// Credits that a port holds for one data queue of its link.
struct Credits {
  Bytes left = 0;
  Bytes largest = 0;  // largest packet in bytes; with less credit left the port sends nothing
  Bytes frame = 0;    // bytes of the frame that returns credits; 0: returned at no cost
  Bytes quantum = 0;  // bytes that are returned at a time
};
// A destination that switches choose next hops to.
struct RoutedPath {
  std::uint64_t flow = 0;  // flow identifier for RoutingPlan::Choice::per_flow
  NodeId destination = kNoId;
  std::uint32_t step = 0;  // index in paths of the route step; the steps after it apply at the destination
};

}  // namespace fabric

struct FabricState {
  // `channels` is the number of virtual channels of each link. Throws ConfigError, at `node`, for more data
  // queues than kMaxClasses.
  FabricState(const Graph& graph, const SwitchRules& common, std::uint32_t channels, const ConfigNode& node);

  // Returns the index of a queue. Queues are ordered by priority, then port, so that packets of one class
  // touch memory that lies close together.
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
  // Returns the index in ingress and credits for the far end of the link on which `port` transmits.
  // `priority` must be a data priority.
  std::size_t class_index(PortId port, std::uint32_t priority) const {
    return fabric::slot(port, ports.size()) * data_queues + (priority - kDataPriority);
  }
  std::uint32_t class_of(std::uint32_t priority) const { return (priority - kDataPriority) % classes; }
  // Returns a packet's virtual channel. Link control and congestion notifications have none, and 0 is
  // returned for them.
  std::uint32_t channel_of(std::uint32_t priority) const {
    return priority < kDataPriority ? 0 : (priority - kDataPriority) / classes;
  }
  // rules_at() returns the rules of the fabric that the port's link belongs to; links without a switch have
  // the rules common to all fabrics. rules_of() returns the rules of a switch.
  const SwitchRules& rules_at(PortId port) const { return rules[rules_of_port[port]]; }
  const SwitchRules& rules_of(NodeId node) const { return rules[rules_of_node[node]]; }
  bool is_lossless(PortId port, std::uint32_t priority) const {
    return (rules_at(port).lossless >> priority & 1) != 0;
  }
  bool at_switch(PortId port) const { return is_switch(graph, graph.port(port).node); }
  Bytes queued(PortId port) const;
  // Returns whether is(packet) holds for a packet that waits in the queue. `packets` is that of the port's
  // logical process.
  template <class Is>
  bool any_waiting(PortId port, std::uint32_t priority, const PacketArena& packets, Is is) const {
    const auto any = [&](std::uint32_t at) {
      while (at != kNoIndex && !is(packets[at])) at = packets[at].next;
      return at != kNoIndex;
    };
    if ((ports[port].flags & fabric::kOwnScheduler) == 0 || priority < kDataPriority)
      return any(queue(port, priority).head);
    const PortQueues& own = scheduled[port]->queues;
    const std::uint32_t first = (priority - kDataPriority) * own.queues_per_class();
    for (std::uint32_t i = 0; i < own.queues_per_class(); ++i) {
      if (any(own.front(first + i))) return true;
    }
    return false;
  }
  // Returns the time to send so many bytes at this rate, or to pace them, rounded to the network's
  // resolution.
  Time serialisation(Bytes wire, BitRate rate) const {
    const Time exact = transmission_time(wire, rate);
    return resolution == 0 ? exact : (exact + resolution / 2) / resolution * resolution;
  }
  // Returns the time until a switch has received the header it needs to forward a packet, or the whole packet
  // if that is shorter.
  Time header_time(PortId port, Bytes bytes) const {
    const fabric::Link& link = links[port];
    return bytes >= link.header_bytes ? link.header : transmission_time(bytes, link.rate);
  }
  fabric::Pauses& pauses_of(PortId port) { return pauses[fabric::slot(port, ports.size())]; }
  const fabric::Pauses& pauses_of(PortId port) const { return pauses[fabric::slot(port, ports.size())]; }
  // Returns whether packets of this priority use the link only while both its directions are up. Their pauses
  // and credits return over the other direction.
  bool needs_both_ways(PortId port, std::uint32_t priority) const {
    return priority >= kDataPriority &&
           (is_lossless(port, priority) || (ports[port].flags & fabric::kCredits) != 0);
  }

  // Returns the parameters of a switch, with the changes of its tier (`network.tiers`).
  const SwitchParameters& of_switch(NodeId node) const {
    const SwitchRules& own = rules_of(node);
    const auto tier = own.tiers.find(graph.node(node).tier);
    return tier != own.tiers.end() ? tier->second : own.switches;
  }
  // Gives the switches from `first` to `end` - 1, and the links at them, rules of their own.
  void add_rules(SwitchRules own, NodeId first, NodeId end);
  // Returns the bytes that the switch at the port's far end reads of a packet before it may forward it. 0
  // means the whole packet.
  Bytes cut_through_header(PortId port) const;
  // Returns, by port, the links that drop packets instead of making them wait without limit. Empty if there
  // is none.
  std::vector<bool> lossy_links() const;

  const Graph& graph;
  std::vector<SwitchRules> rules;  // entry 0 is common to all fabrics
  std::vector<std::uint8_t> rules_of_node, rules_of_port;
  Time resolution = 0;
  std::uint32_t classes = 1;
  std::uint32_t channels = 1;
  std::uint32_t data_queues = 1;  // of each port: classes x channels
  std::uint32_t priorities = 3;
  // The priority of the same class in another channel, by channel and priority.
  std::array<std::array<std::uint8_t, 8>, kMaxClasses> in_channel{};
  RoutingPlan routing;
  const RoutingPolicy* policy = nullptr;
  std::uint64_t routing_seed = 0;  // seed of the policy's choices, combined with the node's number
  // Whether each switch chooses the next hop of each packet. It does if the policy requires it, or if
  // circuits change while packets are in flight.
  bool routes_packets = false;
  // The channel in which packets take any shortest way; they leave it by add_hops() where it is held back.
  // kNoId if there is none.
  std::uint32_t adaptive_channel = kNoId;
  bool telemetry = false;          // whether packets have a place for a Telemetry
  bool tags = false;               // whether packets have a PacketTag, for policies called for each packet
  const Routes* routes = nullptr;  // for packets that are routed one by one
  ClassArbiter arbiter;
  std::vector<fabric::Port> ports;
  std::vector<std::uint32_t> far_set;  // by port: the logical process of its far end
  std::vector<fabric::Queue> queues;
  std::vector<Time> paused_since;      // like queues
  std::vector<Time> held_time;         // like queues: total time held back, up to the last release
  std::vector<fabric::Pauses> pauses;  // by slot of the port
  std::vector<fabric::Ingress> ingress;
  std::vector<fabric::Credits> credits;  // like ingress; empty where no link has credits
  std::vector<fabric::Buffer> buffers;
  std::vector<fabric::Marking> marking;                           // by port
  std::vector<std::unique_ptr<fabric::ScheduledPort>> scheduled;  // by port; empty without such ports
  std::vector<fabric::Link> links;                                // by port
  std::vector<fabric::Tallies> tallies;                           // by port
  // Highest rate during the run, by port. Empty if no fault changes rates.
  std::vector<BitRate> best_rates;
  std::uint64_t passage_changes = 0;  // number of calls of set_passage()
  ReservedArray<std::uint32_t> paths;
  ReservedArray<fabric::RoutedPath> routed;
  std::vector<std::uint32_t> turns;                    // by node: counter that takes equal next hops in turn
  std::vector<RandomStream> choices;                   // by node: random choices among next hops
  std::vector<std::unique_ptr<SwitchRouter>> routers;  // by node, for RoutingPlan::Choice::own
  SwitchAggregations aggregations;
};

}  // namespace netsim
