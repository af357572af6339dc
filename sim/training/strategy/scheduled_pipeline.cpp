#include "sim/training/strategy/scheduled_pipeline.h"

#include <algorithm>
#include <string>
#include <vector>

#include "sim/core/registry.h"

namespace netsim {
namespace {

bool has_step(const ScheduledPipeline& plan, PipelineStepKind kind) {
  return std::any_of(plan.steps.begin(), plan.steps.end(), [kind](const std::vector<PipelineStep>& stage) {
    return std::any_of(stage.begin(), stage.end(),
                       [kind](const PipelineStep& step) { return step.kind == kind; });
  });
}

}  // namespace

bool ScheduledPipeline::splits_backward() const { return has_step(*this, PipelineStepKind::weight_backward); }
bool ScheduledPipeline::pairs() const { return has_step(*this, PipelineStepKind::overlapped); }
bool ScheduledPipeline::communicates() const {
  return std::any_of(steps.begin(), steps.end(), [](const std::vector<PipelineStep>& of_stage) {
    return std::any_of(of_stage.begin(), of_stage.end(),
                       [](const PipelineStep& step) { return is_communication(step.kind); });
  });
}
bool ScheduledPipeline::updates() const { return has_step(*this, PipelineStepKind::update); }
bool ScheduledPipeline::reduces() const { return has_step(*this, PipelineStepKind::reduce) || updates(); }
bool ScheduledPipeline::reduces(std::uint32_t stage, std::uint32_t chunk) const {
  return std::any_of(steps[stage].begin(), steps[stage].end(), [chunk](const PipelineStep& step) {
    return step.kind == PipelineStepKind::reduce && step.chunk == chunk;
  });
}

std::vector<std::string> notes_on_blocking(const ScheduledPipeline& plan) {
  const std::string waits = prove_pipeline(plan).rendezvous;
  if (waits.empty()) return {};
  return {
      "the pipeline's stages wait for their sends, which here needs receives that are posted ahead of their "
      "use: if each were posted at the step that uses it, " +
      waits};
}

ScheduledPipeline schedule_pipeline(const ConfigNode& schedule, const ConfigNode& where,
                                    const PipelineShape& shape) {
  const auto created = Registry<PipelineSchedule>::instance().create(
      schedule, shape.chunks > 1 ? "interleaved" : "one_f_one_b");
  const ConfigNode& place = schedule.is_null() ? where : schedule;
  if (const std::string refusal = created->refusal(shape); !refusal.empty()) place.fail(refusal);
  ScheduledPipeline plan{
      shape, created->placement(shape), {}, created->trains(), created->receives_ahead(shape)};
  for (std::uint32_t stage = 0; stage < shape.stages; ++stage)
    plan.steps.push_back(created->order(shape, stage));
  if (const PipelineProof proof = prove_pipeline(plan); !proof.refusal.empty()) {
    const ConfigNode* written = proof.refused ? created->written(*proof.refused) : nullptr;
    (written != nullptr ? *written : place).fail(proof.refusal);
  }
  return plan;
}

}  // namespace netsim
