#include "sim/jobs/recovery.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/core/config.h"

namespace netsim {
namespace {

// "rank 3", "ranks 8 to 15", "ranks 1, 5"
std::string text_of_ranks(const std::vector<RankId>& ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  if (ranks.size() > 2 && ranks.back() - ranks.front() + 1 == ranks.size())
    return fmt::format("ranks {} to {}", ranks.front(), ranks.back());
  std::string text = "ranks";
  for (const RankId rank : ranks) text += (rank == ranks.front() ? " " : ", ") + std::to_string(rank);
  return text;
}

}  // namespace

Recovery::Recovery(Engine& engine, const Cluster& cluster, JobSet& jobs, std::vector<HostFailure> failures,
                   Continue continue_with)
    : engine_(engine),
      cluster_(cluster),
      jobs_(jobs),
      failures_(std::move(failures)),
      continue_with_(std::move(continue_with)),
      states_(jobs.size()),
      taken_(cluster.gpus.size(), false),
      failed_at_(cluster.hosts.size()) {
  for (JobId job = 0; job < jobs.size(); ++job) {
    for (const GpuId gpu : jobs.job(job).plan().gpus) taken_[gpu] = true;
  }
}

void Recovery::begin() {
  for (const HostFailure& failure : failures_) {
    if (failure.at == 0) {
      fail(failure.host);
    } else {
      engine_.call_at(failure.at, [this, host = failure.host] { fail(host); });
    }
  }
}

void Recovery::start(JobId job) {
  std::vector<HostId> failed;
  for (HostId host = 0; host < failed_at_.size(); ++host) {
    if (failed_at_[host] && !ranks_on(jobs_.job(job).plan(), host).empty()) failed.push_back(host);
  }
  for (const HostId host : failed) {
    for (const RankId rank : ranks_on(jobs_.job(job).plan(), host)) jobs_.halt(job, rank, engine_.now());
  }
  jobs_.start(job);
  for (const HostId host : failed) lose(job, host);
}

// Fails a host. A failed host that is not repaired cannot fail again.
void Recovery::fail(HostId host) {
  if (failed_at_[host]) return;
  failed_at_[host] = engine_.now();
  for (JobId job = 0; job < jobs_.size(); ++job) {
    const bool over = jobs_.job(job).done() && states_[job].stage != Stage::down;
    if (jobs_.job(job).begun() && !over && !states_[job].has_no_gpus) lose(job, host);
  }
}

// Records the failure of a host of a job that runs or is down.
void Recovery::lose(JobId job, HostId host) {
  const Time now = engine_.now();
  const std::vector<RankId> ranks = ranks_on(jobs_.job(job).plan(), host);
  if (ranks.empty()) return;
  JobState& state = states_[job];
  state.failed_hosts.emplace_back(host, *failed_at_[host]);
  if (state.stage != Stage::down) {
    for (const RankId rank : ranks) jobs_.halt(job, rank, now);
  }
  if (resumable(job) == nullptr) return;
  const RecoveryParameters& takes = *resumable(job)->recovery();
  state.restart_at = now + takes.detection + takes.restart;
  if (state.stage != Stage::runs) return;
  state.stage = Stage::failing;
  state.failed = now;
  state.storage_wait = jobs_.job(job).storage_wait(now);
  engine_.call_at(now + takes.detection, [this, job] { stop(job); });
}

// Only the costs of failures need the times of waits.
void Recovery::wait(JobId job, bool keeps_gpus) {
  states_[job].has_no_gpus = !keeps_gpus;
  states_[job].waits_since = engine_.now();
}

void Recovery::go_on(JobId job) {
  JobState& state = states_[job];
  const Time since = std::exchange(state.waits_since, kNever);
  if (!failures_.empty()) state.waits.emplace_back(since, engine_.now());
}

void Recovery::stop(JobId job) {
  JobState& state = states_[job];
  if (jobs_.job(job).done()) {
    state.stage = Stage::runs;
    return;
  }
  state.saved = saved_iterations(job);
  const bool complete = state.done_before + state.saved == resumable(job)->all_iterations();
  state.stage = complete ? Stage::complete : Stage::down;
  jobs_.stop(job, engine_.now(), complete);
  if (!complete) engine_.call_at(state.restart_at, [this, job] { restart(job); });
}

void Recovery::restart(JobId before) {
  if (const Time at = states_[before].restart_at; engine_.now() < at) {
    engine_.call_at(at, [this, before] { restart(before); });
    return;
  }
  const JobId number = jobs_.size();
  std::uint32_t restarts = 1;
  for (JobId job = before; states_[job].before; job = *states_[job].before) ++restarts;
  const JobId first = first_of(before);
  std::vector<GpuId> gpus = gpus_after_failure(jobs_.job(before).plan());
  states_[before].stage = Stage::replaced;
  JobState& state = states_.emplace_back();
  state.before = before;
  state.done_before = states_[before].done_before + states_[before].saved;
  continue_with_({before, fmt::format("{}, restart {}", jobs_.job(first).plan().name, restarts),
                  resumable(before)->rest(), std::move(gpus)});
  start(number);
}

std::vector<GpuId> Recovery::gpus_after_failure(const JobPlan& plan) {
  if (use_) taken_ = use_();
  std::vector<GpuId> gpus = plan.gpus;
  const std::size_t trainers = gpus.size() - plan.source->storage_ranks();
  for (HostId host = 0; host < failed_at_.size(); ++host) {
    const std::vector<RankId> ranks = ranks_on(plan, host);
    if (!failed_at_[host] || ranks.empty()) continue;
    const bool trains = ranks.front() < trainers;
    if (const std::optional<HostId> spare = trains ? spare_of(host) : std::nullopt; spare) {
      replace(gpus, host, *spare);
    } else {
      failed_at_[host].reset();
    }
  }
  return gpus;
}

// Returns the first host of the same group that has not failed and none of whose GPUs is used.
std::optional<HostId> Recovery::spare_of(HostId host) const {
  for (HostId other = 0; other < failed_at_.size(); ++other) {
    if (failed_at_[other] || cluster_.hosts[other].group != cluster_.hosts[host].group) continue;
    const std::vector<GpuId> gpus = gpus_of(other);
    if (std::none_of(gpus.begin(), gpus.end(), [&](GpuId gpu) { return taken_[gpu]; })) return other;
  }
  return std::nullopt;
}

void Recovery::replace(std::vector<GpuId>& gpus, HostId host, HostId spare) {
  const std::vector<GpuId> from = gpus_of(host), to = gpus_of(spare);
  for (GpuId& gpu : gpus) {
    if (cluster_.gpus[gpu].host != host) continue;
    gpu = to[static_cast<std::size_t>(std::find(from.begin(), from.end(), gpu) - from.begin())];
    taken_[gpu] = true;
  }
}

std::vector<RankId> Recovery::ranks_on(const JobPlan& plan, HostId host) const {
  std::vector<RankId> ranks;
  for (RankId rank = 0; rank < plan.gpus.size(); ++rank) {
    if (cluster_.gpus[plan.gpus[rank]].host == host) ranks.push_back(rank);
  }
  return ranks;
}

std::vector<GpuId> Recovery::gpus_of(HostId host) const {
  std::vector<GpuId> gpus;
  for (GpuId gpu = 0; gpu < cluster_.gpus.size(); ++gpu) {
    if (cluster_.gpus[gpu].host == host) gpus.push_back(gpu);
  }
  return gpus;
}

// Returns null if the job does not resume after a failure.
const Resumable* Recovery::resumable(JobId job) const {
  const auto* source = dynamic_cast<const Resumable*>(jobs_.job(job).plan().source);
  return source != nullptr && source->recovery() != nullptr ? source : nullptr;
}

// Returns how many iterations of this job alone the drives have written by now.
std::uint32_t Recovery::saved_iterations(JobId job) const {
  return resumable(job)->saved_iterations() - states_[job].done_before;
}

// Returns whether a host of the job has failed, and the job has neither ended nor been stopped since.
bool Recovery::is_failing(JobId job) const {
  return states_[job].stage == Stage::failing && !jobs_.job(job).done();
}

bool Recovery::is_pending() const {
  if (failures_.empty()) return false;
  for (JobId job = 0; job < states_.size(); ++job) {
    if (states_[job].stage == Stage::down || is_failing(job)) return true;
  }
  return false;
}

JobId Recovery::first_of(JobId job) const {
  while (states_[job].before) job = *states_[job].before;
  return job;
}

// Returns how much of the time from `begin` to `end` the job waited for its job scheduler.
Time Recovery::waited_between(JobId job, Time begin, Time end) const {
  const JobState& state = states_[job];
  const auto within = [&](Time from, Time to) {
    return std::max<Time>(0, std::min(to, end) - std::max(from, begin));
  };
  Time sum = state.waits_since != kNever ? within(state.waits_since, end) : 0;
  for (const auto& [from, to] : state.waits) sum += within(from, to);
  return sum;
}

Time Recovery::end_of(JobId number) const {
  const Job& job = jobs_.job(number);
  const Time now = std::max(engine_.now(), job.begin_time());
  return job.done() && states_[number].stage != Stage::down ? job.end_time() : now;
}

std::optional<JobRecovery> Recovery::of(JobId last) const {
  const Stage stage = states_[last].stage;
  const bool failed = is_failing(last) || stage == Stage::down || stage == Stage::complete;
  if (stage == Stage::replaced || (!failed && !states_[last].before)) return std::nullopt;
  JobRecovery recovery;
  const Time end = end_of(last);
  if (failed) {
    add_cost(recovery, last, end);
  } else {
    recovery.io = jobs_.job(last).storage_wait(end);
    recovery.paused = waited_between(last, jobs_.job(last).begin_time(), end);
  }
  std::uint32_t at = last;
  for (; states_[at].before; at = *states_[at].before) {
    ++recovery.restarts;
    add_cost(recovery, *states_[at].before, jobs_.job(at).begin_time());
  }
  recovery.whole = end - jobs_.job(at).begin_time();
  return recovery;
}

// Adds the cost of a job's failure, after which it was down until `until`. Work done after the last rank had
// passed the last saved iteration is lost. If it passed that after the failure, none is lost.
void Recovery::add_cost(JobRecovery& recovery, JobId number, Time until) const {
  const JobState& state = states_[number];
  const Job& job = jobs_.job(number);
  recovery.down += until - state.failed;
  recovery.paused += waited_between(number, job.begin_time(), state.failed);
  const std::size_t trainers = job.plan().gpus.size() - job.plan().source->storage_ranks();
  const std::vector<PassedIteration>& passed = job.passed_iterations();
  const auto by_all = [&](std::uint32_t iteration) {
    return iteration < passed.size() && passed[iteration].ranks == trainers &&
           passed[iteration].last < state.failed;
  };
  const std::uint32_t saved = state.stage == Stage::failing ? saved_iterations(number) : state.saved;
  if (state.stage == Stage::complete || (saved > 0 && !by_all(saved - 1))) {
    recovery.io += state.storage_wait;
    return;
  }
  const Time kept = saved > 0 ? passed[saved - 1].last : job.begin_time();
  recovery.lost += state.failed - kept - waited_between(number, kept, state.failed);
  if (saved > 0) recovery.io += passed[saved - 1].storage_wait;
  for (std::uint32_t iteration = saved; by_all(iteration); ++iteration) ++recovery.repeated;
}

std::vector<std::string> Recovery::waiting(std::size_t limit) const {
  std::vector<std::string> lines;
  for (JobId number = 0; number < states_.size(); ++number) {
    const Job& job = jobs_.job(number);
    if (job.done() || resumable(number) != nullptr) continue;
    for (const auto& [host, at] : states_[number].failed_hosts) {
      if (lines.size() == limit) return lines;
      const std::string& gpu = cluster_.graph.node(cluster_.gpus[gpus_of(host).front()].node).name;
      const std::string line = fmt::format(
          "{} failed at {}: {} stops computing, and a job without `recovery` does not continue",
          gpu.substr(0, gpu.find('/')), format_time(at), text_of_ranks(ranks_on(job.plan(), host)));
      lines.push_back(jobs_.size() > 1 ? job.plan().name + ": " + line : line);
    }
  }
  return lines;
}

}  // namespace netsim
