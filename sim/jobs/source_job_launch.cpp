// From ready to launched: stream queues, pauses, circuits and the launch itself.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/jobs/source_job.h"
#include "sim/jobs/task_request.h"

namespace netsim::source_job {

// Marks a task as ready and inserts it into its queue, if it has one.
void SourceJob::make_ready(SetState& set, std::uint32_t slot) {
  Active& active = set.active[slot];
  active.state = Active::State::ready;
  if (is_scheduled(active.task)) return add_candidate(set, slot);
  const std::uint32_t queue = active.task.queue;
  if (queue == Task::kUnordered) return;
  std::vector<StreamQueue>& queues = ranks_[active.rank].queues;
  if (queue >= queues.size()) queues.resize(queue + std::size_t{1});
  std::vector<std::uint32_t>& ready = queues[queue].ready;
  const auto behind = std::find_if(ready.begin(), ready.end(), [&](std::uint32_t other) {
    return set.active[other].task.place > active.task.place;
  });
  ready.insert(behind, slot);
}

// Launches a task that has become ready, or the first one of its queue.
void SourceJob::launch_ready(SetState& set, std::uint32_t slot) {
  const Active& active = set.active[slot];
  if (is_scheduled(active.task)) return;  // post() calls the scheduler when it has posted all
  if (active.task.queue == Task::kUnordered) {
    launch(set, slot);
  } else {
    serve(set, active.rank, active.task.queue);
  }
}

// Launches the next task of the queue, if it is ready and no task of the queue is running. Without a task
// scheduler this is the only decision between ready and launched.
void SourceJob::serve(SetState& set, RankId rank, std::uint32_t number) {
  StreamQueue& queue = ranks_[rank].queues[number];
  if (queue.under_way > 0 || queue.ready.empty() || !is_next(set, queue)) return;
  const std::uint32_t together = set.active[queue.ready.front()].task.together;
  const auto begin = queue.ready.begin();
  const auto end = begin + static_cast<std::ptrdiff_t>(together);
  queue.under_way = together;
  ++queue.next_place;
  if (together == 1) {
    const std::uint32_t slot = *begin;
    queue.ready.erase(begin);
    launch(set, slot);
    return;
  }
  const std::vector<std::uint32_t> slots(begin, end);
  queue.ready.erase(begin, end);
  for (const std::uint32_t slot : slots) launch(set, slot);
}

// Returns whether all tasks of the next place are ready. `queue` has ready tasks. With a task scheduler the
// communications of the queue are not in it, so places are missing, and the source keeps the order.
bool SourceJob::is_next(const SetState& set, const StreamQueue& queue) const {
  const Task& task = set.active[queue.ready.front()].task;
  const std::size_t last = task.together - std::size_t{1};
  const bool in_order = task.place == queue.next_place || plan_.scheduling != nullptr;
  return in_order && last < queue.ready.size() && set.active[queue.ready[last]].task.place == task.place;
}

void SourceJob::launch(SetState& set, std::uint32_t slot) {
  if (pause_of(set.active[slot].task) > 0) {
    pause(set, slot);
  } else {
    begin(set, slot);
  }
}

// Pauses a task until all members of its group have paused too. No record is written for the pause.
void SourceJob::pause(SetState& set, std::uint32_t slot) {
  Active& active = set.active[slot];
  active.state = Active::State::pausing;
  ++membership(active.rank, active.task).reached;
  arrive(set, slot, active.task.collective().pause);
}

void SourceJob::begin(SetState& set, std::uint32_t slot) {
  Active& active = set.active[slot];
  active.state = Active::State::launched;
  active.start = set.loop.now();
  if (active.task.kind() == TaskKind::circuits) {
    ask_for_circuits(set, slot);
    return;
  }
  if (has_work(active.task.kind()) && active.task.kind() != TaskKind::compute) {
    tell(record_of(set, active, JobRecord::Kind::communication_begins));
    const GpuId gpu = plan_.gpus[active.rank];
    const Time work = plan_.times->duration(active.rank, compute_request(active.task));
    if (active.task.kind() == TaskKind::host_compute) {
      run_.devices->begin_on_host(gpu, number_, slot, work);
    } else {
      run_.devices->begin_on_thread(gpu, number_, slot, work);
    }
    return;
  }
  if (active.task.kind() != TaskKind::compute) {
    launch_communication(set, slot);
    return;
  }
  tell(record_of(set, active, JobRecord::Kind::compute_begins));
  const ComputeRequest request = compute_request(active.task);
  run_.devices->begin(plan_.gpus[active.rank], number_, slot, plan_.times->duration(active.rank, request),
                      plan_.times->demand(active.rank, request));
}

// Launches a communication. Its record comes first, because the statistics refuse members that disagree.
void SourceJob::launch_communication(SetState& set, std::uint32_t slot) {
  Active& active = set.active[slot];
  if (active.task.kind() == TaskKind::collective && pause_of(active.task) == 0)
    ++membership(active.rank, active.task).reached;
  tell(record_of(set, active, JobRecord::Kind::communication_begins));
  const GpuId gpu = plan_.gpus[active.rank];
  active.channels = run_.executor->start(gpu, request(active, members(set, slot), slot));
  if (runs_kernels(active.task)) run_.devices->communication_begins(gpu, active.task.stream, active.channels);
}

// Sends a request for circuits to the switches; the rank runs nothing for this task meanwhile.
void SourceJob::ask_for_circuits(SetState& set, std::uint32_t slot) {
  const Active& active = set.active[slot];
  ++membership(active.rank, active.task).reached;
  tell(record_of(set, active, JobRecord::Kind::communication_begins));
  arrive(set, slot, run_.circuits->request_latency());
}

// The task arrives at the rendezvous of its communication, `delay` from now.
void SourceJob::arrive(const SetState& set, std::uint32_t slot, Time delay) {
  const std::uint32_t member = set.active[slot].rank;
  RankState& rank = ranks_[member];
  (*run_.announce)(rank.set, set.loop.now() + delay, rank.origin, {number_, member, slot});
}

// A task has arrived. When all members have, they continue: a paused collective at once, a task for circuits
// when these are up.
void SourceJob::arrived(const MemberArrival& arrival) {
  const Active& active = set_of(arrival.rank).active[arrival.slot];
  std::vector<MemberArrival> members =
      rendezvous_.add(active.communication, arrival, active.group->places.size());
  if (members.empty()) return;
  if (active.state == Active::State::pausing) return wake(members);
  run_.circuits->configure(circuits_.of(active.task.circuits().circuits),
                           [this, members = std::move(members)] { wake(members); });
}

// Resumes the members, each in an event of its own.
void SourceJob::wake(const std::vector<MemberArrival>& members) {
  for (const MemberArrival& member : members) {
    EventLoop& loop = set_of(member.rank).loop;
    loop.schedule(loop.now(), ranks_[member.rank].origin, EventKind::job, first_rank_ + member.rank,
                  member.slot);
  }
}

// Returns the GPUs in group order. The address is valid until the task ends.
const std::vector<GpuId>& SourceJob::members(SetState& set, std::uint32_t slot) const {
  const Active& active = set.active[slot];
  if (active.group != nullptr) return active.group->gpus;
  if (is_copy(active.task.kind())) {
    set.pairs[slot].assign({plan_.gpus[active.rank]});
    return set.pairs[slot];
  }
  const MessageKey message = message_of(active.rank, active.task);
  std::vector<GpuId>& pair = set.pairs[slot];
  pair.assign({plan_.gpus[message.sender], plan_.gpus[message.receiver]});
  return pair;
}

CommunicationRequest SourceJob::request(const Active& active, const std::vector<GpuId>& members,
                                        std::uint32_t slot) const {
  CommunicationRequest request = request_of(active.task);
  request.members = &members;
  request.index = active.index;
  request.communication = active.communication;
  request.handle = slot;
  return request;
}

}  // namespace netsim::source_job
