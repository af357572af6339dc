// Can messages through aggregation groups be held, released and limited by their handles, and do they keep
// their order?
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/support/packet_fixture.h"

namespace netsim::aggregation_handles_test {
namespace {

constexpr const char* kNvSwitchHost = "topology: {kind: star, hosts: 16, rate: 400 Gbps}\nhost: dgx_h100\n";
constexpr const char* kSumming =
    "topology: {kind: star, hosts: 4, rate: 100 Gbps, delay: 1 us}\n"
    "host: single_nic\n"
    "network: {switch: {marker: none, aggregation: true}}\n"
    "transport: {congestion_control: none}\n";
constexpr Bytes kSize = 1'000'000;

// Records the bytes of the messages in the order of their delivery.
struct Told : MessageListener {
  void message_delivered(const Delivery& delivery) override { bytes.push_back(delivery.bytes); }
  void message_sent(const SendCompletion&) override { ++sent; }
  std::vector<Bytes> bytes;
  int sent = 0;
};

// A group of GPUs, whose messages have one communication and tag.
struct Group {
  Group(const char* yaml, AggregationUse use_in, std::vector<GpuId> members_in)
      : packets(yaml), use(use_in), members(std::move(members_in)) {
    packets.network->set_listener(&told);
    group.head = 0;
    group.members = members;
    group.allreduce = use == AggregationUse::allreduce;
    if (group.allreduce) group.others = members;
    EXPECT_EQ(packets.network->objection(group), "");
    id = packets.network->add_aggregation(group);
  }
  Message message(GpuId source, Bytes bytes) const {
    Message message;
    message.source = source;
    message.destination = group.allreduce ? source : group.head;
    message.bytes = bytes;
    message.aggregation = id;
    message.aggregation_use = use;
    return message;
  }
  MessageHandle send(GpuId source, Bytes bytes) { return network().send({message(source, bytes)}); }
  Endpoint& network() { return *packets.network; }
  void run() { packets.loop.run(); }

  test::PacketFixture packets;
  AggregationUse use;
  std::vector<GpuId> members;
  SwitchAggregation group;
  AggregationId id;
  Told told;
};

TEST(AggregationHandles, AHeldMessageHoldsThoseBehindIt) {
  Group reduction(kNvSwitchHost, AggregationUse::reduction, {1, 2});
  const MessageHandle first = reduction.send(1, kSize), second = reduction.send(1, 2 * kSize);
  reduction.send(2, kSize);
  reduction.send(2, 2 * kSize);
  EXPECT_FALSE(first.is_none() || second.is_none());
  EXPECT_TRUE(reduction.network().hold(first));
  reduction.run();
  EXPECT_TRUE(reduction.told.bytes.empty());
  EXPECT_EQ(reduction.network().left(first), kSize);
  EXPECT_EQ(reduction.network().left(second), 2 * kSize);
  EXPECT_TRUE(reduction.network().release(first));
  reduction.run();
  EXPECT_EQ(reduction.told.bytes, std::vector<Bytes>({kSize, 2 * kSize}));
  EXPECT_EQ(reduction.told.sent, 4);
  EXPECT_EQ(reduction.network().left(second), 0);
  EXPECT_FALSE(reduction.network().hold(second));
}

TEST(AggregationHandles, AMessageBehindIsHeldInItsTurn) {
  Group reduction(kNvSwitchHost, AggregationUse::reduction, {1, 2});
  reduction.send(1, kSize);
  const MessageHandle second = reduction.send(1, 2 * kSize);
  reduction.send(2, kSize);
  reduction.send(2, 2 * kSize);
  EXPECT_TRUE(reduction.network().hold(second));
  reduction.run();
  EXPECT_EQ(reduction.told.bytes, std::vector<Bytes>({kSize}));
  EXPECT_TRUE(reduction.network().release(second));
  reduction.run();
  EXPECT_EQ(reduction.told.bytes, std::vector<Bytes>({kSize, 2 * kSize}));
}

// A higher priority would change the order at one member, so that its packets met those of other messages.
TEST(AggregationHandles, PrioritiesDoNotChangeTheOrder) {
  Group reduction(kNvSwitchHost, AggregationUse::reduction, {1, 2});
  reduction.send(1, kSize);
  const MessageHandle second = reduction.send(1, 2 * kSize);
  reduction.send(2, kSize);
  reduction.send(2, 2 * kSize);
  EXPECT_TRUE(reduction.network().set_priority(second, 7));
  reduction.run();
  EXPECT_EQ(reduction.told.bytes, std::vector<Bytes>({kSize, 2 * kSize}));
}

TEST(AggregationHandles, NothingCanBeCancelled) {
  Group reduction(kNvSwitchHost, AggregationUse::reduction, {1, 2});
  const MessageHandle message = reduction.send(1, kSize);
  reduction.send(2, kSize);
  EXPECT_EQ(reduction.network().cancel(message), 0);
  reduction.run();
  EXPECT_EQ(reduction.told.bytes, std::vector<Bytes>({kSize}));
}

// 1 MB takes 1 ms at 8 Gb/s, headers not counted. Without a limit it takes less than 0.1 ms.
TEST(AggregationHandles, TheSlowestMemberLimitsTheSum) {
  Group reduction(kNvSwitchHost, AggregationUse::reduction, {1, 2});
  const MessageHandle message = reduction.send(1, kSize);
  reduction.send(2, kSize);
  EXPECT_TRUE(reduction.network().set_rate(message, 8 * kGbps));
  reduction.run();
  EXPECT_EQ(reduction.told.bytes, std::vector<Bytes>({kSize}));
  EXPECT_GT(reduction.packets.loop.now(), 900 * kMicrosecond);
  EXPECT_LT(reduction.packets.loop.now(), 2 * kMillisecond);
}

TEST(AggregationHandles, AMulticastWaitsForItsHead) {
  Group multicast(kNvSwitchHost, AggregationUse::multicast, {1, 2, 5});
  const MessageHandle message = multicast.send(0, kSize);
  EXPECT_TRUE(multicast.network().hold(message));
  multicast.run();
  EXPECT_TRUE(multicast.told.bytes.empty());
  EXPECT_TRUE(multicast.network().release(message));
  multicast.run();
  EXPECT_EQ(multicast.told.bytes, std::vector<Bytes>(3, kSize));
}

TEST(AggregationHandles, AnAllReduceTreeWaitsForTheHeldMember) {
  Group tree(kSumming, AggregationUse::allreduce, {0, 1, 2, 3});
  std::vector<MessageHandle> handles;
  for (const GpuId member : tree.members) handles.push_back(tree.send(member, kSize));
  EXPECT_TRUE(tree.network().hold(handles[2]));
  tree.run();
  EXPECT_TRUE(tree.told.bytes.empty());
  EXPECT_EQ(tree.network().left(handles[2]), kSize);
  EXPECT_GT(tree.network().left(handles[1]), 0) << "the tree's window keeps the others from sending all";
  EXPECT_TRUE(tree.network().release(handles[2]));
  tree.run();
  EXPECT_EQ(tree.told.bytes, std::vector<Bytes>(4, kSize));
  EXPECT_EQ(tree.told.sent, 4);
}

TEST(AggregationHandles, TheWayIsAllPortsOfTheTree) {
  Group tree(kSumming, AggregationUse::allreduce, {0, 1, 2, 3});
  std::vector<PortId> ports = tree.network().path_of(tree.message(1, kSize));
  EXPECT_EQ(ports, tree.network().path_of(tree.message(2, kSize)));
  const Graph& graph = tree.packets.cluster.graph;
  for (const auto& gpu : tree.packets.cluster.gpus) {
    const auto leaves = [&](PortId port) { return graph.port(port).node == gpu.nic; };
    const auto comes = [&](PortId port) { return graph.port(port).peer_node == gpu.nic; };
    EXPECT_TRUE(std::any_of(ports.begin(), ports.end(), leaves));
    EXPECT_TRUE(std::any_of(ports.begin(), ports.end(), comes));
  }
  std::sort(ports.begin(), ports.end());
  EXPECT_EQ(std::adjacent_find(ports.begin(), ports.end()), ports.end()) << "each port has one stream";
  EXPECT_EQ(tree.network().path_count(tree.message(1, kSize)), 1U);
  Group reduction(kNvSwitchHost, AggregationUse::reduction, {1, 2});
  EXPECT_TRUE(reduction.network().path_of(reduction.message(1, kSize)).empty());
}

}  // namespace
}  // namespace netsim::aggregation_handles_test
