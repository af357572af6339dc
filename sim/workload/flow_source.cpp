#include "sim/workload/flow_source.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/core/errors.h"

namespace netsim {

FlowSource::FlowSource(std::string job_name, std::uint32_t ranks)
    : job_name_(std::move(job_name)), begin_(ranks + std::size_t{1}, 0), next_(ranks, 0) {}

std::uint32_t FlowSource::add_name(const std::string& name) {
  const auto [it, fresh] = name_index_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
  if (fresh) names_.push_back(name);
  return it->second;
}

std::uint32_t FlowSource::numbered_name(const std::string& kind, std::uint32_t number) {
  if (number >= kNumberedName) return add_name(kind + " " + std::to_string(number));
  numbered_ = kind;
  return kNumberedName | number;
}

std::string FlowSource::name(std::uint32_t index) const {
  if ((index & kNumberedName) == 0) return TaskSource::name(index);
  return numbered_ + " " + std::to_string(index & ~kNumberedName);
}

std::uint32_t FlowSource::add(const Flow& flow) {
  NETSIM_CHECK(flow.needs == 0 || flow.start == 0, "a flow waits for others or for a time, not for both");
  NETSIM_CHECK(flow.from != flow.to && flow.from < ranks() && flow.to < ranks() && flow.bytes > 0,
               "a flow from " + std::to_string(flow.from) + " to " + std::to_string(flow.to));
  flows_.push_back(flow);
  return static_cast<std::uint32_t>(flows_.size() - 1);
}

void FlowSource::add_dependency(std::uint32_t flow, End end, std::uint32_t after) {
  const std::uint32_t at = end == End::sent ? flows_[flow].from : flows_[flow].to;
  NETSIM_CHECK(flows_[after].from == at && flows_[after].needs > 0, "a flow that waits for another host");
  dependencies_.push_back({flow, end, after});
}

void FlowSource::seal() {
  number_messages();
  order_tasks();
  std::sort(dependencies_.begin(), dependencies_.end());
  if (dependencies_.empty()) return;
  task_at_sender_.resize(flows_.size());
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
    for (std::uint32_t id = 0; id < task_count(rank); ++id) {
      if (flow_at(rank, id).from == rank) task_at_sender_[order_[begin_[rank] + id]] = id;
    }
  }
}

void FlowSource::number_messages() {
  std::vector<std::uint32_t> by_pair(flows_.size());
  std::iota(by_pair.begin(), by_pair.end(), 0U);
  const auto pair = [this](std::uint32_t i) { return std::pair{flows_[i].from, flows_[i].to}; };
  std::stable_sort(by_pair.begin(), by_pair.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return pair(a) < pair(b); });
  tags_.resize(flows_.size());
  for (std::size_t i = 0; i < by_pair.size(); ++i) {
    const bool first = i == 0 || pair(by_pair[i - 1]) != pair(by_pair[i]);
    const std::uint32_t number = first ? 0 : tags_[by_pair[i - 1]] + 1;
    tags_[by_pair[i]] = number;
    std::uint32_t& channel = flows_[by_pair[i]].channel;
    flows_[by_pair[i]].only_message = channel == kOwnChannel;
    if (channel == kOwnChannel) channel = number;
  }
  // Where others of its pair have channels of their own choice, one may have this number.
  for (std::size_t i = 0; i < by_pair.size();) {
    std::size_t end = i;
    bool all = true;
    for (; end < by_pair.size() && pair(by_pair[end]) == pair(by_pair[i]); ++end)
      all = all && flows_[by_pair[end]].only_message;
    for (; i < end; ++i) flows_[by_pair[i]].only_message = all;
  }
}

// Both ends of a flow are in the list of their rank.
void FlowSource::order_tasks() {
  for (const Flow& flow : flows_) {
    ++begin_[flow.from + 1];
    ++begin_[flow.to + 1];
  }
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  order_.resize(2 * flows_.size());
  std::vector<std::uint32_t> end(begin_.begin(), begin_.end() - 1);
  for (std::uint32_t i = 0; i < flows_.size(); ++i) {
    order_[end[flows_[i].from]++] = i;
    order_[end[flows_[i].to]++] = i;
  }
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
    std::stable_sort(order_.begin() + begin_[rank], order_.begin() + begin_[rank + 1],
                     [this](std::uint32_t a, std::uint32_t b) { return flows_[a].start < flows_[b].start; });
  }
}

Task FlowSource::task(std::uint32_t rank, std::uint32_t id) const {
  const std::uint32_t number = order_[begin_[rank] + id];
  const Flow& flow = flows_[number];
  Task task;
  task.id = id;
  task.kind = flow.from == rank ? TaskKind::send : TaskKind::receive;
  task.stream = Stream::dp;
  task.raw = true;
  task.peer = flow.from == rank ? flow.to : flow.from;
  task.tag = tags_[number];
  task.channel = flow.channel;
  task.only_message = flow.only_message;
  task.traffic_class = flow.traffic_class;
  task.bytes = flow.bytes;
  task.name = flow.name;
  task.not_before = flow.start;
  return task;
}

std::uint32_t FlowSource::same_start(std::uint32_t rank, std::uint32_t first) const {
  std::uint32_t end = first;
  while (end < task_count(rank) && flow_at(rank, end).start == flow_at(rank, first).start) ++end;
  return end;
}

// Tasks next_ .. until, but for sends that wait for something else than the time.
void FlowSource::hand_out(std::uint32_t rank, std::uint32_t until, std::vector<Task>& ready) {
  for (std::uint32_t& id = next_[rank]; id < until; ++id) {
    const Flow& flow = flow_at(rank, id);
    if (flow.from != rank || flow.needs == 0) ready.push_back(task(rank, id));
  }
}

void FlowSource::start(std::uint32_t rank, std::vector<Task>& ready) {
  next_[rank] = 0;
  if (task_count(rank) > 0 && flow_at(rank, 0).start == 0) hand_out(rank, same_start(rank, 0), ready);
  hand_out(rank, same_start(rank, next_[rank]), ready);
}

// The last of those handed out has begun: the next ones are later.
void FlowSource::launched(std::uint32_t rank, std::uint32_t task, std::vector<Task>& ready) {
  if (task + 1 == next_[rank]) hand_out(rank, same_start(rank, next_[rank]), ready);
}

void FlowSource::complete(std::uint32_t rank, std::uint32_t id, std::vector<Task>& ready) {
  if (dependencies_.empty()) return;
  const std::uint32_t number = order_[begin_[rank] + id];
  const End end = flows_[number].from == rank ? End::sent : End::received;
  auto it = std::lower_bound(dependencies_.begin(), dependencies_.end(), Dependency{number, end, 0});
  for (; it != dependencies_.end() && it->flow == number && it->end == end; ++it) {
    std::uint32_t& needs = flows_[it->after].needs;
    if (needs == 0) continue;  // started
    if (--needs == 0) ready.push_back(task(rank, task_at_sender_[it->after]));
  }
}

}  // namespace netsim
