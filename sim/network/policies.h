// Per-packet policies as components. Each is compiled at build-up to plain data in the port, so that a packet
// pays no virtual call: a marker becomes a RED line, a queue discipline a plan, a routing policy choices when
// a path is made, or a plan that switches follow for each packet.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/units.h"
#include "sim/network/flow_hash.h"
#include "sim/topology/routes.h"

namespace netsim {

// ECN marking of one port: probability 0 up to kmin, rising linearly to pmax at kmax, 1 above. Queue lengths
// in bytes of the priority's queue, without the packet in question. kmin = INT64_MAX: never.
struct RedLine {
  Bytes kmin = INT64_MAX;
  Bytes kmax = INT64_MAX;
  double pmax = 0;
  bool at_enqueue = false;  // decided when the packet joins the queue; false: when it leaves, on what remains
};

class Marker {
 public:
  static constexpr const char* kComponentKind = "marker";
  virtual ~Marker() = default;
  virtual RedLine compile(BitRate rate) const = 0;
};

// How packets find their ways, as plain data.
struct RoutingPlan {
  // Among the hops that a packet may take.
  enum class Choice : std::uint8_t {
    per_flow,     // not packet by packet: a flow takes the path that choose() or fixed_path() gives
    random,       // a hop by chance
    round_robin,  // the hops in turn, packet by packet, per switch
    least_loaded  // that with the fewest bytes before it; ties in turn
  };
  // Whether they are led over an intermediate first (Routes::intermediates).
  enum class Detour : std::uint8_t {
    never,
    always,     // one by chance
    if_shorter  // one by chance, where queue x hops that way are fewer than straight on, at the first switch
  };
  Choice choice = Choice::per_flow;
  Detour detour = Detour::never;
  Bytes bias = 0;  // Detour::if_shorter: added to the detour's queue

  bool per_packet() const { return choice != Choice::per_flow; }
  // Whether packets have to remember an intermediate.
  bool detours() const { return per_packet() && detour != Detour::never; }
  Freedom freedom() const {
    if (detour != Detour::never) return Freedom::detours;
    return per_packet() ? Freedom::adaptive : Freedom::none;
  }
};

// Where equal next hops are open to a flow.
struct Branch {
  NodeId at = kNoId;                   // a fabric switch, or the NIC that sends
  NodeId destination = kNoId;          // the NIC that receives
  std::uint64_t flow = 0;              // hash of what identifies the flow on the wire (the five-tuple)
  std::uint64_t seed = 0;              // the switch's own
  std::span<const PortId> ports = {};  // of the hops, at least one; twice where two channels of it are open
};

class RoutingPolicy {
 public:
  static constexpr const char* kComponentKind = "routing_policy";
  virtual ~RoutingPolicy() = default;
  virtual RoutingPlan compile() const { return {}; }
  // Takes from the graph what choices need; ConfigError where what was prescribed does not fit it. Called
  // once, before any flow.
  virtual void prepare(const Graph& /*graph*/) {}
  // Which of the branch's hops the flow takes; also what acknowledgements take where packets are spread.
  // Called by several threads.
  virtual std::uint32_t choose(const Branch& branch) const {
    return choose_by_hash(branch.flow, branch.seed, static_cast<std::uint32_t>(branch.ports.size()));
  }
  // Names of the switches on a prescribed way between two NICs, in order; nullptr: choose() decides.
  virtual const std::vector<std::string>* fixed_path(const std::string& /*from*/,
                                                     const std::string& /*to*/) const {
    return nullptr;
  }
  // The two ends of all prescribed ways.
  virtual std::vector<std::pair<std::string, std::string>> fixed_ends() const { return {}; }
  // Whether a flow leaves its prescribed way, for one that choose() gives, while a link of it is known to be
  // down.
  virtual bool leaves_fixed_path() const { return false; }
};

// Data classes of a network (priorities of Ethernet, virtual lanes of InfiniBand).
inline constexpr std::uint32_t kMaxClasses = 6;

// How a port chooses among its data classes. Link control and congestion notifications always go first.
struct DisciplinePlan {
  enum class Kind : std::uint8_t { strict, deficit_round_robin, vl_arbitration };
  struct Share {
    std::uint8_t traffic_class = 0;
    Bytes bytes = 0;  // that it may send in a turn
  };
  Kind kind = Kind::strict;
  std::vector<Share> shares;       // of deficit round robin; of vl_arbitration's low-priority table
  std::vector<Share> high_shares;  // vl_arbitration: its high-priority table
  Bytes high_limit = INT64_MAX;  // vl_arbitration: high-priority bytes after which a low-priority packet goes
};

class QueueDiscipline {
 public:
  static constexpr const char* kComponentKind = "queue_discipline";
  virtual ~QueueDiscipline() = default;
  virtual DisciplinePlan compile(std::uint32_t classes) const = 0;
};

}  // namespace netsim
