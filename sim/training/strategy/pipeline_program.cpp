#include "sim/training/strategy/pipeline_program.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "sim/training/strategy/pipeline_computations.h"

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

// Returns, for each chunk, the last step that computes gradients of weights, as an index in the stage's list.
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

// Returns, for each chunk, the first step that computes a forward, as an index in the stage's list.
std::set<std::size_t> first_of_chunks(const std::vector<PipelineStep>& steps) {
  std::map<std::uint32_t, std::size_t> first;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (computes_forward(steps[i].kind)) first.try_emplace(steps[i].chunk, i);
  }
  std::set<std::size_t> places;
  for (const auto& [chunk, place] : first) places.insert(place);
  return places;
}

// Returns the index + 1 of `layers` in Program::layers, or 0 where they are empty.
std::uint32_t add_layers(Program& program, std::vector<LayerOperations> layers) {
  if (layers.empty()) return 0;
  program.layers.push_back(std::move(layers));
  return static_cast<std::uint32_t>(program.layers.size());
}

}  // namespace

void OperationsAside::add(Stream stream, std::uint32_t queue, Position position) {
  const auto known = std::find_if(last_.begin(), last_.end(), [&](const Last& last) {
    return last.stream == stream && last.queue == queue;
  });
  if (known == last_.end()) {
    last_.push_back({stream, queue, position});
  } else {
    known->position = position;
  }
}
void OperationsAside::add(const OperationsAside& in_block, Position begin) {
  for (const Last& last : in_block.last_) add(last.stream, last.queue, begin + last.position);
}
void OperationsAside::append_to(std::vector<Position>& positions) const {
  for (const Last& last : last_) positions.push_back(last.position);
}

void UpdatePlaces::add(const UpdatePlaces& in_block, BlockBuilder::Position begin) {
  for (const Place& place : in_block.run) run.push_back({place.update, begin + place.position});
  for (const Place& place : in_block.awaited) awaited.push_back({place.update, begin + place.position});
}

PipelineProgram::PipelineProgram(ProgramBuilder& builder, const ScheduledPipeline& plan,
                                 PipelineTransfers transfers, const StageComputation& computation)
    : builder_(builder),
      plan_(plan),
      transfers_(transfers),
      computation_(computation),
      one_order_(prove_pipeline(plan).one_order) {}

// The state of a stage on its way through its list: what it has computed, sent and received.
class PipelineProgram::StageProgress {
 public:
  StageProgress(const PipelineProgram& program, BlockBuilder& main, Rank rank)
      : program_(program),
        main_(main),
        rank_(rank),
        stage_(rank.stage),
        steps_(program.plan_.steps[rank.stage]) {
    for (const PipelineStep& step : steps_) {
      if (is_communication(step.kind)) listed_.insert(key(step.kind, step.chunk, step.microbatch));
    }
    if (program.transfers_.ordered) receives_ = receives_in_order(program.plan_, stage_);
  }

  End run() {
    const std::set<std::size_t> last_steps = last_of_chunks(steps_), first_steps = first_of_chunks(steps_);
    receive_next(0, false);
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const PipelineStep& next = steps_[i];
      if (is_communication(next.kind)) {
        communicate(next);
        receive_next(i + 1, false);
      } else {
        behind_communication_ = i > 0 && is_communication(steps_[i - 1].kind);
        const std::uint32_t sends = compute(next, {next.kind, stage_, next.chunk, next.backward_chunk,
                                                   last_steps.count(i) > 0, first_steps.count(i) > 0});
        receive_next(i + 1, sends > 0);
      }
    }
    // A last computation's sends delay nothing.
    if (!steps_.empty() && is_communication(steps_.back().kind)) end_.waits = waits_;
    return end_;
  }

 private:
  using Key = std::tuple<PipelineStepKind, std::uint32_t, std::uint32_t>;  // chunk, microbatch
  static Key key(PipelineStepKind kind, std::uint32_t chunk, std::uint32_t microbatch) {
    return {kind, chunk, microbatch};
  }
  // Returns the number of operations between a position and the next block.
  std::uint32_t distance(Position position) const { return main_.size() - 1 - position; }
  std::optional<std::uint32_t> received(const Key& receive) const {
    const auto known = begun_.find(receive);
    return known == begun_.end() ? std::optional<std::uint32_t>() : distance(known->second.back());
  }

  // Posts the receives of an entry of receives_in_order(). With `join` they are in one call with the sends
  // before them.
  void receive_next(std::size_t entry, bool join) {
    if (receives_.empty()) return;
    for (const PipelineStep& receive : receives_[entry]) {
      const Position begin = main_.size();
      begun_[key(receive.kind, receive.chunk, receive.microbatch)] = {
          program_.post(main_, message(receive), is_forward(receive), join ? computed_ : reached_, join)};
      mark(receive, begin);
      join = true;
    }
  }

  // Appends a computing step. Returns its number of sends.
  std::uint32_t compute(const PipelineStep& next, const StageStep& step) {
    const bool forward = computes_forward(next.kind), backward = sends_backward(next.kind);
    const bool paired = next.kind == PipelineStepKind::overlapped;
    const std::uint32_t microbatch = paired ? next.backward_microbatch : next.microbatch;
    Meeting meeting;
    if (forward) {
      meeting.forward_received =
          received(key(PipelineStepKind::receive_forward, next.chunk, next.microbatch));
      meeting.sends_forward =
          listed_.count(key(PipelineStepKind::send_forward, next.chunk, next.microbatch)) == 0;
    }
    if (backward) {
      const std::uint32_t chunk = backward_chunk(step);
      meeting.backward_received = received(key(PipelineStepKind::receive_backward, chunk, microbatch));
      meeting.sends_backward = listed_.count(key(PipelineStepKind::send_backward, chunk, microbatch)) == 0;
    }
    for (const Position position : waits_) meeting.waits.push_back(distance(position));
    if (behind_communication_) {
      for (const Position position : reached_) meeting.before.push_back(distance(position));
    }
    const auto [it, fresh] = known_.try_emplace({step, meeting});
    if (fresh) it->second = program_.make_step(step, rank_, meeting);
    const Step& made = it->second;
    const Position begin = main_.repeat(made.block);
    mark(next, begin, made.layers_plus_one);
    reached_.clear();
    if (forward) reached_.push_back(begin + made.forward);
    if (next.kind != PipelineStepKind::forward) reached_.push_back(begin + made.backward);
    end_.computed = reached_.back();
    computed_ = reached_;
    end_.aside.add(made.aside, begin);
    end_.updates.add(made.updates, begin);
    waits_.clear();
    for (std::uint32_t i = 0; i < (program_.transfers_.overlap ? 0 : made.sends); ++i)
      wait({main_.size() - 1 - i});
    if (!meeting.sends_forward)
      results_[key(PipelineStepKind::send_forward, next.chunk, next.microbatch)] = begin + made.forward;
    if (!meeting.sends_backward)
      results_[key(PipelineStepKind::send_backward, backward_chunk(step), microbatch)] =
          begin + made.backward;
    return made.sends;
  }

  void communicate(const PipelineStep& next) {
    const Key what = key(next.kind, next.chunk, next.microbatch);
    const Position from = main_.size();
    if (begun_.count(what) == 0) begin(next, what);
    if (is_message(next.kind)) mark(next, from);
    if (next.waits && begun_.count(what) > 0) wait(begun_.at(what));
  }
  // Starts a communicating step. It records nothing in begun_ where there is nothing to reduce.
  void begin(const PipelineStep& next, const Key& what) {
    const bool forward = is_forward(next);
    const StageStep step = message(next);
    if (!is_message(next.kind)) {
      const StageComputation& computation = program_.computation_;
      const OperationsAside last = next.kind == PipelineStepKind::reduce
                                       ? computation.reduce(main_, stage_, next.chunk, reached_)
                                       : computation.update(main_, stage_, next.chunk, reached_);
      if (last.empty()) return;
      last.append_to(begun_[what]);
      end_.aside.add(last, 0);
    } else if (const auto result = results_.find(what); result != results_.end()) {
      std::vector<Position> after = reached_;
      if (std::find(after.begin(), after.end(), result->second) == after.end())
        after.push_back(result->second);
      begun_[what] = {main_.size()};
      program_.send(main_, step, rank_, forward, after);
    } else {
      begun_[what] = {program_.post(main_, step, forward, reached_)};
    }
  }
  // Notes what the operations from `begin` on work for.
  void mark(const PipelineStep& step, Position begin, std::uint32_t layers_plus_one = 0) {
    if (begin == main_.size()) return;
    const bool paired = step.kind == PipelineStepKind::overlapped;
    end_.marks.push_back({begin,
                          main_.size(),
                          {step.microbatch, step.chunk, paired, paired ? step.backward_microbatch : 0,
                           paired ? step.backward_chunk : 0},
                          layers_plus_one});
  }
  static bool is_forward(const PipelineStep& message) {
    return message.kind == PipelineStepKind::send_forward ||
           message.kind == PipelineStepKind::receive_forward;
  }
  // Returns the computation that produces a message, or uses it.
  StageStep message(const PipelineStep& of) const {
    return {is_forward(of) ? PipelineStepKind::forward : PipelineStepKind::input_backward, stage_, of.chunk};
  }
  void wait(const std::vector<Position>& positions) {
    waits_.insert(waits_.end(), positions.begin(), positions.end());
    reached_.insert(reached_.end(), positions.begin(), positions.end());
  }

  const PipelineProgram& program_;
  BlockBuilder& main_;
  Rank rank_;
  std::uint32_t stage_;
  const std::vector<PipelineStep>& steps_;
  // receives_in_order(), where messages are ordered; else empty
  std::vector<std::vector<PipelineStep>> receives_;
  std::set<Key> listed_;
  std::map<std::pair<StageStep, Meeting>, Step> known_;
  std::map<Key, std::vector<Position>> begun_;  // by step that communicates: its last operations
  std::map<Key, Position> results_;             // by send step: the operation that produces its data
  // The operations that are done when the stage reaches its next step: its last computation, and what it
  // waits for.
  std::vector<Position> reached_, waits_;
  std::vector<Position> computed_;     // results of the last computation
  bool behind_communication_ = false;  // the step before communicates
  End end_;
};

PipelineProgram::End PipelineProgram::append(BlockBuilder& main, std::uint32_t stage,
                                             std::uint32_t rank_class) const {
  return StageProgress(*this, main, {stage, rank_class}).run();
}

PipelineProgram::Step PipelineProgram::make_step(const StageStep& step, Rank rank,
                                                 const Meeting& meeting) const {
  BlockBuilder block(builder_, step.kind == PipelineStepKind::forward           ? "forward"
                               : step.kind == PipelineStepKind::overlapped      ? "forward_and_backward"
                               : step.kind == PipelineStepKind::weight_backward ? "weights"
                                                                                : "backward");
  StageComputation::Inputs inputs;
  const bool forward = computes_forward(step.kind);
  if (forward) inputs.forward = receive(block, step, rank, true, meeting.forward_received);
  if (sends_backward(step.kind))
    inputs.backward = receive(block, step, rank, false, meeting.backward_received);
  for (const std::uint32_t distance : meeting.waits) {
    if (forward) inputs.forward.push_back(BlockBuilder::kBefore - distance);
    if (step.kind != PipelineStepKind::forward) inputs.backward.push_back(BlockBuilder::kBefore - distance);
  }
  if (!meeting.before.empty()) {
    inputs.before.clear();
    for (const std::uint32_t distance : meeting.before)
      inputs.before.push_back(BlockBuilder::kBefore - distance);
  }
  auto [forward_done, backward_done, aside, updates, layers] = computation_.append(block, step, inputs);
  Step made;
  made.layers_plus_one = add_layers(builder_.program(), std::move(layers));
  made.aside = aside;
  made.updates = updates;
  made.forward = forward_done;
  made.backward = backward_done;
  if (forward && meeting.sends_forward) made.sends += send(block, step, rank, true, {forward_done});
  if (sends_backward(step.kind) && meeting.sends_backward)
    made.sends += send(block, step, rank, false, {backward_done}, made.sends > 0);
  made.block = block.finish();
  return made;
}

// Returns whether a transfer takes place, and fills it in. A forward comes from the part before and goes to
// the next part; a backward goes the other way. Nothing is sent where both parts are on one stage.
bool PipelineProgram::has_neighbour(const StageStep& step, bool forward, bool source,
                                    Transfer& transfer) const {
  const auto [route, part] = plan_.placement.held(step.stage, forward ? step.chunk : backward_chunk(step));
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
  const std::uint32_t chunk = forward ? step.chunk : backward_chunk(step), number = line(forward, chunk);
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
