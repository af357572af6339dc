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
      const std::uint32_t chunk = step.chunk_of_backward();
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
      results_[key(PipelineStepKind::send_backward, step.chunk_of_backward(), microbatch)] =
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

}  // namespace netsim
