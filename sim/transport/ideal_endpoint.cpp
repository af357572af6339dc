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

MessageHandle IdealEndpoint::send(const SendRequest& request) {
  if (request.aggregation_use == AggregationUse::reduction ||
      request.aggregation_use == AggregationUse::allreduce) {
    join(request);
    return {};
  }
  const std::uint32_t index = take_slot(request);
  start(index);
  return request.aggregation == nullptr ? MessageHandle{request.source, index, generations_}
                                        : MessageHandle{};
}

// Adds the message to the first open sum without a message of this sender.
void IdealEndpoint::join(const SendRequest& request) {
  const auto open = std::find_if(sums_.begin(), sums_.end(), [&](const Sum& sum) {
    const SendRequest& one = sum.parts.front();
    return one.aggregation == request.aggregation && one.traits.job == request.traits.job &&
           one.tag == request.tag && one.communication == request.communication &&
           std::none_of(sum.parts.begin(), sum.parts.end(),
                        [&](const SendRequest& part) { return part.source == request.source; });
  });
  Sum& sum = open != sums_.end() ? *open : sums_.emplace_back();
  sum.parts.push_back(request);
  if (sum.parts.size() < request.aggregation->members.size()) return;
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
  loop_.schedule(loop_.now() + delay_, origins_[slot.request.source], EventKind::ideal_delivery,
                 slot.request.destination, static_cast<std::uint64_t>(++slot.starts) << 32 | index);
}

void IdealEndpoint::deliver(const Event& event) {
  const auto index = static_cast<std::uint32_t>(event.argument);
  if (slots_[index].starts != event.argument >> 32) return;  // it was held or cancelled meanwhile
  SendRequest request = slots_[index].request;
  request.delays = &told_;
  if (request.aggregation != nullptr) {
    const std::vector<SendRequest> parts = std::move(slots_[index].parts);
    free(index);
    return deliver_aggregation(request, parts);
  }
  free(index);
  if (request.tell_left) listener_->message_left(request);
  listener_->message_delivered(request);
  listener_->message_sent(request);
}

void IdealEndpoint::deliver_aggregation(const SendRequest& request, const std::vector<SendRequest>& parts) {
  if (request.aggregation_use == AggregationUse::reduction) {
    listener_->message_delivered(request);
    for (const SendRequest& part : parts) listener_->message_sent(part);
    return;
  }
  if (request.aggregation_use == AggregationUse::allreduce) {
    const std::span<const std::uint32_t> all = request.aggregation->members,
                                         others = request.aggregation->others;
    const auto has = [](std::span<const std::uint32_t> gpus, std::uint32_t gpu) {
      return std::find(gpus.begin(), gpus.end(), gpu) != gpus.end();
    };
    for (SendRequest part : parts) {
      part.destination = part.source;
      part.delays = request.delays;
      if (has(others, part.source)) listener_->message_delivered(part);
      listener_->message_sent(part);
    }
    SendRequest copy = request;
    for (const std::uint32_t other : others) {
      copy.destination = other;
      if (!has(all, other)) listener_->message_delivered(copy);
    }
    return;
  }
  SendRequest copy = request;
  for (const std::uint32_t member : request.aggregation->members) {
    copy.destination = member;
    listener_->message_delivered(copy);
  }
  listener_->message_sent(request);
}

void IdealEndpoint::free(std::uint32_t index) {
  slots_[index].generation = 0;
  free_.push_back(index);
}

IdealEndpoint::Slot* IdealEndpoint::find(const MessageHandle& message) {
  if (message.generation == 0 || message.slot >= slots_.size()) return nullptr;
  Slot& slot = slots_[message.slot];
  return slot.generation == message.generation ? &slot : nullptr;
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
  slot->request.traits.priority = priority;
  return true;
}

Bytes IdealEndpoint::cancel(const MessageHandle& message) {
  Slot* slot = find(message);
  if (slot == nullptr) return 0;
  ++slot->starts;
  free(message.slot);
  return slot->request.bytes;
}

}  // namespace netsim
