#include "sim/workload/convert/listed_rank.h"

#include <algorithm>
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

// Lets each task of a queue wait for those of the place before it.
void add_queues(ListedRank& list) {
  struct Places {
    std::vector<std::uint32_t> before, current;
    std::uint32_t place = 0;
  };
  std::map<std::uint32_t, Places> queues;
  for (std::uint32_t i = 0; i < list.tasks.size(); ++i) {
    const Task& task = list.tasks[i];
    if (task.queue == Task::kUnordered) continue;
    Places& queue = queues[task.queue];
    if (task.place != queue.place && !queue.current.empty()) {
      queue.before = std::move(queue.current);
      queue.current.clear();
    }
    queue.place = task.place;
    queue.current.push_back(i);
    list.after[i].insert(list.after[i].end(), queue.before.begin(), queue.before.end());
  }
}

// Lets the tasks that wait for a whole iteration wait for the last tasks of the one before.
void add_iterations(const TaskGraph& graph, ListedRank& list) {
  const auto size = static_cast<std::uint32_t>(graph.tasks.size());
  for (std::uint32_t first = size; first < list.tasks.size(); first += size) {
    std::vector<bool> last(size, true);
    for (std::uint32_t i = first - size; i < first; ++i) {
      for (const std::uint32_t before : list.after[i]) {
        if (before >= first - size) last[before - (first - size)] = false;
      }
    }
    for (const std::uint32_t waiting : graph.after_iteration) {
      for (std::uint32_t i = 0; i < size; ++i) {
        if (last[i]) list.after[first + waiting].push_back(first - size + i);
      }
    }
  }
}

}  // namespace

ListedRank list_rank(const TaskSource& source, RankId rank) {
  ListedRank list;
  if (!source.for_each_task(rank, [&](const Task& task) { list.tasks.push_back(task); }))
    throw InputError(Place{}, "the workload '" + source.job_name() +
                                  "' decides its tasks during the run, so they cannot be written before");
  list.after.resize(list.tasks.size());
  const std::optional<TaskGraph> graph = source.graph(rank, {});
  if (graph) add_graph(*graph, list);
  add_queues(list);
  if (graph) add_iterations(*graph, list);
  for (std::vector<std::uint32_t>& after : list.after) {
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
  }
  return list;
}

}  // namespace netsim
