// The bytes of a checkpoint, by rank of a graph's mesh. All strategies have to be applied before.
#pragma once

#include <vector>

#include "sim/training/strategy/job_shape.h"
#include "sim/training/strategy/training_graph.h"

namespace netsim {

// Returns the bytes that each rank writes of a checkpoint. A checkpoint has each parameter in half precision
// and its optimizer states once, 14 bytes together. The first replica writes all data that replicas have
// copies of, or, with `divided`, each writes a part.
std::vector<Bytes> checkpoint_bytes(const TrainingGraph& graph, const JobShape& job, bool divided);
// Returns the bytes that each rank reads of a checkpoint to continue: its parameters and states.
std::vector<Bytes> restored_bytes(const TrainingGraph& graph, const JobShape& job);

}  // namespace netsim
