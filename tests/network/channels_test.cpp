// Virtual channels, detours and escapes in the running network: nothing deadlocks, everything arrives, and
// the capacities are those of theory.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/core/random.h"
#include "sim/network/class_arbiter.h"
#include "tests/support/packet_fixture.h"
#include "tests/support/test_size.h"

namespace netsim::channels_test {
namespace {

using test::PacketFixture;

// ---- The arbiter

TEST(ClassArbiter, ServesTheChannelsOfAClassInTurn) {
  ClassArbiter arbiter({}, 1, 2, 3);  // queue q: class q % 2 in channel q / 2
  const auto head = [](std::uint32_t) { return Bytes{1000}; };
  std::vector<std::uint32_t> served;
  served.reserve(6);
  for (int i = 0; i < 6; ++i) served.push_back(arbiter.select(0, 0b111111, head));
  EXPECT_EQ(served, (std::vector<std::uint32_t>{0, 2, 4, 0, 2, 4}))
      << "class 0 goes first, its channels in turn";
  served.clear();
  for (int i = 0; i < 4; ++i) served.push_back(arbiter.select(0, 0b101010, head));
  EXPECT_EQ(served, (std::vector<std::uint32_t>{1, 3, 5, 1}));
  EXPECT_EQ(arbiter.select(0, 0b100010, head), 5U) << "that of channel 1 has nothing";
}

TEST(ClassArbiter, ChannelsShareTheirClassesQuantum) {
  DisciplinePlan plan;
  plan.kind = DisciplinePlan::Kind::deficit_round_robin;
  plan.shares = {{0, 3000}, {1, 1000}};
  ClassArbiter arbiter(plan, 1, 2, 2);
  std::vector<int> served(4, 0);
  for (int i = 0; i < 4000; ++i)
    ++served[arbiter.select(0, 0b1111, [](std::uint32_t) { return Bytes{1000}; })];
  EXPECT_NEAR(served[0], 1500, 2);
  EXPECT_NEAR(served[2], 1500, 2);
  EXPECT_NEAR(served[1], 500, 2);
  EXPECT_NEAR(served[3], 500, 2);
}

// ---- No deadlock

const char* const kFabrics[] = {
    "{kind: torus, sizes: [5]}",
    "{kind: torus, sizes: [4, 4]}",
    "{kind: torus, sizes: [3, 3, 3]}",
    "{kind: torus, sizes: [4, 4], wrap: false}",
    "{kind: torus, sizes: [3, 6], twist: true}",
    "{kind: hyperx, sizes: [3, 3], hosts_per_switch: 2}",
    "{kind: hyperx, sizes: [2, 2, 2, 2]}",
    "{kind: dragonfly, p: 2, a: 4, h: 1, g: 5}",
    "{kind: dragonfly, p: 1, a: 3, h: 2, g: 4}",
    "{kind: dragonfly_plus, p: 2, leaves: 2, spines: 2, h: 2, g: 4}",
};
const char* const kRouting[] = {"ecmp",     "spray",   "{kind: spray, choice: round_robin}",
                                "adaptive", "valiant", "{kind: valiant, per: flow}",
                                "ugal"};

std::string network(const std::string& topology, const std::string& routing, const std::string& more) {
  return "topology: " + topology +
         "\ntransport: {congestion_control: none, mtu: 1 KB, reliability: {kind: irn, reorder_tolerance: "
         "100000, "
         "bdp_cap: 0, timeout_high: 10 s, timeout_low: 10 s}}\nnetwork: {switch: {marker: none, routing: " +
         routing + ", " + more + "}}\n";
}

// Buffers of a few packets: every full one is felt at once.
constexpr const char* kSmallBuffers[] = {
    "flow_control: credits, credit_buffer: 2300 B",
    "flow_control: pfc, buffer: 2 MB, reserve: 0 B, alpha: 1/65536",
};

TEST(Channels, NothingDeadlocksWithBuffersOfAFewPackets) {
  EXPECT_TRUE(rc::check("all messages arrive, each once", [] {
    const std::string yaml = network(
        *rc::gen::elementOf(std::vector<std::string>(std::begin(kFabrics), std::end(kFabrics))),
        *rc::gen::elementOf(std::vector<std::string>(std::begin(kRouting), std::end(kRouting))),
        *rc::gen::elementOf(std::vector<std::string>(std::begin(kSmallBuffers), std::end(kSmallBuffers))));
    PacketFixture f(yaml);
    const auto count = static_cast<std::uint32_t>(f.cluster.gpus.size());
    const bool everyone = *rc::gen::arbitrary<bool>();
    const auto shift = *rc::gen::inRange<std::uint32_t>(1, count);
    const Bytes bytes = everyone ? 6'000 : 80'000;
    for (std::uint32_t from = 0; from < count; ++from) {
      for (std::uint32_t to = 0; to < count; ++to) {
        if (from != to && (everyone || to == (from + shift) % count)) f.send(from, to, bytes);
      }
    }
    f.loop.run();
    RC_ASSERT(!f.network->deadlocked());
    RC_ASSERT(f.all_delivered());
    RC_ASSERT(f.delivery_order.size() == f.messages.size());
    RC_ASSERT(f.network->counters().drops == 0u);
    RC_ASSERT(f.network->counters().retransmissions == 0u);
  }));
}

// Fabrics whose adaptive packets escape.
const char* const kEscaping[] = {
    "{kind: torus, sizes: [8]}",
    "{kind: torus, sizes: [4, 4]}",
    "{kind: torus, sizes: [8, 8]}",
    "{kind: torus, sizes: [4, 4, 4]}",
    "{kind: torus, sizes: [6, 6], wrap: false}",
    "{kind: torus, sizes: [3, 4, 3], wrap: false}",
    "{kind: torus, sizes: [4, 8], twist: true}",
    "{kind: torus, sizes: [4, 4, 8], twist: true}",
    "{kind: hyperx, sizes: [4, 4], hosts_per_switch: 2}",
    "{kind: hyperx, sizes: [2, 2, 2, 2], hosts_per_switch: 2}",
    "{kind: dragonfly, p: 2, a: 4, h: 2, g: 9}",
    "{kind: dragonfly_plus, p: 2, leaves: 2, spines: 2, h: 2, g: 4}",
};

struct Escaping {
  std::string fabric, routing, buffers;
};
void PrintTo(const Escaping& one, std::ostream* out) {
  *out << one.fabric << ", " << one.routing << ", " << one.buffers;
}
std::vector<Escaping> all_escaping() {
  std::vector<Escaping> all;
  for (const char* fabric : kEscaping) {
    for (const char* routing : {"adaptive", "spray", "{kind: spray, choice: round_robin}"}) {
      for (const char* buffers : kSmallBuffers) all.push_back({fabric, routing, buffers});
    }
  }
  return all;
}
class EscapingPackets : public ::testing::TestWithParam<Escaping> {
 protected:
  // Whether all arrive when everyone sends `bytes` to those that it `wants`, all at once.
  template <class Wants>
  static void expect_delivery(Bytes bytes, Wants wants) {
    const Escaping& one = GetParam();
    PacketFixture f(network(one.fabric, one.routing, one.buffers));
    const auto count = static_cast<std::uint32_t>(f.cluster.gpus.size());
    for (std::uint32_t from = 0; from < count; ++from) {
      for (std::uint32_t i = 1; i < count; ++i) {
        const std::uint32_t to = (from + i) % count;
        if (wants(from, to, count)) f.send(from, to, bytes);
      }
    }
    f.loop.run();
    EXPECT_FALSE(f.network->deadlocked());
    EXPECT_TRUE(f.all_delivered());
    EXPECT_EQ(f.network->counters().drops, 0U);
  }
};

TEST_P(EscapingPackets, OfAnAllToAllAllArrive) {
  expect_delivery(6'000, [](auto, auto, auto) { return true; });
}

// Packets that continue in adaptive channels fill the buffer of an escape channel. They must not wait for
// others that escape elsewhere. Otherwise a torus of 8 x 8 stalls, and a twisted one of 4 x 4 x 8.
TEST_P(EscapingPackets, OfPermutationsAllArrive) {
  expect_delivery(200'000, [](auto from, auto to, auto count) { return to == count - 1 - from; });
  expect_delivery(400'000,
                  [](auto from, auto to, auto count) { return to == (from + count / 2 - 1) % count; });
  expect_delivery(200'000, [](auto from, auto to, auto count) { return to == (5 * from + 3) % count; });
}

// Each fifth case has every fabric, and every routing with each kind of buffers.
INSTANTIATE_TEST_SUITE_P(Fabrics, EscapingPackets,
                         ::testing::ValuesIn(test::share_of(all_escaping(), 5, 11)));

TEST(Channels, OneChannelDeadlocksWhereTheCheckSaysSo) {
  const std::string yaml = network("{kind: torus, sizes: [8], channels: 1}", "ecmp", kSmallBuffers[0]);
  EXPECT_THROW(PacketFixture{yaml}, ConfigError);
  std::string unchecked = yaml;
  unchecked.replace(unchecked.find("network: {"), 10, "network: {deadlock_check: note, ");
  PacketFixture f(unchecked);
  ASSERT_FALSE(f.network->notes().empty());
  EXPECT_NE(f.network->notes()[0].find("cycle, which is a deadlock: router"), std::string::npos);
  for (std::uint32_t i = 0; i < 8; ++i) f.send(i, (i + 3) % 8, 1'000'000);
  f.loop.run();
  EXPECT_TRUE(f.network->deadlocked());
}

TEST(Channels, AClassHasAllOfThem) {
  const std::string two =
      network("{kind: torus, sizes: [6]}", "ecmp", std::string(kSmallBuffers[0]) + ", classes: 2");
  PacketFixture f(two);
  for (std::uint32_t i = 0; i < 6; ++i) {
    f.send_class(i, (i + 2) % 6, 200'000, 0);
    f.send_class(i, (i + 2) % 6, 200'000, 1);
  }
  f.loop.run();
  EXPECT_TRUE(f.all_delivered());
  const std::string four = network("{kind: torus, sizes: [6]}", "ecmp", "classes: 4");
  try {
    PacketFixture g(four);
    ADD_FAILURE() << "4 x 2 queues were accepted";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("4 data classes in 2 virtual channels"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("network.switch.classes"), std::string::npos);
  }
}

TEST(Channels, DetoursNeedIntermediates) {
  try {
    PacketFixture f(network("{kind: star, hosts: 4}", "valiant", "classes: 1"));
    ADD_FAILURE() << "a star has no intermediates";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("network.switch.routing: the topology has no intermediates"),
              std::string::npos);
  }
}

// Links that are down: packets go round them, whatever the routing, and a note tells where that is no longer
// safe.
TEST(Channels, PacketsGoRoundLinksThatAreDown) {
  for (const char* routing : {"ecmp", "adaptive", "valiant", "ugal"}) {
    std::string yaml = network("{kind: torus, sizes: [4, 4]}", routing, "flow_control: credits");
    yaml.replace(
        yaml.find("network: {"), 10,
        "network: {detection_delay: 1 us, faults: [{link: router0_0-router1_0, down: 10 us, up: 300 us}], ");
    PacketFixture f(yaml);
    for (std::uint32_t i = 0; i < 16; ++i) f.send(i, (i + 5) % 16, 1'000'000);
    f.loop.run();
    EXPECT_TRUE(f.all_delivered()) << routing;
  }
}

// ---- Capacity

// Returns the share of injected bytes that the network delivers. Host i of a group sends at a share of its
// rate to hosts of the next group, or to all hosts.
double delivered(const std::string& topology, std::uint32_t group, const std::string& routing, double load,
                 bool adversarial) {
  constexpr Time kBegin = 300 * kMicrosecond, kEnd = 600 * kMicrosecond;
  PacketFixture f(network(topology, routing, "flow_control: credits, credit_buffer: 256 KB"));
  const auto count = static_cast<std::uint32_t>(f.cluster.gpus.size());
  RandomStream random(1, "targets");
  for (std::uint32_t from = 0; from < count; ++from) {
    const std::uint32_t next = (from / group + 1) * group;
    for (std::uint32_t i = 0; i < 8; ++i) {
      const std::uint32_t other = 1 + static_cast<std::uint32_t>(random.below(count - 1));
      Message message;
      message.source = from;
      message.destination = adversarial ? (next + (from + i) % group) % count : (from + other) % count;
      message.bytes = 10'000'000;
      message.traits.channel = i;
      message.traits.own_queue_pair = true;
      message.traits.rate_limit = static_cast<BitRate>(load / 8 * 100e9);
      f.send(message, 0);
    }
  }
  const auto packets_at = [&](Time time) {
    f.loop.run(time);
    return f.network->counters().packets;
  };
  const std::uint64_t before = packets_at(kBegin), after = packets_at(kEnd);
  const double wire = 8.0 * 1062 + 8 * 20;  // payload, RoCE headers, Ethernet's gap
  return static_cast<double>(after - before) * wire / (1e-12 * static_cast<double>(kEnd - kBegin)) /
         (100e9 * count);
}

// Kim et al.: all of group i to group i + 1, one cable between two groups.
constexpr const char* kDragonfly = "{kind: dragonfly, p: 2, a: 4, h: 2, g: 9, rate: 100 Gbps, delay: 100 ns}";

TEST(DragonflyCapacity, MinimalIsThatOfOneCable) {
  EXPECT_NEAR(delivered(kDragonfly, 8, "ecmp", 1, true), 1.0 / 8, 0.1 / 8);  // 1 / (a p)
}

TEST(DragonflyCapacity, ValiantIsHalfOfAllCables) {
  EXPECT_NEAR(delivered(kDragonfly, 8, "valiant", 1, true), 0.5, 0.05);  // h / (2 p)
}

TEST(DragonflyCapacity, UgalIsAsGoodAsTheBetterOne) {
  for (const bool adversarial : {true, false}) {
    // The quick suite has the light load of uniform traffic and the heavy one of adversarial traffic.
    for (const double load : test::full_size() ? std::vector<double>{0.10, 0.45}
                                               : std::vector<double>{adversarial ? 0.45 : 0.10}) {
      const double best = std::max(delivered(kDragonfly, 8, "ecmp", load, adversarial),
                                   delivered(kDragonfly, 8, "valiant", load, adversarial));
      EXPECT_NEAR(delivered(kDragonfly, 8, "ugal", load, adversarial), best, 0.1 * best)
          << (adversarial ? "adversarial " : "uniform ") << load;
    }
  }
}

// Every router of a torus sends to both neighbours in each dimension at once. These are the rings of all
// dimensions in both directions. All 2 d links of each router carry their message from the beginning to the
// end.
TEST(TorusCapacity, NeighbourRingsSaturateAllLinks) {
  constexpr Bytes kBytes = 10'000'000;
  const std::vector<std::vector<std::uint32_t>> all{{8}, {4, 6}, {3, 4, 5}, {3, 3, 4, 3}};
  for (const std::vector<std::uint32_t>& sizes : test::share_of(all, 2, 2)) {
    std::string text;
    std::uint32_t routers = 1;
    for (const std::uint32_t size : sizes) {
      text += (text.empty() ? "" : ", ") + std::to_string(size);
      routers *= size;
    }
    PacketFixture f("topology: {kind: torus, sizes: [" + text +
                    "], rate: 100 Gbps, delay: 100 ns}\ntransport: {congestion_control: none}\n");
    for (std::uint32_t from = 0; from < routers; ++from) {
      std::uint32_t below = 1;  // routers of a slice, the first dimension fastest
      for (const std::uint32_t size : sizes) {
        const std::uint32_t place = from / below % size;
        f.send(from, from - place * below + (place + 1) % size * below, kBytes);
        f.send(from, from - place * below + (place + size - 1) % size * below, kBytes);
        below *= size;
      }
    }
    f.loop.run();
    ASSERT_TRUE(f.all_delivered());
    const Time end = *std::max_element(f.delivered.begin(), f.delivered.end());
    std::size_t links = 0;
    for (PortId port = 0; port < f.cluster.graph.port_count(); ++port) {
      if (f.cluster.graph.port_name(port).find("->router") == std::string::npos ||
          f.cluster.graph.port_name(port).rfind("router", 0) != 0)
        continue;
      ++links;
      EXPECT_GE(static_cast<double>(f.network->port_counters(port).busy), 0.99 * static_cast<double>(end))
          << f.cluster.graph.port_name(port);
    }
    EXPECT_EQ(links, std::size_t{2} * sizes.size() * routers);
  }
}

}  // namespace
}  // namespace netsim::channels_test
