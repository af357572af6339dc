// Interleaved 1F1B: every stage has v chunks of the model and runs groups of microbatches through one chunk
// after the other. Sources: Narayanan et al., SC'21, section 2.2.2;
// forward_backward_pipelining_with_interleaving in Megatron-LM's
// megatron/core/pipeline_parallel/schedules.py.
//
// A group has p microbatches, or `group` of them. The last group may be smaller, but has p at least. With
// equal stages the bubble is (p - 1) / (v m) of the ideal time, whatever the groups.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "sim/core/registry.h"
#include "sim/training/strategy/pipeline_schedule.h"

namespace netsim {
namespace {

struct InterleavedParameters {
  std::optional<std::int64_t> group;
};

const Parameters<InterleavedParameters>& interleaved_parameters() {
  static const auto p = Parameters<InterleavedParameters>().integer(
      "group", &InterleavedParameters::group, {1, 1'000'000}, "stages",
      "microbatches that a chunk takes before the next chunk takes them, from as many as the stages to all "
      "(Megatron-Core's microbatch_group_size_per_vp_stage); the last group has the rest, which has to be "
      "as many as the stages or more");
  return p;
}

class Interleaved : public PipelineSchedule {
 public:
  explicit Interleaved(const InterleavedParameters& p) : given_(p.group) {}

  // Refuses the shapes that Megatron-Core refuses: groups that are smaller than the stages, the last one too.
  std::string refusal(const PipelineShape& shape) const override {
    if (shape.stages < 2) return "interleaved needs at least 2 pipeline stages";
    const std::string stages = "the " + std::to_string(shape.stages) + " stages";
    const std::string microbatches = std::to_string(shape.microbatches) + " microbatches";
    if (shape.microbatches < shape.stages)
      return "interleaved needs at least as many microbatches as " + stages + ": " +
             std::to_string(shape.microbatches) + " are fewer";
    if (given_ && (*given_ < shape.stages || *given_ > shape.microbatches))
      return "interleaved.group has to be between " + stages + " and the " + microbatches + ", not " +
             std::to_string(*given_);
    const std::uint32_t rest = shape.microbatches % group(shape);
    if (rest == 0 || rest >= shape.stages) return {};
    if (given_)
      return "interleaved.group of " + std::to_string(*given_) + " leaves a last group of " +
             std::to_string(rest) + " of the " + microbatches +
             ", which would wait for each other: it needs none or at least as many as " + stages;
    return "interleaved needs microbatches that are a multiple of " + stages + ": " +
           std::to_string(shape.microbatches) +
           " are not; or a larger group, as {kind: interleaved, group: " +
           std::to_string(shape.microbatches) + "}";
  }

  // Megatron-Core calls the send of a forward and the receive of the next one together, before the backward
  // in between. It does the same for backwards (pp_post_forward and pp_post_backward there).
  bool receives_ahead(const PipelineShape& shape) const override { return shape.chunks > 1; }

  std::vector<PipelineStep> order(const PipelineShape& shape, std::uint32_t stage) const override {
    const std::uint32_t total = shape.microbatches * shape.chunks;
    const std::uint32_t warmup = warmup_steps(shape, stage, total);
    std::vector<PipelineStep> steps;
    for (std::uint32_t i = 0; i < warmup; ++i) steps.push_back(step(shape, true, i));
    for (std::uint32_t i = 0; i + warmup < total; ++i) {
      steps.push_back(step(shape, true, i + warmup));
      steps.push_back(step(shape, false, i));
    }
    for (std::uint32_t i = total - warmup; i < total; ++i) steps.push_back(step(shape, false, i));
    return steps;
  }

 private:
  std::uint32_t group(const PipelineShape& shape) const {
    return given_ ? static_cast<std::uint32_t>(*given_) : shape.stages;
  }
  // Returns the number of warm-up forwards. With as many microbatches as stages everything is warm-up, as in
  // Megatron-LM before it had other groups (num_microbatches == pipeline_parallel_size there). The bubble
  // does not depend on it.
  std::uint32_t warmup_steps(const PipelineShape& shape, std::uint32_t stage, std::uint32_t total) const {
    if (shape.microbatches == shape.stages) return total;
    return std::min((shape.stages - stage - 1) * 2 + (shape.chunks - 1) * group(shape), total);
  }
  // Returns the i-th forward or backward of any stage (Megatron-Core's get_schedule_table).
  PipelineStep step(const PipelineShape& shape, bool forward, std::uint32_t i) const {
    const std::uint32_t whole = group(shape), first = i / (whole * shape.chunks) * whole;
    const std::uint32_t size = std::min(whole, shape.microbatches - first);
    const std::uint32_t in_group = i - first * shape.chunks, chunk = in_group / size;
    return {forward ? PipelineStepKind::forward : PipelineStepKind::backward,
            forward ? chunk : shape.chunks - 1 - chunk, first + in_group % size};
  }

  std::optional<std::int64_t> given_;
};

const Registration<PipelineSchedule> kInterleaved{
    "interleaved",
    "interleaved 1F1B gives each stage v model chunks; the bubble is (p-1)/(v m), and there are v times the "
    "messages",
    interleaved_parameters(),
    [](const InterleavedParameters& p, const ConfigNode&) { return std::make_unique<Interleaved>(p); }};

// "depth_first" is the name of Lamy-Poirier ("Breadth-First Pipeline Parallelism", MLSys 2023).
const Registration<PipelineSchedule> kDepthFirst{
    "depth_first", "another name of interleaved 1F1B: groups of microbatches pass one chunk after the other",
    interleaved_parameters(),
    [](const InterleavedParameters& p, const ConfigNode&) { return std::make_unique<Interleaved>(p); }};

}  // namespace
}  // namespace netsim
