// The order of messages on one stream (PipelineTransfers::ordered): the receives of each stage, and the proof
// that no stage waits forever.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/training/strategy/pipeline_computations.h"

namespace netsim {
namespace {

// StageMessages: tells which messages of a stage have steps in its list, and which happen by themselves.
class StageMessages {
 public:
  StageMessages(const ScheduledPipeline& plan, std::uint32_t stage) : plan_(plan), stage_(stage) {
    for (const PipelineStep& step : plan.steps[stage]) {
      if (is_message(step.kind)) listed_.insert({step.kind, step.chunk, step.microbatch});
    }
  }
  bool is_listed(const PipelineStep& message) const {
    return listed_.count({message.kind, message.chunk, message.microbatch}) > 0;
  }
  // Returns the messages that a computation sends to other stages, or receives, without steps of the list.
  std::vector<PipelineStep> of(const PipelineStep& computation, bool sent) const {
    std::vector<PipelineStep> messages;
    for (const Computed& what : halves_of(computation)) {
      const auto other = neighbour_of(plan_, stage_, what, !sent);
      if (!other || other->stage == stage_) continue;
      const PipelineStep message{message_of(what.half, sent), what.chunk, what.microbatch};
      if (!is_listed(message)) messages.push_back(message);
    }
    return messages;
  }

 private:
  const ScheduledPipeline& plan_;
  std::uint32_t stage_;
  std::set<std::tuple<PipelineStepKind, std::uint32_t, std::uint32_t>> listed_;
};

// OrderedPlay: simulates all stages with their messages on one stream each.
class OrderedPlay {
 public:
  OrderedPlay(const ScheduledPipeline& plan, bool waits)
      : plan_(plan), waits_(waits), stages_(plan.steps.size()) {
    for (std::uint32_t stage = 0; stage < stages_.size(); ++stage) line_up(stage);
  }

  std::string run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::uint32_t stage = 0; stage < stages_.size(); ++stage) {
        while (advance(stage)) moved = true;
      }
    }
    for (std::uint32_t stage = 0; stage < stages_.size(); ++stage) {
      const Stage& one = stages_[stage];
      if (one.at == plan_.steps[stage].size() && one.ended == one.calls.size()) continue;
      const std::size_t step = std::min(one.at, plan_.steps[stage].size() - 1);
      std::string why = "messages in one ordered stream would wait for each other forever, at step " +
                        std::to_string(step) + " of stage " + std::to_string(stage) + ", " +
                        to_text(plan_.steps[stage][step]);
      if (one.ended < one.calls.size() && !one.calls[one.ended].messages.empty())
        why += ", whose stream has come to " + to_text(one.calls[one.ended].messages.front());
      return why;
    }
    return {};
  }

 private:
  using Key = std::tuple<PipelineStepKind, std::uint32_t, std::uint32_t>;  // chunk, microbatch
  struct Call {
    std::size_t behind;  // number of steps of the list that come before the call
    std::vector<PipelineStep> messages;
  };
  struct Stage {
    std::vector<Call> calls;
    std::map<Key, std::size_t> call_of;
    // By step: number of calls up to the one with its sends; 0: it sends nothing.
    std::vector<std::size_t> sent;
    std::size_t at = 0;  // number of steps done
    std::size_t launched = 0, ended = 0;
  };

  static Key key(const PipelineStep& message) { return {message.kind, message.chunk, message.microbatch}; }
  void line_up(std::uint32_t number) {
    Stage& stage = stages_[number];
    const auto& steps = plan_.steps[number];
    const StageMessages messages(plan_, number);
    const auto receives = receives_in_order(plan_, number);
    const auto add = [&](std::size_t behind, std::vector<PipelineStep> all) {
      if (all.empty()) return;
      for (const PipelineStep& message : all) stage.call_of.try_emplace(key(message), stage.calls.size());
      stage.calls.push_back({behind, std::move(all)});
    };
    add(0, receives.front());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (is_message(steps[i].kind)) {
        if (stage.call_of.count(key(steps[i])) == 0) add(i, {steps[i]});
        add(i + 1, receives[i + 1]);
      } else {
        std::vector<PipelineStep> all = messages.of(steps[i], true);
        const bool sends = !all.empty();
        all.insert(all.end(), receives[i + 1].begin(), receives[i + 1].end());
        add(i + 1, std::move(all));
        stage.sent.resize(i + 1);
        stage.sent[i] = sends ? stage.calls.size() : 0;
      }
      stage.sent.resize(i + 1);
    }
  }

  bool is_launched(std::uint32_t stage, const PipelineStep& message) const {
    return stages_[stage].call_of.at(key(message)) < stages_[stage].launched;
  }
  // Returns whether both ends of a message are launched.
  bool is_done(std::uint32_t stage, const PipelineStep& message) const {
    const Computed here = end_of_message(message);
    const auto other = neighbour_of(plan_, stage, here, !sends_message(message.kind));
    const PipelineStep there{message_of(here.half, !sends_message(message.kind)), other->chunk,
                             message.microbatch};
    return is_launched(stage, message) && is_launched(other->stage, there);
  }
  bool may_pass(std::uint32_t number) const {
    const Stage& stage = stages_[number];
    const auto& steps = plan_.steps[number];
    const PipelineStep& step = steps[stage.at];
    if (is_communication(step.kind)) return !step.waits || !is_message(step.kind) || is_done(number, step);
    if (waits_ && stage.at > 0 && stage.sent[stage.at - 1] > stage.ended) return false;
    for (const Computed& what : halves_of(step)) {
      const auto from = neighbour_of(plan_, number, what, true);
      if (!from || from->stage == number) continue;
      if (!is_done(number, {message_of(what.half, false), what.chunk, what.microbatch})) return false;
    }
    return true;
  }
  bool advance(std::uint32_t number) {
    Stage& stage = stages_[number];
    if (stage.launched == stage.ended && stage.launched < stage.calls.size() &&
        stage.calls[stage.launched].behind <= stage.at) {
      ++stage.launched;
      return true;
    }
    if (stage.ended < stage.launched) {
      const auto& messages = stage.calls[stage.ended].messages;
      if (std::all_of(messages.begin(), messages.end(),
                      [&](const PipelineStep& message) { return is_done(number, message); })) {
        ++stage.ended;
        return true;
      }
    }
    if (stage.at == plan_.steps[number].size() || !may_pass(number)) return false;
    ++stage.at;
    return true;
  }

  const ScheduledPipeline& plan_;
  bool waits_;
  std::vector<Stage> stages_;
};

}  // namespace

std::vector<std::vector<PipelineStep>> receives_in_order(const ScheduledPipeline& plan, std::uint32_t stage) {
  const std::vector<PipelineStep>& steps = plan.steps[stage];
  const StageMessages messages(plan, stage);
  std::vector<std::vector<PipelineStep>> receives(steps.size() + 1);
  // Entries after the last computation, the one before it, and the last one of either direction.
  std::size_t last = 0, before = 0, of_forward = 0, of_backward = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (is_communication(steps[i].kind)) continue;
    for (const PipelineStep& receive : messages.of(steps[i], false)) {
      const std::size_t same = receive.kind == PipelineStepKind::receive_forward ? of_forward : of_backward;
      receives[!plan.receives_ahead ? i : same > 0 ? same : before].push_back(receive);
    }
    before = last;
    last = i + 1;
    for (const Computed& what : halves_of(steps[i])) {
      if (what.half == Half::forward) of_forward = last;
      if (what.half == Half::input) of_backward = last;
    }
  }
  return receives;
}

std::string refuse_order(const ScheduledPipeline& plan, bool waits) { return OrderedPlay(plan, waits).run(); }

}  // namespace netsim
