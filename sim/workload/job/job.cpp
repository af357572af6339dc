#include "sim/workload/job/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "sim/workload/job/communication_id.h"
#include "sim/workload/job/job_books.h"

namespace netsim {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

// The stream of messages that `rank` sends to or receives from task.peer under task.tag.
struct Channel {
  std::uint32_t peer = 0, tag = 0;
  bool sending = false;
  bool operator==(const Channel&) const = default;
};

struct ChannelHash {
  std::size_t operator()(const Channel& c) const {
    return hash_combine(static_cast<std::uint64_t>(c.peer) << 32 | c.tag, c.sending ? 1 : 0);
  }
};

// ---- State

// A group as the executor wants it, and each rank's place in it.
struct Group {
  std::vector<std::uint32_t> gpus;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> places;  // (rank, index), by rank
};

// A task that its rank has reached and that has not ended. A computation is work with a current rate, which
// is 1 as long as nothing contends for the GPU: `remaining` time at rate 1 as of `updated`. Who changes the
// rate brings both up to date, bumps the generation and plans the completion anew; an event of an older
// generation means nothing.
struct Active {
  Task task;
  std::uint32_t rank = 0;
  std::uint32_t generation = 0;
  bool started = false;
  Time posted = 0, start = 0;
  Time remaining = 0, updated = 0;
  std::uint64_t communication = 0;
  std::uint32_t number = 0;  // MessageKey::number
  std::uint32_t place = 0;   // in RankState::active
  std::uint32_t index = 0;   // in the group
  const Group* group = nullptr;
};

struct Membership {
  const Group* group = nullptr;
  std::uint32_t index = 0;
  std::uint32_t reached = 0;  // collectives of the group that the rank has reached
};

// Of one rank, and touched by its set only.
struct alignas(64) RankState {
  Origin origin;
  std::uint32_t set = 0;
  std::uint32_t tasks = 0, done = 0;
  std::vector<bool> done_tasks;
  std::vector<std::uint32_t> active;  // slots of Context::active
  // Looked up only, never iterated.
  std::unordered_map<std::uint32_t, Membership> memberships;
  std::unordered_map<Channel, std::uint32_t, ChannelHash> messages;
};

// What the ranks of one set share.
struct alignas(64) Context {
  explicit Context(EventLoop& event_loop) : loop(event_loop) {}
  EventLoop& loop;
  std::vector<Active> active;  // arena
  // The two ends of a point-to-point task, by slot of `active`. Addresses hold: the executor keeps them.
  std::deque<std::vector<std::uint32_t>> pairs;
  std::vector<std::uint32_t> free_active;
  std::vector<Task> ready;  // scratch
};

// The run of a job is rank-local: ready tasks to timers and communications, completions back to the source.
// It touches the state of the rank and of its set; what was decided before (GPUs, durations, groups) is
// shared. What happens is told to the books, directly or by way of a journal, and never asked of them but for
// answers between the events.
class TaskJob final : public Job, public CommunicationListener {
 public:
  TaskJob(const std::vector<EventLoop*>& loops, const std::vector<std::uint32_t>& set_of_gpu,
          Executor& executor, TaskSource& source, std::vector<std::uint32_t> gpus,
          std::vector<Time> durations, std::uint32_t first_origin, Observer observer);

  void start() override;
  void set_journal(Journal journal) override { journal_ = std::move(journal); }
  void apply(const JobRecord& record) override { books_.apply(record); }
  bool done() const override { return books_.done(); }
  Time begin_time() const override { return begin_; }
  Time end_time() const override { return books_.end_time(); }
  std::uint64_t tasks_done() const override { return books_.tasks_done(); }
  std::uint64_t tasks_total() const override { return books_.tasks_total(); }
  std::vector<RankTimes> rank_times(Time until) const override { return books_.rank_times(until); }
  std::vector<Time> iteration_ends() const override;
  std::vector<std::string> waiting(std::size_t limit) const override;

  void communication_done(std::uint32_t gpu, const CommunicationRequest& request, Time started) override;

 private:
  Context& context_of(std::uint32_t rank) { return contexts_[ranks_[rank].set]; }
  const Context& context_of(std::uint32_t rank) const { return contexts_[ranks_[rank].set]; }

  void post(std::uint32_t rank, const std::vector<Task>& ready);
  void post(std::uint32_t rank, const Task& task);
  std::uint32_t open_active(Context& context, std::uint32_t rank, const Task& task);
  void close_active(Context& context, std::uint32_t slot);
  void validate(std::uint32_t rank, const Task& task) const;
  [[noreturn]] void refuse(std::uint32_t rank, const Task& task, const std::string& message) const {
    refuse_task(source_, rank, task, message);
  }

  void number_communication(Active& active);
  Membership& membership(std::uint32_t rank, const Task& task);
  const Group& map_group(std::uint32_t rank, const Task& task);
  Group make_group(std::uint32_t rank, const Task& task) const;

  void launch(Context& context, std::uint32_t slot);
  void plan_completion(Context& context, std::uint32_t slot);
  void launch_communication(Context& context, std::uint32_t slot);
  const std::vector<std::uint32_t>& members(Context& context, std::uint32_t slot) const;
  static CommunicationRequest request(const Active& active, const std::vector<std::uint32_t>& members,
                                      std::uint32_t slot);

  void job_event(const Event& event);
  void compute_done(const Event& event);
  void complete(Context& context, std::uint32_t slot, JobRecord::Kind kind, Time start);
  static JobRecord record_of(const Context& context, const Active& active, JobRecord::Kind kind);
  void tell(const JobRecord& record) {
    if (journal_) {
      journal_(ranks_[record.rank].set, record);
    } else {
      books_.apply(record);
    }
  }

  std::uint32_t first_unfinished_iteration() const;
  std::string describe(const Active& active) const;
  std::string describe_collective(const Active& active) const;
  std::string describe_point_to_point(const Active& active) const;
  std::vector<std::string> not_started(std::uint32_t rank) const;

  Executor& executor_;
  TaskSource& source_;
  JobBooks books_;
  Journal journal_;
  std::vector<std::uint32_t> gpus_;
  std::vector<Time> durations_;
  std::vector<std::uint32_t> rank_of_gpu_;
  std::vector<Context> contexts_;  // by set
  std::vector<RankState> ranks_;
  // Filled by whichever rank first names a group. Entries stay where they are and never change.
  std::map<std::uint32_t, Group> groups_;
  std::mutex groups_mutex_;
  Time begin_ = 0;
};

TaskJob::TaskJob(const std::vector<EventLoop*>& loops, const std::vector<std::uint32_t>& set_of_gpu,
                 Executor& executor, TaskSource& source, std::vector<std::uint32_t> gpus,
                 std::vector<Time> durations, std::uint32_t first_origin, Observer observer)
    : executor_(executor),
      source_(source),
      books_(source, std::move(observer)),
      gpus_(std::move(gpus)),
      durations_(std::move(durations)),
      ranks_(source.ranks()) {
  NETSIM_CHECK(gpus_.size() == ranks_.size(), "one GPU per rank");
  NETSIM_CHECK(durations_.size() == source_.works().size(), "one duration per work");
  contexts_.reserve(loops.size());
  for (EventLoop* loop : loops) contexts_.emplace_back(*loop);
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    const std::uint32_t gpu = gpus_[rank];
    if (gpu >= rank_of_gpu_.size()) rank_of_gpu_.resize(gpu + std::size_t{1}, kNone);
    NETSIM_CHECK(rank_of_gpu_[gpu] == kNone, fmt::format("two ranks on GPU {}", gpu));
    NETSIM_CHECK(gpu < set_of_gpu.size() && set_of_gpu[gpu] < contexts_.size(),
                 fmt::format("GPU {} is in no set", gpu));
    rank_of_gpu_[gpu] = rank;
    ranks_[rank].origin = Origin(first_origin + rank);
    ranks_[rank].set = set_of_gpu[gpu];
    ranks_[rank].tasks = source_.task_count(rank);
    ranks_[rank].done_tasks.resize(ranks_[rank].tasks);
  }
  executor_.set_listener(this);
  for (EventLoop* loop : loops) {
    loop->set_handler<&TaskJob::job_event>(EventKind::job, *this);
    loop->set_handler<&TaskJob::compute_done>(EventKind::compute_done, *this);
  }
}

void TaskJob::start() {
  begin_ = contexts_.front().loop.now();
  books_.open(begin_);
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    std::vector<Task> ready;
    source_.start(rank, ready);
    post(rank, ready);
  }
}

// ---- From ready to running

void TaskJob::post(std::uint32_t rank, const std::vector<Task>& ready) {
  for (const Task& task : ready) post(rank, task);
}

void TaskJob::post(std::uint32_t rank, const Task& task) {
  validate(rank, task);
  Context& context = context_of(rank);
  const std::uint32_t slot = open_active(context, rank, task);
  if (task.kind != TaskKind::compute) number_communication(context.active[slot]);
  if (task.not_before > 0 && begin_ + task.not_before > context.loop.now()) {
    context.loop.schedule(begin_ + task.not_before, ranks_[rank].origin, EventKind::job, rank, slot);
  } else {
    launch(context, slot);
  }
}

void TaskJob::job_event(const Event& event) {
  const auto slot = static_cast<std::uint32_t>(event.argument);
  Context& context = context_of(event.target);
  const std::uint32_t id = context.active[slot].task.id;
  launch(context, slot);
  std::vector<Task> ready = std::move(context.ready);
  ready.clear();
  source_.launched(event.target, id, ready);
  post(event.target, ready);
  context.ready = std::move(ready);
}

std::uint32_t TaskJob::open_active(Context& context, std::uint32_t rank, const Task& task) {
  auto slot = static_cast<std::uint32_t>(context.active.size());
  if (context.free_active.empty()) {
    context.active.emplace_back();
    context.pairs.emplace_back();
  } else {
    slot = context.free_active.back();
    context.free_active.pop_back();
  }
  Active& active = context.active[slot];
  const std::uint32_t generation = active.generation;
  active = Active{};
  active.task = task;
  active.rank = rank;
  active.generation = generation;
  active.posted = context.loop.now();
  active.place = static_cast<std::uint32_t>(ranks_[rank].active.size());
  ranks_[rank].active.push_back(slot);
  return slot;
}

void TaskJob::close_active(Context& context, std::uint32_t slot) {
  Active& active = context.active[slot];
  std::vector<std::uint32_t>& list = ranks_[active.rank].active;
  list[active.place] = list.back();
  context.active[list.back()].place = active.place;
  list.pop_back();
  active.started = false;
  ++active.generation;
  context.free_active.push_back(slot);
}

// What no reader of workloads can have checked for all sources alike: a task that cannot be played is the
// user's.
void TaskJob::validate(std::uint32_t rank, const Task& task) const {
  NETSIM_CHECK(task.id < ranks_[rank].tasks && !ranks_[rank].done_tasks[task.id], "a task is ready twice");
  if (task.iteration >= source_.iterations()) {
    refuse(rank, task, fmt::format("iteration {} of {}", task.iteration, source_.iterations()));
  }
  if (task.kind == TaskKind::compute) {
    if (task.work >= durations_.size()) refuse(rank, task, fmt::format("work {} does not exist", task.work));
    return;
  }
  if (task.bytes <= 0) refuse(rank, task, fmt::format("{} bytes (allowed: at least 1)", task.bytes));
  if (is_point_to_point(task) && (task.peer >= ranks_.size() || task.peer == rank)) {
    refuse(rank, task, fmt::format("peer {} (allowed: another rank, 0 to {})", task.peer, ranks_.size() - 1));
  }
}

void TaskJob::number_communication(Active& active) {
  const Task& task = active.task;
  if (task.kind == TaskKind::collective) {
    Membership& member = membership(active.rank, task);
    active.group = member.group;
    active.index = member.index;
    active.communication = collective_id(task.group, member.reached++);
    return;
  }
  const bool sending = task.kind == TaskKind::send;
  active.index = sending ? 0 : 1;
  // A million flows are not remembered one by one.
  if (!task.only_of_tag)
    active.number = ranks_[active.rank].messages[Channel{task.peer, task.tag, sending}]++;
  active.communication = message_id(message_of(active.rank, task, active.number));
}

Membership& TaskJob::membership(std::uint32_t rank, const Task& task) {
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

const Group& TaskJob::map_group(std::uint32_t rank, const Task& task) {
  const std::lock_guard lock(groups_mutex_);
  const auto known = groups_.find(task.group);
  if (known != groups_.end()) return known->second;
  return groups_.emplace(task.group, make_group(rank, task)).first->second;
}

Group TaskJob::make_group(std::uint32_t rank, const Task& task) const {
  Group group;
  for (const std::uint32_t member : source_.group(task.group)) {
    if (member >= ranks_.size()) {
      refuse(rank, task, fmt::format("group {} has rank {} of {}", task.group, member, ranks_.size()));
    }
    group.places.emplace_back(member, static_cast<std::uint32_t>(group.gpus.size()));
    group.gpus.push_back(gpus_[member]);
  }
  std::sort(group.places.begin(), group.places.end());
  const auto twice = std::adjacent_find(group.places.begin(), group.places.end(),
                                        [](const auto& a, const auto& b) { return a.first == b.first; });
  if (twice != group.places.end()) {
    refuse(rank, task, fmt::format("group {} has rank {} twice", task.group, twice->first));
  }
  return group;
}

void TaskJob::launch(Context& context, std::uint32_t slot) {
  Active& active = context.active[slot];
  active.started = true;
  active.start = active.updated = context.loop.now();
  if (active.task.kind != TaskKind::compute) {
    launch_communication(context, slot);
    return;
  }
  active.remaining = durations_[active.task.work];
  tell(record_of(context, active, JobRecord::Kind::compute_begins));
  plan_completion(context, slot);
}

void TaskJob::plan_completion(Context& context, std::uint32_t slot) {
  const Active& active = context.active[slot];
  const std::uint64_t argument = static_cast<std::uint64_t>(active.generation) << 32 | slot;
  context.loop.schedule(active.updated + active.remaining, ranks_[active.rank].origin,
                        EventKind::compute_done, active.rank, argument);
}

// The books hear of it first: they refuse members that disagree.
void TaskJob::launch_communication(Context& context, std::uint32_t slot) {
  const Active& active = context.active[slot];
  tell(record_of(context, active, JobRecord::Kind::communication_begins));
  executor_.start(gpus_[active.rank], request(active, members(context, slot), slot));
}

// GPUs in the order of the group, at an address that holds until the task ends.
const std::vector<std::uint32_t>& TaskJob::members(Context& context, std::uint32_t slot) const {
  const Active& active = context.active[slot];
  if (active.group != nullptr) return active.group->gpus;
  const MessageKey message = message_of(active.rank, active.task, active.number);
  std::vector<std::uint32_t>& pair = context.pairs[slot];
  pair.assign({gpus_[message.sender], gpus_[message.receiver]});
  return pair;
}

CommunicationRequest TaskJob::request(const Active& active, const std::vector<std::uint32_t>& members,
                                      std::uint32_t slot) {
  CommunicationRequest request;
  request.kind = is_point_to_point(active.task) ? CollectiveKind::point_to_point : active.task.collective;
  request.members = &members;
  request.index = active.index;
  request.root = active.task.root;
  request.bytes = active.task.bytes;
  request.communication = active.communication;
  request.handle = slot;
  request.raw = active.task.raw;
  request.traits = active.task.traits;
  request.name = active.task.name;
  return request;
}

// ---- From running to done

void TaskJob::compute_done(const Event& event) {
  const auto slot = static_cast<std::uint32_t>(event.argument);
  Context& context = context_of(event.target);
  const Active& active = context.active[slot];
  if (active.generation != event.argument >> 32) return;
  complete(context, slot, JobRecord::Kind::compute_ends, active.start);
}

void TaskJob::communication_done(std::uint32_t gpu, const CommunicationRequest& request, Time started) {
  const std::uint32_t rank = gpu < rank_of_gpu_.size() ? rank_of_gpu_[gpu] : kNone;
  NETSIM_CHECK(rank != kNone, fmt::format("a communication ends at GPU {}, which has no rank", gpu));
  Context& context = context_of(rank);
  const std::uint32_t slot = request.handle;
  NETSIM_CHECK(slot < context.active.size() && context.active[slot].started &&
                   context.active[slot].rank == rank &&
                   context.active[slot].communication == request.communication,
               fmt::format("communication {:#x} ends at GPU {}, where it is not under way",
                           request.communication, gpu));
  const Active& active = context.active[slot];
  complete(context, slot, JobRecord::Kind::communication_ends,
           active.task.kind == TaskKind::receive ? started : active.start);
}

void TaskJob::complete(Context& context, std::uint32_t slot, JobRecord::Kind kind, Time start) {
  JobRecord record = record_of(context, context.active[slot], kind);
  record.posted = context.active[slot].posted;
  record.start = start;
  close_active(context, slot);
  RankState& state = ranks_[record.rank];
  state.done_tasks[record.task.id] = true;
  ++state.done;
  tell(record);
  std::vector<Task> ready = std::move(context.ready);
  ready.clear();
  source_.complete(record.rank, record.task.id, ready);
  post(record.rank, ready);
  context.ready = std::move(ready);
}

JobRecord TaskJob::record_of(const Context& context, const Active& active, JobRecord::Kind kind) {
  JobRecord record;
  record.kind = kind;
  record.rank = active.rank;
  record.time = context.loop.now();
  record.communication = active.communication;
  record.number = active.number;
  record.task = active.task;
  return record;
}

// ---- Answers, between the events: the books and the run are equally far

std::vector<Time> TaskJob::iteration_ends() const {
  const std::vector<Time>& all = books_.iteration_ends();
  std::vector<Time> ends(all.begin(), all.begin() + first_unfinished_iteration());
  Time latest = begin_;
  for (Time& end : ends) end = latest = std::max(latest, end);
  return ends;
}

// Looks at every task that is not done, so that sources may number iterations as they like.
std::uint32_t TaskJob::first_unfinished_iteration() const {
  std::uint32_t first = source_.iterations();
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    const RankState& state = ranks_[rank];
    if (state.done == state.tasks) continue;
    for (std::uint32_t id = 0; id < state.tasks; ++id) {
      if (!state.done_tasks[id]) first = std::min(first, source_.task(rank, id).iteration);
    }
  }
  return first;
}

// First what is under way, which is what the others wait for, then the first task of each stream that is not.
std::vector<std::string> TaskJob::waiting(std::size_t limit) const {
  std::vector<std::string> lines;
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    const std::vector<Active>& active = context_of(rank).active;
    std::vector<std::uint32_t> slots = ranks_[rank].active;
    std::sort(slots.begin(), slots.end(),
              [&](std::uint32_t a, std::uint32_t b) { return active[a].task.id < active[b].task.id; });
    for (const std::uint32_t slot : slots) {
      if (lines.size() == limit) return lines;
      lines.push_back(describe(active[slot]));
    }
  }
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    for (std::string& line : not_started(rank)) {
      if (lines.size() == limit) return lines;
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

std::string TaskJob::describe(const Active& active) const {
  const std::string name = task_label(source_, active.rank, active.task);
  if (!active.started) {
    return fmt::format("{} waits for its earliest start, {} s", name,
                       to_seconds(begin_ + active.task.not_before));
  }
  switch (active.task.kind) {
    case TaskKind::compute:
      return fmt::format("{} runs until {} s", name, to_seconds(active.updated + active.remaining));
    case TaskKind::collective:
      return name + describe_collective(active);
    case TaskKind::send:
    case TaskKind::receive:
      break;
  }
  return name + describe_point_to_point(active);
}

std::string TaskJob::describe_collective(const Active& active) const {
  constexpr std::size_t kNamed = 4;
  const std::uint32_t number = static_cast<std::uint32_t>(active.communication) & 0x7fffffffU;
  std::string named;
  std::size_t missing = 0;
  for (const auto& [rank, index] : active.group->places) {
    const auto member = ranks_[rank].memberships.find(active.task.group);
    if (member != ranks_[rank].memberships.end() && member->second.reached > number) continue;
    if (++missing <= kNamed) named += fmt::format("{} {}", missing == 1 ? "" : ",", rank);
  }
  if (missing == 0) return fmt::format(" is in flight among {} ranks", active.group->places.size());
  if (missing > kNamed) named += fmt::format(" and {} more", missing - kNamed);
  return fmt::format(" waits for rank{}{}, which did not reach it", missing == 1 ? "" : "s", named);
}

std::string TaskJob::describe_point_to_point(const Active& active) const {
  const std::uint32_t peer = active.task.peer, tag = active.task.tag;
  if (!books_.sender_began(active.communication)) {
    return fmt::format(" waits for rank {}, which did not send it (tag {})", peer, tag);
  }
  const char* direction = active.task.kind == TaskKind::send ? "to" : "from";
  return fmt::format(" is in flight {} rank {} (tag {})", direction, peer, tag);
}

std::vector<std::string> TaskJob::not_started(std::uint32_t rank) const {
  const RankState& state = ranks_[rank];
  std::vector<bool> known = state.done_tasks;
  for (const std::uint32_t slot : state.active) known[context_of(rank).active[slot].task.id] = true;
  std::array<bool, kStreams> named{};
  std::vector<std::string> lines;
  for (std::uint32_t id = 0; id < state.tasks && lines.size() < named.size(); ++id) {
    if (known[id]) continue;
    const Task task = source_.task(rank, id);
    if (std::exchange(named[static_cast<std::size_t>(task.stream)], true)) continue;
    lines.push_back(task_label(source_, rank, task) + " did not start: it waits for other tasks of its rank");
  }
  return lines;
}

}  // namespace

std::unique_ptr<Job> Job::create(const std::vector<EventLoop*>& loops,
                                 const std::vector<std::uint32_t>& set_of_gpu, Executor& executor,
                                 TaskSource& source, std::vector<std::uint32_t> gpus,
                                 std::vector<Time> durations, std::uint32_t first_origin, Observer observer) {
  return std::make_unique<TaskJob>(loops, set_of_gpu, executor, source, std::move(gpus), std::move(durations),
                                   first_origin, std::move(observer));
}

std::unique_ptr<Job> Job::create(EventLoop& loop, Executor& executor, TaskSource& source,
                                 std::vector<std::uint32_t> gpus, std::vector<Time> durations,
                                 std::uint32_t first_origin, Observer observer) {
  std::uint32_t last = 0;
  for (const std::uint32_t gpu : gpus) last = std::max(last, gpu);
  return create({&loop}, std::vector<std::uint32_t>(last + std::size_t{1}, 0), executor, source,
                std::move(gpus), std::move(durations), first_origin, std::move(observer));
}

}  // namespace netsim
