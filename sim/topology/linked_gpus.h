// GPUs that are neighbours in a fabric without packet switches of its own, such as a torus or directly joined
// servers.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/ids.h"
#include "sim/topology/topology.h"

namespace netsim {

// Interface of endpoints that know such neighbours.
class KnowsLinkedGpus {
 public:
  virtual ~KnowsLinkedGpus() = default;
  // Returns linked_gpus() of its cluster.
  virtual std::vector<std::vector<GpuId>> linked_gpus() const = 0;
};

// Returns, for each GPU, the GPUs in ascending order whose fabric switch is linked to its own fabric switch.
// Only switches with the NIC of exactly one GPU count. Circuits count as they are at the start.
std::vector<std::vector<GpuId>> linked_gpus(const Cluster& cluster);

}  // namespace netsim
