// PipelineSchedule: which parts of the model a pipeline stage holds and in which order it computes them for
// its microbatches. It may also say when the stage communicates. A rule makes all of this as data: a
// placement and a list of steps for each stage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/training/strategy/pipeline_placement.h"

namespace netsim {

// PipelineStepKind: what a step computes for a microbatch in one chunk, or what it sends, receives or
// reduces.
//
// A backward is computed whole, or split into the gradients of the input and those of the weights. The stage
// before waits for the former, nothing for the latter. Qi et al. call them B and W ("Zero Bubble Pipeline
// Parallelism", ICLR 2024).
//
// Communication steps are as in the instructions of DeepSpeed's pipelines (SendActivation, RecvActivation,
// SendGrad, RecvGrad, ReduceGrads). PyTorch's lowered schedules in torch.distributed.pipelining have them too
// (SEND_F, RECV_F, SEND_B, RECV_B, REDUCE_GRAD). The communication begins when the stage reaches the step,
// and the stage goes on unless the step waits.
//
// Communication without a step happens by itself. A result is sent as soon as it is computed, and a receive
// is posted ahead of its use. Gradients are reduced when the job's data parallelism says.
enum class PipelineStepKind : std::uint8_t {
  forward,           // F
  backward,          // B: gradients of input and weights
  input_backward,    // I
  weight_backward,   // W
  overlapped,        // F&B: the forward of one microbatch beside the whole backward of another
  send_forward,      // SF: the result of a forward, to the stage that has the next part of the model
  receive_forward,   // RF: the input of a forward
  send_backward,     // SB: gradients of the input of a part, to the stage that has the part before
  receive_backward,  // RB: gradients of the output of a part
  reduce,            // G: gradients of a chunk, all microbatches', among the stages that have copies of it
  // U: the gradients of a chunk since its update before, up to this microbatch, are reduced and applied to
  // its weights. A stage that waits for it computes with these weights from then on.
  update
};
constexpr bool is_communication(PipelineStepKind kind) { return kind >= PipelineStepKind::send_forward; }

struct PipelineStep {
  PipelineStepKind kind = PipelineStepKind::forward;
  std::uint32_t chunk = 0;       // chunk of the stage; PipelinePlacement says which part of the model it is
  std::uint32_t microbatch = 0;  // overlapped: the forward's, as is the chunk; reduce: 0
  std::uint32_t backward_chunk = 0, backward_microbatch = 0;  // overlapped only
  // Communication only: the stage goes on only when the message is delivered or received. A second step of
  // the same communication begins nothing, and has to wait.
  bool waits = false;
  bool operator==(const PipelineStep&) const = default;
};

// Returns the text of a step: "F3", "B3.1" (chunk 1), "F5.0&B2.1", "SF3.1", "G.1"; "SF3!" waits. The chunk is
// left out where it is 0 and the step is not overlapped.
std::string to_text(const PipelineStep& step);
// Reads a step from its text. Returns false if the text is not that of a step.
bool read_step(const std::string& text, PipelineStep& step);

struct PipelineShape {
  std::uint32_t stages = 1;        // p
  std::uint32_t chunks = 1;        // v: the model has stages x v parts
  std::uint32_t microbatches = 1;  // v: the model has stages x v parts
};

class PipelineSchedule {
 public:
  static constexpr const char* kComponentKind = "pipeline_schedule";
  virtual ~PipelineSchedule() = default;
  // Returns why the schedule cannot run this shape, in words for the user; "" if it can.
  virtual std::string refusal(const PipelineShape& shape) const = 0;
  // Returns which stages hold the parts of the model. The shape must not be refused, here and in order().
  virtual PipelinePlacement placement(const PipelineShape& shape) const {
    return PipelinePlacement::looped(shape.stages, shape.chunks);
  }
  // Returns all steps of a stage.
  virtual std::vector<PipelineStep> order(const PipelineShape& shape, std::uint32_t stage) const = 0;
  // Returns whether the schedule has backwards; inference has none.
  virtual bool trains() const { return true; }
  // Returns whether an ordered stream has each receive after the last computation of its own direction.
  // Otherwise the receive is just before the computation that uses it.
  virtual bool receives_ahead(const PipelineShape&) const { return false; }
  // Returns where the user wrote the steps of a stage, for errors about them; null where a rule makes them.
  virtual const ConfigNode* written(std::uint32_t /*stage*/) const { return nullptr; }
};

// Returns a refusal for a schedule that needs one chunk a stage, if the shape has more; else "".
std::string refuse_chunks(const char* schedule, const PipelineShape& shape);

}  // namespace netsim
