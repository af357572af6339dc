// PipelineDivision: how many layers of the body each part of a pipeline's model has, where they are not all
// alike. The ways are those of Megatron-Core:
// - The embedding and the loss count as layers (account_for_embedding_in_pipeline_split,
//   account_for_loss_in_pipeline_split).
// - The first and last stage have a number of their own (num_layers_in_first_pipeline_stage,
//   num_layers_in_last_pipeline_stage).
// - Each part has its own number.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/parameters.h"
#include "sim/training/model/operators.h"
#include "sim/training/strategy/pipeline_placement.h"

namespace netsim {

struct PipelineDivision {
  bool count_embedding = false, count_loss = false;
  std::optional<std::int64_t> first_stage, last_stage;
  ConfigNode stages;  // a number for each stage, or a list with one for each of its chunks; null: not given
};
const Parameters<PipelineDivision>& pipeline_division_parameters();

// Returns the number of layers of the body in each part of a route, in the order of the model, `layers` in
// all. Only a part with the embedding or the loss may have none. Throws ConfigError at the key that does not
// fit, or at `where`.
std::vector<std::uint32_t> layers_of_parts(const PipelineDivision& division, std::int64_t layers,
                                           const PipelinePlacement& placement, const ConfigNode& where);
// Returns the boundary tensor behind each part of the model but the last. `layers` holds the number of layers
// of the body by part.
std::vector<Tensor> boundary_tensors(const Model& model, const std::vector<std::uint32_t>& layers);

}  // namespace netsim
