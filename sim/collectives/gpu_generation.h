// GpuGeneration: NVIDIA's GPUs as NCCL's tables distinguish them (src/graph/tuning.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace netsim {

enum class GpuGeneration : std::uint8_t { volta, ampere, hopper, blackwell };

// Returns the generation of a GPU by its model's name in the configuration, such as a100_80gb. Where the name
// is not known, its compute capability decides (90: Hopper). nullopt: neither is known.
std::optional<GpuGeneration> generation_of(const std::string& gpu_model, std::int64_t compute_capability = 0);

}  // namespace netsim
