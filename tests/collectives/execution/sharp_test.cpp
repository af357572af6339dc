// Tests all-reduces that the switches of a fabric add up. Covers times and bytes against closed forms on
// trees of many shapes and sizes, refused configurations, and links that go down.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/collectives/execution/chunk_sizes.h"
#include "sim/collectives/programs/named_plan.h"
#include "sim/core/errors.h"
#include "tests/collectives/algorithms/algorithm_cases.h"
#include "tests/collectives/packet_collectives.h"
#include "tests/collectives/table_plan.h"

namespace netsim::sharp_test {
namespace {

using test::every;
using test::PacketCollectives;
using test::request_of;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr const char* kNoLatency = "{kind: sharp, base_latency: 0, hop_latency: 0, hop_latency_net: 0}";
constexpr Bytes kHeader = 26, kPacket = 4096 + kHeader;  // InfiniBand
constexpr Time kDelay = 500 * kNanosecond;

// 100 Gb/s: 80 ps a byte.
std::string fabric(const std::string& topology, const std::string& sharp, const std::string& of_switch = "",
                   const std::string& host = "single_nic") {
  return "topology: {" + topology + ", link: infiniband, delay: 500 ns}\nhost: " + host +
         "\nnetwork:\n  switch: {flow_control: credits, marker: none, aggregation: true" +
         (of_switch.empty() ? "" : ", " + of_switch) +
         "}\ntransport: {framing: infiniband, congestion_control: none}\ncollectives:\n  all_reduce: " +
         sharp + "\n";
}
std::string leaf_spine(std::uint32_t leaves, std::uint32_t spines, std::uint32_t hosts_per_leaf) {
  return "kind: leaf_spine, leaves: " + std::to_string(leaves) + ", spines: " + std::to_string(spines) +
         ", hosts_per_leaf: " + std::to_string(hosts_per_leaf);
}
Time wire(Bytes bytes) { return bytes * 80; }

// InfiniBand's frames that return credits share the links with the sums, so closed forms are those without.
std::string without_credits(std::string yaml) {
  const std::string credits = "flow_control: credits";
  return yaml.replace(yaml.find(credits), credits.size(), "flow_control: pfc");
}

// Up and down `height` links each, store and forward, adding up at `height` switches; then one packet after
// the other.
Time form(std::uint32_t height, Bytes packets, Time adding) {
  return 2 * height * (wire(kPacket) + kDelay) + height * adding + (packets - 1) * wire(kPacket);
}

struct Case {
  std::string topology;
  std::uint32_t hosts, height;
};
std::string latency_of(Time adding) {
  return "aggregation_latency: " + std::to_string(adding / kNanosecond) + " ns";
}

TEST(Sharp, TakesTheWayUpAndDownAndTheBytesOnce) {
  for (const Case& c :
       {Case{"kind: star, hosts: 5", 5, 1}, Case{leaf_spine(2, 3, 4), 8, 2}, Case{leaf_spine(2, 3, 4), 3, 1},
        Case{"kind: fat_tree, k: 4", 16, 3}, Case{"kind: fat_tree, k: 4", 4, 2}}) {
    for (const Bytes packets : {1, 8, 1024}) {
      for (const Time adding : {Time{0}, 130 * kNanosecond}) {
        PacketCollectives cluster(without_credits(fabric(c.topology, kNoLatency, latency_of(adding))));
        const auto members = every(1, c.hosts);
        EXPECT_EQ(cluster.run(request_of(CollectiveKind::all_reduce, members, packets * 4096)),
                  form(c.height, packets, adding))
            << c.topology << ", " << c.hosts << " hosts, " << packets << " packets";
      }
    }
  }
}

// One packet at a time goes up and comes back; of four, the fifth goes when the first is back.
TEST(Sharp, HasNoMorePacketsOnTheirWayThanItMay) {
  const auto members = every(1, 8);
  const Time there_and_back = form(2, 1, 0);
  for (const Bytes outstanding : {1, 4}) {
    const std::string limit = "aggregation_outstanding: " + std::to_string(outstanding);
    PacketCollectives cluster(without_credits(fabric(leaf_spine(2, 1, 4), kNoLatency, limit)));
    const Bytes turns = 32;
    const Time time =
        cluster.run(request_of(CollectiveKind::all_reduce, members, turns * outstanding * 4096));
    EXPECT_EQ(time, turns * there_and_back + (outstanding - 1) * wire(kPacket)) << outstanding;
  }
}

TEST(Sharp, PacketsAreAsLargeAsSwitchesAddUp) {
  PacketCollectives cluster(fabric("kind: star, hosts: 4", kNoLatency, "aggregation_payload: 256 B"));
  const auto members = every(1, 4);
  cluster.run(request_of(CollectiveKind::all_reduce, members, 100 * 256 + 1));
  EXPECT_EQ(cluster.packets.at("host2", "switch0").data_packets, 101U);
  EXPECT_EQ(cluster.packets.at("host2", "switch0").wire_bytes, 100 * (256 + kHeader) + 1 + kHeader);
}

// On fabrics of random shape with groups of random hosts, n and its headers go up and down each link of the
// tree. Other links carry nothing, and no host ends before n / B.
TEST(Sharp, EachLinkOfTheTreeCarriesTheBufferOnceEachWay) {
  EXPECT_TRUE(rc::check("bytes of links", [] {
    const auto number = [](int low, int high) { return std::to_string(*rc::gen::inRange(low, high + 1)); };
    std::string topology;
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        topology = "kind: leaf_spine, leaves: " + number(1, 5) + ", spines: " + number(1, 4) +
                   ", hosts_per_leaf: " + number(2, 5) + ", links: " + number(1, 2);
        break;
      case 1:
        topology = "kind: fat_tree, k: " + std::to_string(2 * *rc::gen::inRange(2, 4));
        break;
      case 2:
        topology = "kind: jellyfish, switches: 8, degree: 3, hosts_per_switch: 2, seed: " + number(1, 9);
        break;
      default:
        topology = "kind: switch_line, switches: " + number(1, 4);
        break;
    }
    PacketCollectives cluster(fabric(topology, kNoLatency));
    const Graph& graph = cluster.packets.cluster.graph;
    const auto hosts = static_cast<std::uint32_t>(cluster.packets.cluster.gpus.size());
    std::vector<GpuId> members = every(1, hosts);
    for (std::uint32_t i = hosts - 1; i > 0; --i)
      std::swap(members[i], members[*rc::gen::inRange<std::uint32_t>(0, i + 1)]);
    members.resize(*rc::gen::inRange<std::uint32_t>(2, hosts + 1));
    const auto n = *rc::gen::inRange<Bytes>(1, 32 * kKibibyte + 1);  // one message
    const Bytes on_wire = n + (n + 4095) / 4096 * kHeader;
    const Time time = cluster.run(request_of(CollectiveKind::all_reduce, members, n));
    RC_ASSERT(time >= wire(on_wire));
    std::vector<std::uint32_t> up(graph.node_count(), 0);
    for (PortId port = 0; port < graph.port_count(); ++port) {
      const PortCounters counters = cluster.packets.network->port_counters(port);
      if (counters.data_packets == 0) continue;
      RC_ASSERT(counters.data_packets == static_cast<std::uint64_t>((n + 4095) / 4096));
      RC_ASSERT(cluster.packets.network->port_counters(port ^ 1U).data_packets == counters.data_packets);
      ++up[graph.port(port).node];
    }
    // A tree: of all nodes on it one more than it has links.
    std::uint32_t nodes = 0, ends = 0;
    for (const std::uint32_t links : up) {
      nodes += links > 0 ? 1 : 0;
      ends += links;
    }
    RC_ASSERT(ends == 2 * (nodes - 1));
    for (const std::uint32_t gpu : members) RC_ASSERT(up[cluster.packets.cluster.gpus[gpu].node] == 1);
  }));
}

// Each of the 8 GPUs of a host has its own part. So n leaves a host by its NICs, n / 8 each, and n arrives.
TEST(Sharp, HostsOfSeveralGpusUseAllNics) {
  for (const std::uint32_t hosts : {2U, 3U, 4U}) {
    PacketCollectives cluster(
        fabric("kind: rail_optimized, hosts_per_leaf: 2, units: 2, spines: 4, rate: 200 Gbps", "sharp", "",
               "dgx_a100"));
    const auto members = every(1, 8 * hosts);
    const Bytes n = 64 * kMebibyte, part = n / 8, with_headers = part + part / 4096 * kHeader;
    cluster.run(request_of(CollectiveKind::all_reduce, members, n));
    const Graph& graph = cluster.packets.cluster.graph;
    for (PortId port = 0; port < graph.port_count(); ++port) {
      const PortSpec& spec = graph.port(port);
      const auto counters = cluster.packets.network->port_counters(port);
      if (graph.node(spec.node).kind == NodeKind::nic &&
          graph.node(spec.peer_node).kind == NodeKind::fabric_switch) {
        const bool used = graph.port_name(port)[4] - '0' < static_cast<int>(hosts);
        EXPECT_EQ(counters.wire_bytes, used ? with_headers : 0) << graph.port_name(port);
      }
    }
    for (std::uint32_t gpu = 0; gpu < 8 * hosts; ++gpu) {
      const std::string host = "host" + std::to_string(gpu / 8),
                        name = host + "/gpu" + std::to_string(gpu % 8);
      const auto out = static_cast<double>(cluster.packets.at(name, host + "/nvswitch").wire_bytes);
      EXPECT_NEAR(out, 2.0 * 7 / 8 * n, 0.001 * n) << name;  // and credits
    }
  }
}

// Twice what a ring moves over the NICs is what it takes less, for much; hosts make no difference.
TEST(Sharp, TakesHalfTheTimeOfARing) {
  const auto time_of = [](const std::string& all_reduce, std::uint32_t hosts) {
    PacketCollectives cluster(fabric("kind: fat_tree, k: 4, rate: 100 Gbps", all_reduce));
    const auto members = every(1, hosts);
    return static_cast<double>(cluster.run(request_of(CollectiveKind::all_reduce, members, 64 * kMebibyte)));
  };
  const double bound = static_cast<double>(wire(64 * kMebibyte));
  double time = 0;
  for (const std::uint32_t hosts : {4U, 8U, 16U}) {
    time = time_of(kNoLatency, hosts);
    EXPECT_GE(time, bound);
    EXPECT_LE(time, 1.01 * bound);
  }
  EXPECT_GT(time_of("ring", 16), 1.8 * time);
}

// Two jobs' trees share links: together they take as long as one after the other, and both end.
TEST(Sharp, TreesShareLinksWithEachOtherAndWithMessages) {
  const Bytes n = 8 * kMebibyte;
  const auto members = every(1, 8);
  PacketCollectives cluster(fabric(leaf_spine(2, 1, 4), kNoLatency));
  CommunicationRequest one = request_of(CollectiveKind::all_reduce, members, n), two = one;
  two.communication = 6;
  for (std::uint32_t gpu = 0; gpu < 8; ++gpu) {
    one.index = two.index = gpu;
    cluster.executor->start(gpu, gpu % 2 == 0 ? one : two);
    cluster.executor->start(gpu, gpu % 2 == 0 ? two : one);
  }
  const std::vector<GpuId> pair{0, 7};
  CommunicationRequest other = request_of(CollectiveKind::point_to_point, pair, n);
  other.raw = true;
  other.communication = 7;
  for (other.index = 0; other.index < 2; ++other.index) cluster.executor->start(pair[other.index], other);
  cluster.packets.loop.run();
  EXPECT_EQ(cluster.recorder.done.size(), 18U);
  EXPECT_GE(cluster.recorder.last(), wire(3 * n));
  EXPECT_LE(cluster.recorder.last(), wire(3 * n) * 103 / 100);
}

// A slow host holds back the others: in the switches there is never more than what may be on its way.
TEST(Sharp, ASlowLinkHoldsBackAllHosts) {
  const auto members = every(1, 8);
  const Bytes n = 4 * kMebibyte;
  PacketCollectives slow(
      "topology: {" + leaf_spine(2, 1, 4) +
      ", link: infiniband, delay: 500 ns}\nnetwork:\n  switch: {flow_control: credits, marker: "
      "none, aggregation: true, aggregation_outstanding: 16}\n  faults: [{link: "
      "host7-leaf1, rate: 10 Gbps, at: 1 ns}]\ntransport: {framing: infiniband, congestion_control: "
      "none}\ncollectives: {all_reduce: " +
      std::string(kNoLatency) + "}\n");
  const Time time = slow.run(request_of(CollectiveKind::all_reduce, members, n));
  EXPECT_GE(time, 10 * wire(n));
  EXPECT_LE(time, 11 * wire(n));
  for (const char* leaf : {"leaf0", "leaf1"})
    EXPECT_LE(slow.packets.at("spine0", leaf).max_queue, 16 * kPacket) << leaf;
  EXPECT_LE(slow.packets.at("leaf1", "host7").max_queue, 16 * kPacket);
}

// ---- Other kinds

// Returns a configuration with chunks of one message each, so that no credits share links with the sums.
std::string every_kind(const std::string& topology, const std::string& of_switch = "") {
  std::string yaml = without_credits(fabric(topology, kNoLatency, of_switch));
  for (const char* kind : {"all_gather", "reduce_scatter", "broadcast", "reduce"})
    yaml += "  " + std::string(kind) + ": " + kNoLatency + "\n";
  return yaml;
}

Time time_of(const std::string& yaml, CollectiveKind kind, std::uint32_t hosts, Bytes bytes,
             std::uint32_t root = 0) {
  PacketCollectives cluster(yaml);
  const auto members = every(1, hosts);
  auto request = request_of(kind, members, bytes);
  request.root = root;
  return cluster.run(request);
}

// All kinds take the latency up and down, and the time of the bytes once, with any root. Data that is only
// forwarded is not added up.
TEST(Sharp, OtherKindsTakeTheSame) {
  for (const Case& c :
       {Case{"kind: star, hosts: 5", 5, 1}, Case{leaf_spine(2, 3, 4), 8, 2}, Case{leaf_spine(2, 1, 4), 8, 2},
        Case{"kind: fat_tree, k: 4", 16, 3}, Case{"kind: fat_tree, k: 4", 4, 2}}) {
    for (const Bytes packets : {1, 8}) {
      for (const Time adding : {Time{0}, 130 * kNanosecond}) {
        const std::string yaml = every_kind(c.topology, latency_of(adding));
        const std::string what = c.topology + ", " + std::to_string(c.hosts) + " hosts";
        for (const std::uint32_t root : {0U, c.hosts - 1}) {
          EXPECT_EQ(time_of(yaml, CollectiveKind::broadcast, c.hosts, packets * 4096, root),
                    form(c.height, packets, 0))
              << what;
          EXPECT_EQ(time_of(yaml, CollectiveKind::reduce, c.hosts, packets * 4096, root),
                    form(c.height, packets, adding))
              << what;
        }
        const Bytes all = packets * c.hosts;
        EXPECT_EQ(time_of(yaml, CollectiveKind::reduce_scatter, c.hosts, all * 4096),
                  form(c.height, all, adding))
            << what << ", " << packets;
        EXPECT_EQ(time_of(yaml, CollectiveKind::all_gather, c.hosts, all * 4096), form(c.height, all, 0))
            << what << ", " << packets;
      }
    }
  }
}

// With large buffers the credits of ranks that only receive take a small share of the links.
TEST(Sharp, OtherKindsOfMuchAreBoundByTheNics) {
  const std::string yaml = every_kind("kind: fat_tree, k: 4");
  const Bytes n = 32 * kMebibyte;
  const double bound = static_cast<double>(form(3, n / 4096, 0));
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce,
                                    CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    const auto time = static_cast<double>(time_of(yaml, kind, 16, n, has_root(kind) ? 3 : 0));
    EXPECT_GE(time, bound) << to_string(kind);
    EXPECT_LE(time, 1.01 * bound) << to_string(kind);
  }
}

// The test counts the bytes of a NIC, with p hosts. A reduce-scatter sends n and receives n / p, and headers
// for the rest, which report that it was added up. An all-gather sends n / p and receives n. A reduce and a
// broadcast move n one way.
TEST(Sharp, OtherKindsMoveNoMoreThanTheirForms) {
  const std::uint32_t p = 6, root = 4;
  const Bytes packets = 4, n = p * packets * 4096;
  const auto wire_of = [&](CollectiveKind kind, std::uint32_t host) {
    PacketCollectives cluster(every_kind("kind: star, hosts: 6"));
    const auto members = every(1, p);
    auto request = request_of(kind, members, n);
    request.root = has_root(kind) ? root : 0;
    cluster.run(request);
    const std::string name = "host" + std::to_string(host);
    return std::pair(cluster.packets.at(name, "switch0").wire_bytes,
                     cluster.packets.at("switch0", name).wire_bytes);
  };
  const Bytes all = p * packets * kPacket, own = packets * kPacket, rest = (p - 1) * packets * kHeader;
  for (const std::uint32_t host : {0U, root}) {
    EXPECT_EQ(wire_of(CollectiveKind::reduce_scatter, host), std::pair(all, own + rest));
    EXPECT_EQ(wire_of(CollectiveKind::reduce, host),
              std::pair(all, host == root ? all : p * packets * kHeader));
  }
  // Credits: of each message one of each host, and back the sum or a header. A broadcast has two messages
  // here, of 64 KiB at the most.
  const Bytes credit = kCreditBytes + kHeader;
  EXPECT_EQ(wire_of(CollectiveKind::all_gather, 0),
            std::pair(own + p * credit, all + credit + (p - 1) * kHeader));
  const Bytes messages = 2;
  EXPECT_EQ(wire_of(CollectiveKind::broadcast, 0), std::pair(messages * credit, all + messages * kHeader));
  EXPECT_EQ(wire_of(CollectiveKind::broadcast, root),
            std::pair(all + messages * credit, all + messages * credit));
}

// Credits too.
TEST(Sharp, SendsTheBytesThatItPromises) {
  for (const CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
        CollectiveKind::broadcast, CollectiveKind::reduce}) {
    std::string yaml = fabric("kind: rail_optimized, hosts_per_leaf: 2, units: 2, spines: 2, rate: 200 Gbps",
                              "sharp", "", "dgx_a100");
    if (kind != CollectiveKind::all_reduce) yaml += "  " + std::string(to_string(kind)) + ": sharp\n";
    PacketCollectives cluster(yaml);
    const auto members = every(1, 24);
    auto request = request_of(kind, members, 3'000'001);
    request.root = has_root(kind) ? 9 : 0;
    Bytes promised = 0;
    for (request.index = 0; request.index < members.size(); ++request.index)
      promised += cluster.executor->scale_out_bytes(members[request.index], request);
    cluster.run(request);
    EXPECT_GT(promised, 0);
    EXPECT_EQ(cluster.packets.network->counters().bytes_delivered, promised) << to_string(kind);
    EXPECT_EQ(cluster.packets.network->counters().bytes_sent, promised) << to_string(kind);
  }
}

// A host that comes late holds back the one that sends to it: no more leaves than there are slots for.
TEST(Sharp, ALateReceiverHoldsBackABroadcast) {
  PacketCollectives cluster(every_kind(leaf_spine(2, 1, 4)));
  const auto members = every(1, 8);
  auto request = request_of(CollectiveKind::broadcast, members, 16 * kMebibyte);
  for (request.index = 0; request.index < 7; ++request.index)
    cluster.executor->start(members[request.index], request);
  cluster.packets.loop.run();
  EXPECT_TRUE(cluster.recorder.done.empty());
  const Bytes message = 256 * kKibibyte, out = cluster.packets.at("host0", "leaf0").wire_bytes;
  EXPECT_GE(out, 8 * message);
  EXPECT_LE(out, 10 * message);
  cluster.executor->start(members[7], request);
  cluster.packets.loop.run();
  EXPECT_EQ(cluster.recorder.done.size(), 8U);
}

// In a reduce-scatter a late rank also holds back the others: no rank receives a sum before all ranks have
// sent their contributions. The others send no more than the packets that may be outstanding.
TEST(Sharp, ALateSenderHoldsBackAReduceScatter) {
  PacketCollectives cluster(every_kind(leaf_spine(2, 1, 4), "aggregation_outstanding: 16"));
  const auto members = every(1, 8);
  auto request = request_of(CollectiveKind::reduce_scatter, members, 16 * kMebibyte);
  for (request.index = 0; request.index < 7; ++request.index)
    cluster.executor->start(members[request.index], request);
  cluster.packets.loop.run();
  EXPECT_EQ(cluster.packets.at("host0", "leaf0").data_packets, 8 * 16U);
  EXPECT_EQ(cluster.packets.at("leaf0", "host0").data_packets, 0U);
  cluster.executor->start(members[7], request);
  cluster.packets.loop.run();
  EXPECT_EQ(cluster.recorder.done.size(), 8U);
}

// Rails: each GPU is the head of the parts of its number in all hosts.
TEST(Sharp, OtherKindsUseAllNicsOfAHost) {
  const std::uint32_t hosts = 4;
  const Bytes n = 64 * kMebibyte;
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                    CollectiveKind::broadcast, CollectiveKind::reduce}) {
    std::string yaml = fabric("kind: rail_optimized, hosts_per_leaf: 2, units: 2, spines: 4, rate: 200 Gbps",
                              "sharp", "", "dgx_a100");
    yaml += "  " + std::string(to_string(kind)) + ": sharp\n";
    PacketCollectives cluster(yaml);
    const auto members = every(1, 8 * hosts);
    auto request = request_of(kind, members, n);
    request.root = has_root(kind) ? 13 : 0;  // host 1
    cluster.run(request);
    for (const char* nic : {"0", "5"}) {
      const PortId port = cluster.fabric_port("host1/nic" + std::string(nic));
      const auto out = static_cast<double>(cluster.packets.network->port_counters(port).wire_bytes);
      const auto in = static_cast<double>(cluster.packets.network->port_counters(port ^ 1U).wire_bytes);
      const double part = static_cast<double>(n) / 8, own = part / hosts;
      const bool gathers = kind == CollectiveKind::all_gather, parts = !has_root(kind);
      EXPECT_NEAR(out, parts && gathers ? own : part, 0.02 * part) << to_string(kind);
      EXPECT_NEAR(in, parts && !gathers ? own : part, 0.02 * part) << to_string(kind);
    }
  }
}

// ---- What is refused

TEST(Sharp, NeedsSwitchesThatAddUp) {
  const auto starts = [](const std::string& yaml, const std::vector<GpuId>& members) {
    PacketCollectives made(yaml);
    made.executor->start(members[0], request_of(CollectiveKind::all_reduce, members, 1000));
  };
  const auto four = every(1, 4);
  EXPECT_NO_THROW(starts(fabric("kind: star, hosts: 4", "sharp"), four));
  std::string without = fabric("kind: star, hosts: 4", "sharp");
  without.erase(without.find(", aggregation: true"), 19);
  EXPECT_THAT([&] { starts(without, four); },
              ThrowsMessage<InputError>(::testing::AllOf(
                  HasSubstr("test.yaml:7:15: collectives.all_reduce: all_reduce of 4 GPUs by sharp"),
                  HasSubstr("switch0 does not add up (network.switch.aggregation)"))));
  for (const char* direct : {"kind: torus, sizes: [4]", "kind: torus, sizes: [2, 2]"}) {
    EXPECT_THAT(
        [&] { starts(fabric(direct, "sharp"), four); },
        ThrowsMessage<InputError>(::testing::AllOf(
            HasSubstr("test.yaml:7:15"), HasSubstr("the fabric joins hosts directly, without switches"))))
        << direct;
  }
  const std::string rails =
      fabric("kind: rail_only, hosts_per_leaf: 2, units: 1, spines: 0", "sharp", "", "dgx_a100");
  EXPECT_NO_THROW(starts(rails, every(1, 16)));
  EXPECT_THAT(
      [&] {
        starts(rails, {0, 1, 8});
      },
      ThrowsMessage<InputError>(HasSubstr("needs as many of them in each host")));
  EXPECT_THAT([&] { starts(rails, {0, 8, 1, 9}); }, ThrowsMessage<InputError>(HasSubstr("host0/gpu0")));
}

// On a single host there is nothing for the fabric to do.
TEST(Sharp, OfOneHostIsDirect) {
  PacketCollectives cluster(fabric("kind: star, hosts: 8", "sharp", "", "dgx_a100"));
  const auto members = every(1, 8);
  cluster.run(request_of(CollectiveKind::all_reduce, members, kMebibyte));
  EXPECT_EQ(cluster.packets.network->counters().packet_hops[static_cast<std::size_t>(LinkKind::infiniband)],
            0U);
}

// ---- Links that go down

std::string with_faults(const std::string& faults) {
  std::string yaml = fabric(leaf_spine(2, 2, 4), kNoLatency);
  yaml.insert(yaml.find("transport:"), "  detection_delay: 10 us\n  faults: [" + faults + "]\n");
  return yaml;
}

TEST(Sharp, ALinkThatLosesItsPacketsEndsTheRun) {
  const auto members = every(1, 8);
  for (const char* fault :
       {"{link: leaf0-spine1, down: 50 us}", "{link: leaf0-spine1, down: 50 us, up: 51 us}",
        "{link: host3-leaf0, down: 50 us}"}) {
    PacketCollectives cluster(with_faults(fault));
    EXPECT_THAT([&] { cluster.run(request_of(CollectiveKind::all_reduce, members, 8 * kMebibyte)); },
                ThrowsMessage<InputError>(HasSubstr("has lost a packet that switches add up or copy")))
        << fault;
  }
}

// A link sends the packets again that it loses by chance, up and down the tree. So it carries each of the
// others once, and the members wait.
TEST(Sharp, ALinkSendsAgainWhatItLosesByChance) {
  const auto members = every(1, 8);
  const auto carried = [](const PacketCollectives& cluster, const char* from, const char* to) {
    const PortCounters counters = cluster.packets.at(from, to);
    return counters.data_packets - counters.lost;
  };
  PacketCollectives clean(with_faults(""));
  clean.run(request_of(CollectiveKind::all_reduce, members, kMebibyte));
  for (const char* loss : {"0.001", "0.01", "0.1"}) {
    PacketCollectives lossy(with_faults("{link: host3-leaf0, loss: " + std::string(loss) + "}"));
    lossy.run(request_of(CollectiveKind::all_reduce, members, kMebibyte));
    EXPECT_EQ(lossy.recorder.done.size(), clean.recorder.done.size()) << loss;
    EXPECT_EQ(carried(lossy, "host3", "leaf0"), carried(clean, "host3", "leaf0")) << loss;
    EXPECT_EQ(carried(lossy, "leaf0", "host3"), carried(clean, "leaf0", "host3")) << loss;
    if (lossy.packets.at("host3", "leaf0").lost + lossy.packets.at("leaf0", "host3").lost == 0) continue;
    EXPECT_GT(lossy.packets.loop.now(), clean.packets.loop.now()) << loss;
  }
}

// Trees that are laid after a link is known to be down, and those of lanes that rest, take other links.
TEST(Sharp, LaterTreesAvoidWhatIsDown) {
  const auto members = every(1, 8);
  PacketCollectives cluster(with_faults("{link: leaf0-spine1, down: 100 us}"));
  auto request = request_of(CollectiveKind::all_reduce, members, 40'000);
  cluster.run(request);  // over spine 1, before
  const auto before = cluster.packets.at("leaf0", "spine1").data_packets;
  EXPECT_GT(before, 0U);
  EXPECT_EQ(cluster.packets.at("leaf0", "spine0").data_packets, 0U);
  EXPECT_GE(cluster.packets.loop.now(), 110 * kMicrosecond);
  request.communication = 6;
  for (request.index = 0; request.index < 8; ++request.index) cluster.executor->start(request.index, request);
  cluster.packets.loop.run();
  EXPECT_EQ(cluster.recorder.done.size(), 16U);
  EXPECT_EQ(cluster.packets.at("leaf0", "spine1").data_packets, before);
  EXPECT_EQ(cluster.packets.at("leaf0", "spine0").data_packets, before);
}

// ---- The plan

TEST(Sharp, IsProvedForHostsOfAllSizes) {
  for (const std::uint32_t group : {1U, 2U, 3U, 4U, 8U}) {
    for (std::uint32_t hosts = 1; hosts <= 9; ++hosts) {
      if (group * hosts < 2) continue;
      for (const char* trees : {"1", "3"}) {
        const auto plan =
            test::make_plan("{kind: sharp, group: " + std::to_string(group) + ", trees: " + trees + "}",
                            CollectiveKind::all_reduce, group * hosts);
        EXPECT_EQ(prove(*plan), "") << group << " x " << hosts;
        // A rank gives away its part of those of the others, gets their sums from it; and n / k goes up.
        const Bytes n = Bytes{24} * group;
        const Bytes up = hosts > 1 ? n / group : 0;
        EXPECT_EQ(bytes_sent(*plan, group * hosts - 1, n), 2 * (n - n / group) + up);
      }
    }
  }
  EXPECT_EQ(prove(*test::make_plan("{kind: sharp, group: 1}", CollectiveKind::all_reduce, 4096)), "");
  EXPECT_EQ(prove(*test::make_plan("{kind: sharp, group: 8}", CollectiveKind::all_reduce, 2048)), "");
}

TEST(Sharp, OtherKindsAreProvedForHostsOfAllSizes) {
  for (const std::uint32_t group : {1U, 2U, 3U, 8U}) {
    for (std::uint32_t hosts = 1; hosts <= 5; ++hosts) {
      const std::uint32_t p = group * hosts;
      if (p < 2) continue;
      for (const std::uint32_t trees : {1U, 3U}) {
        const std::string sharp =
            "{kind: sharp, group: " + std::to_string(group) + ", trees: " + std::to_string(trees) + "}";
        // Bytes out of each rank and up the trees. `inside` is its data for the parts of other ranks in
        // its host, or their data for its part.
        const Bytes n = Bytes{24} * p, inside = n - n / group, part = n / group;
        const Bytes over = hosts > 1 ? 1 : 0;
        const auto plan_of = [&](CollectiveKind kind, std::uint32_t root) {
          auto plan = test::make_plan(sharp, kind, p, root);
          EXPECT_EQ(prove(*plan), "") << to_string(kind) << " " << group << " x " << hosts << ", " << root;
          return plan;
        };
        EXPECT_EQ(bytes_sent(*plan_of(CollectiveKind::all_gather, 0), p - 1, n), inside + over * n / p);
        EXPECT_EQ(bytes_sent(*plan_of(CollectiveKind::reduce_scatter, 0), p - 1, n), inside + over * part);
        for (std::uint32_t root = 0; root < p; ++root) {
          const auto broadcast = plan_of(CollectiveKind::broadcast, root);
          EXPECT_EQ(bytes_sent(*broadcast, root, n), inside + over * part + part * (group - 1));
          const auto reduce = plan_of(CollectiveKind::reduce, root);
          EXPECT_EQ(bytes_sent(*reduce, root, n), inside + over * part);
        }
      }
    }
  }
}

// The part of each rank goes through the NVSwitches of its host, its own too, and n / k up.
TEST(Sharp, IsProvedOverNvswitches) {
  for (const std::uint32_t group : {2U, 3U, 8U, 20U}) {
    for (std::uint32_t hosts = 1; hosts <= 5; ++hosts) {
      for (const char* trees : {"1", "2"}) {
        const auto plan = test::make_plan(
            "{kind: sharp, nvls: true, group: " + std::to_string(group) + ", trees: " + trees + "}",
            CollectiveKind::all_reduce, group * hosts);
        EXPECT_EQ(prove(*plan), "") << group << " x " << hosts;
        const Bytes n = Bytes{24} * group, up = hosts > 1 ? n / group : 0;
        EXPECT_EQ(bytes_sent(*plan, group * hosts - 1, n), n + n / group + up);
      }
    }
  }
}

// In an all-gather the rank's own part goes up once. The parts of its number in all hosts cross its
// NVSwitches once. In a reduce-scatter the rank gives away all data there. Its host's sum of the parts of its
// number goes up.
TEST(Sharp, OtherKindsAreProvedOverNvswitches) {
  for (const std::uint32_t group : {2U, 3U, 8U, 20U}) {
    for (std::uint32_t hosts = 1; hosts <= 5; ++hosts) {
      for (const char* trees : {"1", "2"}) {
        const std::uint32_t p = group * hosts;
        const Bytes n = Bytes{24} * p, part = n / group, over = hosts > 1 ? 1 : 0;
        const auto sent = [&](CollectiveKind kind, std::uint32_t rank) {
          const auto plan = test::make_plan(
              "{kind: sharp, nvls: true, group: " + std::to_string(group) + ", trees: " + trees + "}", kind,
              p);
          EXPECT_EQ(prove(*plan), "") << to_string(kind) << " " << group << " x " << hosts;
          return bytes_sent(*plan, rank, n);
        };
        EXPECT_EQ(sent(CollectiveKind::all_gather, p - 1), part + over * n / p);
        EXPECT_EQ(sent(CollectiveKind::reduce_scatter, 0), n + over * part);
      }
    }
  }
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter})
    EXPECT_EQ(prove(*test::make_plan("{kind: sharp, nvls: true, group: 8}", kind, 512)), "");
}

TEST(Sharp, RunsOverNvswitches) {
  PacketCollectives cluster(
      fabric("kind: rail_optimized, hosts_per_leaf: 2, units: 2, spines: 4, rate: 400 Gbps",
             "{kind: sharp, nvls: true}", "", "{kind: dgx_h100, nvls_efficiency: 1}"));
  const auto members = every(1, 32);
  const Bytes n = 64 * kMebibyte, part = n / 8;
  cluster.run(request_of(CollectiveKind::all_reduce, members, n));
  EXPECT_EQ(cluster.packets.at("host1/nic3", "leaf3").wire_bytes, part + part / 4096 * kHeader);
  const auto out = static_cast<double>(cluster.packets.at("host1/gpu3", "host1/nvswitch").wire_bytes);
  EXPECT_NEAR(out, 1.125 * n, 0.01 * n);  // and credits
}

// In a reduce-scatter n leaves a GPU through the NVSwitches and n / k arrives; in an all-gather it is the
// opposite. A NIC carries n / k one way and n / p the other. The time is that of the busier of the two, with
// a little for the first and the last chunk.
TEST(Sharp, OtherKindsRunOverNvswitches) {
  const std::uint32_t hosts = 4, p = 8 * hosts;
  const Bytes n = 256 * kMebibyte, part = n / 8, own = n / p;
  const std::string nvls = "{kind: sharp, nvls: true, base_latency: 0, hop_latency: 0, hop_latency_net: 0}";
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    const bool gathers = kind == CollectiveKind::all_gather;
    PacketCollectives cluster(
        fabric("kind: rail_optimized, hosts_per_leaf: 2, units: 2, spines: 4, rate: 400 Gbps", "sharp", "",
               "{kind: dgx_h100, nvls_efficiency: 1}") +
        "  " + to_string(kind) + ": " + nvls + "\n");
    const auto members = every(1, p);
    const auto time = static_cast<double>(cluster.run(request_of(kind, members, n)));
    for (const char* gpu : {"0", "5"}) {
      const std::string name = "host1/gpu" + std::string(gpu);
      const auto out = static_cast<double>(cluster.packets.at(name, "host1/nvswitch").wire_bytes);
      const auto in = static_cast<double>(cluster.packets.at("host1/nvswitch", name).wire_bytes);
      EXPECT_NEAR(out, static_cast<double>(gathers ? part : n), 0.02 * n) << to_string(kind);
      EXPECT_NEAR(in, static_cast<double>(gathers ? n : part), 0.02 * n) << to_string(kind);
      const PortId port = cluster.fabric_port("host1/nic" + std::string(gpu));
      const auto sent = static_cast<double>(cluster.packets.network->port_counters(port).wire_bytes);
      const auto got = static_cast<double>(cluster.packets.network->port_counters(port ^ 1U).wire_bytes);
      EXPECT_NEAR(sent, static_cast<double>(gathers ? own : part), 0.02 * part) << to_string(kind);
      EXPECT_NEAR(got, static_cast<double>(gathers ? part : own), 0.02 * part) << to_string(kind);
    }
    const double ports = static_cast<double>(n) / (0.824 * 18 * 25e9) * 1e12;
    const Bytes packets = part / 4096;
    const double nics = static_cast<double>(packets * kPacket) / 50e9 * 1e12;
    EXPECT_GE(time, std::max(ports, nics)) << to_string(kind);
    EXPECT_LE(time, 1.1 * std::max(ports, nics)) << to_string(kind);
  }
}

// Four NICs for one GPU of each host: a tree over each.
TEST(Sharp, AHeadHasATreeForEachOfItsNics) {
  PacketCollectives cluster(fabric("kind: star, hosts: 12", "sharp", "",
                                   "{kind: pcie_server, cpus: 1, switches: 1, gpus: 1, nics: 4}"));
  const auto members = every(1, 3);
  const Bytes n = 8 * kMebibyte, part = n / 4;
  cluster.run(request_of(CollectiveKind::all_reduce, members, n));
  for (const char* nic : {"host0/nic0", "host0/nic1", "host1/nic2", "host2/nic3"})
    EXPECT_EQ(cluster.packets.at(nic, "switch0").wire_bytes, part + part / 4096 * kHeader) << nic;
}

TEST(Sharp, NvswitchesDoNoBroadcasts) {
  const auto algorithm = test::make_algorithm("{kind: sharp, nvls: true}");
  for (const CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter})
    EXPECT_TRUE(algorithm->supports(kind));
  EXPECT_FALSE(algorithm->supports(CollectiveKind::reduce));
  std::string yaml = fabric("kind: star, hosts: 8", "sharp", "", "dgx_h100");
  yaml += "  broadcast: {kind: sharp, nvls: true}\n";
  EXPECT_THAT([&] { const PacketCollectives made(yaml); },
              ThrowsMessage<ConfigError>(
                  ::testing::AllOf(HasSubstr("test.yaml:8"), HasSubstr("does not do broadcast"))));
}

// In this tree over three hosts thread block 0 sends and 1 receives; 2 is the switch's.
TEST(Sharp, WhatASwitchDoesIsChecked) {
  class Switched final : public TablePlan {
   public:
    using TablePlan::TablePlan;
    bool in_switch(std::uint32_t, std::uint32_t block) const override { return block == 2; }
  };
  const auto verdict = [](auto change) {
    Switched plan(*test::make_plan("{kind: sharp, group: 1}", CollectiveKind::all_reduce, 3));
    change(plan);
    return prove(plan);
  };
  EXPECT_EQ(verdict([](Switched&) {}), "");
  EXPECT_THAT(verdict([](Switched& plan) { plan.list(0, 2)[0].kind = Step::Kind::receive; }),
              HasSubstr("a switch only forwards from one aggregation group to another"));
  EXPECT_THAT(verdict([](Switched& plan) { plan.list(0, 2)[0].to = plan.list(0, 2)[0].from; }),
              HasSubstr("a switch forwards from one aggregation group to one other only"));
  EXPECT_THAT(
      verdict([](Switched& plan) {
        plan.list(1, 1)[0].after_block = 2;
        plan.list(1, 1)[0].after_step = 0;
      }),
      HasSubstr("a switch performs the steps of thread block 2, and no other thread block waits for them"));
  EXPECT_THAT(verdict([](Switched& plan) {
                plan.list(2, 0).clear();
                plan.list(2, 1)[0].after_block = kNoIndex;
              }),
              HasSubstr("deadlock"));
  EXPECT_THAT(verdict([](Switched& plan) { plan.list(2, 1).clear(); }), HasSubstr("never receives it"));
}

TEST(Sharp, IsNoProgramOfMsccl) {
  PlanName name;
  name.text = "sharp";
  name.ranks = 16;
  EXPECT_THAT([&] { program_named(name); },
              ThrowsMessage<InputError>(HasSubstr("switches that copy and add up")));
}

}  // namespace
}  // namespace netsim::sharp_test
