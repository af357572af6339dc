// Transfers of PipelineProgram: messages between stages, and what gathers or reshards them.
#include <algorithm>
#include <string>
#include <utility>

#include "sim/training/strategy/pipeline_program.h"

namespace netsim {
namespace {

// Queues of stream pp. Each queue keeps its order. Receives of further lines use the queues from kMore on.
enum PipelineQueue : std::uint32_t {
  kReceiveForward = 1,
  kGatherForward,
  kReceiveBackward,
  kGatherBackward,
  kMore
};
// Queue of all messages of a stage, where they are ordered.
constexpr std::uint32_t kOrdered = 1U << 19;
// First queue of resharded transfers, which take three for each line and stage at the other end.
constexpr std::uint32_t kReshardings = 1U << 20;
// Communicators 1 and 2 gather the halves of scatter/gather.
constexpr std::uint32_t kReshardingCommunicator = 3;

}  // namespace

// Returns whether a transfer takes place, and fills it in. A forward comes from the part before and goes to
// the next part; a backward goes the other way. Nothing is sent where both parts are on one stage.
bool PipelineProgram::has_neighbour(const StageStep& step, bool forward, bool source,
                                    Transfer& transfer) const {
  const auto [route, part] =
      plan_.placement.held(step.stage, forward ? step.chunk : step.chunk_of_backward());
  const bool before = forward == source;
  if (before ? part == 0 : part + 1 == plan_.parts()) return false;
  const auto [stage, chunk] = plan_.placement.at(route, before ? part - 1 : part + 1);
  const std::uint32_t boundary = before ? part - 1 : part;  // the part that precedes the boundary
  transfer = {forward, stage, chunk, boundary,
              transfers_.messages.empty() ? transfers_.message : transfers_.messages[boundary]};
  return stage != step.stage;
}

// Returns the peer as an offset along the pipeline's axis. The offset wraps round the ring where a stage has
// several chunks. `preferred` (1 or -1) is taken where both directions lead to the peer.
PeerExpression PipelineProgram::peer(std::uint32_t stage, const Transfer& to, std::int32_t preferred) const {
  if (transfers_.reshardings != nullptr) {
    const std::int32_t distance = transfers_.reshardings->distance(stage, to.stage);
    return {PeerExpression::Kind::offset, false, transfers_.axis, distance, 0};
  }
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
                                                             Rank rank, bool forward,
                                                             std::optional<std::uint32_t> received) const {
  Transfer from;
  if (!has_neighbour(step, forward, true, from)) return {};
  const std::uint32_t chunk = forward ? step.chunk : step.chunk_of_backward(), number = line(forward, chunk);
  if (reshards(step, from))
    return reshard(block, rank, from, false, number, forward ? "_forward" : "_backward", {});
  const std::uint32_t queue = number > 1 ? kMore + number - 2 : forward ? kReceiveForward : kReceiveBackward;
  Position position = received ? BlockBuilder::kBefore - *received
                               : block.receive(forward ? "receive_forward" : "receive_backward", queue,
                                               peer(step.stage, from, forward ? -1 : 1), number, from.bytes);
  if (transfers_.gathered == 0) return {position};
  position = block.collective(forward ? "gather_forward" : "gather_backward", CollectiveKind::all_gather,
                              Stream::pp, forward ? kGatherForward : kGatherBackward,
                              forward ? transfers_.forward_group : transfers_.backward_group,
                              transfers_.gathered, {position});
  return {position};
}

std::uint32_t PipelineProgram::send(BlockBuilder& block, const StageStep& step, Rank rank, bool forward,
                                    const std::vector<Position>& after, bool joins) const {
  Transfer to;
  if (!has_neighbour(step, forward, false, to)) return 0;
  const std::uint32_t number = line(forward, to.chunk);
  if (reshards(step, to))
    return static_cast<std::uint32_t>(
        reshard(block, rank, to, true, number, forward ? "_forward" : "_backward", after).size());
  if (!transfers_.ordered) {
    block.send(forward ? "send_forward" : "send_backward", peer(step.stage, to, forward ? 1 : -1), number,
               to.bytes, after);
    return 1;
  }
  ProgramOp op;
  op.kind = TaskKind::send;
  op.name = builder_.name(forward ? "send_forward" : "send_backward");
  op.peer = peer(step.stage, to, forward ? 1 : -1);
  op.tag = number;
  op.bytes = to.bytes;
  order(op, joins);
  block.add(std::move(op), after);
  return 1;
}

// Puts a message into a queue. Messages without an order are in no queue: sends wait for their data only.
// Receives that are steps are posted in the order of the list, and are done as their messages arrive.
void PipelineProgram::order(ProgramOp& message, bool joins) const {
  message.stream = Stream::pp;
  message.unordered = !transfers_.ordered;
  if (!transfers_.ordered) return;
  message.queue = kOrdered;
  message.joins = joins;
}

bool PipelineProgram::reshards(const StageStep& step, const Transfer& transfer) const {
  return transfers_.reshardings != nullptr && transfers_.reshardings->reshards(step.stage, transfer.stage);
}

// Appends what the rank sends (`out`) or receives, and returns the operations that complete it.
std::vector<BlockBuilder::Position> PipelineProgram::reshard(BlockBuilder& block, Rank rank,
                                                             const Transfer& transfer, bool out,
                                                             std::uint32_t line, const std::string& what,
                                                             const std::vector<Position>& after) const {
  const StageReshardings& plans = *transfers_.reshardings;
  const std::uint32_t from = out ? rank.stage : transfer.stage, to = out ? transfer.stage : rank.stage;
  const std::uint32_t queue = kReshardings + 3 * (line * plan_.shape.stages + transfer.stage);
  std::vector<Position> done;
  for (const StageReshardings::Call& call :
       plans.calls(from, to, transfer.part, rank.stage, rank.rank_class)) {
    if (call.kind == ReshardingStep::Kind::message) {
      ProgramOp op;
      op.kind = out ? TaskKind::send : TaskKind::receive;
      op.stream = Stream::pp;
      op.queue = queue + (out ? 0 : 1);
      op.peer = plans.peer(from, to, transfer.part, call);
      op.tag = line;
      op.bytes = call.bytes;
      op.name = builder_.name((out ? "send" : "receive") + what);
      done.push_back(block.add(std::move(op), after));
      continue;
    }
    const bool gathers = call.kind == ReshardingStep::Kind::gather;
    const std::uint32_t group = plans.group(from, to, transfer.part, call, kReshardingCommunicator + line);
    const Position position =
        block.collective((gathers ? "gather" : "broadcast") + what,
                         gathers ? CollectiveKind::all_gather : CollectiveKind::broadcast, Stream::pp,
                         queue + (gathers ? 2
                                  : out   ? 0
                                          : 1),
                         group, call.bytes, gathers ? done : after);
    if (gathers) done.clear();
    done.push_back(position);
  }
  return done;
}

BlockBuilder::Position PipelineProgram::append_shared(BlockBuilder& main, std::uint32_t stage,
                                                      std::uint32_t rank_class, std::uint32_t other,
                                                      const std::vector<Position>& after, bool memory) const {
  const StageReshardings& plans = *transfers_.reshardings;
  const std::size_t first_item = main.items();
  const Rank rank{stage, rank_class};
  Transfer transfer;
  transfer.stage = other;
  transfer.part = StageReshardings::kShared;
  // A line beyond those of all chunks.
  std::uint32_t line = 0;
  for (std::uint32_t s = 0; s < plan_.shape.stages; ++s) line = std::max(line, 2 * plan_.placement.chunks(s));
  std::vector<Position> done = reshard(main, rank, transfer, true, line, "_embedding_gradients", after);
  const std::vector<Position> got = reshard(main, rank, transfer, false, line, "_embedding_gradients", after);
  done.insert(done.end(), got.begin(), got.end());
  if (got.empty()) return done.empty() ? after.back() : done.back();
  Bytes bytes = 0;
  for (const StageReshardings::Call& call : plans.calls(other, stage, transfer.part, stage, rank_class))
    bytes += call.bytes;
  // The received gradients and the rank's own are read, and the sum is written.
  Kernel sum;
  sum.kind = Kernel::Kind::memory;
  sum.name = "gradient_sum";
  sum.bytes = 3 * bytes;
  const Position position = main.compute({"embedding_gradient_sum", {sum}}, done);
  const MemoryChange buffer{MemoryKind::communication, bytes};
  if (memory) main.add_memory(first_item, {{buffer}, {buffer.reversed()}});
  return position;
}

BlockBuilder::Position PipelineProgram::post(BlockBuilder& block, const StageStep& step, bool forward,
                                             const std::vector<Position>& after, bool joins) const {
  Transfer from;
  has_neighbour(step, forward, true, from);
  ProgramOp op;
  op.kind = TaskKind::receive;
  order(op, joins);
  op.name = builder_.name(forward ? "receive_forward" : "receive_backward");
  op.peer = peer(step.stage, from, forward ? -1 : 1);
  op.tag = line(forward, step.chunk);
  op.bytes = from.bytes;
  return block.add(std::move(op), after);
}

}  // namespace netsim
