// SimpleSource: a TaskSource whose tasks are written down one by one: traffic patterns, collective
// benchmarks, tests.
//
// Order: each stream of a rank is one queue, tasks in the order in which they were added, except raw
// messages: each of them is a transfer of its own, as of an application that posts all it has, and is ready
// at the start (Task::not_before still holds it back).
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/collectives/own_algorithm.h"
#include "sim/workload/task.h"
#include "sim/workload/task_window.h"

namespace netsim {

class SimpleSource final : public TaskSource {
 public:
  // Every rank starts without tasks.
  SimpleSource(std::string job_name, std::uint32_t ranks);

  // Names for tables; the index is what Task::name takes. The same text gets the same index.
  std::uint32_t add_name(const std::string& name);
  std::uint32_t add_work(Work work);
  std::uint32_t add_group(std::vector<std::uint32_t> ranks);
  // For Task::counts.
  const BlockCounts* add_counts(BlockCounts counts) { return &counts_.emplace_back(std::move(counts)); }
  // For Task::algorithm.
  const OwnAlgorithm* add_algorithm(OwnAlgorithm algorithm) {
    return &algorithms_.emplace_back(std::move(algorithm));
  }
  // Appends a task to the rank's program; sets its id.
  void add_task(std::uint32_t rank, Task task);
  // The same of a communication that is one call with the last task of its stream, also one.
  void join_task(std::uint32_t rank, Task task);
  // Appends the task to the program of every rank; ranks without tasks of their own share one program.
  void add_task_everywhere(Task task);
  // A raw message: the send at `from` and the receive at `to`. Messages of one pair of ranks differ in `tag`.
  void add_message(std::uint32_t from, std::uint32_t to, std::uint32_t tag, Bytes bytes, Time not_before,
                   std::uint32_t name);

  const std::string& job_name() const override { return job_name_; }
  std::uint32_t ranks() const override { return static_cast<std::uint32_t>(program_of_.size()); }
  // Largest Task::iteration + 1.
  std::optional<std::uint32_t> iterations() const override { return iterations_; }
  const std::vector<Work>& works() const override { return works_; }
  const std::vector<std::string>& names() const override { return names_; }
  const std::vector<std::uint32_t>& group(std::uint32_t id) const override { return groups_[id]; }
  Time least_pause() const override { return least_pause_; }
  std::optional<std::uint64_t> total_tasks() const override;
  bool for_each_task(std::uint32_t rank, const Visitor& visit) const override;
  void set_lookahead(std::uint32_t tasks) override { lookahead_ = tasks; }
  void start(std::uint32_t rank, std::vector<Task>& ready) override;
  void complete(std::uint32_t rank, std::uint32_t task, std::vector<Task>& ready) override;
  std::uint32_t open_iteration(std::uint32_t rank) const override;
  std::vector<Task> held_back(std::uint32_t rank) const override;
  double model_flops() const override { return 0; }

 private:
  // What ranks that run the same share.
  struct Program {
    std::vector<Task> tasks;
    std::array<std::vector<std::uint32_t>, kStreams> queues;  // ids of what is not raw, by stream
  };
  // What one rank has done of its program.
  struct Progress {
    TaskWindow window;
    std::array<std::uint32_t, kStreams> ended{};  // by queue
  };

  void append(Program& program, Task task, bool joins = false);
  std::uint32_t ended_places(std::uint32_t rank, std::uint32_t queue) const;
  static std::uint32_t calls_before(const Program& program, const Task& task);
  const Program& program(std::uint32_t rank) const { return programs_[program_of_[rank]]; }
  Program& own_program(std::uint32_t rank);

  std::string job_name_;
  std::uint32_t iterations_ = 1;
  std::vector<Work> works_;
  std::vector<std::string> names_;
  std::vector<std::vector<std::uint32_t>> groups_;
  std::deque<BlockCounts> counts_;         // addresses hold
  std::deque<OwnAlgorithm> algorithms_;    // the same
  std::vector<Program> programs_{1};       // 0: what ranks without a program of their own run
  std::vector<std::uint32_t> program_of_;  // by rank
  std::vector<Progress> progress_;         // by rank
  std::uint32_t lookahead_ = 1;
  Time least_pause_ = 0;
};

}  // namespace netsim
