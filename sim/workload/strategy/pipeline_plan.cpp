#include "sim/workload/strategy/pipeline_plan.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "sim/core/registry.h"

namespace netsim {
namespace {

using Spot = PipelinePlacement::Spot;

// What is computed of a chunk for a microbatch: the halves of an overlapped step, and of a whole backward,
// each count.
enum class Half : std::uint8_t { forward, input, weights };
constexpr std::uint32_t kHalves = 3;

struct Computed {
  Half half;
  std::uint32_t chunk, microbatch;
};

std::vector<Computed> halves_of(const PipelineStep& step) {
  switch (step.kind) {
    case PipelineStepKind::forward:
      return {{Half::forward, step.chunk, step.microbatch}};
    case PipelineStepKind::backward:
      return {{Half::input, step.chunk, step.microbatch}, {Half::weights, step.chunk, step.microbatch}};
    case PipelineStepKind::input_backward:
      return {{Half::input, step.chunk, step.microbatch}};
    case PipelineStepKind::weight_backward:
      return {{Half::weights, step.chunk, step.microbatch}};
    case PipelineStepKind::overlapped:
      return {{Half::forward, step.chunk, step.microbatch},
              {Half::input, step.backward_chunk, step.backward_microbatch},
              {Half::weights, step.backward_chunk, step.backward_microbatch}};
  }
  return {};
}

class Proof {
 public:
  explicit Proof(const PipelinePlan& plan)
      : plan_(plan), m_(plan.shape.microbatches), at_(plan.placement.stages(), 0) {
    for (std::uint32_t stage = 0; stage < stages(); ++stage)
      index_.emplace_back(std::size_t{plan.placement.chunks(stage)} * m_ * kHalves, kNever);
  }

  PipelineProof run() {
    PipelineProof proof;
    for (std::uint32_t stage = 0; stage < stages() && proof.refusal.empty(); ++stage)
      proof.refusal = list_steps(stage);
    if (proof.refusal.empty()) proof.refusal = play(false);
    if (proof.refusal.empty()) proof.rendezvous = play(true);
    if (proof.refusal.empty() && !same_order(true)) {
      proof.one_order = false;
      if (!same_order(false))
        proof.refusal = "messages between two chunks are not used in the order in which they are sent";
    }
    if (proof.refusal.empty()) {
      for (std::uint32_t stage = 0; stage < stages(); ++stage) proof.in_flight.push_back(in_flight(stage));
    }
    return proof;
  }

 private:
  static constexpr std::uint32_t kNever = UINT32_MAX;
  std::uint32_t stages() const { return plan_.placement.stages(); }
  // The step of a stage that computes it.
  std::uint32_t& index(std::uint32_t stage, const Computed& what) {
    return index_[stage][(std::size_t{what.chunk} * m_ + what.microbatch) * kHalves +
                         static_cast<std::size_t>(what.half)];
  }
  static std::string name(std::uint32_t stage, std::uint32_t i, const PipelineStep& step) {
    return "step " + std::to_string(i) + " of stage " + std::to_string(stage) + ", " + to_text(step);
  }

  // ---- Everything once

  std::string list_steps(std::uint32_t stage) {
    const auto& steps = plan_.steps[stage];
    for (std::uint32_t i = 0; i < steps.size(); ++i) {
      for (const Computed& what : halves_of(steps[i])) {
        if (what.microbatch >= m_ || what.chunk >= plan_.placement.chunks(stage) ||
            plan_.placement.route_of(what.microbatch, m_) != plan_.placement.held(stage, what.chunk).route)
          return name(stage, i, steps[i]) + ": there is no such chunk and microbatch here";
        if (index(stage, what) != kNever) return name(stage, i, steps[i]) + ", comes twice";
        index(stage, what) = i;
      }
    }
    return missing(stage);
  }
  std::string missing(std::uint32_t stage) {
    for (std::uint32_t chunk = 0; chunk < plan_.placement.chunks(stage); ++chunk) {
      for (std::uint32_t microbatch = 0; microbatch < m_; ++microbatch) {
        if (plan_.placement.route_of(microbatch, m_) != plan_.placement.held(stage, chunk).route) continue;
        for (const Half half : {Half::forward, Half::input, Half::weights}) {
          if (half != Half::forward && !plan_.trains) continue;
          if (index(stage, {half, chunk, microbatch}) != kNever) continue;
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

  // ---- Nobody waits forever

  // The neighbour of a part that its input comes from, or its output goes to; nothing at the ends of the way.
  std::optional<Spot> neighbour(std::uint32_t stage, const Computed& what, bool source) const {
    if (what.half == Half::weights) return {};
    const auto [route, part] = plan_.placement.held(stage, what.chunk);
    const bool before = (what.half == Half::forward) == source;
    if (before ? part == 0 : part + 1 == plan_.parts()) return {};
    return plan_.placement.at(route, before ? part - 1 : part + 1);
  }
  bool done(std::uint32_t stage, const Computed& what) { return index(stage, what) < at_[stage]; }
  bool has_input(std::uint32_t stage, const PipelineStep& step, std::uint32_t i) {
    for (const Computed& what : halves_of(step)) {
      const auto from = neighbour(stage, what, true);
      if (from && !done(from->stage, {what.half, from->chunk, what.microbatch})) return false;
      // What the stage itself has computed: before it, or in this step.
      if (what.half == Half::input && index(stage, {Half::forward, what.chunk, what.microbatch}) >= i)
        return false;
      if (what.half == Half::weights && index(stage, {Half::input, what.chunk, what.microbatch}) > i)
        return false;
    }
    return true;
  }
  // Whether the receivers of what the step before sent have come to the steps that use it.
  bool sent(std::uint32_t stage, std::uint32_t i) {
    if (!rendezvous_ || i == 0) return true;
    for (const Computed& what : halves_of(plan_.steps[stage][i - 1])) {
      const auto to = neighbour(stage, what, false);
      if (!to || to->stage == stage) continue;
      if (at_[to->stage] < index(to->stage, {what.half, to->chunk, what.microbatch})) return false;
    }
    return true;
  }
  void wake(std::uint32_t stage, const PipelineStep& step, bool source) {
    for (const Computed& what : halves_of(step)) {
      if (const auto other = neighbour(stage, what, source)) awake_.push_back(other->stage);
    }
  }

  std::string play(bool rendezvous) {
    rendezvous_ = rendezvous;
    at_.assign(stages(), 0);
    for (std::uint32_t stage = 0; stage < stages(); ++stage) awake_.push_back(stage);
    while (!awake_.empty()) {
      const std::uint32_t stage = awake_.front();
      awake_.pop_front();
      advance(stage);
    }
    for (std::uint32_t stage = 0; stage < stages(); ++stage) {
      const std::uint32_t i = at_[stage];
      if (i < plan_.steps[stage].size()) return name(stage, i, plan_.steps[stage][i]) + ", waits forever";
    }
    return {};
  }
  void advance(std::uint32_t stage) {
    const auto& steps = plan_.steps[stage];
    for (std::uint32_t& i = at_[stage];
         i < steps.size() && sent(stage, i) && has_input(stage, steps[i], i);) {
      wake(stage, steps[i], false);
      ++i;
      if (rendezvous_ && i < steps.size()) wake(stage, steps[i], true);
    }
  }

  // ---- Messages

  // The messages of a direction as one end sees them: by the two stages and, unless all chunks share one
  // order, the receiver's chunk.
  using Key = std::tuple<bool, std::uint32_t, std::uint32_t, std::uint32_t>;
  using Sequences = std::map<Key, std::vector<std::uint64_t>>;

  bool same_order(bool shared) const { return sequences(shared, true) == sequences(shared, false); }
  Sequences sequences(bool shared, bool sender) const {
    Sequences all;
    for (std::uint32_t stage = 0; stage < stages(); ++stage) {
      for (const PipelineStep& step : plan_.steps[stage]) {
        for (const Computed& what : halves_of(step)) {
          const auto other = neighbour(stage, what, !sender);
          if (!other || other->stage == stage) continue;
          const std::uint32_t chunk = sender ? other->chunk : what.chunk;
          const Key key{what.half == Half::forward, sender ? stage : other->stage,
                        sender ? other->stage : stage, shared ? 0 : chunk};
          all[key].push_back(std::uint64_t{chunk} << 32 | what.microbatch);
        }
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

  const PipelinePlan& plan_;
  bool rendezvous_ = false;
  std::uint32_t m_;
  std::vector<std::uint32_t> at_;                  // by stage: the steps before it are done
  std::vector<std::vector<std::uint32_t>> index_;  // by stage, chunk, microbatch and half
  std::deque<std::uint32_t> awake_;
};

}  // namespace

namespace {

bool has_step(const PipelinePlan& plan, PipelineStepKind kind) {
  return std::any_of(plan.steps.begin(), plan.steps.end(), [kind](const std::vector<PipelineStep>& stage) {
    return std::any_of(stage.begin(), stage.end(),
                       [kind](const PipelineStep& step) { return step.kind == kind; });
  });
}

}  // namespace

bool PipelinePlan::splits_backward() const { return has_step(*this, PipelineStepKind::weight_backward); }
bool PipelinePlan::pairs() const { return has_step(*this, PipelineStepKind::overlapped); }

PipelineProof prove_pipeline(const PipelinePlan& plan) { return Proof(plan).run(); }

std::vector<std::string> notes_on_blocking(const PipelinePlan& plan) {
  const std::string waits = prove_pipeline(plan).rendezvous;
  if (waits.empty()) return {};
  return {
      "the pipeline's stages wait for their sends, which here needs receives that are posted ahead of their "
      "use: if each were posted at the step that uses it, " +
      waits};
}

PipelinePlan make_pipeline_plan(const ConfigNode& schedule, const ConfigNode& where,
                                const PipelineShape& shape) {
  const auto created = Registry<PipelineSchedule>::instance().create(
      schedule, shape.chunks > 1 ? "interleaved" : "one_f_one_b");
  const ConfigNode& place = schedule.is_null() ? where : schedule;
  if (const std::string refusal = created->refusal(shape); !refusal.empty()) place.fail(refusal);
  PipelinePlan plan{shape, created->placement(shape), {}, created->trains()};
  for (std::uint32_t stage = 0; stage < shape.stages; ++stage)
    plan.steps.push_back(created->order(shape, stage));
  if (const PipelineProof proof = prove_pipeline(plan); !proof.refusal.empty()) place.fail(proof.refusal);
  return plan;
}

}  // namespace netsim
