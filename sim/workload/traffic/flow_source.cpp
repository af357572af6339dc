#include "sim/workload/traffic/flow_source.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "sim/core/errors.h"

namespace netsim {

// Calls `act` with each flow that waits for the end of `flow` at `rank`.
template <class Act>
void FlowSource::for_each_dependency(RankId rank, std::uint32_t flow, const Act& act) const {
  if (dependencies_.empty()) return;
  const End end = flows_[flow].from == rank ? End::sent : End::received;
  auto it = std::lower_bound(dependencies_.begin(), dependencies_.end(), Dependency{flow, end, 0});
  for (; it != dependencies_.end() && it->flow == flow && it->end == end; ++it) act(it->after);
}

FlowSource::FlowSource(std::string job_name, std::uint32_t ranks)
    : job_name_(std::move(job_name)), begin_(ranks + std::size_t{1}, 0), next_(ranks, 0), ended_(ranks, 0) {}

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
  if ((index & kNumberedName) == 0) return WorkloadDescription::name(index);
  return numbered_ + " " + std::to_string(index & ~kNumberedName);
}

std::uint32_t FlowSource::add(const Flow& flow) {
  NETSIM_CHECK(flow.needs == 0 || flow.start == 0, "a flow waits for others or for a time, not for both");
  NETSIM_CHECK(flow.from != flow.to && flow.from < ranks() && flow.to < ranks() && flow.bytes > 0 &&
                   flow.bytes < Bytes{1} << 48,
               "a flow from " + std::to_string(flow.from) + " to " + std::to_string(flow.to));
  const auto number = static_cast<std::uint32_t>(flows_.size());
  flows_.push_back({flow.start, static_cast<std::uint64_t>(flow.bytes) & ((std::uint64_t{1} << 48) - 1),
                    flow.traffic_class & 127U, flow.priority, 0, flow.from, flow.to, 0, flow.name});
  if (flow.needs != 0) {
    needs_.resize(number + std::size_t{1}, 0);
    needs_[number] = flow.needs;
  }
  if (flow.channel != kOwnChannel) set_channel(number, flow.channel);
  if (flow.path_hint != kNoPathHint) {
    path_hints_.resize(number + std::size_t{1}, kNoPathHint);
    path_hints_[number] = flow.path_hint;
  }
  if (flow.deadline != 0) {
    deadlines_.resize(number + std::size_t{1}, 0);
    deadlines_[number] = flow.deadline;
  }
  return number;
}

std::vector<Flow> FlowSource::flows() const {
  std::vector<Flow> all;
  all.reserve(flows_.size());
  for (std::uint32_t number = 0; number < flows_.size(); ++number) all.push_back(flow(number));
  return all;
}

Flow FlowSource::flow(std::uint32_t number) const {
  const Stored& stored = flows_[number];
  Flow flow;
  flow.from = stored.from;
  flow.to = stored.to;
  flow.bytes = static_cast<Bytes>(stored.bytes);
  flow.start = stored.start;
  flow.channel = channel(number);
  if (flow.channel == kOwnChannel) flow.channel = stored.tag;
  flow.name = stored.name;
  flow.needs = needs(number);
  flow.traffic_class = static_cast<std::uint8_t>(stored.traffic_class);
  flow.priority = static_cast<std::uint8_t>(stored.priority);
  if (number < path_hints_.size()) flow.path_hint = path_hints_[number];
  if (number < deadlines_.size()) flow.deadline = deadlines_[number];
  flow.only_message = stored.only_message != 0;
  return flow;
}

void FlowSource::set_channel(std::uint32_t number, std::uint32_t channel) {
  if (channels_.size() <= number) channels_.resize(number + std::size_t{1}, kOwnChannel);
  channels_[number] = channel;
}

void FlowSource::add_dependency(std::uint32_t flow, End end, std::uint32_t after) {
  const std::uint32_t at = end == End::sent ? flows_[flow].from : flows_[flow].to;
  NETSIM_CHECK(flows_[after].from == at && needs(after) > 0, "a flow that waits for another host");
  dependencies_.push_back({flow, end, after});
}

void FlowSource::seal() {
  order_.resize(2 * flows_.size());
  number_messages();
  order_tasks();
  std::sort(dependencies_.begin(), dependencies_.end());
  if (dependencies_.empty()) return;
  find_partial_waits();
  task_at_sender_.resize(flows_.size());
  for (RankId rank = 0; rank < ranks(); ++rank) {
    for (std::uint32_t id = 0; id < task_count(rank); ++id) {
      if (flow_at(rank, id).from == rank) task_at_sender_[number_at(rank, id)] = id;
    }
  }
}

void FlowSource::find_partial_waits() {
  std::vector<std::uint32_t> events(needs_.size(), 0);
  for (const Dependency& dependency : dependencies_) ++events[dependency.after];
  partial_waits_ = events != needs_;
}

// Numbers the messages of each pair. order_ is not in use yet: its first half holds the flows by pair.
void FlowSource::number_messages() {
  const auto end = order_.begin() + static_cast<std::ptrdiff_t>(flows_.size());
  std::iota(order_.begin(), end, 0U);
  const auto place = [this](std::uint32_t i) { return std::tuple{flows_[i].from, flows_[i].to, i}; };
  std::sort(order_.begin(), end, [&](std::uint32_t a, std::uint32_t b) { return place(a) < place(b); });
  for (std::size_t i = 1; i < flows_.size(); ++i) {
    const Stored& before = flows_[order_[i - 1]];
    Stored& flow = flows_[order_[i]];
    flow.tag = before.from == flow.from && before.to == flow.to ? before.tag + 1 : 0;
  }
  share_channels();
  find_only_messages(order_.data());
}

void FlowSource::share_channels() {
  for (const auto& [flow, first] : followers_) {
    set_channel(first, flows_[first].tag);
    set_channel(flow, flows_[first].tag);
  }
  followers_ = {};
}

// Finds the flows that are the only message of their channel. If another flow of the pair has chosen its
// channel, that may be this flow's number, so none of the pair counts.
void FlowSource::find_only_messages(const std::uint32_t* by_pair) {
  for (std::size_t i = 0; i < flows_.size();) {
    std::size_t end = i;
    bool all = true;
    do {
      if (channel(by_pair[end]) != kOwnChannel) all = false;
    } while (++end < flows_.size() && flows_[by_pair[end]].tag != 0);
    for (; i < end; ++i) flows_[by_pair[i]].only_message = all ? 1 : 0;
  }
}

// Orders the tasks. Both ends of a flow are in the list of their rank, by start and number.
void FlowSource::order_tasks() {
  for (const Stored& flow : flows_) {
    ++begin_[flow.from + 1];
    ++begin_[flow.to + 1];
  }
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  std::vector<std::uint32_t> end(begin_.begin(), begin_.end() - 1);
  for (std::uint32_t i = 0; i < flows_.size(); ++i) {
    order_[end[flows_[i].from]++] = i;
    order_[end[flows_[i].to]++] = i;
  }
  const auto place = [this](std::uint32_t i) { return std::pair{flows_[i].start, i}; };
  for (RankId rank = 0; rank < ranks(); ++rank) {
    std::sort(order_.begin() + begin_[rank], order_.begin() + begin_[rank + 1],
              [&](std::uint32_t a, std::uint32_t b) { return place(a) < place(b); });
  }
}

Task FlowSource::task(RankId rank, std::uint32_t id) const {
  const Flow flow = this->flow(number_at(rank, id));
  Task task;
  task.id = id;
  task.stream = Stream::dp;
  MessageTask message;
  message.raw = true;
  message.peer = flow.from == rank ? flow.to : flow.from;
  message.tag = flow_at(rank, id).tag;
  message.only_of_tag = true;
  message.traits.channel = flow.channel;
  message.traits.only_message = flow.only_message;
  message.traits.traffic_class = flow.traffic_class;
  message.traits.priority = flow.priority;
  message.traits.path_hint = flow.path_hint;
  message.traits.set_deadline(flow.deadline);
  message.bytes = flow.bytes;
  task.body = message_body(flow.from == rank ? TaskKind::send : TaskKind::receive, message);
  task.name = flow.name;
  task.not_before = flow.start;
  return task;
}

bool FlowSource::for_each_task(RankId rank, const Visitor& visit) const {
  for (std::uint32_t id = 0; id < task_count(rank); ++id) visit(task(rank, id));
  return true;
}

std::optional<std::vector<TaskWait>> FlowSource::waits(RankId rank) const {
  if (partial_waits_) return std::nullopt;
  std::vector<TaskWait> all;
  if (dependencies_.empty()) return all;
  for (std::uint32_t id = 0; id < task_count(rank); ++id) {
    const std::uint32_t number = number_at(rank, id);
    for_each_dependency(rank, number, [&](std::uint32_t after) {
      all.push_back({id, task_at_sender_[after]});
    });
  }
  return all;
}

std::vector<Task> FlowSource::held_back(RankId rank) const {
  FirstOfStreams first;
  for (std::uint32_t id = 0; id < task_count(rank); ++id) {
    const std::uint32_t number = number_at(rank, id);
    const bool waits = flows_[number].from == rank && needs(number) != 0;
    if ((id >= next_[rank] || waits) && !first.take(task(rank, id))) break;
    if (!first.empty()) break;  // all flows are of one stream
  }
  return first.tasks();
}

std::uint32_t FlowSource::same_start(RankId rank, std::uint32_t first) const {
  std::uint32_t end = first;
  while (end < task_count(rank) && flow_at(rank, end).start == flow_at(rank, first).start) ++end;
  return end;
}

// Hands out the tasks from next_ to `until`, except sends that wait for events instead of a time.
void FlowSource::hand_out(RankId rank, std::uint32_t until, std::vector<Task>& ready) {
  for (std::uint32_t& id = next_[rank]; id < until; ++id) {
    const std::uint32_t number = number_at(rank, id);
    if (flows_[number].from != rank || needs(number) == 0) ready.push_back(task(rank, id));
  }
}

void FlowSource::start(RankId rank, std::vector<Task>& ready) {
  next_[rank] = ended_[rank] = 0;
  if (task_count(rank) > 0 && flow_at(rank, 0).start == 0) hand_out(rank, same_start(rank, 0), ready);
  hand_out(rank, same_start(rank, next_[rank]), ready);
}

// When the last task that was handed out has begun, hands out the next ones, which are later.
void FlowSource::launched(RankId rank, TaskId task, std::vector<Task>& ready) {
  if (task + 1 == next_[rank]) hand_out(rank, same_start(rank, next_[rank]), ready);
}

void FlowSource::complete(RankId rank, TaskId id, std::vector<Task>& ready) {
  ++ended_[rank];
  for_each_dependency(rank, number_at(rank, id), [&](std::uint32_t after) {
    std::uint32_t& needs = needs_[after];
    if (needs == 0) return;  // it has started
    if (--needs == 0) ready.push_back(task(rank, task_at_sender_[after]));
  });
}

}  // namespace netsim
