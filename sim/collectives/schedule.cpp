#include "sim/collectives/schedule.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "sim/collectives/proof/connection_ends.h"
#include "sim/collectives/proof/proof.h"
#include "sim/collectives/proof/validity.h"
#include "sim/core/errors.h"

namespace netsim {
namespace {

using proof::BlockAt;
using proof::Blocks;

// Clock: finds when each step of an execution begins. The result does not depend on the order in which the
// execution visits the thread blocks.
class Clock final : public proof::StepListener {
 public:
  Clock(const Plan& plan, PlanSchedule& schedule)
      : blocks_(plan), connection_ends_(plan, blocks_), schedule_(schedule), ends_(blocks_.total()) {}

  void step_done(BlockAt at, std::uint32_t index, const Step& step) override {
    const std::uint32_t id = blocks_.id(at.rank, at.block);
    ScheduledStep now{begin_of(at, step), at.rank, at.block, index, step};
    if (receives(step.kind)) {
      each_awaited(id, at, step, [&](Connection&, ScheduledMessage& message) {
        now.time = std::max(now.time, message.sender.time + 1);
      });
    }
    if (sends(step.kind)) send(id, at, now);
    const std::uint32_t end = now.time + (sends(step.kind) ? 1 : 0);
    if (receives(step.kind)) {
      each_awaited(id, at, step, [&](Connection& connection, ScheduledMessage& message) {
        message.receiver = now;
        message.added = reduces(step.kind) ||
                        (step.from.aggregation != kNoIndex && connection_ends_.is_head(at, step.from));
        connection.freed.push_back(end);
      });
    }
    if (step.kind == Step::Kind::copy || step.kind == Step::Kind::reduce) schedule_.local.push_back(now);
    ends_[id].push_back(end);
  }

 private:
  // Connection: messages from one thread block to another, first in, first out.
  struct Connection {
    std::vector<std::size_t> messages;  // indices in PlanSchedule::messages
    std::vector<std::uint32_t> freed;   // for each message taken, the time at which its slot was free again
  };
  Connection& connection(std::uint32_t from, std::uint32_t to) {
    return connections_[std::uint64_t{from} << 32 | to];
  }

  std::uint32_t begin_of(BlockAt at, const Step& step) const {
    const std::vector<std::uint32_t>& before = ends_[blocks_.id(at.rank, at.block)];
    const std::uint32_t begin = before.empty() ? 0 : before.back();
    if (step.after_block == kNoIndex) return begin;
    return std::max(begin, ends_[blocks_.id(at.rank, step.after_block)][step.after_step]);
  }
  // Visits the messages that a step takes. They are several where switches add them up.
  template <class Visit>
  void each_awaited(std::uint32_t id, BlockAt at, const Step& step, Visit visit) {
    connection_ends_.each_received(id, at, step.from,
                                   [&](std::uint32_t from, std::uint32_t to, std::uint32_t) {
                                     Connection& one = connection(from, to);
                                     visit(one, schedule_.messages[one.messages[one.freed.size()]]);
                                     return true;
                                   });
  }
  void send(std::uint32_t id, BlockAt at, ScheduledStep& now) {
    const auto each = [&](auto visit) {
      connection_ends_.each_sent(id, at, now.step.to,
                                 [&](std::uint32_t from, std::uint32_t to, std::uint32_t) {
                                   visit(connection(from, to), connection_ends_.slots(to, kSlots));
                                   return true;
                                 });
    };
    each([&](const Connection& to, std::uint32_t slots) {
      const std::size_t sent = to.messages.size();
      if (sent >= slots) now.time = std::max(now.time, to.freed[sent - slots]);
    });
    each([&](Connection& to, std::uint32_t) {
      to.messages.push_back(schedule_.messages.size());
      schedule_.messages.push_back({now, {}});
      schedule_.messages.back().receiver.rank = kNoIndex;
    });
    schedule_.times = std::max(schedule_.times, now.time + 1);
  }

  Blocks blocks_;
  proof::ConnectionEnds connection_ends_;
  PlanSchedule& schedule_;
  std::vector<std::vector<std::uint32_t>> ends_;               // end time of each step, by thread block
  std::unordered_map<std::uint64_t, Connection> connections_;  // never iterated
};

auto order_of(const ScheduledStep& step) { return std::tuple(step.time, step.rank, step.block, step.index); }

}  // namespace

void refuse_many_steps(const Plan& plan, const char* what) {
  const std::uint64_t steps = proof::count_steps(plan);
  if (steps <= kMostScheduledSteps) return;
  throw InputError(std::string(to_string(plan.kind())) + " '" + plan.algorithm() + "' of " +
                   std::to_string(plan.ranks()) + " ranks has " + std::to_string(steps) + " steps; " + what +
                   " is made of at most " + std::to_string(kMostScheduledSteps));
}

PlanSchedule schedule_of(const Plan& plan) {
  PlanSchedule schedule{.algorithm = plan.algorithm(),
                        .kind = plan.kind(),
                        .ranks = plan.ranks(),
                        .chunks = plan.chunks(),
                        .in_place = plan.in_place(),
                        .messages = {},
                        .local = {},
                        .wrong = proof::check_shape(plan)};
  if (!schedule.wrong.empty()) return schedule;
  refuse_many_steps(plan, "a schedule");
  Clock clock(plan, schedule);
  schedule.wrong = prove_within(plan, kSlots, kProofBytes, &clock);
  std::sort(schedule.messages.begin(), schedule.messages.end(),
            [](const auto& a, const auto& b) { return order_of(a.sender) < order_of(b.sender); });
  std::sort(schedule.local.begin(), schedule.local.end(),
            [](const auto& a, const auto& b) { return order_of(a) < order_of(b); });
  return schedule;
}

}  // namespace netsim
