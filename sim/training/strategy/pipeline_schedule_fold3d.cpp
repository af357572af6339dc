// Fold3D: the model's parts are segments, and all microbatches enter and leave a segment before the next one
// (all-in-all-out). Every stage reduces the gradients of a segment as soon as they are complete, beside the
// backward of the next segment. The source is Li et al., "Fold3D: Rethinking and Parallelizing Computational
// and Communicational Tasks in the Training of Large DNN Models", IEEE TPDS 34(5), 2023. Its code is
// hku-systems/fold3d.
//
// With v segments all of a reduction but 1/v is hidden, if the backward takes as long. One that is the share
// s of an iteration with one segment gives a speedup of 1 / (1 - s (1 - 1/v)).
#include <memory>

#include "sim/core/registry.h"
#include "sim/training/strategy/pipeline_schedule.h"

namespace netsim {
namespace {

class Fold3D : public PipelineSchedule {
 public:
  std::string refusal(const PipelineShape& shape) const override {
    if (shape.chunks == 1 || shape.microbatches >= shape.stages) return {};
    return "fold3d needs at least as many microbatches as the " + std::to_string(shape.stages) +
           " stages where these have several segments, not " + std::to_string(shape.microbatches);
  }
  std::vector<PipelineStep> order(const PipelineShape& shape, std::uint32_t) const override {
    std::vector<PipelineStep> steps;
    for (std::uint32_t segment = 0; segment < shape.chunks; ++segment) {
      for (std::uint32_t i = 0; i < shape.microbatches; ++i)
        steps.push_back({PipelineStepKind::forward, segment, i});
    }
    for (std::uint32_t segment = shape.chunks; segment-- > 0;) {
      for (std::uint32_t i = 0; i < shape.microbatches; ++i)
        steps.push_back({PipelineStepKind::backward, segment, i});
      steps.push_back({PipelineStepKind::reduce, segment});
    }
    return steps;
  }
};

const Registration<PipelineSchedule> kFold3D{
    "fold3d",
    "Fold3D: all microbatches pass one segment (virtual_stages) before the next, whose backward hides the "
    "reduction of its gradients",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<Fold3D>(); }};

}  // namespace
}  // namespace netsim
