#include "sim/jobs/job.h"

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
#include "sim/training/checkpoint/checkpoint.h"

namespace netsim {
namespace {

// ---- State

// Group: the GPUs of a group as the executor takes them, and the index of each rank in it.
struct Group {
  std::vector<std::uint32_t> gpus;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> places;  // (rank, index), by rank
};

// Active: a task that its rank has received from the source and that has not ended.
struct Active {
  enum class State : std::uint8_t { free, held_back, ready, pausing, launched };
  Task task;
  State state = State::free;
  std::uint32_t rank = 0;
  Time posted = 0, start = 0;
  std::uint64_t communication = 0;
  std::uint32_t place = 0;     // index in RankState::active
  std::uint32_t index = 0;     // index of the rank in the group
  std::uint32_t channels = 0;  // channels of the kernel of a communication
  const Group* group = nullptr;
};

struct Membership {
  const Group* group = nullptr;
  std::uint32_t index = 0;
  // Number of the group's collectives and circuit requests that the rank has launched.
  std::uint32_t reached = 0;
};

// StreamQueue: the tasks of one stream of a rank, which are launched one after the other.
struct StreamQueue {
  std::uint32_t under_way = 0;       // running tasks, all of one place
  std::uint32_t next_place = 0;      // all tasks of earlier places were launched
  std::vector<std::uint32_t> ready;  // slots of SetState::active, by place
  std::vector<std::uint32_t> early;  // places after next_place that were launched, ascending
};

// RankState: the state of one rank, used by its set only.
struct alignas(64) RankState {
  Origin origin;
  std::uint32_t set = 0;
  bool halted = false;
  std::vector<std::uint32_t> active;  // slots of SetState::active
  std::vector<StreamQueue> queues;
  std::unordered_map<std::uint32_t, Membership> memberships;  // by group; looked up only, never iterated
};

// SetState: the state that the ranks of one set share.
struct alignas(64) SetState {
  explicit SetState(EventLoop& event_loop) : loop(event_loop) {}
  EventLoop& loop;
  std::vector<Active> active;  // arena
  // The two GPUs of each point-to-point task, by slot of `active`. A deque keeps their addresses, which the
  // executor stores.
  std::deque<std::vector<std::uint32_t>> pairs;
  std::vector<std::uint32_t> free_active;
  std::vector<Task> ready;                // scratch
  std::vector<std::uint32_t> posted;      // scratch
  std::vector<ReadyTask> candidates;      // scratch
  std::vector<std::size_t> candidate_of;  // position in StreamQueue::ready of each candidate; scratch
  JobRecord::Cause cause = JobRecord::Cause::arrival;  // cause of the tasks that begin in the present event
};

// Returns "rank 3" or "ranks 3, 5, 7, 8 and 4 more".
std::string some_ranks(const std::vector<std::uint32_t>& ranks) {
  constexpr std::size_t kNamed = 4;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(ranks.size(), kNamed); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  return ranks.size() > kNamed ? text + fmt::format(" and {} more", ranks.size() - kNamed) : text;
}

// SourceJob: runs the tasks of a source, rank by rank. It turns ready tasks into timers and communications
// and returns completions to the source. It changes the state of the rank and its set only; GPUs, durations
// and groups are fixed before and shared.
//
// Records go to the statistics, directly or through a journal. The statistics are read between events only.
class SourceJob final : public TaskJob {
 public:
  SourceJob(const JobRun& run, std::uint32_t number, std::uint32_t first_rank, JobPlan plan,
            JobObserver observer);

  void start() override;
  void halt(std::uint32_t rank, Time now) override {
    release_gpu(rank);
    statistics_.halt(rank, now);
  }
  void stop(Time now, bool complete) override {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) release_gpu(rank);
    statistics_.stop(now, complete);
  }
  void resume(std::uint32_t rank, std::uint64_t argument) override;
  void compute_done(std::uint32_t gpu, std::uint32_t handle) override { complete_compute(gpu, handle); }
  void communication_done(std::uint32_t gpu, const CommunicationRequest& request, Time started) override;
  void circuits_asked(const CircuitRequest& request) override;
  void apply(const JobRecord& record) override { statistics_.apply(record); }
  void apply(const TransferRecord& record, std::span<const PortDelay> ports) override {
    statistics_.apply(record, ports);
  }

  const JobPlan& plan() const override { return plan_; }
  bool begun() const override { return statistics_.opened(); }
  bool done() const override { return statistics_.done(); }
  Time begin_time() const override { return plan_.arrival; }
  Time end_time() const override { return statistics_.end_time(); }
  std::uint64_t tasks_done() const override { return statistics_.tasks_done(); }
  std::vector<RankTimes> rank_times(Time until) const override { return statistics_.rank_times(until); }
  const std::vector<Time>& iteration_ends() const override { return statistics_.iteration_ends(); }
  const std::vector<PassedIteration>& passed_iterations() const override {
    return statistics_.passed_iterations();
  }
  Time storage_wait(Time until) const override { return statistics_.storage_wait(until); }
  const std::vector<RankTimes>& warm_up_times() const override { return statistics_.warm_up_times(); }
  const MemoryLedger* memory() const override { return statistics_.memory(); }
  const std::vector<PathSummary>& paths() const override { return statistics_.paths(); }
  std::vector<std::string> waiting(std::size_t limit) const override;

 private:
  SetState& set_of(std::uint32_t rank) { return sets_[ranks_[rank].set]; }
  const SetState& set_of(std::uint32_t rank) const { return sets_[ranks_[rank].set]; }
  const TaskSource& source() const { return *plan_.source; }

  void post(std::uint32_t rank, const std::vector<Task>& ready);
  std::uint32_t post(SetState& set, std::uint32_t rank, const Task& task);
  std::uint32_t open_active(SetState& set, std::uint32_t rank, const Task& task);
  void close_active(SetState& set, std::uint32_t slot);
  void validate(std::uint32_t rank, const Task& task) const;
  [[noreturn]] void refuse(std::uint32_t rank, const Task& task, const std::string& message) const {
    refuse_task(source(), rank, task, message);
  }

  void identify(Active& active);
  Membership& membership(std::uint32_t rank, const Task& task);
  const Group& map_group(std::uint32_t rank, const Task& task);
  Group make_group(std::uint32_t rank, const Task& task) const;

  void begin_held_back(SetState& set, std::uint32_t slot);
  void make_ready(SetState& set, std::uint32_t slot);
  void launch_ready(SetState& set, std::uint32_t slot);
  void serve(SetState& set, std::uint32_t rank, std::uint32_t queue);
  std::size_t choose(SetState& set, const StreamQueue& queue) const;
  static bool is_whole(const SetState& set, const StreamQueue& queue, std::size_t first);
  static ReadyTask view_of(const Active& active);
  static void move_on(StreamQueue& queue, std::uint32_t launched);

  void launch(SetState& set, std::uint32_t slot);
  void pause(SetState& set, std::uint32_t slot);
  void begin(SetState& set, std::uint32_t slot);
  void launch_communication(SetState& set, std::uint32_t slot);
  void ask_for_circuits(SetState& set, std::uint32_t slot);
  void wake(const std::vector<CircuitRequest>& members);
  const std::vector<std::uint32_t>& members(SetState& set, std::uint32_t slot) const;
  CommunicationRequest request(const Active& active, const std::vector<std::uint32_t>& members,
                               std::uint32_t slot) const;
  // Returns whether the task runs kernels on its GPU. Copies to and from the host use the GPU's copy engines.
  static bool runs_kernels(const Task& task) {
    return is_communication(task) && !task.raw && !is_of_host(task);
  }

  void release_gpu(std::uint32_t rank);
  void complete_compute(std::uint32_t gpu, std::uint32_t slot);
  void complete(SetState& set, std::uint32_t slot, JobRecord::Kind kind, Time start);
  JobRecord record_of(const SetState& set, const Active& active, JobRecord::Kind kind) const;
  void tell(const JobRecord& record) {
    if (*run_.journal) {
      (*run_.journal)(ranks_[record.rank].set, record);
    } else {
      statistics_.apply(record);
    }
  }

  std::string describe(const Active& active) const;
  Time expected_end(const Active& active) const;
  std::string describe_collective(const Active& active) const;
  std::string describe_circuits(const Active& active) const;
  std::string describe_pause(const Active& active) const;
  std::vector<std::uint32_t> missing(const Active& active) const;
  bool has_reached(std::uint32_t rank, const Active& active) const;
  std::string describe_point_to_point(const Active& active) const;

  JobRun run_;
  std::uint32_t number_;      // number of the job in its run
  std::uint32_t first_rank_;  // among the run's ranks: the target of EventKind::job is this plus the rank
  JobPlan plan_;
  const Resumable* resumable_;  // the source; null: it cannot resume from a checkpoint
  JobStatistics statistics_;
  CircuitRequests circuits_;  // used between events only
  std::vector<SetState> sets_;
  std::vector<RankState> ranks_;
  // By group. The first rank that uses a group adds it; entries never move and never change.
  std::map<std::uint32_t, Group> groups_;
  std::mutex groups_mutex_;
};

SourceJob::SourceJob(const JobRun& run, std::uint32_t number, std::uint32_t first_rank, JobPlan plan,
                     JobObserver observer)
    : run_(run),
      number_(number),
      first_rank_(first_rank),
      plan_(std::move(plan)),
      resumable_(dynamic_cast<const Resumable*>(plan_.source)),
      statistics_(*plan_.source, number, std::move(observer), plan_.gpus),
      circuits_(*plan_.source, run.circuits->control),
      ranks_(plan_.source->ranks()) {
  NETSIM_CHECK(plan_.gpus.size() == ranks_.size(), "one GPU per rank");
  sets_.reserve(run_.loops->size());
  for (EventLoop* loop : *run_.loops) sets_.emplace_back(*loop);
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    const std::uint32_t gpu = plan_.gpus[rank];
    NETSIM_CHECK(gpu < run_.set_of_gpu->size() && (*run_.set_of_gpu)[gpu] < sets_.size(),
                 fmt::format("GPU {} is in no set", gpu));
    ranks_[rank].origin = Origin(run_.first_origin + first_rank + rank);
    ranks_[rank].set = (*run_.set_of_gpu)[gpu];
  }
  plan_.source->set_lookahead(plan_.scheduler != nullptr ? plan_.scheduler->lookahead() : 1);
}

void SourceJob::start() {
  std::vector<std::vector<Task>> ready(ranks_.size());
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) plan_.source->start(rank, ready[rank]);
  statistics_.open(plan_.arrival);
  for (SetState& set : sets_) set.cause = JobRecord::Cause::arrival;
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (!ranks_[rank].halted) post(rank, ready[rank]);
  }
}

// ---- From released to ready

// Posts tasks that the source released. All of them enter their queues before the first is launched, so that
// a scheduler sees them all.
void SourceJob::post(std::uint32_t rank, const std::vector<Task>& ready) {
  SetState& set = set_of(rank);
  std::vector<std::uint32_t> slots = std::move(set.posted);
  slots.clear();
  for (const Task& task : ready) {
    const std::uint32_t slot = post(set, rank, task);
    if (slot != kNoIndex) slots.push_back(slot);
  }
  for (const std::uint32_t slot : slots) launch_ready(set, slot);
  set.posted = std::move(slots);
}

// Returns the task's slot if it is ready, or kNoIndex if it must wait for its earliest start.
std::uint32_t SourceJob::post(SetState& set, std::uint32_t rank, const Task& task) {
  validate(rank, task);
  const std::uint32_t slot = open_active(set, rank, task);
  if (task.kind != TaskKind::compute) identify(set.active[slot]);
  const Time earliest = plan_.arrival + task.not_before;
  if (task.not_before > 0 && earliest > set.loop.now()) {
    set.loop.schedule(earliest, ranks_[rank].origin, EventKind::job, first_rank_ + rank, slot);
    return kNoIndex;
  }
  make_ready(set, slot);
  return slot;
}

// Resumes a task: its earliest start has come, its circuits are up, or its group is complete and has paused.
void SourceJob::resume(std::uint32_t rank, std::uint64_t argument) {
  const auto slot = static_cast<std::uint32_t>(argument);
  SetState& set = set_of(rank);
  if (ranks_[rank].halted) return;
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
  const std::uint32_t rank = set.active[slot].rank, id = set.active[slot].task.id;
  set.cause = JobRecord::Cause::earliest_start;
  make_ready(set, slot);
  launch_ready(set, slot);
  std::vector<Task> ready = std::move(set.ready);
  ready.clear();
  plan_.source->launched(rank, id, ready);
  post(rank, ready);
  set.ready = std::move(ready);
}

std::uint32_t SourceJob::open_active(SetState& set, std::uint32_t rank, const Task& task) {
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
  active.task.traits.job = number_;
  active.task.traits.priority = std::max(task.traits.priority, plan_.priority);
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
void SourceJob::validate(std::uint32_t rank, const Task& task) const {
  if (const auto iterations = source().iterations(); iterations && task.iteration >= *iterations) {
    refuse(rank, task, fmt::format("iteration {} of {}", task.iteration, *iterations));
  }
  if (has_work(task.kind)) {
    if (task.work >= source().works().size())
      refuse(rank, task, fmt::format("work {} does not exist", task.work));
    return;
  }
  if (task.kind == TaskKind::circuits && task.circuits >= source().circuits().size())
    refuse(rank, task, fmt::format("circuits {} do not exist", task.circuits));
  if (task.pause != 0 && (task.kind != TaskKind::collective || source().least_pause() <= 0 ||
                          task.pause < source().least_pause())) {
    refuse(
        rank, task,
        fmt::format("a pause of {} s (allowed: none, or for a collective a pause that the source announces)",
                    to_seconds(task.pause)));
  }
  if (is_communication(task) && task.bytes <= 0)
    refuse(rank, task, fmt::format("{} bytes (allowed: at least 1)", task.bytes));
  if (task.kind == TaskKind::collective && has_counts(task.collective) != (task.counts != nullptr))
    refuse(rank, task, task.counts == nullptr ? "the counts of its blocks are missing" : "it has no counts");
  if (task.counts != nullptr && task.counts->members() != source().group(task.group).size()) {
    refuse(rank, task,
           fmt::format("counts of {} members for a group of {}", task.counts->members(),
                       source().group(task.group).size()));
  }
  if (is_point_to_point(task) && (task.peer >= ranks_.size() || task.peer == rank)) {
    refuse(rank, task, fmt::format("peer {} (allowed: another rank, 0 to {})", task.peer, ranks_.size() - 1));
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
    active.communication = collective_id(task.group, task.sequence);
    return;
  }
  active.index = task.kind == TaskKind::send ? 0 : 1;
  active.communication = message_id(message_of(active.rank, task));
}

Membership& SourceJob::membership(std::uint32_t rank, const Task& task) {
  Membership& member = ranks_[rank].memberships[task.group];
  if (member.group != nullptr) return member;
  const Group& group = map_group(rank, task);
  const auto place = std::lower_bound(group.places.begin(), group.places.end(), std::pair{rank, 0U});
  if (place == group.places.end() || place->first != rank) {
    refuse(rank, task, fmt::format("the rank is not in group {}", task.group));
  }
  member.group = &group;
  member.index = place->second;
  return member;
}

const Group& SourceJob::map_group(std::uint32_t rank, const Task& task) {
  const std::lock_guard lock(groups_mutex_);
  const auto known = groups_.find(task.group);
  if (known != groups_.end()) return known->second;
  return groups_.emplace(task.group, make_group(rank, task)).first->second;
}

Group SourceJob::make_group(std::uint32_t rank, const Task& task) const {
  Group group;
  for (const std::uint32_t member : source().group(task.group)) {
    if (member >= ranks_.size()) {
      refuse(rank, task, fmt::format("group {} has rank {} of {}", task.group, member, ranks_.size()));
    }
    group.places.emplace_back(member, static_cast<std::uint32_t>(group.gpus.size()));
    group.gpus.push_back(plan_.gpus[member]);
  }
  std::sort(group.places.begin(), group.places.end());
  const auto twice = std::adjacent_find(group.places.begin(), group.places.end(),
                                        [](const auto& a, const auto& b) { return a.first == b.first; });
  if (twice != group.places.end()) {
    refuse(rank, task, fmt::format("group {} has rank {} twice", task.group, twice->first));
  }
  return group;
}

// ---- From ready to launched

// Marks a task as ready and inserts it into its queue, if it has one.
void SourceJob::make_ready(SetState& set, std::uint32_t slot) {
  Active& active = set.active[slot];
  active.state = Active::State::ready;
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
  if (active.task.queue == Task::kUnordered) {
    launch(set, slot);
  } else {
    serve(set, active.rank, active.task.queue);
  }
}

// Launches the next task of the queue, if there is one and no task of the queue is running.
void SourceJob::serve(SetState& set, std::uint32_t rank, std::uint32_t number) {
  StreamQueue& queue = ranks_[rank].queues[number];
  if (queue.under_way > 0 || queue.ready.empty()) return;
  const std::size_t chosen = choose(set, queue);
  if (chosen >= queue.ready.size()) return;
  const Task& first = set.active[queue.ready[chosen]].task;
  const auto begin = queue.ready.begin() + static_cast<std::ptrdiff_t>(chosen);
  const auto end = begin + static_cast<std::ptrdiff_t>(first.together);
  queue.under_way = first.together;
  move_on(queue, first.place);
  if (first.together == 1) {
    const std::uint32_t slot = *begin;
    queue.ready.erase(begin);
    launch(set, slot);
    return;
  }
  const std::vector<std::uint32_t> slots(begin, end);
  queue.ready.erase(begin, end);
  for (const std::uint32_t slot : slots) launch(set, slot);
}

// Returns whether all tasks of the place that begins at `first` are ready.
bool SourceJob::is_whole(const SetState& set, const StreamQueue& queue, std::size_t first) {
  const Task& task = set.active[queue.ready[first]].task;
  const std::size_t last = first + task.together - 1;
  return last < queue.ready.size() && set.active[queue.ready[last]].task.place == task.place;
}

// Returns the index in `ready` of the task to launch, or ready.size() to wait. This is the only decision
// between ready and launched.
std::size_t SourceJob::choose(SetState& set, const StreamQueue& queue) const {
  if (plan_.scheduler == nullptr) {
    const bool next = set.active[queue.ready.front()].task.place == queue.next_place;
    return next && is_whole(set, queue, 0) ? 0 : queue.ready.size();
  }
  // The scheduler sees the first task of a grouped call, once all its tasks are ready.
  set.candidates.clear();
  set.candidate_of.clear();
  for (std::size_t i = 0; i < queue.ready.size(); ++i) {
    const Active& active = set.active[queue.ready[i]];
    if (i > 0 && set.active[queue.ready[i - 1]].task.place == active.task.place) continue;
    if (!is_whole(set, queue, i)) continue;
    set.candidates.push_back(view_of(active));
    set.candidate_of.push_back(i);
  }
  if (set.candidates.empty()) return queue.ready.size();
  const std::size_t chosen = plan_.scheduler->choose(set.candidates, queue.next_place);
  return chosen < set.candidate_of.size() ? set.candidate_of[chosen] : queue.ready.size();
}

ReadyTask SourceJob::view_of(const Active& active) {
  const Task& task = active.task;
  return {active.rank, task.queue, task.place, task.iteration, is_communication(task), task.bytes, task.name};
}

void SourceJob::move_on(StreamQueue& queue, std::uint32_t launched) {
  if (launched != queue.next_place) {
    queue.early.insert(std::lower_bound(queue.early.begin(), queue.early.end(), launched), launched);
    return;
  }
  ++queue.next_place;
  while (!queue.early.empty() && queue.early.front() == queue.next_place) {
    queue.early.erase(queue.early.begin());
    ++queue.next_place;
  }
}

void SourceJob::launch(SetState& set, std::uint32_t slot) {
  if (set.active[slot].task.pause > 0) {
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
  RankState& rank = ranks_[active.rank];
  run_.circuits->ask(rank.set, set.loop.now() + active.task.pause, rank.origin, {number_, active.rank, slot});
}

void SourceJob::begin(SetState& set, std::uint32_t slot) {
  Active& active = set.active[slot];
  active.state = Active::State::launched;
  active.start = set.loop.now();
  if (active.task.kind == TaskKind::circuits) {
    ask_for_circuits(set, slot);
    return;
  }
  if (active.task.kind == TaskKind::host_compute) {
    tell(record_of(set, active, JobRecord::Kind::communication_begins));
    run_.devices->begin_on_host(plan_.gpus[active.rank], number_, slot,
                                plan_.times->duration(active.rank, compute_request(active.task)));
    return;
  }
  if (active.task.kind != TaskKind::compute) {
    launch_communication(set, slot);
    return;
  }
  tell(record_of(set, active, JobRecord::Kind::compute_begins));
  run_.devices->begin(plan_.gpus[active.rank], number_, slot,
                      plan_.times->duration(active.rank, compute_request(active.task)));
}

// Launches a communication. Its record comes first, because the statistics refuse members that disagree.
void SourceJob::launch_communication(SetState& set, std::uint32_t slot) {
  Active& active = set.active[slot];
  if (active.task.kind == TaskKind::collective && active.task.pause == 0)
    ++membership(active.rank, active.task).reached;
  tell(record_of(set, active, JobRecord::Kind::communication_begins));
  const std::uint32_t gpu = plan_.gpus[active.rank];
  active.channels = run_.executor->start(gpu, request(active, members(set, slot), slot));
  if (runs_kernels(active.task)) run_.devices->communication_begins(gpu, active.task.stream, active.channels);
}

// Sends a request for circuits to the switches; the rank runs nothing for this task meanwhile.
void SourceJob::ask_for_circuits(SetState& set, std::uint32_t slot) {
  const Active& active = set.active[slot];
  ++membership(active.rank, active.task).reached;
  tell(record_of(set, active, JobRecord::Kind::communication_begins));
  RankState& rank = ranks_[active.rank];
  run_.circuits->ask(rank.set, set.loop.now() + run_.circuits->control->request_latency(), rank.origin,
                     {number_, active.rank, slot});
}

void SourceJob::circuits_asked(const CircuitRequest& request) {
  const Active& active = set_of(request.rank).active[request.slot];
  const std::size_t size = active.group->places.size();
  std::vector<CircuitRequest> members = circuits_.add(active.communication, request, size);
  if (members.size() < size) return;
  if (active.state == Active::State::pausing) return wake(members);  // the last member's pause is over
  run_.circuits->control->configure(circuits_.configuration(active.task.circuits),
                                    [this, members = std::move(members)] { wake(members); });
}

// Resumes the members, each in an event of its own.
void SourceJob::wake(const std::vector<CircuitRequest>& members) {
  for (const CircuitRequest& member : members) {
    EventLoop& loop = set_of(member.rank).loop;
    loop.schedule(loop.now(), ranks_[member.rank].origin, EventKind::job, first_rank_ + member.rank,
                  member.slot);
  }
}

// Returns the GPUs in group order. The address is valid until the task ends.
const std::vector<std::uint32_t>& SourceJob::members(SetState& set, std::uint32_t slot) const {
  const Active& active = set.active[slot];
  if (active.group != nullptr) return active.group->gpus;
  if (is_copy(active.task.kind)) {
    set.pairs[slot].assign({plan_.gpus[active.rank]});
    return set.pairs[slot];
  }
  const MessageKey message = message_of(active.rank, active.task);
  std::vector<std::uint32_t>& pair = set.pairs[slot];
  pair.assign({plan_.gpus[message.sender], plan_.gpus[message.receiver]});
  return pair;
}

CommunicationRequest SourceJob::request(const Active& active, const std::vector<std::uint32_t>& members,
                                        std::uint32_t slot) const {
  CommunicationRequest request;
  const bool collective = active.task.kind == TaskKind::collective;
  request.kind = collective ? active.task.collective : CollectiveKind::point_to_point;
  request.members = &members;
  request.index = active.index;
  request.root = active.task.root;
  request.bytes = active.task.bytes;
  request.counts = active.task.counts;
  request.grouped = active.task.grouped;
  request.algorithm = active.task.algorithm;
  request.paused_before = active.task.pause > 0;
  request.communication = active.communication;
  request.handle = slot;
  request.raw = active.task.raw;
  request.traits = active.task.traits;
  request.traits.from_host = active.task.kind == TaskKind::copy_from_host;
  request.name = active.task.name;
  return request;
}

// ---- From launched to ended

// Halts the rank. Its computations and communications no longer use its GPU.
void SourceJob::release_gpu(std::uint32_t rank) {
  if (ranks_[rank].halted) return;
  ranks_[rank].halted = true;
  const std::uint32_t gpu = plan_.gpus[rank];
  for (const std::uint32_t slot : ranks_[rank].active) {
    const Active& active = set_of(rank).active[slot];
    if (active.state == Active::State::launched && runs_kernels(active.task))
      run_.devices->communication_ends(gpu, active.task.stream, active.channels);
  }
  run_.devices->drop(gpu, number_);
}

void SourceJob::complete_compute(std::uint32_t gpu, std::uint32_t slot) {
  SetState& set = sets_[(*run_.set_of_gpu)[gpu]];
  const Active& active = set.active[slot];
  const bool on_host = active.task.kind == TaskKind::host_compute;
  complete(set, slot, on_host ? JobRecord::Kind::communication_ends : JobRecord::Kind::compute_ends,
           active.start);
}

void SourceJob::communication_done(std::uint32_t gpu, const CommunicationRequest& request, Time started) {
  SetState& set = sets_[(*run_.set_of_gpu)[gpu]];
  const std::uint32_t slot = request.handle;
  NETSIM_CHECK(slot < set.active.size() && set.active[slot].state == Active::State::launched &&
                   plan_.gpus[set.active[slot].rank] == gpu &&
                   set.active[slot].communication == request.communication,
               fmt::format("communication {:#x} ends at GPU {}, where it is not in progress",
                           request.communication, gpu));
  const Active& active = set.active[slot];
  if (ranks_[active.rank].halted) return;
  if (runs_kernels(active.task)) run_.devices->communication_ends(gpu, active.task.stream, active.channels);
  complete(set, slot, JobRecord::Kind::communication_ends,
           active.task.kind == TaskKind::receive ? started : active.start);
}

void SourceJob::complete(SetState& set, std::uint32_t slot, JobRecord::Kind kind, Time start) {
  if (ranks_[set.active[slot].rank].halted) return;
  JobRecord record = record_of(set, set.active[slot], kind);
  record.posted = set.active[slot].posted;
  record.start = start;
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
  const std::uint32_t queue = record.task.queue;
  if (queue != Task::kUnordered) --ranks_[record.rank].queues[queue].under_way;
  post(record.rank, ready);
  if (queue != Task::kUnordered) serve(set, record.rank, queue);
  set.ready = std::move(ready);
}

JobRecord SourceJob::record_of(const SetState& set, const Active& active, JobRecord::Kind kind) const {
  JobRecord record;
  record.kind = kind;
  record.cause = set.cause;
  record.job = number_;
  record.rank = active.rank;
  record.time = set.loop.now();
  record.communication = active.communication;
  record.task = active.task;
  return record;
}

// ---- Queries between events, when the statistics are as far as the run

// Lists first the running tasks, for which the others wait, then the first waiting task of each stream. A
// halted rank waits for nothing.
std::vector<std::string> SourceJob::waiting(std::size_t limit) const {
  std::vector<std::string> lines;
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].halted) continue;
    const std::vector<Active>& active = set_of(rank).active;
    std::vector<std::uint32_t> slots = ranks_[rank].active;
    std::sort(slots.begin(), slots.end(),
              [&](std::uint32_t a, std::uint32_t b) { return active[a].task.id < active[b].task.id; });
    for (const std::uint32_t slot : slots) {
      if (lines.size() == limit) return lines;
      lines.push_back(describe(active[slot]));
    }
  }
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].halted) continue;
    for (const Task& task : source().held_back(rank)) {
      if (lines.size() == limit) return lines;
      lines.push_back(task_label(source(), rank, task) +
                      " did not start: it waits for other tasks of its rank");
    }
  }
  return lines;
}

std::string SourceJob::describe(const Active& active) const {
  const std::string name = task_label(source(), active.rank, active.task);
  if (active.state == Active::State::held_back) {
    return fmt::format("{} waits for its earliest start, {} s", name,
                       to_seconds(plan_.arrival + active.task.not_before));
  }
  if (active.state == Active::State::pausing) return name + describe_pause(active);
  if (active.state == Active::State::ready)
    return name + " is ready: it waits for earlier tasks of its stream";
  switch (active.task.kind) {
    case TaskKind::compute:
    case TaskKind::host_compute:
      return fmt::format("{} runs until {} s", name, to_seconds(expected_end(active)));
    case TaskKind::collective:
      return name + describe_collective(active);
    case TaskKind::circuits:
      return name + describe_circuits(active);
    case TaskKind::copy_to_host:
    case TaskKind::copy_from_host:
      return name + " is in flight over PCIe";
    case TaskKind::send:
    case TaskKind::receive:
      break;
  }
  return name + describe_point_to_point(active);
}

Time SourceJob::expected_end(const Active& active) const {
  for (const std::uint32_t slot : ranks_[active.rank].active) {
    if (&set_of(active.rank).active[slot] == &active)
      return run_.devices->expected_end(plan_.gpus[active.rank], number_, slot);
  }
  return active.start;
}

std::string SourceJob::describe_collective(const Active& active) const {
  const std::vector<std::uint32_t> ranks = missing(active);
  if (ranks.empty()) return fmt::format(" is in flight among {} ranks", active.group->places.size());
  return fmt::format(" waits for {}, which did not reach it", some_ranks(ranks));
}

std::string SourceJob::describe_circuits(const Active& active) const {
  const std::vector<std::uint32_t> ranks = missing(active);
  const std::size_t members = active.group->places.size();
  const std::string& circuits = source().circuits()[active.task.circuits].name;
  if (ranks.empty())
    return fmt::format(" waits for circuits '{}', asked for by all {} members", circuits, members);
  return fmt::format(" waits for circuits '{}', asked for by {} of {} members, not by {}", circuits,
                     members - ranks.size(), members, some_ranks(ranks));
}

std::string SourceJob::describe_pause(const Active& active) const {
  const std::vector<std::uint32_t> ranks = missing(active);
  if (ranks.empty()) {
    return fmt::format(" begins {} s after the last of its {} ranks has reached it",
                       to_seconds(active.task.pause), active.group->places.size());
  }
  return fmt::format(" begins when all members have reached it, and waits for {}", some_ranks(ranks));
}

// Returns the members that have not reached the communication, in ascending order.
std::vector<std::uint32_t> SourceJob::missing(const Active& active) const {
  std::vector<std::uint32_t> ranks;
  for (const auto& [rank, index] : active.group->places) {
    if (!has_reached(rank, active)) ranks.push_back(rank);
  }
  return ranks;
}

// Returns whether the rank has launched the communication. Either it is running there, or the rank has
// launched more of the group's operations than come before it.
bool SourceJob::has_reached(std::uint32_t rank, const Active& active) const {
  const std::vector<Active>& all = set_of(rank).active;
  for (const std::uint32_t slot : ranks_[rank].active) {
    if (all[slot].communication == active.communication && has_group(all[slot].task))
      return all[slot].state == Active::State::launched || all[slot].state == Active::State::pausing;
  }
  const auto member = ranks_[rank].memberships.find(active.task.group);
  return member != ranks_[rank].memberships.end() && member->second.reached > active.task.sequence;
}

std::string SourceJob::describe_point_to_point(const Active& active) const {
  const std::uint32_t peer = active.task.peer, tag = active.task.tag;
  if (!statistics_.sender_began(active.communication)) {
    return fmt::format(" waits for rank {}, which did not send it (tag {})", peer, tag);
  }
  const char* direction = active.task.kind == TaskKind::send ? "to" : "from";
  return fmt::format(" is in flight {} rank {} (tag {})", direction, peer, tag);
}

}  // namespace

std::unique_ptr<TaskJob> TaskJob::create(const JobRun& run, std::uint32_t number, std::uint32_t first_rank,
                                         JobPlan plan, JobObserver observer) {
  return std::make_unique<SourceJob>(run, number, first_rank, std::move(plan), std::move(observer));
}

}  // namespace netsim
