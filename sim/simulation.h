// Simulation: the composition root, the one place that knows every room. A configuration becomes a System
// (cluster, network, executor, devices); with jobs on it, a Simulation that runs once and answers with
// Results.
//
// Several may live in one process: nothing here is global.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/collectives/execution/executor.h"
#include "sim/compute/compute_devices.h"
#include "sim/compute/compute_model.h"
#include "sim/compute/compute_times.h"
#include "sim/compute/gpu_variation.h"
#include "sim/core/config.h"
#include "sim/core/engine.h"
#include "sim/core/stopwatch.h"
#include "sim/jobs/job_set.h"
#include "sim/recovery.h"
#include "sim/report/collective_bounds.h"
#include "sim/report/prediction.h"
#include "sim/report/recorder.h"
#include "sim/report/results.h"
#include "sim/report/sampler.h"
#include "sim/report/tables.h"
#include "sim/topology/partition.h"
#include "sim/topology/structure.h"
#include "sim/topology/topology.h"
#include "sim/transport/circuit_control.h"
#include "sim/transport/packet_network.h"
#include "sim/workload/task.h"
#include "sim/workload/workload.h"

namespace netsim {

// Everything that a configuration describes. ConfigError for what it gets wrong.
class System {
 public:
  // `root` must outlive the system. `threads`: 0 for all cores.
  System(const ConfigNode& root, std::uint64_t seed, std::uint32_t threads,
         PacketNetwork::FlowObserver observer);

  Engine& engine() { return engine_; }
  const Engine& engine() const { return engine_; }
  const Cluster& cluster() const { return cluster_; }
  Executor& executor() { return *executor_; }
  const Executor& executor() const { return *executor_; }
  ComputeDevices& devices() { return *devices_; }
  // Null for `network: ideal`.
  const PacketNetwork* packets() const { return packets_; }
  PacketNetwork* packets() { return packets_; }
  // Null: the network has no optical circuits that anybody could ask for.
  CircuitControl* circuits() { return circuits_; }
  // Of the cluster, and of what the faults leave of it.
  Structure structure() const;
  // Null where neither `compute` nor the host names a model.
  std::uint32_t group_of(std::uint32_t gpu) const { return cluster_.hosts[cluster_.gpus[gpu].host].group; }
  // Null: there is none for this GPU.
  const ComputeModel* compute(std::uint32_t gpu) const { return compute_of_group(group_of(gpu)); }
  // Returns the compute model of a group of hosts.
  const ComputeModel* compute_of_group(std::uint32_t group) const { return compute_[group].get(); }
  // Without samples for `network: ideal`, where there is nothing to look at.
  const OutputParameters& output() const { return output_; }
  // By number in Cluster::fabrics; nothing for `network: ideal`.
  const std::vector<TransportFigures>& transports() const { return transports_; }
  // By set, and which one a GPU's events are in.
  const std::vector<EventLoop*>& loops() const { return loops_; }
  const std::vector<std::uint32_t>& set_of_gpu() const { return set_of_gpu_; }
  // The first origin that no entity of the system has.
  std::uint32_t next_origin() const { return next_origin_; }

 private:
  Cluster cluster_;
  Partition partition_;
  Engine engine_;
  std::vector<EventLoop*> loops_;
  std::vector<std::uint32_t> set_of_gpu_;
  OutputParameters output_;
  std::vector<TransportFigures> transports_;
  PacketNetwork* packets_ = nullptr;
  CircuitControl* circuits_ = nullptr;
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<ComputeDevices> devices_;
  std::vector<std::unique_ptr<ComputeModel>> compute_;  // by group of hosts
  std::uint32_t next_origin_ = 0;
};

struct SimulationSetup {
  ConfigNode config;
  std::string workload;                           // path; "" where `jobs` are given
  std::vector<std::string> workload_assignments;  // laid over its description
  std::vector<JobDescription> jobs;               // made by the caller instead of read
  std::uint64_t seed = 1;
  std::uint32_t threads = 0;       // 0: as many as the machine has cores
  std::string output_directory;    // "" = no files
  std::vector<std::string> notes;  // of whoever made the configuration, for Results::notes
};

// Where a run is: for progress displays.
struct Advance {
  double fraction = 0;  // of the predicted work: packets and their hops, tasks; less than 0: nobody knows
  Time simulated = 0;
  std::uint64_t events = 0;
};

// What a run looks at while it goes on. The functions may be empty; they are called between slices of events.
struct Watch {
  Time until = kNever;                // events after it are not executed
  std::function<bool()> interrupted;  // true: end the run, with the report of what was done
  std::function<void(const Advance&)> report;
  double report_every = 0.1;  // seconds of wall time between two reports, and before the first
};

// How far a simulation is, between two steps.
struct SimulationState {
  Time now = 0;  // of the last event, or what was called
  std::uint64_t events = 0;
  bool done = false;  // all jobs are
  struct JobState {
    std::string name;
    bool begun = false, done = false;
    std::uint64_t tasks_done = 0;
    std::uint32_t iterations_done = 0;
  };
  std::vector<JobState> jobs;
  NetworkCounters network;  // nothing for `network: ideal`
};

// A run. Either run() it, or begin() it and step() as far as you like, then take its results().
class Simulation {
 public:
  // All ranks of job `job` have done iteration `iteration`; its last task ended at `end`.
  using IterationCallback = std::function<void(std::uint32_t job, std::uint32_t iteration, Time end)>;

  // Builds everything. ConfigError, InputError or IoError for what is wrong with configuration, workload or
  // output directory; ConfigError where the ranks do not fit on the cluster's GPUs.
  explicit Simulation(SimulationSetup setup);
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Called between events, in order of time, from the thread that steps. Before the run begins.
  void on_iteration(IterationCallback callback) { on_iteration_ = std::move(callback); }
  // Jobs that arrive at 0 begin; the others will.
  void begin();
  // Executes some events, none after `until`. False when there was none: all is done, or nothing is left
  // before `until` (state() tells), or the run is stuck.
  bool step(Time until = kNever);
  SimulationState state() const;
  // Of what was done so far. `until`: where the run was cut, if it was not done.
  Results results(Time until = kNever);

  const ConfigNode& configuration() const { return setup_.config; }
  const Cluster& cluster() const { return system_.cluster(); }
  const System& system() const { return system_; }
  std::uint32_t jobs() const { return jobs_->size(); }
  const JobPlan& job(std::uint32_t number) const { return jobs_->job(number).plan(); }
  // GPU of each rank of a job.
  const std::vector<std::uint32_t>& placement(std::uint32_t job) const { return jobs_->job(job).plan().gpus; }
  // How big the run is, after a calibration: instead of run(), once. Plays the run itself for about `seconds`
  // (of a Stopwatch; or to its end, if that comes first), by the watch's `until` and `interrupted`.
  Prediction predict(double seconds, const Watch& watch);
  // Once. Ends with what is left of the events of a finished job (acknowledgements), so that counters are
  // complete.
  Results run(const Watch& watch);
  // After run(): completes the files in the output directory, if there is one.
  void finish_files(const Results& results, const RunTexts& texts);

 private:
  void create_jobs();
  void connect_requests();
  void record(const CommunicationRecord& communication);
  void check_bound(const CommunicationRecord& communication, const LibraryChoice& choice);
  void place(const JobDescription& job, std::vector<bool>& taken, std::vector<bool>& shared);
  void add(const JobDescription& job, std::vector<std::uint32_t> gpus);
  void go_on(Recovery::Rest rest);
  std::unique_ptr<ComputeTimes> compute_times(const JobDescription& job,
                                              const std::vector<std::uint32_t>& gpus) const;
  // Executes a slice of events up to `until`, and samples on the way. False if there was none and no sample.
  bool slice(Time until);
  Outcome play(const Watch& watch);
  void settle(const Watch& watch);
  bool deadlocked() const;
  void finish_samples(Outcome outcome, const Watch& watch);
  bool stuck();
  Calibration calibrate(double seconds, const Watch& watch);
  Calibration::Mark progress_mark(double seconds) const;
  Volume done() const;
  Volume predicted();
  Advance advance(const Volume& all) const;
  bool naming_step(Time until);
  Volume whole_volume();
  Results end(Outcome outcome, const Watch& watch);
  Results collect(Outcome outcome, const Watch& watch) const;
  void require_memory(const JobDescription& job, const std::vector<std::uint32_t>& gpus) const;
  void require_cpus(const JobDescription& job, const std::vector<std::uint32_t>& gpus) const;
  Bytes memory_of(std::uint32_t gpu) const;
  bool finished() const { return jobs_->done() && !recovery_->is_pending(); }
  double mean_peak_flops(const std::vector<std::uint32_t>& gpus) const;
  std::vector<FabricResult> fabric_results() const;
  JobResult job_result(std::uint32_t number, Time now) const;
  std::vector<std::string> waiting() const;
  std::vector<std::string> notes(const Results& results) const;
  std::vector<std::string> compute_notes() const;

  // The last look at which a task had ended or a packet arrived (stuck()).
  struct LastMove {
    std::uint64_t tasks = 0, packets = 0, event = 0;
    Time time = 0;
  };

  Stopwatch since_creation_;
  SimulationSetup setup_;
  System system_;
  std::vector<JobDescription> descriptions_;  // by job
  GpuVariation variation_;                    // of the section `gpus`, as is the next
  bool overcommit_memory_ = false;
  std::vector<std::unique_ptr<ComputeTimes>> times_;  // by job
  std::unique_ptr<Tables> tables_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<Sampler> sampler_;  // null: no samples
  std::unique_ptr<JobSet> jobs_;
  std::unique_ptr<Recovery> recovery_;
  std::unique_ptr<JournalReader> journal_;    // tells the jobs' statistics what their ranks did
  std::unique_ptr<JournalReader> transfers_;  // the same for the messages of their operations
  std::unique_ptr<JournalReader> circuits_;   // takes their requests for circuits to the switches
  std::uint32_t journal_reader_ = 0, transfer_reader_ = 0;
  std::vector<std::uint32_t> members_;      // of the collective that is recorded: GPUs
  std::optional<CollectiveBounds> bounds_;  // made with the first one
  IterationCallback on_iteration_;
  LastMove last_move_;
  Time next_look_ = 0;
  bool stuck_ = false;
};

}  // namespace netsim
