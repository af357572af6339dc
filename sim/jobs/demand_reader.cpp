#include "sim/jobs/demand_reader.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/scheduling/task/communication_times.h"

namespace netsim {
namespace {

// Adds the GPU seconds of this much more time, in which jobs keep the GPUs that they hold.
void hold_longer(std::vector<JobProgress>& jobs, Time time) {
  for (JobProgress& job : jobs) job.gpu_seconds += to_seconds(time) * job.gpus_held;
}

}  // namespace

DemandReader::DemandReader(ViewKeeper& keeper, const JobManager& manager)
    : keeper_(keeper),
      manager_(manager),
      jobs_history_(keeper.clock(ViewField::jobs)),
      coming_history_(keeper.clock(ViewField::coming)),
      slack_history_(keeper.clock(ViewField::slack)) {
  const auto keep = [&](ViewField field, ViewHistory<Progress>& history) {
    keeper.keep(field, [this, &history](Time now, Time time) {
      Progress jobs = manager_.progress();
      hold_longer(jobs, time - now);
      history.add(now, time, std::move(jobs));
    });
  };
  keep(ViewField::jobs, jobs_history_);
  keep(ViewField::coming, coming_history_);
  keep(ViewField::slack, slack_history_);
  keeper.set_demand([this](Time now, ViewFields wanted) { return view(now, wanted); });
}

// Returns the progress of jobs that a decision sees. GPU seconds are extrapolated from the time at
// which they were taken.
DemandReader::Progress DemandReader::seen(Time now, ViewField field,
                                          const ViewHistory<Progress>& history) const {
  if (!keeper_.keeps(field)) return manager_.progress();
  const auto* entry = history.seen(now);
  if (entry == nullptr) return {};
  Progress jobs = entry->values;
  hold_longer(jobs, keeper_.clock(field).seen(now) - entry->time);
  return jobs;
}

DemandView DemandReader::view(Time now, ViewFields wanted) {
  DemandView view;
  if (wanted.has(ViewField::jobs)) {
    jobs_ = seen(now, ViewField::jobs, jobs_history_);
    const Time known = keeper_.clock(ViewField::deadlines).seen(now);
    for (JobProgress& job : jobs_) {
      const bool knows =
          wanted.has(ViewField::deadlines) && manager_.descriptions()[job.job].arrival <= known;
      if (!knows) job.deadline = kNever;
    }
    view.jobs = jobs_;
  }
  if (wanted.has(ViewField::coming)) {
    find_coming(now);
    view.coming = coming_;
  }
  if (wanted.has(ViewField::slack)) {
    find_slack(now);
    view.slack = slack_;
  }
  return view;
}

void DemandReader::find_coming(Time now) {
  coming_.clear();
  const Progress jobs = seen(now, ViewField::coming, coming_history_);
  for (const JobProgress& job : jobs) add_coming(job, now);
  std::stable_sort(coming_.begin(), coming_.end(),
                   [](const ComingCommunication& a, const ComingCommunication& b) {
                     return std::tuple(a.expected, a.job) < std::tuple(b.expected, b.job);
                   });
}

// Adds the communications of a job's iteration that should begin after `now`. Iterations that took longer
// than the profile stretch it.
void DemandReader::add_coming(const JobProgress& job, Time now) {
  if (job.iteration_began == kNever) return;
  const Plan& plan = plan_of(job.job);
  const bool stretched = job.iterations_done > 0 && plan.length > 0 && job.iteration_time > plan.length;
  for (const Planned& planned : plan.communications) {
    const Time after =
        stretched ? static_cast<Time>(static_cast<Int128>(planned.ready) * job.iteration_time / plan.length)
                  : planned.ready;
    const Time expected = job.iteration_began + after;
    if (expected > now) coming_.push_back({job.job, planned.group, planned.name, planned.bytes, expected});
  }
}

void DemandReader::find_slack(Time now) {
  slack_.clear();
  const Progress jobs = seen(now, ViewField::slack, slack_history_);
  for (const JobProgress& job : jobs) {
    if (job.iteration_began == kNever) continue;
    std::map<std::uint32_t, Time> least;  // by name
    for (const Planned& planned : plan_of(job.job).communications) {
      const auto [entry, added] = least.try_emplace(planned.name, planned.slack);
      if (!added) entry->second = std::min(entry->second, planned.slack);
    }
    for (const auto& [name, slack] : least) slack_.push_back({job.job, name, slack});
  }
}

// Returns the communications of a job, which has GPUs, in the order of their profile. There are none where
// the workload cannot give a profile.
const DemandReader::Plan& DemandReader::plan_of(JobId job) {
  if (const auto known = plans_.find(job); known != plans_.end()) return known->second;
  forget_ended(manager_.progress());
  Plan& plan = plans_[job];
  const std::optional<JobProfile> profile = manager_.profile_of(job);
  if (!profile) return plan;
  const std::vector<CommunicationTimes> times = communication_times(*profile);
  for (std::uint32_t i = 0; i < times.size(); ++i) {
    const ProfileTask& task = profile->task_of(i);
    plan.communications.push_back({task.group, task.name, task.bytes, times[i].ready, times[i].slack});
  }
  plan.length = iteration_length(*profile);
  return plan;
}

// Frees the plans of jobs that are over. `present` is sorted by job.
void DemandReader::forget_ended(const Progress& present) {
  std::erase_if(plans_, [&](const auto& plan) {
    return !std::binary_search(present.begin(), present.end(), JobProgress{.job = plan.first},
                               [](const JobProgress& a, const JobProgress& b) { return a.job < b.job; });
  });
}

}  // namespace netsim
