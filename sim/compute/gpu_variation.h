// Variation among GPUs. GPUs of one kind differ in speed, stragglers are slower than their model, and jitter
// varies the time of each task. The user configures all three; nothing varies by default.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/compute/compute_times.h"
#include "sim/core/config.h"
#include "sim/core/ids.h"
#include "sim/core/random.h"
#include "sim/topology/topology.h"

namespace netsim {

// Straggler: a GPU on which computing takes `slowdown` times as long, in iterations `first` to `last` of its
// job.
struct Straggler {
  GpuId gpu = 0;
  double slowdown = 1;
  std::uint32_t first = 0, last = UINT32_MAX;
};

// Reads the list `gpus.stragglers`: {gpu: host0/gpu3, slowdown: 1.3} or {host: host2, slowdown: 1.1}. Each
// entry may have `first_iteration` and `last_iteration`. A GPU may be in several entries; their slowdowns
// multiply. Throws ConfigError for names that the cluster does not have.
std::vector<Straggler> read_stragglers(const ConfigNode& list, const Cluster& cluster);

// HostFailure: from time `at` on, the GPUs of a host do nothing more.
struct HostFailure {
  HostId host = 0;
  Time at = 0;
};

// Reads the list `gpus.failures`: {host: host3, at: 10 s}. Throws ConfigError for names that the cluster does
// not have.
std::vector<HostFailure> read_failures(const ConfigNode& list, const Cluster& cluster);

// Returns for each of the first `gpus` GPUs the factor 1 + deviation * z by which it is slower than its
// model. The z of the first 2^k - 1 GPUs are the quantiles j / 2^k of the normal distribution (Wichura,
// Algorithm AS 241, 1988). The seed draws which GPU gets which quantile. `deviation` is below 1/6.
//
// The slowest of so many GPUs is therefore equally slow with every seed. A larger cluster keeps the factors
// of the smaller one; the added GPUs lie between them, and one is slower than all.
std::vector<double> slowness_of_gpus(std::uint32_t gpus, double deviation, std::uint64_t seed);

// GpuVariation: the section `gpus`, after it was read.
struct GpuVariation {
  std::vector<double> slowness;  // factor by GPU; empty: all are alike
  double jitter = 0;             // standard deviation of a task's time, as a share of it; below 1/6
  std::vector<Straggler> stragglers;
  bool any() const { return !slowness.empty() || jitter > 0 || !stragglers.empty(); }
};

// VaryingTimes: the times of another source, multiplied by the factors of GpuVariation. A GPU has the same
// slowness in all jobs, because its chip, cooling and power cause it.
//
// The jitter factor is 1 + jitter * z, where z is the sum of twelve uniform numbers less 6. So z has mean 0
// and variance 1 and lies between -6 and 6. It is drawn for each task from seed, job, rank and task, and does
// not depend on other jobs.
class VaryingTimes final : public ComputeTimes {
 public:
  // `gpus` holds the GPU of each rank.
  VaryingTimes(std::unique_ptr<ComputeTimes> times, const GpuVariation& how, const std::vector<GpuId>& gpus,
               std::uint64_t seed, const std::string& job);
  Time duration(RankId rank, const ComputeRequest& task) const override;
  const TaskDemand* demand(RankId rank, const ComputeRequest& task) const override {
    return times_->demand(rank, task);
  }

 private:
  std::unique_ptr<ComputeTimes> times_;
  double jitter_;
  std::vector<double> slowness_;                 // factor by rank; empty: all are alike
  std::vector<std::vector<Straggler>> by_rank_;  // stragglers by rank; empty: there are none
  std::uint64_t key_;
};

}  // namespace netsim
