// Forward-only: inference through a pipeline. Groups of p microbatches run through one chunk after the other,
// as the forwards of interleaved 1F1B do. So no stage waits once it has begun.
#include <algorithm>
#include <memory>

#include "sim/core/registry.h"
#include "sim/training/strategy/pipeline_schedule.h"

namespace netsim {
namespace {

class ForwardOnly : public PipelineSchedule {
 public:
  std::string refusal(const PipelineShape& shape) const override {
    if (shape.chunks == 1 || shape.microbatches % shape.stages == 0) return {};
    return "forward_only with several chunks needs microbatches that are a multiple of the " +
           std::to_string(shape.stages) + " stages: " + std::to_string(shape.microbatches) + " are not";
  }
  std::vector<PipelineStep> order(const PipelineShape& shape, std::uint32_t) const override {
    std::vector<PipelineStep> steps;
    for (std::uint32_t first = 0; first < shape.microbatches; first += shape.stages) {
      const std::uint32_t end = std::min(first + shape.stages, shape.microbatches);
      for (std::uint32_t chunk = 0; chunk < shape.chunks; ++chunk) {
        for (std::uint32_t i = first; i < end; ++i) steps.push_back({PipelineStepKind::forward, chunk, i});
      }
    }
    return steps;
  }
  bool trains() const override { return false; }
};

const Registration<PipelineSchedule> kForwardOnly{
    "forward_only", "inference runs forwards only; p-1 of them precede the first one of the last stage",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<ForwardOnly>(); }};

}  // namespace
}  // namespace netsim
