// goal: schedules in GOAL, the notation of LogGOPSim and ATLAHS (Hoefler et al., LogGOPSim, HPDC 2010), as
// text or as txt2bin's binary form (goal_schedule.h).
//
// A send and its receive are one flow, without the collective library. A calc runs on a thread of the rank's
// process; one of a cpu follows the other. L of LogGOPS is in the delays of links and G in their rates. o and
// g are not in the schedule: give them as calcs.
//
// `b irequires a` lets b begin when a begins. So b waits for what a itself waits for.
#include <fmt/format.h>

#include <algorithm>

#include "sim/core/errors.h"
#include "sim/core/input_set.h"
#include "sim/core/recognise.h"
#include "sim/core/registry.h"
#include "sim/workload/trace/goal_order.h"
#include "sim/workload/trace/goal_schedule.h"
#include "sim/workload/trace/trace_program.h"
#include "sim/workload/workload.h"

namespace netsim {
namespace {

struct GoalCounts {
  std::uint64_t wildcards = 0;  // receives with a source or tag of -1
  std::uint64_t resized = 0;    // receives with another size than their send
  std::uint64_t empty = 0;      // messages without bytes
  std::uint64_t nics = 0;       // messages that name another NIC than the first
};

// GoalTasks: makes the tasks of one rank.
class GoalTasks {
 public:
  GoalTasks(const GoalSchedule& schedule, const std::vector<std::vector<GoalMatch>>& matches,
            std::uint32_t rank, TraceProgram& program, GoalCounts& counts)
      : schedule_(schedule),
        matches_(matches[rank]),
        rank_(schedule.ranks[rank]),
        number_(rank),
        program_(program),
        counts_(counts) {}

  std::vector<TraceTask> make() {
    tasks_.reserve(rank_.ops.size());
    for (std::uint32_t i = 0; i < rank_.ops.size(); ++i) tasks_.push_back(task(i));
    for (const auto& [later, earlier] : rank_.ends) tasks_[later].after.push_back(earlier);
    wait_for_starts();
    return std::move(tasks_);
  }

 private:
  TraceTask task(std::uint32_t index) {
    const GoalOp& op = rank_.ops[index];
    const GoalMatch& match = matches_[index];
    TraceTask task;
    task.order = match.turn;
    task.label = goal_label(op, number_, index);
    if (op.kind == GoalOp::Kind::calc) {
      task.kind = TaskKind::host_thread;
      task.name = program_.name("calc");
      task.work = program_.fixed_work("calc", op.size * kNanosecond);
      if (match.previous != GoalMatch::kNone) task.after.push_back(match.previous);
      return task;
    }
    const bool sends = op.kind == GoalOp::Kind::send;
    task.kind = sends ? TaskKind::send : TaskKind::receive;
    task.name = program_.name(sends ? "send" : "recv");
    task.peer = RankId(match.peer);
    task.tag = match.number;
    task.raw = true;
    task.stream = Stream::pp;
    task.bytes = sends ? op.size : schedule_.ranks[match.peer].ops[match.index].size;
    counts_.resized += task.bytes != op.size ? 1 : 0;
    // A message has a header at least.
    if (task.bytes == 0) counts_.empty += sends ? 1 : 0, task.bytes = 1;
    counts_.wildcards += op.peer == kAnyGoal || op.tag == kAnyGoal ? 1 : 0;
    counts_.nics += op.nic > 0 ? 1 : 0;
    return task;
  }

  // An operation that waits for the start of another one begins later than that one in the order of turns. So
  // what the other one waits for is complete.
  void wait_for_starts() {
    if (rank_.starts.empty()) return;
    std::vector<GoalRank::Edge> starts = rank_.starts;
    std::sort(starts.begin(), starts.end(), [&](const GoalRank::Edge& a, const GoalRank::Edge& b) {
      return std::pair(matches_[a.first].turn, a.second) < std::pair(matches_[b.first].turn, b.second);
    });
    for (const auto& [later, earlier] : starts) {
      std::vector<std::uint32_t>& before = tasks_[earlier].after;
      std::sort(before.begin(), before.end());
      before.erase(std::unique(before.begin(), before.end()), before.end());
      if (before.size() > 1) add_marker(earlier);
      // The vector of `earlier` has at most one task now.
      const std::vector<std::uint32_t> begin = tasks_[earlier].after;
      tasks_[later].after.insert(tasks_[later].after.end(), begin.begin(), begin.end());
    }
  }
  // Puts a task without time in front of an operation, which ends when that begins.
  void add_marker(std::uint32_t index) {
    TraceTask marker;
    marker.kind = TaskKind::host_thread;
    marker.name = program_.name("begin");
    marker.work = program_.fixed_work("begin", 0);
    marker.order = tasks_[index].order;
    marker.label = tasks_[index].label;
    marker.after = std::move(tasks_[index].after);
    tasks_[index].after = {static_cast<std::uint32_t>(tasks_.size())};
    tasks_.push_back(std::move(marker));
  }

  const GoalSchedule& schedule_;
  const std::vector<GoalMatch>& matches_;
  const GoalRank& rank_;
  std::uint32_t number_;
  TraceProgram& program_;
  GoalCounts& counts_;
  std::vector<TraceTask> tasks_;
};

std::vector<std::string> goal_notes(const GoalCounts& counts) {
  std::vector<std::string> notes;
  const auto note = [&](std::uint64_t count, const char* what) {
    if (count > 0) notes.push_back(fmt::format("{}: {}", what, count));
  };
  note(counts.wildcards,
       "receives with a source or tag of -1, each of which takes the message that comes first where messages "
       "take no time");
  note(counts.resized, "receives with another size than their send, whose size counts");
  note(counts.empty, "messages without bytes, which are sent as one byte");
  note(counts.nics, "sends and receives that name another NIC than 0; the host's rule chooses NICs instead");
  return notes;
}

class GoalReader final : public WorkloadReader {
 public:
  std::unique_ptr<TaskSource> open(const InputSet& input, const WorkloadContext&) const override {
    const InputSet::File& file = input.only("a schedule in GOAL");
    const Format* format = recognise(file);
    const bool binary = format != nullptr && format->name == "goal_binary";
    const GoalSchedule schedule = binary ? parse_goal_binary(file) : parse_goal_text(file);
    const auto matches = order_goal(schedule, file.path);
    const auto ranks = static_cast<std::uint32_t>(schedule.ranks.size());
    TraceProgram program("goal", ranks, file.path);
    GoalCounts counts;
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      program.add_rank(rank, GoalTasks(schedule, matches, rank, program, counts).make(), file.path);
    return program.finish(goal_notes(counts));
  }
};

bool is_goal_text(const Excerpt& file) {
  constexpr std::string_view kFirst = "num_ranks", kBlanks = " \t\r";
  // The text may begin with comments of several lines.
  for (std::size_t i = 0; i < file.lines(); ++i) {
    std::string_view line = file.line(i);
    if (const std::size_t comment = line.rfind("*/"); comment != std::string_view::npos) {
      line.remove_prefix(comment + 2);
      line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
    }
    if (line.starts_with(kFirst)) {
      line.remove_prefix(kFirst.size());
      const std::size_t count = line.find_first_not_of(kBlanks);
      if (count == 0 || count == std::string_view::npos) return false;
      line.remove_prefix(count);
      return is_integer_word(line.substr(0, line.find_first_of(kBlanks)));
    }
    if (!file.line(0).starts_with("/*")) return false;
  }
  return false;
}

// Matches the magic number 4223, or 2342 after a run, and a number of ranks.
bool is_goal_binary(const Excerpt& file) {
  const std::string_view bytes = file.bytes();
  if (bytes.size() < 12) return false;
  const std::string_view magic = bytes.substr(0, 8), ranks = bytes.substr(8, 4);
  using std::string_view_literals::operator""sv;
  return (magic == "\x7f\x10\0\0\0\0\0\0"sv || magic == "\x26\x09\0\0\0\0\0\0"sv) && ranks != "\0\0\0\0"sv;
}

const FormatRegistration kGoalText{{.name = "goal",
                                    .what = "a schedule of LogGOPSim (GOAL)",
                                    .use = Format::Use::workload,
                                    .matches = is_goal_text,
                                    .component = "goal",
                                    .advice = {},
                                    .endings = {".goal"}}};
const FormatRegistration kGoalBinary{{.name = "goal_binary",
                                      .what = "a schedule of LogGOPSim (GOAL, binary)",
                                      .use = Format::Use::workload,
                                      .matches = is_goal_binary,
                                      .component = "goal",
                                      .advice = {},
                                      .endings = {".bin"}}};

const Registration<WorkloadReader> kGoal{
    "goal",
    "schedules in GOAL of LogGOPSim and ATLAHS, as text or binary: send, recv, calc, requires, irequires",
    Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<GoalReader>(); }};

}  // namespace
}  // namespace netsim
