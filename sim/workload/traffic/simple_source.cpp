#include "sim/workload/traffic/simple_source.h"

#include <algorithm>
#include <utility>

#include "sim/core/errors.h"

namespace netsim {

SimpleSource::SimpleSource(std::string job_name, std::uint32_t ranks)
    : job_name_(std::move(job_name)), program_of_(ranks, 0), progress_(ranks) {}

std::uint32_t SimpleSource::add_name(const std::string& name) {
  const auto it = std::find(names_.begin(), names_.end(), name);
  const auto index = static_cast<std::uint32_t>(it - names_.begin());
  if (it == names_.end()) names_.push_back(name);
  return index;
}

std::uint32_t SimpleSource::add_work(Work work) {
  works_.push_back(std::move(work));
  return static_cast<std::uint32_t>(works_.size() - 1);
}

std::uint32_t SimpleSource::add_group(std::vector<RankId> ranks) {
  groups_.push_back(std::move(ranks));
  return static_cast<std::uint32_t>(groups_.size() - 1);
}

void SimpleSource::add_task(RankId rank, Task task) { append(own_program(rank), task); }

void SimpleSource::join_task(RankId rank, Task task) { append(own_program(rank), task, true); }

void SimpleSource::add_task_everywhere(Task task) {
  for (Program& program : programs_) append(program, task);
}

void SimpleSource::add_message(std::uint32_t from, std::uint32_t to, std::uint32_t tag, Bytes bytes,
                               Time not_before, std::uint32_t name) {
  Task task;
  task.stream = Stream::dp;
  task.name = name;
  task.body = ReceiveTask{{{bytes, {}}, from, tag, true, true}};
  add_task(to, task);
  task.body = SendTask{{{bytes, {}}, to, tag, true, true}};
  task.not_before = not_before;
  add_task(from, task);
}

std::optional<std::uint64_t> SimpleSource::total_tasks() const {
  std::uint64_t total = 0;
  for (RankId rank = 0; rank < ranks(); ++rank) total += program(rank).tasks.size();
  return total;
}

bool SimpleSource::for_each_task(RankId rank, const Visitor& visit) const {
  for (const Task& task : program(rank).tasks) visit(task);
  return true;
}

void SimpleSource::start(RankId rank, std::vector<Task>& ready) {
  progress_[rank] = {};
  for (const Task& task : program(rank).tasks) {
    if (task.queue == Task::kUnordered || task.place == 0) ready.push_back(task);
  }
}

void SimpleSource::complete(RankId rank, TaskId id, std::vector<Task>& ready) {
  const Program& own = program(rank);
  Progress& progress = progress_[rank];
  progress.window.end(id);
  const std::uint32_t queue = own.tasks[id].queue;
  if (queue == Task::kUnordered) return;
  const std::uint32_t before = ended_places(rank, queue);
  ++progress.ended[queue];
  if (ended_places(rank, queue) == before) return;
  const std::vector<std::uint32_t>& ids = own.queues[queue];
  auto next = std::lower_bound(ids.begin(), ids.end(), before + 1,
                               [&](std::uint32_t task, auto place) { return own.tasks[task].place < place; });
  for (; next != ids.end() && own.tasks[*next].place == before + 1; ++next) ready.push_back(own.tasks[*next]);
}

// Returns the number of places before the first one with an open task, if tasks end in their order.
std::uint32_t SimpleSource::ended_places(RankId rank, std::uint32_t queue) const {
  const Program& own = program(rank);
  const std::vector<std::uint32_t>& ids = own.queues[queue];
  const std::uint32_t ended = progress_[rank].ended[queue];
  if (ended < ids.size()) return own.tasks[ids[ended]].place;
  return ids.empty() ? 0 : own.tasks[ids.back()].place + 1;
}

std::uint32_t SimpleSource::open_iteration(RankId rank) const {
  const std::uint32_t base = progress_[rank].window.base();
  const std::vector<Task>& tasks = program(rank).tasks;
  return base < tasks.size() ? tasks[base].iteration : kNoIteration;
}

std::vector<Task> SimpleSource::held_back(RankId rank) const {
  FirstOfStreams first;
  for (const Task& task : program(rank).tasks) {
    if (task.queue == Task::kUnordered) continue;
    if (task.place > ended_places(rank, task.queue) && !first.take(task)) break;
  }
  return first.tasks();
}

void SimpleSource::append(Program& program, Task task, bool joins) {
  task.id = static_cast<std::uint32_t>(program.tasks.size());
  iterations_ = std::max(iterations_, task.iteration + 1);
  if (task.kind() == TaskKind::collective && task.collective().pause > 0) {
    const Time pause = task.collective().pause;
    least_pause_ = least_pause_ == 0 ? pause : std::min(least_pause_, pause);
  }
  if (!is_point_to_point(task) || !task.message().only_of_tag) task.sequence = calls_before(program, task);
  if (!is_raw(task)) enqueue(program, task, joins);
  program.tasks.push_back(task);
}

// Appends the task to the queue of its stream, or to the last grouped call of it.
void SimpleSource::enqueue(Program& program, Task& task, bool joins) {
  task.queue = static_cast<std::uint32_t>(task.stream);
  std::vector<std::uint32_t>& queue = program.queues[task.queue];
  NETSIM_CHECK(!joins || !queue.empty(), "a task joins a call that does not exist");
  if (!queue.empty()) task.place = program.tasks[queue.back()].place + (joins ? 0 : 1);
  if (joins) join_call(program, task, queue);
  queue.push_back(task.id);
}

// Counts the task among those of its grouped call, and the traffic of those that have its group.
void SimpleSource::join_call(Program& program, Task& task, const std::vector<std::uint32_t>& queue) {
  task.together = program.tasks[queue.back()].together + 1;
  const auto first = std::find_if(queue.rbegin(), queue.rend(), [&](std::uint32_t other) {
    return program.tasks[other].place != task.place;
  });
  std::vector<CollectiveTask*> same_group;
  for (auto other = queue.rbegin(); other != first; ++other) {
    Task& member = program.tasks[*other];
    member.together = task.together;
    if (member.kind() == TaskKind::collective && task.kind() == TaskKind::collective &&
        member.collective().group == task.collective().group)
      same_group.push_back(&member.collective());
  }
  if (same_group.empty()) return;
  CollectiveTask& call = task.collective();
  for (const CollectiveTask* member : same_group)
    call.grouped.before += traffic_of(member->collective, member->bytes);
  call.grouped.all = call.grouped.before + traffic_of(call.collective, call.bytes);
  for (CollectiveTask* member : same_group) member->grouped.all = call.grouped.all;
}

// Returns the number of earlier calls with the same match key.
std::uint32_t SimpleSource::calls_before(const Program& program, const Task& task) {
  const auto before = std::find_if(program.tasks.rbegin(), program.tasks.rend(),
                                   [&](const Task& other) { return have_same_match_key(task, other); });
  return before == program.tasks.rend() ? 0 : before->sequence + 1;
}

SimpleSource::Program& SimpleSource::own_program(RankId rank) {
  if (program_of_[rank] == 0) {
    program_of_[rank] = static_cast<std::uint32_t>(programs_.size());
    const Program shared = programs_[0];
    programs_.push_back(shared);
  }
  return programs_[program_of_[rank]];
}

}  // namespace netsim
