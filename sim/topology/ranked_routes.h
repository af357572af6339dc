// Routes of fabrics whose links have ranks: a packet keeps its virtual channel as long as it goes on to links
// of higher rank, and takes the next channel with every hop that does not. So channel and rank together rise
// all along a way, and no circle of packets can wait for each other, whatever the ways, while there are
// channels enough.
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
  // When all links are there. The switches are the nodes from first_switch on; `ranks`: of all ports between
  // them, which are the graph's last ones. `given_channels`: 0: as many as are needed.
  RankedRoutes(const Graph& graph, NodeId first_switch, std::span<const HostPort> nics,
               std::vector<std::uint8_t> ranks, std::uint32_t given_channels);

  // Next hops to another switch, the destination's or at the intermediate, by their numbers; in a stable
  // place.
  virtual std::span<const PortId> hops_to(std::uint32_t at, std::uint32_t to) const = 0;
  virtual std::span<const PortId> hops_to_via(std::uint32_t at, std::uint32_t via) const = 0;

  // Of a switch, or of the one that a NIC is at.
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
  std::vector<std::uint32_t> switch_of_;  // by node of a NIC
  std::vector<PortId> up_, down_;         // likewise: to its switch, and back
};

}  // namespace netsim
