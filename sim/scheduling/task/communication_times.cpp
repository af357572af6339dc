#include "sim/scheduling/task/communication_times.h"

#include <algorithm>

#include "sim/scheduling/task/operation_graph.h"

namespace netsim {
namespace {

// Returns, by node, the longest path from the begin of the iteration to its begin.
std::vector<Time> earliest_begins(const OperationGraph& graph) {
  std::vector<Time> begin(graph.size(), 0);
  for (const std::uint32_t node : graph.order()) {
    for (const std::uint32_t successor : graph.successors().of(node))
      begin[successor] = std::max(begin[successor], begin[node] + graph.duration(node));
  }
  return begin;
}

// Returns, by node, the longest path from its end to the end of the iteration after `next`. `next` holds
// these paths from nodes of the next iteration; it is empty for the last iteration that counts.
std::vector<Time> longest_tails(const OperationGraph& graph, const std::vector<Time>& next) {
  std::vector<Time> tail(graph.size(), 0);
  const auto& order = graph.order();
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    for (const std::uint32_t successor : graph.successors().of(*node))
      tail[*node] = std::max(tail[*node], graph.duration(successor) + tail[successor]);
    if (next.empty()) continue;
    for (const std::uint32_t successor : graph.next_successors().of(*node))
      tail[*node] = std::max(tail[*node], graph.duration(successor) + next[successor]);
  }
  return tail;
}

}  // namespace

std::vector<CommunicationTimes> communication_times(const JobProfile& profile) {
  const OperationGraph graph(profile);
  const std::vector<Time> begin = earliest_begins(graph);
  const std::vector<Time> tail = longest_tails(graph, longest_tails(graph, {}));
  Time end = 0;
  for (std::uint32_t node = 0; node < graph.size(); ++node)
    end = std::max(end, begin[node] + graph.duration(node) + tail[node]);
  std::vector<CommunicationTimes> times;
  for (std::uint32_t i = 0; i < profile.communications(); ++i) {
    const std::uint32_t node = graph.of_communication(i);
    const Time duration = graph.duration(node);
    times.push_back({begin[node], duration, tail[node], end - begin[node] - duration - tail[node]});
  }
  return times;
}

Time iteration_length(const JobProfile& profile) {
  const OperationGraph graph(profile);
  const std::vector<Time> begin = earliest_begins(graph);
  Time length = 0;
  for (std::uint32_t node = 0; node < graph.size(); ++node)
    length = std::max(length, begin[node] + graph.duration(node));
  return length;
}

std::vector<std::uint32_t> order_of_tail(const JobProfile& profile) {
  std::vector<Time> keys;
  for (const CommunicationTimes& times : communication_times(profile)) keys.push_back(-times.tail);
  return dense_order(keys);
}

}  // namespace netsim
