#include "sim/workload/strategy/pipeline_program.h"

#include <map>
#include <set>
#include <utility>

namespace netsim {
namespace {

// Queues of stream pp: order is kept within each. Receives of further lines come after these.
enum Queue : std::uint32_t { kReceiveForward = 1, kGatherForward, kReceiveBackward, kGatherBackward, kMore };

bool computes_forward(PipelineStepKind kind) {
  return kind == PipelineStepKind::forward || kind == PipelineStepKind::overlapped;
}
bool computes_weights(PipelineStepKind kind) {
  return kind == PipelineStepKind::backward || kind == PipelineStepKind::weight_backward ||
         kind == PipelineStepKind::overlapped;
}
bool sends_backward(PipelineStepKind kind) {
  return kind == PipelineStepKind::backward || kind == PipelineStepKind::input_backward ||
         kind == PipelineStepKind::overlapped;
}
std::uint32_t backward_chunk(const StageStep& step) {
  return step.kind == PipelineStepKind::overlapped ? step.backward_chunk : step.chunk;
}

// The last step of each chunk that computes gradients of weights, by place in the stage's list.
std::set<std::size_t> last_of_chunks(const std::vector<PipelineStep>& steps) {
  std::map<std::uint32_t, std::size_t> last;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const PipelineStep& step = steps[i];
    if (computes_weights(step.kind))
      last[step.kind == PipelineStepKind::overlapped ? step.backward_chunk : step.chunk] = i;
  }
  std::set<std::size_t> places;
  for (const auto& [chunk, place] : last) places.insert(place);
  return places;
}

// The first step of each chunk that computes a forward.
std::set<std::size_t> first_of_chunks(const std::vector<PipelineStep>& steps) {
  std::map<std::uint32_t, std::size_t> first;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (computes_forward(steps[i].kind)) first.try_emplace(steps[i].chunk, i);
  }
  std::set<std::size_t> places;
  for (const auto& [chunk, place] : first) places.insert(place);
  return places;
}

}  // namespace

PipelineProgram::PipelineProgram(ProgramBuilder& builder, const PipelinePlan& plan,
                                 PipelineTransfers transfers, const StageComputation& computation)
    : builder_(builder),
      plan_(plan),
      transfers_(transfers),
      computation_(computation),
      one_order_(prove_pipeline(plan).one_order) {}

PipelineProgram::End PipelineProgram::append(BlockBuilder& main, std::uint32_t stage) const {
  const std::vector<PipelineStep>& steps = plan_.steps[stage];
  const std::set<std::size_t> last_steps = last_of_chunks(steps), first_steps = first_of_chunks(steps);
  std::map<std::pair<StageStep, std::uint32_t>, Step> known;
  End end;
  std::uint32_t sends = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const PipelineStep& next = steps[i];
    const StageStep step{
        next.kind, stage, next.chunk, next.backward_chunk, last_steps.count(i) > 0, first_steps.count(i) > 0};
    const auto [it, fresh] = known.try_emplace({step, sends});
    if (fresh) it->second = make_step(step, sends);
    const Position begin = main.repeat(it->second.block);
    end.computed = begin + it->second.result;
    if (it->second.aside) end.aside = begin + *it->second.aside;
    sends = transfers_.overlap ? 0 : it->second.sends;
  }
  return end;
}

PipelineProgram::Step PipelineProgram::make_step(const StageStep& step, std::uint32_t sends_before) const {
  BlockBuilder block(builder_, step.kind == PipelineStepKind::forward           ? "forward"
                               : step.kind == PipelineStepKind::overlapped      ? "forward_and_backward"
                               : step.kind == PipelineStepKind::weight_backward ? "weights"
                                                                                : "backward");
  std::vector<Position> sent;
  for (std::uint32_t i = 0; i < sends_before; ++i) sent.push_back(BlockBuilder::kBefore - i);
  StageComputation::Inputs inputs;
  if (computes_forward(step.kind)) inputs.forward = receive(block, step, true);
  if (sends_backward(step.kind)) inputs.backward = receive(block, step, false);
  (computes_forward(step.kind) ? inputs.forward : inputs.backward)
      .insert(computes_forward(step.kind) ? inputs.forward.end() : inputs.backward.end(), sent.begin(),
              sent.end());
  const auto [forward, backward, aside] = computation_.append(block, step, inputs);
  Step made;
  made.aside = aside;
  made.result = step.kind == PipelineStepKind::forward ? forward : backward;
  if (computes_forward(step.kind)) made.sends += send(block, step, true, forward) ? 1 : 0;
  if (sends_backward(step.kind)) made.sends += send(block, step, false, backward) ? 1 : 0;
  made.block = block.finish();
  return made;
}

// A forward comes from the part before and goes to the one behind; a backward the other way round. Nothing is
// sent where the two parts are on one stage.
bool PipelineProgram::has_neighbour(const StageStep& step, bool forward, bool source,
                                    Transfer& transfer) const {
  const auto [route, part] = plan_.placement.held(step.stage, forward ? step.chunk : backward_chunk(step));
  const bool before = forward == source;
  if (before ? part == 0 : part + 1 == plan_.parts()) return false;
  const auto [stage, chunk] = plan_.placement.at(route, before ? part - 1 : part + 1);
  const std::uint32_t boundary = before ? part - 1 : part;  // behind this part
  transfer = {forward, stage, chunk,
              transfers_.messages.empty() ? transfers_.message : transfers_.messages[boundary]};
  return stage != step.stage;
}

// Neighbours are one up or down, round the ring where a stage has several chunks; `preferred` where both
// would do.
PeerExpression PipelineProgram::peer(std::uint32_t stage, const Transfer& to, std::int32_t preferred) const {
  const std::uint32_t stages = plan_.shape.stages;
  const bool wrap = plan_.placement.chunks(stage) > 1;
  auto offset = static_cast<std::int32_t>(to.stage) - static_cast<std::int32_t>(stage);
  const bool is_preferred = (stage + stages + static_cast<std::uint32_t>(preferred)) % stages == to.stage;
  if (wrap && is_preferred) offset = preferred;
  return {PeerExpression::Kind::offset, wrap, transfers_.axis, offset, 0};
}

std::uint32_t PipelineProgram::line(bool forward, std::uint32_t receiving_chunk) const {
  return (one_order_ ? 0 : 2 * receiving_chunk) + (forward ? 0 : 1);
}

std::vector<BlockBuilder::Position> PipelineProgram::receive(BlockBuilder& block, const StageStep& step,
                                                             bool forward) const {
  Transfer from;
  if (!has_neighbour(step, forward, true, from)) return {};
  const std::uint32_t chunk = forward ? step.chunk : backward_chunk(step), number = line(forward, chunk);
  const std::uint32_t queue = number > 1 ? kMore + number - 2 : forward ? kReceiveForward : kReceiveBackward;
  Position received = block.receive(forward ? "receive_forward" : "receive_backward", queue,
                                    peer(step.stage, from, forward ? -1 : 1), number, from.bytes);
  if (transfers_.gathered == 0) return {received};
  received = block.collective(forward ? "gather_forward" : "gather_backward", CollectiveKind::all_gather,
                              Stream::pp, forward ? kGatherForward : kGatherBackward,
                              forward ? transfers_.forward_group : transfers_.backward_group,
                              transfers_.gathered, {received});
  return {received};
}

bool PipelineProgram::send(BlockBuilder& block, const StageStep& step, bool forward, Position result) const {
  Transfer to;
  if (!has_neighbour(step, forward, false, to)) return false;
  block.send(forward ? "send_forward" : "send_backward", peer(step.stage, to, forward ? 1 : -1),
             line(forward, to.chunk), to.bytes, {result});
  return true;
}

}  // namespace netsim
