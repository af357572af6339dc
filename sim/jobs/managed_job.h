// ManagedJob: what the JobManager knows of a job that waits for GPUs or has begun.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/units.h"

namespace netsim {

struct ManagedJob {
  enum class Stage : std::uint8_t {
    coming,  // has not arrived
    queued,
    running,
    pausing,  // holds its next iteration, and its GPUs until the present one has ended
    paused,
    moving,  // resumes later, and holds its GPUs
    ended,
    never_fits
  };
  Stage stage = Stage::coming;
  std::string why;        // never_fits: the reason
  Time started = kNever;  // first begin
  // GPU seconds that the jobs held which this one continues after failures.
  double gpu_seconds_before = 0;
  Time paused_at = 0;  // begin of its present pause, or of its move
  Time paused = 0;     // sum of the times without GPUs since its begin
  Time moved = 0;      // sum of the times of its moves
  std::uint32_t pauses = 0;
  // Iterations that had ended when it last went on. waited is paused + moved then, and waited_before the same
  // one time earlier, so that the mean of its iterations has no waits.
  std::uint32_t iterations_before = 0;
  Time waited = 0, waited_before = 0;
  Time went_on = kNever;        // its first begin, or the last time at which it went on
  std::uint32_t hold_from = 0;  // pausing: the iteration that it holds
  Time shift = 0;               // pausing: above 0, it keeps its GPUs and goes on so much later

  bool waits() const { return stage == Stage::queued || stage == Stage::paused; }
  bool holds_gpus() const {
    return stage == Stage::running || stage == Stage::pausing || stage == Stage::moving;
  }
  // Returns the waits before the end of its iteration `ended`, the last one that has ended.
  Time waits_until(std::size_t ended) const { return ended > iterations_before ? waited : waited_before; }
  // Returns the begin of the iteration after the ends `ends`, or kNever before its first begin.
  Time iteration_begin(const std::vector<Time>& ends) const {
    return ends.size() <= iterations_before ? went_on : ends.back();
  }
  // Return for how long the job has had no GPUs, and for how long it has been moved, since it began.
  Time paused_until(Time now) const { return paused + (stage == Stage::paused ? now - paused_at : 0); }
  Time moved_until(Time now) const { return moved + (stage == Stage::moving ? now - paused_at : 0); }
};

// ClusterUse: the use of the cluster from a time on.
struct ClusterUse {
  Time time = 0;
  std::uint32_t gpus_held = 0;
  std::uint32_t running = 0, paused = 0, queued = 0;  // jobs; those that hold GPUs count as running
  bool is_same_use(const ClusterUse& other) const {
    return gpus_held == other.gpus_held && running == other.running && paused == other.paused &&
           queued == other.queued;
  }
};

}  // namespace netsim
