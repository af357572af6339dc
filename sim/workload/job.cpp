#include "sim/workload/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <unordered_map>
#include <utility>

#include "sim/core/errors.h"
#include "sim/core/random.h"
#include "sim/workload/communication_id.h"
#include "sim/workload/rank_ledger.h"

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

bool is_point_to_point(const Task& task) {
  return task.kind == TaskKind::send || task.kind == TaskKind::receive;
}

// A group as the executor wants it, and each rank's place in it.
struct Group {
  std::vector<std::uint32_t> gpus;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> places;  // (rank, index), by rank
};

// A communication from its first member's start to its last member's end.
struct Operation {
  std::uint64_t id = 0;
  CollectiveKind kind = CollectiveKind::all_reduce;
  Stream stream = Stream::tp;
  bool raw = false;
  std::uint32_t root = 0, name = 0;
  std::uint32_t ranks = 0, first_rank = 0;
  std::uint32_t finished = 0;  // members
  Bytes bytes = 0;
  Time first_start = 0, last_start = 0;
  // Point-to-point only.
  MessageKey message;
  std::vector<std::uint32_t> gpus;
  std::uint32_t sending = kNone, receiving = kNone;  // the two ends' Active
  Time sender_start = kNever;
  Time delivered = kNever;
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
  MessageKey message;
  std::uint32_t place = 0;  // in RankState::active
  std::uint32_t index = 0;  // in the group
  const Group* group = nullptr;
};

struct Membership {
  const Group* group = nullptr;
  std::uint32_t index = 0;
  std::uint32_t reached = 0;  // collectives of the group that the rank has reached
};

struct RankState {
  Origin origin;
  std::uint32_t tasks = 0, done = 0;
  std::vector<bool> done_tasks;
  std::vector<std::uint32_t> active;       // all
  std::vector<std::uint32_t> collectives;  // the started ones of them that are collectives: a few
  // Looked up only, never iterated.
  std::unordered_map<std::uint32_t, Membership> memberships;
  std::unordered_map<Channel, std::uint32_t, ChannelHash> messages;
  RankLedger ledger;
};

class TaskJob final : public Job, public CommunicationListener {
 public:
  TaskJob(EventLoop& loop, Executor& executor, TaskSource& source, std::vector<std::uint32_t> gpus,
          std::vector<Time> durations, std::uint32_t first_origin, Observer observer);

  void start() override;
  bool done() const override { return tasks_done_ == tasks_total_; }
  Time begin_time() const override { return begin_; }
  Time end_time() const override { return end_; }
  std::uint64_t tasks_done() const override { return tasks_done_; }
  std::uint64_t tasks_total() const override { return tasks_total_; }
  std::vector<RankTimes> rank_times(Time until) const override;
  std::vector<Time> iteration_ends() const override;
  std::vector<std::string> waiting(std::size_t limit) const override;

  void communication_done(std::uint32_t gpu, std::uint64_t communication, Time started) override;

 private:
  void post(std::uint32_t rank, const std::vector<Task>& ready);
  void post(std::uint32_t rank, const Task& task);
  std::uint32_t open_active(std::uint32_t rank, const Task& task);
  void close_active(std::uint32_t slot);
  void validate(std::uint32_t rank, const Task& task) const;
  [[noreturn]] void refuse(std::uint32_t rank, const Task& task, const std::string& message) const;

  void number_communication(Active& active);
  Membership& membership(std::uint32_t rank, const Task& task);
  const Group& map_group(std::uint32_t rank, const Task& task);

  void launch(std::uint32_t slot);
  void plan_completion(std::uint32_t slot);
  void launch_collective(std::uint32_t slot);
  void launch_point_to_point(std::uint32_t slot);
  Operation& join(const Active& active);
  void describe_operation(Operation& operation, const Active& active) const;
  void require_agreement(const Operation& operation, const Active& active) const;
  CommunicationRequest request(const Active& active, const std::vector<std::uint32_t>& members,
                               std::uint32_t index) const;

  void job_event(const Event& event);
  void compute_done(const Event& event);
  std::uint32_t take_member(Operation& operation, std::uint32_t rank);
  void deliver(Operation& operation);
  void report(const Operation& operation, Time end) const;
  void complete(std::uint32_t slot, Time start, Time end);

  std::uint32_t first_unfinished_iteration() const;
  std::string label(std::uint32_t rank, const Task& task) const;
  std::string describe(const Active& active) const;
  std::string describe_collective(const Active& active) const;
  std::string describe_point_to_point(const Active& active) const;
  std::vector<std::string> not_started(std::uint32_t rank) const;

  EventLoop& loop_;
  Executor& executor_;
  TaskSource& source_;
  std::vector<std::uint32_t> gpus_;
  std::vector<Time> durations_;
  Observer observer_;
  std::vector<std::uint32_t> rank_of_gpu_;
  std::vector<RankState> ranks_;
  std::vector<Active> active_;  // arena
  std::vector<std::uint32_t> free_active_;
  std::deque<Operation> operations_;  // arena; addresses hold, the executor keeps Operation::gpus
  std::vector<std::uint32_t> free_operations_;
  std::unordered_map<std::uint64_t, std::uint32_t> live_;  // communication id to operation; looked up only
  std::map<std::uint32_t, Group> groups_;
  std::vector<Task> ready_;  // scratch
  std::vector<Time> iteration_ends_;
  std::uint64_t tasks_done_ = 0, tasks_total_ = 0;
  Time begin_ = 0, end_ = 0;
};

TaskJob::TaskJob(EventLoop& loop, Executor& executor, TaskSource& source, std::vector<std::uint32_t> gpus,
                 std::vector<Time> durations, std::uint32_t first_origin, Observer observer)
    : loop_(loop),
      executor_(executor),
      source_(source),
      gpus_(std::move(gpus)),
      durations_(std::move(durations)),
      observer_(std::move(observer)),
      ranks_(source.ranks()),
      iteration_ends_(source.iterations(), 0) {
  NETSIM_CHECK(gpus_.size() == ranks_.size(), "one GPU per rank");
  NETSIM_CHECK(durations_.size() == source_.works().size(), "one duration per work");
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (gpus_[rank] >= rank_of_gpu_.size()) rank_of_gpu_.resize(gpus_[rank] + std::size_t{1}, kNone);
    NETSIM_CHECK(rank_of_gpu_[gpus_[rank]] == kNone, fmt::format("two ranks on GPU {}", gpus_[rank]));
    rank_of_gpu_[gpus_[rank]] = rank;
    ranks_[rank].origin = Origin(first_origin + rank);
    ranks_[rank].tasks = source_.task_count(rank);
    ranks_[rank].done_tasks.resize(ranks_[rank].tasks);
    tasks_total_ += ranks_[rank].tasks;
  }
  executor_.set_listener(this);
  loop_.set_handler(
      EventKind::job, [](void* self, const Event& event) { static_cast<TaskJob*>(self)->job_event(event); },
      this);
  loop_.set_handler(
      EventKind::compute_done,
      [](void* self, const Event& event) { static_cast<TaskJob*>(self)->compute_done(event); }, this);
}

void TaskJob::start() {
  begin_ = end_ = loop_.now();
  for (RankState& state : ranks_) state.ledger.open(begin_);
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
  const std::uint32_t slot = open_active(rank, task);
  if (task.kind != TaskKind::compute) number_communication(active_[slot]);
  if (task.not_before > 0 && begin_ + task.not_before > loop_.now()) {
    loop_.schedule(begin_ + task.not_before, ranks_[rank].origin, EventKind::job, rank, slot);
  } else {
    launch(slot);
  }
}

void TaskJob::job_event(const Event& event) {
  const auto slot = static_cast<std::uint32_t>(event.argument);
  const std::uint32_t rank = active_[slot].rank, id = active_[slot].task.id;
  launch(slot);
  std::vector<Task> ready = std::move(ready_);
  ready.clear();
  source_.launched(rank, id, ready);
  post(rank, ready);
  ready_ = std::move(ready);
}

std::uint32_t TaskJob::open_active(std::uint32_t rank, const Task& task) {
  auto slot = static_cast<std::uint32_t>(active_.size());
  if (free_active_.empty()) {
    active_.emplace_back();
  } else {
    slot = free_active_.back();
    free_active_.pop_back();
  }
  const std::uint32_t generation = active_[slot].generation;
  active_[slot] = Active{};
  Active& active = active_[slot];
  active.task = task;
  active.rank = rank;
  active.generation = generation;
  active.posted = loop_.now();
  active.place = static_cast<std::uint32_t>(ranks_[rank].active.size());
  ranks_[rank].active.push_back(slot);
  return slot;
}

void TaskJob::close_active(std::uint32_t slot) {
  std::vector<std::uint32_t>& list = ranks_[active_[slot].rank].active;
  list[active_[slot].place] = list.back();
  active_[list.back()].place = active_[slot].place;
  list.pop_back();
  ++active_[slot].generation;
  free_active_.push_back(slot);
}

// What no reader of workloads can have checked for all sources alike: a task that cannot be played is the
// user's.
void TaskJob::validate(std::uint32_t rank, const Task& task) const {
  NETSIM_CHECK(task.id < ranks_[rank].tasks && !ranks_[rank].done_tasks[task.id], "a task is ready twice");
  if (task.iteration >= iteration_ends_.size()) {
    refuse(rank, task, fmt::format("iteration {} of {}", task.iteration, iteration_ends_.size()));
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

void TaskJob::refuse(std::uint32_t rank, const Task& task, const std::string& message) const {
  throw InputError(fmt::format("{}: {}: {}", source_.job_name(), label(rank, task), message));
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
  active.message.sender = sending ? active.rank : task.peer;
  active.message.receiver = sending ? task.peer : active.rank;
  active.message.tag = task.tag;
  active.message.number = ranks_[active.rank].messages[Channel{task.peer, task.tag, sending}]++;
  active.communication = message_id(active.message);
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
  const auto known = groups_.find(task.group);
  if (known != groups_.end()) return known->second;
  Group& group = groups_[task.group];
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

void TaskJob::launch(std::uint32_t slot) {
  Active& active = active_[slot];
  active.started = true;
  active.start = active.updated = loop_.now();
  switch (active.task.kind) {
    case TaskKind::compute:
      active.remaining = durations_[active.task.work];
      ranks_[active.rank].ledger.compute_begins(loop_.now());
      plan_completion(slot);
      break;
    case TaskKind::collective:
      launch_collective(slot);
      break;
    case TaskKind::send:
    case TaskKind::receive:
      launch_point_to_point(slot);
      break;
  }
}

void TaskJob::plan_completion(std::uint32_t slot) {
  const Active& active = active_[slot];
  const std::uint64_t argument = static_cast<std::uint64_t>(active.generation) << 32 | slot;
  loop_.schedule(active.updated + active.remaining, ranks_[active.rank].origin, EventKind::compute_done,
                 active.rank, argument);
}

void TaskJob::launch_collective(std::uint32_t slot) {
  const Active& active = active_[slot];
  RankState& state = ranks_[active.rank];
  state.collectives.push_back(slot);
  state.ledger.communication_begins(active.task.stream, loop_.now());
  join(active);
  executor_.start(gpus_[active.rank], request(active, active.group->gpus, active.index));
}

// In flight at both ends from the sender's start; the receiver's books have the sender's kind.
void TaskJob::launch_point_to_point(std::uint32_t slot) {
  const Active& active = active_[slot];
  Operation& operation = join(active);
  if (active.task.kind == TaskKind::send) {
    operation.sending = slot;
    operation.stream = active.task.stream;
    operation.sender_start = loop_.now();
    ranks_[operation.message.sender].ledger.communication_begins(operation.stream, loop_.now());
    ranks_[operation.message.receiver].ledger.communication_begins(operation.stream, loop_.now());
  } else {
    operation.receiving = slot;
  }
  executor_.start(gpus_[active.rank], request(active, operation.gpus, active.index));
}

// The operation of the task, opened by its first member.
Operation& TaskJob::join(const Active& active) {
  const auto [it, first] = live_.try_emplace(active.communication, 0);
  if (first && free_operations_.empty()) {
    free_operations_.push_back(static_cast<std::uint32_t>(operations_.size()));
    operations_.emplace_back();
  }
  if (first) {
    it->second = free_operations_.back();
    free_operations_.pop_back();
    describe_operation(operations_[it->second], active);
  }
  Operation& operation = operations_[it->second];
  NETSIM_CHECK(operation.message == active.message,
               fmt::format("two operations have the id {:#x}", active.communication));
  if (!first) require_agreement(operation, active);
  operation.last_start = loop_.now();
  return operation;
}

void TaskJob::describe_operation(Operation& operation, const Active& active) const {
  const Task& task = active.task;
  operation = Operation{};
  operation.id = active.communication;
  operation.stream = task.stream;
  operation.raw = task.raw;
  operation.name = task.name;
  operation.bytes = task.bytes;
  operation.first_start = loop_.now();
  operation.message = active.message;
  if (is_point_to_point(task)) {
    operation.kind = CollectiveKind::point_to_point;
    operation.gpus = {gpus_[active.message.sender], gpus_[active.message.receiver]};
    operation.ranks = 2;
    operation.first_rank = active.message.sender;
  } else {
    operation.kind = task.collective;
    operation.root = task.root;
    operation.ranks = static_cast<std::uint32_t>(active.group->gpus.size());
    operation.first_rank = source_.group(task.group).front();
  }
}

// What the first member said must be what the others say: else the executor would wait for ever, or worse.
void TaskJob::require_agreement(const Operation& operation, const Active& active) const {
  const Task& task = active.task;
  const char* kind = to_string(is_point_to_point(task) ? CollectiveKind::point_to_point : task.collective);
  if (operation.bytes != task.bytes) {
    refuse(active.rank, task, fmt::format("{} bytes, but {} at another rank", task.bytes, operation.bytes));
  }
  if (operation.raw != task.raw) refuse(active.rank, task, "raw at one end only");
  if (is_point_to_point(task)) return;
  if (operation.kind != task.collective) {
    refuse(active.rank, task, fmt::format("{}, but {} at another rank", kind, to_string(operation.kind)));
  }
  if (operation.root != task.root) {
    refuse(active.rank, task, fmt::format("root {}, but {} at another rank", task.root, operation.root));
  }
}

CommunicationRequest TaskJob::request(const Active& active, const std::vector<std::uint32_t>& members,
                                      std::uint32_t index) const {
  CommunicationRequest request;
  request.kind = is_point_to_point(active.task) ? CollectiveKind::point_to_point : active.task.collective;
  request.members = &members;
  request.index = index;
  request.root = active.task.root;
  request.bytes = active.task.bytes;
  request.communication = active.communication;
  request.raw = active.task.raw;
  request.channel = active.task.channel;
  request.traffic_class = active.task.traffic_class;
  return request;
}

// ---- From running to done

void TaskJob::compute_done(const Event& event) {
  const auto slot = static_cast<std::uint32_t>(event.argument);
  if (active_[slot].generation != event.argument >> 32) return;
  ranks_[active_[slot].rank].ledger.compute_ends(loop_.now());
  complete(slot, active_[slot].start, loop_.now());
}

void TaskJob::communication_done(std::uint32_t gpu, std::uint64_t communication, Time started) {
  const std::uint32_t rank = gpu < rank_of_gpu_.size() ? rank_of_gpu_[gpu] : kNone;
  const auto it = live_.find(communication);
  NETSIM_CHECK(it != live_.end() && rank != kNone,
               fmt::format("communication {:#x} ends at GPU {}, where it never began", communication, gpu));
  Operation& operation = operations_[it->second];
  const std::uint32_t slot = take_member(operation, rank);
  NETSIM_CHECK(slot != kNone, fmt::format("communication {:#x} ends twice at GPU {}", communication, gpu));
  const Task& task = active_[slot].task;
  Time start = active_[slot].start, end = loop_.now();
  if (is_point_to_point(task)) {
    deliver(operation);
    end = operation.delivered;
    if (task.kind == TaskKind::receive) start = started;
  } else {
    ranks_[rank].ledger.communication_ends(task.stream, end);
  }
  if (++operation.finished == operation.ranks) {
    report(operation, end);
    free_operations_.push_back(it->second);
    live_.erase(it);
  }
  complete(slot, start, end);
}

// The task of `rank` in the operation, which it leaves; kNone if it is not in it.
std::uint32_t TaskJob::take_member(Operation& operation, std::uint32_t rank) {
  if (operation.kind == CollectiveKind::point_to_point) {
    return std::exchange(rank == operation.message.sender ? operation.sending : operation.receiving, kNone);
  }
  std::vector<std::uint32_t>& list = ranks_[rank].collectives;
  const auto place = std::find_if(list.begin(), list.end(), [&](std::uint32_t slot) {
    return active_[slot].communication == operation.id;
  });
  if (place == list.end()) return kNone;
  const std::uint32_t slot = *place;
  list.erase(place);
  return slot;
}

// The first end to report knows best: a receiver that waited is told at the delivery, a sender a little
// later.
void TaskJob::deliver(Operation& operation) {
  if (operation.delivered != kNever) return;
  operation.delivered = loop_.now();
  ranks_[operation.message.sender].ledger.communication_ends(operation.stream, loop_.now());
  ranks_[operation.message.receiver].ledger.communication_ends(operation.stream, loop_.now());
}

void TaskJob::report(const Operation& operation, Time end) const {
  if (!observer_.communication) return;
  CommunicationRecord record;
  record.id = operation.id;
  record.kind = operation.kind;
  record.stream = operation.stream;
  record.name = operation.name;
  record.ranks = operation.ranks;
  record.first_rank = operation.first_rank;
  record.bytes = operation.bytes;
  record.first_start = operation.first_start;
  record.last_start = operation.last_start;
  record.end = end;
  observer_.communication(record);
}

void TaskJob::complete(std::uint32_t slot, Time start, Time end) {
  const TaskRecord record{active_[slot].rank, active_[slot].task, active_[slot].posted, start, end};
  close_active(slot);
  RankState& state = ranks_[record.rank];
  state.done_tasks[record.task.id] = true;
  ++state.done;
  ++tasks_done_;
  end_ = std::max(end_, end);
  Time& iteration_end = iteration_ends_[record.task.iteration];
  iteration_end = std::max(iteration_end, end);
  if (observer_.task) observer_.task(record);
  std::vector<Task> ready = std::move(ready_);
  ready.clear();
  source_.complete(record.rank, record.task.id, ready);
  post(record.rank, ready);
  ready_ = std::move(ready);
}

// ---- Answers

std::vector<RankTimes> TaskJob::rank_times(Time until) const {
  std::vector<RankTimes> times;
  times.reserve(ranks_.size());
  for (const RankState& state : ranks_) times.push_back(state.ledger.times(until));
  return times;
}

std::vector<Time> TaskJob::iteration_ends() const {
  std::vector<Time> ends(iteration_ends_.begin(), iteration_ends_.begin() + first_unfinished_iteration());
  Time latest = begin_;
  for (Time& end : ends) end = latest = std::max(latest, end);
  return ends;
}

// Looks at every task that is not done, so that sources may number iterations as they like.
std::uint32_t TaskJob::first_unfinished_iteration() const {
  auto first = static_cast<std::uint32_t>(iteration_ends_.size());
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
  for (const RankState& state : ranks_) {
    std::vector<std::uint32_t> slots = state.active;
    std::sort(slots.begin(), slots.end(),
              [&](std::uint32_t a, std::uint32_t b) { return active_[a].task.id < active_[b].task.id; });
    for (const std::uint32_t slot : slots) {
      if (lines.size() == limit) return lines;
      lines.push_back(describe(active_[slot]));
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

std::string TaskJob::label(std::uint32_t rank, const Task& task) const {
  const std::vector<std::string>& names = source_.names();
  const char* kind = task.kind == TaskKind::collective ? to_string(task.collective) : to_string(task.kind);
  return fmt::format("rank {}, stream {}: {} '{}' (task {})", rank, to_string(task.stream), kind,
                     task.name < names.size() ? names[task.name] : std::string("?"), task.id);
}

std::string TaskJob::describe(const Active& active) const {
  const std::string name = label(active.rank, active.task);
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
  const Operation& operation = operations_[live_.at(active.communication)];
  const std::uint32_t peer = active.task.peer, tag = active.task.tag;
  if (operation.sender_start == kNever) {
    return fmt::format(" waits for rank {}, which did not send it (tag {})", peer, tag);
  }
  const char* direction = active.task.kind == TaskKind::send ? "to" : "from";
  return fmt::format(" is in flight {} rank {} (tag {})", direction, peer, tag);
}

std::vector<std::string> TaskJob::not_started(std::uint32_t rank) const {
  const RankState& state = ranks_[rank];
  std::vector<bool> known = state.done_tasks;
  for (const std::uint32_t slot : state.active) known[active_[slot].task.id] = true;
  std::array<bool, kStreams> named{};
  std::vector<std::string> lines;
  for (std::uint32_t id = 0; id < state.tasks && lines.size() < named.size(); ++id) {
    if (known[id]) continue;
    const Task task = source_.task(rank, id);
    if (std::exchange(named[static_cast<std::size_t>(task.stream)], true)) continue;
    lines.push_back(label(rank, task) + " did not start: it waits for other tasks of its rank");
  }
  return lines;
}

}  // namespace

std::unique_ptr<Job> Job::create(EventLoop& loop, Executor& executor, TaskSource& source,
                                 std::vector<std::uint32_t> gpus, std::vector<Time> durations,
                                 std::uint32_t first_origin, Observer observer) {
  return std::make_unique<TaskJob>(loop, executor, source, std::move(gpus), std::move(durations),
                                   first_origin, std::move(observer));
}

}  // namespace netsim
