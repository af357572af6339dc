// Simulation: a run of jobs on a System. It is made from a configuration and a workload, runs once and
// returns Results.
//
// Several may exist in one process, because nothing here is global.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/ids.h"
#include "sim/core/stopwatch.h"
#include "sim/jobs/demand_reader.h"
#include "sim/jobs/job_manager.h"
#include "sim/jobs/job_set.h"
#include "sim/report/recorded_choices.h"
#include "sim/report/recorder.h"
#include "sim/report/result_sinks.h"
#include "sim/report/results.h"
#include "sim/report/run_progress.h"
#include "sim/report/sampler.h"
#include "sim/scheduling/job_traffic.h"
#include "sim/scheduling/network_reader.h"
#include "sim/scheduling/scheduling_intervals.h"
#include "sim/scheduling/view_keeper.h"
#include "sim/simulation/results_builder.h"
#include "sim/simulation/run_loop.h"
#include "sim/simulation/system.h"
#include "sim/workload/workload.h"

namespace netsim {

struct SimulationSetup {
  ConfigNode config;
  InputPaths workload;                            // empty where `jobs` are given
  std::vector<std::string> workload_assignments;  // replace values of the workload's description
  std::vector<JobDescription> jobs;               // made by the caller instead of read from the workload
  std::uint64_t seed = 1;
  std::uint32_t threads = 0;       // 0: one for each core
  std::string output_directory;    // "": no files
  bool report = true;              // report.html is one of these files
  std::vector<std::string> notes;  // for Results::notes, from the reader of the configuration
};

// SimulationState: the state of a simulation between two steps.
struct SimulationState {
  Time now = 0;  // time of the last event or call
  std::uint64_t events = 0;
  bool done = false;  // all jobs are done
  struct JobState {
    std::string name;
    bool begun = false, done = false;
    std::uint64_t tasks_done = 0;
    std::uint32_t iterations_done = 0;
  };
  std::vector<JobState> jobs;
  NetworkCounters network;  // zeros for `network: ideal`
};

// Simulation: a run. Call either run(), or begin() and then step() as often as needed. Then take results().
class Simulation {
 public:
  // Called when all ranks of job `job` have done iteration `iteration`. `end` is the end of its last task.
  using IterationCallback = std::function<void(JobId job, std::uint32_t iteration, Time end)>;

  // Builds everything. Throws ConfigError, InputError or IoError for an invalid configuration, workload or
  // output directory. Throws ConfigError where the ranks do not fit on the cluster's GPUs.
  explicit Simulation(SimulationSetup setup);
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Sets a callback that is called between events, in order of time, from the thread that steps. Must be
  // called before the run begins.
  void on_iteration(IterationCallback callback) { on_iteration_ = std::move(callback); }
  // Begins the jobs that arrive at 0 and schedules the others.
  void begin();
  // Executes some events, none after `until`. Returns false if it executed none: all is done, nothing is left
  // before `until` (see state()), or the run is stuck.
  bool step(Time until = kNever) { return loop_->step(until); }
  SimulationState state() const;
  // Returns the results so far. `until` is the time at which a run that is not done was cut.
  Results results(Time until = kNever);

  const ConfigNode& configuration() const { return setup_.config; }
  const Cluster& cluster() const { return system_.cluster(); }
  const System& system() const { return system_; }
  std::uint32_t jobs() const { return jobs_->size(); }
  const JobPlan& job(std::uint32_t number) const { return jobs_->job(number).plan(); }
  // Returns whether jobs wait for GPUs, so that a job has its GPUs only when it has begun.
  bool has_queue() const { return manager_->has_queue(); }
  // Returns the GPU of each rank of a job. Where jobs wait for GPUs, a job has its GPUs when it has begun;
  // before, these are the GPUs that it would have alone.
  const std::vector<GpuId>& placement(JobId job) const { return jobs_->job(job).plan().gpus; }
  // Predicts the size of the run by a calibration. It simulates the run for about `seconds` of wall time, or
  // to its end, within the watch's `until` and `interrupted`. Must be called once, instead of run().
  Prediction predict(double seconds, const Watch& watch);
  // Executes the run; must be called once. It also executes the events that a finished job left
  // (acknowledgements), so that counters are complete.
  Results run(const Watch& watch);
  // Completes the files in the output directory, if there is one. Must be called after run(). `text` may be
  // null (FinishedRun::text).
  void finish_files(const Results& results, const RunText* text = nullptr);

 private:
  JobObserver observer();
  void connect_journals();
  void connect_views();
  bool has_nic_priorities() const;
  void measure_traffic();
  void open_outputs();
  Results end(Outcome outcome, const Watch& watch);
  RunParts parts() const;

  Stopwatch since_creation_;
  SimulationSetup setup_;
  System system_;
  SchedulingIntervals intervals_;
  std::unique_ptr<ViewKeeper> views_;
  std::unique_ptr<ResultSinks> sinks_;  // null: no files
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<Sampler> sampler_;  // null: no samples
  std::unique_ptr<JobSet> jobs_;
  std::unique_ptr<JobManager> manager_;
  std::unique_ptr<NetworkReader> network_reader_;
  std::unique_ptr<DemandReader> demand_reader_;
  std::unique_ptr<JobTraffic> traffic_;  // null: no scheduler needs it
  std::unique_ptr<RunProgress> progress_;
  std::unique_ptr<RecordedChoices> choices_;
  std::unique_ptr<CutCosts> cuts_;
  std::unique_ptr<RunLoop> loop_;
  // Pass the ranks' records, and those of the operations' messages, to the jobs' statistics.
  std::unique_ptr<JournalReader> journal_, transfers_;
  std::uint32_t journal_reader_ = 0, transfer_reader_ = 0;
  IterationCallback on_iteration_;
};

}  // namespace netsim
