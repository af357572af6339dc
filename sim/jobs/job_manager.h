// JobManager: decides where and when the jobs of a run run. It places their ranks on GPUs, starts them, and
// lets them continue after failures of hosts (recovery.h). All of it happens between events.
//
// - If the configuration names no job scheduler and all jobs of the run fit on the cluster together, they are
//   placed before the run in the order of the list. Each begins at its arrival and keeps its GPUs.
// - Otherwise a job gets free GPUs at its arrival or later, when the job scheduler says so
//   (scheduling/job/job_scheduler.h); by default that is `fifo`. GPUs become free when their job is over or
//   paused. The scheduler is then called at the next scheduling interval.
// - A managed run has a named job scheduler, or its jobs come from a trace or a random process. A job that
// can
//   never fit is left out. What a job of a trace or process needs only while it runs is freed at its end.
// - GPUs on a failed host are not given out, nor are those of a job that will restart on them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/compute/gpu_models.h"
#include "sim/compute/gpu_variation.h"
#include "sim/core/config.h"
#include "sim/core/engine.h"
#include "sim/core/ids.h"
#include "sim/jobs/job_set.h"
#include "sim/jobs/managed_job.h"
#include "sim/jobs/recovery.h"
#include "sim/scheduling/job/job_scheduler.h"
#include "sim/scheduling/job/phase_book.h"
#include "sim/scheduling/job_traffic.h"
#include "sim/scheduling/placement.h"
#include "sim/scheduling/scheduling_intervals.h"
#include "sim/scheduling/scheduling_parameters.h"
#include "sim/scheduling/task/job_profile.h"
#include "sim/scheduling/view_keeper.h"
#include "sim/topology/topology.h"
#include "sim/transport/circuit_control.h"
#include "sim/workload/workload.h"

namespace netsim {

class JobManager {
 public:
  // Environment: the parts of the run that the jobs use. They must outlive the manager.
  struct Environment {
    const ConfigNode& configuration;  // its sections `placement` and `gpus` are read
    Engine& engine;
    const Cluster& cluster;
    const GpuModels& models;
    JobSet& jobs;
    CircuitControl* circuits = nullptr;  // null: no optical circuits that jobs can request
    bool packet_network = true;          // false: the network is ideal
    SchedulingIntervals& intervals;      // used only if jobs wait in a queue
    std::uint64_t seed = 1;
    std::int64_t classes = 6;         // data classes of the network, as WorkloadContext::classes
    bool nic_priorities = false;      // NICs serve queue pairs by the priority of their messages
    PhaseRecorder* phases = nullptr;  // null: the job scheduler does not ask for phases
  };
  // Adds all jobs to Environment::jobs, in order. A job that is not placed before the run has the GPUs that
  // it would have alone, until it begins. If its state is made when it begins, it has none. Throws
  // ConfigError or InputError for a job that cannot run even if it is alone: it lacks GPUs or memory, or its
  // configuration is invalid. A managed run leaves out jobs that lack GPUs, unless no other job is left.
  JobManager(const Environment& environment, std::vector<JobDescription> jobs);
  JobManager(const JobManager&) = delete;
  JobManager& operator=(const JobManager&) = delete;

  // Sets a callback for a job that is added during the run, the rest of a stopped one. It is called before
  // the job starts.
  void on_job_added(std::function<void(const JobDescription&)> callback) {
    on_job_added_ = std::move(callback);
  }
  // Returns whether the job scheduler needs set_traffic().
  bool needs_traffic() const { return is_managed_ && scheduler_->needs().traffic; }
  // Sets what counts the traffic of jobs. Must be called before begin(); `traffic` must outlive this.
  void set_traffic(JobTraffic& traffic) { traffic_ = &traffic; }
  // Returns what is known of a job, and counts its traffic up to its last end of an iteration. Called between
  // events.
  JobFacts facts(JobId job) const;
  // Lets the jobs arrive that arrive at 0, and schedules the arrivals of the others.
  void begin();
  // Returns whether all jobs are done, the rests of stopped jobs included.
  bool done() const { return jobs_.done() && !recovery_->is_pending(); }
  // Returns whether a job will arrive or restart later.
  bool is_pending() const;
  // Must be called at each end of an iteration of a job, between events.
  void iteration_ended(JobId job);
  // Returns whether jobs get their GPUs at their arrival or later.
  bool has_queue() const { return has_queue_; }
  bool is_managed() const { return is_managed_; }
  // Returns whether the job has arrived and waits for its first GPUs.
  bool is_queued(JobId job) const { return states_[job].stage == ManagedJob::Stage::queued; }
  const ManagedJob& state(JobId job) const { return states_[job]; }
  // Returns the use of the cluster, a line for each change; empty without a queue.
  const std::vector<ClusterUse>& uses() const { return uses_; }
  // Gives the job scheduler views of other layers and the ages of its fields. Called before begin(); `keeper`
  // must outlive this. Without it all fields are of the present.
  void set_views(ViewKeeper& keeper) { keeper_ = &keeper; }
  // Returns the progress of the jobs that have arrived and are not done, by number.
  std::vector<JobProgress> progress() const;
  // Returns the profile of a job that has GPUs, or nothing where its workload cannot give one.
  std::optional<JobProfile> profile_of(JobId job) const;
  // Returns, by HostId, 1 if the host has failed.
  std::vector<std::uint8_t> failed_hosts() const;
  // Returns the notes of the job scheduler, for the report of the run.
  std::vector<std::string> notes() const { return scheduler_->notes(); }
  // Returns a line for each job in the queue with what it waits for, for stall reports.
  std::vector<std::string> waiting(std::size_t limit) const;

  // Return the descriptions by number of the job.
  const std::vector<JobDescription>& descriptions() const { return descriptions_; }
  const Recovery& recovery() const { return *recovery_; }

 private:
  // GpuUse: by GPU, whether one job has it for itself, and whether several share it.
  struct GpuUse {
    std::vector<bool> taken, shared;
  };
  // WorkOfJob: what the workload says of a job's computation, once it was asked for.
  struct WorkOfJob {
    bool asked = false;
    std::optional<IterationWork> planned;
  };
  using Stage = ManagedJob::Stage;
  class Decisions;
  class Facts;

  static std::uint32_t gpu_ranks(const JobDescription& job, const std::vector<GpuId>& gpus);

  void connect_arrivals();
  void connect_decisions();
  void add_all();
  std::optional<std::vector<PlacedRanks>> place_together() const;
  std::vector<PlacedRanks> place_one_by_one() const;
  PlacedRanks place(const JobDescription& job, const GpuUse& use) const;
  std::optional<PlacedRanks> place_if_free(const JobDescription& job, const GpuUse& use) const;
  PlacedRanks find_gpus(const JobDescription& job, const GpuUse& use) const;
  std::vector<PlacedRanks> place_or_leave_out();
  void open_queue();
  void schedule_arrivals();
  void arrive_due();
  void decide();
  void settle_stages();
  bool settle_stage(JobId job);
  void end_job(JobId job);
  void note_uses();
  Time told_iteration(JobId job) const;
  JobProgress progress_of(JobId job) const;
  void open_phases();
  void give_phases(JobId job);
  void measure_phases();
  std::vector<std::vector<GpuId>> candidates(JobId job, std::uint32_t most) const;
  JobState state_of(JobId job) const;
  void show_progress(JobState& state, const DemandView& demand) const;
  void check_needs() const;
  IterationWork work_of(JobId job) const;
  void add_facts(std::vector<JobState>& states, std::vector<std::vector<LinkBytes>>& links) const;
  void forget_facts(JobId job);
  bool start_if_free(JobId job, const std::vector<GpuId>* gpus);
  bool would_fit(std::span<const JobId> jobs, std::span<const JobId> without) const;
  std::optional<PlacedRanks> place_on(JobId job, const std::vector<GpuId>& gpus) const;
  bool cannot_fit(JobId job) const;
  void begin_job(JobId job, PlacedRanks placed);
  void resume_job(JobId job, PlacedRanks placed);
  void go_on_at(JobId job, Time time);
  void go_on(JobId job);
  void require_class(JobId job, std::uint8_t traffic_class) const;
  void hold(JobId job, Time shift);
  void count_gpus();
  GpuUse no_use() const;
  GpuUse held_use() const;
  void mark_held(JobId job, GpuUse& use) const;
  void mark_failed(GpuUse& use) const;
  static void mark(const JobDescription& job, const std::vector<GpuId>& gpus, bool shared,
                   const std::vector<GpuId>& idle, GpuUse& use);
  static void mark(const JobDescription& job, const PlacedRanks& placed, GpuUse& use);
  GpuUse present_use() const;
  std::string describe_queued(JobId job, const std::string* before) const;
  std::string describe_free() const;
  std::unique_ptr<ComputeTimes> times_of(const JobDescription& job, const std::vector<GpuId>& gpus) const;
  void add(const JobDescription& job, std::vector<GpuId> gpus);
  void add_rest(Recovery::Rest rest);
  void let_rest_live(JobId before);
  void require_memory(const JobDescription& job, const std::vector<GpuId>& gpus) const;
  void require_cpus(const JobDescription& job, const std::vector<GpuId>& gpus) const;

  Environment environment_;
  JobSet& jobs_;
  std::vector<JobDescription> descriptions_;  // by job
  GpuVariation variation_;                    // from the section `gpus`, like `overcommit_memory_`
  bool overcommit_memory_ = false;
  std::vector<std::unique_ptr<ComputeTimes>> times_;  // by job
  std::unique_ptr<JournalReader> arrivals_;           // passes announced arrivals to the jobs
  std::unique_ptr<JournalReader> decisions_;          // passes announced decisions to the jobs
  SchedulingParameters scheduling_;
  std::unique_ptr<Recovery> recovery_;
  std::vector<bool> shares_;              // by job: its placement lets it share GPUs with others
  std::vector<std::vector<GpuId>> idle_;  // by job: GPUs that nobody may have while it holds its own
  std::unique_ptr<JobScheduler> scheduler_;
  std::optional<PhaseBook> phases_;  // the job scheduler asks for phases
  bool is_managed_ = false;
  bool has_queue_ = false;
  bool default_shares_ = false;         // the placement of the configuration lets jobs share GPUs
  std::vector<ManagedJob> states_;      // by job; only has_queue() uses them
  std::vector<JobId> by_arrival_;       // the jobs in the order of their arrivals
  std::size_t arrived_ = 0;             // so many of these have arrived
  std::vector<JobId> live_;             // have arrived and not ended, in that order
  std::vector<JobId> ended_;            // have ended since the last decision
  mutable std::vector<JobId> holders_;  // have begun; those that hold no GPUs any more are removed in time
  std::uint32_t moving_ = 0;            // jobs that will go on at a known time
  ClusterState gpus_;
  JobTraffic* traffic_ = nullptr;        // null: nobody needs the traffic of jobs
  mutable std::vector<WorkOfJob> work_;  // by job, as far as it was asked for
  std::vector<ClusterUse> uses_;
  std::function<void(const JobDescription&)> on_job_added_;
  ViewKeeper* keeper_ = nullptr;  // null: all fields are of the present
  ViewFields views_;              // fields that the scheduler sees
};

}  // namespace netsim
