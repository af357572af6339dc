// StageMeshes: the meshes of a job's pipeline stages, where stages have degrees of their own
// (`parallel.stages`). Each mesh has a training graph, to which all strategies are applied.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/training/strategy/job_shape.h"
#include "sim/training/strategy/stage_reshardings.h"

namespace netsim {

class StageMeshes {
 public:
  // Reads the list of degrees, which may be null. Where it gives all stages the same degrees, `job` gets
  // them. Throws ConfigError for degrees that do not fit the job.
  StageMeshes(const ConfigNode& list, const StageResharding& resharding, JobShape& job);

  // Returns whether all stages have the same mesh, that of the job.
  bool alike() const { return degrees_.empty(); }
  // Returns the job on each of the different meshes, in the order of the stages; the job itself if all stages
  // are alike.
  std::vector<JobShape> shapes(const JobShape& job) const;
  // Throws ConfigError for features that do not combine with different meshes. The pipeline's plan has to be
  // known.
  void check(const JobShape& job) const;

  // The following functions are for stages that are not all alike. They return the ranks of the stages, the
  // index of each stage's mesh among shapes(), and how tensors get from stage to stage.
  std::vector<StageLayout> layouts(const JobShape& job) const;
  std::vector<std::uint32_t> mesh_of_stage() const;
  StageReshardings reshardings(ProgramBuilder& builder, const JobShape& job) const;

 private:
  std::vector<StageDegrees> meshes() const;
  StageBoundaries boundaries(const JobShape& job) const;
  std::optional<SharedParameters> shared_parameters(const JobShape& job) const;
  void check_slices() const;

  std::vector<StageDegrees> degrees_;  // by stage; empty: all are alike
  ConfigNode list_;
  StageResharding resharding_;
};

}  // namespace netsim
