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

std::uint32_t SimpleSource::add_group(std::vector<std::uint32_t> ranks) {
  groups_.push_back(std::move(ranks));
  return static_cast<std::uint32_t>(groups_.size() - 1);
}

void SimpleSource::add_task(std::uint32_t rank, Task task) { append(own_program(rank), task); }

void SimpleSource::join_task(std::uint32_t rank, Task task) { append(own_program(rank), task, true); }

void SimpleSource::add_task_everywhere(Task task) {
  for (Program& program : programs_) append(program, task);
}

void SimpleSource::add_message(std::uint32_t from, std::uint32_t to, std::uint32_t tag, Bytes bytes,
                               Time not_before, std::uint32_t name) {
  Task task;
  task.stream = Stream::dp;
  task.raw = true;
  task.tag = tag;
  task.only_of_tag = true;
  task.bytes = bytes;
  task.name = name;
  task.kind = TaskKind::receive;
  task.peer = from;
  add_task(to, task);
  task.kind = TaskKind::send;
  task.peer = to;
  task.not_before = not_before;
  add_task(from, task);
}

std::optional<std::uint64_t> SimpleSource::total_tasks() const {
  std::uint64_t total = 0;
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) total += program(rank).tasks.size();
  return total;
}

bool SimpleSource::for_each_task(std::uint32_t rank, const Visitor& visit) const {
  for (const Task& task : program(rank).tasks) visit(task);
  return true;
}

void SimpleSource::start(std::uint32_t rank, std::vector<Task>& ready) {
  progress_[rank] = {};
  for (const Task& task : program(rank).tasks) {
    if (task.queue == Task::kUnordered || task.place < lookahead_) ready.push_back(task);
  }
}

void SimpleSource::complete(std::uint32_t rank, std::uint32_t id, std::vector<Task>& ready) {
  const Program& own = program(rank);
  Progress& progress = progress_[rank];
  progress.window.end(id);
  const std::uint32_t queue = own.tasks[id].queue;
  if (queue == Task::kUnordered) return;
  const std::uint32_t before = ended_places(rank, queue);
  ++progress.ended[queue];
  if (ended_places(rank, queue) == before) return;
  const std::vector<std::uint32_t>& ids = own.queues[queue];
  auto next = std::lower_bound(ids.begin(), ids.end(), before + lookahead_,
                               [&](std::uint32_t task, auto place) { return own.tasks[task].place < place; });
  for (; next != ids.end() && own.tasks[*next].place == before + lookahead_; ++next)
    ready.push_back(own.tasks[*next]);
}

// Returns the number of places before the first one with an open task, if tasks end in their order.
std::uint32_t SimpleSource::ended_places(std::uint32_t rank, std::uint32_t queue) const {
  const Program& own = program(rank);
  const std::vector<std::uint32_t>& ids = own.queues[queue];
  const std::uint32_t ended = progress_[rank].ended[queue];
  if (ended < ids.size()) return own.tasks[ids[ended]].place;
  return ids.empty() ? 0 : own.tasks[ids.back()].place + 1;
}

std::uint32_t SimpleSource::open_iteration(std::uint32_t rank) const {
  const std::uint32_t base = progress_[rank].window.base();
  const std::vector<Task>& tasks = program(rank).tasks;
  return base < tasks.size() ? tasks[base].iteration : kNoIteration;
}

std::vector<Task> SimpleSource::held_back(std::uint32_t rank) const {
  FirstOfStreams first;
  for (const Task& task : program(rank).tasks) {
    if (task.queue == Task::kUnordered) continue;
    if (task.place >= ended_places(rank, task.queue) + lookahead_ && !first.take(task)) break;
  }
  return first.tasks();
}

void SimpleSource::append(Program& program, Task task, bool joins) {
  task.id = static_cast<std::uint32_t>(program.tasks.size());
  iterations_ = std::max(iterations_, task.iteration + 1);
  if (task.pause > 0 && (least_pause_ == 0 || task.pause < least_pause_)) least_pause_ = task.pause;
  if (!task.only_of_tag) task.sequence = calls_before(program, task);
  if (!task.raw) {
    task.queue = static_cast<std::uint32_t>(task.stream);
    std::vector<std::uint32_t>& queue = program.queues[task.queue];
    NETSIM_CHECK(!joins || !queue.empty(), "a task joins a call that does not exist");
    if (!queue.empty()) task.place = program.tasks[queue.back()].place + (joins ? 0 : 1);
    if (joins) task.together = program.tasks[queue.back()].together + 1;
    const auto shares = [&](const Task& other) {
      return other.kind == TaskKind::collective && task.kind == TaskKind::collective &&
             other.group == task.group;
    };
    for (auto other = queue.rbegin(); joins && other != queue.rend(); ++other) {
      if (program.tasks[*other].place != task.place) break;
      program.tasks[*other].together = task.together;
      if (shares(program.tasks[*other]))
        task.grouped.before += traffic_of(program.tasks[*other].collective, program.tasks[*other].bytes);
    }
    if (task.grouped.before > 0) {
      task.grouped.all = task.grouped.before + traffic_of(task.collective, task.bytes);
      for (auto other = queue.rbegin(); program.tasks[*other].place == task.place; ++other) {
        if (shares(program.tasks[*other])) program.tasks[*other].grouped.all = task.grouped.all;
        if (std::next(other) == queue.rend()) break;
      }
    }
    queue.push_back(task.id);
  }
  program.tasks.push_back(task);
}

// Returns the number of earlier calls with the same match key.
std::uint32_t SimpleSource::calls_before(const Program& program, const Task& task) {
  const auto before = std::find_if(program.tasks.rbegin(), program.tasks.rend(), [&](const Task& other) {
    if (has_group(task)) return has_group(other) && other.group == task.group;
    if (other.kind != task.kind || task.kind == TaskKind::compute) return false;
    return other.peer == task.peer && other.tag == task.tag;
  });
  return before == program.tasks.rend() ? 0 : before->sequence + 1;
}

SimpleSource::Program& SimpleSource::own_program(std::uint32_t rank) {
  if (program_of_[rank] == 0) {
    program_of_[rank] = static_cast<std::uint32_t>(programs_.size());
    const Program shared = programs_[0];
    programs_.push_back(shared);
  }
  return programs_[program_of_[rank]];
}

}  // namespace netsim
