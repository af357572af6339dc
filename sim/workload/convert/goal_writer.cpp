// GOAL: writes a workload in the notation of LogGOPSim (goal_schedule.h).
//
// A computation is a `calc`. Computations that do not wait for each other run on different cpus, because
// calcs of one cpu run one after the other. A collective becomes the messages of its algorithm, without
// limits of buffers, protocols and latencies of a library.
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

using OpList = std::vector<std::uint32_t>;  // operations of a rank, by their numbers

struct GoalNotes {
  std::uint64_t rounded = 0;  // computations that are no whole nanoseconds
  std::uint64_t shared = 0;   // computations that wait for another one, because no cpu is left
  std::uint64_t untimed = 0;  // computations without a time
};

// GoalPlans: the plans of collectives, made once.
class GoalPlans {
 public:
  explicit GoalPlans(const ConversionRules& rules) : rules_(rules) {}

  const Plan& plan(CollectiveKind kind, std::uint32_t ranks, std::uint32_t root) {
    std::unique_ptr<Plan>& known = plans_[{kind, ranks, root}];
    if (known) return *known;
    const auto chosen = rules_.algorithms.find(to_string(kind));
    const CollectiveKind usual = kind == CollectiveKind::barrier ? CollectiveKind::all_reduce : kind;
    PlanName name;
    name.text = chosen != rules_.algorithms.end() ? chosen->second : info_of(usual).default_algorithm;
    name.kind = to_string(kind);
    name.ranks = ranks;
    if (has_root(kind)) name.root = root;
    known = plan_named(name);
    if (known->aggregations() > 0)
      throw ConfigError("--algorithm: '" + name.text +
                        "' adds up in switches, and GOAL has only messages between ranks");
    return *known;
  }

 private:
  const ConversionRules& rules_;
  std::map<std::tuple<CollectiveKind, std::uint32_t, std::uint32_t>, std::unique_ptr<Plan>> plans_;
};

// GoalTags: gives each message of a pair of ranks a tag of its own, the same at both ends.
class GoalTags {
 public:
  // Key: a message as both ends know it: the call and its number in it, or the match key.
  using Key = std::tuple<RankId, RankId, std::uint64_t, std::uint64_t, std::uint64_t>;
  std::uint32_t tag(const Key& key) {
    const auto [known, is_new] = tags_.try_emplace(key, 0);
    if (is_new) known->second = next_[{std::get<0>(key), std::get<1>(key)}]++;
    const std::uint32_t tag = known->second;
    if (!is_new) tags_.erase(known);
    return tag;
  }

 private:
  std::map<Key, std::uint32_t> tags_;  // of messages of which one end was written
  std::map<std::pair<RankId, RankId>, std::uint32_t> next_;
};

// GoalRankWriter: writes the block of one rank.
class GoalRankWriter {
 public:
  GoalRankWriter(const TaskSource& source, RankId rank, GoalPlans& plans, GoalTags& tags,
                 const ConversionRules& rules, GoalNotes& notes)
      : source_(source), rank_(rank), plans_(plans), tags_(tags), rules_(rules), notes_(notes) {}

  std::string write() {
    const ListedRank list = list_rank(source_, rank_);
    add_clock(list);
    ends_.resize(list.tasks.size());
    calcs_.resize(list.tasks.size());
    for (std::uint32_t i = 0; i < list.tasks.size(); ++i) add(i, list.tasks[i], list.after[i]);
    return fmt::format("rank {} {{\n", rank_ + 0U) + ops_ + edges_ + "}\n";
  }

 private:
  // LastCalc: a calc that has ended when a task begins, and its cpu.
  struct LastCalc {
    std::uint32_t cpu = 0, op = 0;
  };

  std::uint32_t add_op(const std::string& text, const OpList& after) {
    const std::uint32_t number = count_++;
    ops_ += fmt::format("l{}: {}\n", number, text);
    for (const std::uint32_t before : after) edges_ += fmt::format("l{} requires l{}\n", number, before);
    return number;
  }

  // Adds calcs that end at the earliest starts, one after the other.
  void add_clock(const ListedRank& list) {
    for (const Task& task : list.tasks) {
      if (task.not_before > 0) clock_[task.not_before] = 0;
    }
    std::int64_t now = 0;
    OpList before;
    for (auto& [time, op] : clock_) {
      const std::int64_t at = (time + kNanosecond - 1) / kNanosecond;
      notes_.rounded += time % kNanosecond != 0 ? 1 : 0;
      op = add_op(fmt::format("calc {} cpu {}", at - now, kClockCpu), before);
      before = {op};
      now = at;
    }
  }

  void add(std::uint32_t index, const Task& task, const std::vector<std::uint32_t>& waits) {
    OpList after;
    for (const std::uint32_t before : waits)
      after.insert(after.end(), ends_[before].begin(), ends_[before].end());
    if (task.not_before > 0) after.push_back(clock_.at(task.not_before));
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    calcs_[index] = last_calc(waits);
    if (has_work(task.kind())) {
      ends_[index] = {add_calc(index, task, after)};
    } else if (is_point_to_point(task)) {
      const MessageTask& message = task.message();
      const bool sends = task.kind() == TaskKind::send;
      const GoalTags::Key key{sends ? rank_ : message.peer, sends ? message.peer : rank_, kMessages,
                              message.tag, task.sequence};
      ends_[index] = {add_message(sends, task.bytes(), message.peer, key, after)};
    } else if (task.kind() == TaskKind::collective && task.collective().counts == nullptr) {
      ends_[index] = add_collective(task, after);
    } else {
      refuse_conversion(source_, rank_, task,
                        task.kind() == TaskKind::collective
                            ? "a collective with counts"
                            : std::string("a task of kind ") + to_string(task.kind()));
    }
    if (ends_[index].empty()) ends_[index] = std::move(after);
  }

  // Returns a calc before the task whose cpu has done nothing since, if there is one.
  std::optional<LastCalc> last_calc(const std::vector<std::uint32_t>& waits) const {
    for (const std::uint32_t before : waits) {
      const std::optional<LastCalc>& calc = calcs_[before];
      if (calc && last_of_cpu_[calc->cpu] == calc->op) return calc;
    }
    return std::nullopt;
  }

  std::uint32_t add_calc(std::uint32_t index, const Task& task, const OpList& after) {
    const std::optional<Time> time = rules_.duration(source_.works()[task.work()]);
    notes_.untimed += time ? 0 : 1;
    const Time exact = time.value_or(0);
    notes_.rounded += exact % kNanosecond != 0 ? 1 : 0;
    std::uint32_t cpu = calcs_[index] ? calcs_[index]->cpu : static_cast<std::uint32_t>(last_of_cpu_.size());
    if (cpu >= kMostCpus) {
      ++notes_.shared;
      cpu = kMostCpus - 1;
    }
    if (cpu == last_of_cpu_.size()) last_of_cpu_.push_back(0);
    const std::uint32_t op =
        add_op(fmt::format("calc {} cpu {}", (exact + kNanosecond / 2) / kNanosecond, cpu), after);
    last_of_cpu_[cpu] = op;
    calcs_[index] = LastCalc{cpu, op};
    return op;
  }

  std::uint32_t add_message(bool sends, Bytes bytes, RankId peer, const GoalTags::Key& key,
                            const OpList& after) {
    return add_op(fmt::format("{} {}b {} {} tag {}", sends ? "send" : "recv", bytes, sends ? "to" : "from",
                              peer + 0U, tags_.tag(key)),
                  after);
  }

  // Adds the messages of the rank in a collective. Returns the last operations of its thread blocks.
  OpList add_collective(const Task& task, const OpList& after) {
    const CollectiveTask& call = task.collective();
    const std::vector<RankId>& members = source_.group(call.group);
    if (members.size() < 2) return {};
    const Plan& plan = plans_.plan(call.collective, static_cast<std::uint32_t>(members.size()), call.root);
    const auto own =
        static_cast<std::uint32_t>(std::find(members.begin(), members.end(), rank_) - members.begin());
    call_ = {&plan,      &members, own, static_cast<std::uint64_t>(call.group) << 32 | task.sequence,
             call.bytes, after};
    finished_.assign(plan.blocks(own), {});
    sent_.clear();
    received_.clear();
    // A step may wait for one of a later block, so the blocks advance in turns.
    for (bool moved = true; moved;) {
      moved = false;
      for (std::uint32_t block = 0; block < plan.blocks(own); ++block) moved = advance(block) || moved;
    }
    OpList last;
    for (const std::vector<OpList>& steps : finished_) {
      if (!steps.empty()) last.insert(last.end(), steps.back().begin(), steps.back().end());
    }
    std::sort(last.begin(), last.end());
    last.erase(std::unique(last.begin(), last.end()), last.end());
    return last;
  }

  // Adds the steps of a thread block up to one that waits for a step that was not added yet.
  bool advance(std::uint32_t block) {
    std::vector<OpList>& finished = finished_[block];
    bool moved = false;
    while (finished.size() < call_.plan->steps(call_.own, block)) {
      const Step step = call_.plan->step(call_.own, block, static_cast<std::uint32_t>(finished.size()));
      OpList after = finished.empty() ? call_.after : finished.back();
      if (step.after_block != kNoIndex) {
        const std::vector<OpList>& other = finished_[step.after_block];
        if (step.after_step >= other.size()) return moved;
        std::copy(other[step.after_step].begin(), other[step.after_step].end(), std::back_inserter(after));
        std::sort(after.begin(), after.end());
        after.erase(std::unique(after.begin(), after.end()), after.end());
      }
      finished.push_back(add_step(step, block, after));
      moved = true;
    }
    return moved;
  }

  OpList add_step(const Step& step, std::uint32_t block, OpList after) {
    const Plan& plan = *call_.plan;
    const Bytes bytes = share(call_.bytes, plan.channels(), plan.channel(call_.own, block));
    if (receives(step.kind)) {
      const Bytes size = bytes_of(plan, call_.own, reads_source(step.kind) ? step.source : step.destination,
                                  step.count, bytes);
      after = {add_plan_message(false, size, step.from, block, after)};
    }
    if (sends(step.kind))
      after = {add_plan_message(true, bytes_sent(plan, call_.own, step, bytes), step.to, block, after)};
    return after;
  }

  std::uint32_t add_plan_message(bool is_send, Bytes bytes, const Partner& partner, std::uint32_t block,
                                 const OpList& after) {
    const RankId peer = (*call_.members)[partner.rank];
    const std::pair<std::uint32_t, std::uint64_t> connection{
        partner.rank,
        is_send ? std::uint64_t{block} << 32 | partner.block : std::uint64_t{partner.block} << 32 | block};
    const std::uint64_t number = (is_send ? sent_ : received_)[connection]++;
    // Calls of groups stand apart from messages by their first number.
    const GoalTags::Key key{is_send ? rank_ : peer, is_send ? peer : rank_, call_.number, connection.second,
                            number};
    return add_message(is_send, bytes, peer, key, after);
  }

  static constexpr std::uint64_t kMessages = UINT64_MAX;
  // Call: the collective that is being added.
  struct Call {
    const Plan* plan = nullptr;
    const std::vector<RankId>* members = nullptr;
    std::uint32_t own = 0;  // its rank in the group
    std::uint64_t number = 0;
    Bytes bytes = 0;
    OpList after;
  };

  const TaskSource& source_;
  RankId rank_;
  GoalPlans& plans_;
  GoalTags& tags_;
  const ConversionRules& rules_;
  GoalNotes& notes_;
  std::string ops_, edges_;
  std::uint32_t count_ = 0;
  std::map<Time, std::uint32_t> clock_;         // by earliest start: its calc
  std::vector<OpList> ends_;                    // by task: the operations that end last
  std::vector<std::optional<LastCalc>> calcs_;  // by task: a calc that has ended with it
  OpList last_of_cpu_;
  Call call_;
  std::vector<std::vector<OpList>> finished_;  // by thread block and step
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> sent_, received_;
};

}  // namespace

std::string goal_text(const TaskSource& source, const ConversionRules& rules,
                      std::vector<std::string>& notes) {
  GoalPlans plans(rules);
  GoalTags tags;
  GoalNotes counts;
  std::string text = fmt::format("num_ranks {}\n", source.ranks());
  for (RankId rank = 0; rank < source.ranks(); ++rank)
    text += GoalRankWriter(source, rank, plans, tags, rules, counts).write();
  const auto note = [&](std::uint64_t count, const char* what) {
    if (count > 0) notes.push_back(fmt::format("{}: {}", what, count));
  };
  note(counts.rounded, "times rounded to GOAL's nanoseconds");
  note(counts.shared, "computations that share GOAL's last cpu, and so run one after the other");
  note(counts.untimed, "computations without a time, which take none (--gpu names a compute model)");
  return text;
}

}  // namespace netsim
