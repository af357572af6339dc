// PipelineSchedule: the order in which a pipeline stage computes the forwards and backwards of its
// microbatches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace netsim {

struct PipelineStep {
  bool forward = true;
  std::uint32_t chunk = 0;  // model chunk of the stage, 0 .. chunks-1 in the order of the forward
  std::uint32_t microbatch = 0;
  bool operator==(const PipelineStep&) const = default;
};

struct PipelineShape {
  std::uint32_t stages = 1;  // p
  std::uint32_t chunks =
      1;  // v: model chunks of a stage; chunk c of stage s is part c * stages + s of the model
  std::uint32_t microbatches = 1;  // m
};

class PipelineSchedule {
 public:
  static constexpr const char* kComponentKind = "pipeline_schedule";
  virtual ~PipelineSchedule() = default;
  // Why it cannot run this shape, in words for the user; "" if it can.
  virtual std::string refusal(const PipelineShape& shape) const = 0;
  // All 2 * chunks * microbatches steps of a stage. Only for shapes that are not refused.
  virtual std::vector<PipelineStep> order(const PipelineShape& shape, std::uint32_t stage) const = 0;
};

}  // namespace netsim
