// ZB-V: two chunks a stage in a V (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, section 6). The
// last part of the model is on the stage of the first one, so that backwards begin at once. The rule below is
// that of figure 6 and of PyTorch's ScheduleZBVZeroBubble. There is no bubble where F = B = W (of a part).
// The memory is that of 1F1B: 2 p parts, each half a stage.
#include <algorithm>
#include <memory>

#include "sim/core/registry.h"
#include "sim/training/strategy/pipeline_schedule.h"

namespace netsim {
namespace {

class ZeroBubbleV : public PipelineSchedule {
 public:
  std::string refusal(const PipelineShape& shape) const override {
    return shape.chunks == 2 ? std::string()
                             : "zb_v has two model chunks per stage: virtual_stages has to be 2, not " +
                                   std::to_string(shape.chunks);
  }
  PipelinePlacement placement(const PipelineShape& shape) const override {
    return PipelinePlacement::v_shaped(shape.stages);
  }
  std::vector<PipelineStep> order(const PipelineShape& shape, std::uint32_t stage) const override {
    return Rule(shape, stage).steps();
  }

 private:
  // Makes the steps for at least 2 p - 1 microbatches. With fewer, steps of the surplus microbatches are left
  // out.
  class Rule {
   public:
    Rule(const PipelineShape& shape, std::uint32_t stage)
        : m_(shape.microbatches), planned_(std::max(m_, 2 * shape.stages - 1)) {
      // Number of stages between this one and the one where the V turns.
      const std::uint32_t behind = shape.stages - 1 - stage;
      for (std::uint32_t i = 0; i < 2 * behind + 1; ++i) add(PipelineStepKind::forward, 0);
      for (std::uint32_t i = 0; i < stage; ++i) {
        add(PipelineStepKind::forward, 1);
        add(PipelineStepKind::forward, 0);
      }
      for (std::uint32_t i = 0; i <= behind; ++i) {
        add(PipelineStepKind::forward, 1);
        backward(1);
      }
      while (forwards_[1] < forwards_[0] || forwards_[0] < planned_) {
        if (forwards_[0] < planned_) add(PipelineStepKind::forward, 0);
        backward(0);
        add(PipelineStepKind::forward, 1);
        backward(1);
      }
      for (std::uint32_t i = 0; i < stage; ++i) {
        add(PipelineStepKind::input_backward, 0);
        add(PipelineStepKind::input_backward, 1);
      }
      for (std::uint32_t i = 0; i <= behind; ++i) backward(0);
      for (const std::uint32_t chunk : {1U, 0U}) {
        while (weights_[chunk] < inputs_[chunk]) add(PipelineStepKind::weight_backward, chunk);
      }
    }
    std::vector<PipelineStep> steps() { return std::move(steps_); }

   private:
    void backward(std::uint32_t chunk) {
      add(PipelineStepKind::input_backward, chunk);
      add(PipelineStepKind::weight_backward, chunk);
    }
    // Adds the next step of its kind.
    void add(PipelineStepKind kind, std::uint32_t chunk) {
      auto& next = kind == PipelineStepKind::forward          ? forwards_
                   : kind == PipelineStepKind::input_backward ? inputs_
                                                              : weights_;
      const std::uint32_t microbatch = next[chunk]++;
      if (microbatch < m_) steps_.push_back({kind, chunk, microbatch});
    }
    std::uint32_t m_, planned_;
    std::uint32_t forwards_[2] = {0, 0}, inputs_[2] = {0, 0}, weights_[2] = {0, 0};
    std::vector<PipelineStep> steps_;
  };
};

const Registration<PipelineSchedule> kZbV{
    "zb_v",
    "zero bubble V has two chunks per stage in a V and no bubble where F = B = W, in the memory of 1F1B",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<ZeroBubbleV>(); }};

}  // namespace
}  // namespace netsim
