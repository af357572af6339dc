// Replay: plays a program without a network. Computations and communications take given times, and what is
// ready begins at once. All ranks of a collective are taken to reach it together, as in a job whose workers
// are alike.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <tuple>
#include <vector>

#include "sim/workload/task_source.h"

namespace netsim::test {

class Replay {
 public:
  // Returns the time of a collective or a send. A receive ends with its send.
  using Duration = std::function<Time(const Task&)>;

  Replay(TaskSource& source, Duration duration) : source_(source), duration_(std::move(duration)) {
    ends_.assign(source.iterations().value_or(0), 0);
    for (RankId rank = 0; rank < source.ranks(); ++rank) {
      ready_.clear();
      source_.start(rank, ready_);
      begin_all(rank, 0);
    }
    while (!running_.empty()) {
      const auto [time, rank, id, iteration] = running_.top();
      running_.pop();
      if (iteration < ends_.size()) ends_[iteration] = std::max(ends_[iteration], time);
      ++ended_;
      ready_.clear();
      source_.complete(rank, id, ready_);
      begin_all(rank, time);
    }
  }

  // Returns whether all tasks have ended.
  bool done() const { return ended_ == source_.total_tasks(); }
  // Return the end of each iteration, and the time between the last two ends.
  const std::vector<Time>& ends() const { return ends_; }
  Time steady() const { return ends_[ends_.size() - 1] - ends_[ends_.size() - 2]; }
  // Returns the time at which the task of rank 0 with this name began in an iteration.
  Time begin(const std::string& name, std::uint32_t iteration) const { return begins_.at({name, iteration}); }

 private:
  using Event = std::tuple<Time, RankId, TaskId, std::uint32_t>;
  using Message = std::tuple<RankId, RankId, std::uint32_t, std::uint32_t>;  // from, to, tag, sequence

  Time computing(const Task& task) const {
    Time total = 0;
    for (const Kernel& kernel : source_.works()[task.work()].kernels) total += kernel.duration;
    return total;
  }
  void begin_all(RankId rank, Time now) {
    for (const Task& task : std::vector<Task>(ready_)) begin_task(rank, task, now);
  }
  void begin_task(RankId rank, const Task& task, Time now) {
    if (rank == 0) begins_[{source_.names()[task.name], task.iteration}] = now;
    if (task.kind() == TaskKind::receive) {
      const Message key{task.message().peer, rank, task.message().tag, task.sequence};
      if (const auto sent = arrivals_.find(key); sent != arrivals_.end()) {
        running_.emplace(std::max(now, sent->second), rank, task.id, task.iteration);
      } else {
        posted_[key] = {now, rank, task.id, task.iteration};
      }
      return;
    }
    const Time end = now + (has_work(task.kind()) ? computing(task) : duration_(task));
    running_.emplace(end, rank, task.id, task.iteration);
    if (task.kind() != TaskKind::send) return;
    const Message key{rank, task.message().peer, task.message().tag, task.sequence};
    arrivals_[key] = end;
    if (const auto waiting = posted_.find(key); waiting != posted_.end()) {
      const auto [since, peer, id, iteration] = waiting->second;
      running_.emplace(std::max(end, since), peer, id, iteration);
    }
  }

  TaskSource& source_;
  Duration duration_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> running_;
  std::map<Message, Time> arrivals_;
  std::map<Message, Event> posted_;
  std::map<std::pair<std::string, std::uint32_t>, Time> begins_;
  std::vector<Task> ready_;
  std::vector<Time> ends_;
  std::uint64_t ended_ = 0;
};

}  // namespace netsim::test
