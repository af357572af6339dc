// JobScheduler: decides which jobs run on the cluster, and since when. It is a component kind, which
// `scheduling.jobs` names. Without one, jobs run in the order of their arrivals (fifo).
//
// It is called between events when jobs arrive. It is also called at the next scheduling interval after a job
// ended or was paused, and after iterations if it needs that. The placement of a job finds its GPUs, unless
// the scheduler names them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/ids.h"
#include "sim/core/parameters.h"
#include "sim/core/units.h"
#include "sim/scheduling/demand_view.h"
#include "sim/scheduling/job_facts.h"
#include "sim/scheduling/network_view.h"
#include "sim/scheduling/views.h"

namespace netsim {

struct IterationPhases;  // job_phases.h

// JobState: what a job scheduler knows of one job.
struct JobState {
  enum class Phase : std::uint8_t {
    queued,   // has arrived and has never begun
    running,  // holds GPUs
    pausing,  // holds GPUs until the end of its present iteration
    paused,   // has begun and holds no GPUs
    moving    // holds GPUs and begins its next iteration after JobScheduler::move()
  };
  JobId job;
  Phase phase = Phase::queued;
  std::uint32_t ranks = 0;  // number of GPUs that it needs
  // Submission and first begin; kNever: it has not begun. A job that continues another one after a failure
  // has both from that one.
  Time submitted = 0;
  Time started = kNever;
  Time deadline = kNever;  // kNever: it has none
  double weight = 1;
  std::uint32_t iterations = 0;  // of the whole job; 0: only its run tells
  std::uint32_t iterations_done = 0;
  // Mean time of its iterations so far without waits; before the first, what the workload tells; 0: unknown.
  Time iteration_time = 0;
  std::string_view vc;             // virtual cluster, "" for none
  double gpu_seconds = 0;          // GPUs held, summed over the time for which it held them
  std::span<const GpuId> gpus;     // by rank, those that it holds; empty: none
  std::uint8_t priority = 0;       // of its messages at least, and the data class of those of class 0,
  std::uint8_t traffic_class = 0;  // as the list of jobs gives them
  // These need JobNeeds::traffic, and are filled in for a job that holds GPUs. `traffic` has its mean bytes
  // of an iteration over each link of the fabric, by rising PortId. It is empty before an iteration has
  // ended.
  IterationWork work;
  std::span<const LinkBytes> traffic;
  // Begin of its present iteration at all ranks: the end of the one before, or later if it was held. kNever
  // before its begin.
  Time iteration_began = kNever;
  // When in an iteration it communicates, on the GPUs that it holds. Null: not known, or JobNeeds::phases is
  // 0. It is valid until the end of decide().
  const IterationPhases* phases = nullptr;
  std::string_view name;

  bool waits() const { return phase == Phase::queued || phase == Phase::paused; }
};

// Returns the iterations that are left, at least 1.
std::uint32_t iterations_left(const JobState& job);
// Returns the expected seconds that the job still needs. An iteration of unknown time counts as one second.
double seconds_left(const JobState& job);

// ClusterState: the GPUs of the cluster. Those on failed hosts are neither free nor held.
struct ClusterState {
  std::uint32_t gpus = 0;                   // all, drives of storage servers excluded
  std::uint32_t free = 0;                   // GPUs that no job holds
  std::vector<std::uint32_t> free_by_host;  // by host
};

// ClusterFacts: what else a job scheduler can ask. An answer costs more than a field.
class ClusterFacts {
 public:
  virtual ~ClusterFacts() = default;
  // Returns at most so many different sets of free GPUs, by rank, for a job that waits. The first is that of
  // start(). Each other one is what the job's placement finds when GPUs of lower hosts are not free. Returns
  // none if there is no place, and for jobs that share GPUs or use storage servers.
  virtual std::vector<std::vector<GpuId>> candidates(JobId job, std::uint32_t most) const = 0;
  // Returns the phases that the job would have on these GPUs, by rank. They have no links if none are known.
  virtual IterationPhases phases_on(JobId job, const std::vector<GpuId>& gpus) const = 0;
};

// JobSchedulerView: what a job scheduler sees when it is called. Fields that it does not name in
// needs().views, or that are off, are hidden.
// - `jobs`: the iterations, the time of one and the GPU seconds in JobState are as old as the field's age
// says.
//   Of a job that has come since, it sees what the workload tells. Hidden: all of these are 0.
// - `deadlines`: JobState::deadline is known so long after the submission; before, or hidden, it is kNever.
struct JobSchedulerView {
  Time now = 0;
  // Jobs that have arrived and are not done, in the order of their arrivals. Jobs of one time are in the
  // order of the list. Jobs that can never fit are left out.
  std::span<const JobState> jobs;
  const ClusterState& cluster;
  NetworkView network = {};
  DemandView demand = {};
  std::span<const BitRate> port_rates = {};  // with JobNeeds::traffic: rate of each link, by PortId, bit/s
  const ClusterFacts* facts = nullptr;       // not null in a run
};

// JobDecisions: takes the decisions. Each acts at once.
class JobDecisions {
 public:
  virtual ~JobDecisions() = default;
  // Lets a job that waits begin, or go on after JobScheduler::move(), on GPUs that its placement finds.
  // Returns whether it found free ones.
  virtual bool start(JobId job) = 0;
  // Does the same on GPUs that the caller names, one for each rank. Returns false if one of them is not free.
  virtual bool start(JobId job, const std::vector<GpuId>& gpus) = 0;
  // Returns whether the placements of `jobs`, one after the other, would find GPUs if those of `without` held
  // none. The jobs may be among them.
  virtual bool would_fit(std::span<const JobId> jobs, std::span<const JobId> without) const = 0;
  // Pauses a running job at the end of the iteration in which its first rank is. Its GPUs are free at the
  // next scheduling interval after it. A job in its last iteration ends instead. Only allowed with
  // JobNeeds::pauses.
  virtual void pause(JobId job) = 0;
  // Lets the next iteration of a running job begin so much later at all ranks. It keeps its GPUs. Only
  // allowed with JobNeeds::pauses.
  virtual void shift(JobId job, Time by) = 0;
  // Sets the least priority of the messages that the job sends from now on, and their data class in the
  // network. A class that the network does not have (network.switch.classes) ends the run with ConfigError.
  virtual void set_traffic(JobId job, std::uint8_t priority, std::uint8_t traffic_class) = 0;
};

// JobNeeds: what a job scheduler asks for.
struct JobNeeds {
  bool iterations = false;       // it is also called after each end of an iteration of any job
  bool pauses = false;           // it may pause and shift jobs
  bool traffic = false;          // it sees JobState::work and traffic, which needs a packet fabric
  std::uint32_t classes = 1;     // data classes that the network must have (network.switch.classes)
  std::uint32_t nic_levels = 1;  // above 1: levels of priority that it uses (transport.nic_priorities)
  ViewFields views = {};         // fields of views that it uses, if they are on (scheduling.views)
  ViewFields required = {};  // of these, those without which it cannot decide: a run without them is refused
  // Above 0: JobState::phases is measured. Activity that is interrupted for a shorter time is one phase. The
  // scheduler is also called at the next interval after a job has started.
  Time phases = 0;
};

class JobScheduler {
 public:
  static constexpr const char* kComponentKind = "job_scheduler";
  explicit JobScheduler(Time move = 0) : move_(move) {}
  virtual ~JobScheduler() = default;
  // Returns the time from the decision to resume a paused job until its next iteration begins.
  Time move() const { return move_; }
  virtual JobNeeds needs() const { return {}; }
  // Sets which fields of needs().views are on. Called once, before the run.
  void set_views(ViewFields on) { on_ = on; }
  // Decides what the jobs do. It may keep state of its own: there is one object for a run.
  virtual void decide(const JobSchedulerView& view, JobDecisions& decisions) = 0;
  // Returns notes about what it could not do, for the report of the run.
  virtual std::vector<std::string> notes() const { return {}; }

  // Returns whether a field of needs().views is on.
  bool sees(ViewField field) const { return on_.has(field); }

 private:
  ViewFields on_ = ViewFields::all();
  Time move_;
};

// MoveParameters: the parameters that every job scheduler with pauses has.
struct MoveParameters {
  Time move = 0;
  bool defragment = false;
};
template <class P>
Parameters<P> move_parameters() {
  return Parameters<P>()
      .time("move", &P::move, {0, 10'000 * kSecond},
            "time from the decision to resume a paused job until its next iteration begins, "
            "as for a checkpoint that is written and read; the job holds its GPUs meanwhile")
      .flag(
          "defragment", &P::defragment,
          "running jobs are moved where enough GPUs are free for the first job that waits, but its placement "
          "cannot use them; only if it would wait longer than the moves cost");
}

}  // namespace netsim
