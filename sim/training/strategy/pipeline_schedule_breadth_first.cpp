// Breadth-first: looped stages that run all microbatches through one chunk before the next one (Lamy-Poirier,
// "Breadth-First Pipeline Parallelism", MLSys 2023). The bubble is that of interleaved 1F1B, (p - 1) / (v m)
// of the ideal time, with all v m activations in memory. A chunk's gradients are complete after one run, and
// its parameters are needed for one run at a time.
#include <algorithm>
#include <memory>

#include "sim/core/registry.h"
#include "sim/training/strategy/pipeline_schedule.h"

namespace netsim {
namespace {

class BreadthFirst : public PipelineSchedule {
 public:
  std::string refusal(const PipelineShape& shape) const override {
    if (shape.chunks == 1 || shape.microbatches >= shape.stages) return {};
    return "breadth_first needs at least as many microbatches as the " + std::to_string(shape.stages) +
           " stages where these have several chunks, not " + std::to_string(shape.microbatches);
  }
  std::vector<PipelineStep> order(const PipelineShape& shape, std::uint32_t) const override {
    std::vector<PipelineStep> steps;
    for (std::uint32_t chunk = 0; chunk < shape.chunks; ++chunk)
      append(steps, PipelineStepKind::forward, chunk, shape);
    for (std::uint32_t chunk = shape.chunks; chunk-- > 0;)
      append(steps, PipelineStepKind::backward, chunk, shape);
    return steps;
  }

 private:
  static void append(std::vector<PipelineStep>& steps, PipelineStepKind kind, std::uint32_t chunk,
                     const PipelineShape& shape) {
    for (std::uint32_t i = 0; i < shape.microbatches; ++i) steps.push_back({kind, chunk, i});
  }
};

const Registration<PipelineSchedule> kBreadthFirst{
    "breadth_first",
    "all microbatches pass one chunk before the next; the bubble is (p-1)/(v m), and v m activations are in "
    "memory",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<BreadthFirst>(); }};

}  // namespace
}  // namespace netsim
