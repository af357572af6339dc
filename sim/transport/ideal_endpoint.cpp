#include "sim/transport/ideal_endpoint.h"

namespace netsim {

IdealEndpoint::IdealEndpoint(EventLoop& loop, std::uint32_t gpus, Time delay, std::uint32_t first_origin)
    : loop_(loop), delay_(delay) {
  for (std::uint32_t g = 0; g < gpus; ++g) origins_.emplace_back(first_origin + g);
  loop_.set_handler(
      EventKind::ideal_delivery,
      [](void* self, const Event& event) { static_cast<IdealEndpoint*>(self)->deliver(event.argument); },
      this);
}

void IdealEndpoint::send(const SendRequest& request) {
  std::uint64_t index = messages_.size();
  if (free_.empty()) {
    messages_.push_back(request);
  } else {
    index = free_.back();
    free_.pop_back();
    messages_[index] = request;
  }
  loop_.schedule(loop_.now() + delay_, origins_[request.source], EventKind::ideal_delivery,
                 request.destination, index);
}

void IdealEndpoint::deliver(std::uint64_t message) {
  const SendRequest request = messages_[message];
  free_.push_back(message);
  listener_->message_delivered(request);
  listener_->message_sent(request);
}

}  // namespace netsim
