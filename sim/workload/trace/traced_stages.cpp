#include "sim/workload/trace/traced_stages.h"

#include <algorithm>

#include "sim/core/errors.h"

namespace netsim {
namespace {

// Returns the step that a stage runs as the `number`-th of one direction. Chunks change after as many
// microbatches as there are stages.
TracedStep numbered_step(const TracedStages& shape, std::int64_t number, bool forward) {
  TracedStep step;
  step.forward = forward;
  if (shape.chunks == 1) {
    step.microbatch = number;
    return step;
  }
  const std::int64_t group = shape.stages * shape.chunks;
  step.microbatch = number / group * shape.stages + number % shape.stages;
  step.chunk = number % group / shape.stages;
  if (!forward) step.chunk = shape.chunks - 1 - step.chunk;
  return step;
}

// Returns the tag of the message that a step of a chunk waits for.
std::uint32_t tag_of(const TracedStages& shape, const TracedStep& step, std::int64_t chunk) {
  return static_cast<std::uint32_t>(2 * (step.microbatch * shape.chunks + chunk) + (step.forward ? 0 : 1));
}

// A step gets its input from the stage before it in its direction. The first stage gets the input of a later
// chunk from the last stage.
void connect_step(const TracedStages& shape, std::int64_t stage, TracedStep& step) {
  const std::int64_t behind = step.forward ? stage : shape.stages - 1 - stage;
  const std::int64_t chunk = step.forward ? step.chunk : shape.chunks - 1 - step.chunk;
  const std::int64_t next = step.forward ? 1 : -1;
  if (behind > 0 || chunk > 0) step.received = tag_of(shape, step, step.chunk);
  const bool last = behind == shape.stages - 1;
  if (!last || chunk < shape.chunks - 1)
    step.sent = tag_of(shape, step, last ? step.chunk + next : step.chunk);
}

}  // namespace

std::vector<RankId> TracedStages::ranks_of(std::int64_t stage) const {
  std::vector<RankId> list;
  list.reserve(static_cast<std::size_t>(stride()));
  for (std::int64_t rank = stage * stride(); rank < (stage + 1) * stride(); ++rank)
    list.emplace_back(static_cast<std::uint32_t>(rank));
  return list;
}

std::vector<TracedStep> traced_steps(const TracedStages& shape, std::int64_t stage) {
  NETSIM_CHECK(shape.chunks == 1 || shape.microbatches % shape.stages == 0,
               "an interleaved pipeline has microbatches that are no multiple of its stages");
  const std::int64_t all = shape.microbatches * shape.chunks;
  const std::int64_t behind = shape.stages - 1 - stage;
  std::int64_t ahead = shape.chunks == 1 ? behind : 2 * behind + (shape.chunks - 1) * shape.stages;
  // Megatron-LM runs everything forward first where no microbatch would follow the first ones.
  if (shape.chunks > 1 && shape.microbatches == shape.stages) ahead = all;
  ahead = std::min(ahead, all);
  std::vector<TracedStep> steps;
  steps.reserve(static_cast<std::size_t>(2 * all));
  for (std::int64_t i = 0; i < all + ahead; ++i) {
    if (i < all) steps.push_back(numbered_step(shape, i, true));
    if (i >= ahead) steps.push_back(numbered_step(shape, i - ahead, false));
  }
  for (TracedStep& step : steps) connect_step(shape, stage, step);
  return steps;
}

TraceTask traced_message(TraceProgram& program, const TracedStages& shape, const TracedStep& step,
                         TaskKind kind, Bytes bytes) {
  const bool sends = kind == TaskKind::send;
  TraceTask task;
  task.kind = kind;
  task.name = program.name(step.forward ? "activations" : "gradients");
  task.distance = static_cast<std::int32_t>(step.forward == sends ? shape.stride() : -shape.stride());
  task.tag = *(sends ? step.sent : step.received);
  task.bytes = bytes;
  task.stream = Stream::pp;
  return task;
}

}  // namespace netsim
