#include "sim/scheduling/job/defragmentation.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "sim/scheduling/job/job_order.h"

namespace netsim {
namespace {

// Returns the seconds of an iteration, as seconds_left() counts them.
double iteration_seconds(const JobState& job) { return seconds_left(job) / iterations_left(job); }

// Returns the seconds until the job finds GPUs if all others run to their ends and none begins. 0: it does
// not find any then.
double expected_wait(const JobState& job, const JobSchedulerView& view, const JobDecisions& decisions) {
  std::vector<std::pair<double, JobId>> ends;
  for (const JobState& other : view.jobs) {
    if (!other.waits()) ends.emplace_back(seconds_left(other), other.job);
  }
  std::sort(ends.begin(), ends.end());
  std::vector<JobId> ended;
  for (const auto& [seconds, other] : ends) {
    ended.push_back(other);
    if (decisions.would_fit(std::vector{job.job}, ended)) return seconds;
  }
  return 0;
}

// CheapestSets: the sets of things with costs, in the order of their sums.
class CheapestSets {
 public:
  explicit CheapestSets(std::vector<double> rising) : cost_(std::move(rising)) {
    if (!cost_.empty()) sets_.push({cost_[0], {0}});
  }
  bool empty() const { return sets_.empty(); }
  double cost() const { return sets_.top().first; }
  // Returns the next set, by index. Another index is added behind its last one, or replaces that.
  std::vector<std::uint32_t> next() {
    const Set set = sets_.top();
    sets_.pop();
    const std::uint32_t last = set.second.back();
    if (last + 1 < cost_.size()) {
      Set longer{set.first + cost_[last + 1], set.second}, other{longer.first - cost_[last], set.second};
      longer.second.push_back(last + 1);
      other.second.back() = last + 1;
      sets_.push(std::move(longer));
      sets_.push(std::move(other));
    }
    return set.second;
  }

 private:
  using Set = std::pair<double, std::vector<std::uint32_t>>;
  std::vector<double> cost_;
  std::priority_queue<Set, std::vector<Set>, std::greater<>> sets_;
};

}  // namespace

bool Defragmentation::decide(const JobSchedulerView& view, std::vector<const JobState*>& order,
                             JobDecisions& decisions) {
  if (!enabled_) return false;
  if (moves_ && go_on(view, order, decisions)) return true;
  const auto first =
      std::find_if(order.begin(), order.end(), [](const JobState* job) { return job->waits(); });
  if (first == order.end() || (*first)->ranks > view.cluster.free) return false;
  if (decisions.would_fit(std::vector{(*first)->job}, {})) return false;
  moves_ = plan(**first, view, decisions);
  if (!moves_) return false;
  for (const JobId job : moves_->moved) decisions.pause(job);
  return true;
}

// Starts the job as soon as it fits, and then those that were paused for it. Gives up if it does not fit when
// all of them are paused or have ended. Returns whether it still waits for them.
bool Defragmentation::go_on(const JobSchedulerView& view, std::vector<const JobState*>& order,
                            JobDecisions& decisions) {
  const auto is_moved = [&](JobId job) {
    return std::find(moves_->moved.begin(), moves_->moved.end(), job) != moves_->moved.end();
  };
  const auto start = [&](JobId job) {
    const bool starts = decisions.start(job);
    if (starts) std::erase_if(order, [&](const JobState* other) { return other->job == job; });
    return starts;
  };
  const bool all_rest = std::none_of(view.jobs.begin(), view.jobs.end(),
                                     [&](const JobState& job) { return !job.waits() && is_moved(job.job); });
  const bool started = start(moves_->job);
  if (!started && !all_rest) return true;
  for (const JobId moved : moves_->moved) {
    const auto state = std::find_if(view.jobs.begin(), view.jobs.end(),
                                    [&](const JobState& job) { return job.job == moved; });
    if (started && state != view.jobs.end() && state->waits()) start(moved);
  }
  moves_.reset();
  return false;
}

// Returns the cheapest moves that gain, or nothing.
std::optional<Defragmentation::Moves> Defragmentation::plan(const JobState& job, const JobSchedulerView& view,
                                                            const JobDecisions& decisions) const {
  const double wait = expected_wait(job, view, decisions);
  std::vector<const JobState*> running;
  for (const JobState& other : view.jobs) {
    if (other.phase == JobState::Phase::running) running.push_back(&other);
  }
  std::stable_sort(running.begin(), running.end(),
                   [&](const JobState* a, const JobState* b) { return cost_of(*a) < cost_of(*b); });
  std::vector<double> costs;
  for (const JobState* other : running) costs.push_back(cost_of(*other));
  CheapestSets sets(std::move(costs));
  for (std::size_t tried = 0; tried < kMostSets && !sets.empty() && sets.cost() < wait * job.ranks; ++tried) {
    std::vector<const JobState*> moved;
    for (const std::uint32_t index : sets.next()) moved.push_back(running[index]);
    if (!gains(job, wait, moved)) continue;
    std::stable_sort(moved.begin(), moved.end(),
                     [](const JobState* a, const JobState* b) { return a->ranks > b->ranks; });
    std::vector<JobId> placed{job.job}, without;
    for (const JobState* other : moved) {
      placed.push_back(other->job);
      without.push_back(other->job);
    }
    if (decisions.would_fit(placed, without)) return Moves{job.job, without};
  }
  return std::nullopt;
}

// Returns the GPU seconds that a job loses by a move.
double Defragmentation::cost_of(const JobState& job) const {
  return (to_seconds(move_) + iteration_seconds(job)) * job.ranks;
}

bool Defragmentation::gains(const JobState& job, double wait,
                            const std::vector<const JobState*>& moved) const {
  double cost = 0, longest = 0;
  for (const JobState* other : moved) {
    cost += cost_of(*other);
    longest = std::max(longest, iteration_seconds(*other));
  }
  return (wait - longest) * job.ranks > cost;
}

}  // namespace netsim
