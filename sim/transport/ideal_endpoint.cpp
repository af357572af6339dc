#include "sim/transport/ideal_endpoint.h"

#include <algorithm>
#include <span>
#include <utility>

namespace netsim {

IdealEndpoint::IdealEndpoint(EventLoop& loop, std::uint32_t gpus, Time delay, std::uint32_t first_origin)
    : loop_(loop), delay_(delay), told_(delay) {
  for (std::uint32_t g = 0; g < gpus; ++g) origins_.emplace_back(first_origin + g);
  loop_.set_handler(
      EventKind::ideal_delivery,
      [](void* self, const Event& event) { static_cast<IdealEndpoint*>(self)->deliver(event); }, this);
}

AggregationId IdealEndpoint::add_aggregation(const SwitchAggregation& aggregation) {
  aggregations_.push_back(&aggregation);
  return static_cast<std::uint32_t>(aggregations_.size() - 1);
}

MessageHandle IdealEndpoint::send(const SendRequest& request) {
  const Message& message = request.message;
  if (message.aggregation_use == AggregationUse::reduction ||
      message.aggregation_use == AggregationUse::allreduce) {
    join(request);
    return {};
  }
  const std::uint32_t index = take_slot(request);
  start(index);
  return message.aggregation.is_none() ? MessageHandle{message.source, index, generations_} : MessageHandle{};
}

// Adds the message to the first open sum without a message of this sender.
void IdealEndpoint::join(const SendRequest& request) {
  const Message& message = request.message;
  const auto open = std::find_if(sums_.begin(), sums_.end(), [&](const Sum& sum) {
    const Message& one = sum.parts.front().message;
    return one.aggregation == message.aggregation && one.traits.job == message.traits.job &&
           one.tag == message.tag && one.communication == message.communication &&
           std::none_of(sum.parts.begin(), sum.parts.end(),
                        [&](const SendRequest& part) { return part.message.source == message.source; });
  });
  Sum& sum = open != sums_.end() ? *open : sums_.emplace_back();
  sum.parts.push_back(request);
  if (sum.parts.size() < aggregations_[message.aggregation]->members.size()) return;
  const std::uint32_t index = take_slot(request);
  slots_[index].parts = std::move(sum.parts);
  sums_.erase(sums_.begin() + (&sum - sums_.data()));
  start(index);
}

std::uint32_t IdealEndpoint::take_slot(const SendRequest& request) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  slots_[index].request = request;
  slots_[index].generation = ++generations_;
  slots_[index].held = false;
  return index;
}

void IdealEndpoint::start(std::uint32_t index) {
  Slot& slot = slots_[index];
  const Message& message = slot.request.message;
  loop_.schedule(loop_.now() + delay_, origins_[message.source], EventKind::ideal_delivery,
                 message.destination, static_cast<std::uint64_t>(++slot.starts) << 32 | index);
}

void IdealEndpoint::deliver(const Event& event) {
  const auto index = static_cast<std::uint32_t>(event.argument);
  if (slots_[index].starts != event.argument >> 32) return;  // it was held or cancelled meanwhile
  const SendRequest request = slots_[index].request;
  if (!request.message.aggregation.is_none()) {
    const std::vector<SendRequest> parts = std::move(slots_[index].parts);
    free(index);
    return deliver_aggregation(request, parts);
  }
  free(index);
  if (request.tell_left) listener_->message_left(request);
  delivered(request.message);
  sent(request);
}

void IdealEndpoint::deliver_aggregation(const SendRequest& request, const std::vector<SendRequest>& parts) {
  if (request.message.aggregation_use == AggregationUse::reduction) {
    delivered(request.message);
    for (const SendRequest& part : parts) sent(part);
    return;
  }
  if (request.message.aggregation_use == AggregationUse::allreduce) return deliver_allreduce(request, parts);
  Message copy = request.message;
  for (const GpuId member : aggregations_[copy.aggregation]->members) {
    copy.destination = member;
    delivered(copy);
  }
  sent(request);
}

// Delivers the sum of `parts`, of which `last` was sent last.
void IdealEndpoint::deliver_allreduce(const SendRequest& last, const std::vector<SendRequest>& parts) {
  const std::span<const GpuId> all = aggregations_[last.message.aggregation]->members,
                               others = aggregations_[last.message.aggregation]->others;
  const auto has = [](std::span<const GpuId> gpus, GpuId gpu) {
    return std::find(gpus.begin(), gpus.end(), gpu) != gpus.end();
  };
  for (SendRequest part : parts) {
    part.message.destination = part.message.source;
    if (has(others, part.message.source)) delivered(part.message);
    listener_->message_sent({part, part.message.bytes, &told_});
  }
  Message copy = last.message;
  for (const GpuId other : others) {
    copy.destination = other;
    if (!has(all, other)) delivered(copy);
  }
}

void IdealEndpoint::free(std::uint32_t index) {
  slots_[index].generation = 0;
  free_.push_back(index);
}

const IdealEndpoint::Slot* IdealEndpoint::find(const MessageHandle& message) const {
  if (message.generation == 0 || message.slot >= slots_.size()) return nullptr;
  const Slot& slot = slots_[message.slot];
  return slot.generation == message.generation ? &slot : nullptr;
}

IdealEndpoint::Slot* IdealEndpoint::find(const MessageHandle& message) {
  return const_cast<Slot*>(std::as_const(*this).find(message));
}

bool IdealEndpoint::hold(const MessageHandle& message) {
  Slot* slot = find(message);
  if (slot == nullptr) return false;
  if (!slot->held) ++slot->starts;
  slot->held = true;
  return true;
}

bool IdealEndpoint::release(const MessageHandle& message) {
  Slot* slot = find(message);
  if (slot == nullptr) return false;
  if (slot->held) start(message.slot);
  slot->held = false;
  return true;
}

bool IdealEndpoint::set_priority(const MessageHandle& message, std::uint8_t priority) {
  Slot* slot = find(message);
  if (slot == nullptr) return false;
  slot->request.message.traits.priority = priority;
  return true;
}

bool IdealEndpoint::set_rate(const MessageHandle& message, BitRate rate) {
  Slot* slot = find(message);
  if (slot == nullptr) return false;
  slot->request.message.traits.rate_limit = rate;
  return true;
}

bool IdealEndpoint::set_path(const MessageHandle& message, std::uint32_t path_hint) {
  Slot* slot = find(message);
  if (slot == nullptr) return false;
  slot->request.message.traits.path_hint = path_hint;
  return true;
}

Bytes IdealEndpoint::left(const MessageHandle& message) const {
  const Slot* slot = find(message);
  return slot == nullptr ? 0 : slot->request.message.bytes;
}

Bytes IdealEndpoint::cancel(const MessageHandle& message) {
  Slot* slot = find(message);
  if (slot == nullptr) return 0;
  ++slot->starts;
  free(message.slot);
  return slot->request.message.bytes;
}

}  // namespace netsim
