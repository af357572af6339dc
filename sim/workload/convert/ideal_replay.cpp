#include "sim/workload/convert/ideal_replay.h"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "sim/core/errors.h"

namespace netsim {
namespace {

// IdealReplay: an execution in the order of time.
class IdealReplay {
 public:
  IdealReplay(TaskSource& source, const IdealReplayRules& rules) : source_(source), rules_(rules) {}

  ReplayedPath play() {
    source_.open();
    durations_.assign(source_.works().size(), kUnknown);
    // A large trace has millions of tasks, so the list does not grow by doubling.
    constexpr std::uint64_t kMostReserved = 1 << 26;
    nodes_.reserve(1 + std::min(source_.total_tasks().value_or(0), kMostReserved));
    nodes_.resize(1);  // node 0 is the begin, for which no task waits
    std::vector<Task> ready;
    for (RankId rank = 0; rank < source_.ranks(); ++rank) {
      source_.start(rank, ready);
      take(rank, ready, 0);
    }
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.time;
      const auto [rank, task] = id_of(event.node);
      if (event.begins) {
        begin(event.node);
        source_.launched(rank, task, ready);
        take(rank, ready, nodes_[event.node].cause);
      } else {
        tasks_.erase(event.node);
        source_.complete(rank, task, ready);
        take(rank, ready, event.node);
      }
    }
    ReplayedPath path = longest();
    source_.close();
    return path;
  }

 private:
  static constexpr Time kUnknown = -1;
  using NodeNumber = std::uint32_t;
  struct Node {
    std::uint32_t label = 0;  // index in labels_
    NodeNumber cause = 0;     // the task that this one waited for last
    Time begin = 0, end = 0;
  };
  struct Event {
    Time time = 0;
    std::uint64_t number = 0;
    NodeNumber node = 0;
    bool begins = false;
    bool operator>(const Event& other) const {
      return std::tie(time, number) > std::tie(other.time, other.number);
    }
  };
  // Live: a task that has not ended.
  struct Live {
    RankId rank = 0;
    Task task;
  };
  // Collective: the members that have reached a collective.
  struct Collective {
    std::vector<NodeNumber> members;
    NodeNumber cause = 0;
  };
  // Message: the ends of a message that were reached.
  struct Message {
    std::optional<NodeNumber> sent, received;
  };

  void push(Time time, NodeNumber node, bool begins) { events_.push({time, next_++, node, begins}); }

  // Adds tasks that became ready when `cause` ended.
  void take(RankId rank, std::vector<Task>& ready, NodeNumber cause) {
    for (const Task& task : ready) {
      const auto number = static_cast<NodeNumber>(nodes_.size());
      nodes_.push_back({label(task), cause, now_, now_});
      tasks_.emplace(number, Live{rank, task});
      push(std::max(now_, task.not_before), number, true);
    }
    ready.clear();
  }

  std::pair<RankId, TaskId> id_of(NodeNumber number) const {
    const Live& live = tasks_.at(number);
    return {live.rank, live.task.id};
  }
  void begin(NodeNumber number) {
    Node& node = nodes_[number];
    node.begin = now_;
    const Task& task = tasks_.at(number).task;
    if (has_work(task.kind())) return end(number, now_ + duration(task.work()));
    if (has_group(task)) return join(number, task);
    if (is_point_to_point(task)) return meet(number, task);
    end(number, now_ + transmission(static_cast<double>(task.bytes())));
  }
  void end(NodeNumber number, Time time) {
    nodes_[number].end = time;
    push(time, number, false);
  }

  void join(NodeNumber number, const Task& task) {
    const auto key = std::pair(task.group(), task.sequence);
    Collective& collective = collectives_[key];
    collective.members.push_back(number);
    if (collective.members.size() < source_.group(task.group()).size()) return;
    Time length = 0;
    if (task.kind() == TaskKind::collective)
      length = duration_of(task.collective(), collective.members.size());
    const NodeNumber cause = nodes_[number].cause;
    for (const NodeNumber member : collective.members) {
      nodes_[member].cause = cause;
      nodes_[member].begin = now_;
      end(member, now_ + length);
    }
    collectives_.erase(key);
  }
  // A send ends after its transmission, also without its receiver. The receive ends with it.
  void meet(NodeNumber number, const Task& task) {
    const bool sends = task.kind() == TaskKind::send;
    const MessageTask& message = task.message();
    const RankId own = tasks_.at(number).rank;
    const auto key =
        std::tuple(sends ? own : message.peer, sends ? message.peer : own, message.tag, task.sequence);
    Message& ends = messages_[key];
    (sends ? ends.sent : ends.received) = number;
    if (sends) end(number, now_ + transmission(static_cast<double>(task.bytes())));
    if (!ends.sent || !ends.received) return;
    const Node& sent = nodes_[*ends.sent];
    Node& received = nodes_[*ends.received];
    const Time at = std::max(now_, sent.end);
    if (sends) received.cause = sent.cause;
    received.begin = std::max(received.begin, sent.begin);
    end(*ends.received, at);
    messages_.erase(key);
  }

  Time duration(std::uint32_t work) {
    if (work >= durations_.size()) durations_.resize(source_.works().size(), kUnknown);
    if (durations_[work] == kUnknown) durations_[work] = rules_.duration(source_.works()[work]);
    return durations_[work];
  }
  Time transmission(double bytes) const {
    if (rules_.rate == 0) return 0;
    return static_cast<Time>(bytes * 8e12 / static_cast<double>(rules_.rate));
  }
  // Returns the time in which each rank sends what nccl-tests' bus bandwidth counts.
  Time duration_of(const CollectiveTask& task, std::size_t ranks) const {
    const double share = info_of(task.collective).bus_bandwidth(1, static_cast<double>(ranks));
    return transmission(static_cast<double>(task.bytes) * share);
  }

  std::uint32_t label(const Task& task) {
    const bool collective = task.kind() == TaskKind::collective;
    const auto key =
        std::tuple(task.kind(), collective ? task.collective().collective : CollectiveKind{}, task.name);
    const auto [known, is_new] = label_index_.try_emplace(key, static_cast<std::uint32_t>(labels_.size()));
    if (is_new) labels_.push_back({kind_name(task), source_.name(task.name), 0, 0});
    return known->second;
  }

  ReplayedPath longest() {
    ReplayedPath path;
    path.stuck = tasks_.size();
    NodeNumber last = 0;
    for (NodeNumber number = 1; number < nodes_.size(); ++number) {
      if (nodes_[number].end > nodes_[last].end) last = number;
    }
    path.length = nodes_[last].end;
    for (NodeNumber at = last; at != 0; at = nodes_[at].cause) {
      const Node& node = nodes_[at];
      ++path.tasks;
      ++labels_[node.label].tasks;
      labels_[node.label].time += node.end - node.begin;
      path.waiting += node.begin - nodes_[node.cause].end;
    }
    for (const ReplayedPath::Share& share : labels_) {
      if (share.tasks > 0) path.shares.push_back(share);
    }
    std::stable_sort(path.shares.begin(), path.shares.end(),
                     [](const auto& a, const auto& b) { return a.time > b.time; });
    return path;
  }

  TaskSource& source_;
  const IdealReplayRules& rules_;
  std::vector<Time> durations_;  // by work
  std::vector<Node> nodes_;
  std::map<NodeNumber, Live> tasks_;
  std::map<std::pair<GroupId, std::uint32_t>, Collective> collectives_;
  std::map<std::tuple<RankId, RankId, std::uint32_t, std::uint32_t>, Message> messages_;
  std::map<std::tuple<TaskKind, CollectiveKind, std::uint32_t>, std::uint32_t> label_index_;
  std::vector<ReplayedPath::Share> labels_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Time now_ = 0;
  std::uint64_t next_ = 0;
};

}  // namespace

std::string kind_name(const Task& task) {
  return task.kind() == TaskKind::collective ? to_string(task.collective().collective)
                                             : to_string(task.kind());
}

ReplayedPath replay_ideally(TaskSource& source, const IdealReplayRules& rules) {
  return IdealReplay(source, rules).play();
}

}  // namespace netsim
