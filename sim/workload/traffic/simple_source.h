// SimpleSource: a TaskSource whose tasks are added one by one, for traffic patterns, collective benchmarks
// and tests.
//
// Each stream of a rank is one queue, with tasks in the order in which they were added. Raw messages are an
// exception: each is a transfer of its own, as of an application that posts all it has. It is ready at the
// start, unless Task::not_before delays it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/collectives/own_algorithm.h"
#include "sim/workload/task_source.h"
#include "sim/workload/task_window.h"

namespace netsim {

class SimpleSource final : public TaskSource {
 public:
  // Every rank begins without tasks.
  SimpleSource(std::string job_name, std::uint32_t ranks);

  // Returns the index of a name for tables, as in Task::name. The same text gets the same index.
  std::uint32_t add_name(const std::string& name);
  std::uint32_t add_work(Work work);
  std::uint32_t add_group(std::vector<RankId> ranks);
  // Returns the address for CollectiveTask::counts.
  const BlockCounts* add_counts(BlockCounts counts) { return &counts_.emplace_back(std::move(counts)); }
  // Returns the address for CollectiveTask::algorithm.
  const OwnAlgorithm* add_algorithm(OwnAlgorithm algorithm) {
    return &algorithms_.emplace_back(std::move(algorithm));
  }
  // Appends a task to the rank's program and sets its id.
  void add_task(RankId rank, Task task);
  // Appends a communication that is one call with the last task of its stream, which must be a communication
  // too.
  void join_task(RankId rank, Task task);
  // Appends the task to the program of every rank. Ranks without tasks of their own share one program.
  void add_task_everywhere(Task task);
  // Adds a raw message: the send at `from` and the receive at `to`. Messages of one pair of ranks must differ
  // in `tag`.
  void add_message(std::uint32_t from, std::uint32_t to, std::uint32_t tag, Bytes bytes, Time not_before,
                   std::uint32_t name);

  const std::string& job_name() const override { return job_name_; }
  std::uint32_t ranks() const override { return static_cast<std::uint32_t>(program_of_.size()); }
  // Returns the largest Task::iteration + 1.
  std::optional<std::uint32_t> iterations() const override { return iterations_; }
  const std::vector<Work>& works() const override { return works_; }
  const std::vector<std::string>& names() const override { return names_; }
  const std::vector<RankId>& group(GroupId id) const override { return groups_[id]; }
  Time least_pause() const override { return least_pause_; }
  std::optional<std::uint64_t> total_tasks() const override;
  bool for_each_task(RankId rank, const Visitor& visit) const override;
  std::optional<std::vector<TaskWait>> waits(RankId) const override { return std::vector<TaskWait>(); }
  void start(RankId rank, std::vector<Task>& ready) override;
  void complete(RankId rank, TaskId task, std::vector<Task>& ready) override;
  std::uint32_t open_iteration(RankId rank) const override;
  std::vector<Task> held_back(RankId rank) const override;
  double model_flops() const override { return 0; }

 private:
  // Program: the tasks that ranks with equal programs share.
  struct Program {
    std::vector<Task> tasks;
    std::array<std::vector<std::uint32_t>, kStreams> queues;  // ids of tasks that are not raw, by stream
  };
  // Progress: the part of its program that one rank has done.
  struct Progress {
    TaskWindow window;
    std::array<std::uint32_t, kStreams> ended{};  // by queue: number of ended tasks
  };

  void append(Program& program, Task task, bool joins = false);
  static void enqueue(Program& program, Task& task, bool joins);
  static void join_call(Program& program, Task& task, const std::vector<std::uint32_t>& queue);
  std::uint32_t ended_places(RankId rank, std::uint32_t queue) const;
  static std::uint32_t calls_before(const Program& program, const Task& task);
  const Program& program(RankId rank) const { return programs_[program_of_[rank]]; }
  Program& own_program(RankId rank);

  std::string job_name_;
  std::uint32_t iterations_ = 1;
  std::vector<Work> works_;
  std::vector<std::string> names_;
  std::vector<std::vector<RankId>> groups_;
  std::deque<BlockCounts> counts_;         // a deque, so that addresses stay valid
  std::deque<OwnAlgorithm> algorithms_;    // a deque, so that addresses stay valid
  std::vector<Program> programs_{1};       // program 0 is that of ranks without tasks of their own
  std::vector<std::uint32_t> program_of_;  // by rank
  std::vector<Progress> progress_;         // by rank
  Time least_pause_ = 0;
};

}  // namespace netsim
