// Task: what a rank does next, as a workload gives it to a job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <variant>

#include "sim/collectives/block_counts.h"
#include "sim/collectives/collective_kind.h"
#include "sim/compute/compute_times.h"
#include "sim/core/ids.h"
#include "sim/core/stream.h"
#include "sim/core/units.h"
#include "sim/transport/transfer_traits.h"

namespace netsim {

struct OwnAlgorithm;

// A bit of Task::name. Where it is set, the other bits are the number by which the file names the task.
inline constexpr std::uint32_t kNumberedName = 1U << 31;

// The kinds are in the order of TaskBody.
enum class TaskKind : std::uint8_t {
  compute,
  collective,
  send,
  receive,
  circuits,        // all ranks of a group ask for optical circuits; the task ends when they are up
  copy_to_host,    // copies from the GPU to its host's memory over PCIe, without the collective library
  copy_from_host,  // copies from the host's memory to the GPU
  host_compute,    // computes on the CPUs of the GPU's host, which its ranks share
  host_thread      // computes on a thread of the rank's own process, which nothing slows down
};
const char* to_string(TaskKind kind);

// Payload: the bytes that a communication moves, and how they are carried.
struct Payload {
  Bytes bytes = 0;
  TransferTraits traits;  // channel and only_message act on raw messages only
};

struct ComputeTask {
  std::uint32_t work = 0;  // index in WorkloadDescription::works()
};

struct CollectiveTask : Payload {
  CollectiveKind collective = CollectiveKind::all_reduce;
  std::uint32_t root = 0;               // broadcast and its like: index in the group
  GroupId group = 0;                    // WorkloadDescription::group()
  GroupedTraffic grouped;               // the traffic of its grouped call in the same group
  const BlockCounts* counts = nullptr;  // counts of its blocks, if it has any; lives as long as the source
  // The algorithm that runs it, which lives as long as the source. Null stands for the configuration's
  // choice.
  const OwnAlgorithm* algorithm = nullptr;
  // Collectives with the same number are called back to back and timed together; 0 stands for none.
  std::uint32_t series = 0;
  // It begins at all members at once, this long after the last member reached it. With 0 each member begins
  // when it reaches it. A pause is at least WorkloadDescription::least_pause().
  Time pause = 0;
};

// MessageTask: one end of a message between two ranks.
struct MessageTask : Payload {
  RankId peer = 0;           // the other rank
  std::uint32_t tag = 0;     // equal at both ends
  bool raw = false;          // one message on one queue pair, no collective library
  bool only_of_tag = false;  // no other message of this pair of ranks has its tag
};
struct SendTask : MessageTask {};
struct ReceiveTask : MessageTask {};

struct CircuitsTask {
  std::uint32_t circuits = 0;  // index in WorkloadDescription::circuits()
  GroupId group = 0;
};

struct CopyToHostTask : Payload {};
struct CopyFromHostTask : Payload {};

struct HostComputeTask {
  std::uint32_t work = 0;  // index in WorkloadDescription::works()
};

struct HostThreadTask {
  std::uint32_t work = 0;  // index in WorkloadDescription::works()
};

using TaskBody = std::variant<ComputeTask, CollectiveTask, SendTask, ReceiveTask, CircuitsTask,
                              CopyToHostTask, CopyFromHostTask, HostComputeTask, HostThreadTask>;

// Task: one task as its source hands it to the job. `body` has what its kind needs.
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

  TaskId id = 0;  // unique in the rank; rises in program order
  Stream stream = Stream::compute;
  // Handed out before the earlier places of its queue have ended, because another rank decides about it
  // (AgreedLaunches).
  bool ahead = false;
  std::uint32_t queue = kUnordered;  // the rank's stream queue; kUnordered: it belongs to none
  std::uint32_t place = 0;           // position in the queue: 0, 1, 2, ...
  std::uint32_t together = 1;        // number of tasks with that place
  std::uint32_t sequence = 0;        // number of earlier tasks in the program with the same match key
  std::uint32_t iteration = 0;
  std::uint32_t name = 0;  // for WorkloadDescription::name()
  Time not_before = 0;     // earliest start, from the start of the job (flow lists); 0 for none
  TaskBody body;

  TaskKind kind() const { return static_cast<TaskKind>(body.index()); }

  // These return the body of a task of one kind. The task must be of that kind.
  CollectiveTask& collective() { return std::get<CollectiveTask>(body); }
  const CollectiveTask& collective() const { return std::get<CollectiveTask>(body); }
  const CircuitsTask& circuits() const { return std::get<CircuitsTask>(body); }
  // The body of a send or receive.
  MessageTask& message();
  const MessageTask& message() const;

  // Returns the payload of a communication, or null where the task moves no bytes.
  Payload* payload();
  const Payload* payload() const;
  // Returns the bytes of a communication, or 0.
  Bytes bytes() const;
  // Returns the index of its kernels in WorkloadDescription::works(). The task must be a computation.
  std::uint32_t work() const;
  // Returns the group of a collective or of a request for circuits.
  GroupId group() const;
};

inline bool is_point_to_point(TaskKind kind) { return kind == TaskKind::send || kind == TaskKind::receive; }
inline bool is_point_to_point(const Task& task) { return is_point_to_point(task.kind()); }
// Returns whether all members of a group take part in it.
inline bool has_group(const Task& task) {
  return task.kind() == TaskKind::collective || task.kind() == TaskKind::circuits;
}
// Returns whether the task computes and so has a Task::work().
inline bool has_work(TaskKind kind) {
  return kind == TaskKind::compute || kind == TaskKind::host_compute || kind == TaskKind::host_thread;
}
inline bool is_copy(TaskKind kind) {
  return kind == TaskKind::copy_to_host || kind == TaskKind::copy_from_host;
}
// Returns whether the task concerns only a GPU and its host.
inline bool is_of_host(TaskKind kind) {
  return is_copy(kind) || kind == TaskKind::host_compute || kind == TaskKind::host_thread;
}
inline bool is_of_host(const Task& task) { return is_of_host(task.kind()); }
// Returns whether the task moves bytes.
inline bool is_communication(TaskKind kind) {
  return kind == TaskKind::collective || is_point_to_point(kind) || is_copy(kind);
}
inline bool is_communication(const Task& task) { return is_communication(task.kind()); }
// Returns whether two tasks of one rank have the same match key: the group, or the direction, peer and tag of
// a message. Tasks without members or peers have none.
inline bool have_same_match_key(const Task& a, const Task& b) {
  if (has_group(a)) return has_group(b) && a.group() == b.group();
  if (a.kind() != b.kind() || !is_point_to_point(a)) return false;
  return a.message().peer == b.message().peer && a.message().tag == b.message().tag;
}
// Returns whether the task is a message on a queue pair of its own choice, without the collective library.
inline bool is_raw(const Task& task) { return is_point_to_point(task) && task.message().raw; }

namespace task_details {
template <class Message, class Body>
Message& message_of(Body& body) {
  if (auto* send = std::get_if<SendTask>(&body)) return *send;
  return std::get<ReceiveTask>(body);
}
template <class Carried, class Body>
Carried* payload_of(Body& body) {
  return std::visit(
      [](auto& of_kind) -> Carried* {
        if constexpr (std::is_base_of_v<Payload, std::remove_cvref_t<decltype(of_kind)>>) return &of_kind;
        return nullptr;
      },
      body);
}
}  // namespace task_details

inline MessageTask& Task::message() { return task_details::message_of<MessageTask>(body); }
inline const MessageTask& Task::message() const { return task_details::message_of<const MessageTask>(body); }
inline Payload* Task::payload() { return task_details::payload_of<Payload>(body); }
inline const Payload* Task::payload() const { return task_details::payload_of<const Payload>(body); }
inline Bytes Task::bytes() const {
  const Payload* carried = payload();
  return carried == nullptr ? 0 : carried->bytes;
}
inline std::uint32_t Task::work() const {
  if (const HostComputeTask* on_host = std::get_if<HostComputeTask>(&body)) return on_host->work;
  if (const HostThreadTask* on_thread = std::get_if<HostThreadTask>(&body)) return on_thread->work;
  return std::get<ComputeTask>(body).work;
}
inline GroupId Task::group() const {
  if (const CircuitsTask* asked = std::get_if<CircuitsTask>(&body)) return asked->group;
  return collective().group;
}

// PipelineMark: the microbatch, the model chunk of the stage and the layer that a task of a pipeline works
// for, from 0.
struct PipelineMark {
  std::uint32_t microbatch = 0, chunk = 0;
  // The step computes a forward, whose numbers are the ones above, together with this backward.
  bool paired = false;
  std::uint32_t backward_microbatch = 0, backward_chunk = 0;
  // Number of the layer in the model's body; empty where the task works for another layer, for several, or
  // for none.
  std::optional<std::uint32_t> layer = {};
  bool operator==(const PipelineMark&) const = default;
};

// Returns the body of a send or of a receive.
inline TaskBody message_body(TaskKind kind, const MessageTask& message) {
  if (kind == TaskKind::send) return SendTask{message};
  return ReceiveTask{message};
}
// Returns the body of a copy between a GPU and its host's memory.
inline TaskBody copy_body(TaskKind kind, const Payload& payload) {
  if (kind == TaskKind::copy_to_host) return CopyToHostTask{payload};
  return CopyFromHostTask{payload};
}

// Returns what ComputeTimes is asked about a task that has_work().
inline ComputeRequest compute_request(const Task& task) {
  return {.task = task.id,
          .iteration = task.iteration,
          .work = task.work(),
          .on_host = task.kind() != TaskKind::compute};
}

template <TaskKind kind, class Body>
inline constexpr bool kBodyOf =
    std::is_same_v<std::variant_alternative_t<static_cast<std::size_t>(kind), TaskBody>, Body>;
static_assert(kBodyOf<TaskKind::compute, ComputeTask> && kBodyOf<TaskKind::collective, CollectiveTask> &&
              kBodyOf<TaskKind::send, SendTask> && kBodyOf<TaskKind::receive, ReceiveTask> &&
              kBodyOf<TaskKind::circuits, CircuitsTask> && kBodyOf<TaskKind::copy_to_host, CopyToHostTask> &&
              kBodyOf<TaskKind::copy_from_host, CopyFromHostTask> &&
              kBodyOf<TaskKind::host_compute, HostComputeTask> &&
              kBodyOf<TaskKind::host_thread, HostThreadTask>);

}  // namespace netsim
