// Task and TaskSource: all that the executor of a job sees of a workload. A role program of a .pb is one
// source; trace readers and generators are others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/collectives/schedule.h"
#include "sim/core/units.h"
#include "sim/transport/transfer_traits.h"

namespace netsim {

// One GPU kernel's work; the compute model turns it into a time.
struct Kernel {
  enum class Kind : std::uint8_t {
    gemm,    // batch x (m x k) * (k x n), element size `element_bytes`
    memory,  // memory-bound: `bytes` through HBM
    fixed    // `duration`, measured or given
  };
  Kind kind = Kind::memory;
  std::string name;  // "qkv_gemm", "layer_norm", ...
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  std::int64_t element_bytes = 2;
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
enum class Stream : std::uint8_t { compute, tp, pp, dp, ep, cp };
inline constexpr int kStreams = 6;
const char* to_string(Stream stream);

enum class TaskKind : std::uint8_t { compute, collective, send, receive };
const char* to_string(TaskKind kind);

struct Task {
  std::uint32_t id = 0;  // dense per rank, in program order
  TaskKind kind = TaskKind::compute;
  Stream stream = Stream::compute;
  bool raw = false;  // send, receive: one message on one queue pair, no collective library
  std::uint32_t iteration = 0;
  std::uint32_t work = 0;  // compute: index in TaskSource::works()
  CollectiveKind collective = CollectiveKind::all_reduce;
  std::uint32_t root = 0;   // broadcast: index in the group
  std::uint32_t group = 0;  // collective: id for TaskSource::group()
  std::uint32_t peer = 0;   // send, receive: the other rank
  std::uint32_t tag =
      0;  // send, receive: both ends name the same; matching is by (sender, receiver, tag) in order
  bool only_of_tag = false;  // send, receive: no other one of this sender and receiver has its tag
  TransferTraits traits;     // of its messages; channel and only_message: of raw ones
  Bytes bytes = 0;
  std::uint32_t name = 0;  // for TaskSource::name()
  Time not_before = 0;     // earliest start (flow lists); 0 = none
};

inline bool is_point_to_point(const Task& task) {
  return task.kind == TaskKind::send || task.kind == TaskKind::receive;
}

// Calls for different ranks may come from different threads at the same time; calls for one rank never do.
// What a source keeps while it is played belongs to one rank each; what ranks share does not change any more
// when the first start() is called. The const functions may be called at any time.
class TaskSource {
 public:
  virtual ~TaskSource() = default;
  virtual const std::string& job_name() const = 0;
  virtual std::uint32_t ranks() const = 0;
  virtual std::uint32_t iterations() const = 0;
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
  // Ranks of a group, in group order. Valid as long as the source; the same group has the same id at all its
  // members.
  virtual const std::vector<std::uint32_t>& group(std::uint32_t id) const = 0;
  virtual std::uint32_t task_count(std::uint32_t rank) const = 0;
  // Any task of a rank, for tables, predictions and stall reports.
  virtual Task task(std::uint32_t rank, std::uint32_t id) const = 0;
  // Appends the tasks that are ready at the start / become ready when `task` completes, in program order.
  // Stream order is the source's business: a task is not ready before its predecessor in its stream is done.
  virtual void start(std::uint32_t rank, std::vector<Task>& ready) = 0;
  virtual void complete(std::uint32_t rank, std::uint32_t task, std::vector<Task>& ready) = 0;
  // The same when a task that Task::not_before held back begins: so a source with many of them can hand them
  // out one after the other. What is appended must itself be held back to a later time.
  virtual void launched(std::uint32_t, std::uint32_t, std::vector<Task>&) {}
  // Things the user should know about what was read ("3 priorities of the file are not used").
  virtual std::vector<std::string> notes() const { return {}; }
  // Floating-point operations of the model in one iteration, all ranks together (0 = unknown).
  virtual double model_flops() const = 0;
};

// "rank 3, stream tp: all_reduce 'dense' (task 7)", for reports and errors.
std::string task_label(const TaskSource& source, std::uint32_t rank, const Task& task);
// InputError: the task cannot be played.
[[noreturn]] void refuse_task(const TaskSource& source, std::uint32_t rank, const Task& task,
                              const std::string& message);

}  // namespace netsim
