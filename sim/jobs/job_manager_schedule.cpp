// Arrivals, the calls of the job scheduler, and what follows from its decisions.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/core/registry.h"
#include "sim/jobs/job_manager.h"
#include "sim/jobs/make_task_scheduling.h"
#include "sim/workload/traffic/traffic.h"

namespace netsim {

// Decisions: applies the decisions of one call of the job scheduler.
class JobManager::Decisions final : public JobDecisions {
 public:
  explicit Decisions(JobManager& manager) : manager_(manager) {}
  bool start(JobId job) override { return manager_.start_if_free(job, nullptr); }
  bool start(JobId job, const std::vector<GpuId>& gpus) override {
    return manager_.start_if_free(job, &gpus);
  }
  bool would_fit(std::span<const JobId> jobs, std::span<const JobId> without) const override {
    return manager_.would_fit(jobs, without);
  }
  void pause(JobId job) override { manager_.hold(job, 0); }
  void shift(JobId job, Time by) override {
    if (by > 0) manager_.hold(job, by);
  }
  void set_traffic(JobId job, std::uint8_t priority, std::uint8_t traffic_class) override {
    manager_.require_class(job, traffic_class);
    manager_.jobs_.set_traffic(job, priority, traffic_class);
  }

 private:
  JobManager& manager_;
};

// Facts: answers what the job scheduler asks.
class JobManager::Facts final : public ClusterFacts {
 public:
  explicit Facts(const JobManager& manager) : manager_(manager) {}
  std::vector<std::vector<GpuId>> candidates(JobId job, std::uint32_t most) const override {
    return manager_.candidates(job, most);
  }
  IterationPhases phases_on(JobId job, const std::vector<GpuId>& gpus) const override {
    return manager_.phases_ ? manager_.phases_->phases_on(job, gpus) : IterationPhases{};
  }

 private:
  const JobManager& manager_;
};

// ---- Arrivals

void JobManager::begin() {
  recovery_->begin();  // before the jobs, so that a host that fails at a job's arrival has failed for it
  if (has_queue_) return schedule_arrivals();
  for (JobId job = 0; job < jobs_.size(); ++job) {
    const Time arrival = jobs_.job(job).plan().arrival;
    if (arrival == 0) {
      recovery_->start(job);
    } else {
      environment_.engine.call_at(arrival, [this, job] { recovery_->start(job); });
    }
  }
}

// A managed run may have many jobs, so each arrival schedules the next one. Otherwise all are scheduled now.
void JobManager::schedule_arrivals() {
  by_arrival_.resize(descriptions_.size());
  std::iota(by_arrival_.begin(), by_arrival_.end(), 0U);
  std::stable_sort(by_arrival_.begin(), by_arrival_.end(),
                   [&](JobId a, JobId b) { return descriptions_[a].arrival < descriptions_[b].arrival; });
  Time last = 0;
  for (const JobId job : by_arrival_) {
    const Time arrival = descriptions_[job].arrival;
    if (is_managed_ || arrival == std::exchange(last, arrival)) continue;
    environment_.engine.call_at(arrival, [this] { arrive_due(); });
  }
  arrive_due();
}

// Jobs that arrive at one time are all there when the scheduler is called.
void JobManager::arrive_due() {
  const Time now = environment_.engine.now();
  const std::size_t before = live_.size();
  for (; arrived_ < by_arrival_.size() && descriptions_[by_arrival_[arrived_]].arrival <= now; ++arrived_) {
    ManagedJob& state = states_[by_arrival_[arrived_]];
    if (state.stage != Stage::coming) continue;
    state.stage = Stage::queued;
    live_.push_back(by_arrival_[arrived_]);
  }
  if (live_.size() > before) decide();
  if (!is_managed_ || arrived_ == by_arrival_.size()) return;
  environment_.engine.call_at(descriptions_[by_arrival_[arrived_]].arrival, [this] { arrive_due(); });
}

bool JobManager::is_pending() const {
  if (recovery_->is_pending()) return true;
  if (has_queue_) return arrived_ < by_arrival_.size() || moving_ > 0;
  for (JobId job = 0; job < jobs_.size(); ++job) {
    if (!jobs_.job(job).begun()) return true;
  }
  return false;
}

// ---- Decisions

// The scheduler is called when a job has ended, and once more when nothing is pending.
void JobManager::open_queue() {
  const auto has_default = [](const JobDescription& job) { return job.placement.is_null(); };
  if (std::any_of(descriptions_.begin(), descriptions_.end(), has_default)) {
    const ConfigNode& placement = section_of(environment_.configuration, "placement");
    default_shares_ = Registry<Placement>::instance().create(placement, "packed")->shares();
  }
  environment_.intervals.subscribe(SchedulingLayer::jobs, [this](Time, bool) { decide(); });
  jobs_.on_end([this](JobId job) {
    ended_.push_back(job);
    environment_.intervals.ask();
  });
  recovery_->set_use([this] {
    GpuUse use = present_use();
    for (std::size_t gpu = 0; gpu < use.taken.size(); ++gpu)
      use.taken[gpu] = use.taken[gpu] || use.shared[gpu];
    return use.taken;
  });
}

void JobManager::iteration_ended(JobId job) {
  if (!has_queue_) return;
  if (states_[job].stage == Stage::pausing || scheduler_->needs().iterations) environment_.intervals.ask();
}

void JobManager::decide() {
  settle_stages();
  count_gpus();
  measure_phases();
  std::vector<JobState> jobs;
  jobs.reserve(live_.size());
  for (const JobId job : live_) jobs.push_back(state_of(job));
  const Time now = environment_.engine.now();
  JobSchedulerView view{now, jobs, gpus_};
  if (keeper_ != nullptr) {
    view.network = keeper_->network(now, views_);
    view.demand = keeper_->demand(now, views_);
  }
  for (JobState& state : jobs) show_progress(state, view.demand);
  std::vector<std::vector<LinkBytes>> links;
  if (needs_traffic() && scheduler_->sees(ViewField::phases)) {
    add_facts(jobs, links);
    view.port_rates = traffic_->port_rates();
  }
  Decisions decisions(*this);
  const Facts facts(*this);
  view.facts = &facts;
  scheduler_->decide(view, decisions);
  note_uses();
}

// Follows the jobs that have ended, or have come to the end of their last iteration before a pause.
void JobManager::settle_stages() {
  for (const JobId job : ended_) end_job(job);
  if (!ended_.empty()) std::erase_if(live_, [&](JobId job) { return states_[job].stage == Stage::ended; });
  ended_.clear();
  for (const JobId job : live_) {
    if (states_[job].stage == Stage::pausing && settle_stage(job)) std::erase(holders_, job);
  }
}

// Returns whether the job, which is pausing, no longer holds its GPUs.
bool JobManager::settle_stage(JobId job) {
  ManagedJob& state = states_[job];
  const std::vector<Time>& ends = jobs_.job(job).iteration_ends();
  if (ends.size() < state.hold_from || recovery_->has_lost_ranks(job)) return false;
  state.paused_at = environment_.engine.now();
  recovery_->wait(job, state.shift > 0);
  if (state.shift > 0) {
    state.stage = Stage::moving;
    go_on_at(job, std::max(environment_.engine.now(), ends[state.hold_from - std::size_t{1}] + state.shift));
    return false;
  }
  state.stage = Stage::paused;
  ++state.pauses;
  return true;
}

void JobManager::end_job(JobId job) {
  ManagedJob& state = states_[job];
  if (state.stage == Stage::ended) return;
  if (state.stage == Stage::moving) state.moved += jobs_.job(job).end_time() - state.paused_at;
  state.stage = Stage::ended;
  if (traffic_ != nullptr) traffic_->forget(job);
  if (phases_) phases_->end(job);
  if (!descriptions_[job].at_begin) return;
  jobs_.release(job);
  times_[job].reset();
}

// Lets the last job run, which is the rest of a stopped one. It has the place of the first job of the chain
// in the order of arrivals, and what that one has held counts.
void JobManager::let_rest_live(JobId before) {
  const JobId rest = jobs_.size() - 1;
  ManagedJob& state = states_[rest];
  state.started = state.went_on = environment_.engine.now();
  state.gpu_seconds_before = progress_of(before).gpu_seconds;
  holders_.push_back(rest);
  if (phases_) {
    give_phases(rest);
    phases_->place(rest, jobs_.job(rest).plan().gpus);
  }
  const auto order = [&](JobId job) {
    const JobId first = recovery_->first_of(job);
    return std::pair{descriptions_[first].arrival, first};
  };
  const auto later = [&](JobId a, JobId b) { return order(a) < order(b); };
  live_.insert(std::upper_bound(live_.begin(), live_.end(), rest, later), rest);
  environment_.intervals.ask();  // a repaired host may have GPUs for others
}

// Returns the time of an iteration that the workload tells; 0: it does not.
Time JobManager::told_iteration(JobId number) const {
  const JobDescription& job = descriptions_[number];
  if (job.duration <= 0) return job.source->expected_iteration();
  return job.duration / std::max<Time>(job.source->iterations().value_or(0), 1);
}

// Without a queue only the run of the job tells when it began.
JobProgress JobManager::progress_of(JobId number) const {
  const ManagedJob& managed = states_[number];
  const JobDescription& job = descriptions_[number];
  const Job& run = jobs_.job(number);
  const Time now = environment_.engine.now();
  const Time unmanaged = run.begun() ? run.begin_time() : kNever;
  const Time started = has_queue_ ? managed.started : unmanaged;
  JobProgress progress;
  progress.job = number;
  progress.deadline = job.deadline;
  progress.iterations = job.source->iterations().value_or(0);
  const std::vector<Time>& ends = run.iteration_ends();
  progress.iterations_done = static_cast<std::uint32_t>(ends.size());
  if (!ends.empty()) {
    const Time ran = ends.back() - started - managed.waits_until(ends.size());
    progress.iteration_time = ran / static_cast<Time>(ends.size());
  } else {
    progress.iteration_time = told_iteration(number);
  }
  if (started == kNever) return progress;
  const std::uint32_t ranks = job.source->ranks() - job.source->storage_ranks();
  progress.gpu_seconds =
      managed.gpu_seconds_before + to_seconds(now - started - managed.paused_until(now)) * ranks;
  if (has_queue_ && !managed.holds_gpus()) return progress;
  progress.gpus_held = ranks;
  progress.iteration_began = ends.empty() ? started : ends.back();
  return progress;
}

std::vector<JobProgress> JobManager::progress() const {
  std::vector<JobProgress> all;
  if (has_queue_) {
    for (const JobId job : live_) all.push_back(progress_of(job));
    std::sort(all.begin(), all.end(),
              [](const JobProgress& a, const JobProgress& b) { return a.job < b.job; });
    return all;
  }
  for (JobId job = 0; job < jobs_.size(); ++job) {
    if (jobs_.job(job).begun() && !jobs_.job(job).done()) all.push_back(progress_of(job));
  }
  return all;
}

std::optional<JobProfile> JobManager::profile_of(JobId job) const {
  const std::vector<GpuId>& gpus = jobs_.job(job).plan().gpus;
  if (gpus.empty() || times_[job] == nullptr) return std::nullopt;
  return profile_on(descriptions_[job], *times_[job], environment_.cluster, gpus);
}

std::vector<std::uint8_t> JobManager::failed_hosts() const {
  std::vector<std::uint8_t> failed;
  for (HostId host = 0; host < environment_.cluster.hosts.size(); ++host)
    failed.push_back(recovery_->has_failed(host) ? 1 : 0);
  return failed;
}

// Hides what the scheduler does not see yet, or not at all.
void JobManager::show_progress(JobState& state, const DemandView& demand) const {
  const Time now = environment_.engine.now();
  const auto known_since = [&](ViewField field) {
    return keeper_ == nullptr ? now : keeper_->clock(field).seen(now);
  };
  if (!views_.has(ViewField::deadlines) || state.submitted > known_since(ViewField::deadlines))
    state.deadline = kNever;
  const bool sees = views_.has(ViewField::jobs);
  if (sees && (keeper_ == nullptr || !keeper_->keeps(ViewField::jobs))) return;
  const auto known = std::find_if(demand.jobs.begin(), demand.jobs.end(),
                                  [&](const JobProgress& one) { return one.job == state.job; });
  const bool found = known != demand.jobs.end();
  state.iterations_done = found ? known->iterations_done : 0;
  state.gpu_seconds = found ? known->gpu_seconds : 0;
  state.iteration_time = found ? known->iteration_time : sees ? told_iteration(state.job) : 0;
  if (!sees) state.iterations = 0;
}

JobState JobManager::state_of(JobId number) const {
  const ManagedJob& managed = states_[number];
  const JobDescription& job = descriptions_[number];
  const JobProgress progress = progress_of(number);
  JobState state;
  state.job = number;
  state.phase =
      static_cast<JobState::Phase>(static_cast<int>(managed.stage) - static_cast<int>(Stage::queued));
  state.ranks = job.source->ranks() - job.source->storage_ranks();
  const JobId first = recovery_->first_of(number);
  state.submitted = descriptions_[first].arrival;
  state.started = states_[first].started;
  state.deadline = job.deadline;
  state.weight = job.weight;
  state.vc = job.vc;
  state.name = job.name;
  state.priority = job.priority;
  state.traffic_class = job.traffic_class;
  state.iterations = progress.iterations;
  state.iterations_done = progress.iterations_done;
  state.iteration_time = progress.iteration_time;
  state.iteration_began = managed.iteration_begin(jobs_.job(number).iteration_ends());
  state.gpu_seconds = progress.gpu_seconds;
  if (managed.holds_gpus()) state.gpus = jobs_.job(number).plan().gpus;
  if (phases_ && managed.holds_gpus() && scheduler_->sees(ViewField::phases))
    state.phases = phases_->phases(number);
  return state;
}

bool JobManager::start_if_free(JobId job, const std::vector<GpuId>* gpus) {
  const bool waits = states_[job].waits();
  NETSIM_CHECK(waits, "a job scheduler starts a job that does not wait");
  if (gpus == nullptr && cannot_fit(job)) return false;
  std::optional<PlacedRanks> placed =
      gpus != nullptr ? place_on(job, *gpus) : place_if_free(descriptions_[job], present_use());
  if (!placed) return false;
  if (states_[job].stage == Stage::queued) {
    begin_job(job, std::move(*placed));
  } else {
    resume_job(job, std::move(*placed));
  }
  if (phases_) environment_.intervals.ask();  // so that it can be shifted after its first iteration
  count_gpus();
  return true;
}

// Returns whether the number of free GPUs alone tells that the job finds no place.
bool JobManager::cannot_fit(JobId job) const {
  const JobDescription& description = descriptions_[job];
  return description.placement.is_null() && !default_shares_ &&
         description.source->ranks() - description.source->storage_ranks() > gpus_.free;
}

// Places the jobs one after the other, beside the holders that are not in `without`.
bool JobManager::would_fit(std::span<const JobId> jobs, std::span<const JobId> without) const {
  GpuUse use = no_use();
  for (const JobId job : holders_) {
    const bool leaves = std::find(without.begin(), without.end(), job) != without.end();
    if (!leaves && recovery_->holds_gpus(job)) mark_held(job, use);
  }
  mark_failed(use);
  for (const JobId job : jobs) {
    const std::optional<PlacedRanks> placed = place_if_free(descriptions_[job], use);
    if (!placed) return false;
    mark(descriptions_[job], *placed, use);
  }
  return true;
}

// Returns the job on these GPUs if all are free.
std::optional<PlacedRanks> JobManager::place_on(JobId job, const std::vector<GpuId>& gpus) const {
  const JobDescription& description = descriptions_[job];
  NETSIM_CHECK(description.source->storage_ranks() == 0, "the GPUs of a job with storage servers are found");
  NETSIM_CHECK(gpus.size() == description.source->ranks(), "a job scheduler names one GPU for each rank");
  GpuUse use = present_use();
  for (const GpuId gpu : gpus) {
    NETSIM_CHECK(gpu < use.taken.size(), "a job scheduler names a GPU that does not exist");
    if (use.taken[gpu] || use.shared[gpu]) return std::nullopt;
    use.taken[gpu] = true;
  }
  return PlacedRanks{gpus, false, {}};
}

void JobManager::begin_job(JobId job, PlacedRanks placed) {
  const JobDescription& description = descriptions_[job];
  ManagedJob& state = states_[job];
  if (description.at_begin) {
    description.source->open();
    require_memory(description, placed.gpus);
  }
  std::unique_ptr<ComputeTimes> times = times_of(description, placed.gpus);
  std::shared_ptr<const TaskScheduling> scheduling;
  if (jobs_.job(job).plan().gpus.empty())
    scheduling = make_task_scheduling(scheduling_, description, *times, environment_.cluster, placed.gpus);
  jobs_.place(job, std::move(placed.gpus), *times, environment_.engine.now(), std::move(scheduling));
  times_[job] = std::move(times);
  if (is_managed_) shares_[job] = placed.shared;
  idle_[job] = std::move(placed.idle);
  state.stage = Stage::running;
  state.started = state.went_on = environment_.engine.now();
  if (phases_) phases_->place(job, jobs_.job(job).plan().gpus);
  holders_.push_back(job);
  recovery_->start(job);
}

// The job holds its new GPUs from now on, and goes on when it has moved.
void JobManager::resume_job(JobId job, PlacedRanks placed) {
  const Time now = environment_.engine.now();
  std::unique_ptr<ComputeTimes> times = times_of(descriptions_[job], placed.gpus);
  forget_facts(job);
  recovery_->move(job);
  jobs_.move(job, std::move(placed.gpus), *times);
  times_[job] = std::move(times);
  if (phases_) phases_->place(job, jobs_.job(job).plan().gpus);
  shares_[job] = placed.shared;
  idle_[job] = std::move(placed.idle);
  holders_.push_back(job);
  ManagedJob& state = states_[job];
  state.paused += now - state.paused_at;
  state.paused_at = now;
  state.stage = Stage::moving;
  go_on_at(job, now + scheduler_->move());
}

void JobManager::go_on_at(JobId job, Time time) {
  ++moving_;
  if (time <= environment_.engine.now()) return go_on(job);
  environment_.engine.call_at(time, [this, job] { go_on(job); });
}

// A job that was stopped after a failure while it moved does not go on.
void JobManager::go_on(JobId job) {
  ManagedJob& state = states_[job];
  --moving_;
  if (jobs_.job(job).done()) return;
  recovery_->go_on(job);
  state.went_on = environment_.engine.now();
  state.moved += state.went_on - state.paused_at;
  state.iterations_before = static_cast<std::uint32_t>(jobs_.job(job).iteration_ends().size());
  state.waited_before = std::exchange(state.waited, state.paused + state.moved);
  state.stage = Stage::running;
  jobs_.go_on(job);
}

// Throws ConfigError if the network has not the class that the job scheduler gives a job.
void JobManager::require_class(JobId job, std::uint8_t traffic_class) const {
  const std::string problem = class_problem(traffic_class, environment_.classes);
  if (problem.empty()) return;
  scheduling_.jobs.fail(fmt::format("the job scheduler gives job '{}' {}", descriptions_[job].name, problem));
}

// Pauses a running job at the end of its iteration, or shifts its next one. A job in its last iteration ends.
void JobManager::hold(JobId job, Time shift) {
  NETSIM_CHECK(scheduler_->needs().pauses, "a job scheduler pauses a job without JobNeeds::pauses");
  ManagedJob& state = states_[job];
  if (state.stage != Stage::running || jobs_.job(job).done()) return;
  const std::optional<std::uint32_t> first = jobs_.hold(job);
  if (!first) return;
  state.stage = Stage::pausing;
  state.hold_from = *first;
  state.shift = shift;
}

}  // namespace netsim
