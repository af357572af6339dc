// SwitchRouter: the decisions of a custom routing policy at one switch: which of the equal next hops a data
// packet takes. RoutingPolicy::make_switch() creates one for each switch.
//
// It may keep any state of its switch and is called by one thread at a time. It must be deterministic and
// must not allocate after its construction.
#pragma once

#include <cstdint>
#include <span>

#include "sim/core/random.h"
#include "sim/core/units.h"
#include "sim/network/packet_view.h"
#include "sim/topology/graph.h"
#include "sim/topology/routes.h"

namespace netsim {

class PortArbiter;
struct FabricState;

// The switch for which a router is created.
struct SwitchContext {
  const Graph& graph;
  NodeId node = kNoId;
  RandomStream random;  // the object's own stream of random numbers
};

// The state of one of the switch's own ports.
struct PortLoad {
  bool stopped = false;  // the packet's class is paused or without credits, or the port's circuit is down
  Bytes waiting = 0;     // bytes in all queues of the port
  Time busy = 0;         // time until the port has sent what it sends now
};

// The next hops that a packet may take.
class NextHops {
 public:
  NextHops(const FabricState& state, const PortArbiter& ports, std::span<const Hop> hops,
           std::uint8_t priority)
      : state_(state), ports_(ports), hops_(hops), priority_(priority) {}

  std::uint32_t size() const { return static_cast<std::uint32_t>(hops_.size()); }
  PortId port(std::uint32_t hop) const { return hops_[hop].port; }
  std::uint32_t channel(std::uint32_t hop) const { return hops_[hop].channel; }
  PortLoad load(std::uint32_t hop) const;

 private:
  const FabricState& state_;
  const PortArbiter& ports_;
  std::span<const Hop> hops_;
  std::uint8_t priority_;
};

class SwitchRouter {
 public:
  virtual ~SwitchRouter() = default;
  // Returns the index, below hops.size(), of the hop that the packet takes. It is called for every data
  // packet that has two or more next hops. `destination` is a NIC.
  //
  // ACKs and NACKs take the way of RoutingPolicy::choose(), unless circuits come and go.
  virtual std::uint32_t choose(const PacketView& packet, NodeId destination, const NextHops& hops,
                               Time now) = 0;
};

}  // namespace netsim
