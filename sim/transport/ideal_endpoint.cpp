#include "sim/transport/ideal_endpoint.h"

namespace netsim {

IdealEndpoint::IdealEndpoint(EventLoop& loop, std::uint32_t gpus, Time delay, std::uint32_t first_origin)
    : loop_(loop), delay_(delay), told_(delay) {
  for (std::uint32_t g = 0; g < gpus; ++g) origins_.emplace_back(first_origin + g);
  loop_.set_handler(
      EventKind::ideal_delivery,
      [](void* self, const Event& event) { static_cast<IdealEndpoint*>(self)->deliver(event); }, this);
}

MessageHandle IdealEndpoint::send(const SendRequest& request) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  slots_[index].request = request;
  slots_[index].generation = ++generations_;
  slots_[index].held = false;
  start(index);
  return {request.source, index, generations_};
}

void IdealEndpoint::start(std::uint32_t index) {
  Slot& slot = slots_[index];
  loop_.schedule(loop_.now() + delay_, origins_[slot.request.source], EventKind::ideal_delivery,
                 slot.request.destination, static_cast<std::uint64_t>(++slot.starts) << 32 | index);
}

void IdealEndpoint::deliver(const Event& event) {
  const auto index = static_cast<std::uint32_t>(event.argument);
  if (slots_[index].starts != event.argument >> 32) return;  // held or cancelled since
  SendRequest request = slots_[index].request;
  request.delays = &told_;
  free(index);
  listener_->message_delivered(request);
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
