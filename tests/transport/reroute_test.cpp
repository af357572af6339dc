// Routes change repeatedly. Paths that a queue pair has had before are used again, so that a link that flaps
// costs no memory.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/packet_fixture.h"

namespace netsim::reroute_test {
namespace {

using test::PacketFixture;

constexpr Time kPeriod = 40 * kMicrosecond;

// The link goes down at each multiple of the period, for half of it.
std::string flapping(int times, const std::string& link) {
  std::string faults;
  for (int i = 1; i <= times; ++i) {
    faults += std::string(i == 1 ? "" : ", ") + "{link: " + link + ", down: " + std::to_string(i * kPeriod) +
              " ps, up: " + std::to_string(i * kPeriod + kPeriod / 2) + " ps}";
  }
  return "topology: {kind: fat_tree, k: 4, rate: 100 Gbps, delay: 1 us}\n"
         "transport: {congestion_control: none, retransmission_timeout: 100 us, retries: 1000, "
         "reliability: "
         "irn}\nnetwork: {detection_delay: 2 us, faults: [" +
         faults + "]";
}

// Returns the steps of paths after a number of flaps, with messages between eight pairs of hosts all the
// time. `quiet`: none is in flight when the link goes down or comes back.
std::size_t steps_after(int flaps, const std::string& link, const std::string& more, bool quiet,
                        bool only_message, bool hints = false) {
  PacketFixture f(flapping(flaps, link) + more + "}\n");
  std::uint32_t channel = 0;
  for (int half = 0; half < 600; ++half) {
    for (std::uint32_t from = 0; from < 8; ++from) {
      Message message;
      message.source = from;
      message.destination = 15 - from;
      message.bytes = quiet ? 4096 : 40'000;
      message.traits.own_queue_pair = true;
      message.traits.channel = only_message ? channel++ : from % 4;
      message.traits.only_message = only_message;
      if (hints) message.traits.path_hint = static_cast<std::uint32_t>(half) % 5;
      f.send(message, half * (kPeriod / 2) + 4 * kMicrosecond);
    }
  }
  f.loop.run();
  EXPECT_TRUE(f.all_delivered());
  if (!hints) {
    EXPECT_EQ(f.network->counters().lost == 0, quiet || flaps == 0);
  }
  return f.network->path_steps();
}

TEST(Reroute, ALinkThatFlapsCostsNoMemory) {
  for (const char* link : {"edge0-agg0", "agg0-core0", "host0-edge0"}) {
    for (const char* more : {"", ", switch: {routing: spray}"}) {
      const std::size_t few = steps_after(3, link, more, false, false);
      EXPECT_EQ(steps_after(250, link, more, false, false), few) << link << more;
      EXPECT_GE(few, steps_after(0, link, more, false, false));
    }
  }
}

TEST(Reroute, NorWithPathHints) {
  const std::size_t few = steps_after(50, "edge0-agg0", "", false, false, true);
  EXPECT_EQ(steps_after(250, "edge0-agg0", "", false, false, true), few);
  EXPECT_GT(few, steps_after(50, "edge0-agg0", "", false, false));
}

// Queue pairs serve one message after the other, between different hosts. The memory of former paths is used
// for the next ones.
TEST(Reroute, NorWithQueuePairsThatAreUsedAgain) {
  const std::size_t some = steps_after(50, "edge0-agg0", "", true, true);
  EXPECT_EQ(steps_after(250, "edge0-agg0", "", true, true), some);
  EXPECT_LT(some, 2 * steps_after(0, "edge0-agg0", "", true, true));
}

}  // namespace
}  // namespace netsim::reroute_test
