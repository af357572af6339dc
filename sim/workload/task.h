// Task and TaskSource: all that the executor of a job sees of a workload. A role program of a .pb is one
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
#include "sim/core/errors.h"
#include "sim/core/units.h"
#include "sim/transport/transfer_traits.h"

namespace netsim {

class MemoryPlan;
struct OwnAlgorithm;

// Of a kernel's multiplications. `half`: bf16 or fp16, which have one rate; `fp32` without tensor cores,
// `tf32` with them; `fp8` and `fp4` with whatever scales their formats have (MXFP8, NVFP4).
enum class Precision : std::uint8_t { half, fp32, tf32, fp8, fp4 };
const char* to_string(Precision precision);
// Of an element that is multiplied.
std::int64_t operand_bits(Precision precision);

// One GPU kernel's work; the compute model turns it into a time.
struct Kernel {
  enum class Kind : std::uint8_t {
    gemm,    // batch x (m x k) * (k x n), operands as `precision` has them, results of `element_bytes`
    memory,  // memory-bound: `bytes` through HBM
    fixed,   // `duration`, measured or given
    // Fused attention: for each of `batch` heads 2 m n k operations, of which the m x n scores never leave
    // the chip, and `bytes` through HBM. m queries, n keys that each of them sees on average, k: the head
    // size times the matrix products (2 forward, 5 backward with the forward's scores computed again).
    attention
  };
  Kind kind = Kind::memory;
  std::string name;  // "qkv_gemm", "layer_norm", ...
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  std::int64_t element_bytes = 2;
  Precision precision = Precision::half;  // of a GEMM or of attention
  // A GEMM is one of so many alike pieces of one, which run in turn on streams of their own, so that the next
  // piece fills the multiprocessors that the last wave of a piece leaves idle. m is the piece's.
  std::int64_t pieces = 1;
  bool backward = false;         // of attention, which is slower then
  bool weight_gradient = false;  // of a GEMM: computes gradients of weights
  bool accumulates = false;      // of a GEMM: adds its results to those that are there
  // Multiprocessors that kernels of a communication hold while this one multiplies on the others.
  std::int64_t held_multiprocessors = 0;
  Bytes bytes = 0;
  Time duration = 0;
};

// Bit of a Task::name: the other bits are what the file calls the task, a number.
inline constexpr std::uint32_t kNumberedName = 1U << 31;

// What a compute task does: kernels run one after the other.
struct Work {
  std::string name;  // "attention_forward"
  std::vector<Kernel> kernels;
};

// CUDA-like streams of a rank: tasks of one stream run in program order. The stream of a communication is
// also the kind under which its exposed time is reported.
// `io`: to and from storage. `offload`: to and from the host's memory, and what its CPUs compute.
enum class Stream : std::uint8_t { compute, tp, pp, dp, ep, cp, io, offload };
inline constexpr int kStreams = 8;
inline constexpr std::array kCommunicationStreams{Stream::tp, Stream::pp, Stream::dp,     Stream::ep,
                                                  Stream::cp, Stream::io, Stream::offload};
const char* to_string(Stream stream);

enum class TaskKind : std::uint8_t {
  compute,
  collective,
  send,
  receive,
  circuits,      // the optical circuits are asked for by all of a group, and the task ends when they are lit
  copy_to_host,  // from the GPU to its host's memory, over PCIe, without the collective library
  copy_from_host,  // the other way
  host_compute     // on the CPUs of the GPU's host, which its ranks share
};
const char* to_string(TaskKind kind);

// A task as its source hands it to the job: what it does, and three things that say how it stands to others.
// Its stream queue and place there: tasks of one queue of a rank are launched one after the other, by place,
// unless a task scheduler takes them in another order. Communications that share a place are a grouped call,
// as between ncclGroupStart and ncclGroupEnd: one launch, when all of them are ready. Its match key: (group,
// sequence) for a collective or for circuits, which are counted together, (sender, receiver, tag, sequence)
// for a message, the same at all members; it comes from the order of the program, never from the order in
// which things happen.
struct Task {
  static constexpr std::uint32_t kUnordered = UINT32_MAX;

  std::uint32_t id = 0;  // unique in the rank, rising in program order
  TaskKind kind = TaskKind::compute;
  Stream stream = Stream::compute;
  bool raw = false;                  // send, receive: one message on one queue pair, no collective library
  bool only_of_tag = false;          // send, receive: no other one of this sender and receiver has its tag
  std::uint32_t queue = kUnordered;  // the rank's stream queue; kUnordered: it waits for no other's end
  std::uint32_t place = 0;           // in the queue: 0, 1, 2, ...
  std::uint32_t together = 1;        // tasks of that place
  std::uint32_t sequence = 0;        // how many tasks with the same match key go before it in the program
  std::uint32_t iteration = 0;
  std::uint32_t work = 0;      // compute, host_compute: index in TaskSource::works()
  std::uint32_t circuits = 0;  // circuits: index in TaskSource::circuits()
  CollectiveKind collective = CollectiveKind::all_reduce;
  std::uint32_t root = 0;   // broadcast: index in the group
  std::uint32_t group = 0;  // collective, circuits: id for TaskSource::group()
  std::uint32_t peer = 0;   // send, receive: the other rank
  std::uint32_t tag = 0;    // send, receive: both ends name the same
  TransferTraits traits;    // of its messages; channel and only_message: of raw ones
  Bytes bytes = 0;
  GroupedTraffic grouped;               // of collectives: those of the same group in a grouped call
  const BlockCounts* counts = nullptr;  // of collectives with counts; as long as the source
  // Of a collective: what runs it, as long as the source; null: what the configuration says.
  const OwnAlgorithm* algorithm = nullptr;
  // Of collectives: those of one number are called back to back and timed together; 0: each by itself.
  std::uint32_t series = 0;
  // Of a collective: it begins so long after the last of its group has come to it, at all members at once; 0:
  // at each when it comes. No less than TaskSource::least_pause().
  Time pause = 0;
  std::uint32_t name = 0;  // for TaskSource::name()
  Time not_before = 0;     // earliest start, from the start of the job (flow lists); 0 = none
};

inline bool is_point_to_point(const Task& task) {
  return task.kind == TaskKind::send || task.kind == TaskKind::receive;
}
// All members of a group meet in it.
inline bool has_group(const Task& task) {
  return task.kind == TaskKind::collective || task.kind == TaskKind::circuits;
}
// Computes: it has a Task::work.
inline bool has_work(TaskKind kind) { return kind == TaskKind::compute || kind == TaskKind::host_compute; }
inline bool is_copy(TaskKind kind) {
  return kind == TaskKind::copy_to_host || kind == TaskKind::copy_from_host;
}
// Between a GPU and its host, without any other rank.
inline bool is_of_host(TaskKind kind) { return is_copy(kind) || kind == TaskKind::host_compute; }
inline bool is_of_host(const Task& task) { return is_of_host(task.kind); }
// Moves bytes.
inline bool is_communication(TaskKind kind) {
  return kind == TaskKind::collective || kind == TaskKind::send || kind == TaskKind::receive || is_copy(kind);
}
inline bool is_communication(const Task& task) { return is_communication(task.kind); }

// A configuration of the optical switches that tasks ask for.
struct AskedCircuits {
  std::string name;
  Place place;  // where it is asked for first
};

// One axis of the grid of ranks that a strategy works on ("tp", 8): rank = mixed radix number, first axis
// fastest.
struct RankAxis {
  std::string name;
  std::uint32_t size = 1;
};

// A workload as a stream of tasks: a rank's tasks are asked for as they become ready, and nobody can look at
// all of them unless the source says so. A program of a few blocks, a trace that is read while it is played
// and a generator that decides as it goes are all sources.
//
// Calls for different ranks may come from different threads at the same time; calls for one rank never do.
// What a source keeps while it is played belongs to one rank each; what ranks share does not change any more
// when the first start() is called. The const functions may be called at any time between calls of the rank.
class TaskSource {
 public:
  static constexpr std::uint32_t kNoIteration = UINT32_MAX;
  using Visitor = std::function<void(const Task&)>;

  virtual ~TaskSource() = default;
  virtual const std::string& job_name() const = 0;
  virtual std::uint32_t ranks() const = 0;
  // The last so many ranks are not GPUs but the drives of storage servers, those of WorkloadContext::drives
  // in their order: placements are about the others only.
  virtual std::uint32_t storage_ranks() const { return 0; }
  // The grid that the ranks are numbered by, for placements; empty: a plain list of ranks.
  virtual std::vector<RankAxis> axes() const { return {}; }
  virtual const std::vector<Work>& works() const = 0;
  virtual const std::vector<std::string>& names() const = 0;
  // What tables call a task: that of names(), unless the source has names that it makes when they are asked
  // for (a million flows with numbers).
  virtual std::string name(std::uint32_t index) const {
    return index < names().size() ? names()[index] : std::string("?");
  }
  // Of a flow list in the notation of ns-3: the destination's port of each flow, by its number there; null
  // for all else.
  virtual const std::vector<std::uint16_t>* ns3_ports() const { return nullptr; }
  // What tasks of kind `circuits` ask for; empty: there are none.
  virtual const std::vector<AskedCircuits>& circuits() const;
  // Ranks of a group, in group order. Valid as long as the source; the same group has the same id at all its
  // members.
  virtual const std::vector<std::uint32_t>& group(std::uint32_t id) const = 0;

  // The least Task::pause of its tasks; 0: none of them pauses.
  virtual Time least_pause() const { return 0; }
  // Whether ranks have tasks of their hosts (is_of_host()), so that each GPU needs a way to a CPU.
  virtual bool uses_hosts() const { return false; }
  // What is known of the memory that tasks need; null: nothing.
  virtual const MemoryPlan* memory() const { return nullptr; }

  // ---- The census: what is known before the job is played

  // Iterations of the job; nothing where only playing it will tell.
  virtual std::optional<std::uint32_t> iterations() const = 0;
  // The first iterations, fewer than all, that means leave out: the network's queues, windows and clocks are
  // not yet what they will be, or the pipeline's ranks not yet apart.
  virtual std::uint32_t warm_up() const { return 0; }
  // Tasks of all ranks and iterations; nothing where only playing it will tell.
  virtual std::optional<std::uint64_t> total_tasks() const = 0;
  // Calls `visit` for every task that the rank will have, in program order, for predictions. False, and no
  // call, where only playing the job will tell.
  virtual bool for_each_task(std::uint32_t rank, const Visitor& visit) const = 0;

  // ---- Playing

  // How many tasks of one stream queue may be handed out before the first of them has ended: 1 unless a task
  // scheduler asks for more to choose from. Before the first start().
  virtual void set_lookahead(std::uint32_t tasks) = 0;
  // Appends the tasks that are ready at the start / become ready when `task` ends, in program order: their
  // dependencies have ended, and their queue has room for them (set_lookahead()).
  virtual void start(std::uint32_t rank, std::vector<Task>& ready) = 0;
  virtual void complete(std::uint32_t rank, std::uint32_t task, std::vector<Task>& ready) = 0;
  // The same when a task that Task::not_before held back begins: so a source with many of them can hand them
  // out one after the other. What is appended must itself be held back to a later time.
  virtual void launched(std::uint32_t, std::uint32_t, std::vector<Task>&) {}
  // The first iteration of which the rank has a task that has not ended; kNoIteration: all its tasks have.
  // It never falls.
  virtual std::uint32_t open_iteration(std::uint32_t rank) const = 0;
  // For stall reports: as far as they are known, the first task of each stream that was not handed out yet.
  virtual std::vector<Task> held_back(std::uint32_t rank) const = 0;

  // Things the user should know about what was read ("3 priorities of the file are not used").
  virtual std::vector<std::string> notes() const { return {}; }
  // Floating-point operations of the model in one iteration, all ranks together (0 = unknown).
  virtual double model_flops() const = 0;
};

// Keeps the first task of each stream that it is shown, for TaskSource::held_back().
class FirstOfStreams {
 public:
  // False when every stream has one.
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

// "rank 3, stream tp: all_reduce 'dense' (task 7)", for reports and errors.
std::string task_label(const TaskSource& source, std::uint32_t rank, const Task& task);
// InputError: the task cannot be played.
[[noreturn]] void refuse_task(const TaskSource& source, std::uint32_t rank, const Task& task,
                              const std::string& message);

}  // namespace netsim
