// MultiDimensional: products of rings, full meshes and switches: the nodes of a grid are joined along each
// dimension as that dimension says (the hierarchical topologies of ASTRA-sim: Won et al., ISPASS 2023). A
// router stands at each host; switches of a dimension stand alone.
//
// Ways go in the order of the dimensions, by arithmetic. Round a ring they take the shorter side, and change
// their virtual channel where they have crossed the place where it closes (Dally and Seitz, IEEE Transactions
// on Computers, 1987), so lossless traffic has no deadlocks.
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
  std::uint32_t size = 1;  // nodes along it
  LinkSpec link;           // between neighbours, or between a node and its switch
};

// The first dimension varies fastest in the numbers of the host ports. ConfigError at `where` for more of
// them than any cluster has.
std::unique_ptr<Topology> multi_dimensional(std::vector<GridDimension> dimensions, const ConfigNode& where);

}  // namespace netsim
