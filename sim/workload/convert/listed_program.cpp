#include "sim/workload/convert/listed_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>

#include "sim/core/errors.h"
#include "sim/workload/convert/listed_rank.h"
#include "sim/workload/trace/trace_program.h"

namespace netsim {
namespace {

// Returns why a program cannot have a task, or "".
std::string program_objection(const Task& task) {
  const Payload* payload = task.payload();
  if (payload != nullptr && payload->traits.path_hint != kNoPathHint) return "a message with its own path";
  if (task.kind() == TaskKind::circuits) return "a request for optical circuits";
  if (task.kind() != TaskKind::collective) return "";
  const CollectiveTask& call = task.collective();
  if (call.algorithm != nullptr) return "a collective with its own algorithm";
  return call.pause != 0 ? "a collective that begins at all members at once" : "";
}

// ProgramLister: adds the ranks of the program one after the other.
class ProgramLister {
 public:
  ProgramLister(const TaskSource& source, const ProgramChanges& changes)
      : source_(source),
        changes_(changes),
        ranks_(changes.ranks == 0 ? source.ranks() : changes.ranks),
        program_(source.job_name(), ranks_, source.job_name()) {}

  std::unique_ptr<TaskSource> list() {
    for (RankId rank = 0; rank < ranks_; ++rank) add(rank);
    std::vector<std::string> notes = source_.notes();
    notes.insert(notes.end(), changes_.notes.begin(), changes_.notes.end());
    if (source_.iterations().value_or(1) > 1)
      notes.push_back(fmt::format("all {} iterations of the workload are one", *source_.iterations()));
    return program_.finish(std::move(notes));
  }

 private:
  void add(RankId rank) {
    const RankId original = changes_.original ? changes_.original(rank) : rank;
    const ListedRank list = list_rank(source_, original);
    std::vector<TraceTask> tasks;
    tasks.reserve(list.tasks.size());
    for (std::size_t i = 0; i < list.tasks.size(); ++i) {
      if (const std::string what = program_objection(list.tasks[i]); !what.empty())
        refuse_conversion(source_, original, list.tasks[i], what);
      tasks.push_back(trace_task(rank, list.tasks[i]));
      tasks.back().order = i;
      tasks.back().after = list.dependencies(i);
      tasks.back().joins = list.joins[i];
    }
    program_.add_rank(rank, std::move(tasks), source_.job_name());
  }

  TraceTask trace_task(RankId rank, const Task& given) {
    TraceTask task;
    task.kind = given.kind();
    task.name = program_.name(source_.name(given.name));
    task.stream = given.stream;
    task.not_before = given.not_before;
    if (given.queue != Task::kUnordered) task.queue = given.queue;
    if (has_work(task.kind)) {
      task.work = work(given);
      return task;
    }
    task.bytes = given.bytes();
    task.traits = given.payload()->traits;
    if (is_point_to_point(task.kind)) {
      task.peer = changes_.peer ? changes_.peer(given.message().peer, rank) : given.message().peer;
      task.tag = given.message().tag;
      task.raw = given.message().raw;
    } else if (task.kind == TaskKind::collective) {
      const CollectiveTask& call = given.collective();
      const std::vector<RankId>& members = source_.group(call.group);
      task.collective = call.collective;
      task.group = program_.group(changes_.group ? changes_.group(members, rank) : members, call.group);
      task.root = call.root;
      if (call.collective == CollectiveKind::barrier) task.bytes = 0;
      if (call.counts != nullptr) set_blocks(task, call, members, rank);
    }
    return task;
  }

  // Gives a collective with counts those of its member. Where the group has another size, members get equal
  // parts.
  void set_blocks(TraceTask& task, const CollectiveTask& call, const std::vector<RankId>& members,
                  RankId rank) {
    const RankId original = changes_.original ? changes_.original(rank) : rank;
    const auto member = std::find(members.begin(), members.end(), original) - members.begin();
    TraceBlocks blocks = blocks_of_member(*call.counts, static_cast<std::uint32_t>(member));
    task.bytes = std::accumulate(blocks.sends.begin(), blocks.sends.end(), Bytes{0});
    if (program_.group_size(task.group) == members.size())
      task.blocks = std::make_shared<TraceBlocks>(std::move(blocks));
  }

  // Returns the number of a task's work in the program. Each is changed once.
  std::uint32_t work(const Task& task) {
    const auto [known, is_new] = works_.try_emplace({task.kind(), task.work()}, 0U);
    if (is_new) {
      const Work& given = source_.works()[task.work()];
      known->second = program_.work(changes_.work ? changes_.work(task.kind(), given) : given);
    }
    return known->second;
  }

  const TaskSource& source_;
  const ProgramChanges& changes_;
  std::uint32_t ranks_;
  TraceProgram program_;
  std::map<std::pair<TaskKind, std::uint32_t>, std::uint32_t> works_;
};

}  // namespace

std::unique_ptr<TaskSource> list_program(const TaskSource& source, const ProgramChanges& changes) {
  return ProgramLister(source, changes).list();
}

void refuse_conversion(const TaskSource& source, RankId rank, const Task& task, const std::string& what) {
  refuse_task(source, rank, task, "the notation has no place for " + what);
}

}  // namespace netsim
