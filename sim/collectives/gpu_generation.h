// GpuGeneration: NVIDIA's GPUs as NCCL's tables distinguish them (src/graph/tuning.cc).
#pragma once

#include <cstdint>

namespace netsim {

enum class GpuGeneration : std::uint8_t { volta, ampere, hopper, blackwell };

}  // namespace netsim
