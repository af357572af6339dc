// The program of a training job, from its shape and its strategies.
#pragma once

#include <vector>

#include "sim/training/strategy/job_strategies.h"
#include "sim/training/strategy/stage_meshes.h"
#include "sim/workload/program/program.h"

namespace netsim {

struct TrainingJob {
  const JobShape& shape;
  const JobStrategies& strategies;
  const StageMeshes& stages;
};

// Throws ConfigError for a job whose program would be too large. The pipeline's plan need not be known.
void check_size(const JobShape& job, const JobStrategies& strategies);

// CheckpointParts: the bytes of a checkpoint that each rank of the job writes and reads.
struct CheckpointParts {
  bool divided = true;  // CheckpointParameters::divided
  std::vector<Bytes> written, read;
};

// Returns the program of one iteration. With `with_memory`, operations have their memory, for which files of
// programs have no fields. If not null, `checkpoint` gets the ranks' parts.
Program training_program(const TrainingJob& job, bool with_memory, CheckpointParts* checkpoint);

}  // namespace netsim
