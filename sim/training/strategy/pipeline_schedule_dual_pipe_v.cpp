// DualPipeV: DualPipe cut in half, with one copy of the model in a V and two chunks a stage. The sources are
// DeepSeek's dualpipev.py and the "Cut-in-half" schedules of Qi and others. Where F = W = B/2 and a pair
// takes F + B, the bubble is (p - 1) (F&B + B - 3 W) of a part's times.
#include <memory>

#include "sim/core/registry.h"
#include "sim/training/strategy/dual_pipe_rule.h"
#include "sim/training/strategy/pipeline_schedule.h"

namespace netsim {
namespace {

class DualPipeV : public PipelineSchedule {
 public:
  std::string refusal(const PipelineShape& shape) const override {
    if (shape.chunks != 2) {
      return "dual_pipe_v has two model chunks per stage: virtual_stages has to be 2, not " +
             std::to_string(shape.chunks);
    }
    if (shape.microbatches >= 2 * shape.stages) return {};
    return "dual_pipe_v needs at least " + std::to_string(2 * shape.stages) +
           " microbatches (twice the stages), not " + std::to_string(shape.microbatches);
  }
  PipelinePlacement placement(const PipelineShape& shape) const override {
    return PipelinePlacement::v_shaped(shape.stages);
  }
  std::vector<PipelineStep> order(const PipelineShape& shape, std::uint32_t stage) const override {
    return DualPipeRule(shape.stages, stage, shape.microbatches, {0, 0}, {1, 0}).steps();
  }
};

const Registration<PipelineSchedule> kDualPipeV{
    "dual_pipe_v", "DualPipe runs one copy of the model in a V, with two chunks per stage",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<DualPipeV>(); }};

}  // namespace
}  // namespace netsim
