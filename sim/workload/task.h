// Task and TaskSource: the interface through which a job reads its workload. A role program of a .pb is one
// source; trace readers and generators are others.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/collectives/block_counts.h"
#include "sim/collectives/plan.h"
#include "sim/compute/compute_times.h"
#include "sim/compute/kernel.h"
#include "sim/compute/stream.h"
#include "sim/core/errors.h"
#include "sim/core/units.h"
#include "sim/transport/transfer_traits.h"

namespace netsim {

class MemoryPlan;
struct OwnAlgorithm;

// A bit of Task::name. Where it is set, the other bits are the number by which the file names the task.
inline constexpr std::uint32_t kNumberedName = 1U << 31;

enum class TaskKind : std::uint8_t {
  compute,
  collective,
  send,
  receive,
  circuits,        // all ranks of a group ask for optical circuits; the task ends when they are up
  copy_to_host,    // copies from the GPU to its host's memory over PCIe, without the collective library
  copy_from_host,  // copies from the host's memory to the GPU
  host_compute     // computes on the CPUs of the GPU's host, which its ranks share
};
const char* to_string(TaskKind kind);

// Task: one task as its source hands it to the job.
//
// `queue` and `place` give its position in a stream queue. A rank launches the tasks of one queue one after
// the other, by place, unless a task scheduler chooses another order. Communications that share a place are a
// grouped call (ncclGroupStart, ncclGroupEnd): one launch when all of them are ready.
//
// The match key identifies a communication at all its members. It is (group, sequence) for collectives and
// circuits, which are counted together, and (sender, receiver, tag, sequence) for messages. It comes from the
// order of the program, never from the order of events.
struct Task {
  static constexpr std::uint32_t kUnordered = UINT32_MAX;

  std::uint32_t id = 0;  // unique in the rank; rises in program order
  TaskKind kind = TaskKind::compute;
  Stream stream = Stream::compute;
  bool raw = false;                  // send, receive: one message on one queue pair, no collective library
  bool only_of_tag = false;          // send, receive: no other message of this pair of ranks has its tag
  std::uint32_t queue = kUnordered;  // the rank's stream queue; kUnordered: it belongs to none
  std::uint32_t place = 0;           // position in the queue: 0, 1, 2, ...
  std::uint32_t together = 1;        // number of tasks with that place
  std::uint32_t sequence = 0;        // number of earlier tasks in the program with the same match key
  std::uint32_t iteration = 0;
  std::uint32_t work = 0;      // compute, host_compute: index in TaskSource::works()
  std::uint32_t circuits = 0;  // circuits: index in TaskSource::circuits()
  CollectiveKind collective = CollectiveKind::all_reduce;
  std::uint32_t root = 0;   // broadcast: index in the group
  std::uint32_t group = 0;  // collective, circuits: id for TaskSource::group()
  std::uint32_t peer = 0;   // send, receive: the other rank
  std::uint32_t tag = 0;    // send, receive: equal at both ends
  TransferTraits traits;    // traits of its messages; channel and only_message apply to raw ones
  Bytes bytes = 0;
  GroupedTraffic grouped;               // collective: the traffic of its grouped call in the same group
  const BlockCounts* counts = nullptr;  // collective with counts; lives as long as the source
  // Collective: the algorithm that runs it, which lives as long as the source. Null stands for the
  // configuration's choice.
  const OwnAlgorithm* algorithm = nullptr;
  // Collective: those with the same number are called back to back and timed together; 0 stands for none.
  std::uint32_t series = 0;
  // Collective: it begins at all members at once, this long after the last member reached it. With 0 each
  // member begins when it reaches it. A pause is at least TaskSource::least_pause().
  Time pause = 0;
  std::uint32_t name = 0;  // for TaskSource::name()
  Time not_before = 0;     // earliest start, from the start of the job (flow lists); 0 for none
};

// Returns what ComputeTimes is asked about a compute or host_compute task.
inline ComputeRequest compute_request(const Task& task) {
  return {.task = task.id,
          .iteration = task.iteration,
          .work = task.work,
          .on_host = task.kind == TaskKind::host_compute};
}

inline bool is_point_to_point(const Task& task) {
  return task.kind == TaskKind::send || task.kind == TaskKind::receive;
}
// Returns whether all members of a group take part in it.
inline bool has_group(const Task& task) {
  return task.kind == TaskKind::collective || task.kind == TaskKind::circuits;
}
// Returns whether the task computes and so has a Task::work.
inline bool has_work(TaskKind kind) { return kind == TaskKind::compute || kind == TaskKind::host_compute; }
inline bool is_copy(TaskKind kind) {
  return kind == TaskKind::copy_to_host || kind == TaskKind::copy_from_host;
}
// Returns whether the task concerns only a GPU and its host.
inline bool is_of_host(TaskKind kind) { return is_copy(kind) || kind == TaskKind::host_compute; }
inline bool is_of_host(const Task& task) { return is_of_host(task.kind); }
// Returns whether the task moves bytes.
inline bool is_communication(TaskKind kind) {
  return kind == TaskKind::collective || kind == TaskKind::send || kind == TaskKind::receive || is_copy(kind);
}
inline bool is_communication(const Task& task) { return is_communication(task.kind); }

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

// TaskSource: a workload as a stream of tasks. The job asks for a rank's tasks as they become ready, and can
// see all of them only where the source allows it. A program of a few blocks, a trace that is read
// during the run and a generator that decides during it are all sources.
//
// Different threads may call it for different ranks at the same time, but never for one rank. The state that
// changes during the run belongs to one rank each. State that ranks share is constant from the first start()
// on. The const functions may be called at any time between calls of the rank.
class TaskSource {
 public:
  static constexpr std::uint32_t kNoIteration = UINT32_MAX;
  using Visitor = std::function<void(const Task&)>;

  virtual ~TaskSource() = default;
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
  // Returns the configurations that tasks of kind `circuits` ask for.
  virtual const std::vector<AskedCircuits>& circuits() const;
  // Returns the ranks of a group in group order, valid as long as the source. A group has the same id at all
  // its members.
  virtual const std::vector<std::uint32_t>& group(std::uint32_t id) const = 0;

  // Returns the smallest Task::pause above 0 of its tasks, or 0 if no task pauses.
  virtual Time least_pause() const { return 0; }
  // Returns whether tasks use the hosts (is_of_host()), so that each GPU needs a path to a CPU.
  virtual bool uses_hosts() const { return false; }
  // Returns what is known of the memory that tasks need, or null.
  virtual const MemoryPlan* memory() const { return nullptr; }

  // ---- The census: facts that are known before the job is simulated

  // Returns the number of iterations, or nothing where only simulating the job tells.
  virtual std::optional<std::uint32_t> iterations() const = 0;
  // Returns how many of the first iterations means leave out, fewer than all. In these the queues and windows
  // of the network, or the offsets between pipeline stages, have not reached their steady state.
  virtual std::uint32_t warm_up() const { return 0; }
  // Returns the number of tasks of all ranks and iterations, or nothing where only simulating the job tells.
  virtual std::optional<std::uint64_t> total_tasks() const = 0;
  // Calls `visit` for every task that the rank will have, in program order, for predictions. Returns false,
  // without a call, where only simulating the job tells.
  virtual bool for_each_task(std::uint32_t rank, const Visitor& visit) const = 0;

  // ---- The run

  // Sets how many tasks of one stream queue may be handed out before the first of them has ended. It is 1
  // unless a task scheduler asks for more. Must be called before the first start().
  virtual void set_lookahead(std::uint32_t tasks) = 0;
  // These append the tasks that are ready at the start, and those that become ready when `task` ends, in
  // program order. The dependencies of a ready task have ended, and its queue has room (set_lookahead()).
  virtual void start(std::uint32_t rank, std::vector<Task>& ready) = 0;
  virtual void complete(std::uint32_t rank, std::uint32_t task, std::vector<Task>& ready) = 0;
  // Called when a task with Task::not_before begins, so that a source with many of them can hand them out one
  // after the other. Each task that it appends must have a later `not_before`.
  virtual void launched(std::uint32_t, std::uint32_t, std::vector<Task>&) {}
  // Returns the first iteration of which a task of the rank has not ended, or kNoIteration when all have. It
  // never falls.
  virtual std::uint32_t open_iteration(std::uint32_t rank) const = 0;
  // Returns the first task of each stream that was not handed out yet, as far as known, for stall reports.
  virtual std::vector<Task> held_back(std::uint32_t rank) const = 0;

  // Returns notes for the user about what was read ("3 priorities of the file are not used").
  virtual std::vector<std::string> notes() const { return {}; }
  // Returns the floating-point operations of the model in one iteration of all ranks, or 0 if unknown.
  virtual double model_flops() const = 0;
};

// FirstOfStreams: keeps the first task of each stream that it is given, for TaskSource::held_back().
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
std::string task_label(const TaskSource& source, std::uint32_t rank, const Task& task);
// Throws InputError because the task cannot be simulated.
[[noreturn]] void refuse_task(const TaskSource& source, std::uint32_t rank, const Task& task,
                              const std::string& message);

}  // namespace netsim
