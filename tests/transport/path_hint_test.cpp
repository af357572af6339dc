// Tests path hints: the paths that they give, the packets on them, and hints that change on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/scripted_messages.h"

namespace netsim::path_hint_test {
namespace {

using test::ScriptedMessages;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr Bytes kMtu = 4096;

std::string tree(const std::string& routing) {
  return "topology: {kind: fat_tree, k: 4, rate: 100 Gbps, delay: 1 us}\n"
         "network: {switch: {marker: none, routing: " +
         routing +
         "}}\n"
         "transport: {congestion_control: none}\n";
}

Message message_of(std::uint32_t from, std::uint32_t to, std::uint32_t hint, Bytes bytes = 10 * kMtu) {
  Message message;
  message.source = from;
  message.destination = to;
  message.bytes = bytes;
  message.traits.path_hint = hint;
  return message;
}

std::uint64_t packets_at(const ScriptedMessages& run, PortId port) {
  return run.network->port_counters(port).data_packets;
}

// The paths of a fat tree with k = 4: (k/2)^2 between pods, k/2 within one, one within a rack.
TEST(PathHint, HintsGiveAllPaths) {
  const ScriptedMessages run(tree("ecmp"));
  for (const auto& [to, count] :
       std::vector<std::pair<std::uint32_t, std::uint32_t>>{{15, 4}, {2, 2}, {1, 1}}) {
    ASSERT_EQ(run.network->path_count(message_of(0, to, 0)), count);
    std::set<std::vector<PortId>> paths;
    for (std::uint32_t hint = 0; hint < count; ++hint)
      paths.insert(run.network->path_of(message_of(0, to, hint)));
    EXPECT_EQ(paths.size(), count);
    EXPECT_EQ(run.network->path_of(message_of(0, to, count)), run.network->path_of(message_of(0, to, 0)))
        << "digits above the last switch have no effect";
    EXPECT_EQ(paths.count(run.network->path_of(message_of(0, to, TransferTraits().path_hint))), 1U);
  }
}

// The lowest digit is the hop at the edge switch, the next one that at the aggregation switch.
TEST(PathHint, DigitsAreHopsInOrder) {
  const ScriptedMessages run(tree("ecmp"));
  const auto names = [&](std::uint32_t hint) {
    std::string text;
    for (const PortId port : run.network->path_of(message_of(0, 15, hint)))
      text += run.cluster.graph.node(run.cluster.graph.port(port).peer_node).name + " ";
    return text;
  };
  EXPECT_THAT(names(0), HasSubstr("edge0 agg0 core0 "));
  EXPECT_THAT(names(1), HasSubstr("edge0 agg1 core2 "));
  EXPECT_THAT(names(2), HasSubstr("edge0 agg0 core1 "));
  EXPECT_THAT(names(3), HasSubstr("edge0 agg1 core3 "));
}

TEST(PathHint, PacketsTakeThePathOfTheirHint) {
  for (std::uint32_t hint = 0; hint < 4; ++hint) {
    for (const char* routing : {"ecmp", "d_mod_k"}) {
      ScriptedMessages run(tree(routing));
      run.send(0, message_of(0, 15, hint));
      run.run();
      for (const PortId port : run.network->path_of(message_of(0, 15, hint)))
        EXPECT_EQ(packets_at(run, port), 10U) << routing << hint;
      EXPECT_EQ(run.fates[0].bytes, 10 * kMtu);
      EXPECT_THAT(run.network->notes(), Not(Contains(HasSubstr("path hint"))));
    }
  }
}

// Messages of one queue pair alternate between two paths, and one without a hint takes the path of routing.
TEST(PathHint, EachMessageOfAQueuePairHasItsPath) {
  ScriptedMessages run(tree("ecmp"));
  const std::uint32_t none = TransferTraits().path_hint;
  for (const std::uint32_t hint : {1U, 2U, none, 1U}) run.send(0, message_of(0, 15, hint));
  run.run();
  EXPECT_EQ(run.network->queue_pairs().size(), 1U);
  std::map<PortId, std::uint64_t> expected;
  for (const std::uint32_t hint : {1U, 2U, none, 1U}) {
    for (const PortId port : run.network->path_of(message_of(0, 15, hint))) expected[port] += 10;
  }
  for (const auto& [port, packets] : expected) EXPECT_EQ(packets_at(run, port), packets);
}

TEST(PathHint, ChangesForThePacketsThatHaveNotLeft) {
  ScriptedMessages run(tree("ecmp"));
  const std::size_t message = run.send(0, message_of(0, 15, 0));
  const Time packet = transmission_time(kMtu + 62 + 20, 100 * kGbps);
  const std::size_t answer = run.set_path(5 * packet / 2, message, 3);  // in the middle of the third packet
  run.run();
  const std::vector<PortId> before = run.network->path_of(message_of(0, 15, 0)),
                            after = run.network->path_of(message_of(0, 15, 3));
  EXPECT_EQ(run.answers[answer], 1);
  EXPECT_EQ(packets_at(run, before[1]), 3U);
  EXPECT_EQ(packets_at(run, after[1]), 7U);
  EXPECT_EQ(run.fates[message].bytes, 10 * kMtu);
  EXPECT_EQ(run.fates[message].deliveries, 1);
}

TEST(PathHint, IsIgnoredWithANoteWherePacketsAreRoutedOneByOne) {
  ScriptedMessages run(tree("spray"));
  EXPECT_EQ(run.network->path_count(message_of(0, 15, 0)), 1U);
  EXPECT_TRUE(run.network->path_of(message_of(0, 15, 0)).empty());
  run.send(0, message_of(0, 15, 1));
  run.run();
  EXPECT_EQ(run.fates[0].bytes, 10 * kMtu);
  EXPECT_THAT(run.network->notes(), Contains(HasSubstr("path hints of messages had no effect")));
}

}  // namespace
}  // namespace netsim::path_hint_test
