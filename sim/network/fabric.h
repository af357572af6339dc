// Fabric: ports, links and output-queued shared-buffer switches, packet by packet.
//
// A packet that meets an idle port starts its transmission at once and costs one event a hop; one that waits
// costs a second, when the port is free again. A packet leaves queue, shared buffer and ingress count when
// its transmission starts; what is decided at dequeue (ECN, INT) sees what remains then.
//
// Switches (per atom of kind fabric_switch) have one of three kinds of flow control:
//  pfc      one shared buffer; a lossless class's packets count against the link they came from: first its
//           reserve, then the shared pool up to alpha x what is free there (dynamic threshold, Choudhury and
//           Hahne, ToN 1998), then its headroom. Crossing the threshold sends a PFC pause (IEEE 802.1Qbb)
//           upstream, ahead of all waiting packets; falling `resume_offset` below it sends the resume. Pauses
//           last until resumed.
//  credits  a buffer for each link and class; a sender transmits only what it holds credits for and gets them
//           back when packets leave the buffer (InfiniBand Architecture Specification 1.4, volume 1,
//           section 7.9). Nothing is ever dropped.
//  none     classes share the pool per egress queue and are dropped above the threshold, as are the classes
//           that are not lossless under pfc.
//
// Ports outside switches (NICs, GPUs, NVSwitch stages) have room for everything, unless their links carry
// credits.
//
// A FabricShard for each set of atoms does all that happens in events; the Fabric builds and joins them and
// does what concerns the whole, between events: faults, the search for deadlocks, reports.
//
// Read on in fabric_shard.h (what happens in events, and by which object) and fabric_state.h (the arrays they
// work on). Others are buffer_plan.h (sizes of buffers), link_faults.h, deadlock_search.h, ideal_time.h and
// spread_time.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/engine.h"
#include "sim/network/buffer_plan.h"
#include "sim/network/circuit_switching.h"
#include "sim/network/counters.h"
#include "sim/network/deadlock_search.h"
#include "sim/network/fabric_parameters.h"
#include "sim/network/fabric_shard.h"
#include "sim/network/fabric_state.h"
#include "sim/network/ideal_time.h"
#include "sim/network/link_faults.h"
#include "sim/network/policies.h"
#include "sim/network/spread_time.h"
#include "sim/topology/partition.h"
#include "sim/topology/topology.h"

namespace netsim {

class Fabric {
 public:
  // `node`: the section that `parameters` were read from, for messages. `largest_packet`: payload and headers
  // of the largest packet that the transport makes. `scopes`: the packet fabrics that the graph has, if their
  // switches may differ. `routes`: those of set_routes() while all links are up;
  // null: packets have paths that someone else made. ConfigError for what does not fit together (headroom and
  // reserves beyond the buffer, unknown links in `faults`, routes on which lossless packets can come to wait
  // for each other in a circle).
  Fabric(Engine& engine, const Graph& graph, const Routes* routes, const Partition& partition,
         const FabricParameters& parameters, const ConfigNode& node, Bytes largest_packet, std::uint64_t seed,
         std::span<const FabricScope> scopes = {});
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  FabricShard& part(std::uint32_t set) { return *parts_[set]; }
  // Next hops for packets that are routed one by one; must outlive the fabric or the next call. Where
  // lossless packets can come to wait for each other in a circle on them, a note says so; the first eight
  // routes are looked at.
  void set_routes(const Routes* routes);
  // Called when a link went down or came back `detection_delay` ago, or other circuits of optical switches
  // are to carry packets: down_ports() tells which are to be avoided.
  void on_routes_changed(std::function<void()> call);
  // Switches of the fabrics that want it write INT into data packets from now on; before the first packet.
  void enable_telemetry();
  // Packets have a place for time stamps only.
  void enable_timestamps();
  // Packets have a place for a PacketTrace from now on; before the first packet.
  void enable_traces();

  std::uint32_t classes() const { return state_.classes; }
  // Virtual channels of each link; `ordered`: without the one that packets escape from.
  std::uint32_t channels() const { return state_.channels; }
  std::uint32_t ordered_channels() const { return std::min(state_.channels, state_.adaptive_channel); }
  Bytes overhead(PortId port) const { return state_.ports[port].overhead; }
  // Adds a path: successive steps; returns the index of its first. Ports first, then what becomes of the
  // packet. Several parts may at once.
  std::uint32_t add_path(const std::vector<std::uint32_t>& steps);
  // Writes other steps, not more, over a path that no packet is on or will take.
  void replace_path(std::uint32_t first, const std::vector<std::uint32_t>& steps);
  bool path_begins_with(std::uint32_t first, const std::vector<std::uint32_t>& steps) const;
  // Of all paths.
  std::size_t path_steps() const { return state_.paths.size(); }
  // The ports at the beginning of the path that begins at `first`, which names no channels.
  std::span<const PortId> ports_of_path(std::uint32_t first) const;
  // The same of one that may name channels.
  std::vector<PortId> ports_of_hops(std::uint32_t first) const;
  // A step after which every switch chooses the next hop of every packet, until the NIC `destination`, where
  // the steps after this one follow. The path has the source's port before it. set_route_step() says where in
  // the paths the step lies, before a packet takes it. Only where routes_packets().
  // `flow`: of the packets, for policies that keep flows together.
  std::uint32_t route_step(NodeId destination, std::uint64_t flow);
  void set_route_step(std::uint32_t step, std::uint32_t index);
  bool routes_packets() const { return state_.routes_packets; }
  // The same for acknowledgements: while circuits come and go no path holds.
  bool routes_acknowledgements() const { return circuits_move_; }
  // Whether packets of a flow may take different ways at the same time.
  bool spreads_flows() const { return state_.routing.per_packet(); }

  // Of a switch.
  const SwitchParameters& switch_parameters(NodeId node) const { return state_.of_switch(node); }
  // What the routing policy's choices depend on besides the flow; each switch combines it with its
  // Graph::node_number().
  std::uint64_t routing_seed() const { return seed_; }
  const RoutingPolicy& routing() const { return *routing_; }
  // Ports that are known to carry no traffic: because their link, or where classes have flow control one
  // direction of it, is down, or because they are circuits that are dark and that packets do not wait for.
  const std::vector<bool>& down_ports() const { return down_; }
  std::vector<bool> failing_ports() const { return faults_.failing(); }
  CircuitSwitching& circuits() { return circuits_; }
  const CircuitSwitching& circuits() const { return circuits_; }
  // As of ideal_time.h.
  Time ideal_time(std::span<const PortId> path, const PacketTrain& train, std::span<Time> waits = {}) const {
    return netsim::ideal_time(state_, path, train, waits);
  }
  // Makes the object that one set of atoms asks; no other set may.
  SpreadTimes spread_times() const { return SpreadTimes(state_); }
  // Whether packets take detours, or circuits come and go, so that a packet may take any link of the fabric.
  bool leads_anywhere() const { return state_.routing.detours() || circuits_move_; }
  Time now() const { return engine_.now(); }
  // While it stays the same, so do all answers of ideal_time().
  std::uint64_t passage_changes() const { return state_.passage_changes; }
  bool at_switch(PortId port) const { return state_.at_switch(port); }
  BitRate rate(PortId port) const { return graph_.port(port).link.rate; }

  // Counters and state, for tables, laws and reports: between events.
  PortCounters counters(PortId port) const;
  Bytes queued(PortId port) const { return state_.queued(port); }
  // Data classes of the port that PFC pauses now.
  std::uint32_t pfc_paused(PortId port) const;
  std::uint64_t events_fingerprint() const;
  // PFC headroom of the link into `port ^ 1`'s node, by the formula in buffer_plan.cpp.
  Bytes computed_headroom(PortId port) const { return netsim::computed_headroom(state_, port); }
  std::vector<std::string> notes() const;
  std::vector<std::string> waiting(std::size_t limit) const;
  // Ports that wait for each other in a circle, so that no packet in them can ever move; empty while there
  // are none. Found at most 1.5 ms (or 6 times the longest link's delay) after the last of them was paused,
  // when the engine is stopped.
  const std::vector<PortId>& deadlock() const { return deadlock_.circle(); }

 private:
  void check_routing(const ConfigNode& node) const;
  void gather_down();
  void check_circles(const ConfigNode& node);
  std::string find_circles() const;
  void build_choices(std::uint64_t seed);
  void build_ports(std::uint64_t seed);
  void build_port(PortId port, const Marker& marker);
  // Markers of rules, by tier.
  struct Markers {
    std::unique_ptr<Marker> common;
    std::map<int, std::unique_ptr<Marker>> tiers;
  };
  static Markers make_markers(const SwitchRules& rules);
  void build_parts(const Partition& partition);

  Engine& engine_;
  const Graph& graph_;
  std::uint64_t seed_;
  std::unique_ptr<RoutingPolicy> routing_;
  DeadlockCheck deadlock_check_;
  bool circuits_move_;                  // CircuitSwitching::moves_packets
  std::vector<std::string> circles_;    // notes
  std::uint32_t routes_looked_at_ = 0;  // for such circles, besides those of the start
  FabricState state_;
  std::vector<std::unique_ptr<FabricShard>> parts_;
  LinkFaults faults_;
  DeadlockSearch deadlock_;
  CircuitSwitching circuits_;
  std::vector<bool> down_;
  std::function<void()> routes_changed_;
};

}  // namespace netsim
