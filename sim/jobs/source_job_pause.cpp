// Pauses of a whole job between two iterations, its move to other GPUs, and its release when it has ended.
#include <algorithm>
#include <utility>

#include "sim/jobs/source_job.h"

namespace netsim::source_job {

// A rank has begun the iteration that it has not ended, and perhaps tasks of later ones.
std::optional<std::uint32_t> SourceJob::hold() {
  std::uint32_t first = 0;
  for (RankId rank = 0; rank < ranks_.size(); ++rank) {
    const std::uint32_t open = source().open_iteration(rank);
    if (open != TaskSource::kNoIteration) first = std::max(first, open + 1);
    for (const std::uint32_t slot : ranks_[rank].active)
      first = std::max(first, set_of(rank).active[slot].task.iteration + 1);
  }
  const auto all = source().iterations();
  if (first == 0 || (all && first >= *all)) return std::nullopt;
  hold_from_ = first;
  return first;
}

// Nothing of the job is in flight, so its groups may get their new GPUs in place.
void SourceJob::move(std::vector<GpuId> gpus, const ComputeTimes& times) {
  NETSIM_CHECK(
      std::all_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank.active.empty(); }),
      "a job moves while its tasks run");
  plan_.gpus = std::move(gpus);
  plan_.times = &times;
  for (auto& [id, group] : groups_) {
    for (const auto& [rank, index] : group.places) group.gpus[index] = plan_.gpus[rank];
  }
  assign_sets();
  statistics_.set_gpus(plan_.gpus);
}

void SourceJob::go_on() {
  hold_from_ = UINT32_MAX;
  for (SetState& set : sets_) set.cause = JobRecord::Cause::earliest_start;
  for (RankId rank = 0; rank < ranks_.size(); ++rank) {
    const std::vector<Task> held = std::exchange(ranks_[rank].held, {});
    if (!ranks_[rank].halted) post(rank, held);
  }
}

void SourceJob::release() {
  released_ = scheduling();
  statistics_.release();
  plan_.source->close();
  ranks_ = std::vector<RankState>();
  sets_ = std::vector<SetState>();
  groups_.clear();
}

void SourceJob::set_traffic(std::uint8_t priority, std::uint8_t traffic_class) {
  plan_.priority = priority;
  traffic_class_ = traffic_class;
}

}  // namespace netsim::source_job
