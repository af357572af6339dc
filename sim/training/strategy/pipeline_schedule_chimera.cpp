// Chimera: two copies of the model, one from either end, and half of the microbatches through each. The
// source is Li and Hoefler, "Chimera: Efficiently Training Large-Scale Neural Networks with Bidirectional
// Pipelines", SC'21. p microbatches make a unit, in which each direction is 1F1B of p/2 microbatches. Where
// forward and backward take one slot each, the steps of the two directions never collide. Units follow each
// other directly: forwards of the next one fill the bubbles at the end of this one.
//
// Each stage completes the gradients of one of its two chunks before those of the other. It may reduce them
// then (the paper's "eager" synchronisation, section 3.2). With "eager-sync" all stages do so. With
// "eager-sync-opt" (figure 4b) only stages with a bubble between that moment and their last step do; the two
// in the middle only compute then. The paper found the latter faster by up to 1.12 (figure 12).
#include <algorithm>
#include <memory>

#include "sim/core/registry.h"
#include "sim/training/strategy/pipeline_schedule.h"

namespace netsim {
namespace {

enum class Eager { none, bubbles, all };

struct ChimeraParameters {
  Eager eager_reduction = Eager::none;
};

class Chimera : public PipelineSchedule {
 public:
  explicit Chimera(const ChimeraParameters& p) : eager_(p.eager_reduction) {}

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
    reduce_eagerly(slots, steps);
    return steps;
  }

 private:
  // Inserts the reduction after the last step of the chunk that is done first.
  void reduce_eagerly(const std::vector<std::pair<std::uint64_t, PipelineStep>>& slots,
                      std::vector<PipelineStep>& steps) const {
    if (eager_ == Eager::none) return;
    const std::uint32_t other = slots.back().second.chunk;
    std::size_t end = slots.size();
    while (slots[end - 1].second.chunk == other) --end;
    const bool bubble = slots.back().first - slots[end - 1].first > slots.size() - end;
    if (eager_ == Eager::all || bubble)
      steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(end),
                   {PipelineStepKind::reduce, slots[end - 1].second.chunk});
  }

  Eager eager_;
};

Parameters<ChimeraParameters> chimera_parameters() {
  using P = ChimeraParameters;
  return Parameters<P>().choice(
      "eager_reduction", &P::eager_reduction,
      {{"none", Eager::none}, {"bubbles", Eager::bubbles}, {"all", Eager::all}},
      "gradients of a stage's chunk that is complete before its other one: reduced at the end with those, or "
      "at once, by stages that have a bubble behind it, or by all");
}

const Registration<PipelineSchedule> kChimera{
    "chimera",
    "two copies of the model run from either end, each with half of the microbatches; the bubble is half of "
    "that of 1F1B",
    chimera_parameters(),
    [](const ChimeraParameters& p, const ConfigNode&) { return std::make_unique<Chimera>(p); }};

}  // namespace
}  // namespace netsim
