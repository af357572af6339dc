// The order in which the stages of a pipeline run their microbatches, for readers of tables that have the
// tasks of one stage.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/workload/trace/trace_program.h"

namespace netsim {

// TracedStages: the sizes of a pipeline. Stages are the farthest apart in the order of ranks.
struct TracedStages {
  std::int64_t ranks = 1, stages = 1, microbatches = 1;
  std::int64_t chunks = 1;  // chunks of layers of a stage, which run interleaved
  std::int64_t stride() const { return ranks / stages; }
  // Returns the ranks of a stage.
  std::vector<RankId> ranks_of(std::int64_t stage) const;
};

// TracedStep: the forward or the backward pass of one chunk for one microbatch.
struct TracedStep {
  std::int64_t microbatch = 0, chunk = 0;
  bool forward = true;
  // Tags of the messages before and behind it, which no other messages have. Nothing: the pipeline begins or
  // ends here.
  std::optional<std::uint32_t> received, sent;
};

// Returns the steps of a stage in the order 1F1B. With several chunks it is the interleaved order of
// Megatron-LM (Narayanan et al., SC 2021, section 2.2; schedules.py). Microbatches must then be a multiple of
// stages.
std::vector<TracedStep> traced_steps(const TracedStages& shape, std::int64_t stage);

// Returns the message before a step (TaskKind::receive) or behind it (send), with relative peers. The step
// must have it.
TraceTask traced_message(TraceProgram& program, const TracedStages& shape, const TracedStep& step,
                         TaskKind kind, Bytes bytes);

}  // namespace netsim
