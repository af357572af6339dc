// Interleaved 1F1B: every stage has v chunks of the model and runs groups of p microbatches through one chunk
// after the other (Narayanan et al., SC'21, section 2.2.2; Megatron-LM,
// forward_backward_pipelining_with_interleaving). With equal stages the bubble is (p - 1) / (v m) of the
// ideal time.
#include <algorithm>
#include <memory>

#include "sim/core/registry.h"
#include "sim/workload/strategy/pipeline_schedule.h"

namespace netsim {
namespace {

class Interleaved : public PipelineSchedule {
 public:
  std::string refusal(const PipelineShape& shape) const override {
    if (shape.stages < 2) return "interleaved needs at least 2 pipeline stages";
    if (shape.microbatches % shape.stages == 0) return {};
    return "interleaved needs microbatches that are a multiple of the " + std::to_string(shape.stages) +
           " stages: " + std::to_string(shape.microbatches) + " are not";
  }

  std::vector<PipelineStep> order(const PipelineShape& shape, std::uint32_t stage) const override {
    const std::uint32_t total = shape.microbatches * shape.chunks;
    const std::uint32_t warmup = warmup_steps(shape, stage, total);
    std::vector<PipelineStep> steps;
    for (std::uint32_t i = 0; i < warmup; ++i) steps.push_back(step(shape, true, i));
    for (std::uint32_t i = 0; i + warmup < total; ++i) {
      steps.push_back(step(shape, true, i + warmup));
      steps.push_back(step(shape, false, i));
    }
    for (std::uint32_t i = total - warmup; i < total; ++i) steps.push_back(step(shape, false, i));
    return steps;
  }

 private:
  // As Megatron: with one group of microbatches everything is warm-up.
  static std::uint32_t warmup_steps(const PipelineShape& shape, std::uint32_t stage, std::uint32_t total) {
    if (shape.microbatches == shape.stages) return total;
    return std::min((shape.stages - stage - 1) * 2 + (shape.chunks - 1) * shape.stages, total);
  }
  // The i-th forward or backward of any stage.
  static PipelineStep step(const PipelineShape& shape, bool forward, std::uint32_t i) {
    const std::uint32_t group = i / (shape.stages * shape.chunks);
    const std::uint32_t chunk = i / shape.stages % shape.chunks;
    return {forward ? PipelineStepKind::forward : PipelineStepKind::backward,
            forward ? chunk : shape.chunks - 1 - chunk, group * shape.stages + i % shape.stages};
  }
};

const Registration<PipelineSchedule> kInterleaved{
    "interleaved",
    "interleaved 1F1B: v model chunks per stage, a bubble of (p-1)/(v m) for v times the messages",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<Interleaved>(); }};

// Lamy-Poirier's word for it ("Breadth-First Pipeline Parallelism", MLSys 2023).
const Registration<PipelineSchedule> kDepthFirst{
    "depth_first",
    "interleaved 1F1B by its other name: groups of p microbatches through one chunk after the other",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<Interleaved>(); }};

}  // namespace
}  // namespace netsim
