#include "sim/jobs/launch_check.h"

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/core/event_loop.h"
#include "sim/jobs/job_set.h"
#include "sim/jobs/task_parts.h"

namespace netsim {
namespace {

// OneIteration: the first iteration of a source, handed out by the edges of its graph. Copies to hosts,
// requests for circuits, collectives with a pause and the work of hosts are computations, which take no time.
class OneIteration final : public TaskSource {
 public:
  OneIteration(const TaskSource& source, std::vector<TaskGraph> graphs)
      : source_(source), graphs_(std::move(graphs)), works_{instant_work()} {
    for (TaskGraph& graph : graphs_) add_rank(graph);
  }

  const std::string& job_name() const override { return source_.job_name(); }
  std::uint32_t ranks() const override { return source_.ranks(); }
  const std::vector<Work>& works() const override { return works_; }
  const std::vector<std::string>& names() const override { return source_.names(); }
  std::string name(std::uint32_t index) const override { return source_.name(index); }
  const std::vector<RankId>& group(GroupId id) const override { return source_.group(id); }
  double model_flops() const override { return 0; }
  std::optional<std::uint32_t> iterations() const override { return 1; }
  std::optional<std::uint64_t> total_tasks() const override { return std::nullopt; }
  bool for_each_task(RankId, const Visitor&) const override { return false; }

  void start(RankId rank, std::vector<Task>& ready) override {
    for (std::uint32_t i = 0; i < graphs_[rank].tasks.size(); ++i) {
      if (progress_[rank].waits[i] == 0) hand_out(rank, i, ready);
    }
  }
  void complete(RankId rank, TaskId task, std::vector<Task>& ready) override {
    Progress& progress = progress_[rank];
    ++progress.ended;
    for (const std::uint32_t next : graphs_[rank].successors.of(task)) {
      if (--progress.waits[next] == 0) hand_out(rank, next, ready);
    }
  }
  std::uint32_t open_iteration(RankId rank) const override {
    return progress_[rank].ended == graphs_[rank].tasks.size() ? kNoIteration : 0;
  }
  std::vector<Task> held_back(RankId rank) const override {
    FirstOfStreams first;
    for (std::uint32_t i = 0; i < graphs_[rank].tasks.size(); ++i) {
      if (progress_[rank].waits[i] > 0 && !first.take(graphs_[rank].tasks[i])) break;
    }
    return first.tasks();
  }

 private:
  struct Progress {
    std::vector<std::uint32_t> waits;  // by task: tasks before it that have not ended
    std::size_t ended = 0;
  };

  static Work instant_work() {
    Kernel kernel;
    kernel.kind = Kernel::Kind::fixed;
    return {"instant", {kernel}};
  }
  void add_rank(TaskGraph& graph) {
    Progress progress;
    progress.waits.resize(graph.tasks.size(), 0);
    for (std::uint32_t i = 0; i < graph.tasks.size(); ++i) {
      for (const std::uint32_t next : graph.successors.of(i)) ++progress.waits[next];
    }
    for (std::uint32_t i = 0; i < graph.tasks.size(); ++i) {
      Task& task = graph.tasks[i];
      task.not_before = 0;
      const bool launched = task.kind() == TaskKind::collective && task.collective().pause == 0;
      if (launched || is_point_to_point(task)) continue;
      task.body = ComputeTask{0};
      task.queue = Task::kUnordered;  // the graph has the order of computations
    }
    progress_.push_back(std::move(progress));
  }
  void hand_out(RankId rank, std::uint32_t task, std::vector<Task>& ready) {
    ready.push_back(graphs_[rank].tasks[task]);
  }

  const TaskSource& source_;
  std::vector<TaskGraph> graphs_;
  std::vector<Work> works_;
  std::vector<Progress> progress_;
};

// InstantExecutor: ends an operation as soon as its members have started it, and a send at once.
class InstantExecutor final : public Executor {
 public:
  explicit InstantExecutor(EventLoop& loop, std::uint32_t origin) : loop_(loop), origin_(origin) {
    loop_.set_handler<&InstantExecutor::act>(EventKind::executor, *this);
  }
  // Calls `action` at `time`, in an event.
  void at(Time time, std::function<void()> action) {
    std::size_t index = actions_.size();
    if (free_.empty()) {
      actions_.push_back(std::move(action));
    } else {
      index = free_.back();
      free_.pop_back();
      actions_[index] = std::move(action);
    }
    loop_.schedule(time, origin_, EventKind::executor, 0, index);
  }

  void set_listener(CommunicationListener* listener) override { listener_ = listener; }
  std::uint32_t start(GpuId gpu, const CommunicationRequest& request) override {
    const bool message = !is_collective(request.kind);
    std::vector<Entered>& entered = entered_[request.communication];
    if (message && request.index == 0) end({gpu, request, loop_.now()});
    entered.push_back({gpu, request, loop_.now()});
    if (entered.size() < request.members->size()) return 1;
    for (const Entered& member : entered) {
      if (!message || member.request.index == 1) end(member);
    }
    entered_.erase(request.communication);
    return 1;
  }
  void set_trace(TransferTrace) override {}
  std::vector<std::string> waiting(std::size_t) const override { return {}; }
  Bytes scale_out_bytes(GpuId, const CommunicationRequest&) override { return 0; }
  LibraryChoice choice(const CommunicationRequest&) override { return {}; }
  std::string nccl_graph(const std::vector<GpuId>&) override { return {}; }
  void for_each_batch(GpuId, const CommunicationRequest&, const BatchVisitor&) override {}
  void message_delivered(const Delivery&) override {}
  void message_sent(const SendCompletion&) override {}

 private:
  struct Entered {
    GpuId gpu;
    CommunicationRequest request;
    Time at;
  };
  void end(const Entered& member) {
    at(loop_.now(), [this, member] { listener_->communication_done(member.gpu, member.request, member.at); });
  }
  void act(const Event& event) {
    const std::function<void()> action = std::exchange(actions_[event.argument], nullptr);
    free_.push_back(event.argument);
    action();
  }

  EventLoop& loop_;
  Origin origin_;
  CommunicationListener* listener_ = nullptr;
  std::unordered_map<std::uint64_t, std::vector<Entered>> entered_;  // by operation; looked up only
  std::vector<std::function<void()>> actions_;
  std::vector<std::size_t> free_;
};

// Returns the graphs of all ranks, or nothing if one has none.
std::optional<std::vector<TaskGraph>> graphs_of(const TaskSource& source, const AgreedLaunches& agreed) {
  std::vector<TaskGraph> graphs;
  for (RankId rank = 0; rank < source.ranks(); ++rank) {
    std::optional<TaskGraph> graph = source.graph(rank, agreed);
    if (!graph) return std::nullopt;
    graphs.push_back(std::move(*graph));
  }
  return graphs;
}

// Returns the lines of Job::circle() at the end of the play.
std::vector<std::string> play(OneIteration& tasks, const std::shared_ptr<const TaskScheduling>& scheduling) {
  const std::uint32_t ranks = tasks.ranks();
  const std::vector<std::uint32_t> one_set(ranks, 0);
  std::vector<GpuId> gpus;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) gpus.emplace_back(rank);
  EventLoop loop;
  InstantExecutor executor(loop, 0);
  ComputeDevices devices({&loop}, one_set, {}, 1);
  JobSet jobs({&loop}, one_set, executor, devices, 1 + 2 * ranks, {});
  jobs.set_decisions([&](std::uint32_t, Time time, Origin&, const LaunchDecision& decision) {
    executor.at(time, [&jobs, decision] { jobs.decided(decision); });
  });
  const WorkDurations times({0});
  jobs.add({tasks.job_name(), &tasks, &times, gpus, 0, 0, scheduling});
  jobs.start(0);
  loop.run();
  jobs.call_schedulers();
  loop.run();
  return jobs.done() ? std::vector<std::string>() : jobs.job(0).circle();
}

}  // namespace

bool is_checked(const TaskSource& source, const TaskScheduling& scheduling) {
  constexpr std::uint64_t kMostTasks = 2'000'000;
  const auto total = source.total_tasks();
  const auto iterations = source.iterations();
  return scheduling.agreed && total && iterations && *iterations > 0 && *total / *iterations <= kMostTasks &&
         source.graph(0, {}).has_value();
}

void check_launches(const TaskSource& source, const std::shared_ptr<const TaskScheduling>& scheduling,
                    const Place& place) {
  if (!is_checked(source, *scheduling)) return;
  std::optional<std::vector<TaskGraph>> graphs = graphs_of(source, agreed_launches(scheduling));
  if (!graphs) return;
  OneIteration tasks(source, std::move(*graphs));
  const std::vector<std::string> circle = play(tasks, scheduling);
  if (circle.empty()) return;
  constexpr std::size_t kNamed = 5;  // the first line says what is wrong
  std::string message = circle.front() + ": ";
  for (std::size_t i = 1; i < circle.size() && i < kNamed; ++i) message += (i == 1 ? "" : "; ") + circle[i];
  throw InputError(place, message + (circle.size() > kNamed ? "; ..." : ""));
}

}  // namespace netsim
