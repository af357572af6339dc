#include "sim/collectives/gpu_generation.h"

#include <string_view>
#include <utility>

namespace netsim {

std::optional<GpuGeneration> generation_of(const std::string& gpu_model, std::int64_t compute_capability) {
  static constexpr std::pair<std::string_view, GpuGeneration> kModels[] = {
      {"v100", GpuGeneration::volta},     {"a100", GpuGeneration::ampere},
      {"h100", GpuGeneration::hopper},    {"h200", GpuGeneration::hopper},
      {"h20", GpuGeneration::hopper},     {"h800", GpuGeneration::hopper},
      {"b200", GpuGeneration::blackwell}, {"gb200", GpuGeneration::blackwell},
      {"b300", GpuGeneration::blackwell}};
  for (const auto& [name, generation] : kModels) {
    if (gpu_model.rfind(name, 0) == 0) return generation;
  }
  if (compute_capability >= 100) return GpuGeneration::blackwell;
  if (compute_capability >= 90) return GpuGeneration::hopper;
  if (compute_capability >= 80) return GpuGeneration::ampere;
  return compute_capability > 0 ? std::optional(GpuGeneration::volta) : std::nullopt;  // NCCL does the same
}

}  // namespace netsim
