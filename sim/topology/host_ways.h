// HostWays: the ways inside a host, from GPU to GPU and from GPU to NIC, over the graph that its kind builds.
// Found once for a kind, because all hosts of a kind are built alike: nodes and ports are counted from the
// host's first ones.
//
// From GPU to GPU, what NCCL would take (src/graph/paths.cc of NCCL 2.x, path types NVL, NVB, PIX to SYS):
//  1. NVLink: direct links or NVSwitches, the fewest links; of equal ones the widest.
//  2. NVLink by way of one other GPU, the widest; equal ones take turns. Never of two: NCCL forwards once.
//  3. PCIe: switches and CPUs, the fewest crossings from CPU to CPU, then the fewest links, then the widest.
// Where there is none of these, messages take NICs and a fabric.
//
// From GPU to NIC PCIe is taken, unless it passes a CPU or is narrower than that of a GPU nearer to the NIC.
// Then messages go over NVLink to that GPU and leave by its PCIe port: NCCL's PXN (ncclTopoComputePaths in
// src/graph/paths.cc, since 2.12). From NIC to GPU PCIe alone is taken, as there.
//
// To its host's memory a GPU copies over PCIe to the nearest CPU, by the same order.
//
// Several NVLinks between the same two GPUs are one link with the sum of their rates. NCCL opens channels
// until all links are used and gives each the same share of every chunk; here these channels move in lockstep
// and are timed as one message (collectives/execution/chunking.h), which would use one of several links only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/topology/graph.h"

namespace netsim {

struct HostBuild;

enum class HostWayKind : std::uint8_t { none, nvlink, pcie };

class HostWays {
 public:
  struct GpuWay {
    HostWayKind kind = HostWayKind::none;
    std::vector<PortId> ports;  // of the links in turn
    Time delay = 0;             // of the links together
  };
  struct NicWay {
    NodeId nic = 0;
    std::vector<PortId> ports;  // from the GPU to the NIC; none: they are one node
    std::vector<PortId> back;   // received messages take these the other way round
  };

  HostWays() = default;
  // Of a host whose nodes and ports are those of the graph from these on.
  HostWays(const Graph& graph, const HostBuild& host, NodeId first_node, PortId first_port);

  // From a GPU to itself: the way to its CPU, `none` where the host's graph has no CPU that it reaches.
  const GpuWay& between(std::uint32_t from, std::uint32_t to) const { return gpu_ways_[from * gpus_ + to]; }
  // Returns the NICs of a fabric (by Host::fabrics()), the nearest first. NICs by PCIe without a CPU come
  // first, then those by NVLink and a GPU near the NIC, then those by CPUs. Among these the order is: fewest
  // crossings from CPU to CPU, fewest links, widest; equal ones take turns from GPU to GPU. Last are NICs
  // that only the PCIe of other GPUs reaches, over NVLink, which is all that a GPU without NICs has.
  std::span<const NicWay> nics(std::uint32_t gpu, std::uint32_t fabric) const {
    return nic_ways_[gpu * fabrics_ + fabric];
  }
  // How many of them, from the first on, are equally near.
  std::uint32_t nearest(std::uint32_t gpu, std::uint32_t fabric) const {
    return nearest_[gpu * fabrics_ + fabric];
  }

 private:
  std::uint32_t gpus_ = 0, fabrics_ = 0;
  std::vector<GpuWay> gpu_ways_;               // from * gpus + to
  std::vector<std::vector<NicWay>> nic_ways_;  // gpu * fabrics + fabric
  std::vector<std::uint32_t> nearest_;         // likewise
};

// The same way in the other direction.
std::vector<PortId> reversed(std::span<const PortId> ports);

}  // namespace netsim
