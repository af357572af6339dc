#include "sim/collectives/library/nvls_groups.h"

#include <algorithm>

#include "sim/collectives/library/domains.h"

namespace netsim {

// Returns the NVSwitches of the communicator's domains. Domains without one have none.
std::vector<MulticastSwitch> NvlsGroups::switches_of(const std::vector<GpuId>& members) const {
  std::vector<MulticastSwitch> switches;
  for (const Domain& domain : domains_of(members, endpoint_)) {
    std::vector<GpuId> joined;
    joined.reserve(domain.places.size());
    for (const std::uint32_t place : domain.places) joined.push_back(members[place]);
    const MulticastSwitch one = endpoint_.multicast_switch({joined.front(), joined});
    if (one.node != kNoId) switches.push_back(one);
  }
  return switches;
}

bool NvlsGroups::take(JobId job, const std::vector<GpuId>& members) {
  if (!limited_) return true;
  const auto [communicator, is_new] = communicators_.try_emplace({job, members}, false);
  if (!is_new) return communicator->second;
  const std::vector<MulticastSwitch> switches = switches_of(members);
  const bool fits = std::all_of(switches.begin(), switches.end(), [&](const MulticastSwitch& one) {
    return one.groups == 0 || held(one.node) + each_ <= one.groups;
  });
  communicator->second = fits;
  if (!fits) return false;
  std::vector<NodeId>& nodes = nodes_of_job_[job];
  for (const MulticastSwitch& one : switches) {
    held_[one.node] += each_;
    nodes.push_back(one.node);
  }
  return true;
}

bool NvlsGroups::may_have(JobId job, const std::vector<GpuId>& members) const {
  const auto communicator = communicators_.find({job, members});
  return communicator == communicators_.end() || communicator->second;
}

std::int64_t NvlsGroups::held(NodeId node) const {
  const auto found = held_.find(node);
  return found == held_.end() ? 0 : found->second;
}

void NvlsGroups::end_job(JobId job) {
  const auto nodes = nodes_of_job_.find(job);
  if (nodes == nodes_of_job_.end()) return;
  for (const NodeId node : nodes->second) held_[node] -= each_;
  nodes_of_job_.erase(nodes);
}

}  // namespace netsim
