// Tests layers of virtual channels in the running network. On graphs of any shape all-to-all traffic arrives,
// with buffers of a few packets, by pauses and by credits, also while links go down.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

#include "tests/support/packet_fixture.h"
#include "tests/topology/graphs.h"

namespace netsim::layers_test {
namespace {

using test::PacketFixture;

const std::vector<std::string> kSmallBuffers{
    "flow_control: credits, credit_buffer: 2300 B",
    "flow_control: pfc, buffer: 2 MB, reserve: 0 B, alpha: 1/65536",
};

std::string network(const std::string& routing, const std::string& buffers, const std::string& more = "") {
  return "transport: {congestion_control: none, mtu: 1 KB, reliability: {kind: irn, reorder_tolerance: "
         "100000, "
         "bdp_cap: 0, timeout_high: 10 s, timeout_low: 10 s}}\nnetwork: {" +
         more + "switch: {marker: none, routing: " + routing + ", " + buffers + "}}\n";
}

// Everyone to everyone, `bytes` each.
void send_all(PacketFixture& f, Bytes bytes) {
  const auto count = static_cast<std::uint32_t>(f.cluster.gpus.size());
  for (std::uint32_t from = 0; from < count; ++from) {
    for (std::uint32_t to = 0; to < count; ++to) {
      if (from != to) f.send(from, to, bytes);
    }
  }
}

TEST(Layers, NothingDeadlocksOnAnyGraph) {
  EXPECT_TRUE(rc::check("all messages arrive, each once", [] {
    const SwitchLinks graph = *random_connected(4, 14, 10);
    const auto layers = *rc::gen::inRange(0, 4);
    const auto routing = *rc::gen::elementOf(std::vector<std::string>{"ecmp", "spray", "adaptive"});
    PacketFixture f(topology_of(graph, ", channel_order: layers, channels: " + std::to_string(layers)) +
                    network(routing, *rc::gen::elementOf(kSmallBuffers)));
    send_all(f, 6'000);
    f.loop.run();
    RC_ASSERT(!f.network->deadlocked());
    RC_ASSERT(f.all_delivered());
    RC_ASSERT(f.delivery_order.size() == f.messages.size());
    RC_ASSERT(f.network->counters().drops == 0u);
    RC_ASSERT(f.network->counters().retransmissions == 0u);
  }));
}

// Ways of up to ten links: a torus without routes of its own, a ring of twenty, chains of long trees with
// links across.
TEST(Layers, CarryAllToAllWhereWaysAreLong) {
  SwitchLinks trees = grid_of({24}, false);
  for (std::uint32_t i = 0; i + 11 < 24; i += 5) trees.links.emplace_back(i, i + 11);
  for (const SwitchLinks& graph : {grid_of({4, 10}, true), ring_of(20), trees}) {
    for (const std::string& buffers : kSmallBuffers) {
      for (const char* routing : {"ecmp", "spray"}) {
        PacketFixture f(topology_of(graph) + network(routing, buffers));
        EXPECT_NE(f.cluster.routes->channels_in_words().find("by layers"), std::string::npos);
        send_all(f, 8'000);
        f.loop.run();
        EXPECT_FALSE(f.network->deadlocked()) << routing << " " << buffers;
        EXPECT_TRUE(f.all_delivered()) << routing << " " << buffers;
        EXPECT_EQ(f.network->counters().drops, 0u);
      }
    }
  }
}

// One channel and the shortest routes deadlock, which the layers prevent.
TEST(Layers, ARingOfTwentyDeadlocksWithoutThem) {
  PacketFixture f(topology_of(ring_of(20), ", channels: 1") +
                  network("ecmp", kSmallBuffers[0], "deadlock_check: note, "));
  for (std::uint32_t i = 0; i < 20; ++i) f.send(i, (i + 7) % 20, 1'000'000);
  f.loop.run();
  EXPECT_TRUE(f.network->deadlocked());
  EXPECT_FALSE(f.network->notes().empty());
}

// Ways are made anew in layers when links go and come, and no note speaks of a cycle.
TEST(Layers, AreFoundAgainWhenLinksFail) {
  for (const char* routing : {"ecmp", "spray"}) {
    PacketFixture f(topology_of(grid_of({4, 10}, true)) +
                    network(routing, kSmallBuffers[0],
                            "detection_delay: 1 us, faults: [{link: s0-s1, down: 10 us, up: 200 us}, "
                            "{link: s17-s21, down: 20 us}, {link: s5-s6, down: 20 us, up: 150 us}], "));
    const auto count = static_cast<std::uint32_t>(f.cluster.gpus.size());
    for (std::uint32_t from = 0; from < count; ++from) {
      for (const std::uint32_t shift : {3U, 13U, 22U}) f.send(from, (from + shift) % count, 200'000);
    }
    f.loop.run();
    EXPECT_FALSE(f.network->deadlocked()) << routing;
    EXPECT_TRUE(f.all_delivered()) << routing;
    EXPECT_TRUE(f.network->notes().empty()) << f.network->notes().front();
  }
}

}  // namespace
}  // namespace netsim::layers_test
