#include "sim/workload/program/role_program_source.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "sim/core/errors.h"
#include "sim/workload/program/program_checks.h"
#include "sim/workload/program/rank_grid.h"
#include "sim/workload/program/unrolled_role.h"

namespace netsim {
namespace {

[[noreturn]] void fail(const std::string& file, const std::string& path, const std::string& message) {
  throw InputError(Place{file, 0, 0, path}, message);
}

// The open part of one rank's run: tasks below `base` are done, tasks beyond the counters were not touched
// yet.
class Window {
 public:
  std::uint32_t base() const { return base_; }
  std::uint32_t end() const { return base_ + static_cast<std::uint32_t>(counters_.size() - head_); }
  std::uint32_t& operator[](std::uint32_t id) { return counters_[head_ + (id - base_)]; }
  void push(std::uint32_t dependencies) { counters_.push_back(dependencies); }
  void drop_done() {
    while (head_ < counters_.size() && counters_[head_] == kDone) ++head_, ++base_;
    if (head_ < 64 || head_ * 2 < counters_.size()) return;
    counters_.erase(counters_.begin(), counters_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }
  static constexpr std::uint32_t kDone = UINT32_MAX;

 private:
  std::vector<std::uint32_t> counters_;  // from head_ on
  std::size_t head_ = 0;
  std::uint32_t base_ = 0;
};

struct RankState {
  Window window;
  std::uint32_t iterations_released = 0;
};

class RoleProgramSource : public TaskSource {
 public:
  RoleProgramSource(Program program, const std::string& file)
      : program_(std::move(program)),
        grid_(checked_axes(program_, file)),
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
  }

  const std::string& job_name() const override { return program_.job; }
  std::uint32_t ranks() const override { return grid_.ranks(); }
  std::uint32_t iterations() const override { return program_.iterations; }
  const std::vector<Work>& works() const override { return program_.works; }
  const std::vector<std::string>& names() const override { return program_.names; }
  double model_flops() const override { return program_.model_flops; }
  const std::vector<std::uint32_t>& group(std::uint32_t id) const override { return groups_.members(id); }
  std::uint32_t task_count(std::uint32_t rank) const override {
    return role(rank).size() * program_.iterations;
  }

  Task task(std::uint32_t rank, std::uint32_t id) const override {
    const UnrolledRole& program = role(rank);
    const std::uint32_t operation = program.operation(id % program.size());
    const ProgramOp& op = operations_[operation];
    Task task;
    task.id = id;
    task.kind = op.kind;
    task.stream = op.stream;
    task.raw = op.raw;
    task.iteration = id / program.size();
    task.name = op.name;
    task.not_before = op.not_before;
    task.bytes = op.table_plus_one == 0 ? op.bytes : program_.tables[op.table_plus_one - 1][rank];
    if (op.kind == TaskKind::compute) {
      task.bytes = 0;
      task.work = op.table_plus_one == 0 ? op.work : tabled_works_[op.table_plus_one - 1][rank];
    } else if (op.kind == TaskKind::collective) {
      task.collective = op.collective;
      task.root = op.root;
      task.group = groups_.id(op.group, rank);
    } else {
      task.peer = *grid_.peer(rank, op.peer);
      task.tag = op.tag;
    }
    return task;
  }

  void start(std::uint32_t rank, std::vector<Task>& ready) override {
    for (const std::uint32_t index : role(rank).roots()) ready.push_back(task(rank, index));
  }

  void complete(std::uint32_t rank, std::uint32_t id, std::vector<Task>& ready) override {
    const UnrolledRole& program = role(rank);
    const std::uint32_t size = program.size();
    const std::uint32_t index = id % size;
    NETSIM_CHECK(counter(rank, id) == 0, "a task ended that was not ready or ended before");
    counter(rank, id) = Window::kDone;
    for (const std::uint32_t successor : program.successors(index))
      release(rank, id - index + successor, ready);
    if (id - index + size < task_count(rank)) {
      for (const std::uint32_t successor : program.next_iteration_successors(index)) {
        release(rank, id - index + size + successor, ready);
      }
    }
    advance(rank, ready);
  }

 private:
  static const std::vector<ProgramAxis>& checked_axes(const Program& program, const std::string& file) {
    if (program.axes.empty() || program.axes.size() > ProgramLimits::kAxes)
      fail(file, "axes", "1 to 16 are allowed");
    const std::uint64_t ranks = rank_count(program);
    if (ranks == 0 || ranks > ProgramLimits::kRanks) {
      fail(file, "axes",
           std::to_string(ranks) + " ranks: 1 to " + std::to_string(ProgramLimits::kRanks) + " are allowed");
    }
    return program.axes;
  }

  void check_sizes(const std::string& file) const {
    const std::uint64_t tasks = total_tasks(program_, file);
    if (tasks > ProgramLimits::kTasks) {
      fail(file, "",
           std::to_string(tasks) + " tasks are too many: at most " + std::to_string(ProgramLimits::kTasks));
    }
    const std::vector<std::uint64_t> sizes = unrolled_sizes(program_, file);
    std::uint64_t unrolled = 0;
    for (const ProgramRole& role : program_.roles) unrolled += sizes[role.block];
    if (unrolled > ProgramLimits::kUnrolled) {
      fail(file, "roles",
           std::to_string(unrolled) + " operations are too many for the programs of all roles: at most " +
               std::to_string(ProgramLimits::kUnrolled));
    }
  }

  std::vector<std::vector<std::uint32_t>> assign_roles(const std::string& file) {
    constexpr std::uint32_t kNobody = UINT32_MAX;
    role_of_.assign(grid_.ranks(), kNobody);
    std::vector<std::vector<std::uint32_t>> result;
    for (std::uint32_t r = 0; r < program_.roles.size(); ++r) {
      result.push_back(ranks_of_role(program_, r, file));
      for (const std::uint32_t rank : result.back()) {
        if (role_of_[rank] != kNobody) {
          fail(file, "roles[" + std::to_string(r) + "]",
               "rank " + std::to_string(rank) + " already plays role " + std::to_string(role_of_[rank]));
        }
        role_of_[rank] = r;
      }
    }
    const auto nobody = std::find(role_of_.begin(), role_of_.end(), kNobody);
    if (nobody != role_of_.end()) {
      fail(file, "roles", "rank " + std::to_string(nobody - role_of_.begin()) + " plays no role");
    }
    return result;
  }

  // Durations from tables become works of one fixed kernel, each distinct duration once.
  void add_tabled_works() {
    tabled_works_.resize(program_.tables.size());
    std::map<std::pair<std::uint32_t, Time>, std::uint32_t> known;
    for (std::uint32_t i = 0; i < operations_.size(); ++i) {
      const ProgramOp& op = operations_[i];
      if (op.kind != TaskKind::compute || op.table_plus_one == 0) continue;
      auto& indices = tabled_works_[op.table_plus_one - 1];
      if (!indices.empty()) continue;
      for (const std::int64_t duration : program_.tables[op.table_plus_one - 1]) {
        // A value out of range belongs to a rank that does not use it, or check_operations() had refused it.
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

  const UnrolledRole& role(std::uint32_t rank) const { return roles_[role_of_[rank]]; }

  // What a task still waits for. Tasks come into the window in order, with all their dependencies.
  std::uint32_t& counter(std::uint32_t rank, std::uint32_t id) {
    Window& window = states_[rank].window;
    const UnrolledRole& program = role(rank);
    NETSIM_CHECK(id >= window.base() && id < task_count(rank), "a task ended twice or does not exist");
    for (std::uint32_t next = window.end(); next <= id; ++next) {
      window.push(program.dependencies(next % program.size(), next < program.size()));
    }
    return window[id];
  }

  void release(std::uint32_t rank, std::uint32_t id, std::vector<Task>& ready) {
    if (--counter(rank, id) == 0) ready.push_back(task(rank, id));
  }

  // Drops what is done from the window; at the end of an iteration releases what waited for it.
  void advance(std::uint32_t rank, std::vector<Task>& ready) {
    RankState& state = states_[rank];
    const UnrolledRole& program = role(rank);
    state.window.drop_done();
    const std::uint32_t finished = state.window.base() / program.size();
    while (state.iterations_released < finished && state.iterations_released + 1 < program_.iterations) {
      ++state.iterations_released;
      for (const std::uint32_t index : program.waiting_for_iteration()) {
        release(rank, state.iterations_released * program.size() + index, ready);
      }
    }
  }

  Program program_;
  RankGrid grid_;
  GroupTable groups_;
  OperationList operations_;
  std::vector<UnrolledRole> roles_;
  std::vector<std::uint32_t> role_of_;
  std::vector<std::vector<std::uint32_t>> tabled_works_;
  std::vector<RankState> states_;
};

}  // namespace

std::unique_ptr<TaskSource> make_role_program_source(Program program, const std::string& file) {
  return std::make_unique<RoleProgramSource>(std::move(program), file);
}

}  // namespace netsim
