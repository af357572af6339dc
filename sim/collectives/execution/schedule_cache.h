// ScheduleCache: schedules by (kind, ranks, root), made by the chosen algorithm when they are first asked
// for, proved once, shared by all GPUs. One per executor.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "sim/collectives/execution/algorithm_choice.h"
#include "sim/collectives/schedule.h"

namespace netsim {

class ScheduleCache {
 public:
  using Key = std::tuple<CollectiveKind, std::uint32_t, std::uint32_t>;  // kind, ranks, root (0 without one)

  explicit ScheduleCache(const AlgorithmChoice& algorithms) : algorithms_(algorithms) {}
  // root < ranks; point-to-point has two ranks. Any thread may ask; the schedule lives as long as the cache.
  // InputError where the algorithm has a limit on ranks. A schedule that fails its proof is a mistake of its
  // algorithm (NETSIM_CHECK).
  const Schedule& get(CollectiveKind kind, std::uint32_t ranks, std::uint32_t root);

 private:
  const AlgorithmChoice& algorithms_;
  std::mutex mutex_;
  std::map<Key, std::unique_ptr<Schedule>> schedules_;
};

// The same for one set of GPUs, in front of the cache of all, so that asking again needs no lock.
class ScheduleLookup {
 public:
  explicit ScheduleLookup(ScheduleCache& cache) : cache_(cache) {}
  const Schedule& get(CollectiveKind kind, std::uint32_t ranks, std::uint32_t root);

 private:
  ScheduleCache& cache_;
  std::map<ScheduleCache::Key, const Schedule*> known_;
};

}  // namespace netsim
