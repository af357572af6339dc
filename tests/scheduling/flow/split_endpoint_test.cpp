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
    return {request.message.source, static_cast<std::uint32_t>(waiting.size()), 1};
  }
  // Carries the message at `index` to its end.
  void carry(std::size_t index) {
    const SendRequest request = waiting[index];
    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(index));
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

  std::vector<SendRequest> waiting;
  Bytes bytes = 0;           // over the fabric
  std::uint32_t widest = 0;  // most messages of a communication that a GPU had on the fabric
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> under_way;

 private:
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
  void send(GpuId source, GpuId destination, Bytes bytes) {
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
    endpoint->send(request);
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

}  // namespace
}  // namespace netsim::split_endpoint_test
