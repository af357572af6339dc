// PipelineSchedule: which parts of the model a pipeline stage holds, in which order it computes them for its
// microbatches, and, where it says so, when it communicates. All is data that a rule makes: a placement and a
// list of steps for each stage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/training/strategy/pipeline_placement.h"

namespace netsim {

// What a step computes of a microbatch in one chunk, or what it sends, receives or reduces.
//
// A backward is computed whole, or split into the gradients of the input, which the stage before waits for,
// and those of the weights, which nobody waits for (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024,
// who call them B and W).
//
// Communication of a list is as in the instructions of DeepSpeed's pipelines (SendActivation, RecvActivation,
// SendGrad, RecvGrad, ReduceGrads) and the lowered schedules of PyTorch's torch.distributed.pipelining
// (SEND_F, RECV_F, SEND_B, RECV_B, REDUCE_GRAD): it begins when the stage has come to it, and the stage goes
// on, unless the step waits. What a list does not say happens by itself: a result is sent as soon as it is
// there, a receive is posted ahead of its use, and gradients are reduced where the job's data parallelism has
// it.
enum class PipelineStepKind : std::uint8_t {
  forward,           // F
  backward,          // B: input and weights
  input_backward,    // I
  weight_backward,   // W
  overlapped,        // F&B: the forward of one microbatch beside the whole backward of another
  send_forward,      // SF: what a forward gives, to the stage that has the next part of the model
  receive_forward,   // RF: what a forward is given
  send_backward,     // SB: gradients of the input of a part, to the stage that has the part before
  receive_backward,  // RB
  reduce             // G: gradients of a chunk, all microbatches', among those that have copies of it
};
constexpr bool is_communication(PipelineStepKind kind) { return kind >= PipelineStepKind::send_forward; }

struct PipelineStep {
  PipelineStepKind kind = PipelineStepKind::forward;
  std::uint32_t chunk = 0;       // of the stage: PipelinePlacement says which part of the model it is
  std::uint32_t microbatch = 0;  // overlapped: of the forward, as is the chunk; reduce: 0
  std::uint32_t backward_chunk = 0, backward_microbatch = 0;  // overlapped only
  // Communication only: the stage goes on when it is done, a message delivered or received. A second step of
  // the same communication begins nothing, and has to wait.
  bool waits = false;
  bool operator==(const PipelineStep&) const = default;
};

// "F3", "B3.1" (chunk 1), "F5.0&B2.1", "SF3.1", "G.1"; "SF3!" waits. The chunk is left out where it is 0 and
// the step is not overlapped.
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
  // Returns whether an ordered stream has each receive behind the last computation of its own direction. Else
  // it has it before the computation that uses it.
  virtual bool receives_ahead(const PipelineShape&) const { return false; }
  // Where the user wrote the steps of a stage, for errors about them; null where a rule makes them.
  virtual const ConfigNode* written(std::uint32_t /*stage*/) const { return nullptr; }
};

// "needs ..." for shapes of schedules with one chunk a stage; "" for those.
std::string refuse_chunks(const char* schedule, const PipelineShape& shape);

}  // namespace netsim
