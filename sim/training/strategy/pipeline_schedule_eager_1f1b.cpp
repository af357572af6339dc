// Eager 1F1B: 1F1B with twice the warm-up, so that a message has the time of a forward and a backward to
// arrive. The source is AlpaComm (Zhuang et al., "On Optimizing the Communication of Model Parallelism",
// MLSys 2023). There, stage i of n, counted from 0, has 2 (n - i) - 1 forwards before its first backward
// ends. Where transfers take no time it is 1F1B.
#include <algorithm>
#include <memory>

#include "sim/core/registry.h"
#include "sim/training/strategy/pipeline_schedule.h"

namespace netsim {
namespace {

class EagerOneForwardOneBackward : public PipelineSchedule {
 public:
  std::string refusal(const PipelineShape& shape) const override {
    return refuse_chunks("eager_1f1b", shape);
  }
  std::vector<PipelineStep> order(const PipelineShape& shape, std::uint32_t stage) const override {
    const std::uint32_t m = shape.microbatches, warmup = std::min(2 * (shape.stages - stage - 1), m);
    std::vector<PipelineStep> steps;
    for (std::uint32_t i = 0; i < warmup; ++i) steps.push_back({PipelineStepKind::forward, 0, i});
    for (std::uint32_t i = 0; i < m; ++i) {
      if (i + warmup < m) steps.push_back({PipelineStepKind::forward, 0, i + warmup});
      steps.push_back({PipelineStepKind::backward, 0, i});
    }
    return steps;
  }
};

const Registration<PipelineSchedule> kEager1f1b{
    "eager_1f1b", "1F1B with twice the warm-up hides transfers and keeps 2p-1 microbatches in memory",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<EagerOneForwardOneBackward>(); }};

}  // namespace
}  // namespace netsim
