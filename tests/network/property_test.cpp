// Does the network keep its promises on random traffic? Conservation, losslessness, order, pauses that end,
// symmetry.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "sim/core/random.h"
#include "sim/network/fabric.h"
#include "tests/support/packet_fixture.h"

namespace netsim::property_test {
namespace {

using test::PacketFixture;

std::string random_cluster() {
  const auto kind = *rc::gen::inRange(0, 3);
  if (kind == 0) return "topology: {kind: star, hosts: 9, rate: 100 Gbps, delay: 1 us}\n";
  if (kind == 1) return "topology: {kind: fat_tree, k: 4, rate: 100 Gbps, delay: 600 ns}\n";
  return "topology: {kind: fat_tree, k: 4, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 2\n";
}

std::string random_network() {
  const std::string control =
      *rc::gen::element<std::string>("none", "dcqcn", "{kind: dcqcn, profile: sigcomm15}");
  const std::string buffer = *rc::gen::element<std::string>("2 MB", "4 MB", "32 MB");
  const std::string marker =
      *rc::gen::element<std::string>("none", "red", "{kind: red, kmin: 10 KB, kmax: 100 KB}");
  return "transport: {congestion_control: " + control +
         ", acknowledge: {every: " + std::to_string(1 << *rc::gen::inRange(0, 9)) +
         "}}\nnetwork: {switch: {buffer: " + buffer + ", marker: " + marker + "}}\n";
}

TEST(Property, BytesAreConservedNothingIsDroppedOrderIsKeptAndPausesEnd) {
  EXPECT_TRUE(rc::check([] {
    PacketFixture f(random_cluster() + random_network(), *rc::gen::arbitrary<std::uint64_t>());
    const auto gpus = static_cast<std::uint32_t>(f.cluster.gpus.size());
    const int count = *rc::gen::inRange(1, 60);
    Bytes scale_out = 0;
    for (int i = 0; i < count; ++i) {
      const auto from = *rc::gen::inRange<std::uint32_t>(0, gpus);
      const auto to = (from + *rc::gen::inRange<std::uint32_t>(1, gpus)) % gpus;
      const auto bytes = *rc::gen::inRange<Bytes>(1, 400'000);
      f.send(from, to, bytes, *rc::gen::inRange<Time>(0, 20 * kMicrosecond),
             *rc::gen::inRange<std::uint32_t>(0, 6));
      if (!f.cluster.same_host(from, to)) scale_out += bytes;
    }
    f.loop.run();
    const NetworkCounters c = f.network->counters();
    RC_ASSERT(c.drops == 0u);
    RC_ASSERT(c.retransmissions == 0u);
    RC_ASSERT(c.bytes_sent == scale_out);
    RC_ASSERT(c.bytes_delivered == scale_out);
    RC_ASSERT(c.flows_done == f.flows.size());
    RC_ASSERT(c.pfc_pauses == c.pfc_resumes);
    RC_ASSERT(f.network->waiting(10).empty());
    for (std::size_t i = 0; i < f.messages.size(); ++i) {
      RC_ASSERT(f.delivered[i] >= 0);
      RC_ASSERT(f.sent[i] >= f.delivered[i] ||
                f.cluster.same_host(f.messages[i].source, f.messages[i].destination) || f.sent[i] > 0);
    }
    // In order within each (source, destination, queue pair): starts order deliveries.
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Time> last_start;
    for (const FlowRecord& flow : f.flows) {
      Time& last = last_start[{flow.message.source, flow.message.destination, flow.queue_pair}];
      RC_ASSERT(flow.start >= last);
      last = flow.start;
    }
  }));
}

// Packets of one priority leave a port in the order in which they came, whatever else waits there; higher
// priorities overtake.
TEST(Property, QueuesAreFifoAndPrioritiesStrict) {
  EXPECT_TRUE(rc::check([] {
    Graph graph;
    const NodeId hub = graph.add_node(NodeKind::fabric_switch, graph.add_atom(), "switch");
    const NodeId sink = graph.add_node(NodeKind::nic, graph.add_atom(), "sink");
    const PortId port = graph.add_link(hub, sink, LinkSpec{});
    Engine loop;
    Fabric fabric(loop, graph, nullptr, Partition(), FabricParameters{}, ConfigNode(), 4096, 1);
    struct Seen {
      Fabric* fabric;
      std::vector<Packet> packets;
    } seen{&fabric, {}};
    loop.loop().set_handler(
        EventKind::deliver,
        [](void* s, const Event& e) {
          auto* self = static_cast<Seen*>(s);
          self->packets.push_back(self->fabric->shard(0).packets()[static_cast<std::uint32_t>(e.argument)]);
        },
        &seen);
    const std::uint32_t path = fabric.add_path({make_step(StepKind::deliver, 0)});
    const int count = *rc::gen::inRange(1, 200);
    for (int i = 0; i < count; ++i) {
      const std::uint32_t index = fabric.shard(0).packets().allocate();
      Packet& k = fabric.shard(0).packets()[index];
      k = Packet{};
      k.psn = static_cast<std::uint32_t>(i);
      k.bytes = *rc::gen::inRange<std::uint32_t>(64, 4200);
      k.path = path;
      k.ingress = port ^ 1U;
      k.kind = PacketKind::data;
      k.set_priority(*rc::gen::element(kCnpPriority, kDataPriority));
      fabric.shard(0).enqueue(port, index);
    }
    loop.run();
    RC_ASSERT(seen.packets.size() == static_cast<std::size_t>(count));
    std::array<std::int64_t, 8> last;
    last.fill(-1);
    for (std::size_t i = 0; i < seen.packets.size(); ++i) {
      const Packet& k = seen.packets[i];
      RC_ASSERT(static_cast<std::int64_t>(k.psn) > last[k.priority]);
      last[k.priority] = k.psn;
      // The first packet went out at once; after it nothing of lower priority precedes what waited from the
      // start.
      if (i > 1) RC_ASSERT(seen.packets[i - 1].priority <= k.priority || seen.packets[i].psn == 0u);
    }
  }));
}

// On a star without marking and congestion control, hosts are interchangeable: permuting them permutes the
// flow times.
TEST(Property, PermutingHostsOfAStarPermutesFlowTimes) {
  EXPECT_TRUE(rc::check([] {
    constexpr std::uint32_t kHosts = 10;
    const std::string yaml =
        "topology: {kind: star, hosts: 10, rate: 100 Gbps, delay: 1 us}\n"
        "transport: {congestion_control: none}\nnetwork: {switch: {marker: none}}\n";
    std::vector<std::uint32_t> permutation(kHosts);
    std::iota(permutation.begin(), permutation.end(), 0);
    RandomStream random(*rc::gen::arbitrary<std::uint64_t>(), "permutation");
    for (std::uint32_t i = kHosts - 1; i > 0; --i)
      std::swap(permutation[i], permutation[random.below(i + 1)]);
    PacketFixture plain(yaml), permuted(yaml);
    const int flows = *rc::gen::inRange(1, 9);
    for (int i = 0; i < flows; ++i) {
      // Each host sends at most one flow, and starts differ modulo a byte's time (80 ps). So equal arithmetic
      // never brings two packets of different senders to a queue at the same picosecond.
      const auto from = static_cast<std::uint32_t>(i);
      const auto to = kHosts - 1;
      const Bytes bytes = *rc::gen::inRange<Bytes>(1, 300'000);
      const Time at = *rc::gen::inRange<Time>(0, 100'000) * 80 + 7 * i;
      plain.send(from, to, bytes, at);
      permuted.send(permutation[from], permutation[to], bytes, at);
    }
    plain.loop.run();
    permuted.loop.run();
    RC_ASSERT(plain.delivered == permuted.delivered);
    RC_ASSERT(plain.sent == permuted.sent);
  }));
}

TEST(Pfc, ComputedHeadroomIsEnoughForAnyIncastAndHalfOfItIsNot) {
  for (const std::uint32_t n : {2U, 4U, 16U, 64U}) {
    PacketFixture f("topology: {kind: star, hosts: " + std::to_string(n + 1) +
                    ", rate: 100 Gbps, delay: 1 us}\ntransport: {congestion_control: none}\n"
                    "network: {switch: {marker: none, buffer: 8 MB}}\n");
    for (std::uint32_t i = 0; i < n; ++i) f.send(i, n, 3'000'000);
    f.loop.run();
    const NetworkCounters c = f.network->counters();
    EXPECT_EQ(c.drops, 0u) << n;
    EXPECT_EQ(c.bytes_delivered, 3'000'000 * static_cast<Bytes>(n));
    EXPECT_GT(c.pfc_pauses, 0u) << n;
    EXPECT_EQ(c.pfc_pauses, c.pfc_resumes) << n;
  }
  PacketFixture half(
      "topology: {kind: star, hosts: 17, rate: 100 Gbps, delay: 1 us}\ntransport: {congestion_control: "
      "none}\n"
      "network: {switch: {marker: none, buffer: 4 MB, headroom: 16 KB}}\n");
  for (std::uint32_t i = 0; i < 16; ++i) half.send(i, 16, 3'000'000);
  half.loop.run();
  EXPECT_GT(half.network->counters().drops, 0u);
  EXPECT_EQ(half.network->counters().bytes_delivered, 48'000'000) << "go-back-N recovers what was dropped";
  ASSERT_EQ(half.network->notes().size(), 1u);
  EXPECT_NE(half.network->notes()[0].find("headroom"), std::string::npos);
}

TEST(Pfc, HeadroomAndReservesBeyondTheBufferAreRefused) {
  try {
    PacketFixture f(
        "topology: {kind: star, hosts: 64, rate: 100 Gbps, delay: 1 us}\nnetwork: {switch: {buffer: 1 "
        "MB}}\n");
    FAIL();
  } catch (const ConfigError& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("test.yaml:2:28"), std::string::npos) << what;
    EXPECT_NE(what.find("1000000 B"), std::string::npos) << what;
    EXPECT_EQ(error.code(), ExitCode::usage);
  }
}

// Lossy: without PFC the switch drops above the dynamic threshold and go-back-N repairs it.
TEST(Pfc, WithoutItDropsAreRepairedByGoBackN) {
  PacketFixture f(
      "topology: {kind: star, hosts: 9, rate: 100 Gbps, delay: 1 us}\ntransport: {congestion_control: none}\n"
      "network: {switch: {marker: none, buffer: 1 MB, flow_control: none}}\n");
  for (std::uint32_t i = 0; i < 8; ++i) f.send(i, 8, 1'000'000);
  f.loop.run();
  const NetworkCounters c = f.network->counters();
  EXPECT_GT(c.drops, 0u);
  EXPECT_GT(c.retransmissions, 0u);
  EXPECT_EQ(c.bytes_delivered, 8'000'000);
  EXPECT_EQ(c.pfc_pauses, 0u);
}

struct Prints {
  std::uint64_t packets, events;
  std::uint64_t marks;
  bool operator==(const Prints&) const = default;
};

Prints incast(const std::string& rate, const std::string& control, std::uint64_t seed) {
  PacketFixture f("topology: {kind: star, hosts: 9, rate: " + rate +
                      ", delay: 1 us}\ntransport: {congestion_control: " + control + "}\n",
                  seed);
  for (std::uint32_t i = 0; i < 8; ++i) f.send(i, 8, 2'000'000);
  f.loop.run();
  return {f.network->packets_fingerprint(), f.network->events_fingerprint(), f.network->counters().ecn_marks};
}

TEST(NetworkFingerprint, SameInputSameBitsAndEveryKnobShows) {
  const Prints base = incast("100 Gbps", "{kind: dcqcn, profile: vendor}", 1);
  EXPECT_GT(base.marks, 0u);
  EXPECT_EQ(base, incast("100 Gbps", "{kind: dcqcn, profile: vendor}", 1));
  for (const Prints& other : {incast("100 Gbps", "{kind: dcqcn, profile: vendor}", 2),
                              incast("100 Gbps", "{kind: dcqcn, profile: sigcomm15}", 1),
                              incast("200 Gbps", "{kind: dcqcn, profile: vendor}", 1)}) {
    EXPECT_NE(base.packets, other.packets);
    EXPECT_NE(base.events, other.events);
  }
}

}  // namespace
}  // namespace netsim::property_test
