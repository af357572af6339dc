#include "sim/scheduling/task/operation_graph.h"

#include <algorithm>

namespace netsim {
namespace {

// Returns the edges of tasks as edges of nodes.
std::vector<AdjacencyList::Edge> edges_of_nodes(const AdjacencyList& edges,
                                                const std::vector<std::uint32_t>& node) {
  std::vector<AdjacencyList::Edge> result;
  for (std::uint32_t task = 0; task < node.size(); ++task) {
    for (const std::uint32_t successor : edges.of(task)) result.emplace_back(node[task], node[successor]);
  }
  return result;
}

// Returns the number of nodes that each node waits for.
std::vector<std::uint32_t> waits_of_nodes(const AdjacencyList& successors) {
  std::vector<std::uint32_t> waits(successors.size(), 0);
  for (std::uint32_t node = 0; node < successors.size(); ++node) {
    for (const std::uint32_t successor : successors.of(node)) ++waits[successor];
  }
  return waits;
}

}  // namespace

OperationGraph::OperationGraph(const JobProfile& profile, const std::vector<AdjacencyList::Edge>& more)
    : profile_(profile) {
  number_nodes();
  connect(more);
  sort();
}

void OperationGraph::number_nodes() {
  std::vector<std::uint32_t> of_collective(profile_.communications(), kNoIndex);
  for (std::uint32_t i = 0; i < profile_.tasks.size(); ++i) {
    const ProfileTask& task = profile_.tasks[i];
    const bool collective = task.kind == ProfileTaskKind::collective;
    std::uint32_t node = collective ? of_collective[task.communication] : kNoIndex;
    if (node == kNoIndex) {
      node = size();
      first_task_.push_back(i);
      duration_.push_back(task.kind == ProfileTaskKind::receive ? 0 : task.duration);
    }
    if (collective) of_collective[task.communication] = node;
    node_.push_back(node);
  }
}

void OperationGraph::connect(const std::vector<AdjacencyList::Edge>& more) {
  std::vector<AdjacencyList::Edge> edges = edges_of_nodes(profile_.successors, node_);
  for (const auto& [from, to] : more) edges.emplace_back(node_[from], node_[to]);
  successors_.build(size(), edges);
  next_.build(size(), edges_of_nodes(profile_.next_successors, node_));
}

void OperationGraph::sort() {
  std::vector<std::uint32_t> waits = waits_of_nodes(successors_);
  for (std::uint32_t node = 0; node < size(); ++node) {
    if (waits[node] == 0) order_.push_back(node);
  }
  for (std::size_t i = 0; i < order_.size(); ++i) {
    for (const std::uint32_t successor : successors_.of(order_[i])) {
      if (--waits[successor] == 0) order_.push_back(successor);
    }
  }
}

std::uint32_t OperationGraph::of_communication(std::uint32_t communication) const {
  const auto members = profile_.members.of(communication);
  const auto is_send = [&](std::uint32_t task) { return profile_.tasks[task].kind == ProfileTaskKind::send; };
  const auto send = std::find_if(members.begin(), members.end(), is_send);
  return node_[send == members.end() ? members.front() : *send];
}

std::vector<std::uint32_t> OperationGraph::circle() const {
  if (order_.size() == size()) return {};
  std::vector<bool> sorted(size(), false);
  for (const std::uint32_t node : order_) sorted[node] = true;
  // Every node that is not sorted has a predecessor that is not. Going back from one ends in a circle.
  std::vector<std::uint32_t> before(size(), kNoIndex);
  for (std::uint32_t node = 0; node < size(); ++node) {
    if (sorted[node]) continue;
    for (const std::uint32_t successor : successors_.of(node)) before[successor] = node;
  }
  const auto first = std::find(sorted.begin(), sorted.end(), false) - sorted.begin();
  auto node = static_cast<std::uint32_t>(first);
  for (std::uint32_t i = 0; i < size(); ++i) node = before[node];
  std::vector<std::uint32_t> tasks;
  const std::uint32_t begin = node;
  do {
    tasks.push_back(task(node));
    node = before[node];
  } while (node != begin);
  std::reverse(tasks.begin(), tasks.end());
  return tasks;
}

}  // namespace netsim
