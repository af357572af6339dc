// Compares the counters of ports with independent sums: time on the wire, waiting bytes, acknowledged
// payload.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/packet_fixture.h"
#include "tests/support/star.h"

namespace netsim::counters_test {
namespace {

using test::PacketFixture;
using test::star;

// ---- Time on the wire

// A quarter of the rate from the 100th packet on: those before took their time, those after four times that.
TEST(Busy, CountsEachPacketAtItsRate) {
  const Time packet = transmission_time(4096 + 82, 100 * kGbps), slow = 4 * packet;
  const Time first = 16 * 80, change = first + 100 * packet;
  PacketFixture f(star(2, "switch: {marker: none}, faults: [{link: host0->switch0, rate: 25 Gbps, at: " +
                              std::to_string(change) + " ps}]"));
  f.send(0, 1, 4096 * 300);
  f.loop.run();
  const PortCounters c = f.at("host0", "switch0");
  EXPECT_EQ(c.busy, first + 100 * packet + 200 * slow);
  EXPECT_EQ(c.last_end, c.busy) << "it never rested";
  EXPECT_EQ(c.busy_until(change), change);
  EXPECT_EQ(c.busy_until(c.last_end + 1), c.busy);
}

// A sender that repeats in vain continues long after its message has arrived. Rounded times do not add up to
// more than the run either.
TEST(Busy, IsNeverLongerThanTheRun) {
  for (const char* resolution : {"0 s", "1 ns", "7 ns"}) {
    for (const char* rate : {"100 Gbps", "37 Gbps", "333 Gbps"}) {
      PacketFixture f(star(2, std::string("switch: {marker: none}, transmission_resolution: ") + resolution,
                           ", mtu: 64 B, retransmission_timeout: 3 us, retries: 1000",
                           std::string("delay: 5 us, rate: ") + rate));
      f.send(0, 1, 20'000);
      f.loop.run();
      EXPECT_TRUE(f.all_delivered());
      EXPECT_GT(f.network->counters().retransmissions, 0u);
      for (PortId port = 0; port < f.cluster.graph.port_count(); ++port) {
        const PortCounters c = f.network->port_counters(port);
        EXPECT_GE(c.busy, 0);
        EXPECT_LE(c.busy, c.last_end) << f.cluster.graph.port_name(port);
        EXPECT_LE(c.last_end, f.loop.now());
      }
    }
  }
}

// ---- What waits at a port

// The most that all classes together had waiting at any time, seen after every event.
TEST(MaxQueue, IsThePortsNotTheLargestClasss) {
  PacketFixture f(star(9, "switch: {marker: none, classes: 2, scheduler: drr}"));
  for (std::uint32_t i = 0; i < 8; ++i) f.send_class(i, 8, 60'000, static_cast<std::uint8_t>(i % 2), 300 * i);
  std::vector<Bytes> most(f.cluster.graph.port_count(), 0);
  while (f.loop.run_some(1) > 0) {
    for (PortId port = 0; port < most.size(); ++port)
      most[port] = std::max(most[port], f.network->queued(port));
  }
  for (PortId port = 0; port < most.size(); ++port)
    EXPECT_EQ(f.network->port_counters(port).max_queue, most[port]) << f.cluster.graph.port_name(port);
  EXPECT_EQ(f.network->counters().max_queue, most[f.port("switch0", "host8")]);
  EXPECT_GT(f.network->counters().max_queue, 8 * 30'000);
}

// ---- Payload

TEST(Acknowledged, CountsPayload) {
  for (const Bytes bytes : {64, 4096, 4097, 100'000}) {
    PacketFixture f(star(2, "switch: {marker: none}", ", queue_pairs: 1"));
    for (int i = 0; i < 10; ++i) f.send(0, 1, bytes);
    Bytes before = 0;
    while (f.loop.run_some(1) > 0) {
      if (f.network->queue_pairs().empty()) continue;
      const Bytes now = f.network->queue_pair_view(f.network->queue_pairs()[0]).acknowledged;
      EXPECT_GE(now, before);
      EXPECT_LE(now, f.network->counters().bytes_delivered + bytes) << "delivered counts whole messages";
      before = now;
    }
    EXPECT_EQ(before, 10 * bytes);
  }
}

}  // namespace
}  // namespace netsim::counters_test
