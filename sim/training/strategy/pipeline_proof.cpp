#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "sim/training/strategy/pipeline_computations.h"

namespace netsim {
namespace {

using Spot = PipelinePlacement::Spot;

// Events are the computations of chunks, their messages, and steps that wait for the messages.
constexpr std::uint32_t kHalves = 3, kMessages = 4, kEvents = kHalves + 2 * kMessages;

class Proof {
 public:
  explicit Proof(const ScheduledPipeline& plan)
      : plan_(plan),
        m_(plan.shape.microbatches),
        communicates_(plan.communicates()),
        at_(plan.placement.stages(), 0) {
    for (std::uint32_t stage = 0; stage < stages(); ++stage) {
      index_.emplace_back(
          std::size_t{plan.placement.chunks(stage)} * m_ * (communicates_ ? kEvents : kHalves), kNever);
      reductions_.emplace_back(plan.placement.chunks(stage));
    }
  }

  PipelineProof run() {
    PipelineProof proof;
    proof.refusal = refusal();
    if (proof.refusal.empty()) {
      refused_.reset();
      proof.rendezvous = play(true);
      refused_.reset();
    }
    if (proof.refusal.empty() && !unlike(true).empty()) {
      proof.one_order = false;
      proof.refusal = unlike(false);
    }
    proof.refused = refused_;
    if (proof.refusal.empty()) {
      proof.refused.reset();
      for (std::uint32_t stage = 0; stage < stages(); ++stage) proof.in_flight.push_back(in_flight(stage));
    }
    return proof;
  }

 private:
  static constexpr std::uint32_t kNever = UINT32_MAX;
  // Holds two indices of the stage's list: the step that begins a reduction, and a step that waits for it.
  struct Reduction {
    std::uint32_t begun = kNever, waited = kNever;
  };

  std::string refusal() {
    for (std::uint32_t stage = 0; stage < stages(); ++stage) {
      if (std::string why = list_steps(stage); !why.empty()) return why;
    }
    if (communicates_) {
      for (std::uint32_t stage = 0; stage < stages(); ++stage) {
        if (std::string why = place_communication(stage); !why.empty()) return why;
      }
    }
    return play(false);
  }

  std::uint32_t stages() const { return plan_.placement.stages(); }
  std::size_t slot(std::uint32_t chunk, std::uint32_t microbatch) const {
    return (std::size_t{chunk} * m_ + microbatch) * (communicates_ ? kEvents : kHalves);
  }
  // Returns the step of a stage that does a computation.
  std::uint32_t& index(std::uint32_t stage, const Computed& what) {
    return index_[stage][slot(what.chunk, what.microbatch) + static_cast<std::size_t>(what.half)];
  }
  // Returns the step that begins a message, or, with `waited`, the step that only waits for it. Must be
  // called only where some step communicates.
  std::uint32_t& message(std::uint32_t stage, PipelineStepKind kind, std::uint32_t chunk,
                         std::uint32_t microbatch, bool waited = false) {
    const std::size_t number =
        static_cast<std::size_t>(kind) - static_cast<std::size_t>(PipelineStepKind::send_forward);
    return index_[stage][slot(chunk, microbatch) + kHalves + (waited ? kMessages : 0) + number];
  }
  // Returns the step that begins the message of a computation's result (`sent`) or of its input; kNever: no
  // step does.
  std::uint32_t listed(std::uint32_t stage, const Computed& what, bool sent) {
    if (!communicates_) return kNever;
    return message(stage, message_of(what.half, sent), what.chunk, what.microbatch);
  }
  // Names a step for a refusal. Stores the stage as the one that the refusal refers to.
  std::string name(std::uint32_t stage, std::uint32_t i) {
    refused_ = stage;
    return "step " + std::to_string(i) + " of stage " + std::to_string(stage) + ", " +
           to_text(plan_.steps[stage][i]);
  }

  // ---- Each computation and message occurs once

  bool is_here(std::uint32_t stage, std::uint32_t chunk, std::uint32_t microbatch) const {
    return microbatch < m_ && chunk < plan_.placement.chunks(stage) &&
           plan_.placement.route_of(microbatch, m_) == plan_.placement.held(stage, chunk).route;
  }

  std::string list_steps(std::uint32_t stage) {
    const auto& steps = plan_.steps[stage];
    for (std::uint32_t i = 0; i < steps.size(); ++i) {
      if (is_communication(steps[i].kind)) {
        if (std::string why = list_communication(stage, i); !why.empty()) return why;
        continue;
      }
      for (const Computed& what : halves_of(steps[i])) {
        if (!is_here(stage, what.chunk, what.microbatch))
          return name(stage, i) + ": there is no such chunk and microbatch here";
        if (index(stage, what) != kNever) return name(stage, i) + ", comes twice";
        index(stage, what) = i;
      }
    }
    return missing(stage);
  }
  std::string missing(std::uint32_t stage) {
    for (std::uint32_t chunk = 0; chunk < plan_.placement.chunks(stage); ++chunk) {
      for (std::uint32_t microbatch = 0; microbatch < m_; ++microbatch) {
        if (!is_here(stage, chunk, microbatch)) continue;
        for (const Half half : {Half::forward, Half::input, Half::weights}) {
          if (half != Half::forward && !plan_.trains) continue;
          if (index(stage, {half, chunk, microbatch}) != kNever) continue;
          refused_ = stage;
          return "stage " + std::to_string(stage) + " computes no " +
                 (half == Half::forward ? "forward"
                  : half == Half::input ? "backward"
                                        : "gradients of weights") +
                 " of microbatch " + std::to_string(microbatch) + " in chunk " + std::to_string(chunk);
        }
      }
    }
    return {};
  }

  // ---- Order of communication

  std::string list_communication(std::uint32_t stage, std::uint32_t i) {
    const PipelineStep& step = plan_.steps[stage][i];
    if (step.kind == PipelineStepKind::reduce) {
      if (step.chunk >= plan_.placement.chunks(stage))
        return name(stage, i) + ": there is no such chunk here";
      Reduction& reduction = reductions_[stage][step.chunk];
      return note(stage, i, reduction.begun, reduction.waited);
    }
    if (step.kind == PipelineStepKind::update) return list_update(stage, i);
    if (!is_here(stage, step.chunk, step.microbatch))
      return name(stage, i) + ": there is no such chunk and microbatch here";
    const auto other = neighbour(stage, end_of_message(step), !sends_message(step.kind));
    if (!other || other->stage == stage) {
      return name(stage, i) + ": there is no such message, " +
             (other ? "the next part of the model is on the same stage"
                    : "the way of the microbatch ends here");
    }
    return note(stage, i, message(stage, step.kind, step.chunk, step.microbatch),
                message(stage, step.kind, step.chunk, step.microbatch, true));
  }
  std::string list_update(std::uint32_t stage, std::uint32_t i) {
    const PipelineStep& step = plan_.steps[stage][i];
    if (plan_.placement.routes() > 1)
      return name(stage, i) + ": other stages have copies of the chunk, and updates of their own";
    if (!is_here(stage, step.chunk, step.microbatch))
      return name(stage, i) + ": there is no such chunk and microbatch here";
    std::uint32_t& next = updated_[{stage, step.chunk}];
    for (; next <= step.microbatch; ++next) {
      const std::uint32_t last = index(stage, {Half::weights, step.chunk, next});
      if (last > i)
        return name(stage, i) + ", comes before the gradients of microbatch " + std::to_string(next);
    }
    Reduction& update = updates_[{stage, step.chunk, step.microbatch}];
    return note(stage, i, update.begun, update.waited);
  }
  std::string note(std::uint32_t stage, std::uint32_t i, std::uint32_t& begun, std::uint32_t& waited) {
    const bool waits = plan_.steps[stage][i].waits, again = begun != kNever;
    if (waited != kNever || (again && !waits)) return name(stage, i) + ", comes twice";
    if (!again) begun = i;
    if (waits) waited = i;
    return {};
  }

  // Checks that messages and reductions come after the steps that produce their data, and receives before the
  // steps that use them.
  std::string place_communication(std::uint32_t stage) {
    const auto& steps = plan_.steps[stage];
    for (std::uint32_t i = 0; i < steps.size(); ++i) {
      const PipelineStep& step = steps[i];
      if (step.kind == PipelineStepKind::reduce) {
        if (std::string why = place_reduction(stage, i); !why.empty()) return why;
      }
      if (!is_message(step.kind)) continue;
      const std::uint32_t computed = index(stage, end_of_message(step));
      if (computed == kNever) return name(stage, i) + ": no step computes a backward";
      if (sends_message(step.kind) && i < computed)
        return name(stage, i) + ", comes before step " + std::to_string(computed) + ", " +
               to_text(steps[computed]) + ", which computes what it sends";
      if (!sends_message(step.kind) && i > computed)
        return name(stage, i) + ", comes behind step " + std::to_string(computed) + ", " +
               to_text(steps[computed]) + ", which uses what it receives";
    }
    return {};
  }
  std::string place_reduction(std::uint32_t stage, std::uint32_t i) {
    const PipelinePlacement& placement = plan_.placement;
    const std::uint32_t chunk = plan_.steps[stage][i].chunk;
    if (!plan_.trains) return name(stage, i) + ": no step computes gradients";
    for (std::uint32_t microbatch = 0; microbatch < m_; ++microbatch) {
      if (!is_here(stage, chunk, microbatch)) continue;
      const std::uint32_t last = index(stage, {Half::weights, chunk, microbatch});
      if (last > i)
        return name(stage, i) + ", comes before step " + std::to_string(last) + ", " +
               to_text(plan_.steps[stage][last]) + ", which adds to the gradients of the chunk";
    }
    const std::uint32_t part = placement.held(stage, chunk).part;
    for (std::uint32_t route = 0; route < placement.routes(); ++route) {
      const Spot& copy = placement.at(route, part);
      if (copy.stage == stage && copy.chunk != chunk)
        return name(stage, i) + ": the stage has two copies of the chunk, " + std::to_string(chunk) +
               " and " + std::to_string(copy.chunk);
      if (reductions_[copy.stage][copy.chunk].begun != kNever) continue;
      return name(stage, i) + ": stage " + std::to_string(copy.stage) +
             " has a copy of the chunk, its chunk " + std::to_string(copy.chunk) +
             ", and no step that reduces its gradients";
    }
    return {};
  }

  // ---- No step waits forever

  // Returns the chunk that a computation's input comes from, or that its output goes to; nothing at the ends
  // of the model.
  std::optional<Spot> neighbour(std::uint32_t stage, const Computed& what, bool source) const {
    return neighbour_of(plan_, stage, what, source);
  }
  bool done(std::uint32_t stage, const Computed& what) { return index(stage, what) < at_[stage]; }
  // Returns whether the result of a computation has been sent; on the same stage, whether it is computed.
  bool is_sent(std::uint32_t stage, const Computed& what) {
    const std::uint32_t step = listed(stage, what, true);
    return step == kNever ? done(stage, what) : at_[stage] >= step;
  }
  // Returns whether the stage has reached the receive of a computation's input. A receive without a step of
  // its own is at the step that uses it; if it is posted ahead, at any time.
  bool is_posted(std::uint32_t stage, const Computed& what) {
    const std::uint32_t step = listed(stage, what, false);
    if (step != kNever) return at_[stage] >= step;
    return !rendezvous_ || at_[stage] >= index(stage, what);
  }
  bool has_input(std::uint32_t stage, const PipelineStep& step, std::uint32_t i) {
    for (const Computed& what : halves_of(step)) {
      const auto from = neighbour(stage, what, true);
      if (from && !is_sent(from->stage, {what.half, from->chunk, what.microbatch})) return false;
      // The stage's own results must be computed before this step, or in it.
      if (what.half == Half::input && index(stage, {Half::forward, what.chunk, what.microbatch}) >= i)
        return false;
      if (what.half == Half::weights && index(stage, {Half::input, what.chunk, what.microbatch}) > i)
        return false;
    }
    return true;
  }
  // Returns whether the receivers of the step before have reached the steps that use its messages.
  bool sent(std::uint32_t stage, std::uint32_t i) {
    if (!rendezvous_ || i == 0) return true;
    for (const Computed& what : halves_of(plan_.steps[stage][i - 1])) {
      const auto to = neighbour(stage, what, false);
      if (!to || to->stage == stage || listed(stage, what, true) != kNever) continue;
      if (!is_posted(to->stage, {what.half, to->chunk, what.microbatch})) return false;
    }
    return true;
  }
  // Returns whether a communicating step lets the stage go on.
  bool may_end(std::uint32_t stage, const PipelineStep& step) {
    // An update needs no other stage, and has begun before a step that waits for it.
    if (!step.waits || step.kind == PipelineStepKind::update) return true;
    if (step.kind == PipelineStepKind::reduce) {
      const auto end = reduced_in_[stage].begin() + reduced_[stage];
      return std::find(reduced_in_[stage].begin(), end, step.chunk) != end;
    }
    const Computed what = end_of_message(step);
    const auto other = neighbour(stage, what, !sends_message(step.kind));
    const Computed there{what.half, other->chunk, what.microbatch};
    return sends_message(step.kind) ? is_posted(other->stage, there) : is_sent(other->stage, there);
  }
  void wake(std::uint32_t stage, const PipelineStep& step, bool source) {
    for (const Computed& what : halves_of(step)) {
      if (const auto other = neighbour(stage, what, source)) awake_.push_back(other->stage);
    }
  }
  // Wakes the stages that may wait for a stage to reach a step that communicates.
  void wake_others(std::uint32_t stage, std::uint32_t i) {
    if (!communicates_ || i >= plan_.steps[stage].size()) return;
    const PipelineStep& step = plan_.steps[stage][i];
    if (is_message(step.kind))
      awake_.push_back(neighbour(stage, end_of_message(step), !sends_message(step.kind))->stage);
  }

  std::string play(bool rendezvous) {
    rendezvous_ = rendezvous;
    at_.assign(stages(), 0);
    reduced_.assign(stages(), 0);
    reduced_in_.assign(stages(), {});
    for (std::uint32_t stage = 0; stage < stages(); ++stage) {
      if (communicates_) line_up_reductions(stage);
      awake_.push_back(stage);
    }
    while (!awake_.empty()) {
      const std::uint32_t stage = awake_.front();
      awake_.pop_front();
      advance(stage);
    }
    for (std::uint32_t stage = 0; stage < stages(); ++stage) {
      const std::uint32_t i = at_[stage];
      if (i < plan_.steps[stage].size()) return name(stage, i) + ", waits forever";
    }
    for (std::uint32_t stage = 0; stage < stages(); ++stage) {
      if (reduced_[stage] == reduced_in_[stage].size()) continue;
      return name(stage, reductions_[stage][reduced_in_[stage][reduced_[stage]]].begun) +
             ": the stages that have copies of the chunk reduce their gradients in another order, and wait "
             "forever";
    }
    return {};
  }
  void line_up_reductions(std::uint32_t stage) {
    for (const PipelineStep& step : plan_.steps[stage]) {
      std::vector<std::uint32_t>& order = reduced_in_[stage];
      if (step.kind == PipelineStepKind::reduce &&
          std::find(order.begin(), order.end(), step.chunk) == order.end())
        order.push_back(step.chunk);
    }
  }
  void advance(std::uint32_t stage) {
    const auto& steps = plan_.steps[stage];
    reduce(stage);
    for (std::uint32_t& i = at_[stage];
         i < steps.size() && sent(stage, i) &&
         (is_communication(steps[i].kind) ? may_end(stage, steps[i]) : has_input(stage, steps[i], i));) {
      wake(stage, steps[i], false);
      ++i;
      if (rendezvous_ && i < steps.size()) wake(stage, steps[i], true);
      wake_others(stage, i);
      reduce(stage);
    }
  }
  // Runs all reductions that are the stage's next one and the next one of all their members.
  void reduce(std::uint32_t stage) {
    while (reduced_[stage] < reduced_in_[stage].size()) {
      const std::uint32_t part = plan_.placement.held(stage, reduced_in_[stage][reduced_[stage]]).part;
      const std::vector<std::uint32_t> members = plan_.placement.holders(part);
      if (!std::all_of(members.begin(), members.end(),
                       [&](std::uint32_t member) { return reduces_next(member, part); }))
        return;
      for (const std::uint32_t member : members) {
        ++reduced_[member];
        if (member != stage) awake_.push_back(member);
      }
    }
  }
  bool reduces_next(std::uint32_t stage, std::uint32_t part) const {
    if (reduced_[stage] == reduced_in_[stage].size()) return false;
    const std::uint32_t chunk = reduced_in_[stage][reduced_[stage]];
    return plan_.placement.held(stage, chunk).part == part && at_[stage] >= reductions_[stage][chunk].begun;
  }

  // ---- Messages

  // Key: the messages of a direction as one end sees them. It has the two stages and, unless all chunks share
  // one order, the receiver's chunk.
  using Key = std::tuple<bool, std::uint32_t, std::uint32_t, std::uint32_t>;
  struct Message {
    std::uint32_t chunk, microbatch, step;  // receiver's chunk; `step` sends or receives the message
  };
  using Sequences = std::map<Key, std::vector<Message>>;

  // Describes a message that is not received in the order in which it is sent; "" if there is none.
  std::string unlike(bool shared) {
    const Sequences sent = sequences(shared, true), received = sequences(shared, false);
    for (const auto& [key, messages] : sent) {
      const std::vector<Message>& others = received.at(key);
      for (std::size_t i = 0; i < messages.size(); ++i) {
        const Message &one = messages[i], &other = others[i];
        if (one.chunk == other.chunk && one.microbatch == other.microbatch) continue;
        const std::string here = name(std::get<1>(key), one.step);
        return "messages between two chunks are not used in the order in which they are sent: " + here +
               ", sends microbatch " + std::to_string(one.microbatch) + " where " +
               name(std::get<2>(key), other.step) + ", takes microbatch " + std::to_string(other.microbatch);
      }
    }
    return {};
  }
  Sequences sequences(bool shared, bool sender) {
    Sequences all;
    const auto add = [&](std::uint32_t stage, std::uint32_t i, const Computed& what) {
      const auto other = neighbour(stage, what, !sender);
      if (!other || other->stage == stage) return;
      const std::uint32_t chunk = sender ? other->chunk : what.chunk;
      const Key key{what.half == Half::forward, sender ? stage : other->stage, sender ? other->stage : stage,
                    shared ? 0 : chunk};
      all[key].push_back({chunk, what.microbatch, i});
    };
    for (std::uint32_t stage = 0; stage < stages(); ++stage) {
      const auto& steps = plan_.steps[stage];
      for (std::uint32_t i = 0; i < steps.size(); ++i) {
        for (const Computed& what : halves_of(steps[i])) {
          if (what.half != Half::weights && listed(stage, what, sender) == kNever) add(stage, i, what);
        }
        if (!is_message(steps[i].kind) || sends_message(steps[i].kind) != sender) continue;
        const Computed what = end_of_message(steps[i]);
        if (listed(stage, what, sender) == i) add(stage, i, what);
      }
    }
    return all;
  }

  // ---- Memory

  std::uint32_t in_flight(std::uint32_t stage) const {
    if (!plan_.trains) return 1;
    std::uint32_t now = 0, most = 0;
    for (const PipelineStep& step : plan_.steps[stage]) {
      for (const Computed& what : halves_of(step)) {
        if (what.half == Half::forward) most = std::max(most, ++now);
        if (what.half == Half::weights) --now;
      }
    }
    return most;
  }

  const ScheduledPipeline& plan_;
  bool rendezvous_ = false;
  std::uint32_t m_;
  bool communicates_;                               // some step communicates
  std::optional<std::uint32_t> refused_;            // PipelineProof::refused
  std::vector<std::uint32_t> at_;                   // by stage: number of steps that are done
  std::vector<std::vector<std::uint32_t>> index_;   // step by stage, chunk, microbatch and event
  std::vector<std::vector<Reduction>> reductions_;  // by stage and chunk
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Reduction> updates_;
  // By stage and chunk: number of microbatches whose gradients the updates listed so far apply.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> updated_;
  std::vector<std::vector<std::uint32_t>> reduced_in_;  // by stage: the chunks that steps reduce, in order
  std::vector<std::uint32_t> reduced_;                  // by stage: how many of these are reduced
  std::deque<std::uint32_t> awake_;
};

}  // namespace

PipelineProof prove_pipeline(const ScheduledPipeline& plan) { return Proof(plan).run(); }

}  // namespace netsim
