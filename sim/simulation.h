// Simulation: connects all parts of netsim. A configuration becomes a System (cluster, network, executor,
// devices). With jobs it becomes a Simulation, which runs once and returns Results.
//
// Several may exist in one process, because nothing here is global.
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

// System: everything that a configuration describes. Throws ConfigError for an invalid configuration.
class System {
 public:
  // `root` must outlive the system. `threads` is the number of threads; 0: one for each core.
  System(const ConfigNode& root, std::uint64_t seed, std::uint32_t threads,
         PacketNetwork::FlowObserver observer);

  Engine& engine() { return engine_; }
  const Engine& engine() const { return engine_; }
  const Cluster& cluster() const { return cluster_; }
  Executor& executor() { return *executor_; }
  const Executor& executor() const { return *executor_; }
  ComputeDevices& devices() { return *devices_; }
  // Return null for `network: ideal`.
  const PacketNetwork* packets() const { return packets_; }
  PacketNetwork* packets() { return packets_; }
  // Returns null if the network has no optical circuits that jobs can request.
  CircuitControl* circuits() { return circuits_; }
  // Returns the structure of the cluster, with its bisection while all links that faults take down are down.
  Structure structure() const;
  // Returns the number of the GPU's group of hosts.
  std::uint32_t group_of(std::uint32_t gpu) const { return cluster_.hosts[cluster_.gpus[gpu].host].group; }
  // Returns null if there is no model of this GPU, because neither `compute` nor the host names one.
  const ComputeModel* compute(std::uint32_t gpu) const { return compute_of_group(group_of(gpu)); }
  // Returns the compute model of a group of hosts.
  const ComputeModel* compute_of_group(std::uint32_t group) const { return compute_[group].get(); }
  // Returns the section `output`, without samples for `network: ideal`, which has no ports to sample.
  const OutputParameters& output() const { return output_; }
  // By number in Cluster::fabrics; empty for `network: ideal`.
  const std::vector<TransportFigures>& transports() const { return transports_; }
  // Return the event loop of each set, and the set of each GPU's events.
  const std::vector<EventLoop*>& loops() const { return loops_; }
  const std::vector<std::uint32_t>& set_of_gpu() const { return set_of_gpu_; }
  // Returns the first origin that no entity of the system uses.
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
  std::vector<std::string> workload_assignments;  // replace values of the workload's description
  std::vector<JobDescription> jobs;               // made by the caller instead of read from the workload
  std::uint64_t seed = 1;
  std::uint32_t threads = 0;       // 0: one for each core
  std::string output_directory;    // "": no files
  std::vector<std::string> notes;  // for Results::notes, from the reader of the configuration
};

// Advance: the progress of a run, for progress displays.
struct Advance {
  // Share of the predicted work (packets, their hops, and tasks) that is done; below 0: unknown.
  double fraction = 0;
  Time simulated = 0;
  std::uint64_t events = 0;
};

// Watch: the limits and callbacks of a run. The functions may be empty; they are called between slices of
// events.
struct Watch {
  Time until = kNever;                // later events are not executed
  std::function<bool()> interrupted;  // true: ends the run with a report of the work done so far
  std::function<void(const Advance&)> report;
  double report_every = 0.1;  // seconds of wall time between two reports, and before the first
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
  using IterationCallback = std::function<void(std::uint32_t job, std::uint32_t iteration, Time end)>;

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
  bool step(Time until = kNever);
  SimulationState state() const;
  // Returns the results so far. `until` is the time at which a run that is not done was cut.
  Results results(Time until = kNever);

  const ConfigNode& configuration() const { return setup_.config; }
  const Cluster& cluster() const { return system_.cluster(); }
  const System& system() const { return system_; }
  std::uint32_t jobs() const { return jobs_->size(); }
  const JobPlan& job(std::uint32_t number) const { return jobs_->job(number).plan(); }
  // Returns the GPU of each rank of a job.
  const std::vector<std::uint32_t>& placement(std::uint32_t job) const { return jobs_->job(job).plan().gpus; }
  // Predicts the size of the run by a calibration. It simulates the run for about `seconds` of wall time, or
  // to its end, within the watch's `until` and `interrupted`. Must be called once, instead of run().
  Prediction predict(double seconds, const Watch& watch);
  // Executes the run; must be called once. It also executes the events that a finished job left
  // (acknowledgements), so that counters are complete.
  Results run(const Watch& watch);
  // Completes the files in the output directory, if there is one. Must be called after run().
  void finish_files(const Results& results, const RunTexts& texts);

 private:
  void create_jobs();
  void connect_requests();
  void record(const CommunicationRecord& communication);
  void check_bound(const CommunicationRecord& communication, const LibraryChoice& choice);
  void place(const JobDescription& job, std::vector<bool>& taken, std::vector<bool>& shared);
  void add(const JobDescription& job, std::vector<std::uint32_t> gpus);
  void resume(Recovery::Rest rest);
  std::unique_ptr<ComputeTimes> compute_times(const JobDescription& job,
                                              const std::vector<std::uint32_t>& gpus) const;
  // Executes a slice of events up to `until` and takes samples on the way. Returns false if there was no
  // event and no sample.
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

  // LastMove: the counters and time at the last check at which a task had ended or a packet had arrived
  // (stuck()).
  struct LastMove {
    std::uint64_t tasks = 0, packets = 0, event = 0;
    Time time = 0;
  };

  Stopwatch since_creation_;
  SimulationSetup setup_;
  System system_;
  std::vector<JobDescription> descriptions_;  // by job
  GpuVariation variation_;                    // from the section `gpus`, like `overcommit_memory_`
  bool overcommit_memory_ = false;
  std::vector<std::unique_ptr<ComputeTimes>> times_;  // by job
  std::unique_ptr<Tables> tables_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<Sampler> sampler_;  // null: no samples
  std::unique_ptr<JobSet> jobs_;
  std::unique_ptr<Recovery> recovery_;
  std::unique_ptr<JournalReader> journal_;  // passes the ranks' records to the jobs' statistics
  // Passes the records of the operations' messages to the jobs' statistics.
  std::unique_ptr<JournalReader> transfers_;
  std::unique_ptr<JournalReader> circuits_;  // passes the ranks' circuit requests to the switches
  std::uint32_t journal_reader_ = 0, transfer_reader_ = 0;
  std::vector<std::uint32_t> members_;      // GPUs of the collective that is being recorded
  std::optional<CollectiveBounds> bounds_;  // made with the first collective
  IterationCallback on_iteration_;
  LastMove last_move_;
  Time next_look_ = 0;
  bool stuck_ = false;
};

}  // namespace netsim
