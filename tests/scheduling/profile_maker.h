// Writes job profiles by hand, for tests of the rules that plan with them.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/scheduling/task/job_profile.h"

namespace netsim::test {

// ProfileMaker: tasks are added rank by rank, in program order. A task is named by its index.
class ProfileMaker {
 public:
  explicit ProfileMaker(RankId rank = 0) : rank_(rank) {}

  void next_rank() {
    ++rank_;
    position_ = 0;
  }
  // Adds a computation. With a queue, it follows the computation before it in the queue of its rank.
  std::uint32_t compute(Time duration, const std::vector<std::uint32_t>& after = {},
                        std::uint32_t queue = kNoIndex) {
    const std::uint32_t task = add(ProfileTaskKind::compute, duration, kNoIndex, after);
    tasks_[task].queue = queue;
    if (queue == kNoIndex) return task;
    for (std::uint32_t i = task; i-- > 0 && tasks_[i].rank == tasks_[task].rank;) {
      if (tasks_[i].kind != ProfileTaskKind::compute || tasks_[i].queue != queue) continue;
      edges_.emplace_back(i, task);
      break;
    }
    return task;
  }
  std::uint32_t add(ProfileTaskKind kind, Time duration, std::uint32_t communication,
                    const std::vector<std::uint32_t>& after) {
    ProfileTask task;
    task.rank = rank_;
    task.position = position_++;
    task.kind = kind;
    task.duration = duration;
    task.communication = communication;
    if (kind == ProfileTaskKind::collective) {
      task.group = 0;
      task.fusible = task.orderable = true;
    }
    const auto index = static_cast<std::uint32_t>(tasks_.size());
    for (const std::uint32_t before : after) edges_.emplace_back(before, index);
    tasks_.push_back(task);
    return index;
  }
  // The task `to` of the next iteration waits for `from`.
  void edge_to_next(std::uint32_t from, std::uint32_t to) { next_edges_.emplace_back(from, to); }
  const std::vector<AdjacencyList::Edge>& edges() const { return edges_; }
  const std::vector<AdjacencyList::Edge>& next_edges() const { return next_edges_; }
  JobProfile finish() const { return make_job_profile(tasks_, edges_, next_edges_); }

 private:
  RankId rank_;
  std::uint32_t position_ = 0;
  std::vector<ProfileTask> tasks_;
  std::vector<AdjacencyList::Edge> edges_, next_edges_;
};

// Returns one rank's chain of layers: forwards, backwards, an all-reduce after each backward, and the forward
// of the next iteration after that. Communication i belongs to layer L - 1 - i.
inline JobProfile layer_chain(Time forward, Time backward, const std::vector<Time>& communication) {
  ProfileMaker maker;
  const auto layers = static_cast<std::uint32_t>(communication.size());
  for (std::uint32_t i = 0; i < layers; ++i) maker.compute(forward, {}, 0);
  for (std::uint32_t i = 0; i < layers; ++i) {
    const std::uint32_t layer = layers - 1 - i, back = maker.compute(backward, {}, 0);
    const std::uint32_t reduced = maker.add(ProfileTaskKind::collective, communication[layer], i, {back});
    maker.edge_to_next(reduced, layer);
  }
  return maker.finish();
}

}  // namespace netsim::test
