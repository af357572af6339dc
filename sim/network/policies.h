// Policies that apply to each packet, as components: markers, queue disciplines and routing policies. Most
// are compiled to plain data before the run, so that packets cost no virtual call.
//
// A marker becomes a RED line in the port, a queue discipline a DisciplinePlan. A routing policy chooses when
// a path is made, or becomes a RoutingPlan that switches follow for each packet.
//
// A policy that such data cannot express is called for each packet. It gives each port a PortMarker or
// PortScheduler, or each switch a SwitchRouter. Only ports and switches with such an object pay for it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/units.h"
#include "sim/network/flow_hash.h"
#include "sim/network/port_marker.h"
#include "sim/network/port_scheduler.h"
#include "sim/network/switch_router.h"
#include "sim/topology/routes.h"

namespace netsim {

// ECN marking of one port. The probability is 0 up to kmin, rises linearly to pmax at kmax, and is 1 above.
// Lengths are bytes of the priority's queue without the packet itself; kmin = INT64_MAX never marks.
struct RedLine {
  Bytes kmin = INT64_MAX;
  Bytes kmax = INT64_MAX;
  double pmax = 0;
  // True: decided when the packet joins the queue. False: decided when it leaves, by the bytes that remain.
  bool at_enqueue = false;
  // True: Marker::make_port() makes an object for each port that decides instead.
  bool own = false;
};

class Marker {
 public:
  static constexpr const char* kComponentKind = "marker";
  virtual ~Marker() = default;
  virtual RedLine compile(BitRate rate) const = 0;
  // Returns the object that decides at one port. It is called, before the first packet, if compile() gives
  // RedLine::own.
  virtual std::unique_ptr<PortMarker> make_port(const PortContext&) const { return nullptr; }
};

// The way packets choose their hops, as plain data.
struct RoutingPlan {
  // The choice among the hops that a packet may take.
  enum class Choice : std::uint8_t {
    per_flow,      // not packet by packet: a flow takes the path of choose() or fixed_path()
    random,        // a random hop
    round_robin,   // the hops in turn, packet by packet, per switch
    least_loaded,  // the hop with the least PortArbiter::load(); equal ones in turn
    own            // the choice of the switch's SwitchRouter; not with Detour::if_shorter
  };
  // Whether packets first go to an intermediate (Routes::intermediates).
  enum class Detour : std::uint8_t {
    never,
    always,  // a random one
    // A random one, if queue x hops is smaller that way than on the direct way, at the first switch.
    if_shorter
  };
  Choice choice = Choice::per_flow;
  Detour detour = Detour::never;
  Bytes bias = 0;  // bytes added to the detour's queue, for Detour::if_shorter

  bool per_packet() const { return choice != Choice::per_flow; }
  // Returns whether packets must carry an intermediate.
  bool detours() const { return per_packet() && detour != Detour::never; }
  RoutingFreedom freedom() const {
    if (detour != Detour::never) return RoutingFreedom::detours;
    return per_packet() ? RoutingFreedom::adaptive : RoutingFreedom::none;
  }
};

// A place at which a flow may take any of several equal next hops.
struct Branch {
  NodeId at = kNoId;           // a fabric switch, or the NIC that sends
  NodeId destination = kNoId;  // the NIC that receives
  std::uint64_t flow = 0;      // hash of the flow's identity on the wire (the five-tuple)
  std::uint64_t seed = 0;      // the switch's own seed
  // Ports of the hops, at least one. A port appears twice if two channels of it may be used.
  std::span<const PortId> ports = {};
};

class RoutingPolicy {
 public:
  static constexpr const char* kComponentKind = "routing_policy";
  virtual ~RoutingPolicy() = default;
  virtual RoutingPlan compile() const { return {}; }
  // Returns the object that chooses at one switch. It is called, before the first packet, if compile() gives
  // RoutingPlan::Choice::own.
  virtual std::unique_ptr<SwitchRouter> make_switch(const SwitchContext&) const { return nullptr; }
  // Reads from the graph what choices need. Throws ConfigError if prescribed paths do not fit it. Called
  // once, before any flow.
  virtual void prepare(const Graph& /*graph*/) {}
  // Returns the index of the branch's hop that the flow takes. Acknowledgements use it too where packets are
  // spread. Several threads call it.
  virtual std::uint32_t choose(const Branch& branch) const {
    return choose_by_hash(branch.flow, branch.seed, static_cast<std::uint32_t>(branch.ports.size()));
  }
  // Returns whether path hints of messages (TransferTraits::path_hint) have an effect. Where flows keep one
  // path, a hint replaces choose() at switches (path.h).
  virtual bool takes_path_hints() const { return !compile().per_packet(); }
  // Returns the names of the switches, in order, on a prescribed way between two NICs. nullptr means that
  // choose() decides.
  virtual const std::vector<std::string>* fixed_path(const std::string& /*from*/,
                                                     const std::string& /*to*/) const {
    return nullptr;
  }
  // Returns the two ends of all prescribed ways.
  virtual std::vector<std::pair<std::string, std::string>> fixed_ends() const { return {}; }
  // Returns whether a flow leaves its prescribed way while a link of it is known to be down. It then takes
  // the way that choose() gives.
  virtual bool leaves_fixed_path() const { return false; }
};

// Largest number of data queues of a port: data classes (priorities of Ethernet, virtual lanes of InfiniBand)
// times virtual channels.
inline constexpr std::uint32_t kMaxClasses = 6;

// The order in which a port serves its data classes. Link control and congestion notifications always go
// first.
struct DisciplinePlan {
  enum class Kind : std::uint8_t { strict, deficit_round_robin, vl_arbitration };
  struct Share {
    std::uint8_t traffic_class = 0;
    Bytes bytes = 0;  // bytes that the class may send in a turn
  };
  Kind kind = Kind::strict;
  std::vector<Share> shares;       // for deficit_round_robin; for vl_arbitration the low-priority table
  std::vector<Share> high_shares;  // for vl_arbitration: the high-priority table
  // For vl_arbitration: high-priority bytes after which a waiting low-priority packet is served.
  Bytes high_limit = INT64_MAX;
  // Number of queues into which each class of a switch port is divided. Above 0 the port's PortScheduler
  // (QueueDiscipline::make_port()) orders packets there, and the rest of the plan applies to NICs only.
  std::uint32_t own_queues = 0;
};
inline constexpr std::uint32_t kMaxOwnQueues = 65536;

class QueueDiscipline {
 public:
  static constexpr const char* kComponentKind = "queue_discipline";
  virtual ~QueueDiscipline() = default;
  virtual DisciplinePlan compile(std::uint32_t classes) const = 0;
  // Returns the scheduler of one switch port. It is called, before the first packet, if compile() gives
  // DisciplinePlan::own_queues.
  virtual std::unique_ptr<PortScheduler> make_port(const PortContext&) const { return nullptr; }
};

}  // namespace netsim
