#include "sim/workload/traffic/simple_source.h"

#include <algorithm>
#include <utility>

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
  const std::size_t next = std::size_t{progress.ended[queue]++} + lookahead_;
  if (next < own.queues[queue].size()) ready.push_back(own.tasks[own.queues[queue][next]]);
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
    if (task.place >= progress_[rank].ended[task.queue] + lookahead_ && !first.take(task)) break;
  }
  return first.tasks();
}

void SimpleSource::append(Program& program, Task task) {
  task.id = static_cast<std::uint32_t>(program.tasks.size());
  iterations_ = std::max(iterations_, task.iteration + 1);
  if (!task.only_of_tag) task.sequence = calls_before(program, task);
  if (!task.raw) {
    task.queue = static_cast<std::uint32_t>(task.stream);
    task.place = static_cast<std::uint32_t>(program.queues[task.queue].size());
    program.queues[task.queue].push_back(task.id);
  }
  program.tasks.push_back(task);
}

// Of the same match key.
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
