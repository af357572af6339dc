// RecordedChoices: says how the collective library ran a communication that ended, and checks that it took at
// least the time that its links need.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/collectives/execution/executor.h"
#include "sim/core/ids.h"
#include "sim/jobs/job_set.h"
#include "sim/report/collective_bounds.h"
#include "sim/topology/topology.h"

namespace netsim {

class RecordedChoices {
 public:
  // `has_links` is false for `network: ideal`, which has no bounds. All arguments must outlive this.
  RecordedChoices(const JobSet& jobs, Executor& executor, const Cluster& cluster, bool has_links)
      : jobs_(jobs), executor_(executor), cluster_(cluster), has_links_(has_links) {}
  // Returns the library's choice; it is empty for messages and for groups of one rank. Throws InternalError
  // for a collective that ended earlier than its links allow.
  LibraryChoice choice(const CommunicationRecord& communication);

 private:
  void check_bound(const CommunicationRecord& communication, const LibraryChoice& choice);

  const JobSet& jobs_;
  Executor& executor_;
  const Cluster& cluster_;
  bool has_links_;
  std::vector<GpuId> members_;              // GPUs of the collective
  std::optional<CollectiveBounds> bounds_;  // made with the first collective
};

}  // namespace netsim
