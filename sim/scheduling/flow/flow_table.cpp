#include "sim/scheduling/flow/flow_table.h"

#include <algorithm>

#include "sim/core/random.h"

namespace netsim {
namespace {

// Returns the destination of the message's flow: none with an aggregation group.
GpuId destination_of(const Message& message) {
  return message.aggregation.is_none() ? message.destination : GpuId::none();
}

}  // namespace

std::size_t FlowTable::KeyHash::operator()(const FlowKey& key) const {
  const std::uint64_t ends = std::uint64_t{key.source} << 32 | std::uint32_t{key.destination};
  return hash_combine(hash_combine(key.communication, ends), key.job);
}

MessageHandle FlowTable::send(const SendRequest& request, std::uint32_t lane, Time now) {
  const std::uint32_t index = find_or_begin(request.message, now);
  FlowEntry& flow = entries_[index];
  const std::uint32_t slot = take_slot();
  LiveMessage& message = messages_[slot];
  message = {{}, request.note, index, lane, request.message.bytes, request.message.traits.rate_limit};
  if (add_lane(flow, lane)) share_rate(flow);
  flow.view.bytes += message.bytes;
  flow.idle_since = kNever;
  news_.began_or_ended |= flow.messages.empty() || !flow.listed;
  news_.added = true;
  flow.messages.push_back(slot);
  SendRequest sent = request;
  TransferTraits& traits = sent.message.traits;
  traits.traffic_class = flow.view.traffic_class;
  traits.priority = flow.view.priority;
  traits.path_hint = flow.view.path;
  traits.rate_limit = limit_of(flow, message);
  sent.note.channel = slot;
  const MessageHandle handle = network_.send(sent);
  messages_[slot].handle = handle;
  if (flow.view.held) network_.hold(handle);
  return handle;
}

std::uint32_t FlowTable::find_or_begin(const Message& message, Time now) {
  const FlowKey key{message.traits.job, message.source, destination_of(message), message.communication};
  if (const auto known = index_.find(key); known != index_.end()) {
    const std::uint32_t index = known->second;
    if (central_ || !is_over(entries_[index], now)) return index;
    forget(index);
  }
  const std::uint32_t index = take_entry(now);
  index_.emplace(key, index);
  if (central_) fresh_.push_back(index);
  FlowEntry& flow = entries_[index];
  flow = {};
  flow.used = true;
  flow.first = message;
  flow.view.released = now;
  admit(flow, message);
  if (flow.view.held) {
    flow.held_since = now;
    ++counts_.held;
  }
  return index;
}

// Returns a free entry. Where nothing is decided at intervals, flows that are over are forgotten here.
// Whether that happens has no effect on flows, because one that is over begins anew anyway.
std::uint32_t FlowTable::take_entry(Time now) {
  if (!central_ && free_entries_.empty() && entries_.size() >= next_sweep_) {
    for (std::uint32_t index = 0; index < entries_.size(); ++index) {
      if (is_over(entries_[index], now)) forget(index);
    }
    next_sweep_ = std::max(kFirstSweep, 2 * (entries_.size() - free_entries_.size()));
  }
  if (free_entries_.empty()) {
    entries_.emplace_back();
    return static_cast<std::uint32_t>(entries_.size() - 1);
  }
  const std::uint32_t index = free_entries_.back();
  free_entries_.pop_back();
  return index;
}

// Asks the scheduler how the flow of this first message is sent.
void FlowTable::admit(FlowEntry& flow, const Message& message) {
  const TransferTraits& traits = message.traits;
  FlowView& view = flow.view;
  view.traffic_class = traits.traffic_class;
  view.priority = traits.priority;
  view.path = traits.path_hint;
  view.job = traits.job;
  view.source = message.source;
  view.destination = destination_of(message);
  view.communication = message.communication;
  view.name = message.name;
  view.stream = traits.stream;
  if (traits.deadline != 0 && scheduler_.sees(ViewField::deadlines))
    view.deadline = view.released + static_cast<Time>(traits.deadline);
  view.bytes = scheduler_.sees(ViewField::sizes) ? message.bytes : 0;
  const FlowTreatment before = view, after = scheduler_.admit(view);
  static_cast<FlowTreatment&>(view) = after;
  if (flow.is_aggregated()) view.traffic_class = traits.traffic_class;
  view.bytes = 0;
  ++counts_.flows;
  if (before != after) ++counts_.decisions;
}

std::uint32_t FlowTable::take_slot() {
  if (free_slots_.empty()) {
    messages_.emplace_back();
    return static_cast<std::uint32_t>(messages_.size() - 1);
  }
  const std::uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

// Counts a message on a queue pair. Returns whether it is the flow's only one there.
bool FlowTable::add_lane(FlowEntry& flow, std::uint32_t lane) {
  for (auto& [number, messages] : flow.lanes) {
    if (number != lane) continue;
    ++messages;
    return false;
  }
  flow.lanes.emplace_back(lane, 1);
  return true;
}

// Returns whether it was the flow's last message on the queue pair.
bool FlowTable::remove_lane(FlowEntry& flow, std::uint32_t lane) {
  const auto found =
      std::find_if(flow.lanes.begin(), flow.lanes.end(), [&](const auto& one) { return one.first == lane; });
  if (--found->second > 0) return false;
  flow.lanes.erase(found);
  return true;
}

// Returns the rate limit of a message: the share of its queue pair in the flow's rate, or its own limit.
BitRate FlowTable::limit_of(const FlowEntry& flow, const LiveMessage& message) const {
  if (flow.view.rate == 0) return message.limit;
  const BitRate share = std::max<BitRate>(1, flow.view.rate / static_cast<BitRate>(flow.lanes.size()));
  return message.limit == 0 ? share : std::min(message.limit, share);
}

void FlowTable::share_rate(const FlowEntry& flow) {
  if (flow.view.rate == 0) return;
  for (const std::uint32_t slot : flow.messages)
    network_.set_rate(messages_[slot].handle, limit_of(flow, messages_[slot]));
}

void FlowTable::remove(std::uint32_t slot, Time now) {
  const LiveMessage& message = messages_[slot];
  FlowEntry& flow = entries_[message.flow];
  flow.messages.erase(std::find(flow.messages.begin(), flow.messages.end(), slot));
  if (remove_lane(flow, message.lane)) share_rate(flow);
  free_slots_.push_back(slot);
  if (!flow.messages.empty()) return;
  flow.idle_since = now;
  news_.began_or_ended = true;
}

Bytes FlowTable::cancel(const MessageHandle& handle, Time now) {
  const Bytes cancelled = network_.cancel(handle);
  const auto found = std::find_if(messages_.begin(), messages_.end(),
                                  [&](const LiveMessage& one) { return one.handle == handle; });
  // A message of which nothing has left vanishes, and the listener never hears of it.
  if (found != messages_.end() && cancelled == found->bytes)
    remove(static_cast<std::uint32_t>(found - messages_.begin()), now);
  return cancelled;
}

void FlowTable::count_left(FlowEntry& flow) const {
  flow.view.left = 0;
  for (const std::uint32_t slot : flow.messages) flow.view.left += network_.left(messages_[slot].handle);
}

void FlowTable::forget(std::uint32_t index) {
  FlowEntry& flow = entries_[index];
  if (flow.view.held) counts_.held_time += std::max<Time>(0, flow.idle_since - flow.held_since);
  index_.erase(key_of(flow.view));
  flow.used = false;
  flow.view.held = false;
  free_entries_.push_back(index);
}

bool FlowTable::hold(FlowEntry& flow, bool held, Time now) {
  if (flow.view.held == held) return false;
  flow.view.held = held;
  if (held) {
    flow.held_since = now;
    ++counts_.held;
  } else {
    counts_.held_time += now - flow.held_since;
    flow.held_since = kNever;
  }
  for (const std::uint32_t slot : flow.messages) {
    if (held) {
      network_.hold(messages_[slot].handle);
    } else {
      network_.release(messages_[slot].handle);
    }
  }
  return true;
}

bool FlowTable::set_rate(FlowEntry& flow, BitRate rate) {
  if (flow.view.rate == rate) return false;
  flow.view.rate = rate;
  for (const std::uint32_t slot : flow.messages)
    network_.set_rate(messages_[slot].handle, limit_of(flow, messages_[slot]));
  return true;
}

bool FlowTable::set_priority(FlowEntry& flow, std::uint8_t level) {
  if (flow.view.priority == level) return false;
  flow.view.priority = level;
  for (const std::uint32_t slot : flow.messages) network_.set_priority(messages_[slot].handle, level);
  return true;
}

bool FlowTable::set_path(FlowEntry& flow, std::uint32_t hint) {
  if (flow.view.path == hint) return false;
  flow.view.path = hint;
  for (const std::uint32_t slot : flow.messages) network_.set_path(messages_[slot].handle, hint);
  return true;
}

FlowSchedulingSummary FlowTable::summary(Time now) const {
  FlowSchedulingSummary sum = counts_;
  for (const FlowEntry& flow : entries_) {
    if (!flow.used || !flow.view.held) continue;
    sum.held_time += std::max<Time>(0, std::min(now, flow.idle_since) - flow.held_since);
  }
  return sum;
}

}  // namespace netsim
