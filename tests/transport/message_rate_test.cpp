// Tests messages whose rate limit changes while they run, by exact times on one link, and the bytes that have
// not left.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/scripted_messages.h"

namespace netsim::message_rate_test {
namespace {

using test::ScriptedMessages;

constexpr Bytes kMtu = 4096;
constexpr Bytes kHeaders = 62 + 20, kFirstHeader = 16;  // with the link's overhead
const std::string kPlain =
    "topology: {kind: star, hosts: 3, rate: 100 Gbps, delay: 1 us}\n"
    "network: {switch: {marker: none}}\n"
    "transport: {congestion_control: none}\n";

Time full(BitRate rate) { return transmission_time(kMtu + kHeaders, rate); }
Time first(BitRate rate) { return transmission_time(kMtu + kHeaders + kFirstHeader, rate); }
// Returns when a full packet is at its destination that begins to leave at `begin`.
Time there(Time begin) { return begin + 2 * (full(100 * kGbps) + kMicrosecond); }

Message message_of(Bytes bytes, BitRate limit = 0) {
  Message message;
  message.source = 0;
  message.destination = 1;
  message.bytes = bytes;
  message.traits.rate_limit = limit;
  return message;
}

// The rest of the wait is divided by the factor of the rate.
TEST(MessageRate, RisesDuringAWait) {
  ScriptedMessages run(kPlain);
  const std::size_t message = run.send(0, message_of(4 * kMtu, 10 * kGbps));
  const Time change = kMicrosecond;
  const std::size_t answer = run.set_rate(change, message, 20 * kGbps);
  run.run();
  const Time second = change + (first(10 * kGbps) - change) / 2;
  EXPECT_EQ(run.fates[message].delivered, there(second + 2 * full(20 * kGbps)));
  EXPECT_EQ(run.answers[answer], 1);
}

TEST(MessageRate, FallsDuringAWait) {
  ScriptedMessages run(kPlain);
  const std::size_t message = run.send(0, message_of(3 * kMtu, 20 * kGbps));
  const Time change = kMicrosecond;
  run.set_rate(change, message, 10 * kGbps);
  run.run();
  const Time second = change + (first(20 * kGbps) - change) * 2;
  EXPECT_EQ(run.fates[message].delivered, there(second + full(10 * kGbps)));
}

TEST(MessageRate, ALimitCanEnd) {
  ScriptedMessages run(kPlain);
  const std::size_t message = run.send(0, message_of(4 * kMtu, 10 * kGbps));
  const Time change = kMicrosecond;
  run.set_rate(change, message, 0);
  run.run();
  const Time second = change + (first(10 * kGbps) - change) / 10;
  EXPECT_EQ(run.fates[message].delivered, there(second + 2 * full(100 * kGbps)));
}

TEST(MessageRate, ALimitBeginsWithTheNextPacket) {
  ScriptedMessages run(kPlain);
  const std::size_t message = run.send(0, message_of(4 * kMtu));
  run.set_rate(100 * kNanosecond, message, 10 * kGbps);
  run.run();
  EXPECT_EQ(run.fates[message].delivered, there(first(100 * kGbps) + 2 * full(10 * kGbps)));
}

// A wait after another message of the queue pair keeps its length.
TEST(MessageRate, ConcernsNoOtherMessage) {
  ScriptedMessages run(kPlain);
  run.send(0, message_of(kMtu, 10 * kGbps));
  const std::size_t behind = run.send(0, message_of(kMtu, kGbps));
  run.set_rate(kMicrosecond, behind, 50 * kGbps);
  run.run();
  EXPECT_EQ(run.fates[behind].delivered, first(10 * kGbps) + 2 * (first(100 * kGbps) + kMicrosecond));
}

// However often the rate changes, the bytes that left are those that the rates allow, up to a packet.
TEST(MessageRate, ManyChangesKeepTheMeanRate) {
  ScriptedMessages run(kPlain);
  constexpr int kPackets = 200;
  const std::size_t message = run.send(0, message_of(kPackets * kMtu, 10 * kGbps));
  for (int i = 0; i < 400; ++i)
    run.set_rate((i + 1) * 700 * kNanosecond, message, i % 2 == 0 ? 40 * kGbps : 10 * kGbps);
  run.run();
  const Time all = transmission_time(kPackets * (kMtu + kHeaders), 25 * kGbps);
  EXPECT_NEAR(static_cast<double>(run.fates[message].delivered), static_cast<double>(all),
              static_cast<double>(2 * full(10 * kGbps)));
}

TEST(MessageRate, TheBytesLeftFallPacketByPacket) {
  ScriptedMessages run(kPlain);
  const std::size_t message = run.send(0, message_of(3 * kMtu + 100, 10 * kGbps));
  std::vector<std::size_t> asked{run.left(0, message)};
  for (const Time at : {1, 4, 8, 12}) asked.push_back(run.left(at * kMicrosecond, message));
  const std::size_t late = run.set_rate(12 * kMicrosecond, message, kGbps);
  run.run();
  const std::vector<Bytes> expected{3 * kMtu + 100, 2 * kMtu + 100, kMtu + 100, 100, 0};
  for (std::size_t i = 0; i < asked.size(); ++i) EXPECT_EQ(run.answers[asked[i]], expected[i]) << i;
  EXPECT_EQ(run.answers[late], 0) << "nothing is left to send";
  EXPECT_EQ(run.network->left(MessageHandle()), 0);
}

}  // namespace
}  // namespace netsim::message_rate_test
