// PipelineSchedule: which parts of the model a pipeline stage holds, and in which order it computes them for
// its microbatches. Both are data that a rule makes: a placement and a list of steps for each stage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/workload/strategy/pipeline_placement.h"

namespace netsim {

// What a step computes of a microbatch in one chunk. A backward is computed whole, or split into the
// gradients of the input, which the stage before waits for, and those of the weights, which nobody waits for
// (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, who call them B and W).
enum class PipelineStepKind : std::uint8_t {
  forward,          // F
  backward,         // B: input and weights
  input_backward,   // I
  weight_backward,  // W
  overlapped        // F&B: the forward of one microbatch beside the whole backward of another
};

struct PipelineStep {
  PipelineStepKind kind = PipelineStepKind::forward;
  std::uint32_t chunk = 0;       // of the stage: PipelinePlacement says which part of the model it is
  std::uint32_t microbatch = 0;  // overlapped: of the forward, as is the chunk
  std::uint32_t backward_chunk = 0, backward_microbatch = 0;  // overlapped only
  bool operator==(const PipelineStep&) const = default;
};

// "F3", "B3.1" (chunk 1), "F5.0&B2.1"; the chunk is left out where it is 0 and the step is not overlapped.
std::string to_text(const PipelineStep& step);
// The step that a text means; false where it means none.
bool read_step(const std::string& text, PipelineStep& step);

struct PipelineShape {
  std::uint32_t stages = 1;        // p
  std::uint32_t chunks = 1;        // v: parts of the model are stages x v
  std::uint32_t microbatches = 1;  // m
};

class PipelineSchedule {
 public:
  static constexpr const char* kComponentKind = "pipeline_schedule";
  virtual ~PipelineSchedule() = default;
  // Why it cannot run this shape, in words for the user; "" if it can.
  virtual std::string refusal(const PipelineShape& shape) const = 0;
  // Where the parts of the model are. Only for shapes that are not refused, as below.
  virtual PipelinePlacement placement(const PipelineShape& shape) const {
    return PipelinePlacement::looped(shape.stages, shape.chunks);
  }
  // All steps of a stage.
  virtual std::vector<PipelineStep> order(const PipelineShape& shape, std::uint32_t stage) const = 0;
  // Whether it computes backwards at all (inference does not).
  virtual bool trains() const { return true; }
};

// "needs ..." for shapes of schedules with one chunk a stage; "" for those.
std::string refuse_chunks(const char* schedule, const PipelineShape& shape);

}  // namespace netsim
