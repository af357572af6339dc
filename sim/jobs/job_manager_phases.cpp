// Communication phases of jobs and candidate placements, for job schedulers that ask for them.
#include <algorithm>
#include <utility>

#include "sim/jobs/job_manager.h"

namespace netsim {

void JobManager::open_phases() {
  if (environment_.phases == nullptr || !has_queue_) return;
  phases_.emplace(*environment_.phases);
  for (JobId job = 0; job < descriptions_.size(); ++job) give_phases(job);
}

// Enters the phases of the job's description, if it has any.
void JobManager::give_phases(JobId job) {
  const GivenPhases& given = descriptions_[job].phases;
  if (given.iteration == 0) return;
  std::vector<DemandArc> arcs;
  arcs.reserve(given.phases.size());
  for (const GivenPhase& phase : given.phases) arcs.push_back({phase.begin, phase.end, phase.rate});
  const TaskSource& source = *descriptions_[job].source;
  phases_->give(job, source.ranks() - source.storage_ranks(), given.iteration, std::move(arcs));
}

// Measures the phases of running jobs in the last iteration that each of them has completed on its GPUs.
void JobManager::measure_phases() {
  if (!phases_) return;
  std::vector<PhaseBook::RunningJob> running;
  for (const JobId job : live_) {
    const ManagedJob& state = states_[job];
    if (!state.holds_gpus()) continue;
    const std::vector<Time>& ends = jobs_.job(job).iteration_ends();
    PhaseBook::RunningJob run{job, jobs_.job(job).plan().gpus, 0, 0, state.iteration_begin(ends)};
    if (ends.size() > state.iterations_before) {
      run.end = ends.back();
      run.begin =
          ends.size() == state.iterations_before + std::size_t{1} ? state.went_on : ends[ends.size() - 2];
    }
    running.push_back(run);
  }
  phases_->measure(running);
}

// Returns different placements of the job, at most `most`. Each is what its placement finds if only the hosts
// from some host on have free GPUs. These first hosts are evenly spaced among the hosts with free GPUs.
std::vector<std::vector<GpuId>> JobManager::candidates(JobId job, std::uint32_t most) const {
  std::vector<std::vector<GpuId>> found;
  const JobDescription& description = descriptions_[job];
  if (description.source->storage_ranks() > 0 || cannot_fit(job)) return found;
  std::vector<HostId> hosts;
  for (HostId host = 0; host < gpus_.free_by_host.size(); ++host)
    if (gpus_.free_by_host[host] > 0) hosts.push_back(host);
  GpuUse use = present_use();
  const std::size_t step = std::max<std::size_t>(1, hosts.size() / std::max(1U, most));
  for (std::size_t first = 0; first < hosts.size() && found.size() < most; first += step) {
    for (GpuId gpu = 0; gpu < use.taken.size(); ++gpu)
      if (environment_.cluster.gpus[gpu].host < hosts[first]) use.taken[gpu] = true;
    const std::optional<PlacedRanks> placed = place_if_free(description, use);
    if (!placed || placed->shared) break;
    if (std::find(found.begin(), found.end(), placed->gpus) == found.end()) found.push_back(placed->gpus);
  }
  return found;
}

}  // namespace netsim
