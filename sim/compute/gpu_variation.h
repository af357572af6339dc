// GPUs that are not all alike: GPUs of one kind, no two of which are quite as fast; stragglers, which are
// slower than their model says; and jitter, which makes each task take a little more or less. All are the
// user's to give; nothing varies by default.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/compute/compute_times.h"
#include "sim/core/config.h"
#include "sim/core/random.h"
#include "sim/topology/topology.h"

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

// How much longer than its model says each of the first `gpus` of a cluster takes: 1 + deviation z, where the
// z of the first 2^k - 1 are the quantiles j / 2^k of the normal distribution (Wichura, Algorithm AS 241,
// 1988), and the seed draws which GPU has which. So there is no luck in how slow the slowest of so many is,
// and a cluster grows by GPUs that lie between those that it has, and one that is slower than all.
// `deviation`: less than 1/6.
std::vector<double> slowness_of_gpus(std::uint32_t gpus, double deviation, std::uint64_t seed);

// How GPUs vary: the section `gpus`, read.
struct GpuVariation {
  std::vector<double> slowness;  // by GPU; empty: all are alike
  double jitter = 0;             // standard deviation of a task's time, as a share of it, less than 1/6
  std::vector<Straggler> stragglers;
  bool any() const { return !slowness.empty() || jitter > 0 || !stragglers.empty(); }
};

// Times of another source, varied. A GPU is as slow for all jobs as the chip, its cooling and its power make
// it. A factor of jitter is 1 + jitter z, with z of mean 0 and variance 1 between -6 and 6 (the sum of twelve
// uniform numbers, less 6), drawn for each task by seed, job, rank and task: so it does not depend on who
// else runs.
class VaryingTimes final : public ComputeTimes {
 public:
  // `gpus`: by rank.
  VaryingTimes(std::unique_ptr<ComputeTimes> times, const GpuVariation& how,
               const std::vector<std::uint32_t>& gpus, std::uint64_t seed, const std::string& job);
  Time duration(std::uint32_t rank, const ComputeRequest& task) const override;

 private:
  std::unique_ptr<ComputeTimes> times_;
  double jitter_;
  std::vector<double> slowness_;                 // by rank; empty: all are alike
  std::vector<std::vector<Straggler>> by_rank_;  // empty: there are none
  std::uint64_t key_;
};

}  // namespace netsim
