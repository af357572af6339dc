// HostRoutes: the routes inside a host, from GPU to GPU and from GPU to NIC, over the graph that the host's
// kind builds. They are computed once for a kind, because all hosts of a kind are built alike. Nodes and
// ports are counted from the host's first ones.
//
// Routes from GPU to GPU are those that NCCL takes, in this order (src/graph/paths.cc of NCCL 2.x, path types
// NVL, NVB, PIX to SYS).
// - NVLink: direct links or NVSwitches, the fewest links; of equal ones the widest.
// - NVLink through one other GPU, the widest; equal ones take turns. NCCL never forwards through two GPUs.
// - PCIe: switches and CPUs; fewest crossings from CPU to CPU, then fewest links, then the widest.
// Where none of these exists, messages take NICs and a fabric.
//
// From GPU to NIC, messages take PCIe. The exception is a route that passes a CPU, or is narrower than the
// route of a GPU nearer to the NIC. Then they go over NVLink to that GPU and leave by its PCIe port: NCCL's
// PXN (ncclTopoComputePaths in src/graph/paths.cc, since 2.12). From NIC to GPU, messages take PCIe alone, as
// in NCCL.
//
// A GPU copies to its host's memory over PCIe to the nearest CPU, by the same order.
//
// Several NVLinks between the same two GPUs are one link with the sum of their rates. NCCL opens channels
// until all links are used, and gives each channel the same share of every chunk. Here these channels move in
// lockstep and are timed as one message (collectives/library/chunking.h), which would use only one of
// several links.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/topology/graph.h"

namespace netsim {

struct HostBuild;

enum class HostWayKind : std::uint8_t { none, nvlink, pcie };

class HostRoutes {
 public:
  struct GpuRoute {
    HostWayKind kind = HostWayKind::none;
    std::vector<PortId> ports;  // of the links, in order along the route
    Time delay = 0;             // sum of the links' delays
  };
  struct NicRoute {
    NodeId nic = 0;
    std::vector<PortId> ports;  // from the GPU to the NIC; empty: both are one node
    std::vector<PortId> back;   // from the GPU to the NIC; received messages take the reverse
  };

  HostRoutes() = default;
  // Computes the routes of a host whose nodes and ports are those of the graph from first_node and first_port
  // on.
  HostRoutes(const Graph& graph, const HostBuild& host, NodeId first_node, PortId first_port);

  // Returns the route from one GPU to another. From a GPU to itself, it is the route to its CPU, or `none`
  // where the host's graph has no CPU that it reaches.
  const GpuRoute& between(std::uint32_t from, std::uint32_t to) const { return gpu_ways_[from * gpus_ + to]; }
  // Returns the NICs of a fabric (by Host::fabrics()), the nearest first. NICs over PCIe without a CPU come
  // first, then NICs over NVLink and a GPU near the NIC, then NICs over CPUs. Among these the order is:
  // fewest crossings from CPU to CPU, fewest links, widest; GPUs take equal ones in turn. Last are NICs that
  // only the PCIe of other GPUs reaches, over NVLink; a GPU without NICs has only these.
  std::span<const NicRoute> nics(std::uint32_t gpu, std::uint32_t fabric) const {
    return nic_ways_[gpu * fabrics_ + fabric];
  }
  // Returns how many of nics(), from the first on, are equally near.
  std::uint32_t nearest(std::uint32_t gpu, std::uint32_t fabric) const {
    return nearest_[gpu * fabrics_ + fabric];
  }

 private:
  std::uint32_t gpus_ = 0, fabrics_ = 0;
  std::vector<GpuRoute> gpu_ways_;               // by from * gpus + to
  std::vector<std::vector<NicRoute>> nic_ways_;  // by gpu * fabrics + fabric
  std::vector<std::uint32_t> nearest_;           // by gpu * fabrics + fabric
};

// Returns the route in the opposite direction.
std::vector<PortId> reversed(std::span<const PortId> ports);

}  // namespace netsim
