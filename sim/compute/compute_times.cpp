#include "sim/compute/compute_times.h"

namespace netsim {

const std::vector<KernelDemand>& TaskDemand::beside(std::uint32_t held) const {
  const std::lock_guard lock(mutex_);
  auto known = beside_.find(held);
  if (known == beside_.end()) known = beside_.emplace(held, model_.demands(work_, held)).first;
  return known->second;
}

}  // namespace netsim
