// Per-packet policies as components. Each is compiled at build-up to plain data in the port, so that a packet
// pays no virtual call: a marker becomes a RED line, a queue discipline a plan, a routing policy a choice
// among equal next hops when a path is made, or a rule that switches apply to each packet.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/units.h"

namespace netsim {

class Graph;

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

// How a switch chooses a next hop for each single packet, where it does.
enum class PacketRouting : std::uint8_t {
  per_flow,     // not: the packets of a flow take the path that choose() or fixed_path() gives
  random,       // a port by chance
  round_robin,  // the ports in turn, packet by packet, per switch
  adaptive      // the port with the fewest bytes before it; ties in turn
};

class RoutingPolicy {
 public:
  static constexpr const char* kComponentKind = "routing_policy";
  virtual ~RoutingPolicy() = default;
  virtual PacketRouting per_packet() const { return PacketRouting::per_flow; }
  // Which of `count` equal next hops a flow takes at a switch. `flow`: hash of what identifies the flow on
  // the wire (the five-tuple); `seed`: the switch's own.
  virtual std::uint32_t choose(std::uint64_t flow, std::uint64_t seed, std::uint32_t count) const = 0;
  // Names of the switches on a prescribed way between two NICs, in order; nullptr: choose() decides.
  virtual const std::vector<std::string>* fixed_path(const std::string& /*from*/,
                                                     const std::string& /*to*/) const {
    return nullptr;
  }
  // Whether a flow leaves its prescribed way, for one that choose() gives, while a link of it is known to be
  // down.
  virtual bool leaves_fixed_path() const { return false; }
  // ConfigError where what was prescribed does not fit the graph; called once, before any flow.
  virtual void check(const Graph& /*graph*/) const {}
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
