// Combines all parts of the network at random. Every message arrives exactly once, the network is empty at
// the end, and the same input gives the same bits.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/packet_fixture.h"

namespace netsim::everything_test {
namespace {

using test::PacketFixture;

template <class... Texts>
std::string any_of(Texts... texts) {
  return *rc::gen::element(std::string(texts)...);
}

struct Message {
  std::uint32_t from, to;
  Bytes bytes;
  std::uint8_t traffic_class;
  Time at;
};

struct Case {
  std::string yaml;
  std::vector<Message> messages;
  std::uint64_t seed = 0;
};

Case random_case() {
  Case c;
  const bool tree = *rc::gen::arbitrary<bool>();
  const std::string host = tree ? any_of("single_nic", "single_nic", "dgx_a100") : "single_nic";
  c.yaml =
      tree ? "topology: {kind: fat_tree, k: 4, rate: 100 Gbps, uplink_rate: " + any_of("100", "40", "200") +
                 " Gbps, delay: 800 ns}\nhost: " + host + "\n"
           : "topology: {kind: star, hosts: 7, rate: 100 Gbps, delay: 1 us}\n";
  const int classes = *rc::gen::inRange(1, 7);
  const std::string control = any_of("pfc", "credits", "none");
  std::string faults;
  const std::string first = host == "dgx_a100" ? "host0/nic0" : "host0";
  if (tree && *rc::gen::arbitrary<bool>()) {
    faults +=
        "{link: agg0-core0, down: 20 us, up: 90 us}, {link: edge0->agg1, loss: 0.01}, {link: edge0-agg0, "
        "rate: 25 Gbps, at: 30 us}, ";
    faults += "{link: agg0-core0, down: 200 us, up: " + any_of("201", "300") + " us}, ";
    faults += "{link: " + any_of("agg0-core0", "agg0->core0", "core0->agg0", "edge1->agg0") +
              ", down: 25 us, up: " + any_of("26", "95", "250") + " us}, ";
  }
  if (*rc::gen::arbitrary<bool>()) {
    faults += "{link: " +
              any_of(tree ? "edge0->" + first : "switch0->host0", first + (tree ? "-edge0" : "-switch0")) +
              ", down: " + any_of("3", "17", "41") + " us, up: " + any_of("50", "150") + " us}";
  }
  c.yaml += "network:\n  detection_delay: " + any_of("0 s", "10 us", "70 us") + "\n  faults: [" + faults +
            "]\n  switch: {buffer: " + std::to_string(classes * std::stoi(any_of("600", "700", "5000"))) +
            " KB" + ", alpha: " + any_of("1/8", "1", "4") + ", flow_control: " + control +
            ", classes: " + std::to_string(classes) +
            ", scheduler: " + any_of("strict", "drr", "vl_arbitration") +
            ", marker: " + any_of("none", "red", "{kind: step, threshold: 20 KB}") +
            ", routing: " + any_of("ecmp", "spray", "adaptive", "{kind: spray, choice: round_robin}") +
            ", forwarding: " + any_of("store_and_forward", "cut_through") +
            ", latency: " + any_of("0 s", "300 ns") +
            ", queue_limit: " + (control == "credits" ? "0" : any_of("0", "0", "20")) + "}\n";
  c.yaml +=
      "transport: {congestion_control: " + any_of("none", "dcqcn") + ", ecn_echo: " + any_of("cnp", "ack") +
      ", reliability: " + any_of("go_back_n", "irn", "{kind: irn, reorder_tolerance: 50}") +
      ", framing: " + any_of("roce_v2", "infiniband", "ns3") + ", mtu: " + any_of("1000 B", "4096 B") +
      ", acknowledge: {every: " + any_of("1", "8", "256") + "}, window: " + any_of("0 B", "0 B", "50 KB") +
      ", retransmission_timeout: 150 us, retries: 1000}\n";
  c.seed = *rc::gen::arbitrary<std::uint64_t>();
  const std::uint32_t gpus = host == "dgx_a100" ? 16 : tree ? 16 : 7;
  const int count = *rc::gen::inRange(1, 40);
  for (int i = 0; i < count; ++i) {
    const auto from = *rc::gen::inRange<std::uint32_t>(0, gpus);
    const auto to = *rc::gen::arbitrary<bool>() && from != 0
                        ? 0
                        : (from + *rc::gen::inRange<std::uint32_t>(1, gpus)) % gpus;
    c.messages.push_back({from, to, *rc::gen::inRange<Bytes>(1, 200'000),
                          static_cast<std::uint8_t>(*rc::gen::inRange(0, classes)),
                          *rc::gen::inRange<Time>(0, 60 * kMicrosecond)});
  }
  return c;
}

struct Prints {
  std::uint64_t packets, events;
  bool operator==(const Prints&) const = default;
};

Prints play(const Case& c) {
  PacketFixture f(c.yaml, c.seed);
  for (std::size_t i = 0; i < c.messages.size(); ++i) {
    const Message& m = c.messages[i];
    netsim::Message message;
    message.source = m.from;
    message.destination = m.to;
    message.bytes = m.bytes;
    message.traits.traffic_class = m.traffic_class;
    message.traits.channel = static_cast<std::uint32_t>(i % 3);
    f.send(message, m.at);
  }
  f.loop.run();
  const NetworkCounters n = f.network->counters();
  RC_ASSERT(!f.network->deadlocked());
  RC_ASSERT(f.all_delivered());
  RC_ASSERT(f.delivery_order.size() == c.messages.size());
  RC_ASSERT(std::all_of(f.sent.begin(), f.sent.end(), [](Time at) { return at >= 0; }));
  RC_ASSERT(n.bytes_sent == n.bytes_delivered);
  RC_ASSERT(n.flows_done == n.flows_started);
  RC_ASSERT(n.pfc_pauses == n.pfc_resumes);
  RC_ASSERT(f.network->waiting(100).empty());
  for (PortId port = 0; port < f.cluster.graph.port_count(); ++port) {
    RC_ASSERT(f.network->queued(port) == 0);
    const PortCounters p = f.network->port_counters(port);
    RC_ASSERT(p.max_headroom_used <= p.headroom);
    RC_ASSERT(p.paused <= 6 * f.loop.now());
  }
  return {f.network->packets_fingerprint(), f.network->events_fingerprint()};
}

TEST(Everything, TogetherDeliversEveryMessageOnce) {
  EXPECT_TRUE(rc::check([] {
    const Case c = random_case();
    RC_LOG() << c.yaml;
    RC_ASSERT(play(c) == play(c));
  }));
}

}  // namespace
}  // namespace netsim::everything_test
