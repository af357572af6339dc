// JobProfile: the tasks of one iteration of a job, at all ranks, with their times and the order between them.
// Task schedulers plan with it (TaskScheduler::plan()), and profile_builder.h makes it from a workload.
//
// It is plain data and the same for all ranks. Times are those of the first iteration without contention:
// computations take what ComputeTimes says, communications what the caller of the builder estimates. Start-up
// times of communications are not in them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/adjacency_list.h"
#include "sim/core/ids.h"
#include "sim/core/index.h"
#include "sim/core/units.h"

namespace netsim {

// Kinds of tasks, as far as rules distinguish them. `other` is a copy to or from a host, a request for
// circuits, or the end of an iteration.
enum class ProfileTaskKind : std::uint8_t { compute, collective, send, receive, other };

// ProfileTask: one task of one rank. Tasks of one communication have the same `communication`.
struct ProfileTask {
  RankId rank = 0;
  // Position in the program order of the rank's iteration: Task::id modulo the tasks of an iteration. The end
  // of the iteration, which is an entry only where tasks wait for it, has the number of tasks as its
  // position.
  std::uint32_t position = 0;
  std::uint32_t communication = kNoIndex;  // index of its communication; kNoIndex for other tasks
  std::uint32_t queue = kNoIndex;  // stream queue of the rank; kNoIndex: it is in no order with others
  GroupId group;                   // group of a collective; none for other tasks
  ProfileTaskKind kind = ProfileTaskKind::other;
  std::uint8_t stream = 0;      // number of the Stream
  std::uint8_t collective = 0;  // number of the CollectiveKind of a collective
  bool fusible = false;         // a collective that may be launched as one with others of its kind and group
  bool leaves_host = false;     // the members of its communication are on several hosts
  bool orderable = false;       // a collective or message that is neither paused nor part of a grouped call
  Bytes bytes = 0;              // of a communication
  std::uint32_t name = 0;       // Task::name
  Bytes memory = 0;             // input and output of a collective at the rank
  // Time of a computation, or of the transfer of a communication's bytes, without its start-up. Send and
  // receive of a message both have the message's time.
  Time duration = 0;
};

struct JobProfile {
  static constexpr std::uint32_t kMostTasks = 20'000'000;  // about 2 GB of memory

  std::vector<ProfileTask> tasks;       // by rank, then by position
  std::vector<std::uint32_t> first;     // by rank: its first task; one more entry ends the last rank
  std::vector<std::uint32_t> ordinary;  // by rank: the stream queue with most computations, or kNoIndex
  AdjacencyList successors;             // tasks that wait for a task; a receive waits for its send
  AdjacencyList next_successors;        // tasks of the next iteration that wait for a task
  AdjacencyList members;                // tasks of each communication, ascending

  std::uint32_t ranks() const { return first.empty() ? 0 : static_cast<std::uint32_t>(first.size() - 1); }
  std::uint32_t communications() const { return static_cast<std::uint32_t>(members.size()); }
  std::span<const ProfileTask> tasks_of(RankId rank) const {
    return {tasks.data() + first[rank], first[rank + 1] - first[rank]};
  }
  // Returns the index in `tasks` of a task of the rank.
  std::uint32_t index(RankId rank, std::uint32_t position) const { return first[rank] + position; }
  // Returns the first task of a communication: that of its lowest rank.
  const ProfileTask& task_of(std::uint32_t communication) const {
    return tasks[members.of(communication).front()];
  }
  // Returns whether the task is a computation of the queue in which its rank runs most of its computations.
  // Optimizer steps and servers' updates that are in no order with others are not.
  bool in_ordinary_queue(std::uint32_t task) const;
};

// Returns a profile of these tasks, which are sorted by rank and position. Edges name tasks by their index.
// The numbers of the communications are 0, 1, 2, ... without a gap. The edge from a send to its receive is
// added.
JobProfile make_job_profile(std::vector<ProfileTask> tasks, std::vector<AdjacencyList::Edge> edges,
                            const std::vector<AdjacencyList::Edge>& next_edges);

// Returns the dense order of keys: by index, the number of distinct keys less than its own. Rules use it to
// turn a key of each communication into its place in an order.
template <class Key>
std::vector<std::uint32_t> dense_order(const std::vector<Key>& keys) {
  std::vector<Key> distinct = keys;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::vector<std::uint32_t> order;
  order.reserve(keys.size());
  for (const Key& key : keys) {
    order.push_back(static_cast<std::uint32_t>(std::lower_bound(distinct.begin(), distinct.end(), key) -
                                               distinct.begin()));
  }
  return order;
}

}  // namespace netsim
