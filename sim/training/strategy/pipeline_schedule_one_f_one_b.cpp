// 1F1B: as many warm-up forwards as there are stages behind this one, then one forward and one backward in
// turn. Sources are PipeDream-Flush (Narayanan et al.) and Megatron-LM's
// forward_backward_pipelining_without_interleaving. With equal stages the bubble is (p - 1) / m of the ideal
// time.
#include <algorithm>
#include <memory>

#include "sim/core/registry.h"
#include "sim/training/strategy/pipeline_schedule.h"

namespace netsim {
namespace {

class OneForwardOneBackward : public PipelineSchedule {
 public:
  std::string refusal(const PipelineShape& shape) const override {
    if (shape.chunks == 1) return {};
    return "one_f_one_b has one model chunk per stage: use interleaved for " + std::to_string(shape.chunks);
  }

  std::vector<PipelineStep> order(const PipelineShape& shape, std::uint32_t stage) const override {
    const std::uint32_t m = shape.microbatches;
    const std::uint32_t warmup = std::min(shape.stages - stage - 1, m);
    std::vector<PipelineStep> steps;
    for (std::uint32_t i = 0; i < warmup; ++i) steps.push_back({PipelineStepKind::forward, 0, i});
    for (std::uint32_t i = 0; i + warmup < m; ++i) {
      steps.push_back({PipelineStepKind::forward, 0, i + warmup});
      steps.push_back({PipelineStepKind::backward, 0, i});
    }
    for (std::uint32_t i = m - warmup; i < m; ++i) steps.push_back({PipelineStepKind::backward, 0, i});
    return steps;
  }
};

const Registration<PipelineSchedule> kOneFOneB{
    "one_f_one_b",
    "1F1B alternates one forward and one backward; the bubble is (p-1)/m, and at most p microbatches are in "
    "memory",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<OneForwardOneBackward>(); }};

}  // namespace
}  // namespace netsim
