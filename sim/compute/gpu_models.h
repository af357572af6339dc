// GpuModels: the compute model of each group of hosts. From it follow the times of a job's compute tasks, the
// memory of a GPU and its peak rate.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/compute/compute_model.h"
#include "sim/compute/compute_times.h"
#include "sim/compute/gpu_variation.h"
#include "sim/core/config.h"
#include "sim/core/ids.h"
#include "sim/topology/topology.h"

namespace netsim {

// ComputingJob: the part of a job that its compute times depend on. All of it belongs to the caller.
struct ComputingJob {
  const std::string& name;         // seeds the jitter
  const std::string& file;         // file of the workload, for messages
  const std::vector<Work>& works;  // by ComputeRequest::work
  const std::vector<GpuId>& gpus;  // by rank
};

class GpuModels {
 public:
  // Takes the models that the section `compute` names, or else those that the hosts name. `root` is the whole
  // configuration; the cluster must outlive this. Throws ConfigError.
  GpuModels(const ConfigNode& root, const Cluster& cluster);

  // Returns null if there is no model of this GPU, because neither `compute` nor the host names one.
  const ComputeModel* of_gpu(GpuId gpu) const { return models_[group_of(gpu)].get(); }
  // Returns the number of SMs of a GPU, or 0 if it is unknown.
  std::uint32_t multiprocessors_of(GpuId gpu) const {
    return of_gpu(gpu) != nullptr ? of_gpu(gpu)->multiprocessors() : 0;
  }
  // Returns the memory of a GPU in bytes, or 0 if it is unknown.
  Bytes memory_of(GpuId gpu) const { return of_gpu(gpu) != nullptr ? of_gpu(gpu)->memory() : 0; }
  // Returns the mean peak rate of these GPUs in FLOP/s, or 0 if that of one GPU is unknown.
  double mean_peak_flops(const std::vector<GpuId>& gpus) const;
  // Returns the times of a job's compute tasks, by the models and varied as `variation` says. The drives of
  // storage servers compute nothing. Throws ConfigError for a kernel that has neither a duration nor a model,
  // or that its model cannot time.
  std::unique_ptr<ComputeTimes> times(const ComputingJob& job, const GpuVariation& variation,
                                      std::uint64_t seed) const;
  // Returns the notes of all models on these kernels, each once.
  std::vector<std::string> notes(const std::vector<const Kernel*>& kernels) const;

 private:
  std::uint32_t group_of(GpuId gpu) const { return cluster_.hosts[cluster_.gpus[gpu].host].group; }
  std::vector<Time> durations(const ComputingJob& job, GpuId gpu) const;
  WorkDurations::Demands demands_of(const ComputingJob& job, GpuId gpu,
                                    const std::vector<Time>& durations) const;

  const Cluster& cluster_;
  Place place_;                                        // of the configuration, for errors
  std::vector<std::unique_ptr<ComputeModel>> models_;  // by group of hosts
};

}  // namespace netsim
