// HostWays: finds the ways of a message out of its source's host, for splits. Private to
// sim/scheduling/flow.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/ids.h"
#include "sim/core/index.h"
#include "sim/scheduling/flow/flow_splitter.h"
#include "sim/topology/topology.h"

namespace netsim {

// HostWay: a way, and how its share is addressed.
struct HostWay {
  SplitWay view;  // without `others` and `measured`
  // The GPU at which the share leaves the fabric. It is the destination, or a GPU of the destination's host
  // that passes the share on over NVLink.
  GpuId at;
  std::uint32_t lane = kNoIndex;  // Cluster::lane_over() of a way over PCIe; kNoIndex: the message's own
};

class HostWays {
 public:
  // `cluster` must outlive this.
  explicit HostWays(const Cluster& cluster);

  // Returns the ways of messages of `lane` from one GPU to another whose way is HostRouteKind::packets, the
  // own way first. Then come those over NVLink, by the GPU's number, first those between NICs of one rail.
  // Last are those over PCIe, the nearest NIC first. Each NIC of the source's host is in at most one way.
  //
  // On the destination's host, ways end at NICs where no other way ends, as long as there are some. A NIC of
  // the same rail as the sending one comes first, then the destination's own, then those of other GPUs. Any
  // thread may call it.
  std::vector<HostWay> between(GpuId source, GpuId destination, std::uint32_t lane,
                               const SplitSettings& settings) const;

 private:
  class Search;

  const Cluster& cluster_;
  std::vector<std::uint32_t> rails_;  // by node: HostPort::rail of a NIC; kNoIndex: the node is not a NIC
};

}  // namespace netsim
