// GPUs that are not all alike: GPUs of one kind, no two of which are quite as fast; stragglers, which are
// slower than their model says; and jitter, which makes each task take a little more or less. All are the
// user's to give; nothing varies by default.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/random.h"
#include "sim/topology/topology.h"
#include "sim/workload/compute/compute_times.h"

namespace netsim {

// A GPU on which computing takes `slowdown` times as long, in the iterations `first` to `last` of its job.
struct Straggler {
  std::uint32_t gpu = 0;
  double slowdown = 1;
  std::uint32_t first = 0, last = UINT32_MAX;
};

// The list `gpus.stragglers`: {gpu: host0/gpu3, slowdown: 1.3} or {host: host2, slowdown: 1.1}, each with
// `first_iteration` and `last_iteration` if wanted. A GPU may stand in several entries; their slowdowns
// multiply. ConfigError for names that the cluster does not have.
std::vector<Straggler> read_stragglers(const ConfigNode& list, const Cluster& cluster);

// A host of whose GPUs nothing more is heard from a time on.
struct HostFailure {
  std::uint32_t host = 0;
  Time at = 0;
};

// The list `gpus.failures`: {host: host3, at: 10 s}. ConfigError for names that the cluster does not have.
std::vector<HostFailure> read_failures(const ConfigNode& list, const Cluster& cluster);

// How GPUs vary: the section `gpus`, read.
struct GpuVariation {
  double variation = 0;  // standard deviation among GPUs, as a share of a task's time, less than 1/6
  double jitter = 0;     // the same among tasks
  std::vector<Straggler> stragglers;
  bool any() const { return variation > 0 || jitter > 0 || !stragglers.empty(); }
};

// Times of another source, varied. Factors of variation and jitter are 1 + deviation z, with z of mean 0 and
// variance 1 between -6 and 6 (the sum of twelve uniform numbers, less 6). Variation is drawn for each GPU of
// the cluster by seed and GPU: it is what the chip, its cooling and its power make of it, and every job finds
// it as it is. Jitter is drawn for each task by seed, job, rank and task: so it does not depend on who else
// runs.
class VaryingTimes final : public ComputeTimes {
 public:
  // `gpus`: by rank.
  VaryingTimes(std::unique_ptr<ComputeTimes> times, const GpuVariation& how,
               const std::vector<std::uint32_t>& gpus, std::uint64_t seed, const std::string& job);
  Time duration(std::uint32_t rank, const Task& task) const override;

 private:
  std::unique_ptr<ComputeTimes> times_;
  double jitter_;
  std::vector<double> factors_;                  // of variation by rank; empty: there is none
  std::vector<std::vector<Straggler>> by_rank_;  // empty: there are none
  std::uint64_t key_;
};

}  // namespace netsim
