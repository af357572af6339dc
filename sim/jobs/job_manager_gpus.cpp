// The JobManager counts the GPUs that are held, free, or on failed hosts.
#include <fmt/format.h>

#include <algorithm>

#include "sim/jobs/job_manager.h"

namespace netsim {

void JobManager::count_gpus() {
  const Cluster& cluster = environment_.cluster;
  const GpuUse use = present_use();
  gpus_.gpus = gpus_.free = 0;
  gpus_.free_by_host.assign(cluster.hosts.size(), 0);
  for (GpuId gpu = 0; gpu < use.taken.size(); ++gpu) {
    if (cluster.is_drives(gpu)) continue;
    ++gpus_.gpus;
    if (use.taken[gpu] || use.shared[gpu]) continue;
    ++gpus_.free;
    ++gpus_.free_by_host[cluster.gpus[gpu].host];
  }
}

void JobManager::note_uses() {
  ClusterUse now;
  now.time = environment_.engine.now();
  const GpuUse use = held_use();
  for (GpuId gpu = 0; gpu < use.taken.size(); ++gpu)
    now.gpus_held += use.taken[gpu] || use.shared[gpu] ? 1U : 0U;
  for (const JobId job : live_) {
    const ManagedJob& state = states_[job];
    ++(state.holds_gpus() ? now.running : state.stage == Stage::paused ? now.paused : now.queued);
  }
  if (!uses_.empty() && uses_.back().time == now.time) uses_.pop_back();
  if (uses_.empty() || !uses_.back().is_same_use(now)) uses_.push_back(now);
}

JobManager::GpuUse JobManager::no_use() const {
  const std::vector<bool> none(environment_.cluster.gpus.size(), false);
  return {none, none};
}

// Returns the GPUs of the jobs that need theirs now.
JobManager::GpuUse JobManager::held_use() const {
  GpuUse use = no_use();
  std::erase_if(holders_, [&](JobId job) { return !recovery_->holds_gpus(job); });
  for (const JobId job : holders_) mark_held(job, use);
  return use;
}

void JobManager::mark_held(JobId job, GpuUse& use) const {
  mark(descriptions_[job], jobs_.job(job).plan().gpus, shares_[job], idle_[job], use);
}

// Returns held_use(). GPUs on failed hosts count as taken.
JobManager::GpuUse JobManager::present_use() const {
  GpuUse use = held_use();
  mark_failed(use);
  return use;
}

void JobManager::mark_failed(GpuUse& use) const {
  for (GpuId gpu = 0; gpu < use.taken.size(); ++gpu)
    use.taken[gpu] = use.taken[gpu] || recovery_->has_failed(environment_.cluster.gpus[gpu].host);
}

// "24 of 32 are free, and 8 are on failed hosts"
std::string JobManager::describe_free() const {
  const GpuUse use = present_use();
  std::size_t free = 0, failed = 0;
  for (GpuId gpu = 0; gpu < use.taken.size(); ++gpu) {
    free += !use.taken[gpu] && !use.shared[gpu] ? 1U : 0U;
    failed += recovery_->has_failed(environment_.cluster.gpus[gpu].host) ? 1U : 0U;
  }
  return fmt::format("{} of {} are free", free, use.taken.size()) +
         (failed > 0 ? fmt::format(", and {} are on failed hosts", failed) : "");
}

}  // namespace netsim
