// The optimizer's work: how many parameters a rank updates, on its GPU and on its host, and what that takes.
#pragma once

#include <cstdint>

#include "sim/training/strategy/training_graph.h"

namespace netsim {

// Returns how many of a stage's or layer's parameters a rank updates. With `divided`, replicas divide the
// optimizer's states among them.
std::int64_t updated_parameters(const TrainingGraph& graph, std::int64_t parameters, ParameterSet set,
                                bool divided);
// Returns a node that runs Adam over so many parameters, with the memory that it needs. `reduced` of them are
// kept in FP8.
GraphNode optimizer_step(std::int64_t parameters, Bytes gradient_bytes, std::int64_t reduced = 0);
// Returns how many of so many parameters the CPUs of the host update, for a share of them.
std::int64_t offloaded(std::int64_t parameters, double share);

}  // namespace netsim
