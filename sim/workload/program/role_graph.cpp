#include "sim/workload/program/role_graph.h"

#include <algorithm>
#include <utility>

namespace netsim {
namespace {

using GraphEdges = std::vector<AdjacencyList::Edge>;

// Adds the order of a stream queue. Where iterations are not separated, the first task of the queue follows
// the last one of the iteration before.
void add_queue_order(const UnrolledRole& role, const std::vector<Task>& tasks, std::uint32_t queue,
                     GraphEdges& within, GraphEdges& across) {
  std::vector<std::uint32_t> ordered;
  for (const std::uint32_t task : role.tasks_of(queue)) {
    if (!is_communication(tasks[task])) ordered.push_back(task);
  }
  for (std::size_t i = 1; i < ordered.size(); ++i) within.emplace_back(ordered[i - 1], ordered[i]);
  if (!ordered.empty() && !role.waits_for_iteration(ordered.front()))
    across.emplace_back(ordered.back(), ordered.front());
}

// A communication without dependencies that keeps its place follows all earlier tasks of its queue.
void add_kept_places(const UnrolledRole& role, const std::vector<Task>& tasks, std::uint32_t queue,
                     const std::function<bool(const Task&)>& keeps_place, GraphEdges& within) {
  const auto& all = role.tasks_of(queue);
  std::vector<std::uint32_t> before;  // earlier tasks that no such communication follows
  for (std::size_t i = 0, end = 0; i < all.size(); i = end) {
    std::vector<std::uint32_t> kept;
    for (; end < all.size() && tasks[all[end]].place == tasks[all[i]].place; ++end) {
      if (!has_work(tasks[all[end]].kind()) && role.dependencies(all[end], true) == 0 &&
          keeps_place(tasks[all[end]]))
        kept.push_back(all[end]);
    }
    for (const std::uint32_t task : kept) {
      for (const std::uint32_t earlier : before) within.emplace_back(earlier, task);
    }
    if (!kept.empty()) before.clear();
    for (std::size_t task = i; task < end; ++task) before.push_back(all[task]);
  }
}

void build_distinct(AdjacencyList& list, std::size_t sources, GraphEdges& edges) {
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  list.build(sources, edges);
}

}  // namespace

TaskGraph role_graph(const UnrolledRole& role, std::vector<Task> tasks,
                     const std::function<bool(const Task&)>& keeps_place) {
  GraphEdges within, across;
  TaskGraph graph;
  for (std::uint32_t i = 0; i < role.size(); ++i) {
    for (const std::uint32_t successor : role.successors(i)) within.emplace_back(i, successor);
    for (const std::uint32_t successor : role.next_iteration_successors(i)) across.emplace_back(i, successor);
    if (role.waits_for_iteration(i)) graph.after_iteration.push_back(i);
  }
  for (std::uint32_t queue = 0; queue < role.queues(); ++queue) {
    add_queue_order(role, tasks, queue, within, across);
    add_kept_places(role, tasks, queue, keeps_place, within);
  }
  build_distinct(graph.successors, role.size(), within);
  build_distinct(graph.next_successors, role.size(), across);
  graph.tasks = std::move(tasks);
  return graph;
}

}  // namespace netsim
