#include "sim/compute/gpu_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/core/registry.h"
#include "sim/core/time_limits.h"

namespace netsim {
namespace {

bool has_duration(const Kernel& kernel) { return kernel.kind == Kernel::Kind::fixed; }

// Returns the time of work without a model of the GPU. Throws ConfigError for a kernel without a given
// duration.
Time given_duration(const Work& work, const std::string& workload, const Place& config) {
  Time total = 0;
  for (const Kernel& kernel : work.kernels) {
    if (!has_duration(kernel)) {
      throw ConfigError(
          config,
          fmt::format("'compute' is missing: kernel '{}' of '{}' in {} needs a model of the GPU, and the "
                      "hosts name none (netsim --list compute_model)",
                      kernel.name, work.name, workload));
    }
    total = bounded_sum(total, kernel.duration);
  }
  return total;
}

// Returns the time of work by the model. Throws ConfigError for a kernel that the model cannot time.
Time modelled_duration(const Work& work, const ComputeModel& model, const std::string& workload,
                       const Place& config) {
  for (const Kernel& kernel : work.kernels) {
    const std::string objection = model.objection(kernel);
    if (objection.empty()) continue;
    throw ConfigError(config, fmt::format("compute: kernel '{}' of '{}' in {}: {}", kernel.name, work.name,
                                          workload, objection));
  }
  return model.duration(work);
}

}  // namespace

GpuModels::GpuModels(const ConfigNode& root, const Cluster& cluster)
    : cluster_(cluster), place_(root.place()) {
  const ConfigNode& node = section_of(root, "compute");
  for (const HostGroup& group : cluster.groups) {
    const bool none = node.is_null() && group.gpu_model.empty();
    models_.push_back(none ? nullptr : Registry<ComputeModel>::instance().create(node, group.gpu_model));
  }
}

double GpuModels::mean_peak_flops(const std::vector<GpuId>& gpus) const {
  std::vector<std::size_t> of_group(models_.size(), 0);
  for (const GpuId gpu : gpus) ++of_group[group_of(gpu)];
  double sum = 0;
  for (const GpuId gpu : gpus) {
    std::size_t& count = of_group[group_of(gpu)];
    if (count == 0) continue;
    if (of_gpu(gpu) == nullptr) return 0;
    sum += of_gpu(gpu)->peak_flops() * static_cast<double>(count) / static_cast<double>(gpus.size());
    count = 0;
  }
  return sum;
}

std::vector<Time> GpuModels::durations(const ComputingJob& job, GpuId gpu) const {
  const ComputeModel* model = of_gpu(gpu);
  const bool drives = cluster_.is_drives(gpu);
  std::vector<Time> result;
  for (const Work& work : job.works) {
    if (drives && !std::all_of(work.kernels.begin(), work.kernels.end(), has_duration)) {
      result.push_back(0);
      continue;
    }
    result.push_back(model != nullptr ? modelled_duration(work, *model, job.file, place_)
                                      : given_duration(work, job.file, place_));
  }
  return result;
}

// Returns the demands of the job's works, or none if the GPU's times do not follow from power. Work that
// takes no time, or that only waits for given durations, has none.
WorkDurations::Demands GpuModels::demands_of(const ComputingJob& job, GpuId gpu,
                                             const std::vector<Time>& durations) const {
  const ComputeModel* model = of_gpu(gpu);
  if (model == nullptr || model->power_law() == nullptr || cluster_.is_drives(gpu)) return {};
  WorkDurations::Demands demands(job.works.size());
  for (std::size_t work = 0; work < job.works.size(); ++work) {
    const std::vector<Kernel>& kernels = job.works[work].kernels;
    if (durations[work] > 0 && !std::all_of(kernels.begin(), kernels.end(), has_duration))
      demands[work] = std::make_unique<TaskDemand>(*model, job.works[work], durations[work]);
  }
  return demands;
}

std::unique_ptr<ComputeTimes> GpuModels::times(const ComputingJob& job, const GpuVariation& variation,
                                               std::uint64_t seed) const {
  std::vector<std::vector<Time>> by_group(models_.size());
  std::vector<bool> known(models_.size(), false);
  std::vector<WorkDurations::Demands> demands(models_.size());
  std::vector<std::uint32_t> group_of_rank;
  for (const GpuId gpu : job.gpus) {
    const std::uint32_t group = group_of(gpu);
    group_of_rank.push_back(group);
    if (known[group]) continue;
    known[group] = true;
    by_group[group] = durations(job, gpu);
    demands[group] = demands_of(job, gpu, by_group[group]);
  }
  std::unique_ptr<ComputeTimes> times =
      std::make_unique<WorkDurations>(std::move(by_group), std::move(group_of_rank), std::move(demands));
  if (!variation.any()) return times;
  return std::make_unique<VaryingTimes>(std::move(times), variation, job.gpus, seed, job.name);
}

// Several groups of hosts may have models of the same file.
std::vector<std::string> GpuModels::notes(const std::vector<const Kernel*>& kernels) const {
  std::vector<std::string> lines;
  for (const auto& model : models_) {
    if (model == nullptr) continue;
    for (std::string& line : model->notes(kernels)) {
      if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
    }
  }
  return lines;
}

}  // namespace netsim
