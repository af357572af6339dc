// IdealEndpoint (`network: ideal`): every transfer is delivered a constant delay after it starts, 0 by
// default. It serves to test schedules and pipelines. With delay 0 all GPUs form one atom.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/event_loop.h"
#include "sim/transport/endpoint.h"

namespace netsim {

class IdealEndpoint final : public Endpoint {
 public:
  // Handles EventKind::ideal_delivery of `loop`. It uses the origins from first_origin to first_origin + gpus
  // - 1.
  IdealEndpoint(EventLoop& loop, std::uint32_t gpus, Time delay, std::uint32_t first_origin);
  void set_listener(MessageListener* listener) override { listener_ = listener; }
  MessageHandle send(const SendRequest& request) override;
  // Returns no objection, because there are no switches.
  std::string objection(const SwitchAggregation&) const override { return ""; }
  AggregationId add_aggregation(const SwitchAggregation& aggregation) override;
  bool hold(const MessageHandle& message) override;
  bool release(const MessageHandle& message) override;
  bool set_priority(const MessageHandle& message, std::uint8_t priority) override;
  Bytes cancel(const MessageHandle& message) override;
  bool set_rate(const MessageHandle& message, BitRate rate) override;
  bool set_path(const MessageHandle& message, std::uint32_t path_hint) override;
  Bytes left(const MessageHandle& message) const override;
  void tell_delays() override {}  // each delivery tells its propagation delay anyway; there is no other
  Reach reach(GpuId source, GpuId destination) const override {
    return source == destination ? Reach::self : Reach::ideal;
  }
  std::uint32_t gpu_count() const override { return static_cast<std::uint32_t>(origins_.size()); }

 private:
  // A slot outlives its messages. `starts` counts on, so the delivery event of a message that was held or
  // cancelled meanwhile finds another count and does nothing.
  struct Slot {
    SendRequest request;
    std::vector<SendRequest> parts;  // messages of a reduction, of which `request` came last
    std::uint64_t generation = 0;    // 0: free
    std::uint32_t starts = 0;
    bool held = false;
  };
  // Messages of a reduction that wait for those of other members.
  struct Sum {
    std::vector<SendRequest> parts;
  };
  void join(const SendRequest& request);
  void deliver_aggregation(const SendRequest& request, const std::vector<SendRequest>& parts);
  void deliver_allreduce(const SendRequest& last, const std::vector<SendRequest>& parts);
  void delivered(const Message& message) { listener_->message_delivered({message, message.bytes, &told_}); }
  void sent(const SendRequest& request) { listener_->message_sent({request, request.message.bytes}); }
  std::uint32_t take_slot(const SendRequest& request);
  Slot* find(const MessageHandle& message);
  const Slot* find(const MessageHandle& message) const;
  void start(std::uint32_t index);
  void deliver(const Event& event);
  void free(std::uint32_t index);

  EventLoop& loop_;
  Time delay_;
  // Reports the constant delay as propagation.
  struct Delay final : DelayTeller {
    explicit Delay(Time delay_in) : delay(delay_in) {}
    MessageDelays tell() override { return {delay, {}}; }
    Time delay;
  };
  Delay told_;
  MessageListener* listener_ = nullptr;
  std::vector<Origin> origins_;
  std::vector<const SwitchAggregation*> aggregations_;  // by AggregationId
  std::vector<Slot> slots_;
  std::vector<Sum> sums_;  // those that still wait for members
  std::vector<std::uint32_t> free_;
  std::uint64_t generations_ = 0;
};

}  // namespace netsim
