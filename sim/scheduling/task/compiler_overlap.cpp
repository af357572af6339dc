#include "sim/scheduling/task/compiler_overlap.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "sim/scheduling/task/operation_graph.h"

namespace netsim {
namespace {

// ---- Nodes of a rank

// OverlapNode: a node of a rank's graph. Nodes are numbered in program order.
struct OverlapNode {
  OverlapStep step;
  std::uint32_t partner = kNoIndex;      // start: its wait; wait: its start
  std::uint32_t computation = kNoIndex;  // number of a computation among those of the rank
  std::uint32_t dominates = kNoIndex;    // least number of a computation that waits for it
  std::uint32_t after = 0;               // number of computations up to the last one that it waits for
};

// Returns the computations of each rank before each task: by task, the number of a computation.
std::vector<std::uint32_t> computation_numbers(const JobProfile& profile) {
  std::vector<std::uint32_t> numbers(profile.tasks.size(), kNoIndex);
  for (RankId rank = 0; rank < profile.ranks(); ++rank) {
    std::uint32_t next = 0;
    for (std::uint32_t task = profile.first[rank]; task < profile.first[rank + std::size_t{1}]; ++task) {
      if (profile.in_ordinary_queue(task)) numbers[task] = next++;
    }
  }
  return numbers;
}

// Dominations: by task, the least number of a computation that waits for it, or its own. Paths lead over
// other ranks too, so that what a pipeline sends on is not put off.
class Dominations {
 public:
  explicit Dominations(const JobProfile& profile) : profile_(profile), graph_(profile) {
    numbers_ = computation_numbers(profile);
    least_.assign(graph_.size(), kNoIndex);
    for (auto node = graph_.order().rbegin(); node != graph_.order().rend(); ++node) {
      least_[*node] = numbers_[graph_.task(*node)];
      if (least_[*node] != kNoIndex) continue;
      for (const std::uint32_t successor : graph_.successors().of(*node))
        least_[*node] = std::min(least_[*node], least_[successor]);
    }
  }
  std::uint32_t number(std::uint32_t task) const { return numbers_[task]; }
  std::uint32_t of(std::uint32_t task) const { return least_[graph_.of_task(task)]; }

 private:
  const JobProfile& profile_;
  OperationGraph graph_;
  std::vector<std::uint32_t> numbers_, least_;
};

// RankGraph: the nodes of one rank and the edges between them.
class RankGraph {
 public:
  RankGraph(const JobProfile& profile, const Dominations& dominations, RankId rank)
      : profile_(profile), begin_(profile.first[rank]), tasks_(profile.tasks_of(rank).size()) {
    for (const std::uint32_t task : program_order()) add_nodes(task, dominations);
    connect();
    for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
      OverlapNode& here = nodes_[node];
      if (here.computation != kNoIndex) here.after = here.computation + 1;
      for (const std::uint32_t successor : successors_.of(node))
        nodes_[successor].after = std::max(nodes_[successor].after, here.after);
    }
  }

  std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }
  const OverlapNode& operator[](std::uint32_t node) const { return nodes_[node]; }
  const ProfileTask& task(std::uint32_t node) const { return profile_.tasks[nodes_[node].step.task]; }
  const AdjacencyList& successors() const { return successors_; }
  const AdjacencyList& predecessors() const { return predecessors_; }
  std::uint32_t computations() const { return computations_; }

 private:
  // Returns the indexes of the rank's tasks so that each follows those that it waits for, else in order.
  std::vector<std::uint32_t> program_order() const {
    std::vector<std::uint32_t> waits(tasks_, 0), order;
    const auto for_each_successor = [&](std::uint32_t task, const auto& visit) {
      for (const std::uint32_t successor : profile_.successors.of(task)) {
        if (successor >= begin_ && successor < begin_ + tasks_) visit(successor);
      }
    };
    for (std::uint32_t i = 0; i < tasks_; ++i)
      for_each_successor(begin_ + i, [&](std::uint32_t successor) { ++waits[successor - begin_]; });
    std::set<std::uint32_t> ready;
    for (std::uint32_t i = 0; i < tasks_; ++i) {
      if (waits[i] == 0) ready.insert(begin_ + i);
    }
    while (!ready.empty()) {
      order.push_back(*ready.begin());
      ready.erase(ready.begin());
      for_each_successor(order.back(), [&](std::uint32_t successor) {
        if (--waits[successor - begin_] == 0) ready.insert(successor);
      });
    }
    return order;
  }

  void add_nodes(std::uint32_t task, const Dominations& dominations) {
    const bool collective = profile_.tasks[task].kind == ProfileTaskKind::collective;
    const std::uint32_t node = size();
    numbers_.resize(tasks_, kNoIndex);
    numbers_[task - begin_] = node;
    OverlapNode entry;
    entry.step = {collective ? OverlapStep::Kind::start : OverlapStep::Kind::task, task};
    entry.computation = dominations.number(task);
    entry.dominates = dominations.of(task);
    computations_ += entry.computation != kNoIndex ? 1 : 0;
    nodes_.push_back(entry);
    if (!collective) return;
    nodes_.back().partner = node + 1;
    entry.step.kind = OverlapStep::Kind::wait;
    entry.partner = node;
    nodes_.push_back(entry);
  }

  // Adds the edges between tasks, from a start to its wait, and from each computation to the next one.
  void connect() {
    std::vector<AdjacencyList::Edge> edges, back;
    std::uint32_t computation = kNoIndex;
    for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
      const OverlapNode& here = nodes_[node];
      if (here.step.kind == OverlapStep::Kind::start) {
        edges.emplace_back(node, here.partner);
        continue;
      }
      for (const std::uint32_t successor : profile_.successors.of(here.step.task)) {
        if (successor >= begin_ && successor < begin_ + tasks_)
          edges.emplace_back(node, numbers_[successor - begin_]);
      }
      if (here.computation == kNoIndex) continue;
      if (computation != kNoIndex) edges.emplace_back(computation, node);
      computation = node;
    }
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    for (const auto& [from, to] : edges) back.emplace_back(to, from);
    successors_.build(nodes_.size(), edges);
    predecessors_.build(nodes_.size(), back);
  }

  const JobProfile& profile_;
  std::uint32_t begin_;  // index of the rank's first task
  std::size_t tasks_;
  std::vector<OverlapNode> nodes_;
  std::vector<std::uint32_t> numbers_;  // by position: the node of a task, of a collective its start
  AdjacencyList successors_, predecessors_;
  std::uint32_t computations_ = 0;
};

// ---- The rule

// OverlapRule: the state of the rule while it schedules the nodes of a rank. The names of its functions are
// close to those of the published code.
class OverlapRule {
 public:
  OverlapRule(const RankGraph& graph, const OverlapLimits& limits)
      : graph_(graph), limits_(limits), waits_(graph.size(), 0), scheduled_(graph.size(), false) {
    for (std::uint32_t node = 0; node < graph.size(); ++node) {
      waits_[node] = static_cast<std::uint32_t>(graph.predecessors().of(node).size());
      if (graph[node].step.kind != OverlapStep::Kind::start) continue;
      const ProfileTask& task = graph.task(node);
      unstarted_.insert(node);
      collectives_[node] = {task.memory, task.duration, kNoIndex};
    }
  }

  std::vector<OverlapStep> run() {
    for (std::uint32_t node = 0; node < graph_.size(); ++node) {
      if (waits_[node] == 0) push(node);
    }
    while (!ready_.empty()) {
      if (!in_flight_.empty() && bytes_ >= limits_.in_flight) {
        wait(in_flight_.front());
        continue;
      }
      const std::uint32_t node = std::get<2>(ready_.top());
      ready_.pop();
      if (!scheduled_[node]) take(node);
    }
    return std::move(steps_);
  }

 private:
  struct Collective {
    Bytes bytes = 0;
    Time exposed = 0;                    // time that no computation hides yet
    std::uint32_t hidden_by = kNoIndex;  // the last computation that hides some of it
  };

  bool is_start(std::uint32_t node) const { return graph_[node].step.kind == OverlapStep::Kind::start; }
  bool is_wait(std::uint32_t node) const { return graph_[node].step.kind == OverlapStep::Kind::wait; }
  bool is_computation(std::uint32_t node) const { return graph_[node].computation != kNoIndex; }

  void push(std::uint32_t node) {
    int local = leads_to_collective(node) ? -1 : 0;
    if (is_wait(node)) local = collectives_.at(graph_[node].partner).exposed > 0 ? 1 : 0;
    ready_.emplace(graph_[node].dominates, local, node);
  }

  // Returns whether only a collective waits for the node, directly or over cheap nodes, and for nothing else.
  bool leads_to_collective(std::uint32_t node) const {
    while (graph_.successors().of(node).size() == 1) {
      node = graph_.successors().of(node).front();
      if (graph_.predecessors().of(node).size() != 1) return false;
      if (is_start(node)) return unstarted_.contains(node);
      const ProfileTaskKind kind = graph_.task(node).kind;
      const bool cheap = kind == ProfileTaskKind::other || kind == ProfileTaskKind::compute;
      if (!cheap || is_computation(node)) return false;
    }
    return false;
  }

  void take(std::uint32_t node) {
    if (is_computation(node)) return compute(node);
    if (is_start(node)) return start(node);
    if (is_wait(node)) return wait(graph_[node].partner);
    schedule(node);
  }

  void schedule(std::uint32_t node) {
    scheduled_[node] = true;
    steps_.push_back(graph_[node].step);
    for (const std::uint32_t successor : graph_.successors().of(node)) {
      if (--waits_[successor] == 0) push(successor);
    }
  }

  void start(std::uint32_t node) {
    in_flight_.push_back(node);
    bytes_ += collectives_[node].bytes;
    unstarted_.erase(node);
    schedule(node);
  }

  // Waits for a collective, and before that for all of its group that were started before it.
  void wait(std::uint32_t start) {
    const std::vector<std::uint32_t> flights = in_flight_;
    for (const std::uint32_t earlier : flights) {
      const bool last = earlier == start;
      if (!last && graph_.task(earlier).group != graph_.task(start).group) continue;
      in_flight_.erase(std::find(in_flight_.begin(), in_flight_.end(), earlier));
      bytes_ -= collectives_[earlier].bytes;
      schedule(graph_[earlier].partner);
      if (last) return;
    }
  }

  void compute(std::uint32_t node) {
    Time available = static_cast<Time>(static_cast<double>(graph_.task(node).duration) * limits_.multiplier);
    for (const std::uint32_t start : in_flight_) {
      if (collectives_[start].exposed == 0) continue;
      hide(start, node, available);
      if (available == 0) break;
    }
    if (available > 0) start_early(node, available);
    schedule(node);
    ++computed_;
  }

  void hide(std::uint32_t start, std::uint32_t computation, Time& available) {
    Collective& collective = collectives_[start];
    const Time hidden = std::min(collective.exposed, available);
    collective.exposed -= hidden;
    collective.hidden_by = computation;
    available -= hidden;
  }

  // Starts collectives that the rest of the computation can hide, those that are needed first before others.
  void start_early(std::uint32_t computation, Time available) {
    for (const std::uint32_t start : reachable_collectives(computation)) {
      if (available == 0) return;
      if (graph_[start].after > graph_[computation].computation) continue;  // it waits for the computation
      if (!make_room(start, computation)) continue;
      std::vector<std::uint32_t> path;
      if (!find_path(start, computation, path)) continue;
      for (const std::uint32_t node : path) {
        if (!scheduled_[node]) is_wait(node) ? wait(graph_[node].partner) : schedule(node);
      }
      this->start(start);
      hide(start, computation, available);
    }
  }

  // Returns the collectives that are near enough, in order of the computations that wait for them. As in the
  // published code, the first one that is too far away ends the search.
  std::vector<std::uint32_t> reachable_collectives(std::uint32_t computation) const {
    std::vector<std::uint32_t> starts;
    for (const std::uint32_t start : unstarted_) {
      if (std::abs(std::int64_t{computation} - std::int64_t{start}) > limits_.distance) break;
      const std::uint32_t needed = graph_[start].dominates;
      if (needed != kNoIndex && std::int64_t{needed} - computed_ > limits_.prefetch) continue;
      starts.push_back(start);
    }
    std::stable_sort(starts.begin(), starts.end(), [this](std::uint32_t a, std::uint32_t b) {
      return graph_[a].dominates < graph_[b].dominates;
    });
    return starts;
  }

  // Waits for the oldest collectives in flight while they are hidden and the bound leaves no room.
  bool make_room(std::uint32_t start, std::uint32_t computation) {
    const Bytes bytes = collectives_[start].bytes;
    while (!in_flight_.empty() && limits_.in_flight - bytes_ < bytes) {
      const Collective& oldest = collectives_[in_flight_.front()];
      if (oldest.exposed > 0 || oldest.hidden_by == computation) break;
      wait(in_flight_.front());
    }
    return limits_.in_flight - bytes_ >= bytes;
  }

  // Finds the nodes that must be scheduled before a collective, in program order. Returns false if one is
  // another collective, or the wait for one that can still be hidden.
  bool find_path(std::uint32_t start, std::uint32_t computation, std::vector<std::uint32_t>& path) const {
    std::set<std::uint32_t> found;
    std::vector<std::uint32_t> open{start};
    while (!open.empty()) {
      const std::uint32_t node = open.back();
      open.pop_back();
      for (const std::uint32_t before : graph_.predecessors().of(node)) {
        if (scheduled_[before] || !found.insert(before).second) continue;
        if (is_computation(before) || is_start(before)) return false;
        if (is_wait(before) && !may_wait(before, computation)) return false;
        open.push_back(before);
      }
    }
    path.assign(found.begin(), found.end());
    return true;
  }

  bool may_wait(std::uint32_t wait, std::uint32_t computation) const {
    const std::uint32_t hidden_by = collectives_.at(graph_[wait].partner).hidden_by;
    if (hidden_by != kNoIndex && hidden_by != computation) return true;
    return !can_be_hidden(wait);
  }

  // Returns whether there is a computation that neither waits for the node nor is waited for by it.
  bool can_be_hidden(std::uint32_t node) const {
    return graph_[node].after < std::min(graph_[node].dominates, graph_.computations());
  }

  const RankGraph& graph_;
  const OverlapLimits limits_;
  std::vector<std::uint32_t> waits_;  // predecessors that are not scheduled yet
  std::vector<bool> scheduled_;
  std::map<std::uint32_t, Collective> collectives_;  // by start
  std::set<std::uint32_t> unstarted_;
  std::vector<std::uint32_t> in_flight_;  // starts, in order
  Bytes bytes_ = 0;                       // of those in flight
  std::int64_t computed_ = 0;
  using Score = std::tuple<std::uint32_t, int, std::uint32_t>;
  std::priority_queue<Score, std::vector<Score>, std::greater<>> ready_;
  std::vector<OverlapStep> steps_;
};

// ---- The plan

// Returns, by rank, whether it is the lowest rank of a collective.
std::vector<bool> lowest_ranks(const JobProfile& profile) {
  std::vector<bool> lowest(profile.ranks(), false);
  for (std::uint32_t i = 0; i < profile.communications(); ++i) {
    const ProfileTask& task = profile.task_of(i);
    if (task.kind == ProfileTaskKind::collective) lowest[task.rank] = true;
  }
  return lowest;
}

// OverlapPlan: enters the schedules of ranks in a plan.
class OverlapPlan {
 public:
  OverlapPlan(const JobProfile& profile, LaunchPlan& plan) : profile_(profile), plan_(plan) {}

  void add(RankId rank, const std::vector<OverlapStep>& steps) {
    std::uint32_t computation = kNoIndex;
    waited_.clear();
    for (const OverlapStep& step : steps) {
      const ProfileTask& task = profile_.tasks[step.task];
      if (profile_.in_ordinary_queue(step.task)) computation = step.task;
      if (step.kind == OverlapStep::Kind::wait) waited_[task.group] = step.task;
      if (step.kind != OverlapStep::Kind::start || !task.orderable) continue;
      if (profile_.task_of(task.communication).rank != rank) continue;
      add_start(task.communication, task.group, computation);
    }
  }

 private:
  void add_start(std::uint32_t communication, GroupId group, std::uint32_t computation) {
    const auto [sequence, added] = sequences_.try_emplace(group, plan_.sequences.size());
    if (added) plan_.sequences.emplace_back();
    plan_.sequences[sequence->second].push_back(communication);
    if (computation != kNoIndex) plan_.holds.push_back({communication, computation});
    for (const auto& [other, task] : waited_) plan_.holds.push_back({communication, task});
  }

  const JobProfile& profile_;
  LaunchPlan& plan_;
  std::map<std::uint32_t, std::size_t> sequences_;  // by group
  std::map<std::uint32_t, std::uint32_t> waited_;   // by group: the last collective waited for
};

}  // namespace

std::vector<OverlapStep> compiler_overlap_steps(const JobProfile& profile, RankId rank,
                                                const OverlapLimits& limits) {
  const Dominations dominations(profile);
  const RankGraph graph(profile, dominations, rank);
  return OverlapRule(graph, limits).run();
}

LaunchPlan compiler_overlap(const JobProfile& profile, const OverlapLimits& limits) {
  LaunchPlan plan;
  OverlapPlan entries(profile, plan);
  const Dominations dominations(profile);
  const std::vector<bool> lowest = lowest_ranks(profile);
  for (RankId rank = 0; rank < profile.ranks(); ++rank) {
    if (!lowest[rank]) continue;
    const RankGraph graph(profile, dominations, rank);
    entries.add(rank, OverlapRule(graph, limits).run());
  }
  return plan;
}

}  // namespace netsim
