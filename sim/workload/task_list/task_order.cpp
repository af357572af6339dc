#include "sim/workload/task_list/task_order.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <tuple>

#include "sim/workload/traffic/traffic.h"

namespace netsim {
namespace {

constexpr std::uint32_t kNoTask = UINT32_MAX;
constexpr std::size_t kShownTasks = 8;

// RankRefinement: divides the ranks by one task after the other.
class RankRefinement {
 public:
  explicit RankRefinement(std::uint32_t ranks) : set_(ranks, 0) {}

  void divide(const ListedTask& task) {
    if (task.kind != ListedKind::message) {
      if (task.ranks != nullptr) move(task.ranks->ranks());
      return;
    }
    move(task.senders->ranks());
    move(task.receivers->ranks());
  }
  std::vector<EqualRanks> finish() const {
    std::map<std::uint32_t, std::size_t> index;
    std::vector<EqualRanks> result;
    for (RankId rank = 0; rank < set_.size(); ++rank) {
      const auto [it, added] = index.emplace(set_[rank], result.size());
      if (added) result.emplace_back();
      result[it->second].push_back(rank);
    }
    return result;
  }

 private:
  // Moves the ranks into new sets, one for each set that they are in.
  void move(const std::vector<RankId>& ranks) {
    std::map<std::uint32_t, std::uint32_t> moved;
    for (const RankId rank : ranks) {
      const auto [it, added] = moved.emplace(set_[rank], next_);
      if (added) ++next_;
      set_[rank] = it->second;
    }
  }

  std::vector<std::uint32_t> set_;  // by rank
  std::uint32_t next_ = 1;
};

using TaskEdge = std::pair<std::uint32_t, std::uint32_t>;  // a task, and one that is behind it

class TaskSorter {
 public:
  TaskSorter(const std::vector<ListedTask>& tasks, const std::vector<EqualRanks>& roles) : tasks_(tasks) {
    for (std::uint32_t task = 0; task < tasks.size(); ++task) {
      for (const std::uint32_t waited : tasks[task].waits) edges_.emplace_back(waited, task);
    }
    for (const EqualRanks& role : roles) follow_queues(role.front());
    std::sort(edges_.begin(), edges_.end());
    edges_.erase(std::unique(edges_.begin(), edges_.end()), edges_.end());
  }

  std::vector<std::uint32_t> sort() {
    std::vector<std::uint32_t> before(tasks_.size(), 0);
    for (const TaskEdge& edge : edges_) ++before[edge.second];
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free;
    for (std::uint32_t task = 0; task < tasks_.size(); ++task) {
      if (before[task] == 0) free.push(task);
    }
    std::vector<std::uint32_t> order;
    while (!free.empty()) {
      const std::uint32_t task = free.top();
      free.pop();
      order.push_back(task);
      for (auto edge = std::lower_bound(edges_.begin(), edges_.end(), TaskEdge{task, 0});
           edge != edges_.end() && edge->first == task; ++edge) {
        if (--before[edge->second] == 0) free.push(edge->second);
      }
    }
    if (order.size() < tasks_.size()) refuse_circle(before);
    return order;
  }

 private:
  // Adds the order of the stream queues of a rank.
  void follow_queues(RankId rank) {
    std::map<std::pair<Stream, std::int64_t>, std::uint32_t> last;
    for (std::uint32_t task = 0; task < tasks_.size(); ++task) {
      const ListedTask& listed = tasks_[task];
      if (!listed.ordered || !listed.begins_on(rank)) continue;
      const auto [it, added] = last.try_emplace({listed.stream, listed.queue}, task);
      if (!added) edges_.emplace_back(std::exchange(it->second, task), task);
    }
  }

  // `before` counts the tasks that each one still waits for. Those of a circle, and those behind one, wait
  // for ever.
  [[noreturn]] void refuse_circle(const std::vector<std::uint32_t>& before) const {
    std::vector<std::uint32_t> waited(tasks_.size(), kNoTask);  // by task: a task that it waits for
    for (const auto& [first, behind] : edges_) {
      if (before[first] > 0 && waited[behind] == kNoTask) waited[behind] = first;
    }
    std::vector<bool> seen(tasks_.size(), false);
    auto task = static_cast<std::uint32_t>(
        std::find_if(before.begin(), before.end(), [](std::uint32_t n) { return n > 0; }) - before.begin());
    while (!seen[task]) {
      seen[task] = true;
      task = waited[task];
    }
    std::vector<std::uint32_t> circle{task};
    while (waited[circle.back()] != task) circle.push_back(waited[circle.back()]);
    std::rotate(circle.begin(), std::min_element(circle.begin(), circle.end()), circle.end());
    const ConfigNode& node = tasks_[circle.front()].node;
    throw ConfigError(place_of(node, "after"), circle_in_words(circle));
  }

  std::string circle_in_words(const std::vector<std::uint32_t>& circle) const {
    std::string words = "tasks wait for each other in a circle:";
    for (std::size_t i = 0; i < std::min(circle.size(), kShownTasks); ++i) {
      const ListedTask& task = tasks_[circle[i]];
      const std::uint32_t other = circle[(i + 1) % circle.size()];
      const bool named = std::find(task.waits.begin(), task.waits.end(), other) != task.waits.end();
      words += (i == 0 ? " '" : ", '") + task.name + (named ? "' waits for '" : "' is written behind '") +
               tasks_[other].name + "'" + (named ? "" : " in the same stream and queue");
    }
    return circle.size() > kShownTasks ? words + ", ..." : words;
  }

  const std::vector<ListedTask>& tasks_;
  std::vector<TaskEdge> edges_;
};

}  // namespace

std::vector<EqualRanks> equal_ranks(const std::vector<ListedTask>& tasks, std::uint32_t ranks) {
  RankRefinement refinement(ranks);
  for (const ListedTask& task : tasks) refinement.divide(task);
  return refinement.finish();
}

std::vector<std::uint32_t> order_tasks(const std::vector<ListedTask>& tasks,
                                       const std::vector<EqualRanks>& roles) {
  return TaskSorter(tasks, roles).sort();
}

}  // namespace netsim
