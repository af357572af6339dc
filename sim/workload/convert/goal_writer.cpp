// GOAL: makes a schedule in the notation of LogGOPSim (goal_schedule.h) of a workload.
//
// A computation is a `calc`. Computations that do not wait for each other run on different cpus, because
// calcs of one cpu run one after the other. A collective becomes messages (message_steps.h). A thread block
// goes on when a message was handed over, so what follows a send waits for the send's begin (`irequires`).
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/collectives/plan.h"
#include "sim/collectives/programs/named_plan.h"
#include "sim/core/errors.h"
#include "sim/workload/convert/convert.h"
#include "sim/workload/convert/listed_program.h"
#include "sim/workload/convert/listed_rank.h"

namespace netsim {
namespace {

// The last cpu counts the time of earliest starts.
constexpr std::uint32_t kMostCpus = 255, kClockCpu = 255;

// GoalWait: an operation of the rank that must have ended, or begun.
struct GoalWait {
  std::uint32_t op = 0;
  bool begun = false;
  auto operator<=>(const GoalWait&) const = default;
};
using GoalWaits = std::vector<GoalWait>;

void add_waits(GoalWaits& waits, const GoalWaits& more) {
  waits.insert(waits.end(), more.begin(), more.end());
}
void sort_waits(GoalWaits& waits) {
  std::sort(waits.begin(), waits.end());
  waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
}

struct GoalNotes {
  std::uint64_t rounded = 0;   // computations that are no whole nanoseconds
  std::uint64_t shared = 0;    // computations that wait for another one, because no cpu is left
  std::uint64_t untimed = 0;   // computations without a time
  std::uint64_t beside = 0;    // computations of a GPU that may run beside others of it
  std::uint64_t expanded = 0;  // calls of ranks that became messages
};

// GoalPlans: the plans of collectives by ConversionRules::algorithms, made once.
class GoalPlans {
 public:
  explicit GoalPlans(const ConversionRules& rules) : rules_(rules) {}

  // Returns the steps of a member.
  std::vector<MessageStep> steps(const CommunicationRequest& request) {
    if (rules_.steps) return rules_.steps(request);
    return message_steps(
        plan(request.kind, static_cast<std::uint32_t>(request.members->size()), request.root), request);
  }

 private:
  const Plan& plan(CollectiveKind kind, std::uint32_t ranks, std::uint32_t root) {
    std::unique_ptr<Plan>& known = plans_[{kind, ranks, root}];
    if (known) return *known;
    const auto chosen = rules_.algorithms.find(to_string(kind));
    const CollectiveKind usual = kind == CollectiveKind::barrier ? CollectiveKind::all_reduce : kind;
    PlanName name;
    name.text = chosen != rules_.algorithms.end() ? chosen->second : info_of(usual).default_algorithm;
    name.kind = to_string(usual);
    name.ranks = ranks;
    if (has_root(kind)) name.root = root;
    known = plan_named(name);
    return *known;
  }

  const ConversionRules& rules_;
  std::map<std::tuple<CollectiveKind, std::uint32_t, std::uint32_t>, std::unique_ptr<Plan>> plans_;
};

// GoalTags: gives each message of a pair of ranks a tag of its own, the same at both ends.
class GoalTags {
 public:
  // Key: a message as both ends know it. `call` is the match key of the communication, without the ranks of a
  // message. `number` counts the messages of a connection in the call.
  struct Key {
    RankId sender = 0, receiver = 0;
    bool collective = false;
    std::uint64_t call = 0, connection = 0, number = 0;
    auto operator<=>(const Key&) const = default;
  };
  std::uint32_t tag(const Key& key) {
    const auto [known, is_new] = tags_.try_emplace(key, 0);
    if (is_new) known->second = next_[{key.sender, key.receiver}]++;
    const std::uint32_t tag = known->second;
    if (!is_new) tags_.erase(known);
    return tag;
  }

 private:
  std::map<Key, std::uint32_t> tags_;  // of messages of which one end was written
  std::map<std::pair<RankId, RankId>, std::uint32_t> next_;
};

// GoalRankWriter: makes the operations of one rank.
class GoalRankWriter {
 public:
  GoalRankWriter(const TaskSource& source, RankId rank, GoalPlans& plans, GoalTags& tags,
                 const ConversionRules& rules, GoalNotes& notes)
      : source_(source), rank_(rank), plans_(plans), tags_(tags), rules_(rules), notes_(notes) {}

  GoalRank write() {
    const ListedRank list = list_rank(source_, rank_);
    add_clock(list);
    ends_.resize(list.tasks.size());
    calcs_.resize(list.tasks.size());
    for (std::uint32_t i = 0; i < list.tasks.size(); ++i) add(i, list.tasks[i], list.after[i]);
    return std::move(goal_);
  }

 private:
  // LastCalc: a calc that has ended when a task begins, and its cpu.
  struct LastCalc {
    std::uint32_t cpu = 0, op = 0;
  };

  std::uint32_t add_op(const GoalOp& op, const GoalWaits& waits) {
    const auto number = static_cast<std::uint32_t>(goal_.ops.size());
    goal_.ops.push_back(op);
    for (const GoalWait& wait : waits) (wait.begun ? goal_.starts : goal_.ends).emplace_back(number, wait.op);
    return number;
  }

  // Adds calcs that end at the earliest starts, one after the other.
  void add_clock(const ListedRank& list) {
    for (const Task& task : list.tasks) {
      if (task.not_before > 0) clock_[task.not_before] = 0;
    }
    std::int64_t now = 0;
    GoalWaits before;
    for (auto& [time, op] : clock_) {
      const std::int64_t at = (time + kNanosecond - 1) / kNanosecond;
      notes_.rounded += time % kNanosecond != 0 ? 1 : 0;
      op = add_op(calc_of(at - now, kClockCpu), before);
      before = {{op, false}};
      now = at;
    }
  }
  static GoalOp calc_of(std::int64_t time, std::uint32_t cpu) {
    GoalOp op;
    op.size = time;
    op.cpu = static_cast<std::uint8_t>(cpu);
    return op;
  }

  void add(std::uint32_t index, const Task& task, const std::vector<std::uint32_t>& before) {
    GoalWaits waits;
    for (const std::uint32_t one : before) add_waits(waits, ends_[one]);
    if (task.not_before > 0) waits.push_back({clock_.at(task.not_before), false});
    sort_waits(waits);
    calcs_[index] = last_calc(before);
    if (has_work(task.kind())) {
      ends_[index] = {{add_calc(index, task, waits), false}};
    } else if (is_point_to_point(task)) {
      ends_[index] = add_message(task, waits);
    } else if (task.kind() == TaskKind::collective) {
      ends_[index] = add_collective(task, waits);
    } else {
      refuse_conversion(source_, rank_, task, std::string("a task of kind ") + to_string(task.kind()));
    }
    if (ends_[index].empty()) ends_[index] = std::move(waits);
  }

  // Returns a calc before the task whose cpu has done nothing since, if there is one.
  std::optional<LastCalc> last_calc(const std::vector<std::uint32_t>& before) const {
    for (const std::uint32_t one : before) {
      const std::optional<LastCalc>& calc = calcs_[one];
      if (calc && last_of_cpu_[calc->cpu] == calc->op) return calc;
    }
    return std::nullopt;
  }

  std::uint32_t add_calc(std::uint32_t index, const Task& task, const GoalWaits& waits) {
    const std::optional<Time> time = rules_.duration(rank_, source_.works()[task.work()]);
    notes_.untimed += time ? 0 : 1;
    const Time exact = time.value_or(0);
    notes_.rounded += exact % kNanosecond != 0 ? 1 : 0;
    std::uint32_t cpu = calcs_[index] ? calcs_[index]->cpu : static_cast<std::uint32_t>(last_of_cpu_.size());
    if (cpu >= kMostCpus) {
      ++notes_.shared;
      cpu = kMostCpus - 1;
    }
    if (cpu == last_of_cpu_.size()) last_of_cpu_.push_back(0);
    if (task.kind() == TaskKind::compute) {
      notes_.beside += cpu_of_gpu_.value_or(cpu) == cpu ? 0 : 1;
      cpu_of_gpu_ = cpu_of_gpu_.value_or(cpu);
    }
    const std::uint32_t op = add_op(calc_of((exact + kNanosecond / 2) / kNanosecond, cpu), waits);
    last_of_cpu_[cpu] = op;
    calcs_[index] = LastCalc{cpu, op};
    return op;
  }

  // A message of the library runs by its steps where they are known, and is one message otherwise.
  GoalWaits add_message(const Task& task, const GoalWaits& waits) {
    const MessageTask& message = task.message();
    const bool sends = task.kind() == TaskKind::send;
    const std::uint64_t call = std::uint64_t{message.tag} << 32 | task.sequence;
    if (!message.raw && rules_.steps && message.peer != rank_) {
      CommunicationRequest request = request_of(task);
      request.kind = CollectiveKind::point_to_point;
      request.index = sends ? 0 : 1;
      const std::vector<RankId> members{sends ? rank_ : message.peer, sends ? message.peer : rank_};
      GoalWaits ends = add_steps(request, members, {.collective = false, .call = call}, waits);
      // A sender of the library waits for the acknowledgement.
      for (GoalWait& end : ends) end.begun = false;
      sort_waits(ends);
      return ends;
    }
    const GoalTags::Key key{sends ? rank_ : message.peer, sends ? message.peer : rank_, false, call, 0, 0};
    return {{add_transfer(sends, task.bytes(), key, waits), false}};
  }
  std::uint32_t add_transfer(bool sends, Bytes bytes, const GoalTags::Key& key, const GoalWaits& waits) {
    GoalOp op;
    op.kind = sends ? GoalOp::Kind::send : GoalOp::Kind::receive;
    op.peer = sends ? key.receiver : key.sender;
    op.tag = tags_.tag(key);
    op.size = bytes;
    return add_op(op, waits);
  }

  // Returns the last operations of its thread blocks.
  GoalWaits add_collective(const Task& task, const GoalWaits& waits) {
    const CollectiveTask& call = task.collective();
    if (call.pause != 0)
      refuse_conversion(source_, rank_, task, "a collective that begins at all members at once");
    if (!rules_.steps && call.counts != nullptr)
      refuse_conversion(source_, rank_, task, "a collective with counts (--config says how it runs)");
    if (!rules_.steps && call.algorithm != nullptr)
      refuse_conversion(source_, rank_, task,
                        "a collective with its own algorithm (--config says how it runs)");
    const std::vector<RankId>& members = source_.group(call.group);
    if (members.size() < 2) return {};
    CommunicationRequest request = request_of(task);
    request.kind = call.collective;
    request.root = call.root;
    request.counts = call.counts;
    request.grouped = call.grouped;
    request.algorithm = call.algorithm;
    request.index =
        static_cast<std::uint32_t>(std::find(members.begin(), members.end(), rank_) - members.begin());
    const std::uint64_t number = std::uint64_t{call.group} << 32 | task.sequence;
    return add_steps(request, members, {.collective = true, .call = number}, waits);
  }
  static CommunicationRequest request_of(const Task& task) {
    CommunicationRequest request;
    request.bytes = task.bytes();
    request.traits = task.payload()->traits;
    return request;
  }

  // Adds the messages of the rank in a communication. Rank r is on GPU r. `key` has the call.
  GoalWaits add_steps(CommunicationRequest request, const std::vector<RankId>& members, GoalTags::Key key,
                      const GoalWaits& waits) {
    std::vector<GpuId> gpus;
    gpus.reserve(members.size());
    for (const RankId member : members) gpus.emplace_back(member + 0U);
    request.members = &gpus;
    ++notes_.expanded;
    std::map<std::uint32_t, GoalWaits> last;  // by thread block: what its next step waits for
    std::vector<GoalWaits> ended;             // by step: what one that waits for it waits for
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> sent, received;
    for (const MessageStep& step : plans_.steps(request)) {
      GoalWaits before = last.try_emplace(step.block, waits).first->second;
      if (step.after != kNoIndex) add_waits(before, ended[step.after]);
      sort_waits(before);
      const auto transfer = [&](bool sends, const MessageStep::End& end, auto& numbers) {
        const RankId peer = members[end.member];
        key.sender = sends ? rank_ : peer;
        key.receiver = sends ? peer : rank_;
        key.connection = end.connection;
        key.number = numbers[{end.member, end.connection}]++;
        before = {{add_transfer(sends, end.bytes, key, before), sends}};
      };
      if (step.from.member != kNoIndex) transfer(false, step.from, received);
      if (step.to.member != kNoIndex) transfer(true, step.to, sent);
      last[step.block] = before;
      ended.push_back(std::move(before));
    }
    GoalWaits ends;
    for (const auto& [block, block_ends] : last) add_waits(ends, block_ends);
    sort_waits(ends);
    return ends;
  }

  const TaskSource& source_;
  RankId rank_;
  GoalPlans& plans_;
  GoalTags& tags_;
  const ConversionRules& rules_;
  GoalNotes& notes_;
  GoalRank goal_;
  std::map<Time, std::uint32_t> clock_;         // by earliest start: its calc
  std::vector<GoalWaits> ends_;                 // by task: what the tasks after it wait for
  std::vector<std::optional<LastCalc>> calcs_;  // by task: a calc that has ended with it
  std::vector<std::uint32_t> last_of_cpu_;      // by cpu: its last calc
  std::optional<std::uint32_t> cpu_of_gpu_;     // the cpu of the first computation of the GPU
};

}  // namespace

GoalSchedule goal_schedule(const TaskSource& source, const ConversionRules& rules,
                           std::vector<std::string>& notes) {
  GoalPlans plans(rules);
  GoalTags tags;
  GoalNotes counts;
  GoalSchedule schedule;
  schedule.ranks.reserve(source.ranks());
  for (RankId rank = 0; rank < source.ranks(); ++rank)
    schedule.ranks.push_back(GoalRankWriter(source, rank, plans, tags, rules, counts).write());
  const auto note = [&](std::uint64_t count, const char* what) {
    if (count > 0) notes.push_back(fmt::format("{}: {}", what, count));
  };
  note(counts.expanded,
       rules.steps ? "calls of ranks that became messages, without the library's latencies and credits"
                   : "calls of ranks that became messages of the named or default algorithms (--config tells "
                     "those of a run)");
  note(counts.rounded, "times rounded to GOAL's nanoseconds");
  note(counts.shared, "computations that share GOAL's last cpu, and so run one after the other");
  note(counts.untimed, "computations without a time, which take none (--gpu names a compute model)");
  note(counts.beside,
       "computations that may run beside others of their GPU; in a run they share it, in GOAL they do not");
  return schedule;
}

}  // namespace netsim
