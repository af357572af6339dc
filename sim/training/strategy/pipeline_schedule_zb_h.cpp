// ZB-H1 and ZB-H2: 1F1B with split backwards, so that gradients of weights fill bubbles (Qi et al., "Zero
// Bubble Pipeline Parallelism", ICLR 2024, section 2). Stage s of p begins its backwards after as many
// forwards as its share of the memory allows. It puts off as many gradients of weights as other stages have
// more forwards than it. So each stage holds the same number of activations:
//
//           forwards before the first backward      put off     activations    bubble (F = B = W, each 1)
//   ZB-H1   p - s                                    s          p              (p - 1) (F + B - W)
//   ZB-H2   2 (p - s) - 1                            2 s        2 p - 1        (p - 1) (F + B - 2 W)
//
// The bubble is that of a stage between the ends of two iterations: nothing synchronises the optimizer.
#include <algorithm>
#include <memory>

#include "sim/core/registry.h"
#include "sim/training/strategy/pipeline_schedule.h"

namespace netsim {
namespace {

class ZeroBubble : public PipelineSchedule {
 public:
  // `depth` is 1 for ZB-H1, 2 for ZB-H2.
  ZeroBubble(const char* name, std::uint32_t depth) : name_(name), depth_(depth) {}

  std::string refusal(const PipelineShape& shape) const override { return refuse_chunks(name_, shape); }
  std::vector<PipelineStep> order(const PipelineShape& shape, std::uint32_t stage) const override {
    const std::uint32_t m = shape.microbatches;
    const std::uint32_t warmup = std::min(depth_ * (shape.stages - 1 - stage), m), put_off = depth_ * stage;
    std::vector<PipelineStep> steps;
    for (std::uint32_t i = 0; i < warmup; ++i) steps.push_back({PipelineStepKind::forward, 0, i});
    for (std::uint32_t i = 0; i < m; ++i) {
      if (i + warmup < m) steps.push_back({PipelineStepKind::forward, 0, i + warmup});
      steps.push_back({PipelineStepKind::input_backward, 0, i});
      if (i >= put_off) steps.push_back({PipelineStepKind::weight_backward, 0, i - put_off});
    }
    for (std::uint32_t i = m - std::min(put_off, m); i < m; ++i)
      steps.push_back({PipelineStepKind::weight_backward, 0, i});
    return steps;
  }

 private:
  const char* name_;
  std::uint32_t depth_;
};

const Registration<PipelineSchedule> kFirst{
    "zb_h1",
    "zero bubble H1 splits backwards in two and has a third of the bubble of 1F1B in the same memory",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<ZeroBubble>("zb_h1", 1); }};
const Registration<PipelineSchedule> kZbH2{
    "zb_h2", "zero bubble H2 has no bubble where F = B = W, and keeps 2p-1 microbatches in memory",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<ZeroBubble>("zb_h2", 2); }};

}  // namespace
}  // namespace netsim
