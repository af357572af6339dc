#include "sim/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/workload/checkpoint/checkpoint.h"

namespace netsim {

Recovery::Recovery(Engine& engine, const Cluster& cluster, JobSet& jobs, std::vector<HostFailure> failures,
                   Continue go_on)
    : engine_(engine),
      cluster_(cluster),
      jobs_(jobs),
      failures_(std::move(failures)),
      go_on_(std::move(go_on)),
      states_(jobs.size()),
      taken_(cluster.gpus.size(), false),
      failed_(cluster.hosts.size(), false) {
  for (std::uint32_t job = 0; job < jobs.size(); ++job) {
    for (const std::uint32_t gpu : jobs.job(job).plan().gpus) taken_[gpu] = true;
  }
}

void Recovery::begin() {
  for (const HostFailure& failure : failures_)
    engine_.call_at(failure.at, [this, host = failure.host] { fail(host); });
}

void Recovery::iteration_done(std::uint32_t job, Time end) {
  if (jobs_.job(job).plan().source->storage_ranks() > 0)
    states_[job].storage_waits.push_back(storage_wait(job, end));
}

void Recovery::fail(std::uint32_t host) {
  const Time now = engine_.now();
  failed_[host] = true;
  for (std::uint32_t job = 0; job < jobs_.size(); ++job) {
    const JobPlan& plan = jobs_.job(job).plan();
    if (!jobs_.job(job).begun() || jobs_.job(job).done()) continue;
    bool on_it = false;
    for (std::uint32_t rank = 0; rank < plan.gpus.size(); ++rank) {
      if (cluster_.gpus[plan.gpus[rank]].host != host) continue;
      jobs_.halt(job, rank, now);
      on_it = true;
    }
    const auto* resumable = dynamic_cast<const Resumable*>(plan.source);
    if (!on_it || states_[job].failing || resumable == nullptr || resumable->recovery() == nullptr) continue;
    states_[job].failing = true;
    ++down_;
    engine_.call_at(now + resumable->recovery()->detection, [this, job, now] { stop(job, now); });
  }
}

void Recovery::stop(std::uint32_t job, Time failed) {
  const Time now = engine_.now();
  jobs_.stop(job, now);
  const auto& resumable = dynamic_cast<const Resumable&>(*jobs_.job(job).plan().source);
  engine_.call_at(now + resumable.recovery()->restart, [this, job, failed] { restart(job, failed); });
}

void Recovery::restart(std::uint32_t before, Time failed) {
  const auto& resumable = dynamic_cast<const Resumable&>(*jobs_.job(before).plan().source);
  const std::uint32_t number = jobs_.size();
  std::uint32_t first = before, restarts = 1;
  for (; states_[first].continued; first = states_[first].continued->job) ++restarts;
  JobState& state = states_.emplace_back();
  state.continued = Continued{before, resumable.saved_iterations(), failed};
  go_on_({before, fmt::format("{}, restart {}", jobs_.job(first).plan().name, restarts), resumable.rest(),
          gpus_after_failure(jobs_.job(before).plan())});
  --down_;
  jobs_.start(number);
}

// A failed host's place takes a spare one, the first like it of whose GPUs nobody has any, or, where there is
// none, the host itself, repaired.
std::vector<std::uint32_t> Recovery::gpus_after_failure(const JobPlan& plan) {
  std::vector<std::vector<std::uint32_t>> of_host(cluster_.hosts.size());
  for (std::uint32_t gpu = 0; gpu < cluster_.gpus.size(); ++gpu)
    of_host[cluster_.gpus[gpu].host].push_back(gpu);
  std::vector<std::uint32_t> gpus = plan.gpus;
  for (std::uint32_t host = 0; host < failed_.size(); ++host) {
    const auto on_host = [&](std::uint32_t gpu) { return cluster_.gpus[gpu].host == host; };
    if (!failed_[host] || std::none_of(gpus.begin(), gpus.end(), on_host)) continue;
    const auto is_spare = [&](std::uint32_t other) {
      return !failed_[other] && cluster_.hosts[other].group == cluster_.hosts[host].group &&
             std::none_of(of_host[other].begin(), of_host[other].end(),
                          [&](std::uint32_t gpu) { return taken_[gpu]; });
    };
    std::uint32_t spare = 0;
    while (spare < failed_.size() && !is_spare(spare)) ++spare;
    if (spare == failed_.size()) {
      failed_[host] = false;
      continue;
    }
    for (std::uint32_t& gpu : gpus) {
      if (!on_host(gpu)) continue;
      const auto place = std::find(of_host[host].begin(), of_host[host].end(), gpu) - of_host[host].begin();
      gpu = of_host[spare][static_cast<std::size_t>(place)];
      taken_[gpu] = true;
    }
  }
  return gpus;
}

bool Recovery::goes_on(std::uint32_t job) const {
  return std::any_of(states_.begin(), states_.end(),
                     [job](const JobState& state) { return state.continued && state.continued->job == job; });
}

// What the rank that waits longest for storage has waited until then: the others wait for it.
Time Recovery::storage_wait(std::uint32_t number, Time until) const {
  const Job& job = jobs_.job(number);
  std::vector<RankTimes> ranks = job.rank_times(until);
  ranks.resize(ranks.size() - job.plan().source->storage_ranks());
  Time longest = 0;
  for (const RankTimes& times : ranks)
    longest = std::max(longest, times.exposed_by[static_cast<std::size_t>(Stream::io)]);
  return longest;
}

Time Recovery::end_of(std::uint32_t number) const {
  const Job& job = jobs_.job(number);
  return job.done() ? job.end_time() : std::max(engine_.now(), job.begin_time());
}

std::optional<JobRecovery> Recovery::of(std::uint32_t last) const {
  if (!states_[last].continued || goes_on(last)) return std::nullopt;
  JobRecovery recovery;
  const Time end = end_of(last);
  recovery.io = storage_wait(last, end);
  Time begin = jobs_.job(last).begin_time();
  std::uint32_t at = last;
  while (states_[at].continued) {
    const Continued& from = *states_[at].continued;
    const Job& before = jobs_.job(from.job);
    const std::uint32_t done_before =
        states_[from.job].continued ? states_[from.job].continued->iterations : 0;
    const std::uint32_t kept = from.iterations - done_before;
    const Time saved = kept > 0 ? before.iteration_ends().at(kept - 1) : before.begin_time();
    ++recovery.restarts;
    recovery.lost += from.failed - saved;
    recovery.down += begin - from.failed;
    if (kept > 0) recovery.io += states_[from.job].storage_waits.at(kept - 1);
    begin = before.begin_time();
    at = from.job;
  }
  recovery.whole = end - begin;
  return recovery;
}

}  // namespace netsim
