#include "sim/workload/program/role_program_source.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "sim/core/errors.h"
#include "sim/workload/program/match_keys.h"
#include "sim/workload/program/program_checks.h"
#include "sim/workload/program/program_memory.h"
#include "sim/workload/program/rank_grid.h"
#include "sim/workload/program/role_graph.h"
#include "sim/workload/program/unrolled_role.h"

namespace netsim {
namespace {

// Window: the open part of one rank's run. Tasks below `base` have ended, and tasks beyond the counters have
// not been touched yet.
class Window {
 public:
  static constexpr std::uint32_t kEnded = UINT32_MAX, kHandedOut = UINT32_MAX - 1;

  std::uint32_t base() const { return base_; }
  std::uint32_t end() const { return base_ + static_cast<std::uint32_t>(counters_.size() - head_); }
  std::uint32_t& operator[](std::uint32_t id) { return counters_[head_ + (id - base_)]; }
  bool handed_out(std::uint32_t id) const {
    return id < base_ || (id < end() && counters_[head_ + (id - base_)] >= kHandedOut);
  }
  void push(std::uint32_t dependencies) { counters_.push_back(dependencies); }
  void drop_ended() {
    while (head_ < counters_.size() && counters_[head_] == kEnded) ++head_, ++base_;
    if (head_ < 64 || head_ * 2 < counters_.size()) return;
    counters_.erase(counters_.begin(), counters_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }

 private:
  std::vector<std::uint32_t> counters_;  // number of unmet dependencies by task, from head_ on
  std::size_t head_ = 0;
  std::uint32_t base_ = 0;
};

struct RankState {
  Window window;
  std::uint32_t match_table = 0;      // table of its role's MatchKeys
  std::uint32_t open_iterations = 1;  // iterations below this number may begin
  std::vector<std::uint32_t> ended;   // by stream queue: number of ended tasks
};

class RoleProgramSource : public TaskSource {
 public:
  RoleProgramSource(Program program, const std::string& file, const std::map<std::string, Place>& circuits,
                    std::vector<std::string> notes)
      : program_(std::move(program)),
        notes_(std::move(notes)),
        grid_(checked_axes(program_, file), &program_.tables),
        groups_(program_, grid_, file),
        operations_(program_),
        states_(grid_.ranks()) {
    check_sizes(file);
    const auto ranks_of = assign_roles(file);
    for (const ProgramRole& role : program_.roles) roles_.emplace_back(program_, operations_, role, file);
    const CheckedProgram checked{program_, grid_, groups_, operations_, roles_, ranks_of, file};
    check_operations(checked);
    check_collectives(checked);
    check_messages(checked);
    add_tabled_works();
    add_circuits(file, circuits);
    for (std::uint32_t r = 0; r < roles_.size(); ++r) {
      match_keys_.emplace_back(operations_, roles_[r]);
      for (const RankId rank : ranks_of[r]) {
        states_[rank].match_table = match_keys_[r].table_of(rank, grid_, groups_);
        states_[rank].ended.resize(roles_[r].queues());
      }
    }
  }

  const std::string& job_name() const override { return program_.job; }
  std::uint32_t ranks() const override { return grid_.ranks(); }
  std::vector<RankAxis> axes() const override { return rank_axes(program_); }
  std::optional<std::uint32_t> iterations() const override { return program_.iterations; }
  std::uint32_t warm_up() const override { return program_.warm_up; }
  const std::vector<Work>& works() const override { return program_.works; }
  const std::vector<std::string>& names() const override { return program_.names; }
  double model_flops() const override { return program_.model_flops; }
  const std::vector<AskedCircuits>& circuits() const override { return circuits_; }
  const std::vector<RankId>& group(GroupId id) const override { return groups_.members(id); }
  std::optional<PipelineMark> pipeline_mark(RankId rank, TaskId id) const override {
    return mark_at(program_, program_.roles[role_of_[rank]], id % role(rank).size());
  }
  std::optional<std::uint64_t> total_tasks() const override {
    std::uint64_t total = 0;
    for (RankId rank = 0; rank < ranks(); ++rank) total += task_count(rank);
    return total;
  }
  bool for_each_task(RankId rank, const Visitor& visit) const override {
    for (std::uint32_t id = 0; id < task_count(rank); ++id) visit(task(rank, id));
    return true;
  }
  std::optional<TaskGraph> graph(RankId rank, const AgreedLaunches& agreed) const override {
    std::vector<Task> tasks;
    for (std::uint32_t id = 0; id < role(rank).size(); ++id) tasks.push_back(task(rank, id));
    return role_graph(role(rank), std::move(tasks),
                      [&](const Task& task) { return !is_decided_elsewhere(rank, task, agreed); });
  }
  std::vector<std::string> reader_notes() const override { return notes_; }
  bool uses_hosts() const override {
    return operations_.contains(TaskKind::copy_to_host) || operations_.contains(TaskKind::copy_from_host) ||
           operations_.contains(TaskKind::host_compute);
  }
  bool uses_threads() const override { return operations_.contains(TaskKind::host_thread); }
  const Program* program() const override { return &program_; }
  const MemoryPlan* memory() const override { return program_.counts_memory ? &memory_ : nullptr; }
  void release_communications(AgreedLaunches agreed) override {
    released_ = true;
    agreed_ = std::move(agreed);
  }

  void start(RankId rank, std::vector<Task>& ready) override {
    offer_iteration(rank, 0, ready);
    sort_from(ready, 0);
  }

  void complete(RankId rank, TaskId id, std::vector<Task>& ready) override {
    const std::size_t before = ready.size();
    const UnrolledRole& program = role(rank);
    const std::uint32_t size = program.size(), index = id % size;
    NETSIM_CHECK(counter(rank, id) == Window::kHandedOut, "a task ended that was not ready or ended before");
    counter(rank, id) = Window::kEnded;
    for (const std::uint32_t successor : program.successors(index))
      release(rank, id - index + successor, ready);
    if (id - index + size < task_count(rank)) {
      for (const std::uint32_t successor : program.next_iteration_successors(index))
        release(rank, id - index + size + successor, ready);
    }
    if (const std::uint32_t queue = program.queue(index); queue != UnrolledRole::kNoQueue) {
      const std::uint32_t place = ended_places(rank, queue);
      ++states_[rank].ended[queue];
      if (ended_places(rank, queue) > place) offer_place(rank, queue, place + 1, ready);
    }
    open_iterations(rank, ready);
    sort_from(ready, before);
  }

  std::uint32_t open_iteration(RankId rank) const override {
    const std::uint32_t base = states_[rank].window.base();
    return base == task_count(rank) ? kNoIteration : base / role(rank).size();
  }

  std::vector<Task> held_back(RankId rank) const override {
    FirstOfStreams first;
    const Window& window = states_[rank].window;
    for (std::uint32_t id = window.base(); id < task_count(rank); ++id) {
      if (!window.handed_out(id) && !first.take(task(rank, id))) break;
    }
    return first.tasks();
  }

 private:
  static const std::vector<ProgramAxis>& checked_axes(const Program& program, const std::string& file) {
    if (program.axes.empty() || program.axes.size() > ProgramLimits::kAxes)
      fail_program(file, "axes", "1 to 16 are allowed");
    const std::uint64_t ranks = rank_count(program);
    if (ranks == 0 || ranks > ProgramLimits::kRanks) {
      fail_program(
          file, "axes",
          std::to_string(ranks) + " ranks: 1 to " + std::to_string(ProgramLimits::kRanks) + " are allowed");
    }
    return program.axes;
  }

  void check_sizes(const std::string& file) const {
    const std::uint64_t tasks = netsim::total_tasks(program_, file);
    if (tasks > ProgramLimits::kTasks) {
      fail_program(
          file, "",
          std::to_string(tasks) + " tasks are too many: at most " + std::to_string(ProgramLimits::kTasks));
    }
    const std::vector<std::uint64_t> sizes = unrolled_sizes(program_, file);
    std::uint64_t unrolled = 0;
    for (const ProgramRole& role : program_.roles) unrolled += sizes[role.block];
    if (unrolled > ProgramLimits::kUnrolled) {
      fail_program(file, "roles",
                   std::to_string(unrolled) +
                       " operations are too many for the programs of all roles: at most " +
                       std::to_string(ProgramLimits::kUnrolled));
    }
  }

  std::vector<std::vector<RankId>> assign_roles(const std::string& file) {
    constexpr std::uint32_t kNobody = UINT32_MAX;
    role_of_.assign(grid_.ranks(), kNobody);
    std::vector<std::vector<RankId>> result;
    for (std::uint32_t r = 0; r < program_.roles.size(); ++r) {
      result.push_back(ranks_of_role(program_, r, file));
      for (const RankId rank : result.back()) {
        if (role_of_[rank] != kNobody) {
          fail_program(
              file, "roles[" + std::to_string(r) + "]",
              "rank " + std::to_string(rank) + " already has role " + std::to_string(role_of_[rank]));
        }
        role_of_[rank] = r;
      }
    }
    const auto nobody = std::find(role_of_.begin(), role_of_.end(), kNobody);
    if (nobody != role_of_.end()) {
      fail_program(file, "roles", "rank " + std::to_string(nobody - role_of_.begin()) + " has no role");
    }
    return result;
  }

  // Makes works of one fixed kernel from durations in tables. Each distinct duration has one work.
  void add_tabled_works() {
    tabled_works_.resize(program_.tables.size());
    std::map<std::pair<std::uint32_t, Time>, std::uint32_t> known;
    for (std::uint32_t i = 0; i < operations_.size(); ++i) {
      const ProgramOp& op = operations_[i];
      if (op.kind != TaskKind::compute || op.table_plus_one == 0) continue;
      auto& indices = tabled_works_[op.table_plus_one - 1];
      if (!indices.empty()) continue;
      for (const std::int64_t duration : program_.tables[op.table_plus_one - 1]) {
        // A value out of range belongs to a rank that does not use it; otherwise check_operations() would
        // have refused it.
        const Time time = std::clamp<Time>(duration, 0, ProgramLimits::kKernelTime);
        const auto next = static_cast<std::uint32_t>(program_.works.size());
        const auto [it, added] = known.try_emplace({op.name, time}, next);
        if (added) program_.works.push_back(fixed_work(program_.names[op.name], time));
        indices.push_back(it->second);
      }
    }
  }
  static Work fixed_work(const std::string& name, Time duration) {
    Kernel kernel;
    kernel.kind = Kernel::Kind::fixed;
    kernel.name = name;
    kernel.duration = duration;
    return {name, {kernel}};
  }

  // Adds the circuit configurations. Equal names are one configuration.
  void add_circuits(const std::string& file, const std::map<std::string, Place>& places) {
    std::map<std::string, std::uint32_t> known;
    for (std::uint32_t i = 0; i < operations_.size(); ++i) {
      const ProgramOp& op = operations_[i];
      if (op.kind != TaskKind::circuits) continue;
      const std::string& name = program_.names[op.circuits];
      const auto [it, added] = known.try_emplace(name, static_cast<std::uint32_t>(circuits_.size()));
      circuits_of_name_[op.circuits] = it->second;
      if (!added) continue;
      const auto place = places.find(name);
      circuits_.push_back({name, place != places.end()
                                     ? place->second
                                     : Place{file, 0, 0, operations_.path(i) + ".circuits"}});
    }
  }

  const UnrolledRole& role(RankId rank) const { return roles_[role_of_[rank]]; }
  std::uint32_t task_count(RankId rank) const { return role(rank).size() * program_.iterations; }

  Task task(RankId rank, std::uint32_t id) const {
    const UnrolledRole& program = role(rank);
    const std::uint32_t index = id % program.size(), operation = program.operation(index);
    const ProgramOp& op = operations_[operation];
    Task task;
    task.id = id;
    task.stream = op.stream;
    task.iteration = id / program.size();
    if (const std::uint32_t queue = program.queue(index); queue != UnrolledRole::kNoQueue) {
      task.queue = queue;
      task.place = place(program, index, task.iteration);
      task.together = program.together(index);
    }
    task.name = op.name;
    task.not_before = op.not_before;
    if (is_point_to_point(op.kind) || op.kind == TaskKind::collective || op.kind == TaskKind::circuits)
      task.sequence = match_keys_[role_of_[rank]].sequence(states_[rank].match_table, index, task.iteration);
    task.body = body(rank, op, task, index);
    return task;
  }

  // Returns what an operation is at a rank, in the iteration and call of `task`.
  TaskBody body(RankId rank, const ProgramOp& op, const Task& task, std::uint32_t index) const {
    switch (op.kind) {
      case TaskKind::compute:
        return ComputeTask{work_of(op, rank, task.iteration)};
      case TaskKind::host_compute:
        return HostComputeTask{op.work};
      case TaskKind::host_thread:
        return HostThreadTask{op.work};
      case TaskKind::circuits:
        return CircuitsTask{circuits_of_name_.at(op.circuits), groups_.id(op.group, rank)};
      case TaskKind::copy_to_host:
      case TaskKind::copy_from_host:
        return copy_body(op.kind, {bytes_of(op, rank, task.iteration), {}});
      case TaskKind::send:
      case TaskKind::receive:
        return message_body(op.kind, {{bytes_of(op, rank, task.iteration), traits_of(op)},
                                      *grid_.peer(rank, op.peer),
                                      op.tag,
                                      op.raw,
                                      false});
      case TaskKind::collective:
        break;
    }
    CollectiveTask call;
    call.collective = op.collective;
    call.bytes = collective_bytes(op, rank, task.iteration);
    call.traits = traits_of(op);
    call.root = op.root;
    call.group = groups_.id(op.group, rank);
    if (op.counts_plus_one != 0) call.counts = &program_.counts[counts_of(op, rank, task.iteration)];
    if (task.together > 1) call.grouped = grouped(rank, index, call.group, task.iteration);
    return call;
  }

  static TransferTraits traits_of(const ProgramOp& op) {
    TransferTraits traits;
    traits.channel = op.channel;
    traits.traffic_class = op.traffic_class;
    traits.priority = op.priority;
    traits.set_deadline(op.deadline);
    return traits;
  }
  Bytes bytes_of(const ProgramOp& op, RankId rank, std::uint32_t iteration) const {
    return op.table_plus_one == 0
               ? op.bytes
               : table_value(program_.tables[op.table_plus_one - 1], ranks(), rank, iteration);
  }
  Bytes collective_bytes(const ProgramOp& op, RankId rank, std::uint32_t iteration) const {
    if (op.collective == CollectiveKind::barrier) return kBarrierBytes;
    if (op.counts_plus_one != 0) return program_.counts[counts_of(op, rank, iteration)].busiest();
    return bytes_of(op, rank, iteration);
  }
  // Returns the traffic of the collectives of `group` in the call of the task at `index`.
  GroupedTraffic grouped(RankId rank, std::uint32_t index, std::uint32_t group,
                         std::uint32_t iteration) const {
    const UnrolledRole& program = role(rank);
    GroupedTraffic traffic;
    std::uint32_t count = 0;
    for (const std::uint32_t other : program.call_of(index)) {
      const ProgramOp& op = operations_[program.operation(other)];
      if (op.kind != TaskKind::collective || groups_.id(op.group, rank) != group) continue;
      const Bytes bytes = traffic_of(op.collective, collective_bytes(op, rank, iteration));
      if (other < index) traffic.before += bytes;
      traffic.all += bytes;
      ++count;
    }
    return count > 1 ? traffic : GroupedTraffic();
  }

  std::uint32_t work_of(const ProgramOp& op, RankId rank, std::uint32_t iteration) const {
    if (op.choice_plus_one != 0) return choice(op, rank, iteration);
    if (op.table_plus_one == 0) return op.work;
    const std::vector<std::uint32_t>& works = tabled_works_[op.table_plus_one - 1];
    return works[iteration % (works.size() / ranks()) * ranks() + rank];
  }
  std::uint32_t counts_of(const ProgramOp& op, RankId rank, std::uint32_t iteration) const {
    return op.choice_plus_one != 0 ? choice(op, rank, iteration) : op.counts_plus_one - 1;
  }
  std::uint32_t choice(const ProgramOp& op, RankId rank, std::uint32_t iteration) const {
    return static_cast<std::uint32_t>(
        table_value(program_.tables[op.choice_plus_one - 1], ranks(), rank, iteration));
  }

  static std::uint32_t place(const UnrolledRole& program, std::uint32_t index, std::uint32_t iteration) {
    return iteration * program.places(program.queue(index)) + program.place(index);
  }

  // Returns the number of places of the queue that have ended, if tasks end in their order. These are the
  // places before the first one with an open task.
  std::uint32_t ended_places(RankId rank, std::uint32_t queue) const {
    const UnrolledRole& program = role(rank);
    const std::vector<std::uint32_t>& tasks = program.tasks_of(queue);
    const auto size = static_cast<std::uint32_t>(tasks.size());
    const std::uint32_t ended = states_[rank].ended[queue];
    return ended / size * program.places(queue) + program.place(tasks[ended % size]);
  }

  // Returns the number of dependencies that a task still waits for. Tasks enter the window in order, with all
  // of their dependencies.
  std::uint32_t& counter(RankId rank, std::uint32_t id) {
    Window& window = states_[rank].window;
    const UnrolledRole& program = role(rank);
    NETSIM_CHECK(id >= window.base() && id < task_count(rank), "a task ended twice or does not exist");
    for (std::uint32_t next = window.end(); next <= id; ++next) {
      window.push(program.dependencies(next % program.size(), next < program.size()));
    }
    return window[id];
  }

  void release(RankId rank, std::uint32_t id, std::vector<Task>& ready) {
    --counter(rank, id);
    offer(rank, id, ready);
  }

  // Hands out the task if nothing delays it any more: its dependencies, the iteration before, its queue.
  void offer(RankId rank, std::uint32_t id, std::vector<Task>& ready) {
    const UnrolledRole& program = role(rank);
    const std::uint32_t index = id % program.size(), iteration = id / program.size();
    const RankState& state = states_[rank];
    if (state.window.handed_out(id)) return;
    if (program.waits_for_iteration(index) && iteration >= state.open_iterations) return;
    if (const std::uint32_t queue = program.queue(index);
        queue != UnrolledRole::kNoQueue && place(program, index, iteration) > ended_places(rank, queue) &&
        !is_released(rank, id))
      return;
    std::uint32_t& left = counter(rank, id);
    if (left != 0) return;
    left = Window::kHandedOut;
    ready.push_back(task(rank, id));
    ready.back().ahead = is_ahead(rank, ready.back());
  }

  // Returns whether the task waits for its dependencies only, and not for its place in its queue.
  bool is_released(RankId rank, std::uint32_t id) const {
    if (!released_ || has_work(operations_[role(rank).operation(id % role(rank).size())].kind)) return false;
    return has_dependencies(rank, id) || (agreed_ && is_decided_elsewhere(rank, task(rank, id), agreed_));
  }
  bool has_dependencies(RankId rank, std::uint32_t id) const {
    return role(rank).dependencies(id % role(rank).size(), id < role(rank).size()) > 0;
  }
  bool is_decided_elsewhere(RankId rank, const Task& task, const AgreedLaunches& agreed) const {
    return agreed && task.kind() == TaskKind::collective && groups_.members(task.group()).front() != rank &&
           agreed(task);
  }
  bool is_ahead(RankId rank, const Task& task) const {
    return agreed_ && task.queue != Task::kUnordered && task.place > ended_places(rank, task.queue) &&
           !has_dependencies(rank, task.id);
  }

  void offer_place(RankId rank, std::uint32_t queue, std::uint32_t place, std::vector<Task>& ready) {
    const UnrolledRole& program = role(rank);
    const std::uint32_t in_iteration = program.places(queue);
    const std::uint32_t iteration = place / in_iteration;
    if (iteration >= program_.iterations) return;
    for (const std::uint32_t index : program.tasks_at(queue, place % in_iteration))
      offer(rank, iteration * program.size() + index, ready);
  }

  // Offers the tasks of an iteration that may begin.
  void offer_iteration(RankId rank, std::uint32_t iteration, std::vector<Task>& ready) {
    const UnrolledRole& program = role(rank);
    for (const std::uint32_t index : program.unordered_roots()) {
      offer(rank, iteration * program.size() + index, ready);
    }
    for (std::uint32_t queue = 0; queue < program.queues(); ++queue) {
      offer_place(rank, queue, ended_places(rank, queue), ready);
    }
    if (!agreed_) return;
    for (const std::uint32_t index : program.ordered_roots()) {
      const std::uint32_t id = iteration * program.size() + index;
      if (is_released(rank, id)) offer(rank, id, ready);
    }
  }

  // Drops ended tasks from the window. At the end of an iteration, opens the next one.
  void open_iterations(RankId rank, std::vector<Task>& ready) {
    RankState& state = states_[rank];
    state.window.drop_ended();
    const std::uint32_t finished = state.window.base() / role(rank).size();
    while (state.open_iterations <= finished && state.open_iterations < program_.iterations) {
      const std::uint32_t iteration = state.open_iterations++;
      offer_iteration(rank, iteration, ready);
    }
  }

  static void sort_from(std::vector<Task>& ready, std::size_t first) {
    if (ready.size() - first < 2) return;
    std::sort(ready.begin() + static_cast<std::ptrdiff_t>(first), ready.end(),
              [](const Task& a, const Task& b) { return a.id < b.id; });
  }

  Program program_;
  std::vector<std::string> notes_;
  RankGrid grid_;
  GroupTable groups_;
  OperationList operations_;
  std::vector<UnrolledRole> roles_;
  std::vector<std::uint32_t> role_of_;
  std::vector<std::vector<std::uint32_t>> tabled_works_;
  std::vector<AskedCircuits> circuits_;
  std::map<std::uint32_t, std::uint32_t> circuits_of_name_;  // by index in names
  std::vector<MatchKeys> match_keys_;                        // by role
  std::vector<RankState> states_;
  bool released_ = false;  // release_communications() was called, with these
  AgreedLaunches agreed_;
  ProgramMemory memory_{program_, operations_, roles_, role_of_};
};

}  // namespace

std::unique_ptr<TaskSource> make_role_program_source(Program program, const std::string& file,
                                                     const std::map<std::string, Place>& circuits,
                                                     std::vector<std::string> notes) {
  return std::make_unique<RoleProgramSource>(std::move(program), file, circuits, std::move(notes));
}

}  // namespace netsim
