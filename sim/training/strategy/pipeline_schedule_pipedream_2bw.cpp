// PipeDream-2BW: 1F1B without a flush between batches (Narayanan et al., "Memory-Efficient Pipeline-Parallel
// DNN Training", ICML 2021). An iteration of netsim has several batches of microbatches. The gradients of a
// batch are applied while the next batch is computed, with the weights before: W(t + 1) = W(t) - g(W(t - 1)).
// So a stage holds two versions of its weights, and its gradients are one update old.
//
// The first forward of batch k waits for the update of batch k - 2. A batch needs as many microbatches as
// there are stages, or more. With fewer an older version would be in use (section 3.1 of the paper).
// Pipelines are empty between iterations only.
#include <algorithm>
#include <memory>

#include "sim/core/registry.h"
#include "sim/training/strategy/pipeline_schedule.h"

namespace netsim {
namespace {

struct TwoVersionParameters {
  std::int64_t batch = 0;
};

class PipeDream2BW : public PipelineSchedule {
 public:
  explicit PipeDream2BW(const TwoVersionParameters& p) : batch_(p.batch) {}

  std::string refusal(const PipelineShape& shape) const override {
    if (shape.chunks > 1) return refuse_chunks("pipedream_2bw", shape);
    const std::uint32_t batch = batch_of(shape);
    if (batch < shape.stages) {
      return "pipedream_2bw needs batches of at least as many microbatches as the " +
             std::to_string(shape.stages) + " stages, not " + std::to_string(batch) +
             ": a third version of the weights would be in use";
    }
    if (shape.microbatches % batch == 0) return {};
    return "pipedream_2bw needs microbatches that are a multiple of its batch of " + std::to_string(batch) +
           ": " + std::to_string(shape.microbatches) + " are not";
  }
  std::vector<PipelineStep> order(const PipelineShape& shape, std::uint32_t stage) const override {
    const std::uint32_t m = shape.microbatches, batch = batch_of(shape);
    const std::uint32_t warmup = std::min(shape.stages - stage - 1, m);
    std::vector<PipelineStep> steps;
    for (std::uint32_t i = 0; i < m + warmup; ++i) {
      if (i < m) {
        if (i % batch == 0 && i >= 2 * batch)
          steps.push_back({PipelineStepKind::update, 0, i - batch - 1, 0, 0, true});
        steps.push_back({PipelineStepKind::forward, 0, i});
      }
      if (i < warmup) continue;
      steps.push_back({PipelineStepKind::backward, 0, i - warmup});
      if ((i - warmup + 1) % batch == 0) steps.push_back({PipelineStepKind::update, 0, i - warmup});
    }
    return steps;
  }

 private:
  std::uint32_t batch_of(const PipelineShape& shape) const {
    return batch_ == 0 ? shape.stages : static_cast<std::uint32_t>(batch_);
  }

  std::int64_t batch_;
};

const Registration<PipelineSchedule> kPipeDream2BW{
    "pipedream_2bw",
    "asynchronous 1F1B with two versions of the weights: batches follow each other without a bubble, and "
    "gradients are one update old",
    Parameters<TwoVersionParameters>().integer(
        "batch", &TwoVersionParameters::batch, {0, 1'000'000},
        "microbatches between two updates of the weights, at least as many as there are stages; an iteration "
        "has microbatches / batch updates; 0: the number of stages"),
    [](const TwoVersionParameters& p, const ConfigNode&) { return std::make_unique<PipeDream2BW>(p); }};

}  // namespace
}  // namespace netsim
