// Tests that a queue pair that served only one message is used again without any other effect.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/support/packet_fixture.h"

namespace netsim::test {
namespace {

constexpr std::uint32_t kFlows = 200;

// Flows one after the other from three hosts to a fourth, each on a channel of its own, further apart than
// short timers last.

class OneByOne : public PacketFixture {
 public:
  OneByOne(const std::string& more, bool only_message, bool to_the_end = true)
      : PacketFixture("topology: {kind: star, hosts: 4, rate: 100 Gbps, delay: 1 us}\n" + more) {
    for (std::uint32_t i = 0; i < kFlows; ++i) {
      Message message;
      message.source = i % 3;
      message.destination = 3;
      message.bytes = 1 + 997 * static_cast<Bytes>(i);
      message.traits.channel = i;
      message.traits.own_queue_pair = true;
      message.traits.only_message = only_message;
      send(message, i * 100 * kMicrosecond);
    }
    // The test looks at ended flows between slices.
    while (to_the_end && loop.run_some(100) > 0) look();
  }
  std::size_t most_pairs = 0;   // at a time
  std::uint32_t most_uses = 0;  // of one number

 private:
  void look() {
    const std::vector<std::uint32_t> pairs = network->queue_pairs();
    most_pairs = std::max(most_pairs, pairs.size());
    for (const std::uint32_t id : pairs)
      most_uses = std::max(most_uses, network->queue_pair_view(id).use + 1);
  }
};

const std::string kShortTimers = "transport: {retransmission_timeout: 50 us, retries: 1000}\n";

TEST(Recycling, UsesQueuePairsAgainAndChangesNothing) {
  const OneByOne kept(kShortTimers, false), recycled(kShortTimers, true);
  EXPECT_TRUE(recycled.all_delivered());
  EXPECT_EQ(kept.most_pairs, kFlows);
  EXPECT_LE(recycled.most_pairs, 6u);
  EXPECT_EQ(recycled.delivered, kept.delivered);
  EXPECT_EQ(recycled.sent, kept.sent);
  EXPECT_EQ(recycled.network->packets_fingerprint(), kept.network->packets_fingerprint());
  EXPECT_EQ(recycled.network->events_fingerprint(), kept.network->events_fingerprint());
}

// Timers of the usual length are pending for 67 ms, longer than all flows take. They remain without their
// queue pairs, and fingerprints do not change.
TEST(Recycling, DoesNotWaitForRetransmissionTimers) {
  const OneByOne kept("", false), recycled("", true);
  EXPECT_TRUE(recycled.all_delivered());
  EXPECT_EQ(kept.most_pairs, kFlows);
  EXPECT_LE(recycled.most_pairs, 6u);
  EXPECT_EQ(recycled.loop.executed(), kept.loop.executed());
  EXPECT_EQ(recycled.network->packets_fingerprint(), kept.network->packets_fingerprint());
  EXPECT_EQ(recycled.network->events_fingerprint(), kept.network->events_fingerprint());
}

// Wherever the run is cut: a timer counts when it ends, whether or not its queue pair is there still.
TEST(Recycling, IsNotSeenInTheMiddleEither) {
  OneByOne kept("", false, false), recycled("", true, false);
  for (Time until = 0; until < 90 * kMillisecond; until += 307 * kMicrosecond) {
    while (kept.loop.run_some(100, until) > 0) continue;
    while (recycled.loop.run_some(100, until) > 0) continue;
    ASSERT_EQ(recycled.network->events_fingerprint(), kept.network->events_fingerprint()) << until;
  }
  EXPECT_TRUE(recycled.all_delivered());
  EXPECT_LE(recycled.network->queue_pairs().size(), 6u);
}

// Ended queue pairs are kept until a sampler has seen them.
TEST(Recycling, KeepsQueuePairsUntilTheyHaveBeenSeen) {
  OneByOne run("", true, false);
  run.network->keep_ended();
  while (run.loop.run_some(100, 2 * kMillisecond) > 0) continue;
  EXPECT_EQ(run.network->queue_pairs().size(), 21u);  // at 0, 0.1, ... 2 ms
  run.network->forget_ended();
  while (run.loop.run_some(100, 10 * kMillisecond) > 0) continue;
  EXPECT_GT(run.network->queue_pairs().size(), 70u);
  EXPECT_LE(run.network->queue_pairs().size(), 85u);
}

// A lost packet may still arrive as far as the queue pair knows, so the queue pair stays; the others do not.
TEST(Recycling, LeavesQueuePairsThatLostPackets) {
  const std::string lossy = kShortTimers + "network: {faults: [{link: host0->switch0, loss: 0.02}]}\n";
  const OneByOne kept(lossy, false), recycled(lossy, true);
  EXPECT_TRUE(recycled.all_delivered());
  EXPECT_GT(recycled.network->counters().lost, 10u);
  EXPECT_GT(recycled.network->queue_pairs().size(), 10u);
  EXPECT_LT(recycled.network->queue_pairs().size(), kFlows / 2);
  EXPECT_EQ(recycled.delivered, kept.delivered);
  EXPECT_EQ(recycled.network->packets_fingerprint(), kept.network->packets_fingerprint());
  EXPECT_EQ(recycled.network->events_fingerprint(), kept.network->events_fingerprint());
}

// Selective repeat keeps more about a queue pair; packets that are routed one by one keep theirs.
TEST(Recycling, WorksWithSelectiveRepeatAndNotWithSpraying) {
  const std::string irn = "transport: {reliability: irn}\n";
  const OneByOne kept(irn, false), recycled(irn, true);
  EXPECT_LE(recycled.most_pairs, 6u);
  EXPECT_EQ(recycled.delivered, kept.delivered);
  EXPECT_EQ(recycled.network->events_fingerprint(), kept.network->events_fingerprint());
  const OneByOne sprayed(irn + "network: {switch: {routing: spray}}\n", true);
  EXPECT_TRUE(sprayed.all_delivered());
}

// The number stays the same, the view says that the queue pair is another one.
TEST(Recycling, TellsUsesApart) {
  EXPECT_GT(OneByOne(kShortTimers, true).most_uses, 20u);
  EXPECT_EQ(OneByOne(kShortTimers, false).most_uses, 1u);
}

}  // namespace
}  // namespace netsim::test
