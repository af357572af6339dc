// GPipe: all forwards, then all backwards, the last microbatch first (Huang et al., "GPipe", NeurIPS 2019,
// figure 2c). With equal stages the bubble is (p - 1) / m of the ideal time, as that of 1F1B, but all m
// microbatches are in memory.
#include <algorithm>
#include <memory>

#include "sim/core/registry.h"
#include "sim/training/strategy/pipeline_schedule.h"

namespace netsim {
namespace {

class GPipe : public PipelineSchedule {
 public:
  std::string refusal(const PipelineShape& shape) const override {
    return shape.chunks == 1 ? std::string()
                             : refuse_chunks("gpipe", shape) + "; breadth_first does the same with several";
  }
  std::vector<PipelineStep> order(const PipelineShape& shape, std::uint32_t) const override {
    std::vector<PipelineStep> steps;
    for (std::uint32_t i = 0; i < shape.microbatches; ++i) steps.push_back({PipelineStepKind::forward, 0, i});
    for (std::uint32_t i = shape.microbatches; i-- > 0;) steps.push_back({PipelineStepKind::backward, 0, i});
    return steps;
  }
};

const Registration<PipelineSchedule> kGpipe{
    "gpipe", "all forwards precede all backwards; the bubble is (p-1)/m, and m microbatches are in memory",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<GPipe>(); }};

}  // namespace
}  // namespace netsim
