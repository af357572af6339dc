#include "sim/workload/traffic/simple_source.h"

#include <algorithm>
#include <utility>

namespace netsim {

SimpleSource::SimpleSource(std::string job_name, std::uint32_t ranks)
    : job_name_(std::move(job_name)), program_of_(ranks, 0) {}

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

std::uint32_t SimpleSource::task_count(std::uint32_t rank) const {
  return static_cast<std::uint32_t>(program(rank).size());
}

Task SimpleSource::task(std::uint32_t rank, std::uint32_t id) const { return program(rank)[id].task; }

void SimpleSource::start(std::uint32_t rank, std::vector<Task>& ready) {
  for (const Step& step : program(rank)) {
    if (step.first) ready.push_back(step.task);
  }
}

void SimpleSource::complete(std::uint32_t rank, std::uint32_t task, std::vector<Task>& ready) {
  const Program& steps = program(rank);
  if (steps[task].next != 0) ready.push_back(steps[steps[task].next].task);
}

void SimpleSource::append(Program& program, Task task) {
  task.id = static_cast<std::uint32_t>(program.size());
  iterations_ = std::max(iterations_, task.iteration + 1);
  Step* before = task.raw ? nullptr : last_of_stream(program, task.stream);
  if (before != nullptr) before->next = task.id;
  program.push_back({task, before == nullptr, 0});
}

SimpleSource::Step* SimpleSource::last_of_stream(Program& program, Stream stream) {
  const auto it = std::find_if(program.rbegin(), program.rend(), [stream](const Step& step) {
    return !step.task.raw && step.task.stream == stream;
  });
  return it == program.rend() ? nullptr : &*it;
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
