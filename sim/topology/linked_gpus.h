// GPUs that are neighbours in a fabric without packet switches of its own: a torus, servers joined directly.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/topology/topology.h"

namespace netsim {

// Endpoints that know such neighbours implement this, too.
class KnowsLinkedGpus {
 public:
  virtual ~KnowsLinkedGpus() = default;
  // Returns linked_gpus() of its cluster.
  virtual std::vector<std::vector<std::uint32_t>> linked_gpus() const = 0;
};

// Returns, by GPU, those at whose fabric switch a link from its own fabric switch ends, in rising order. Only
// switches with the NIC of one GPU each count; circuits count as they are at the start.
std::vector<std::vector<std::uint32_t>> linked_gpus(const Cluster& cluster);

}  // namespace netsim
