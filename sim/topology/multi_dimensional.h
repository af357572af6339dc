// MultiDimensional: products of rings, full meshes and switches. The nodes of a grid are joined along each
// dimension as that dimension's shape says (the hierarchical topologies of ASTRA-sim: Won et al., ISPASS
// 2023). Each host has a router; switches of a dimension are atoms of their own.
//
// Routes go in the order of the dimensions, by arithmetic. Along a ring they take the shorter side, and
// change their virtual channel after the dateline, the link that closes the ring. So lossless traffic has no
// deadlock (Dally and Seitz, IEEE Transactions on Computers, 1987).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/core/config.h"
#include "sim/topology/topology.h"

namespace netsim {

struct GridDimension {
  enum class Shape : std::uint8_t { ring, full_mesh, star };
  Shape shape = Shape::ring;
  std::uint32_t size = 1;  // number of nodes along it
  LinkSpec link;           // between neighbours, or between a node and its switch
};

// Creates the topology. The first dimension varies fastest in the numbers of the host ports. Throws a
// ConfigError at `where` for more host ports than the limit.
std::unique_ptr<Topology> multi_dimensional(std::vector<GridDimension> dimensions, const ConfigNode& where);

}  // namespace netsim
