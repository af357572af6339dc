// TaskPlayer runs a TaskSource without a network. Computation takes the time that the test gives. So does a
// message from its send on, and a collective from when all members are there (no time unless given). Events
// of one time happen in an order drawn from a seed. So a test shows that a source works in any order.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <vector>

#include "sim/core/random.h"
#include "sim/workload/task_source.h"

namespace netsim::test {

struct PlayedTask {
  std::uint32_t rank;
  Task task;
  Time ready, end;
};

class TaskPlayer {
 public:
  // durations[work] in picoseconds; empty: all 0.
  explicit TaskPlayer(TaskSource& source, std::uint64_t seed = 1, std::vector<Time> durations = {})
      : source_(source), random_(seed, "player"), durations_(std::move(durations)) {}

  // How long a communication takes.
  std::function<Time(const Task&)> transfer_time = [](const Task&) { return Time{0}; };
  // How long a computation takes, where `durations` is not all: by rank.
  std::function<Time(std::uint32_t, const Task&)> compute_time = {};

  void run() {
    for (std::uint32_t rank = 0; rank < source_.ranks(); ++rank) {
      std::vector<Task> ready;
      source_.start(rank, ready);
      for (const Task& task : ready) begin(rank, task);
    }
    while (!due_.empty()) {
      const Due next = due_.top();
      due_.pop();
      now_ = next.time;
      finish(next.played);
    }
  }
  bool all_done() const {
    for (std::uint32_t rank = 0; rank < source_.ranks(); ++rank) {
      if (source_.open_iteration(rank) != TaskSource::kNoIteration) return false;
    }
    return source_.total_tasks() == played.size();
  }
  Time end() const { return now_; }

  std::vector<PlayedTask> played;  // in order of end

 private:
  struct Due {
    Time time;
    std::uint64_t order;
    std::size_t played;
    bool operator<(const Due& other) const {
      return std::tie(time, order) > std::tie(other.time, other.order);
    }
  };
  using Transfer = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;  // and sequence

  void schedule(std::size_t index, Time time) { due_.push({time, random_.bits(), index}); }

  void begin(std::uint32_t rank, const Task& task) {
    const std::size_t index = open_.size();
    open_.push_back({rank, task, now_, 0});
    switch (task.kind()) {
      case TaskKind::compute:
        schedule(index, now_ + (compute_time         ? compute_time(rank, task)
                                : durations_.empty() ? 0
                                                     : durations_[task.work()]));
        break;
      case TaskKind::host_compute:
      case TaskKind::host_thread:
        schedule(index, now_ + (durations_.empty() ? 0 : durations_[task.work()]));
        break;
      case TaskKind::copy_to_host:
      case TaskKind::copy_from_host:
        schedule(index, now_ + transfer_time(task));
        break;
      case TaskKind::send:
        schedule(index, now_ + transfer_time(task));
        sent_[{rank, task.message().peer, task.message().tag, task.sequence}].push(index);
        match({rank, task.message().peer, task.message().tag, task.sequence});
        break;
      case TaskKind::receive:
        posted_[{task.message().peer, rank, task.message().tag, task.sequence}].push(index);
        match({task.message().peer, rank, task.message().tag, task.sequence});
        break;
      case TaskKind::collective:
      case TaskKind::circuits:
        join(task, index);
        break;
    }
  }
  void match(const Transfer& key) {
    auto& sent = sent_[key];
    auto& posted = posted_[key];
    for (; !sent.empty() && !posted.empty(); sent.pop(), posted.pop()) {
      const PlayedTask& message = open_[sent.front()];
      if (message.task.bytes() != open_[posted.front()].task.bytes()) mismatched = true;
      schedule(posted.front(), std::max(now_, message.ready + transfer_time(message.task)));
    }
  }
  void join(const Task& task, std::size_t index) {
    auto& waiting = calls_of_[{task.group(), task.sequence}];
    if (!waiting.empty()) {
      const Task& first = open_[waiting.front()].task;
      const bool calls = first.kind() == TaskKind::collective && task.kind() == TaskKind::collective;
      if (first.bytes() != task.bytes() || first.kind() != task.kind() || first.name != task.name ||
          (calls && first.collective().collective != task.collective().collective))
        mismatched = true;
    }
    waiting.push_back(index);
    if (waiting.size() < source_.group(task.group()).size()) return;
    for (const std::size_t member : waiting) schedule(member, now_ + transfer_time(task));
    calls_of_.erase({task.group(), task.sequence});
  }
  void finish(std::size_t index) {
    open_[index].end = now_;
    played.push_back(open_[index]);
    std::vector<Task> ready;
    const std::uint32_t rank = open_[index].rank;
    source_.complete(rank, open_[index].task.id, ready);
    for (const Task& task : ready) begin(rank, task);
  }

  TaskSource& source_;
  RandomStream random_;
  std::vector<Time> durations_;
  Time now_ = 0;
  std::priority_queue<Due> due_;
  std::vector<PlayedTask> open_;
  std::map<Transfer, std::queue<std::size_t>> sent_, posted_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::size_t>> calls_of_;

 public:
  bool mismatched = false;  // two ends of a transfer or two members of a collective do not agree
};

}  // namespace netsim::test
