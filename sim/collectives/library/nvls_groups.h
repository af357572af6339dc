// NvlsGroups: the multicast groups that communicators hold at NVSwitches, where hosts or racks limit their
// number (nvls_groups of the host).
//
// A communicator is a list of GPUs of a job. It takes groups at its first collective that NVLS could run, and
// at the NVSwitches of all its domains or at none. One that gets none never tries again, as NCCL disables
// NVLS for a communicator (src/transport/nvls.cc).
//
// A job that ends gives back the groups of its communicators. Which communicators get groups follows from the
// order of events, so such runs have one logical process.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/core/ids.h"
#include "sim/topology/graph.h"
#include "sim/transport/endpoint.h"

namespace netsim {

// The reason for which a collective does not run by NVLS where groups are used up, as tables have it.
inline constexpr const char* kNoNvlsGroups = "the NVSwitches have no multicast group left (nvls_groups)";

class NvlsGroups {
 public:
  // A communicator takes `each` groups of an NVSwitch.
  NvlsGroups(const Endpoint& endpoint, std::int64_t each)
      : endpoint_(endpoint), each_(each), limited_(each > 0 && endpoint.limits_multicast()) {}

  bool limited() const { return limited_; }
  // Returns whether the communicator has groups. The first call for it takes them.
  bool take(JobId job, const std::vector<GpuId>& members);
  // Returns whether the communicator has groups or has not asked for any yet.
  bool may_have(JobId job, const std::vector<GpuId>& members) const;
  // Returns the number of groups of a switch that communicators hold.
  std::int64_t held(NodeId node) const;
  // Called when a job has ended.
  void end_job(JobId job);

 private:
  std::vector<MulticastSwitch> switches_of(const std::vector<GpuId>& members) const;

  const Endpoint& endpoint_;
  std::int64_t each_;
  bool limited_;
  std::map<NodeId, std::int64_t> held_;
  // By communicator, whether it has groups.
  std::map<std::pair<JobId, std::vector<GpuId>>, bool> communicators_;
  std::map<JobId, std::vector<NodeId>> nodes_of_job_;  // a node for each communicator that has groups there
};

}  // namespace netsim
