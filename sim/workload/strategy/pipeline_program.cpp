#include "sim/workload/strategy/pipeline_program.h"

#include <map>
#include <memory>
#include <tuple>

#include "sim/core/registry.h"

namespace netsim {
namespace {

// Queues of stream pp: order is kept within each.
enum Queue : std::uint32_t { kReceiveForward = 1, kGatherForward, kReceiveBackward, kGatherBackward };

}  // namespace

BlockBuilder::Position PipelineProgram::append(BlockBuilder& main, std::uint32_t stage,
                                               const PipelineSchedule& schedule) const {
  std::map<std::tuple<bool, std::uint32_t, bool>, Step> known;
  BlockBuilder::Position last = 0;
  for (const PipelineStep& next : schedule.order(shape_, stage)) {
    const bool final = !next.forward && next.microbatch + 1 == shape_.microbatches;
    const auto [it, fresh] = known.try_emplace({next.forward, next.chunk, final});
    if (fresh) it->second = make_step(stage, next.chunk, next.forward, final);
    last = main.repeat(it->second.block) + it->second.result;
  }
  return last;
}

// The forward begins in chunk 0 of stage 0, the backward in the last chunk of the last stage; with the roles
// exchanged, these are where the other direction ends.
bool PipelineProgram::has_input(std::uint32_t stage, std::uint32_t chunk, bool forward) const {
  return forward ? stage > 0 || chunk > 0 : stage + 1 < shape_.stages || chunk + 1 < shape_.chunks;
}

PipelineProgram::Step PipelineProgram::make_step(std::uint32_t stage, std::uint32_t chunk, bool forward,
                                                 bool final) const {
  BlockBuilder block(builder_, forward ? "forward" : "backward");
  const bool waits = has_input(stage, chunk, forward);
  if (waits) receive(block, forward);
  Step step;
  step.result = forward ? computation_.forward(block, stage, chunk, waits)
                        : computation_.backward(block, stage, chunk, waits, final);
  if (has_input(stage, chunk, !forward)) send(block, forward, step.result);
  step.block = block.finish();
  return step;
}

void PipelineProgram::receive(BlockBuilder& block, bool forward) const {
  const PeerExpression from{PeerExpression::Kind::offset, shape_.chunks > 1, transfers_.axis,
                            forward ? -1 : 1, 0};
  const auto received =
      block.receive(forward ? "receive_forward" : "receive_backward",
                    forward ? kReceiveForward : kReceiveBackward, from, forward ? 0 : 1, transfers_.message);
  if (transfers_.gathered == 0) return;
  block.collective(forward ? "gather_forward" : "gather_backward", CollectiveKind::all_gather, Stream::pp,
                   forward ? kGatherForward : kGatherBackward,
                   forward ? transfers_.forward_group : transfers_.backward_group, transfers_.gathered,
                   {received});
}

void PipelineProgram::send(BlockBuilder& block, bool forward, BlockBuilder::Position result) const {
  const PeerExpression to{PeerExpression::Kind::offset, shape_.chunks > 1, transfers_.axis, forward ? 1 : -1,
                          0};
  block.send(forward ? "send_forward" : "send_backward", to, forward ? 0 : 1, transfers_.message, {result});
}

std::unique_ptr<PipelineSchedule> create_pipeline_schedule(const ConfigNode& schedule,
                                                           const ConfigNode& where,
                                                           const PipelineShape& shape) {
  auto created = Registry<PipelineSchedule>::instance().create(
      schedule, shape.chunks > 1 ? "interleaved" : "one_f_one_b");
  const std::string refusal = created->refusal(shape);
  if (!refusal.empty()) (schedule.is_null() ? where : schedule).fail(refusal);
  return created;
}

}  // namespace netsim
