// `network: ideal`: every transfer is delivered a constant delay after it starts, 0 by default. Schedules and
// pipelines are tested on it. With delay 0 all GPUs form one atom.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/event_loop.h"
#include "sim/transport/endpoint.h"

namespace netsim {

class IdealEndpoint final : public Endpoint {
 public:
  // Handles EventKind::ideal_delivery of `loop`. `first_origin`: origins first_origin + gpu are its own.
  IdealEndpoint(EventLoop& loop, std::uint32_t gpus, Time delay, std::uint32_t first_origin);
  void set_listener(MessageListener* listener) override { listener_ = listener; }
  void send(const SendRequest& request) override;
  Reach reach(std::uint32_t source, std::uint32_t destination) const override {
    return source == destination ? Reach::self : Reach::ideal;
  }
  std::uint32_t gpu_count() const override { return static_cast<std::uint32_t>(origins_.size()); }

 private:
  void deliver(std::uint64_t message);

  EventLoop& loop_;
  Time delay_;
  MessageListener* listener_ = nullptr;
  std::vector<Origin> origins_;
  std::vector<SendRequest> messages_;  // arena, indices recycled
  std::vector<std::uint64_t> free_;
};

}  // namespace netsim
