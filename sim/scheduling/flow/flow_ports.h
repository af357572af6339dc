// FlowPorts: finds the ports of the fabric that all packets between two GPUs pass, where switches choose for
// each packet. Private to sim/scheduling.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "sim/core/ids.h"
#include "sim/topology/topology.h"

namespace netsim {

class FlowPorts {
 public:
  // `cluster` must outlive this.
  explicit FlowPorts(const Cluster& cluster);
  // Returns the rate of each port's link, by PortId.
  std::span<const BitRate> rates() const { return rates_; }
  // Returns the ports from the NIC of `source` to that of `destination`, for packets of queue pair `lane`.
  // Where switches choose between several next hops, the ports up to the switch that all of these lead to are
  // left out. The span stays valid. Faults are not considered. Called between events.
  std::span<const PortId> between(GpuId source, GpuId destination, std::uint32_t lane);
  // Returns `path`, which Endpoint::path_of() gave for such packets, or between() where it gave none.
  std::vector<PortId> path_or_common(std::vector<PortId> path, GpuId source, GpuId destination,
                                     std::uint32_t lane);

 private:
  std::vector<PortId> walk(NodeId from, NodeId to) const;

  const Cluster& cluster_;
  std::vector<BitRate> rates_;
  std::map<std::pair<NodeId, NodeId>, std::vector<PortId>> known_;  // by the NICs
};

}  // namespace netsim
