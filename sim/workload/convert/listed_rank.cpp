#include "sim/workload/convert/listed_rank.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "sim/core/errors.h"

namespace netsim {
namespace {

// Adds the dependencies of the program.
void add_graph(const TaskGraph& graph, ListedRank& list) {
  const auto size = static_cast<std::uint32_t>(graph.tasks.size());
  for (std::uint32_t first = 0; first < list.tasks.size(); first += size) {
    for (std::uint32_t i = 0; i < size; ++i) {
      for (const std::uint32_t later : graph.successors.of(i)) list.after[first + later].push_back(first + i);
      if (first + size >= list.tasks.size()) continue;
      for (const std::uint32_t later : graph.next_successors.of(i))
        list.after[first + size + later].push_back(first + i);
    }
  }
}

// Returns whether only one rank takes part, so that a trace has no communication for it.
bool is_alone(const TaskSource& source, const Task& task) {
  return task.kind() == TaskKind::collective && source.group(task.group()).size() < 2;
}

// Lets each task of a queue wait for those of the place before it.
void add_queues(const TaskSource& source, ListedRank& list) {
  struct Places {
    std::vector<std::uint32_t> before, current;
    std::uint32_t place = 0;
    bool calls = false;  // the place has a communication
  };
  std::map<std::uint32_t, Places> queues;
  for (std::uint32_t i = 0; i < list.tasks.size(); ++i) {
    const Task& task = list.tasks[i];
    if (task.queue == Task::kUnordered) continue;
    Places& queue = queues[task.queue];
    if (task.place != queue.place && !queue.current.empty()) {
      queue.before = std::move(queue.current);
      queue.current.clear();
      queue.calls = false;
    }
    queue.place = task.place;
    queue.current.push_back(i);
    const bool alone = is_alone(source, task);
    list.joins[i] = queue.calls && !alone;
    queue.calls = queue.calls || !alone;
    list.queued[i] = queue.before;
  }
}

// Lets the tasks that wait for a whole iteration wait for the last tasks of the one before.
void add_iterations(const TaskGraph& graph, ListedRank& list) {
  const auto size = static_cast<std::uint32_t>(graph.tasks.size());
  for (std::uint32_t first = size; first < list.tasks.size(); first += size) {
    std::vector<bool> last(size, true);
    for (std::uint32_t i = first - size; i < first; ++i) {
      for (const auto* waits : {&list.after[i], &list.queued[i]}) {
        for (const std::uint32_t before : *waits) {
          if (before >= first - size) last[before - (first - size)] = false;
        }
      }
    }
    for (const std::uint32_t waiting : graph.after_iteration) {
      for (std::uint32_t i = 0; i < size; ++i) {
        if (last[i]) list.after[first + waiting].push_back(first - size + i);
      }
    }
  }
}

// Sorts both lists. Removes from `queued` what is in `after`, and adds the rest to `after`.
void merge_waits(std::vector<std::uint32_t>& after, std::vector<std::uint32_t>& queued) {
  std::sort(after.begin(), after.end());
  after.erase(std::unique(after.begin(), after.end()), after.end());
  std::erase_if(queued,
                [&](std::uint32_t task) { return std::binary_search(after.begin(), after.end(), task); });
  after.insert(after.end(), queued.begin(), queued.end());
  std::sort(after.begin(), after.end());
}

}  // namespace

std::string listing_objection(const TaskSource& source) {
  if (source.storage_ranks() > 0) return "its last ranks are drives of storage servers";
  if (!source.graph(0, {}) && !source.waits(0))
    return "tasks of it begin at other events than the ends of all tasks that they wait for";
  return "";
}

ListedRank list_rank(const TaskSource& source, RankId rank) {
  ListedRank list;
  if (!source.for_each_task(rank, [&](const Task& task) { list.tasks.push_back(task); }))
    throw InputError(Place{}, "the workload '" + source.job_name() +
                                  "' decides its tasks during the run, so they cannot be written before");
  list.after.resize(list.tasks.size());
  const std::optional<TaskGraph> graph = source.graph(rank, {});
  if (graph) {
    add_graph(*graph, list);
  } else if (const std::optional<std::vector<TaskWait>> waits = source.waits(rank)) {
    for (const TaskWait& wait : *waits) list.after[wait.later].push_back(wait.earlier);
  } else {
    throw InputError(Place{}, "the workload '" + source.job_name() +
                                  "' cannot be written as a list: " + listing_objection(source));
  }
  list.queued.resize(list.tasks.size());
  list.joins.resize(list.tasks.size());
  add_queues(source, list);
  if (graph) add_iterations(*graph, list);
  for (std::size_t i = 0; i < list.tasks.size(); ++i) merge_waits(list.after[i], list.queued[i]);
  return list;
}

std::vector<std::uint32_t> ListedRank::dependencies(std::size_t task) const {
  std::vector<std::uint32_t> all;
  all.reserve(after[task].size());
  std::set_difference(after[task].begin(), after[task].end(), queued[task].begin(), queued[task].end(),
                      std::back_inserter(all));
  return all;
}

}  // namespace netsim
