// The PCIe of a server: CPUs, PCIe switches, GPUs and NICs, for the host kinds that have them.
#pragma once

#include <cstdint>
#include <span>

#include "sim/topology/host_links.h"
#include "sim/topology/topology.h"

namespace netsim {

struct PcieTree {
  std::uint32_t cpus;      // joined with each other, every one with every other
  std::uint32_t switches;  // dealt out to the CPUs in blocks
  std::uint32_t gpus;      // dealt out to the switches in blocks
  std::uint32_t nics;      // likewise
};

// Adds a host (one atom) with these; GPUs and NICs are numbered by switch.
HostBuild build_pcie_tree(Graph& graph, std::uint32_t host_index, const PcieTree& tree,
                          const PcieTreeParameters& p, std::span<const std::uint32_t> numbers);

}  // namespace netsim
