// Test doubles around the executor: an Endpoint with hosts, bandwidth and latency, but without packets; and a
// listener that writes down who was done when.
#pragma once

#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "sim/collectives/execution/executor.h"
#include "sim/core/event_loop.h"
#include "sim/core/ids.h"
#include "sim/transport/endpoint.h"
#include "tests/support/without_handles.h"

namespace netsim {

// The GPUs 0 to count - 1: a group.
inline std::vector<GpuId> everyone(std::uint32_t count) {
  std::vector<GpuId> members(count);
  std::iota(members.begin(), members.end(), 0U);
  return members;
}

// Each GPU has one port to its host's other GPUs (with `port_each` one to each) and one to the fabric. A port
// sends messages one after the other at `rate` (0: at once). The last byte arrives `latency` later, plus
// `channel_skew` times the channel, so that channels overtake each other. A scale-out send is acknowledged
// after another `latency`.
class FakeEndpoint final : public test::WithoutHandles<Endpoint> {
 public:
  struct Link {
    BitRate rate = 0;
    Time latency = 0;
  };
  struct Sent {
    Message message;
    Time time;
  };

  FakeEndpoint(EventLoop& loop, std::uint32_t gpus, std::uint32_t gpus_per_host, Link scale_up,
               Link scale_out)
      : loop_(loop),
        per_host_(gpus_per_host),
        scale_up_(scale_up),
        scale_out_(scale_out),
        ports_(2 * gpus, 0) {
    for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) origins_.emplace_back(gpu);
    loop.set_handler(
        EventKind::arrival,
        [](void* self, const Event& e) { static_cast<FakeEndpoint*>(self)->deliver(e.argument); }, this);
    loop.set_handler(
        EventKind::route,
        [](void* self, const Event& e) {
          auto& endpoint = *static_cast<FakeEndpoint*>(self);
          endpoint.listener_->message_left(endpoint.requests_[e.argument]);
        },
        this);
    loop.set_handler(
        EventKind::departure,
        [](void* self, const Event& e) { static_cast<FakeEndpoint*>(self)->acknowledge(e.argument); }, this);
  }

  void set_listener(MessageListener* listener) override { listener_ = listener; }
  std::uint32_t gpu_count() const override { return static_cast<std::uint32_t>(origins_.size()); }
  // A NIC a GPU.
  GpuSite site(GpuId gpu) const override { return {gpu / per_host_, {gpu}, 0, 0, {}}; }
  BitRate direct_rate(GpuId source, GpuId destination) const override {
    return source / per_host_ == destination / per_host_ ? direct : 0;
  }
  Reach reach(GpuId source, GpuId destination) const override {
    if (source == destination) return Reach::self;
    return source / per_host_ == destination / per_host_ ? Reach::scale_up : Reach::scale_out;
  }

  MessageHandle send(const SendRequest& request) override {
    const Message& message = request.message;
    const bool inside = reach(message.source, message.destination) == Reach::scale_up;
    const Link& link = inside ? scale_up_ : scale_out_;
    Time& busy = port_each ? ports_to_[{message.source, message.destination}]
                           : ports_[2 * message.source + (inside ? 0 : 1)];
    busy = std::max(busy, loop_.now()) + (link.rate == 0 ? 0 : transmission_time(message.bytes, link.rate));
    count(message, 1);
    const Time arrival = busy + link.latency + channel_skew * static_cast<Time>(message.traits.channel);
    loop_.schedule(arrival, origins_[message.source], EventKind::arrival, message.destination, sent.size());
    if (request.tell_left)
      loop_.schedule(busy, origins_[message.source], EventKind::route, message.source, sent.size());
    sent.push_back({message, loop_.now()});
    requests_.push_back(request);
    return {message.source, 0, 0};
  }

  // Largest number of sends in flight of one tag between two GPUs.
  std::uint32_t most_in_flight() const { return most_in_flight_; }

  Time channel_skew = 0;
  bool port_each = false;
  BitRate direct = 0;      // of a link between any two GPUs of a host, besides those ports
  std::vector<Sent> sent;  // in order

 private:
  void count(const Message& message, std::int32_t change) {
    auto& flying = in_flight_[{message.source, message.destination, message.communication, message.tag}];
    flying = static_cast<std::uint32_t>(static_cast<std::int32_t>(flying) + change);
    most_in_flight_ = std::max(most_in_flight_, flying);
  }
  void deliver(std::uint64_t index) {
    const Message message = sent[index].message;
    listener_->message_delivered({message, message.bytes});
    if (reach(message.source, message.destination) == Reach::scale_up) return acknowledge(index);
    loop_.schedule(loop_.now() + scale_out_.latency, origins_[message.destination], EventKind::departure,
                   message.source, index);
  }
  void acknowledge(std::uint64_t index) {
    const SendRequest request = requests_[index];
    count(request.message, -1);
    listener_->message_sent({request, request.message.bytes});
  }

  EventLoop& loop_;
  std::vector<SendRequest> requests_;  // of `sent`
  std::uint32_t per_host_;
  Link scale_up_, scale_out_;
  std::vector<Time> ports_;  // busy until
  std::map<std::pair<std::uint32_t, std::uint32_t>, Time> ports_to_;
  std::vector<Origin> origins_;
  MessageListener* listener_ = nullptr;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, std::uint64_t>, std::uint32_t> in_flight_;
  std::uint32_t most_in_flight_ = 0;
};

// All members of a group at once.
inline void start_all(Executor& executor, CollectiveKind kind, const std::vector<GpuId>& members,
                      Bytes bytes) {
  CommunicationRequest request;
  request.kind = kind;
  request.members = &members;
  request.bytes = bytes;
  request.communication = 1;
  for (request.index = 0; request.index < members.size(); ++request.index)
    executor.start(members[request.index], request);
}

struct Completions final : CommunicationListener {
  struct Done {
    std::uint32_t gpu;
    std::uint64_t communication;
    Time started, ended;
    bool operator==(const Done&) const = default;
  };
  explicit Completions(EventLoop& event_loop) : loop(event_loop) {}
  void communication_done(GpuId gpu, const CommunicationRequest& request, Time started) override {
    done.push_back({gpu, request.communication, started, loop.now()});
    if (then) then(gpu, request.communication);
  }
  // The record of one GPU; started -1 if there is none.
  Done of(std::uint32_t gpu, std::uint64_t communication = 1) const {
    for (const Done& record : done) {
      if (record.gpu == gpu && record.communication == communication) return record;
    }
    return {gpu, communication, -1, -1};
  }
  Time last() const {
    Time time = -1;
    for (const Done& record : done) time = std::max(time, record.ended);
    return time;
  }

  EventLoop& loop;
  std::vector<Done> done;
  std::function<void(std::uint32_t gpu, std::uint64_t communication)> then;
};

}  // namespace netsim
