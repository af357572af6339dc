// StageDegrees: the degrees of parallelism of each stage of a job, where stages are not all alike
// (`parallel.stages`). Alpa has a mesh for each stage (Zheng et al., OSDI 2022). Megatron-Core has different
// degrees for the encoder of LLaVA and the decoder behind it (--encoder-tensor-model-parallel-size).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/parameters.h"
#include "sim/training/strategy/stage_reshardings.h"

namespace netsim {

struct StageDegrees {
  std::int64_t tensor = 1, data = 1;
  ConfigNode where = {};  // the stage's entry in the list
  bool same_mesh(const StageDegrees& other) const { return tensor == other.tensor && data == other.data; }
};

// Returns the degrees of each of `stages` stages, from a list of `{tensor: 2, data: 4}`. A degree that an
// entry does not give is that of `others`. Throws ConfigError at the list or at the entry that does not fit.
std::vector<StageDegrees> read_stage_degrees(const ConfigNode& list, std::uint32_t stages,
                                             const StageDegrees& others);

const Parameters<StageResharding>& stage_resharding_parameters();

}  // namespace netsim
