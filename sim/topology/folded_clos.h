// FoldedClos: trees of switches whose upper tiers exist several times. It serves all fabrics of this family:
// fat trees, leaf-spine, rail-optimized. They are the parallel-ports generalized fat trees of Zahavi
// (Fat-trees routing and node ordering providing contention free traffic for MPI global collectives, JPDC
// 2012).
// A switch of tier t has `down` children. Each child is joined to `up` different switches of tier t, with
// `links` links to each. All shortest routes upward are equal; downward there is one switch.
//
// Next hops are computed by arithmetic; only one port per NIC is stored.
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
  std::string name;        // name of its switches, "edge"
  std::uint32_t down = 1;  // children of a switch; in the lowest tier its host ports
  // Switches of this tier above each child. 1 in the lowest tier, whose children are NICs.
  std::uint32_t up = 1;
  std::uint32_t links = 1;  // to each of those switches; 1 in the lowest tier
  LinkSpec link;            // to a child
};

struct ClosShape {
  std::vector<ClosTier> tiers;  // from the lowest to the highest
  // Number of copies of the tree, with no link between them. A NIC is joined to plane rail % planes.
  std::uint32_t planes = 1;
  // Number of rails of a plane. Each NIC of a host is joined to a different lowest switch: its rail's in the
  // host's group. A group has as many hosts as a lowest switch has host ports (NVIDIA DGX SuperPOD reference
  // architecture: rail-optimized). 1: NICs take the host ports one after the other.
  std::uint32_t rails = 1;

  // Returns the host ports below one switch of the tier; for the highest tier, all host ports of a plane.
  std::uint64_t below(std::size_t tier) const;
  // Returns the number of the tier's switches in a plane.
  std::uint64_t switches(std::size_t tier) const;
  std::uint64_t host_ports() const { return planes * below(tiers.size() - 1); }
  // Throws a ConfigError at `where` for more host ports or switches than the limit. Also throws it for lowest
  // switches that cannot be divided equally among the rails.
  void check(const ConfigNode& where) const;
};

// Returns the topology of that shape. `where` is its section, for errors about hosts that do not fit the
// rails.
std::unique_ptr<Topology> folded_clos(const ClosShape& shape, const ConfigNode& where);

// Returns ports / ratio, a switch's uplinks, which must be an integer. Throws a ConfigError at the entry
// `key` otherwise.
std::uint32_t divide_exactly(std::int64_t ports, double ratio, const ConfigNode& where, const char* key);

}  // namespace netsim
