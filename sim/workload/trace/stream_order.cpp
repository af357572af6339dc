#include "sim/workload/trace/stream_order.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "sim/workload/trace/task_successors.h"

namespace netsim {
namespace {

// StreamSorter: takes one task after the other, each behind those that it waits for. A task also waits for
// the one before it in its stream by begin, until no task can be taken otherwise.
class StreamSorter {
 public:
  StreamSorter(const std::vector<TraceTask>& tasks, const std::vector<RecordedStream>& streams)
      : behind_(tasks), states_(tasks.size()) {
    for (std::size_t i = 0; i < tasks.size(); ++i)
      states_[i].waits = static_cast<std::uint32_t>(tasks[i].after.size());
    for (const RecordedStream& stream : streams) {
      for (std::size_t i = 0; i < stream.size(); ++i) {
        State& state = states_[stream[i].second];
        state.begin = stream[i].first;
        state.is_held = i > 0;
        if (i + 1 < stream.size()) state.next = stream[i + 1].second;
      }
    }
    for (std::uint32_t i = 0; i < states_.size(); ++i) consider(i);
  }

  // Returns the turn of each task.
  std::vector<std::uint32_t> run() {
    std::vector<std::uint32_t> turns(states_.size(), UINT32_MAX);
    std::uint32_t turn = 0;
    while (!ready_.empty() || !held_.empty()) {
      Queue& queue = ready_.empty() ? held_ : ready_;
      const std::uint32_t task = queue.top().second;
      queue.pop();
      if (turns[task] != UINT32_MAX) continue;  // it was held, and could then be taken in its order
      turns[task] = turn++;
      if (const std::uint32_t next = states_[task].next; next != UINT32_MAX) {
        states_[next].is_held = false;
        if (turns[next] == UINT32_MAX) consider(next);
      }
      behind_.for_each(task, [&](std::uint32_t later) {
        --states_[later].waits;
        consider(later);
      });
    }
    return turns;
  }

 private:
  struct State {
    std::uint64_t begin = 0;
    std::uint32_t waits = 0;          // dependencies that were not taken yet
    std::uint32_t next = UINT32_MAX;  // task behind it in its stream, by begin
    bool is_held = false;             // whether the one before it in its stream was not taken yet
  };
  using Ready = std::pair<std::uint64_t, std::uint32_t>;  // begin and index
  using Queue = std::priority_queue<Ready, std::vector<Ready>, std::greater<>>;

  void consider(std::uint32_t task) {
    const State& state = states_[task];
    if (state.waits == 0) (state.is_held ? held_ : ready_).emplace(state.begin, task);
  }

  TaskSuccessors behind_;
  std::vector<State> states_;
  Queue ready_, held_;
};

}  // namespace

std::uint64_t order_streams(const std::vector<TraceTask>& tasks, std::vector<RecordedStream>& streams) {
  for (RecordedStream& stream : streams) std::sort(stream.begin(), stream.end());
  const std::vector<std::uint32_t> turns = StreamSorter(tasks, streams).run();
  std::uint64_t contradictions = 0;
  for (RecordedStream& stream : streams) {
    std::stable_sort(stream.begin(), stream.end(),
                     [&](const auto& a, const auto& b) { return turns[a.second] < turns[b.second]; });
    for (std::size_t i = 1; i < stream.size(); ++i)
      contradictions += stream[i].first < stream[i - 1].first ? 1 : 0;
  }
  return contradictions;
}

}  // namespace netsim
