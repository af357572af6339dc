// DualPipeRule: the rule that DualPipe and DualPipeV share (DeepSeek-V3, arXiv 2412.19437, section 3.2.1,
// figure 5; the published schedulers dualpipe.py and dualpipev.py). A stage has two chunks, one that a
// microbatch reaches early and one that it reaches late. Forwards of one and backwards of the other are
// computed as one overlapped step. Gradients of weights are put off only where they fill a bubble.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/training/strategy/pipeline_schedule.h"

namespace netsim {

class DualPipeRule {
 public:
  // `stages` counts the stages from this end of the pipeline to where the two chunks meet; `stage` is this
  // stage's index among them. `microbatches` pass through each chunk, at least 2 `stages`. `early` and `late`
  // are the chunks, with the first microbatch of each.
  struct Chunk {
    std::uint32_t chunk, first_microbatch;
  };
  DualPipeRule(std::uint32_t stages, std::uint32_t stage, std::uint32_t microbatches, Chunk early, Chunk late)
      : chunks_{early, late} {
    const std::uint32_t ahead = stages - 1 - stage;
    const bool meets = ahead == 0;
    for (std::uint32_t i = 0; i < 2 * ahead; ++i) forward(kEarly);
    for (std::uint32_t i = 0; i < stage + 1; ++i) {
      forward(kEarly);
      forward(kLate);
    }
    for (std::uint32_t i = 0; i < ahead; ++i) {
      backward(kLate, true);
      weights();
      forward(kLate);
    }
    // Where the chunks meet, the first pair is not overlapped, which makes the bubble smaller.
    for (std::uint32_t i = 0; i < microbatches - 2 * stages + stage + 1; ++i) {
      if (i == 0 && meets) {
        forward(kEarly);
        backward(kLate, false);
      } else {
        overlapped(kEarly, kLate);
      }
      overlapped(kLate, kEarly);
    }
    for (std::uint32_t i = 0; i < ahead; ++i) {
      backward(kLate, false);
      overlapped(kLate, kEarly);
    }
    // The second half of these backwards is split.
    for (std::uint32_t i = 0; i < 2 * (stage + 1); ++i) backward(i % 2 == 0 ? kLate : kEarly, i > stage);
    for (std::uint32_t i = 0; i < ahead; ++i) {
      weights();
      backward(kEarly, true);
    }
    while (put_off_ < pending_.size()) weights();
  }
  std::vector<PipelineStep> steps() { return std::move(steps_); }

 private:
  enum Which : std::uint32_t { kEarly, kLate };
  void forward(Which which) {
    steps_.push_back({PipelineStepKind::forward, chunks_[which].chunk, next(forwards_, which)});
  }
  void backward(Which which, bool split) {
    const PipelineStep step{split ? PipelineStepKind::input_backward : PipelineStepKind::backward,
                            chunks_[which].chunk, next(backwards_, which)};
    steps_.push_back(step);
    if (split) pending_.push_back({PipelineStepKind::weight_backward, step.chunk, step.microbatch});
  }
  void overlapped(Which forward, Which backward) {
    const std::uint32_t microbatch = next(forwards_, forward);
    steps_.push_back({PipelineStepKind::overlapped, chunks_[forward].chunk, microbatch,
                      chunks_[backward].chunk, next(backwards_, backward)});
  }
  // Appends the oldest gradients of weights that are put off.
  void weights() { steps_.push_back(pending_[put_off_++]); }
  std::uint32_t next(std::uint32_t (&done)[2], Which which) {
    return chunks_[which].first_microbatch + done[which]++;
  }

  Chunk chunks_[2];
  std::uint32_t forwards_[2] = {0, 0}, backwards_[2] = {0, 0};
  std::vector<PipelineStep> pending_, steps_;
  std::size_t put_off_ = 0;
};

}  // namespace netsim
