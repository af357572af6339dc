#include "sim/jobs/source_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/index.h"
#include "sim/jobs/communication_id.h"
#include "sim/jobs/job_statistics.h"
#include "sim/jobs/task_job.h"
#include "sim/jobs/task_parts.h"
#include "sim/training/checkpoint/checkpoint.h"
#include "sim/workload/program/program.h"

namespace netsim::source_job {

SourceJob::SourceJob(const JobRun& run, std::uint32_t number, std::uint32_t first_rank, JobPlan plan,
                     JobObserver observer)
    : run_(run),
      number_(number),
      first_rank_(first_rank),
      plan_(std::move(plan)),
      begin_(plan_.arrival),
      resumable_(dynamic_cast<const Resumable*>(plan_.source)),
      statistics_(*plan_.source, number, std::move(observer), plan_.gpus, plan_.gpus.empty()),
      circuits_(*plan_.source, run.circuits) {
  if (!plan_.gpus.empty()) prepare();
}

// Makes the state of the ranks and sets.
void SourceJob::prepare() {
  ranks_ = std::vector<RankState>(source().ranks());
  sets_.reserve(run_.loops->size());
  for (EventLoop* loop : *run_.loops) sets_.emplace_back(*loop);
  for (RankId rank = 0; rank < ranks_.size(); ++rank)
    ranks_[rank].origin = Origin(run_.first_origin + first_rank_ + rank);
  assign_sets();
  if (plan_.scheduling == nullptr) return;
  plan_.source->release_communications(agreed_launches(plan_.scheduling));
  for (RankState& rank : ranks_) rank.schedule.state.resize(scheduler().needs().rank_state);
}

// Gives each rank the set of its GPU.
void SourceJob::assign_sets() {
  NETSIM_CHECK(plan_.gpus.size() == ranks_.size(), "one GPU per rank");
  for (RankId rank = 0; rank < ranks_.size(); ++rank) {
    const GpuId gpu = plan_.gpus[rank];
    NETSIM_CHECK(gpu < run_.set_of_gpu->size() && (*run_.set_of_gpu)[gpu] < sets_.size(),
                 fmt::format("GPU {} is in no set", gpu));
    ranks_[rank].set = (*run_.set_of_gpu)[gpu];
  }
}

void SourceJob::place(std::vector<GpuId> gpus, const ComputeTimes& times, Time begin,
                      std::shared_ptr<const TaskScheduling> scheduling) {
  NETSIM_CHECK(!begun(), "a job that has begun keeps its GPUs");
  plan_.gpus = std::move(gpus);
  plan_.times = &times;
  begin_ = begin;
  if (scheduling != nullptr) plan_.scheduling = std::move(scheduling);
  if (ranks_.empty()) {
    statistics_.prepare();
    prepare();
  }
  statistics_.set_gpus(plan_.gpus);
  assign_sets();
}

// Returns the streams of communications that strategies or a task scheduler may cut into pieces.
std::uint32_t SourceJob::cut_streams() const {
  if (plan_.scheduling != nullptr) return UINT32_MAX;
  const Program* program = plan_.source->program();
  return program == nullptr ? 0 : program->cut_streams;
}

void SourceJob::start() {
  std::vector<std::vector<Task>> ready(ranks_.size());
  for (RankId rank = 0; rank < ranks_.size(); ++rank) plan_.source->start(rank, ready[rank]);
  statistics_.open(begin_, cut_streams());
  for (SetState& set : sets_) set.cause = JobRecord::Cause::arrival;
  for (RankId rank = 0; rank < ranks_.size(); ++rank) {
    if (!ranks_[rank].halted) post(rank, ready[rank]);
  }
}

// ---- From released to ready

// Posts tasks that the source released. All of them enter their queues before the first is launched, so that
// a scheduler sees them all.
void SourceJob::post(RankId rank, const std::vector<Task>& ready) {
  SetState& set = set_of(rank);
  std::vector<std::uint32_t> slots = std::move(set.posted);
  slots.clear();
  for (const Task& task : ready) {
    if (task.iteration >= hold_from_) {
      ranks_[rank].held.push_back(task);
      continue;
    }
    const std::uint32_t slot = post(set, rank, task);
    if (slot != kNoIndex) slots.push_back(slot);
  }
  for (const std::uint32_t slot : slots) launch_ready(set, slot);
  set.posted = std::move(slots);
  if (plan_.scheduling != nullptr) call_scheduler(set, rank);
}

// Returns the task's slot if it is ready, or kNoIndex if it must wait for its earliest start.
std::uint32_t SourceJob::post(SetState& set, RankId rank, const Task& task) {
  validate(rank, task);
  const std::uint32_t slot = open_active(set, rank, task);
  if (task.kind() != TaskKind::compute) identify(set.active[slot]);
  const Time earliest = begin_ + task.not_before;
  if (task.not_before > 0 && earliest > set.loop.now()) {
    set.loop.schedule(earliest, ranks_[rank].origin, EventKind::job, first_rank_ + rank, slot);
    return kNoIndex;
  }
  make_ready(set, slot);
  return slot;
}

// Resumes a task: its earliest start has come, its circuits are up, or its group is complete and has paused.
void SourceJob::resume(RankId rank, std::uint64_t argument) {
  const auto slot = static_cast<std::uint32_t>(argument);
  if (ranks_.empty() || ranks_[rank].halted) return;
  SetState& set = set_of(rank);
  if (slot == kCallScheduler) {
    set.cause = JobRecord::Cause::task_ended;
    if (ranks_[rank].schedule.call_again <= set.loop.now()) ranks_[rank].schedule.call_again = kNever;
    call_scheduler(set, rank);
    return;
  }
  const Active& active = set.active[slot];
  if (active.state == Active::State::launched) {
    complete(set, slot, JobRecord::Kind::communication_ends, active.start);
  } else if (active.state == Active::State::pausing) {
    set.cause = JobRecord::Cause::earliest_start;
    begin(set, slot);
  } else {
    begin_held_back(set, slot);
  }
}

void SourceJob::begin_held_back(SetState& set, std::uint32_t slot) {
  const RankId rank = set.active[slot].rank;
  const TaskId id = set.active[slot].task.id;
  set.cause = JobRecord::Cause::earliest_start;
  make_ready(set, slot);
  launch_ready(set, slot);
  std::vector<Task> ready = std::move(set.ready);
  ready.clear();
  plan_.source->launched(rank, id, ready);
  post(rank, ready);
  set.ready = std::move(ready);
}

std::uint32_t SourceJob::open_active(SetState& set, RankId rank, const Task& task) {
  auto slot = static_cast<std::uint32_t>(set.active.size());
  if (set.free_active.empty()) {
    set.active.emplace_back();
    set.pairs.emplace_back();
  } else {
    slot = set.free_active.back();
    set.free_active.pop_back();
  }
  Active& active = set.active[slot];
  active = Active{};
  active.state = Active::State::held_back;
  active.task = task;
  if (Payload* carried = active.task.payload()) {
    carried->traits.job = number_;
    carried->traits.stream = task.stream;
    carried->traits.priority = std::max(carried->traits.priority, plan_.priority);
    if (traffic_class_) {
      carried->traits.traffic_class = *traffic_class_;
    } else if (carried->traits.traffic_class == 0) {
      carried->traits.traffic_class = plan_.traffic_class;
    }
  }
  active.rank = rank;
  active.posted = set.loop.now();
  active.place = static_cast<std::uint32_t>(ranks_[rank].active.size());
  ranks_[rank].active.push_back(slot);
  return slot;
}

void SourceJob::close_active(SetState& set, std::uint32_t slot) {
  Active& active = set.active[slot];
  std::vector<std::uint32_t>& list = ranks_[active.rank].active;
  list[active.place] = list.back();
  set.active[list.back()].place = active.place;
  list.pop_back();
  active.state = Active::State::free;
  set.free_active.push_back(slot);
}

// Refuses a task that cannot run. Readers of workloads cannot check this for all sources, so such a task is
// the user's error.
void SourceJob::validate(RankId rank, const Task& task) const {
  if (const auto iterations = source().iterations(); iterations && task.iteration >= *iterations) {
    refuse(rank, task, fmt::format("iteration {} of {}", task.iteration, *iterations));
  }
  if (has_work(task.kind())) {
    if (task.work() >= source().works().size())
      refuse(rank, task, fmt::format("work {} does not exist", task.work()));
    return;
  }
  if (task.kind() == TaskKind::circuits && task.circuits().circuits >= source().circuits().size())
    refuse(rank, task, fmt::format("circuits {} do not exist", task.circuits().circuits));
  if (task.kind() == TaskKind::collective) validate_collective(rank, task);
  if (is_communication(task) && task.bytes() <= 0)
    refuse(rank, task, fmt::format("{} bytes (allowed: at least 1)", task.bytes()));
  if (!is_point_to_point(task)) return;
  const RankId peer = task.message().peer;
  if (peer >= ranks_.size() || peer == rank)
    refuse(rank, task, fmt::format("peer {} (allowed: another rank, 0 to {})", peer, ranks_.size() - 1));
}

void SourceJob::validate_collective(RankId rank, const Task& task) const {
  const CollectiveTask& call = task.collective();
  if (call.pause != 0 && (source().least_pause() <= 0 || call.pause < source().least_pause())) {
    refuse(rank, task,
           fmt::format("a pause of {} s (allowed: none, or a pause that the source announces)",
                       to_seconds(call.pause)));
  }
  if (has_counts(call.collective) != (call.counts != nullptr))
    refuse(rank, task, call.counts == nullptr ? "the counts of its blocks are missing" : "it has no counts");
  if (call.counts != nullptr && call.counts->members() != source().group(call.group).size()) {
    refuse(rank, task,
           fmt::format("counts of {} members for a group of {}", call.counts->members(),
                       source().group(call.group).size()));
  }
}

void SourceJob::identify(Active& active) {
  const Task& task = active.task;
  if (is_of_host(task)) {
    active.communication = message_id(own_message(active.rank, task.id));
    return;
  }
  if (has_group(task)) {
    const Membership& member = membership(active.rank, task);
    active.group = member.group;
    active.index = member.index;
    active.communication = collective_id(task.group(), task.sequence);
    return;
  }
  active.index = task.kind() == TaskKind::send ? 0 : 1;
  active.communication = message_id(message_of(active.rank, task));
}

Membership& SourceJob::membership(RankId rank, const Task& task) {
  Membership& member = ranks_[rank].memberships[task.group()];
  if (member.group != nullptr) return member;
  const Group& group = map_group(rank, task);
  const auto place = std::lower_bound(group.places.begin(), group.places.end(), std::pair{rank, 0U});
  if (place == group.places.end() || place->first != rank) {
    refuse(rank, task, fmt::format("the rank is not in group {}", task.group()));
  }
  member.group = &group;
  member.index = place->second;
  return member;
}

const Group& SourceJob::map_group(RankId rank, const Task& task) {
  const std::lock_guard lock(groups_mutex_);
  const auto known = groups_.find(task.group());
  if (known != groups_.end()) return known->second;
  return groups_.emplace(task.group(), make_group(rank, task)).first->second;
}

Group SourceJob::make_group(RankId rank, const Task& task) const {
  Group group;
  for (const RankId member : source().group(task.group())) {
    if (member >= ranks_.size()) {
      refuse(rank, task, fmt::format("group {} has rank {} of {}", task.group(), member, ranks_.size()));
    }
    group.places.emplace_back(member, static_cast<std::uint32_t>(group.gpus.size()));
    group.gpus.push_back(plan_.gpus[member]);
  }
  std::sort(group.places.begin(), group.places.end());
  const auto twice = std::adjacent_find(group.places.begin(), group.places.end(),
                                        [](const auto& a, const auto& b) { return a.first == b.first; });
  if (twice != group.places.end()) {
    refuse(rank, task, fmt::format("group {} has rank {} twice", task.group(), twice->first));
  }
  return group;
}

// ---- From launched to ended

// Halts the rank. Its computations and communications no longer use its GPU.
void SourceJob::release_gpu(RankId rank) {
  if (ranks_[rank].halted) return;
  ranks_[rank].halted = true;
  const GpuId gpu = plan_.gpus[rank];
  drop_parts(rank);
  for (const std::uint32_t slot : ranks_[rank].active) {
    const Active& active = set_of(rank).active[slot];
    if (active.state == Active::State::launched && runs_kernels(active.task) &&
        (plan_.scheduling == nullptr || active.channels > 0))
      run_.devices->communication_ends(gpu, active.task.stream, active.channels);
  }
  run_.devices->drop(gpu, number_);
}

void SourceJob::complete_compute(GpuId gpu, std::uint32_t slot) {
  SetState& set = sets_[(*run_.set_of_gpu)[gpu]];
  const Active& active = set.active[slot];
  const bool on_host = active.task.kind() != TaskKind::compute;
  complete(set, slot, on_host ? JobRecord::Kind::communication_ends : JobRecord::Kind::compute_ends,
           active.start);
}

void SourceJob::communication_done(GpuId gpu, const CommunicationRequest& request, Time started) {
  SetState& set = sets_[(*run_.set_of_gpu)[gpu]];
  const std::uint32_t slot = request.handle;
  NETSIM_CHECK(slot < set.active.size() && set.active[slot].state == Active::State::launched &&
                   plan_.gpus[set.active[slot].rank] == gpu &&
                   (plan_.scheduling != nullptr || set.active[slot].communication == request.communication),
               fmt::format("communication {:#x} ends at GPU {}, where it is not in progress",
                           request.communication, gpu));
  const Active& active = set.active[slot];
  if (ranks_[active.rank].halted) return;
  if (is_scheduled(active.task)) return part_done(set, active.rank, request, started);
  end_communication(set, slot, started);
}

// Ends a communication that ran as one operation of its own.
void SourceJob::end_communication(SetState& set, std::uint32_t slot, Time started) {
  const Active& active = set.active[slot];
  if (runs_kernels(active.task)) {
    run_.devices->communication_ends(plan_.gpus[active.rank], active.task.stream, active.channels);
  }
  complete(set, slot, JobRecord::Kind::communication_ends,
           active.task.kind() == TaskKind::receive ? started : active.start);
}

void SourceJob::complete(SetState& set, std::uint32_t slot, JobRecord::Kind kind, Time start,
                         std::uint64_t operation) {
  if (ranks_[set.active[slot].rank].halted) return;
  JobRecord record = record_of(set, set.active[slot], kind);
  record.posted = set.active[slot].posted;
  record.start = start;
  if (operation != 0) record.operation = operation;
  close_active(set, slot);
  std::vector<Task> ready = std::move(set.ready);
  ready.clear();
  plan_.source->complete(record.rank, record.task.id, ready);
  record.open_iteration = source().open_iteration(record.rank);
  if (resumable_ != nullptr) {
    record.passed_iterations = resumable_->passed_iterations(record.rank);
    record.waits_for_storage = resumable_->waits_for_storage(record.rank);
  }
  tell(record);
  set.cause = JobRecord::Cause::task_ended;
  if (plan_.scheduling != nullptr) note_end(set, record.rank, record.task.id);
  const std::uint32_t queue = record.task.queue;
  const bool queued = queue != Task::kUnordered && !is_scheduled(record.task);
  if (queued) --ranks_[record.rank].queues[queue].under_way;
  post(record.rank, ready);
  if (queued) serve(set, record.rank, queue);
  set.ready = std::move(ready);
}

JobRecord SourceJob::record_of(const SetState& set, const Active& active, JobRecord::Kind kind) const {
  JobRecord record;
  record.kind = kind;
  record.cause = set.cause;
  record.job = number_;
  record.rank = active.rank;
  record.time = set.loop.now();
  record.communication = record.operation = active.communication;
  record.parts = active.parts;
  record.decided_by = set.decided_by;
  record.task = active.task;
  return record;
}

}  // namespace netsim::source_job

namespace netsim {

std::unique_ptr<TaskJob> TaskJob::create(const JobRun& run, std::uint32_t number, std::uint32_t first_rank,
                                         JobPlan plan, JobObserver observer) {
  return std::make_unique<source_job::SourceJob>(run, number, first_rank, std::move(plan),
                                                 std::move(observer));
}

}  // namespace netsim
