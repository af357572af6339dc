// RunLoop: executes the events of a run in slices, up to a time, and takes samples on the way. Between slices
// it looks whether the run was interrupted, and whether it makes progress. Simulation owns it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "sim/core/engine.h"
#include "sim/jobs/job_manager.h"
#include "sim/jobs/job_set.h"
#include "sim/report/results.h"
#include "sim/report/run_progress.h"
#include "sim/report/sampler.h"
#include "sim/simulation/stall_check.h"
#include "sim/transport/packet_network.h"

namespace netsim {

// Watch: the limits and callbacks of a run. The functions may be empty; they are called between slices of
// events.
struct Watch {
  Time until = kNever;                // later events are not executed
  std::function<bool()> interrupted;  // true: ends the run with a report of the work done so far
  std::function<void(const Advance&)> report;
  double report_every = 0.1;  // seconds of wall time between two reports, and before the first
};

using WallClock = std::chrono::steady_clock;

inline double seconds_since(WallClock::time_point start) {
  return std::chrono::duration<double>(WallClock::now() - start).count();
}

class RunLoop {
 public:
  // `packets` is null for `network: ideal`, and `sampler` where no samples are taken. All references must
  // outlive the loop.
  RunLoop(Engine& engine, JobSet& jobs, JobManager& manager, PacketNetwork* packets, Sampler* sampler,
          std::string workload)
      : engine_(engine),
        jobs_(jobs),
        manager_(manager),
        packets_(packets),
        sampler_(sampler),
        workload_(std::move(workload)),
        stall_(engine, jobs, manager, packets) {}

  // Executes some events, none after `until`. Returns false if it executed none, as Simulation::step() says.
  bool step(Time until);
  // Executes events until all jobs are done, or the run ends for another reason. `progress` is advanced for
  // the reports of the watch.
  Outcome play(const Watch& watch, RunProgress& progress);
  // Executes the events that finished jobs left. All timers of the network end by themselves.
  void settle(const Watch& watch);
  // Samples the interval of the last event. If the run was cut, only the interval's part up to the cut is
  // sampled.
  void finish_samples(Outcome outcome, Time cut);
  // Returns whether no event can change the state of the jobs any more, though they are not done.
  bool stalled() const { return is_stuck() || next_time() == kNever; }

 private:
  // Returns the time of the next event, call or scheduling interval, or kNever where nothing is left to do.
  Time next_time() const;
  // Executes a slice of events up to `until` and takes samples on the way. Returns false if there was no
  // event and no sample.
  bool slice(Time until);
  bool naming_step(Time until);
  bool call_schedulers();
  bool is_deadlocked() const { return packets_ != nullptr && packets_->deadlocked(); }
  bool is_stuck() const { return stall_.stalled() || is_deadlocked(); }

  Engine& engine_;
  JobSet& jobs_;
  JobManager& manager_;
  PacketNetwork* packets_;
  Sampler* sampler_;
  std::string workload_;  // path for errors
  StallCheck stall_;
  std::uint64_t called_schedulers_at_ = UINT64_MAX;  // events executed after call_schedulers()
};

}  // namespace netsim
