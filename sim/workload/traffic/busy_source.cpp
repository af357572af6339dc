#include "sim/workload/traffic/busy_source.h"

#include <utility>

namespace netsim {

BusySource::BusySource(std::string job_name, std::uint32_t ranks, Time duration, std::uint32_t iterations,
                       std::vector<std::string> notes)
    : job_name_(std::move(job_name)),
      ranks_(ranks),
      iterations_(iterations),
      short_(duration / iterations),
      long_ones_(static_cast<std::uint32_t>(duration % iterations)),
      notes_(std::move(notes)) {
  NETSIM_CHECK(short_ > 0, "an iteration takes no time");
  for (const Time time : {short_, short_ + 1}) {
    Kernel kernel;
    kernel.kind = Kernel::Kind::fixed;
    kernel.name = "busy";
    kernel.duration = time;
    works_.push_back({"busy", {kernel}});
    if (long_ones_ == 0) return;
  }
}

const std::vector<std::string>& BusySource::names() const {
  static const std::vector<std::string> names{"busy"};
  return names;
}

bool BusySource::for_each_task(RankId, const Visitor& visit) const {
  for (std::uint32_t iteration = 0; iteration < iterations_; ++iteration) visit(task_of(iteration));
  return true;
}

std::optional<std::vector<TaskWait>> BusySource::waits(RankId) const {
  std::vector<TaskWait> all;
  all.reserve(iterations_);
  for (std::uint32_t iteration = 1; iteration < iterations_; ++iteration)
    all.push_back({iteration - 1, iteration});
  return all;
}

void BusySource::close() {
  done_ = std::vector<std::uint32_t>();  // {} would keep its memory
  closed_ = true;
}

void BusySource::start(RankId rank, std::vector<Task>& ready) {
  if (done_.empty()) open();
  done_[rank] = 0;
  ready.push_back(task_of(0));
}

void BusySource::complete(RankId rank, TaskId, std::vector<Task>& ready) {
  if (++done_[rank] < iterations_) ready.push_back(task_of(done_[rank]));
}

std::uint32_t BusySource::open_iteration(RankId rank) const {
  if (done_.empty()) return closed_ ? kNoIteration : 0;
  return done_[rank] < iterations_ ? done_[rank] : kNoIteration;
}

Task BusySource::task_of(std::uint32_t iteration) const {
  Task task;
  task.id = iteration;
  task.iteration = iteration;
  task.body = ComputeTask{iteration < long_ones_ ? 1U : 0U};
  return task;
}

}  // namespace netsim
