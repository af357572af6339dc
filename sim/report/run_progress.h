// RunProgress: how much of a run's work is done, for progress displays and for the calibration of --dry-run.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/collectives/execution/executor.h"
#include "sim/core/engine.h"
#include "sim/core/stopwatch.h"
#include "sim/jobs/job_set.h"
#include "sim/report/prediction.h"
#include "sim/topology/topology.h"
#include "sim/transport/packet_network.h"
#include "sim/workload/workload.h"

namespace netsim {

// Advance: the progress of a run, for progress displays.
struct Advance {
  // Share of the predicted work (packets, their hops, and tasks) that is done; below 0: unknown.
  double fraction = 0;
  Time simulated = 0;
  std::uint64_t events = 0;
};

class RunProgress {
 public:
  // `packets` is null for `network: ideal`. All arguments must outlive this.
  RunProgress(const std::vector<JobDescription>& descriptions, const JobSet& jobs, const Engine& engine,
              const Cluster& cluster, Executor& executor, const PacketNetwork* packets)
      : descriptions_(descriptions),
        jobs_(jobs),
        engine_(engine),
        cluster_(cluster),
        executor_(executor),
        packets_(packets) {}

  // Returns the work that is done.
  Volume done() const;
  // Returns the work of the whole run.
  Volume whole() const;
  // Returns the progress. The first call predicts the work of the run, or only its tasks where there are too
  // many of them.
  Advance advance();

 private:
  Volume predicted() const;

  const std::vector<JobDescription>& descriptions_;
  const JobSet& jobs_;
  const Engine& engine_;
  const Cluster& cluster_;
  Executor& executor_;
  const PacketNetwork* packets_;
  std::optional<Volume> all_;
};

// Calibrator: measures a piece of a run for its prediction. The run calls enough() between slices of events.
class Calibrator {
 public:
  // The piece lasts about `seconds` of wall time, and until at least kChecks checks are made. The first
  // slices are slow in a large network, because all memory is touched for the first time.
  Calibrator(const RunProgress& progress, double seconds, double setup_seconds)
      : progress_(progress), seconds_(seconds) {
    calibration_.setup_seconds = setup_seconds;
  }
  // Returns whether the piece is long enough.
  bool enough();
  // Returns the calibration. `complete`: the piece was the whole run.
  Calibration finish(bool complete, Time simulated, const std::vector<TransportFigures>& transports);

 private:
  static constexpr std::uint32_t kChecks = 8;
  Calibration::Mark mark(double seconds) const { return {seconds, progress_.done(), peak_memory()}; }

  const RunProgress& progress_;
  double seconds_;
  const Stopwatch since_start_;
  double begin_ = 0;
  std::uint32_t checks_ = 0;
  Calibration calibration_;
};

}  // namespace netsim
