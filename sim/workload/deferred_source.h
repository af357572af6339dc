// DeferredSource: a source whose tasks are made when its job begins and freed when the job has ended. Until
// then it has only the facts that a run needs of a job that waits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/workload/task_source.h"

namespace netsim {

class DeferredSource final : public TaskSource {
 public:
  using Make = std::function<std::unique_ptr<TaskSource>()>;

  // Facts: what the source knows without its tasks. It is taken from an equal source, which may be freed.
  struct Facts {
    explicit Facts(const TaskSource& source);
    std::uint32_t ranks;
    std::vector<RankAxis> axes;
    std::optional<std::uint32_t> iterations;
    std::optional<std::uint64_t> tasks;
    std::uint32_t warm_up;
    Time least_pause, expected_iteration;
    bool uses_hosts, uses_threads;
    bool own_algorithms;  // its tasks name algorithms, which must live as long as the run
    double model_flops;
    std::vector<Work> works;         // one work without kernels if it computes, else none
    std::vector<std::string> names;  // of its tasks
    std::vector<std::string> notes;
  };
  // Each call of `make` returns an equal source, one with these facts.
  DeferredSource(std::string job_name, std::shared_ptr<const Facts> facts, Make make)
      : job_name_(std::move(job_name)), facts_(std::move(facts)), make_(std::move(make)) {}

  const std::string& job_name() const override { return job_name_; }
  std::uint32_t ranks() const override { return facts_->ranks; }
  std::vector<RankAxis> axes() const override { return facts_->axes; }
  const std::vector<Work>& works() const override { return is_open() ? tasks_->works() : facts_->works; }
  const std::vector<std::string>& names() const override { return facts_->names; }
  std::string name(std::uint32_t index) const override {
    return is_open() ? tasks_->name(index) : TaskSource::name(index);
  }
  std::optional<PipelineMark> pipeline_mark(RankId rank, TaskId task) const override {
    return is_open() ? tasks_->pipeline_mark(rank, task) : std::nullopt;
  }
  const std::vector<RankId>& group(GroupId id) const override { return tasks_->group(id); }
  Time least_pause() const override { return facts_->least_pause; }
  bool uses_hosts() const override { return facts_->uses_hosts; }
  bool uses_threads() const override { return facts_->uses_threads; }
  const MemoryPlan* memory() const override { return is_open() ? tasks_->memory() : nullptr; }
  std::vector<std::string> reader_notes() const override { return facts_->notes; }
  double model_flops() const override { return facts_->model_flops; }
  Time expected_iteration() const override { return facts_->expected_iteration; }
  std::optional<std::uint32_t> iterations() const override { return facts_->iterations; }
  std::uint32_t warm_up() const override { return facts_->warm_up; }
  std::optional<std::uint64_t> total_tasks() const override { return facts_->tasks; }
  bool for_each_task(RankId rank, const Visitor& visit) const override {
    return is_open() && tasks_->for_each_task(rank, visit);
  }
  std::optional<TaskGraph> graph(RankId rank, const AgreedLaunches& agreed) const override {
    return is_open() ? tasks_->graph(rank, agreed) : std::nullopt;
  }
  std::optional<std::vector<TaskWait>> waits(RankId rank) const override {
    return is_open() ? tasks_->waits(rank) : std::nullopt;
  }

  bool is_open() const { return tasks_ != nullptr; }
  void open() override;
  void close() override {
    if (!facts_->own_algorithms) tasks_.reset();
  }
  void release_communications(AgreedLaunches agreed) override {
    tasks_->release_communications(std::move(agreed));
  }
  void start(RankId rank, std::vector<Task>& ready) override { tasks_->start(rank, ready); }
  void complete(RankId rank, TaskId task, std::vector<Task>& ready) override {
    tasks_->complete(rank, task, ready);
  }
  void launched(RankId rank, TaskId task, std::vector<Task>& ready) override {
    tasks_->launched(rank, task, ready);
  }
  std::uint32_t open_iteration(RankId rank) const override {
    return is_open() ? tasks_->open_iteration(rank) : kNoIteration;
  }
  std::vector<Task> held_back(RankId rank) const override {
    return is_open() ? tasks_->held_back(rank) : std::vector<Task>();
  }

 private:
  std::string job_name_;
  std::shared_ptr<const Facts> facts_;
  Make make_;
  std::unique_ptr<TaskSource> tasks_;  // null unless the job runs
};

}  // namespace netsim
