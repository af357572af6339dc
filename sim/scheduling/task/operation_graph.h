// OperationGraph: a JobProfile in which the members of a collective are one node, because none of them ends
// before all have begun. The rules that follow paths between ranks work on it.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/adjacency_list.h"
#include "sim/scheduling/task/job_profile.h"

namespace netsim {

class OperationGraph {
 public:
  // `profile` must outlive this. `more` are edges beside those of the profile, between its tasks.
  explicit OperationGraph(const JobProfile& profile, const std::vector<AdjacencyList::Edge>& more = {});

  std::uint32_t size() const { return static_cast<std::uint32_t>(first_task_.size()); }
  // Returns the node of a task.
  std::uint32_t of_task(std::uint32_t task) const { return node_[task]; }
  // Returns the node of a collective, or of the send of a message.
  std::uint32_t of_communication(std::uint32_t communication) const;
  // Returns the task of a node, of a collective that of its lowest rank.
  std::uint32_t task(std::uint32_t node) const { return first_task_[node]; }
  // Returns the time of a node. A message takes its time at the send, so a receive takes none.
  Time duration(std::uint32_t node) const { return duration_[node]; }
  const AdjacencyList& successors() const { return successors_; }
  const AdjacencyList& next_successors() const { return next_; }
  // Returns the nodes in an order in which each follows those that it waits for in its iteration. Nodes of a
  // circle, and those after one, are missing.
  const std::vector<std::uint32_t>& order() const { return order_; }
  // Returns the tasks of a circle of waits, or nothing if there is none.
  std::vector<std::uint32_t> circle() const;

 private:
  void number_nodes();
  void connect(const std::vector<AdjacencyList::Edge>& more);
  void sort();

  const JobProfile& profile_;
  std::vector<std::uint32_t> node_;        // by task
  std::vector<std::uint32_t> first_task_;  // by node
  std::vector<Time> duration_;
  AdjacencyList successors_, next_;
  std::vector<std::uint32_t> order_;
};

}  // namespace netsim
