// Tests NICs that serve queue pairs by levels of priority, by exact times on one link.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/scripted_messages.h"

namespace netsim::nic_priorities_test {
namespace {

using test::ScriptedMessages;

constexpr Bytes kMtu = 4096;

std::string levels(int count) {
  return "topology: {kind: star, hosts: 3, rate: 100 Gbps, delay: 1 us}\n"
         "network: {switch: {marker: none}}\n"
         "transport: {congestion_control: none, nic_priorities: " +
         std::to_string(count) + "}\n";
}

// Returns a message of so many packets from GPU 0 to GPU 1, on a queue pair of its job.
Message message_of(std::uint32_t job, Bytes packets, std::uint8_t priority) {
  Message message;
  message.source = 0;
  message.destination = 1;
  message.bytes = packets * kMtu;
  message.traits.job = job;
  message.traits.priority = priority;
  return message;
}

// The packets of all messages in the order in which they leave; the wire is never idle. The last packet of
// each message gives the time of its delivery.
void expect_order(const ScriptedMessages& run, const std::vector<std::size_t>& order) {
  std::vector<Time> expected(run.messages.size());
  std::vector<int> made(run.messages.size());
  Time free = 0, out = 0;
  for (const std::size_t message : order) {
    const Time packet = transmission_time(kMtu + 62 + 20 + (made[message]++ == 0 ? 16 : 0), 100 * kGbps);
    free += packet;
    out = std::max(out, free + kMicrosecond) + packet;
    expected[message] = out + kMicrosecond;
  }
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(run.fates[i].delivered, expected[i]) << i;
}

// The middle of the second packet on the wire.
const Time kMiddle = 3 * transmission_time(kMtu + 62 + 20, 100 * kGbps) / 2;

// The job of the higher priority waits for the packet on the wire only. The other one gets the rest.
TEST(NicPriorities, TheHigherJobGoesFirst) {
  for (const std::uint8_t priority : {std::uint8_t{1}, std::uint8_t{200}}) {  // at most the highest level
    ScriptedMessages run(levels(2));
    run.send(0, message_of(0, 6, 0));
    run.send(kMiddle, message_of(1, 3, priority));
    run.run();
    expect_order(run, {0, 0, 1, 1, 1, 0, 0, 0, 0});
  }
}

TEST(NicPriorities, WithoutLevelsJobsTakeTurns) {
  ScriptedMessages run(levels(1));
  run.send(0, message_of(0, 6, 0));
  run.send(kMiddle, message_of(1, 3, 1));
  run.run();
  expect_order(run, {0, 0, 0, 1, 0, 1, 0, 1, 0});
}

TEST(NicPriorities, JobsOfALevelTakeTurns) {
  ScriptedMessages run(levels(3));
  run.send(0, message_of(0, 3, 0));
  run.send(0, message_of(1, 3, 0));
  run.send(kMiddle, message_of(2, 2, 2));
  run.send(kMiddle, message_of(3, 2, 1));
  run.send(kMiddle, message_of(4, 2, 2));
  run.run();
  expect_order(run, {0, 1, 2, 4, 2, 4, 3, 3, 0, 1, 0, 1});
}

// A queue pair that waits in the ring changes its level at once.
TEST(NicPriorities, AChangedPriorityActsAtOnce) {
  ScriptedMessages run(levels(2));
  for (std::uint32_t job = 0; job < 3; ++job) run.send(0, message_of(job, 3, 0));
  run.prefer(kMiddle, 2, 1);
  const Time later = 2 * kMiddle + kMiddle / 3;  // in the middle of the fourth packet
  run.prefer(later, 2, 0);
  run.prefer(later, 1, 1);
  run.run();
  expect_order(run, {0, 1, 2, 2, 1, 1, 0, 2, 0});
}

// The level of a queue pair is that of the message that it serves.
TEST(NicPriorities, AQueuePairRisesWithItsNextMessage) {
  ScriptedMessages run(levels(2));
  run.send(0, message_of(0, 4, 0));
  run.send(0, message_of(1, 2, 0));
  run.send(kMiddle, message_of(0, 1, 1));  // behind message 0 on its queue pair, but of a higher priority
  run.run();
  expect_order(run, {0, 1, 2, 1, 0, 0, 0});
}

}  // namespace
}  // namespace netsim::nic_priorities_test
