// TaskSource: the interface through which a job reads its workload. A role program of a .pb is one source;
// readers of traces and generators are others. It has three parts, and most users need one of them.
// These are the description of the workload, the census of its tasks, and the stream of tasks during the run.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/compute/kernel.h"
#include "sim/core/adjacency_list.h"
#include "sim/core/errors.h"
#include "sim/core/ids.h"
#include "sim/workload/task.h"

namespace netsim {

class MemoryPlan;
struct Program;

// AskedCircuits: a configuration of the optical switches that tasks ask for.
struct AskedCircuits {
  std::string name;
  Place place;  // place in the workload where it is first asked for
};

// RankAxis: one axis of a strategy's grid of ranks ("tp", 8). A rank is a mixed radix number, in which the
// first axis changes fastest.
struct RankAxis {
  std::string name;
  std::uint32_t size = 1;
};

// WorkloadDescription: the facts about a workload that its tasks refer to by number, and what it needs of the
// cluster. They are constant from TaskStream::start() on, and any thread may ask for them.
class WorkloadDescription {
 public:
  virtual ~WorkloadDescription() = default;
  virtual const std::string& job_name() const = 0;
  virtual std::uint32_t ranks() const = 0;
  // Returns the number of ranks, the last ones, that are not GPUs but drives of storage servers. They follow
  // the order of WorkloadContext::drives, and placements do not concern them.
  virtual std::uint32_t storage_ranks() const { return 0; }
  // Returns the grid by which ranks are numbered, for placements. It is empty for a plain list of ranks.
  virtual std::vector<RankAxis> axes() const { return {}; }
  virtual const std::vector<Work>& works() const = 0;
  virtual const std::vector<std::string>& names() const = 0;
  // Returns the name of a task in tables. A source may make names on demand (a million numbered flows)
  // instead of listing them in names().
  virtual std::string name(std::uint32_t index) const {
    return index < names().size() ? names()[index] : std::string("?");
  }
  // Returns what a task of a pipeline works for, or nothing for other tasks and where the workload does not
  // say it.
  virtual std::optional<PipelineMark> pipeline_mark(RankId, TaskId) const { return std::nullopt; }
  // Returns the configurations that tasks of kind `circuits` ask for.
  virtual const std::vector<AskedCircuits>& circuits() const;
  // Returns the ranks of a group in group order, valid as long as the source. A group has the same id at all
  // its members.
  virtual const std::vector<RankId>& group(GroupId id) const = 0;

  // Returns the smallest CollectiveTask::pause above 0 of its tasks, or 0 if no task pauses.
  virtual Time least_pause() const { return 0; }
  // Returns whether tasks copy to hosts or compute on their CPUs, so that each GPU needs a path to a CPU.
  virtual bool uses_hosts() const { return false; }
  // Returns whether it has tasks of the kind host_thread.
  virtual bool uses_threads() const { return false; }
  // Returns what is known of the memory that tasks need, or null.
  virtual const MemoryPlan* memory() const { return nullptr; }
  // Returns notes for the user about what was read ("3 priorities of the file are not used"), and those of
  // add_note().
  std::vector<std::string> notes() const {
    std::vector<std::string> all = reader_notes();
    all.insert(all.end(), added_notes_.begin(), added_notes_.end());
    return all;
  }
  // Adds a note about the input as a whole, before the run.
  void add_note(std::string note) { added_notes_.push_back(std::move(note)); }
  // Returns the program that a .pb would hold, or null where the workload has none. It may have works beyond
  // those of the file.
  virtual const Program* program() const { return nullptr; }
  // Returns the floating-point operations of the model in one iteration of all ranks, or 0 if unknown.
  virtual double model_flops() const = 0;
  // Returns the time that an iteration takes at least, as far as the workload tells it, or 0.
  virtual Time expected_iteration() const { return 0; }

 private:
  virtual std::vector<std::string> reader_notes() const { return {}; }

  std::vector<std::string> added_notes_;
};

// TaskGraph: the tasks of one iteration of a rank and the order between them. Tasks are named by their
// position in program order, which is Task::id modulo the number of tasks. The tasks are those of the first
// iteration.
//
// An edge is a dependency of the program, or the order of a stream queue between two tasks that are no
// communications. A task scheduler may reorder the communications of a queue, so their order is no edge. Only
// a communication without dependencies keeps its place, and waits for all earlier tasks of its queue.
struct TaskGraph {
  std::vector<Task> tasks;
  AdjacencyList successors;       // tasks of the same iteration that wait for a task
  AdjacencyList next_successors;  // tasks of the next iteration that wait for a task
  // Tasks that wait for all tasks of the iteration before.
  std::vector<std::uint32_t> after_iteration;
};

// TaskWait: a task begins when an earlier one of its rank has ended. Both are positions in program order.
struct TaskWait {
  std::uint32_t earlier = 0, later = 0;
};

// AgreedLaunches: tells under a task scheduler of which collectives the first rank of the group decides when
// all members launch them. Each rank decides for itself about all others, and about all where it is empty.
using AgreedLaunches = std::function<bool(const Task& collective)>;

// TaskCensus: the facts about tasks that are known before the job is simulated, for predictions. A source
// that decides during the run knows none of them.
class TaskCensus {
 public:
  using Visitor = std::function<void(const Task&)>;

  virtual ~TaskCensus() = default;
  // Returns the number of iterations, or nothing where only simulating the job tells.
  virtual std::optional<std::uint32_t> iterations() const = 0;
  // Returns how many of the first iterations means leave out, fewer than all. In these the queues and windows
  // of the network, or the offsets between pipeline stages, have not reached their steady state.
  virtual std::uint32_t warm_up() const { return 0; }
  // Returns the number of tasks of all ranks and iterations, or nothing where only simulating the job tells.
  virtual std::optional<std::uint64_t> total_tasks() const = 0;
  // Calls `visit` for every task that the rank will have, in program order. Returns false, without a call,
  // where only simulating the job tells.
  virtual bool for_each_task(RankId rank, const Visitor& visit) const = 0;
  // Returns the tasks of one iteration of the rank with their order under a task scheduler, which
  // TaskStream::release_communications() describes. It is the same in every iteration. Returns nothing where
  // only simulating the job tells, or where tasks are no iterations (lists of flows).
  virtual std::optional<TaskGraph> graph(RankId, const AgreedLaunches&) const { return std::nullopt; }
  // Returns the waits between tasks of a rank that stream queues do not tell. Only sources without a graph()
  // are asked. Returns nothing where the source does not know them, or where such waits do not say it all.
  virtual std::optional<std::vector<TaskWait>> waits(RankId) const { return std::nullopt; }
};

// TaskStream: the tasks of a workload during the run. The job asks for a rank's tasks as they become ready. A
// program of a few blocks, a trace that is read during the run and a generator that decides during it are all
// streams.
//
// Different threads may call it for different ranks at the same time, but never for one rank. The state that
// changes during the run belongs to one rank each. State that ranks share is constant from the first start()
// on. The const functions may be called at any time between calls of the rank.
class TaskStream {
 public:
  static constexpr std::uint32_t kNoIteration = UINT32_MAX;

  virtual ~TaskStream() = default;
  // Makes what only a running job needs. Called before the first start(), if at all.
  virtual void open() {}
  // Frees what only a running job needs. Called when all tasks of all ranks have ended, if at all. Counts,
  // names and the facts of the census stay as they are.
  virtual void close() {}
  // Lets a task scheduler choose the order of communications. From now on a communication that has
  // dependencies is handed out when they have ended, whatever its place in its stream queue. Computations
  // keep their order, and so do communications without dependencies.
  //
  // A collective without dependencies that is `agreed` keeps its place only at the first rank of its group.
  // The other members get it when its iteration may begin (Task::ahead), so that they can follow that rank.
  // Otherwise they might wait for communications that the scheduler holds until this one has ended.
  //
  // Must be called before the first start(). A source whose tasks have no dependencies does nothing.
  virtual void release_communications(AgreedLaunches /*agreed*/) {}
  // These append the tasks that are ready at the start, and those that become ready when `task` ends, in
  // program order. The dependencies of a ready task have ended, and so have the tasks of earlier
  // places of its queue, except as release_communications() says.
  virtual void start(RankId rank, std::vector<Task>& ready) = 0;
  virtual void complete(RankId rank, TaskId task, std::vector<Task>& ready) = 0;
  // Called when a task with Task::not_before begins, so that a source with many of them can hand them out one
  // after the other. Each task that it appends must have a later `not_before`.
  virtual void launched(RankId, TaskId, std::vector<Task>&) {}
  // Returns the first iteration of which a task of the rank has not ended, or kNoIteration when all have. It
  // never falls.
  virtual std::uint32_t open_iteration(RankId rank) const = 0;
  // Returns the first task of each stream that was not handed out yet, as far as known, for stall reports.
  virtual std::vector<Task> held_back(RankId rank) const = 0;
};

class TaskSource : public WorkloadDescription, public TaskCensus, public TaskStream {};

// FirstOfStreams: keeps the first task of each stream that it is given, for TaskStream::held_back().
class FirstOfStreams {
 public:
  // Keeps the task if it is the first of its stream. Returns false once every stream has one.
  bool take(const Task& task) {
    const auto stream = static_cast<std::size_t>(task.stream);
    if (!std::exchange(known_[stream], true)) tasks_.push_back(task);
    return tasks_.size() < known_.size();
  }
  bool empty() const { return tasks_.empty(); }
  std::vector<Task> tasks() { return std::move(tasks_); }

 private:
  std::array<bool, kStreams> known_{};
  std::vector<Task> tasks_;
};

// Returns "rank 3, stream tp: all_reduce 'dense' (task 7)", for reports and errors.
std::string task_label(const WorkloadDescription& source, RankId rank, const Task& task);
// Throws InputError because the task cannot be simulated.
[[noreturn]] void refuse_task(const WorkloadDescription& source, RankId rank, const Task& task,
                              const std::string& message);

}  // namespace netsim
