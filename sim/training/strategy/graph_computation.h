// The computation of a training graph's stages: what a stage computes and communicates in each step of the
// pipeline.
#pragma once

#include <memory>

#include "sim/training/strategy/training_graph.h"

namespace netsim {

// Returns the computation of all stages of a graph. Both arguments must outlive it.
std::unique_ptr<const StageComputation> graph_computation(const TrainingGraph& graph,
                                                          ProgramBuilder& builder);

}  // namespace netsim
