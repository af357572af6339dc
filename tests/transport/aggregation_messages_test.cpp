// Tests that messages name their aggregation groups by the numbers that the endpoint gave them, and what the
// listener is told at both ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "sim/core/errors.h"
#include "sim/transport/ideal_endpoint.h"
#include "tests/support/packet_fixture.h"

namespace netsim::aggregation_messages_test {
namespace {

// Records all calls of a listener, in order.
struct Told : MessageListener {
  void message_delivered(const Delivery& delivery) override {
    delivered.push_back(delivery.message);
    bytes.push_back(delivery.bytes);
  }
  void message_sent(const SendCompletion& completion) override { sent.push_back(completion.request); }
  std::vector<Message> delivered;
  std::vector<Bytes> bytes;
  std::vector<SendRequest> sent;
};

SendRequest request_of(GpuId source, AggregationId group, AggregationUse use, Bytes bytes) {
  SendRequest request;
  request.message.source = source;
  request.message.destination = 0;
  request.message.bytes = bytes;
  request.message.aggregation = group;
  request.message.aggregation_use = use;
  return request;
}

// Two groups of the same GPUs, whose messages have the same communication and tag. Each group's messages are
// added up with each other, whatever the order of sending.
void expect_groups_apart(Endpoint& endpoint, const std::function<void()>& run) {
  Told told;
  endpoint.set_listener(&told);
  const std::vector<GpuId> members{1, 2};
  const SwitchAggregation small{.head = 0, .members = members}, large = small;
  const AggregationId a = endpoint.add_aggregation(small), b = endpoint.add_aggregation(large);
  EXPECT_NE(a, b);
  EXPECT_FALSE(a.is_none() || b.is_none());
  endpoint.send(request_of(1, a, AggregationUse::reduction, 1000));
  endpoint.send(request_of(2, b, AggregationUse::reduction, 30'000));
  endpoint.send(request_of(2, a, AggregationUse::reduction, 1000));
  endpoint.send(request_of(1, b, AggregationUse::reduction, 30'000));
  run();
  std::sort(told.bytes.begin(), told.bytes.end());
  EXPECT_EQ(told.bytes, (std::vector<Bytes>{1000, 30'000}));
  for (const Message& message : told.delivered) EXPECT_EQ(message.aggregation, message.bytes == 1000 ? a : b);
  EXPECT_EQ(told.sent.size(), 4u);
}

// A multicast is delivered at each member, and its sender gets back the request as it was sent. Only the
// packet network gives it a handle.
void expect_multicast(Endpoint& endpoint, bool has_handle, const std::function<void()>& run) {
  Told told;
  endpoint.set_listener(&told);
  const std::vector<GpuId> members{1, 2, 5};
  const SwitchAggregation group{.head = 0, .members = members};
  SendRequest request = request_of(0, endpoint.add_aggregation(group), AggregationUse::multicast, 10'000);
  request.message.note = {.started = 3, .launch = 4, .release = 5};
  request.note.channel = 7;
  EXPECT_EQ(endpoint.send(request).is_none(), !has_handle);
  run();
  std::vector<std::uint32_t> reached;
  for (const Message& message : told.delivered) {
    reached.push_back(message.destination);
    EXPECT_EQ(message.note.started, 3);
    EXPECT_EQ(message.note.launch, 4);
    EXPECT_EQ(message.note.release, 5u);
  }
  std::sort(reached.begin(), reached.end());
  EXPECT_EQ(reached, (std::vector<std::uint32_t>{1, 2, 5}));
  EXPECT_EQ(told.bytes, (std::vector<Bytes>(3, 10'000)));
  ASSERT_EQ(told.sent.size(), 1u);
  EXPECT_EQ(told.sent[0].message.destination, 0u);
  EXPECT_EQ(told.sent[0].note.channel, 7u);
}

constexpr const char* kNvSwitchHost = "topology: {kind: star, hosts: 16, rate: 400 Gbps}\nhost: dgx_h100\n";

TEST(AggregationMessages, OfTwoGroupsAreNeverAddedUpWithEachOther) {
  test::PacketFixture packets(kNvSwitchHost);
  expect_groups_apart(*packets.network, [&] { packets.loop.run(); });
  EventLoop loop;
  IdealEndpoint ideal(loop, 8, 10, 0);
  expect_groups_apart(ideal, [&] { loop.run(); });
}

TEST(AggregationMessages, TellEachMemberAndTheSender) {
  test::PacketFixture packets(kNvSwitchHost);
  expect_multicast(*packets.network, true, [&] { packets.loop.run(); });
  EventLoop loop;
  IdealEndpoint ideal(loop, 8, 10, 0);
  expect_multicast(ideal, false, [&] { loop.run(); });
}

TEST(Messages, NeedASourceADestinationAndBytes) {
  test::PacketFixture packets(kNvSwitchHost);
  Message message;
  message.bytes = 1;
  EXPECT_THROW(packets.network->send({message}), InternalError);
  message.source = 0;
  EXPECT_THROW(packets.network->send({message}), InternalError);
  message.destination = 1;
  message.bytes = 0;
  EXPECT_THROW(packets.network->send({message}), InternalError);
}

}  // namespace
}  // namespace netsim::aggregation_messages_test
