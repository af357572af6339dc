// BusySource: a job that only keeps its GPUs busy for a time, without any communication. It stands for a job
// of which no more than its duration is known, as in traces of clusters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/units.h"
#include "sim/workload/task_source.h"

namespace netsim {

class BusySource final : public TaskSource {
 public:
  // Every rank computes for `duration` in sum, in so many iterations. They are equal to a picosecond.
  // `duration` is at least 1 ps for each iteration. `notes` are for the user.
  BusySource(std::string job_name, std::uint32_t ranks, Time duration, std::uint32_t iterations,
             std::vector<std::string> notes = {});

  const std::string& job_name() const override { return job_name_; }
  std::uint32_t ranks() const override { return ranks_; }
  const std::vector<Work>& works() const override { return works_; }
  const std::vector<std::string>& names() const override;
  const std::vector<RankId>& group(GroupId) const override { return no_ranks_; }
  std::vector<std::string> reader_notes() const override { return notes_; }
  double model_flops() const override { return 0; }
  Time expected_iteration() const override { return short_; }
  std::optional<std::uint32_t> iterations() const override { return iterations_; }
  std::optional<std::uint64_t> total_tasks() const override { return std::uint64_t{ranks_} * iterations_; }
  bool for_each_task(RankId rank, const Visitor& visit) const override;
  std::optional<std::vector<TaskWait>> waits(RankId rank) const override;
  void open() override { done_.assign(ranks_, 0); }
  void close() override;
  void start(RankId rank, std::vector<Task>& ready) override;
  void complete(RankId rank, TaskId task, std::vector<Task>& ready) override;
  std::uint32_t open_iteration(RankId rank) const override;
  std::vector<Task> held_back(RankId) const override { return {}; }

 private:
  Task task_of(std::uint32_t iteration) const;

  std::string job_name_;
  std::uint32_t ranks_, iterations_;
  Time short_;               // duration of an iteration, rounded down
  std::uint32_t long_ones_;  // so many first iterations are a picosecond longer
  bool closed_ = false;
  std::vector<Work> works_;          // the short iteration, and the long one
  std::vector<std::uint32_t> done_;  // by rank: iterations that have ended; empty before and after the run
  std::vector<RankId> no_ranks_;
  std::vector<std::string> notes_;
};

}  // namespace netsim
