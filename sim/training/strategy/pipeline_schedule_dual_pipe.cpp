// DualPipe: two copies of the model, one from either end. Their forwards and backwards are computed in pairs
// that hide each other's communication (DeepSeek-V3, arXiv 2412.19437, section 3.2.1). Where F = W = B/2 (B
// is the whole backward) and a pair takes F + B, the bubble is (p/2 - 1) (F&B + B - 3 W). There are p + 1
// activations in memory.
#include <memory>

#include "sim/core/registry.h"
#include "sim/training/strategy/dual_pipe_rule.h"
#include "sim/training/strategy/pipeline_schedule.h"

namespace netsim {
namespace {

class DualPipe : public PipelineSchedule {
 public:
  std::string refusal(const PipelineShape& shape) const override {
    if (shape.chunks != 1)
      return refuse_chunks("dual_pipe", shape) + ": the second is that of its second copy";
    if (shape.stages % 2 != 0)
      return "dual_pipe needs an even number of stages, not " + std::to_string(shape.stages);
    if (shape.microbatches % 2 == 0 && shape.microbatches >= 2 * shape.stages) return {};
    return "dual_pipe needs an even number of microbatches, at least " + std::to_string(2 * shape.stages) +
           " (twice the stages), not " + std::to_string(shape.microbatches);
  }
  PipelinePlacement placement(const PipelineShape& shape) const override {
    return PipelinePlacement::bidirectional(shape.stages);
  }
  std::vector<PipelineStep> order(const PipelineShape& shape, std::uint32_t stage) const override {
    const std::uint32_t half = shape.microbatches / 2;
    const DualPipeRule::Chunk down{0, 0}, up{1, half};
    const bool first_half = stage < shape.stages / 2;
    return DualPipeRule(shape.stages / 2, first_half ? stage : shape.stages - 1 - stage, half,
                        first_half ? down : up, first_half ? up : down)
        .steps();
  }
};

const Registration<PipelineSchedule> kDualPipe{
    "dual_pipe",
    "two copies of the model from either end, forwards and backwards computed in pairs that hide "
    "communication",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<DualPipe>(); }};

}  // namespace
}  // namespace netsim
