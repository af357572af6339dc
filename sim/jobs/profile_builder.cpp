#include "sim/jobs/profile_builder.h"

#include <string>
#include <unordered_map>
#include <utility>

#include "sim/jobs/communication_id.h"
#include "sim/scheduling/task/operation_graph.h"

namespace netsim {
namespace {

ProfileTaskKind profile_kind(const Task& task) {
  if (has_work(task.kind())) return ProfileTaskKind::compute;
  switch (task.kind()) {
    case TaskKind::collective:
      return ProfileTaskKind::collective;
    case TaskKind::send:
      return ProfileTaskKind::send;
    case TaskKind::receive:
      return ProfileTaskKind::receive;
    default:
      return ProfileTaskKind::other;
  }
}

// Returns whether a plan may say when the communication is launched: it waits for nothing but the scheduler.
bool may_be_ordered(const Task& task) {
  return task.together == 1 && (task.kind() != TaskKind::collective || task.collective().pause == 0);
}

// Returns whether a collective may be launched as one with others. Its blocks follow from its bytes alone,
// and it begins when the scheduler launches it.
bool may_be_fused(const Task& task) {
  const CollectiveTask& call = task.collective();
  const bool known = call.collective == CollectiveKind::all_reduce ||
                     call.collective == CollectiveKind::all_gather ||
                     call.collective == CollectiveKind::reduce_scatter;
  return known && call.counts == nullptr && may_be_ordered(task);
}

std::uint64_t match_id(RankId rank, const Task& task) {
  if (task.kind() == TaskKind::collective) return collective_id(task.group(), task.sequence);
  const MessageTask& message = task.message();
  const bool sends = task.kind() == TaskKind::send;
  return message_id({sends ? rank : message.peer, sends ? message.peer : rank, message.tag, task.sequence});
}

// Returns the bytes of a collective's input and output at a rank. An all-reduce has both in one place.
Bytes memory_of(const ProfileTask& task, std::size_t members) {
  switch (static_cast<CollectiveKind>(task.collective)) {
    case CollectiveKind::all_reduce:
      return task.bytes;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
      return task.bytes + task.bytes / static_cast<Bytes>(members);
    default:
      return 2 * task.bytes;
  }
}

class ProfileAssembly {
 public:
  ProfileAssembly(const ComputeTimes& times, const CommunicationEstimate& estimate, Place place)
      : times_(times), estimate_(estimate), place_(std::move(place)) {}

  void check_size(std::uint64_t tasks) const {
    if (tasks <= JobProfile::kMostTasks) return;
    throw InputError(place_, "the job has " + std::to_string(tasks) +
                                 " tasks in an iteration of all ranks: a task scheduler that plans allows at "
                                 "most " +
                                 std::to_string(JobProfile::kMostTasks) +
                                 "; use one that does not, such as fifo, or fewer ranks");
  }

  void add_rank(RankId rank, const TaskGraph& graph) {
    const auto first = static_cast<std::uint32_t>(tasks_.size());
    const auto size = static_cast<std::uint32_t>(graph.tasks.size());
    check_size(std::uint64_t{first} + size + 1);
    for (std::uint32_t i = 0; i < size; ++i) {
      tasks_.push_back(profile_task(rank, i, graph.tasks[i]));
      for (const std::uint32_t successor : graph.successors.of(i))
        edges_.emplace_back(first + i, first + successor);
      for (const std::uint32_t successor : graph.next_successors.of(i))
        next_edges_.emplace_back(first + i, first + successor);
    }
    keep_order_of_first_tasks(first, graph);
    if (!graph.after_iteration.empty()) add_end(rank, graph);
  }

  JobProfile finish() {
    for (ProfileTask& task : tasks_) {
      if (task.communication != kNoIndex) task.duration = durations_[task.communication];
    }
    agree_about_fusion();
    JobProfile profile = make_job_profile(std::move(tasks_), std::move(edges_), next_edges_);
    for (ProfileTask& task : profile.tasks) {
      if (task.kind == ProfileTaskKind::collective)
        task.memory = memory_of(task, profile.members.of(task.communication).size());
    }
    refuse_circle(profile);
    return profile;
  }

 private:
  // A communication that waits for nothing in its iteration is handed out after those before it in its queue
  // (TaskStream::release_communications). It must not wait with one of them to be launched.
  void keep_order_of_first_tasks(std::uint32_t first, const TaskGraph& graph) {
    std::vector<bool> waits(graph.tasks.size(), false);
    for (std::uint32_t i = 0; i < graph.tasks.size(); ++i) {
      for (const std::uint32_t successor : graph.successors.of(i)) waits[successor] = true;
    }
    for (std::uint32_t i = 0; i < graph.tasks.size(); ++i) {
      if (!waits[i]) tasks_[first + i].fusible = false;
    }
  }

  // A collective may be fused only where all members may fuse it.
  void agree_about_fusion() {
    std::vector<bool> fusible(durations_.size(), true);
    for (const ProfileTask& task : tasks_) {
      if (task.communication != kNoIndex && !task.fusible) fusible[task.communication] = false;
    }
    for (ProfileTask& task : tasks_)
      task.fusible = task.communication != kNoIndex && fusible[task.communication];
  }

  // Adds the end of the iteration, which waits for all tasks and for which tasks of the next iteration wait.
  void add_end(RankId rank, const TaskGraph& graph) {
    const auto end = static_cast<std::uint32_t>(tasks_.size());
    const auto size = static_cast<std::uint32_t>(graph.tasks.size());
    for (std::uint32_t i = 0; i < size; ++i) {
      if (graph.successors.of(i).empty()) edges_.emplace_back(end - size + i, end);
    }
    for (const std::uint32_t task : graph.after_iteration) next_edges_.emplace_back(end, end - size + task);
    ProfileTask entry;
    entry.rank = rank;
    entry.position = size;
    tasks_.push_back(entry);
  }

  ProfileTask profile_task(RankId rank, std::uint32_t position, const Task& task) {
    ProfileTask entry;
    entry.rank = rank;
    entry.position = position;
    entry.queue = task.queue;
    entry.kind = profile_kind(task);
    entry.stream = static_cast<std::uint8_t>(task.stream);
    entry.bytes = task.bytes();
    entry.name = task.name;
    if (has_work(task.kind())) entry.duration = times_.duration(rank, compute_request(task));
    if (is_copy(task.kind())) entry.duration = estimate_(rank, task);
    if (task.kind() == TaskKind::collective) {
      entry.group = task.group();
      entry.collective = static_cast<std::uint8_t>(task.collective().collective);
      entry.fusible = may_be_fused(task);
    }
    if (task.kind() == TaskKind::collective || is_point_to_point(task)) {
      entry.communication = communication(rank, task);
      entry.orderable = may_be_ordered(task);
    }
    return entry;
  }

  // Returns the index of the task's communication. The first member of a collective and the send of a message
  // estimate its time.
  std::uint32_t communication(RankId rank, const Task& task) {
    const auto next = static_cast<std::uint32_t>(durations_.size());
    const auto [it, added] = communications_.try_emplace(match_id(rank, task), next);
    if (added) durations_.push_back(0);
    if (task.kind() == TaskKind::send || (added && task.kind() == TaskKind::collective))
      durations_[it->second] = estimate_(rank, task);
    return it->second;
  }

  void refuse_circle(const JobProfile& profile) const {
    const std::vector<std::uint32_t> circle = OperationGraph(profile).circle();
    if (circle.empty()) return;
    std::string tasks;
    for (std::size_t i = 0; i < circle.size() && i < 4; ++i) {
      const ProfileTask& task = profile.tasks[circle[i]];
      tasks += (i == 0 ? "" : ", ") + std::string("task ") + std::to_string(task.position) + " of rank " +
               std::to_string(task.rank);
    }
    throw InputError(place_, "tasks wait for one another in a circle of " + std::to_string(circle.size()) +
                                 ": " + tasks + (circle.size() > 4 ? ", ..." : ""));
  }

  const ComputeTimes& times_;
  const CommunicationEstimate& estimate_;
  Place place_;
  std::vector<ProfileTask> tasks_;
  std::vector<AdjacencyList::Edge> edges_, next_edges_;
  std::unordered_map<std::uint64_t, std::uint32_t> communications_;  // by the id of its match key
  std::vector<Time> durations_;                                      // by communication
};

}  // namespace

std::optional<JobProfile> build_job_profile(const TaskSource& source, const ComputeTimes& times,
                                            const CommunicationEstimate& estimate, const Place& place) {
  ProfileAssembly assembly(times, estimate, place);
  const auto total = source.total_tasks();
  const auto iterations = source.iterations();
  if (total && iterations && *iterations > 0) assembly.check_size(*total / *iterations);
  for (std::uint32_t rank = 0; rank < source.ranks(); ++rank) {
    const std::optional<TaskGraph> graph = source.graph(rank, {});
    if (!graph) return std::nullopt;
    assembly.add_rank(rank, *graph);
  }
  return assembly.finish();
}

}  // namespace netsim
