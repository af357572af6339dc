// FoldedClos: trees of switches whose upper tiers stand several times, for all fabrics of this family: fat
// trees, leaf-spine, rail-optimized. They are the parallel-ports generalized fat trees of Zahavi (Fat-trees
// routing and node ordering providing contention free traffic for MPI global collectives, JPDC 2012): a
// switch of tier t has `down` children; each child is joined to `up` different switches of tier t, with
// `links` links to each. All of a tier's shortest ways upward are equal; downward there is one switch.
//
// Next hops are arithmetic: nothing is stored but a port for each NIC.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/topology/topology.h"

namespace netsim {

struct ClosTier {
  std::string name;        // of its switches: "edge"
  std::uint32_t down = 1;  // children of a switch: host ports in the lowest tier
  std::uint32_t up = 1;  // switches of this tier above a child; 1 in the lowest tier, whose children are NICs
  std::uint32_t links = 1;  // to each of them; 1 in the lowest tier
  LinkSpec link;            // to the children
};

struct ClosShape {
  std::vector<ClosTier> tiers;  // from below
  // Copies of the tree with no link between them: a NIC is joined to plane (rail mod planes).
  std::uint32_t planes = 1;
  // Rails of a plane: each NIC of a host is at another lowest switch, the rail's of its group of hosts, which
  // are as many as a lowest switch has host ports (NVIDIA DGX SuperPOD reference architecture:
  // rail-optimized). 1: NICs take the host ports one after the other.
  std::uint32_t rails = 1;

  // Host ports below one switch of the tier; of a plane for the last one.
  std::uint64_t below(std::size_t tier) const;
  // Switches of the tier in a plane.
  std::uint64_t switches(std::size_t tier) const;
  std::uint64_t host_ports() const { return planes * below(tiers.size() - 1); }
  // ConfigError at `where` for more host ports or switches than any cluster has, and for rails that the
  // lowest switches cannot be dealt out to.
  void check(const ConfigNode& where) const;
};

// The topology of that shape. `where`: the section, for errors about hosts that do not fit the rails.
std::unique_ptr<Topology> folded_clos(const ClosShape& shape, const ConfigNode& where);

// `ports` over the ratio, which must come out whole: uplinks of a switch. ConfigError at the entry `key`.
std::uint32_t divide_exactly(std::int64_t ports, double ratio, const ConfigNode& where, const char* key);

}  // namespace netsim
