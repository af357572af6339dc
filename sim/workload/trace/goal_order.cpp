#include "sim/workload/trace/goal_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <tuple>

#include "sim/core/errors.h"

namespace netsim {
namespace {

// GoalSuccessors: the operations of a rank that wait for each of them, from a list of edges.
class GoalSuccessors {
 public:
  GoalSuccessors(const std::vector<GoalRank::Edge>& edges, std::size_t ops)
      : begin_(ops + 1, 0), later_(edges.size()) {
    for (const auto& [later, earlier] : edges) ++begin_[earlier + 1];
    for (std::size_t i = 0; i < ops; ++i) begin_[i + 1] += begin_[i];
    std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
    for (const auto& [later, earlier] : edges) later_[next[earlier]++] = later;
  }
  template <class Visit>
  void for_each(std::uint32_t earlier, Visit visit) const {
    for (std::uint32_t i = begin_[earlier]; i < begin_[earlier + 1]; ++i) visit(later_[i]);
  }

 private:
  std::vector<std::uint32_t> begin_, later_;
};

class GoalExecution {
 public:
  GoalExecution(const GoalSchedule& schedule, const std::string& file) : schedule_(schedule), file_(file) {
    ranks_.reserve(schedule.ranks.size());
    matches_.reserve(schedule.ranks.size());
    for (const GoalRank& rank : schedule.ranks) {
      ranks_.emplace_back(rank);
      matches_.emplace_back(rank.ops.size());
    }
  }

  std::vector<std::vector<GoalMatch>> run() {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      for (std::uint32_t op = 0; op < ranks_[rank].waits.size(); ++op) {
        if (ranks_[rank].waits[op] == 0) push(0, What::ready, rank, op);
      }
    }
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.time;
      act(event);
    }
    check();
    return std::move(matches_);
  }

 private:
  enum class What : std::uint8_t { ready, start, end };
  struct Event {
    std::int64_t time = 0;  // ns
    std::uint64_t number = 0;
    What what = What::ready;
    std::uint32_t rank = 0, op = 0;
    bool operator>(const Event& other) const {
      return std::tie(time, number) > std::tie(other.time, other.number);
    }
  };
  // Operations that wait for their other end, in their order, by source and tag.
  using Key = std::pair<std::uint32_t, std::uint32_t>;
  using Waiting = std::map<Key, std::deque<std::pair<std::uint64_t, std::uint32_t>>>;
  struct Rank {
    explicit Rank(const GoalRank& rank)
        : at_end(rank.ends, rank.ops.size()),
          at_start(rank.starts, rank.ops.size()),
          waits(rank.ops.size(), 0) {
      for (const auto& [later, earlier] : rank.ends) ++waits[later];
      for (const auto& [later, earlier] : rank.starts) ++waits[later];
    }
    GoalSuccessors at_end, at_start;
    std::vector<std::uint32_t> waits;  // by operation: what it still waits for
    Waiting arrived, reached;          // messages without a receive, and receives without a message
    std::map<std::uint8_t, std::pair<std::int64_t, std::uint32_t>> cpus;  // end of the last calc, and which
  };

  void push(std::int64_t time, What what, std::uint32_t rank, std::uint32_t op) {
    events_.push({time, next_++, what, rank, op});
  }

  void act(const Event& event) {
    const GoalOp& op = schedule_.ranks[event.rank].ops[event.op];
    if (event.what == What::ready && op.kind == GoalOp::Kind::calc) return reach_calc(event.rank, event.op);
    const auto release = [&](std::uint32_t later) {
      if (--ranks_[event.rank].waits[later] == 0) push(now_, What::ready, event.rank, later);
    };
    if (event.what == What::end) return ranks_[event.rank].at_end.for_each(event.op, release);
    matches_[event.rank][event.op].turn = turn_++;
    ranks_[event.rank].at_start.for_each(event.op, release);
    if (op.kind == GoalOp::Kind::send) {
      push(now_, What::end, event.rank, event.op);
      send(event.rank, event.op, op);
    } else if (op.kind == GoalOp::Kind::receive) {
      receive(event.rank, event.op, op);
    }
  }

  void reach_calc(std::uint32_t rank, std::uint32_t index) {
    const GoalOp& op = schedule_.ranks[rank].ops[index];
    const auto [cpu, first] = ranks_[rank].cpus.try_emplace(op.cpu, 0, GoalMatch::kNone);
    const std::int64_t start = std::max(now_, cpu->second.first);
    matches_[rank][index].previous = cpu->second.second;
    const std::int64_t end = std::min(start, kLatest) + op.size;
    cpu->second = {end, index};
    push(start, What::start, rank, index);
    push(end, What::end, rank, index);
  }

  void send(std::uint32_t rank, std::uint32_t index, const GoalOp& op) {
    ++messages_;
    const std::array<Key, 4> keys{Key{rank, op.tag}, Key{rank, kAnyGoal}, Key{kAnyGoal, op.tag},
                                  Key{kAnyGoal, kAnyGoal}};
    Waiting& reached = ranks_[op.peer].reached;
    auto best = reached.end();
    for (const Key& key : keys) {
      const auto found = reached.find(key);
      if (found != reached.end() &&
          (best == reached.end() || found->second.front().first < best->second.front().first))
        best = found;
    }
    if (best == reached.end()) {
      ranks_[op.peer].arrived[{rank, op.tag}].emplace_back(messages_, index);
      return;
    }
    match(rank, index, op.peer, take(reached, best));
  }

  void receive(std::uint32_t rank, std::uint32_t index, const GoalOp& op) {
    ++messages_;
    Waiting& arrived = ranks_[rank].arrived;
    auto best = arrived.end();
    if (op.peer != kAnyGoal && op.tag != kAnyGoal) {
      best = arrived.find({op.peer, op.tag});
    } else {
      for (auto it = arrived.begin(); it != arrived.end(); ++it) {
        const bool fits = (op.peer == kAnyGoal || op.peer == it->first.first) &&
                          (op.tag == kAnyGoal || op.tag == it->first.second);
        if (fits && (best == arrived.end() || it->second.front().first < best->second.front().first))
          best = it;
      }
    }
    if (best == arrived.end()) {
      ranks_[rank].reached[{op.peer, op.tag}].emplace_back(messages_, index);
      return;
    }
    const std::uint32_t source = best->first.first;
    match(source, take(arrived, best), rank, index);
  }

  static std::uint32_t take(Waiting& waiting, Waiting::iterator at) {
    const std::uint32_t index = at->second.front().second;
    at->second.pop_front();
    if (at->second.empty()) waiting.erase(at);
    return index;
  }

  void match(std::uint32_t source, std::uint32_t sent, std::uint32_t destination, std::uint32_t received) {
    const std::uint32_t number = numbers_[{source, destination}]++;
    GoalMatch& at_source = matches_[source][sent];
    GoalMatch& at_destination = matches_[destination][received];
    at_source.peer = destination;
    at_source.index = received;
    at_destination.peer = source;
    at_destination.index = sent;
    at_source.number = at_destination.number = number;
    push(now_, What::end, destination, received);
  }

  void check() const {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      for (const auto& [key, ops] : ranks_[rank].arrived) {
        check_other_end(GoalOp::Kind::receive, key, rank, key.first, ops.front().second);
        fail(key.first, ops.front().second, fmt::format("no receive of rank {} is for it", rank));
      }
    }
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      for (const auto& [key, ops] : ranks_[rank].reached) {
        check_other_end(GoalOp::Kind::send, key, rank, rank, ops.front().second);
        fail(rank, ops.front().second, "no send is for it");
      }
    }
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      const std::vector<std::uint32_t>& waits = ranks_[rank].waits;
      const auto stuck =
          std::find_if(waits.begin(), waits.end(), [](std::uint32_t left) { return left > 0; });
      if (stuck != waits.end())
        fail(rank, static_cast<std::uint32_t>(stuck - waits.begin()), "it waits for itself");
    }
  }
  // Refuses an operation if its other end has not begun. That is a send to `destination`, or a receive there.
  void check_other_end(GoalOp::Kind kind, const Key& source_and_tag, std::uint32_t destination,
                       std::uint32_t rank, std::uint32_t index) const {
    const auto is_equal = [](std::uint32_t a, std::uint32_t b) {
      return a == b || a == kAnyGoal || b == kAnyGoal;
    };
    const auto& [source, tag] = source_and_tag;
    for (std::uint32_t other = 0; other < ranks_.size(); ++other) {
      if (!is_equal(other, kind == GoalOp::Kind::send ? source : destination)) continue;
      for (std::uint32_t i = 0; i < ranks_[other].waits.size(); ++i) {
        const GoalOp& op = schedule_.ranks[other].ops[i];
        const bool fits = op.kind == kind && is_equal(op.tag, tag) &&
                          is_equal(op.peer, kind == GoalOp::Kind::send ? destination : source);
        if (fits && ranks_[other].waits[i] > 0)
          fail(rank, index,
               fmt::format("its other end, {} of rank {}, waits for operations that cannot end, such as "
                           "this one; allowed: no circle of waits",
                           goal_label(op, other, i), other));
      }
    }
  }
  [[noreturn]] void fail(std::uint32_t rank, std::uint32_t index, const std::string& message) const {
    static constexpr std::array<const char*, 3> kWords{"send", "recv", "calc"};
    const GoalOp& op = schedule_.ranks[rank].ops[index];
    throw InputError(Place{file_, static_cast<int>(op.line), 0, ""},
                     fmt::format("{} ('{}') of rank {} cannot end: {}", goal_label(op, rank, index),
                                 kWords[static_cast<std::size_t>(op.kind) - 1], rank, message));
  }

  static constexpr std::int64_t kLatest = std::int64_t{1} << 62;  // no later time is told apart
  const GoalSchedule& schedule_;
  const std::string& file_;
  std::vector<Rank> ranks_;
  std::vector<std::vector<GoalMatch>> matches_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> numbers_;  // messages of a pair of ranks
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::int64_t now_ = 0;
  std::uint64_t next_ = 0, messages_ = 0;
  std::uint32_t turn_ = 0;
};

}  // namespace

std::vector<std::vector<GoalMatch>> order_goal(const GoalSchedule& schedule, const std::string& file) {
  return GoalExecution(schedule, file).run();
}

}  // namespace netsim
