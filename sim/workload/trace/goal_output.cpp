// Writes schedules in GOAL, as text and in the form of txt2bin.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "sim/workload/trace/goal_schedule.h"

namespace netsim {
namespace {

// ---- Text

std::string goal_statement(const GoalOp& op, std::size_t index) {
  if (op.kind == GoalOp::Kind::calc) return fmt::format("l{}: calc {} cpu {}\n", index, op.size, op.cpu);
  const bool sends = op.kind == GoalOp::Kind::send;
  const auto or_any = [](std::uint32_t number) {
    return number == kAnyGoal ? std::string("-1") : std::to_string(number);
  };
  std::string text = fmt::format("l{}: {} {}b {} {} tag {}", index, sends ? "send" : "recv", op.size,
                                 sends ? "to" : "from", or_any(op.peer), or_any(op.tag));
  if (op.cpu != 0 || op.nic != 0) text += fmt::format(" cpu {}", op.cpu);
  if (op.nic != 0) text += fmt::format(" nic {}", op.nic);
  return text + "\n";
}

void append_text(const GoalRank& rank, std::size_t number, std::string& text) {
  fmt::format_to(std::back_inserter(text), "rank {} {{\n", number);
  for (std::size_t i = 0; i < rank.ops.size(); ++i) text += goal_statement(rank.ops[i], i);
  for (const auto& [later, earlier] : rank.ends)
    fmt::format_to(std::back_inserter(text), "l{} requires l{}\n", later, earlier);
  for (const auto& [later, earlier] : rank.starts)
    fmt::format_to(std::back_inserter(text), "l{} irequires l{}\n", later, earlier);
  text += "}\n";
}

// ---- txt2bin's form

void put_little(std::string& bytes, std::uint64_t value, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
}

// GoalDependents: the operations that wait for each operation of a rank.
class GoalDependents {
 public:
  GoalDependents(const std::vector<GoalRank::Edge>& edges, std::size_t ops) : first_(ops + 1, 0) {
    for (const auto& [later, earlier] : edges) ++first_[earlier + 1];
    for (std::size_t i = 0; i < ops; ++i) first_[i + 1] += first_[i];
    later_.resize(edges.size());
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (const auto& [later, earlier] : edges) later_[next[earlier]++] = later;
  }
  // Writes the number of an operation's dependents and the position of the first to `node`, and the
  // dependents to `appendix`, which has `count` so far.
  void put(std::size_t op, std::string& node, std::string& appendix, std::uint32_t& count) const {
    put_little(node, first_[op + 1] - first_[op], 4);
    put_little(node, count, 4);
    for (std::uint32_t i = first_[op]; i < first_[op + 1]; ++i) put_little(appendix, later_[i], 4);
    count += first_[op + 1] - first_[op];
  }

 private:
  std::vector<std::uint32_t> first_, later_;
};

void append_binary(const GoalRank& rank, std::string& bytes) {
  std::vector<std::uint32_t> waits(rank.ops.size(), 0);
  for (const auto& [later, earlier] : rank.ends) ++waits[later];
  for (const auto& [later, earlier] : rank.starts) ++waits[later];
  put_little(bytes, rank.ops.size(), 4);
  put_little(bytes, static_cast<std::uint64_t>(std::count(waits.begin(), waits.end(), 0U)), 4);
  for (std::uint32_t i = 0; i < waits.size(); ++i) {
    if (waits[i] == 0) put_little(bytes, i, 4);
  }
  const GoalDependents ends(rank.ends, rank.ops.size()), starts(rank.starts, rank.ops.size());
  std::string appendix;
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < rank.ops.size(); ++i) {
    const GoalOp& op = rank.ops[i];
    put_little(bytes, waits[i], 4);
    put_little(bytes, static_cast<std::uint64_t>(op.kind), 1);
    put_little(bytes, op.peer, 4);
    put_little(bytes, static_cast<std::uint64_t>(op.size), 8);
    put_little(bytes, op.tag, 4);
    put_little(bytes, op.cpu, 1);
    put_little(bytes, op.nic, 1);
    ends.put(i, bytes, appendix, count);
    starts.put(i, bytes, appendix, count);
  }
  bytes += appendix;
}

}  // namespace

std::string write_goal_text(const GoalSchedule& schedule) {
  std::string text = fmt::format("num_ranks {}\n", schedule.ranks.size());
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank)
    append_text(schedule.ranks[rank], rank, text);
  return text;
}

std::string write_goal_binary(const GoalSchedule& schedule) {
  std::uint8_t cpu = 0, nic = 0;
  for (const GoalRank& rank : schedule.ranks) {
    for (const GoalOp& op : rank.ops) {
      cpu = std::max(cpu, op.cpu);
      nic = std::max(nic, op.nic);
    }
  }
  // Positions count from behind the magic number.
  constexpr std::uint64_t kMagic = 4223, kHead = 6, kEntry = 16;
  const std::uint64_t first = kHead + kEntry * schedule.ranks.size();
  std::string bytes, table, parts;
  put_little(bytes, kMagic, 8);
  put_little(bytes, schedule.ranks.size(), 4);
  put_little(bytes, cpu, 1);
  put_little(bytes, nic, 1);
  for (const GoalRank& rank : schedule.ranks) {
    put_little(table, first + parts.size(), 8);
    append_binary(rank, parts);
    put_little(table, first + parts.size(), 8);
  }
  return bytes + table + parts;
}

}  // namespace netsim
