// ScriptedSource: a TaskSource written down task by task, with dependencies, for tests. Each stream of a rank
// is a queue; `after` names tasks of the rank to wait for. Tasks are handed out as soon as these have ended,
// however far back in their queue they are.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "sim/workload/task_source.h"
#include "tests/support/task_bodies.h"

namespace netsim::test {

class ScriptedSource final : public TaskSource {
 public:
  explicit ScriptedSource(std::uint32_t ranks) : programs_(ranks) {}

  std::uint32_t add_work(Time duration) {
    Kernel kernel;
    kernel.kind = Kernel::Kind::fixed;
    kernel.duration = duration;
    works_.push_back({"work", {kernel}});
    return static_cast<std::uint32_t>(works_.size() - 1);
  }
  GroupId add_group(std::vector<RankId> ranks) {
    groups_.push_back(std::move(ranks));
    return static_cast<std::uint32_t>(groups_.size() - 1);
  }
  std::uint32_t add(std::uint32_t rank, Task task, const std::vector<std::uint32_t>& after = {}) {
    Program& program = programs_[rank];
    task.id = static_cast<std::uint32_t>(program.size());
    task.queue = static_cast<std::uint32_t>(task.stream);
    for (const Step& before : program) {
      if (before.task.queue == task.queue) ++task.place;
      if (have_same_match_key(before.task, task)) ++task.sequence;
    }
    program.push_back({task, {}, 0, false});
    for (std::uint32_t before : after) link(program, before, task.id);
    if (task.iteration >= iterations_) iterations_ = task.iteration + 1;
    return task.id;
  }
  std::uint32_t compute(std::uint32_t rank, Time duration, const std::vector<std::uint32_t>& after = {}) {
    Task task;
    task.body = ComputeTask{add_work(duration)};
    return add(rank, task, after);
  }
  std::uint32_t message(std::uint32_t rank, TaskKind kind, std::uint32_t peer, std::uint32_t tag,
                        const std::vector<std::uint32_t>& after = {}) {
    Task task;
    task.stream = Stream::pp;
    task.body = test::message(kind, peer, 8, tag);
    return add(rank, task, after);
  }
  std::uint32_t all_reduce(std::uint32_t rank, std::uint32_t group, Stream stream,
                           const std::vector<std::uint32_t>& after = {}) {
    Task task;
    task.stream = stream;
    task.body = test::collective(CollectiveKind::all_reduce, group, 64);
    return add(rank, task, after);
  }
  std::uint32_t circuits(std::uint32_t rank, std::uint32_t group, const std::string& configuration,
                         const std::vector<std::uint32_t>& after = {}, std::uint32_t iteration = 0) {
    Task task;
    task.stream = Stream::dp;
    task.iteration = iteration;
    const auto at = std::find_if(circuits_.begin(), circuits_.end(),
                                 [&](const AskedCircuits& known) { return known.name == configuration; });
    task.body = CircuitsTask{static_cast<std::uint32_t>(at - circuits_.begin()), group};
    if (at == circuits_.end()) circuits_.push_back({configuration, {"script", 1, 0, ""}});
    return add(rank, task, after);
  }
  std::vector<Time> durations() const {
    std::vector<Time> durations;
    for (const Work& work : works_) durations.push_back(work.kernels[0].duration);
    return durations;
  }

  const std::string& job_name() const override { return job_name_; }
  std::uint32_t ranks() const override { return static_cast<std::uint32_t>(programs_.size()); }
  std::optional<std::uint32_t> iterations() const override { return iterations_; }
  std::uint32_t warm_up() const override { return warm_up_iterations; }
  const std::vector<Work>& works() const override { return works_; }
  const std::vector<std::string>& names() const override { return names_; }
  const std::vector<AskedCircuits>& circuits() const override { return circuits_; }
  const std::vector<RankId>& group(GroupId id) const override { return groups_.at(id); }
  std::uint32_t task_count(std::uint32_t rank) const {
    return static_cast<std::uint32_t>(programs_[rank].size());
  }
  Task task(std::uint32_t rank, std::uint32_t id) const { return programs_[rank][id].task; }
  std::optional<std::uint64_t> total_tasks() const override {
    if (!census) return std::nullopt;
    std::uint64_t sum = 0;
    for (const Program& program : programs_) sum += program.size();
    return sum;
  }
  bool for_each_task(RankId rank, const Visitor& visit) const override {
    if (!census) return false;
    for (const Step& step : programs_[rank]) visit(step.task);
    return true;
  }
  void start(RankId rank, std::vector<Task>& ready) override {
    for (const Step& step : programs_[rank]) {
      if (step.waits == 0) ready.push_back(step.task);
    }
  }
  void complete(RankId rank, TaskId task, std::vector<Task>& ready) override {
    programs_[rank][task].ended = true;
    for (std::uint32_t next : programs_[rank][task].next) {
      if (--programs_[rank][next].waits == 0) ready.push_back(programs_[rank][next].task);
    }
  }
  std::uint32_t open_iteration(RankId rank) const override {
    std::uint32_t open = kNoIteration;
    for (const Step& step : programs_[rank]) {
      if (!step.ended) open = std::min(open, step.task.iteration);
    }
    return open;
  }
  std::vector<Task> held_back(RankId rank) const override {
    FirstOfStreams first;
    for (const Step& step : programs_[rank]) {
      if (step.waits > 0 && !first.take(step.task)) break;
    }
    return first.tasks();
  }
  double model_flops() const override { return 0; }

  bool census = true;  // whether it states its tasks before it runs
  std::uint32_t warm_up_iterations = 0;

 private:
  struct Step {
    Task task;
    std::vector<std::uint32_t> next;
    std::uint32_t waits = 0;
    bool ended = false;
  };
  using Program = std::vector<Step>;

  static void link(Program& program, std::uint32_t before, std::uint32_t after) {
    program[before].next.push_back(after);
    ++program[after].waits;
  }

  std::string job_name_ = "scripted";
  std::uint32_t iterations_ = 1;
  std::vector<Work> works_;
  std::vector<std::string> names_{"step"};
  std::vector<AskedCircuits> circuits_;
  std::vector<std::vector<RankId>> groups_;
  std::vector<Program> programs_;
};

}  // namespace netsim::test
