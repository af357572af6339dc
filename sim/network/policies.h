// Per-packet policies as components. Each is compiled at build-up to plain data in the port, so that a packet
// pays no virtual call: a marker becomes a RED line, a routing policy a choice among equal next hops when a
// path is made.
#pragma once

#include <cstdint>

#include "sim/core/units.h"

namespace netsim {

// ECN marking of one port: probability 0 up to kmin, rising linearly to pmax at kmax, 1 above. Queue lengths
// in bytes of the priority's queue, without the packet in question. kmin = INT64_MAX: never.
struct RedLine {
  Bytes kmin = INT64_MAX;
  Bytes kmax = INT64_MAX;
  double pmax = 0;
};

class Marker {
 public:
  static constexpr const char* kComponentKind = "marker";
  virtual ~Marker() = default;
  virtual RedLine compile(BitRate rate) const = 0;
};

class RoutingPolicy {
 public:
  static constexpr const char* kComponentKind = "routing_policy";
  virtual ~RoutingPolicy() = default;
  // Which of `count` equal next hops a flow takes at a switch. `flow`: hash of what identifies the flow on
  // the wire (the five-tuple); `seed`: the switch's own.
  virtual std::uint32_t choose(std::uint64_t flow, std::uint64_t seed, std::uint32_t count) const = 0;
};

}  // namespace netsim
