// Fabric: ports, links and output-queued shared-buffer switches, packet by packet.
//
// A packet that finds its port idle starts transmission at once and costs one event per hop. A packet that
// waits costs a second event, when the port becomes free. A packet leaves the queue, the shared buffer and
// the ingress count when its transmission starts; decisions at dequeue (ECN, INT) see what remains.
//
// Each switch (an atom of kind fabric_switch) has one of three kinds of flow control.
//
// pfc: All ports share one buffer. Packets of a lossless class count against the link they came from. They
// use first its reserve, then the shared pool up to alpha x its free space, then the link's headroom.
//
// This limit is a dynamic threshold (Choudhury and Hahne, ToN 1998). Crossing it sends a PFC pause (IEEE
// 802.1Qbb) upstream, ahead of all waiting packets. Falling `resume_offset` below it sends the resume; pauses
// last until then.
//
// credits: Each link and class has its own buffer. A sender transmits only what it holds credits for, and
// gets them back when packets leave the buffer. Nothing is ever dropped (InfiniBand Architecture
// Specification 1.4, volume 1, section 7.9).
//
// none: Classes share the pool per egress queue, and packets above the threshold are dropped. Classes that
// are not lossless under pfc are handled in the same way.
//
// Ports outside switches (NICs, GPUs, NVSwitch stages) have unlimited buffer space, unless their links have
// credits.
//
// A FabricShard for each logical process handles the events. The Fabric builds and joins the shards. Between
// events it handles what concerns all of them: faults, the search for deadlocks, reports.
//
// fabric_shard.h lists the objects that handle events, and fabric_state.h holds the arrays they work on. See
// also buffer_plan.h (sizes of buffers), link_faults.h, deadlock_search.h, ideal_time.h and spread_time.h.
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
#include "sim/network/aggregation/number_format.h"
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
  // `node` is the section that `parameters` were read from, used in messages. `largest_packet` is the payload
  // and headers, in bytes, of the transport's largest packet. `scopes` lists the graph's packet fabrics if
  // their switches may differ.
  //
  // `routes` are the next hops while all links are up; null means that every packet follows a path made by
  // the caller.
  //
  // Throws ConfigError for values that do not fit together. Examples are headroom beyond the
  // buffer, unknown links in `faults`, and routes on which lossless packets can wait for each other in a
  // cycle.
  Fabric(Engine& engine, const Graph& graph, const Routes* routes, const Partition& partition,
         const FabricParameters& parameters, const ConfigNode& node, Bytes largest_packet, std::uint64_t seed,
         std::span<const FabricScope> scopes = {});
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  FabricShard& shard(std::uint32_t set) { return *shards_[set]; }
  // Sets the next hops for packets that are routed one by one. `routes` must outlive the fabric or the next
  // call. A note is written if lossless packets can wait for each other in a cycle; the first eight routes
  // are checked.
  void set_routes(const Routes* routes);
  // Registers the function that is called `detection_delay` after a link went down or came back. It is also
  // called when other circuits of optical switches are to carry packets. down_ports() then returns the ports
  // to avoid.
  void on_routes_changed(std::function<void()> call);
  // Makes the switches of fabrics with telemetry write INT into data packets. Must be called before the first
  // packet.
  void enable_telemetry();
  // Gives packets a place for a Telemetry without any switch writing INT, for time stamps only.
  void enable_timestamps();
  // Gives packets a place for a PacketTrace. Must be called before the first packet.
  void enable_traces();

  std::uint32_t classes() const { return state_.classes; }
  // Returns the number of virtual channels of each link. ordered_channels() leaves out the adaptive channel,
  // from which packets escape.
  std::uint32_t channels() const { return state_.channels; }
  std::uint32_t ordered_channels() const { return std::min(state_.channels, state_.adaptive_channel); }
  Bytes overhead(PortId port) const { return state_.ports[port].overhead; }
  // Adds a path and returns the index of its first step. The steps are ports first, then the step at the
  // destination. Several shards may call it at the same time.
  std::uint32_t add_path(const std::vector<std::uint32_t>& steps);
  // Overwrites the steps of a path with at most as many others. No packet may be on the path or take it
  // later.
  void replace_path(std::uint32_t first, const std::vector<std::uint32_t>& steps);
  bool path_begins_with(std::uint32_t first, const std::vector<std::uint32_t>& steps) const;
  // Returns the number of steps of all paths.
  std::size_t path_steps() const { return state_.paths.size(); }
  // Returns the ports at the beginning of the path that begins at `first`. The path must not contain virtual
  // channels.
  std::span<const PortId> ports_of_path(std::uint32_t first) const;
  // Returns the ports at the beginning of a path that may contain virtual channels.
  std::vector<PortId> ports_of_hops(std::uint32_t first) const;
  // Returns a step that makes every switch choose the packet's next hop, up to the NIC `destination`. The
  // path has the source's port before it, and the steps after it apply at the destination. Only if
  // routes_packets().
  //
  // set_route_step() stores the step's index in the paths; it must be called before a packet takes the step.
  // `flow` identifies the flow for policies that keep a flow on one way.
  std::uint32_t route_step(NodeId destination, std::uint64_t flow);
  void set_route_step(std::uint32_t step, std::uint32_t index);
  bool routes_packets() const { return state_.routes_packets; }
  // Returns whether acknowledgements are routed one by one too. They are while circuits come and go, because
  // then no path stays valid.
  bool routes_acknowledgements() const { return circuits_move_; }
  // Returns whether packets must carry a PacketTag.
  bool has_tags() const { return state_.tags; }
  // Returns whether packets of a flow may take different ways at the same time.
  bool spreads_flows() const { return state_.routing.per_packet(); }

  // Returns the parameters of a switch, with those of its tier.
  const SwitchParameters& switch_parameters(NodeId node) const { return state_.of_switch(node); }
  // Returns whether a node is a switch that adds up.
  bool adds_up(NodeId node) const { return adds_up_[node]; }
  // Returns the name of the first switch that adds up, but not numbers of this format; empty: all do.
  std::string lacks_format(NumberFormat format) const;
  // Returns the seed of the routing policy's choices. Each switch combines it with its Graph::node_number().
  std::uint64_t routing_seed() const { return seed_; }
  const RoutingPolicy& routing() const { return *routing_; }
  // Returns, by port, whether it is known to carry no traffic. Either its link is down (with flow control:
  // one direction of it), or it is a circuit that is down and not waited for.
  const std::vector<bool>& down_ports() const { return down_; }
  // Returns whether the port's link is known to be down by a fault.
  bool is_down(PortId port) const { return faults_.known_down()[port]; }
  // Returns when a link that is down went down by the fault schedule.
  Time down_since(PortId port) const;
  // Returns whether the port belongs to a circuit that is down.
  bool is_circuit_down(PortId port) const { return state_.pauses_of(port).circuit_down; }
  std::vector<bool> failing_ports() const { return faults_.failing(); }
  const FaultSchedule& fault_schedule() const { return faults_.schedule(); }
  CircuitSwitching& circuits() { return circuits_; }
  const CircuitSwitching& circuits() const { return circuits_; }
  // Returns the time of a message alone in the network; see ideal_time.h.
  Time ideal_time(std::span<const PortId> path, const PacketTrain& train, std::span<Time> waits = {}) const {
    return netsim::ideal_time(state_, path, train, waits);
  }
  // Return how long a packet is on the wire of the port's link, and from its start there until the far end
  // may forward it.
  Time wire_time(PortId port, Bytes bytes) const { return netsim::wire_time(state_, port, bytes); }
  Time passage_time(PortId port, Bytes bytes) const {
    return netsim::passage_time(state_, port, bytes, wire_time(port, bytes));
  }
  // Creates an object for one logical process; no other one may use it.
  SpreadTimes spread_times() const { return SpreadTimes(state_); }
  // Returns whether a packet may take any link of the fabric, because of detours or circuits that come and
  // go.
  bool leads_anywhere() const { return state_.routing.detours() || circuits_move_; }
  Time now() const { return engine_.now(); }
  // Returns a number that changes whenever answers of ideal_time() may change.
  std::uint64_t passage_changes() const { return state_.passage_changes; }
  bool at_switch(PortId port) const { return state_.at_switch(port); }
  BitRate rate(PortId port) const { return graph_.port(port).link.rate; }

  // Counters and state for tables, laws and reports. They may be called only between events.
  PortCounters counters(PortId port) const;
  Bytes queued(PortId port) const { return state_.queued(port); }
  // Returns the number of data classes of the port that PFC pauses now.
  std::uint32_t pfc_paused(PortId port) const;
  std::uint64_t events_fingerprint() const;
  // Returns the PFC headroom, in bytes, of the link on which `port` transmits, by the formula in
  // buffer_plan.cpp.
  Bytes computed_headroom(PortId port) const { return netsim::computed_headroom(state_, port); }
  std::vector<std::string> notes() const;
  std::vector<std::string> waiting(std::size_t limit) const;
  // Returns ports that wait for each other in a cycle, so that no packet in them can ever move; empty without
  // a deadlock. It is found at most 1.5 ms (or 6 times the longest link's delay) after the last port was
  // paused. The engine is then stopped.
  const std::vector<PortId>& deadlock() const { return deadlock_.cycle(); }

 private:
  void check_routing(const ConfigNode& node) const;
  void gather_down();
  void check_circles(const ConfigNode& node);
  std::string find_circles() const;
  void build_choices(std::uint64_t seed);
  void build_routers(std::uint64_t seed);
  void build_ports(std::uint64_t seed);
  void build_port(PortId port, const Marker& marker);
  void build_scheduler(PortId port, const QueueDiscipline& discipline, std::uint32_t queues,
                       const RandomStream& random);
  // Markers of a fabric's switches, common and by tier.
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
  std::vector<std::string> circles_;    // notes about cycles in which lossless packets can wait
  std::uint32_t routes_looked_at_ = 0;  // number of set_routes() checked for such cycles
  FabricState state_;
  std::vector<std::unique_ptr<FabricShard>> shards_;
  LinkFaults faults_;
  DeadlockSearch deadlock_;
  CircuitSwitching circuits_;
  std::vector<bool> down_;
  std::vector<bool> adds_up_;  // by node
  std::function<void()> routes_changed_;
};

}  // namespace netsim
