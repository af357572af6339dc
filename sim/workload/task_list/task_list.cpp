// tasks: a small graph of tasks that is written by hand.
//
//   kind: tasks
//   iterations: 2
//   ranks: 4
//   groups: {data: [0, 1]}
//   tasks:
//     - {name: forward, compute: 10 ms}
//     - {name: gradients, on: data, collective: all_reduce, bytes: 25 MB, after: forward}
//     - {name: activations, from: 0, to: 2, bytes: 1 MB, after: forward, raw: true, class: 1}
//     - {name: update, on: data, compute: 1 ms, after: gradients}
//
// A task is a computation, a collective or a message. Each rank of a task waits at that rank for the tasks
// that `after` names. A rank's tasks of one stream and queue run one after the other, as they are written.
//
// Iterations of a rank follow one another as a whole, unless a task of the rank has `after_previous`. Then a
// task only waits for what it names, and for the task before it in its stream and queue, also across
// iterations. A task that has neither still waits for all of the rank's previous iteration.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/registry.h"
#include "sim/workload/program/program_file.h"
#include "sim/workload/program/role_program_source.h"
#include "sim/workload/task_list/task_list_program.h"
#include "sim/workload/traffic/traffic.h"
#include "sim/workload/workload.h"

namespace netsim {

namespace {

constexpr const char* kEntries =
    "a sequence of {name, on, compute}, {name, on, collective, bytes} or {name, from, to, bytes}";

struct TaskListParameters {
  std::string name = "tasks";
  std::int64_t ranks = 0;
  std::int64_t iterations = 1;
  std::int64_t warm_up = 0;
  ConfigNode groups;
};

const Parameters<TaskListParameters>& task_list_parameters() {
  using P = TaskListParameters;
  static const auto p =
      Parameters<P>()
          .text("name", &P::name, "name of the job")
          .integer("ranks", &P::ranks, {0, kMaxTrafficRanks},
                   "number of ranks; 0: one more than the highest rank of a task, or all GPUs of the cluster "
                   "where a task is on all ranks")
          .integer("iterations", &P::iterations, {1, 1'000'000}, "number of times that all tasks run")
          .integer("warm_up", &P::warm_up, {0, 999'999},
                   "number of the first iterations that means leave out")
          .lists_by_name("groups", &P::groups,
                         "ranks by a name that 'on', 'from' and 'to' may use: {data: [0, 1, 2]}");
  return p;
}

class TaskList final : public WorkloadKind {
 public:
  explicit TaskList(const ConfigNode& node)
      : p_(task_list_parameters().parse(node, {"kind", "tasks"})),
        place_(node.place()),
        ranks_place_(place_of(node, "ranks")) {
    if (p_.warm_up >= p_.iterations)
      throw ConfigError(place_of(node, "warm_up"), std::to_string(p_.warm_up) + " of " +
                                                       std::to_string(p_.iterations) +
                                                       " iterations: fewer than all are allowed");
    const ConfigNode* list = node.find("tasks");
    if (list == nullptr) node.fail(std::string("'tasks' is missing: ") + kEntries);
    if (!list->is_sequence() || list->items().empty()) list->fail(std::string(kEntries) + " is expected");
    tasks_ = read_listed_tasks(*list, read_rank_groups(p_.groups));
  }

  std::string compile() const override {
    const std::uint32_t ranks = known_ranks();
    if (ranks == 0)
      throw ConfigError(ranks_place_,
                        "'ranks' is missing: a compiled file needs a fixed number of ranks, and a task is on "
                        "all ranks");
    return serialize_program(make_task_list_program(job(ranks), tasks_));
  }

  std::unique_ptr<TaskSource> tasks(const WorkloadContext& context) const override {
    for (const ListedTask& task : tasks_) {
      const std::string problem = class_problem(task.traffic_class, context.classes);
      if (!problem.empty()) throw InputError(place_of(task.node, "class"), problem);
    }
    const std::uint32_t known = known_ranks();
    const std::uint32_t ranks = known == 0 ? context.gpus : known;
    if (ranks > context.most_ranks) {
      throw InputError(ranks_place_, std::to_string(ranks) + " ranks, but the cluster has " +
                                         std::to_string(context.most_ranks) + " GPUs");
    }
    return make_role_program_source(make_task_list_program(job(ranks), tasks_), place_.file);
  }

 private:
  TaskListJob job(std::uint32_t ranks) const {
    return {p_.name, ranks, static_cast<std::uint32_t>(p_.iterations),
            static_cast<std::uint32_t>(p_.warm_up)};
  }

  // Returns the number of ranks as far as the description gives it; 0: all GPUs of the cluster.
  std::uint32_t known_ranks() const {
    if (p_.ranks != 0) return static_cast<std::uint32_t>(p_.ranks);
    RankId largest = 0;
    for (const ListedTask& task : tasks_) {
      const bool message = task.kind == ListedKind::message;
      const SharedRanks& ranks = message ? task.senders : task.ranks;
      if (ranks == nullptr) return 0;
      largest = std::max(largest, ranks->largest());
      if (message) largest = std::max(largest, task.receivers->largest());
    }
    return largest + 1;
  }

  TaskListParameters p_;
  Place place_, ranks_place_;
  std::vector<ListedTask> tasks_;
};

ParameterTable task_list_table() {
  ParameterInfo list;
  list.name = "tasks";
  list.type = "list";
  list.doc = "the tasks";
  list.children = listed_task_table();
  ParameterTable table = task_list_parameters().table();
  table.push_back(list);
  return table;
}

const Registration<WorkloadKind> kTaskList{
    "tasks", "a small graph of computations, collectives and messages, written task by task",
    task_list_table(), [](const ConfigNode& node) {
      return std::make_unique<TaskList>(node.is_scalar() ? ConfigNode() : node);
    }};

}  // namespace

}  // namespace netsim
