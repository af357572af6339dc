// Routes of fabrics whose links have ranks. A packet keeps its virtual channel as long as the next link has a
// higher rank, and takes the next channel with every other hop. So the pair (channel, rank) rises along a
// route, and no cycle of packets can wait for each other while there are enough channels. This holds for any
// routes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/topology/routes.h"
#include "sim/topology/topology.h"

namespace netsim {

class RankedRoutes : public Routes {
 public:
  std::span<const PortId> next_hops(NodeId at, NodeId destination) const final;
  void add_hops(const Waypoint& packet, std::vector<Hop>& hops) const final;

 protected:
  // Must be called when all links have been added. The switches are the nodes from first_switch on. `ranks`
  // are those of all ports between them, which must be the last ports of the graph. `given_channels` = 0: as
  // many channels as needed.
  RankedRoutes(const Graph& graph, NodeId first_switch, std::span<const HostPort> nics,
               std::vector<std::uint8_t> ranks, std::uint32_t given_channels);

  // Return the next hops to another switch: the destination's, or those of the intermediate `via`. Switches
  // are counted from first_switch. The spans must stay valid.
  virtual std::span<const PortId> hops_to(std::uint32_t at, std::uint32_t to) const = 0;
  virtual std::span<const PortId> hops_to_via(std::uint32_t at, std::uint32_t via) const = 0;

  // Returns the number of a switch, or of the switch that a NIC is joined to.
  std::uint32_t switch_of(NodeId node) const {
    return node < first_switch_ ? switch_of_[node] : node - first_switch_;
  }
  std::uint32_t given_channels() const { return given_; }

 private:
  std::uint8_t rank(PortId port) const { return ranks_[port - first_port_]; }
  std::uint32_t channel(const Hop& came, PortId next) const;

  NodeId first_switch_;
  PortId first_port_;
  std::uint32_t given_;
  std::vector<std::uint8_t> ranks_;
  std::vector<std::uint32_t> switch_of_;  // by node, of NICs
  std::vector<PortId> up_, down_;         // by node, of NICs: the port to its switch, and back
};

}  // namespace netsim
