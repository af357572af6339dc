#include "sim/training/strategy/pipeline_computations.h"

namespace netsim {

std::vector<Computed> halves_of(const PipelineStep& step) {
  switch (step.kind) {
    case PipelineStepKind::forward:
      return {{Half::forward, step.chunk, step.microbatch}};
    case PipelineStepKind::backward:
      return {{Half::input, step.chunk, step.microbatch}, {Half::weights, step.chunk, step.microbatch}};
    case PipelineStepKind::input_backward:
      return {{Half::input, step.chunk, step.microbatch}};
    case PipelineStepKind::weight_backward:
      return {{Half::weights, step.chunk, step.microbatch}};
    case PipelineStepKind::overlapped:
      return {{Half::forward, step.chunk, step.microbatch},
              {Half::input, step.backward_chunk, step.backward_microbatch},
              {Half::weights, step.backward_chunk, step.backward_microbatch}};
    case PipelineStepKind::send_forward:
    case PipelineStepKind::receive_forward:
    case PipelineStepKind::send_backward:
    case PipelineStepKind::receive_backward:
    case PipelineStepKind::reduce:
    case PipelineStepKind::update:
      break;
  }
  return {};
}

bool is_message(PipelineStepKind kind) {
  return is_communication(kind) && kind != PipelineStepKind::reduce && kind != PipelineStepKind::update;
}
bool sends_message(PipelineStepKind kind) {
  return kind == PipelineStepKind::send_forward || kind == PipelineStepKind::send_backward;
}
Computed end_of_message(const PipelineStep& step) {
  const bool forward =
      step.kind == PipelineStepKind::send_forward || step.kind == PipelineStepKind::receive_forward;
  return {forward ? Half::forward : Half::input, step.chunk, step.microbatch};
}
PipelineStepKind message_of(Half half, bool sent) {
  if (half == Half::forward) return sent ? PipelineStepKind::send_forward : PipelineStepKind::receive_forward;
  return sent ? PipelineStepKind::send_backward : PipelineStepKind::receive_backward;
}

std::optional<PipelinePlacement::Spot> neighbour_of(const ScheduledPipeline& plan, std::uint32_t stage,
                                                    const Computed& what, bool source) {
  if (what.half == Half::weights) return {};
  const auto [route, part] = plan.placement.held(stage, what.chunk);
  const bool before = (what.half == Half::forward) == source;
  if (before ? part == 0 : part + 1 == plan.parts()) return {};
  return plan.placement.at(route, before ? part - 1 : part + 1);
}

}  // namespace netsim
