#include "sim/scheduling/task/job_profile.h"

#include <algorithm>
#include <map>
#include <utility>

namespace netsim {
namespace {

// Returns the stream queue of a rank that has most computations, the first of those with equally many.
std::uint32_t ordinary_queue(std::span<const ProfileTask> tasks) {
  std::map<std::uint32_t, std::uint32_t> computations;
  for (const ProfileTask& task : tasks) {
    if (task.kind == ProfileTaskKind::compute && task.queue != kNoIndex) ++computations[task.queue];
  }
  const auto most = std::max_element(computations.begin(), computations.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == computations.end() ? kNoIndex : most->first;
}

void add_message_edges(const JobProfile& profile, std::vector<AdjacencyList::Edge>& edges) {
  for (std::uint32_t communication = 0; communication < profile.communications(); ++communication) {
    for (const std::uint32_t from : profile.members.of(communication)) {
      if (profile.tasks[from].kind != ProfileTaskKind::send) continue;
      for (const std::uint32_t to : profile.members.of(communication)) {
        if (profile.tasks[to].kind == ProfileTaskKind::receive) edges.emplace_back(from, to);
      }
    }
  }
}

}  // namespace

bool JobProfile::in_ordinary_queue(std::uint32_t task) const {
  const ProfileTask& one = tasks[task];
  return one.kind == ProfileTaskKind::compute && one.queue != kNoIndex && one.queue == ordinary[one.rank];
}

JobProfile make_job_profile(std::vector<ProfileTask> tasks, std::vector<AdjacencyList::Edge> edges,
                            const std::vector<AdjacencyList::Edge>& next_edges) {
  JobProfile profile;
  profile.tasks = std::move(tasks);
  std::uint32_t communications = 0;
  std::vector<AdjacencyList::Edge> members;
  for (std::uint32_t i = 0; i < profile.tasks.size(); ++i) {
    const ProfileTask& task = profile.tasks[i];
    while (profile.first.size() <= task.rank) profile.first.push_back(i);
    if (task.communication == kNoIndex) continue;
    members.emplace_back(task.communication, i);
    communications = std::max(communications, task.communication + 1);
  }
  profile.first.push_back(static_cast<std::uint32_t>(profile.tasks.size()));
  profile.members.build(communications, members);
  for (std::uint32_t rank = 0; rank < profile.ranks(); ++rank)
    profile.ordinary.push_back(ordinary_queue(profile.tasks_of(rank)));
  add_message_edges(profile, edges);
  profile.successors.build(profile.tasks.size(), edges);
  profile.next_successors.build(profile.tasks.size(), next_edges);
  return profile;
}

}  // namespace netsim
