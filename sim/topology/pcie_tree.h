// The PCIe tree of a server: CPUs, PCIe switches, GPUs and NICs. Several host kinds use it.
#pragma once

#include <cstdint>
#include <span>

#include "sim/topology/host_links.h"
#include "sim/topology/topology.h"

namespace netsim {

struct PcieTree {
  std::uint32_t cpus;      // every pair of them is joined
  std::uint32_t switches;  // divided among the CPUs in blocks
  std::uint32_t gpus;      // divided among the switches in blocks
  std::uint32_t nics;      // divided among the switches in blocks
};

// Adds a host (one atom) with such a tree. GPUs and NICs are numbered by switch.
HostBuild build_pcie_tree(Graph& graph, std::uint32_t host_index, const PcieTree& tree,
                          const PcieTreeParameters& p, std::span<const std::uint32_t> numbers);

}  // namespace netsim
