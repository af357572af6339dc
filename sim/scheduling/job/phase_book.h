// PhaseBook: the communication phases of the jobs of a run. They are those that a job's description gives, or
// they are measured in an iteration of the job. The JobManager owns it, where the job scheduler asks for
// phases (JobNeeds::phases). It is used between events only.
//
// Phases are stored by rank. phases_on() can therefore tell those of a placement that the job does not have.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sim/core/ids.h"
#include "sim/core/units.h"
#include "sim/scheduling/job/job_phases.h"
#include "sim/scheduling/job/phase_recorder.h"

namespace netsim {

class PhaseBook {
 public:
  // `recorder` must outlive this.
  explicit PhaseBook(PhaseRecorder& recorder) : recorder_(recorder) {}

  // RunningJob: a job that holds GPUs, and its last iteration that has ended.
  struct RunningJob {
    JobId job;
    std::span<const GpuId> gpus;  // by rank
    Time begin = 0, end = 0;      // of that iteration; equal: none has ended on these GPUs
    Time present = 0;             // begin of the present iteration
  };

  // Sets the phases that a job's description gives. They hold on each link from a rank to the next one, and
  // from the last rank to the first.
  void give(JobId job, std::uint32_t ranks, Time iteration, std::vector<DemandArc> arcs);
  // Measures the jobs of which no phases are known, or only estimated ones. A job that has met others is
  // estimated once; an iteration without others replaces that.
  void measure(const std::vector<RunningJob>& running);
  // Returns the job's phases on the GPUs that it holds, or null if they are not known. It is valid until the
  // next call of measure(), place() or end().
  const IterationPhases* phases(JobId job) const;
  // Returns the phases that the job would have on other GPUs, by rank. They have no links if none are known.
  IterationPhases phases_on(JobId job, std::span<const GpuId> gpus) const;
  // Tells that the job has got these GPUs.
  void place(JobId job, std::span<const GpuId> gpus);
  void end(JobId job) { jobs_.erase(job); }

 private:
  // RankDemand: what one rank sends to another in each iteration.
  struct RankDemand {
    RankId from, to;
    TransferTraits traits;
    DemandArc arc;
  };
  struct KnownJob {
    bool given = false;
    Time measured =
        -1;  // end of the last iteration that was measured; notes up to there may have been forgotten
    IterationPhases here;  // on the GPUs that it holds
    std::vector<RankDemand> demands;
    std::vector<DemandArc> given_arcs;
  };

  void measure(const RunningJob& job);
  std::vector<BusyTime> busy_times(const RunningJob& job, const std::vector<JobActivity>& own) const;
  bool shorten_met(std::vector<BusyTime>& busy, const RunningJob& job,
                   const std::vector<JobActivity>& own) const;
  Time time_needed(const BusyTime& phase, const RunningJob& job, const std::vector<JobActivity>& own) const;

  PhaseRecorder& recorder_;
  std::map<JobId, KnownJob> jobs_;
};

}  // namespace netsim
