// Chimera: two copies of the model, one from either end, and half of the microbatches through each (Li and
// Hoefler, "Chimera: Efficiently Training Large-Scale Neural Networks with Bidirectional Pipelines", SC'21).
// p microbatches make a unit, in which each direction is 1F1B of p/2 microbatches; where forward and backward
// take one slot each, the steps of the two directions never meet. Units follow each other directly: forwards
// of the next one fill the bubbles at the end of this one.
#include <algorithm>
#include <memory>

#include "sim/core/registry.h"
#include "sim/workload/strategy/pipeline_schedule.h"

namespace netsim {
namespace {

class Chimera : public PipelineSchedule {
 public:
  std::string refusal(const PipelineShape& shape) const override {
    if (shape.chunks != 1) return refuse_chunks("chimera", shape) + ": the second is that of its second copy";
    if (shape.stages % 2 != 0)
      return "chimera needs an even number of stages, not " + std::to_string(shape.stages);
    if (shape.microbatches % shape.stages == 0) return {};
    return "chimera needs microbatches that are a multiple of the " + std::to_string(shape.stages) +
           " stages: " + std::to_string(shape.microbatches) + " are not";
  }
  PipelinePlacement placement(const PipelineShape& shape) const override {
    return PipelinePlacement::bidirectional(shape.stages);
  }
  std::vector<PipelineStep> order(const PipelineShape& shape, std::uint32_t stage) const override {
    const PipelinePlacement where = placement(shape);
    std::vector<std::pair<std::uint64_t, PipelineStep>> slots;
    for (std::uint32_t chunk = 0; chunk < 2; ++chunk) {
      const auto [route, part] = where.held(stage, chunk);
      for (std::uint32_t i = 0; i < shape.microbatches / 2; ++i) {
        const std::uint64_t unit = i / (shape.stages / 2), begin = unit * 2 * shape.stages;
        const std::uint64_t turn = 2 * std::uint64_t{i % (shape.stages / 2)};
        const std::uint32_t microbatch = route * (shape.microbatches / 2) + i;
        slots.push_back({begin + turn + part, {PipelineStepKind::forward, chunk, microbatch}});
        slots.push_back(
            {begin + turn + 2 * shape.stages - 1 - part, {PipelineStepKind::backward, chunk, microbatch}});
      }
    }
    std::sort(slots.begin(), slots.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<PipelineStep> steps;
    steps.reserve(slots.size());
    for (const auto& [slot, step] : slots) steps.push_back(step);
    return steps;
  }
};

const Registration<PipelineSchedule> kRegistration{
    "chimera",
    "two copies of the model from either end, half of the microbatches through each: half the bubble of 1F1B",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<Chimera>(); }};

}  // namespace
}  // namespace netsim
