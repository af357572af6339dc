// The JobManager tells schedulers about the computation and traffic of jobs.
#include <fmt/format.h>

#include "sim/core/registry.h"
#include "sim/jobs/iteration_work.h"
#include "sim/jobs/job_manager.h"

namespace netsim {

// Throws ConfigError if the run lacks what the named job scheduler uses.
void JobManager::check_needs() const {
  if (scheduling_.jobs.is_null()) return;
  const JobNeeds needs = scheduler_->needs();
  const std::string name = Registry<JobScheduler>::component_name(scheduling_.jobs, "");
  if (needs.traffic && !environment_.packet_network) {
    scheduling_.jobs.fail(
        fmt::format("job scheduler '{}' needs a fabric, and `network: ideal` has none", name));
  }
  if (environment_.classes < needs.classes) {
    scheduling_.jobs.fail(
        fmt::format("job scheduler '{}' uses {} data classes, and network.switch.classes is {}", name,
                    needs.classes, environment_.classes));
  }
  if (needs.nic_levels > 1 && !environment_.nic_priorities) {
    scheduling_.jobs.fail(fmt::format(
        "job scheduler '{}' uses {} priorities of messages, and transport.nic_priorities is 1: NICs serve "
        "all queue pairs alike (allowed: {} or more)",
        name, needs.nic_levels, needs.nic_levels));
  }
}

JobFacts JobManager::facts(JobId job) const {
  const Job& run = jobs_.job(job);
  JobFacts facts;
  facts.done = run.done();
  facts.iterations_done = static_cast<std::uint32_t>(run.iteration_ends().size());
  if (!run.begun() || facts.done) return facts;
  facts.work = work_of(job);
  if (traffic_ != nullptr) traffic_->count(job, facts.iterations_done);
  return facts;
}

// The facts of the workload are kept, because they are the same for all iterations on these GPUs.
IterationWork JobManager::work_of(JobId job) const {
  if (work_.size() <= job) work_.resize(job + std::size_t{1});
  WorkOfJob& work = work_[job];
  if (!work.asked) {
    work.planned = planned_work(*descriptions_[job].source, *times_[job]);
    work.asked = true;
  }
  return work.planned ? *work.planned : measured_work(jobs_.job(job), environment_.engine.now());
}

// Adds the facts of jobs that hold GPUs. `links` holds the traffic of each, and must outlive the states.
void JobManager::add_facts(std::vector<JobState>& states, std::vector<std::vector<LinkBytes>>& links) const {
  links.resize(states.size());
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i].waits()) continue;
    states[i].work = facts(states[i].job).work;
    links[i] = traffic_->on_links(states[i].job);
    states[i].traffic = links[i];
  }
}

// Forgets what was measured of a job on other GPUs.
void JobManager::forget_facts(JobId job) {
  if (traffic_ == nullptr) return;
  traffic_->begin_anew(job, static_cast<std::uint32_t>(jobs_.job(job).iteration_ends().size()));
  if (job < work_.size()) work_[job] = {};
}

}  // namespace netsim
