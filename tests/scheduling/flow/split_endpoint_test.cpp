// Does SplitEndpoint report each message once, as it was sent, whatever the order in which its chunks travel?
#include "sim/scheduling/flow/split_endpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/random.h"
#include "tests/support/without_handles.h"

namespace netsim::split_endpoint_test {
namespace {

constexpr Bytes kChunk = 1000;
constexpr std::uint32_t kBuffers = 3, kGpus = 8, kOfHost = 4;

// Controls: what the functions on handles have done with a message of the network.
struct Controls {
  bool held = false, is_over = false;
  BitRate rate = 0;
  std::uint8_t priority = 0;
  std::uint32_t path_hint = kNoPathHint;
};

// The network keeps messages until the test lets them arrive.
class WaitingNetwork final : public test::WithoutHandles<Endpoint> {
 public:
  void set_listener(MessageListener* listener) override { listener_ = listener; }
  MessageHandle send(const SendRequest& request) override {
    waiting.push_back(request);
    if (reach(request.message.source, request.message.destination) == Reach::scale_out) {
      bytes += request.message.bytes;
      widest = std::max(widest, ++under_way[{request.message.source, request.message.communication}]);
    }
    const TransferTraits& traits = request.message.traits;
    controls.push_back({false, false, traits.rate_limit, traits.priority, traits.path_hint});
    slots.push_back(static_cast<std::uint32_t>(controls.size() - 1));
    requests.push_back(request);
    return {request.message.source, slots.back(), 1};
  }
  bool hold(const MessageHandle& message) override {
    return act(message, [](Controls& of) { of.held = true; });
  }
  bool release(const MessageHandle& message) override {
    return act(message, [](Controls& of) { of.held = false; });
  }
  bool set_priority(const MessageHandle& message, std::uint8_t priority) override {
    return act(message, [&](Controls& of) { of.priority = priority; });
  }
  bool set_rate(const MessageHandle& message, BitRate rate) override {
    return act(message, [&](Controls& of) { of.rate = rate; });
  }
  bool set_path(const MessageHandle& message, std::uint32_t path_hint) override {
    return act(message, [&](Controls& of) { of.path_hint = path_hint; });
  }
  Bytes left(const MessageHandle& message) const override {
    return controls[message.slot].is_over ? 0 : requests[message.slot].message.bytes;
  }
  // Carries the message at `index` to its end.
  void carry(std::size_t index) {
    const SendRequest request = waiting[index];
    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(index));
    controls[slots[index]].is_over = true;
    slots.erase(slots.begin() + static_cast<std::ptrdiff_t>(index));
    if (request.tell_left) listener_->message_left(request);
    if (reach(request.message.source, request.message.destination) == Reach::scale_out)
      --under_way[{request.message.source, request.message.communication}];
    listener_->message_delivered({request.message, request.message.bytes});
    listener_->message_sent({request, request.message.bytes});
  }
  Reach reach(GpuId a, GpuId b) const override {
    return a / kOfHost == b / kOfHost ? Reach::scale_up : Reach::scale_out;
  }
  std::uint32_t gpu_count() const override { return kGpus; }

  std::vector<SendRequest> waiting, requests;  // not at their ends, and all
  std::vector<std::uint32_t> slots;            // of those that wait
  std::vector<Controls> controls;              // by slot
  Bytes bytes = 0;                             // over the fabric
  std::uint32_t widest = 0;  // most messages of a communication that a GPU had on the fabric
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> under_way;

 private:
  template <class Change>
  bool act(const MessageHandle& message, const Change& change) {
    if (controls[message.slot].is_over) return false;
    change(controls[message.slot]);
    return true;
  }
  MessageListener* listener_ = nullptr;
};

// Gives each way a random share, sometimes none.
class RandomSplitter final : public FlowSplitter {
 public:
  SplitSettings settings() const override { return {.least = 500, .chunk = kChunk, .buffers = kBuffers}; }
  void split(Bytes bytes, std::span<const SplitWay> ways, std::span<Bytes> shares) const override {
    for (std::size_t i = 1; i < ways.size(); ++i) {
      shares[i] = static_cast<Bytes>(random_.below(static_cast<std::uint64_t>(bytes) + 1));
      bytes -= shares[i];
    }
    shares[0] = bytes;
  }

 private:
  mutable RandomStream random_{7, "splitter"};
};

// The listener counts the reports of each message, by its communication.
class CountingListener final : public MessageListener {
 public:
  struct Seen {
    int delivered = 0, left = 0, sent = 0;
  };
  void message_delivered(const Delivery& delivery) override {
    expect_original(delivery.message);
    EXPECT_EQ(delivery.bytes, delivery.message.bytes);
    ++seen[delivery.message.communication].delivered;
  }
  void message_left(const SendRequest& request) override {
    expect_original(request.message);
    ++seen[request.message.communication].left;
    EXPECT_EQ(seen[request.message.communication].sent, 0);
  }
  void message_sent(const SendCompletion& completion) override {
    expect_original(completion.request.message);
    EXPECT_EQ(completion.request.note.channel, completion.request.message.communication);
    EXPECT_FALSE(completion.is_truncated());
    ++seen[completion.request.message.communication].sent;
  }
  void expect_original(const Message& message) const {
    const Message& sent = messages[message.communication];
    EXPECT_EQ(message.source, sent.source);
    EXPECT_EQ(message.destination, sent.destination);
    EXPECT_EQ(message.bytes, sent.bytes);
    EXPECT_EQ(message.tag, sent.tag);
    EXPECT_EQ(message.traits, sent.traits);
    EXPECT_FALSE(message.share);
  }
  std::vector<Message> messages;  // by communication
  std::map<std::uint64_t, Seen> seen;
};

struct Setting {
  Setting()
      : cluster(build_cluster(parse_config("topology: {kind: star, hosts: 8, rate: 100 Gbps}\n"
                                           "hosts: [{kind: full_mesh, count: 2, gpus: 4}]\n",
                                           "split.yaml"))) {
    auto made = std::make_unique<WaitingNetwork>();
    network = made.get();
    endpoint = std::make_unique<SplitEndpoint>(
        std::move(made), std::make_unique<RandomSplitter>(), engine, cluster,
        SplitEndpoint::Setup{"random", {1}, std::vector<std::uint32_t>(kGpus, 0)});
    endpoint->set_listener(&listener);
  }
  MessageHandle send(GpuId source, GpuId destination, Bytes bytes) {
    SendRequest request;
    request.message.source = source;
    request.message.destination = destination;
    request.message.bytes = bytes;
    request.message.communication = listener.messages.size();
    request.message.tag = request.message.communication << 40 | 5;
    request.message.traits.rate_limit = 100 * kGbps;
    request.note.channel = static_cast<std::uint32_t>(listener.messages.size());
    request.tell_left = listener.messages.size() % 2 == 0;
    listener.messages.push_back(request.message);
    return endpoint->send(request);
  }
  // Calls `look` with each message of a share that waits on the fabric.
  template <class Look>
  void on_fabric(const Look& look) const {
    for (std::size_t i = 0; i < network->waiting.size(); ++i) {
      const Message& message = network->waiting[i].message;
      if (network->reach(message.source, message.destination) == Reach::scale_out)
        look(message, network->controls[network->slots[i]]);
    }
  }
  // Carries a message that waits within a host. Returns whether there was one.
  bool carry_inside() const {
    for (std::size_t i = 0; i < network->waiting.size(); ++i) {
      const Message& message = network->waiting[i].message;
      if (network->reach(message.source, message.destination) == Reach::scale_out) continue;
      network->carry(i);
      return true;
    }
    return false;
  }

  Engine engine;
  Cluster cluster;
  WaitingNetwork* network = nullptr;
  std::unique_ptr<SplitEndpoint> endpoint;
  CountingListener listener;
};

TEST(SplitEndpoint, EachMessageArrivesOnce) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Setting s;
    RandomStream random(seed, "messages");
    Bytes over_fabric = 0;
    for (int step = 0; step < 400; ++step) {
      if (step < 60 && random.below(3) == 0) {
        const auto source = static_cast<std::uint32_t>(random.below(kGpus));
        const auto to = static_cast<std::uint32_t>(source + 1 + random.below(kGpus - 1)) % kGpus;
        const auto bytes = static_cast<Bytes>(1 + random.below(20'000));
        if (source / kOfHost != to / kOfHost) over_fabric += bytes;
        s.send(source, to, bytes);
      } else if (!s.network->waiting.empty()) {
        s.network->carry(random.below(s.network->waiting.size()));
      }
    }
    while (!s.network->waiting.empty()) s.network->carry(random.below(s.network->waiting.size()));
    EXPECT_EQ(s.network->bytes, over_fabric);
    for (std::uint64_t i = 0; i < s.listener.messages.size(); ++i) {
      EXPECT_EQ(s.listener.seen[i].delivered, 1);
      EXPECT_EQ(s.listener.seen[i].sent, 1);
      EXPECT_EQ(s.listener.seen[i].left, i % 2 == 0 ? 1 : 0);
    }
    EXPECT_LE(s.network->widest, kBuffers + 1);  // of one share; the source may have two of its own
  }
}

TEST(SplitEndpoint, CountsWhatItSplit) {
  Setting s;
  s.send(0, 5, 100);  // too small
  s.send(0, 1, 9000);
  s.send(0, 4, 9000);
  while (!s.network->waiting.empty()) s.network->carry(0);
  const SplitSummary sum = s.endpoint->summary();
  EXPECT_EQ(sum.messages, 2U);
  EXPECT_EQ(sum.split, 1U);
  EXPECT_EQ(sum.own + sum.nvlink, 9000);
  EXPECT_GT(sum.nvlink, 0);
  EXPECT_EQ(sum.pcie, 0);
}

// Shares wait at the NICs of four GPUs. What is left is what none of them has sent.
TEST(SplitEndpoint, HandlesActOnAllShares) {
  Setting s;
  const MessageHandle message = s.send(0, 5, 90'000);
  ASSERT_FALSE(message.is_none());
  EXPECT_EQ(s.endpoint->left(message), 90'000);
  EXPECT_TRUE(s.endpoint->hold(message));
  while (s.carry_inside()) {
  }
  EXPECT_EQ(s.endpoint->left(message), 90'000);
  std::size_t chunks = 0;
  std::map<std::uint32_t, int> sources;
  s.on_fabric([&](const Message& sent, const Controls& controls) {
    EXPECT_TRUE(controls.held);
    ++chunks;
    ++sources[sent.source];
  });
  EXPECT_GT(sources.size(), 1U);
  EXPECT_TRUE(s.endpoint->set_priority(message, 3));
  EXPECT_TRUE(s.endpoint->set_rate(message, 90 * kGbps));
  EXPECT_TRUE(s.endpoint->set_path(message, 7));
  EXPECT_EQ(s.endpoint->cancel(message), 0);
  EXPECT_TRUE(s.endpoint->release(message));
  std::map<std::uint32_t, BitRate> rates;
  s.on_fabric([&](const Message& sent, const Controls& controls) {
    EXPECT_FALSE(controls.held);
    EXPECT_EQ(controls.priority, 3);
    EXPECT_EQ(controls.path_hint, sent.source == GpuId(0) && sent.destination == GpuId(5) ? 7U : kNoPathHint);
    rates[sent.source] = controls.rate;
  });
  BitRate sum = 0;
  for (const auto& [source, rate] : rates) sum += rate;
  EXPECT_LE(sum, 90 * kGbps);
  EXPECT_GT(sum, 90 * kGbps - 4);
  while (!s.network->waiting.empty()) s.network->carry(0);
  EXPECT_EQ(s.endpoint->left(message), 0);
  for (const bool acted : {s.endpoint->hold(message), s.endpoint->release(message),
                           s.endpoint->set_rate(message, kGbps), s.endpoint->set_priority(message, 1)})
    EXPECT_FALSE(acted);
  EXPECT_EQ(s.listener.seen[0].delivered, 1);
}

// Chunks that are sent later follow the last decisions, and a rate is divided by what is left then.
TEST(SplitEndpoint, LaterChunksFollowTheHandle) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Setting s;
    RandomStream random(seed, "handles");
    std::vector<MessageHandle> messages;
    for (int step = 0; step < 600; ++step) {
      if (step < 20) {
        const auto source = static_cast<std::uint32_t>(random.below(kOfHost)),
                   to = static_cast<std::uint32_t>(kOfHost + random.below(kOfHost));
        messages.push_back(s.send(source, to, static_cast<Bytes>(500 + random.below(30'000))));
        continue;
      }
      const MessageHandle& message = messages[random.below(messages.size())];
      const Bytes left = s.endpoint->left(message);
      EXPECT_GE(left, 0);
      const std::uint64_t what = random.below(8);
      if (what == 0) {
        EXPECT_EQ(s.endpoint->hold(message), left > 0);
      } else if (what == 1) {
        EXPECT_EQ(s.endpoint->set_rate(message, static_cast<BitRate>(1 + random.below(1000)) * kGbps),
                  left > 0);
      } else if (what == 2) {
        EXPECT_EQ(s.endpoint->release(message), left > 0);
      } else if (!s.network->waiting.empty()) {
        s.network->carry(random.below(s.network->waiting.size()));
      }
      EXPECT_LE(s.endpoint->left(message), left);
    }
    for (const MessageHandle& message : messages) s.endpoint->release(message);
    while (!s.network->waiting.empty()) s.network->carry(random.below(s.network->waiting.size()));
    for (std::uint64_t i = 0; i < messages.size(); ++i) {
      EXPECT_EQ(s.listener.seen[i].delivered, 1);
      EXPECT_EQ(s.listener.seen[i].sent, 1);
      EXPECT_EQ(s.endpoint->left(messages[i]), 0);
    }
  }
}

}  // namespace
}  // namespace netsim::split_endpoint_test
