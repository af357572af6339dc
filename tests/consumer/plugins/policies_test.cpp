// Policies that are called for each packet: those of the plugins here and of docs/how-to/extend.md. Ones that
// decide as the built-in ones do must give the same run. All must give one run for every number of threads
// and sets.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "sim/core/config.h"
#include "sim/core/registry.h"
#include "sim/network/policies.h"
#include "sim/simulation/simulation.h"
#include "sim/transport/reliability/reliability.h"
#include "tests/support/packet_fixture.h"

namespace netsim::plugin_policies_test {
namespace {

using test::PacketFixture;

// ---- Components that decide as built-in ones do

class MirrorFifoPort final : public PortScheduler {
 public:
  std::uint32_t queue_of(const PacketView&, const PortQueues& queues, Time) override {
    return queues.queues_per_class() - 1;
  }
  std::uint32_t select(const PortQueues& queues, Time) override { return queues.next(0); }
};

// Counts what its ports send; the tests that use it run in one thread.
struct PortCounts {
  std::uint64_t joined = 0, selected = 0, at_once = 0;
};
PortCounts counts;

class CountingPort final : public PortScheduler {
 public:
  std::uint32_t queue_of(const PacketView&, const PortQueues&, Time) override {
    ++counts.joined;
    return 0;
  }
  std::uint32_t select(const PortQueues& queues, Time) override {
    ++counts.selected;
    return queues.next(0);
  }
  void sent_at_once(const PacketView&, Time) override { ++counts.at_once; }
};

class Counting final : public QueueDiscipline {
 public:
  DisciplinePlan compile(std::uint32_t) const override {
    DisciplinePlan plan;
    plan.own_queues = 1;
    return plan;
  }
  std::unique_ptr<PortScheduler> make_port(const PortContext&) const override {
    return std::make_unique<CountingPort>();
  }
};

const Registration<QueueDiscipline> kCounting{
    "counting", "counts packets", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<Counting>(); }};

class MirrorFifo final : public QueueDiscipline {
 public:
  DisciplinePlan compile(std::uint32_t) const override {
    DisciplinePlan plan;
    plan.own_queues = 70;
    return plan;
  }
  std::unique_ptr<PortScheduler> make_port(const PortContext&) const override {
    return std::make_unique<MirrorFifoPort>();
  }
};

const Registration<QueueDiscipline> kMirrorFifo{
    "mirror_strict", "as strict", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<MirrorFifo>(); }};

struct MirrorStepParameters {
  Bytes threshold = 20 * kKilobyte;
  bool at_enqueue = false;
};

class MirrorStepPort final : public PortMarker {
 public:
  explicit MirrorStepPort(const MirrorStepParameters& p) : p_(p) {}
  bool marks_joining(const PacketView&, const MarkedQueue& queue, Time) override {
    return p_.at_enqueue && queue.bytes > p_.threshold;
  }
  bool marks_leaving(const PacketView&, const MarkedQueue& queue, Time, Time) override {
    return !p_.at_enqueue && queue.bytes > p_.threshold;
  }

 private:
  MirrorStepParameters p_;
};

class MirrorStep final : public Marker {
 public:
  explicit MirrorStep(const MirrorStepParameters& p) : p_(p) {}
  RedLine compile(BitRate) const override { return {.own = true}; }
  std::unique_ptr<PortMarker> make_port(const PortContext&) const override {
    return std::make_unique<MirrorStepPort>(p_);
  }

 private:
  MirrorStepParameters p_;
};

const Registration<Marker> kMirrorStep{
    "mirror_step", "as step",
    Parameters<MirrorStepParameters>().choice("at", &MirrorStepParameters::at_enqueue,
                                              {{"dequeue", false}, {"enqueue", true}}, "as step"),
    [](const MirrorStepParameters& p, const ConfigNode&) { return std::make_unique<MirrorStep>(p); }};

class MirrorTurnsSwitch final : public SwitchRouter {
 public:
  std::uint32_t choose(const PacketView&, NodeId, const NextHops& hops, Time) override {
    return turn_++ % hops.size();
  }

 private:
  std::uint32_t turn_ = 0;
};

class MirrorTurns final : public RoutingPolicy {
 public:
  RoutingPlan compile() const override { return {.choice = RoutingPlan::Choice::own}; }
  std::unique_ptr<SwitchRouter> make_switch(const SwitchContext&) const override {
    return std::make_unique<MirrorTurnsSwitch>();
  }
};

const Registration<RoutingPolicy> kMirrorTurns{
    "mirror_turns", "as spray in turn", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<MirrorTurns>(); }};

class MirrorIrn final : public Reliability {
 public:
  ReliabilityPlan compile() const override {
    ReliabilityPlan plan;
    plan.selective = plan.cumulative = plan.own = true;
    plan.timeout = 320 * kMicrosecond;
    plan.low_timeout = 100 * kMicrosecond;
    plan.low_packets = 3;
    plan.bdp_cap = 1.25;
    return plan;
  }
};

const Registration<Reliability> kMirrorIrn{
    "mirror_irn", "as irn while nothing times out", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<MirrorIrn>(); }};

// Drops what is out of order, and sends everything from the gap on again.
class OwnGoBackN final : public Reliability {
 public:
  ReliabilityPlan compile() const override {
    ReliabilityPlan plan;
    plan.selective = plan.cumulative = plan.own = true;
    plan.sender_state_bytes = sizeof(std::uint32_t);
    return plan;
  }
  bool keeps(ReceiverContext&, const Arrival&) const override { return false; }
  void on_reply(SenderContext& c, const Reply& reply) const override {
    auto& restarted_to = c.state_as<std::uint32_t>();
    if (reply.kind != Reply::Kind::nack || reply.expected < restarted_to) return;
    restarted_to = c.next_psn;
    c.repeat_again_before(c.next_psn);
  }
};

const Registration<Reliability> kOwnGoBackN{
    "own_go_back_n", "takes packets in order only", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<OwnGoBackN>(); }};

// ---- Runs

struct Answer {
  Fingerprints fingerprints;
  NetworkCounters counters;
};

Answer run(const std::string& config, const std::string& workload, std::uint32_t sets = 1,
           std::uint32_t threads = 1) {
  const std::string path = testing::TempDir() + "policies_" + std::to_string(getpid()) + ".yaml";
  std::ofstream(path) << workload;
  SimulationSetup setup;
  setup.config = parse_config(config, "policies.yaml");
  overlay_config(setup.config, "engine.sets=" + std::to_string(sets));
  setup.workload = path;
  setup.threads = threads;
  Simulation simulation(std::move(setup));
  const Results results = simulation.run({});
  std::filesystem::remove(path);
  EXPECT_EQ(to_string(results.outcome), std::string("done"));
  return {results.fingerprints, results.network};
}

// Sixteen hosts, all of which send to all. Switch and transport are parts of the flow maps.
std::string all_to_all(const std::string& switches, const std::string& transport = "") {
  return "topology: {kind: fat_tree, k: 4, rate: 100 Gbps, delay: 1 us}\nhost: single_nic\nnetwork: {switch: "
         "{" +
         switches + "}}\ntransport: {" + transport + "}\n";
}
constexpr const char* kExchange = "{kind: collective, collective: all_to_all, bytes: 2 MB}\n";

void expect_equal(const Answer& one, const Answer& other) {
  EXPECT_EQ(one.fingerprints.results, other.fingerprints.results);
  EXPECT_EQ(one.fingerprints.packets, other.fingerprints.packets);
  EXPECT_EQ(one.fingerprints.events, other.fingerprints.events);
}

TEST(PoliciesPerPacket, ASchedulerThatKeepsTheOrderIsStrictPriority) {
  for (const std::string more :
       {"", ", flow_control: credits", ", buffer: 4 MB", ", marker: {kind: step, threshold: 20 KB}"}) {
    const Answer own = run(all_to_all("scheduler: mirror_strict" + more), kExchange);
    expect_equal(own, run(all_to_all("scheduler: strict" + more), kExchange));
    EXPECT_GT(own.counters.packets, 0u);
  }
}

TEST(PoliciesPerPacket, AMarkerByLengthIsStepMarking) {
  for (const std::string at : {"enqueue", "dequeue"}) {
    for (const std::string more : {"", ", flow_control: credits", ", scheduler: mirror_strict"}) {
      const Answer own = run(all_to_all("marker: {kind: mirror_step, at: " + at + "}" + more), kExchange);
      expect_equal(
          own, run(all_to_all("marker: {kind: step, threshold: 20 KB, at: " + at + "}" + more), kExchange));
      EXPECT_GT(own.counters.ecn_marks, 0u);
    }
  }
}

TEST(PoliciesPerPacket, ARouterInTurnIsSpraying) {
  const std::string irn = "reliability: {kind: irn, reorder_tolerance: 1000}";
  const Answer own = run(all_to_all("routing: mirror_turns", irn), kExchange);
  expect_equal(own, run(all_to_all("routing: {kind: spray, choice: round_robin}", irn), kExchange));
}

TEST(PoliciesPerPacket, TheDefaultRulesOfReliabilityAreIrns) {
  for (const std::string more : {"", ", congestion_control: swift", ", congestion_control: dctcp"}) {
    const Answer own = run(all_to_all("routing: spray", "reliability: mirror_irn" + more), kExchange);
    const Answer irn = run(all_to_all("routing: spray", "reliability: irn" + more), kExchange);
    ASSERT_EQ(irn.counters.timeouts, 0u);
    EXPECT_GT(irn.counters.retransmissions, 0u);
    expect_equal(own, irn);
  }
}

struct Case {
  const char* name;
  const char* switches;
  const char* transport;
};

class PolicyThreads : public testing::TestWithParam<Case> {};

TEST_P(PolicyThreads, DoNotShowInAnyNumberOfSets) {
  const std::string config = all_to_all(GetParam().switches, GetParam().transport);
  const Answer one = run(config, kExchange);
  for (const std::uint32_t threads : {1U, 2U, 4U}) {
    for (const std::uint32_t sets : {1U, 2U, 5U, 20U})
      expect_equal(run(config, kExchange, sets, threads), one);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Plugins, PolicyThreads,
    testing::Values(Case{"discipline", "scheduler: shortest_first", ""},
                    Case{"discipline_telemetry", "scheduler: shortest_first", "congestion_control: hpcc"},
                    Case{"marker", "marker: codel", "congestion_control: dctcp"},
                    Case{"routing", "routing: {kind: flowlets, gap: 2 us}",
                         "reliability: {kind: irn, reorder_tolerance: 100}"},
                    Case{"reliability", "routing: spray", "reliability: timed_acks"},
                    Case{"reliability_stamps", "flow_control: none, buffer: 1 MB",
                         "reliability: timed_acks, congestion_control: swift"},
                    Case{"all", "scheduler: shortest_first, marker: codel, routing: flowlets",
                         "reliability: timed_acks"}),
    [](const auto& one) { return std::string(one.param.name); });

// ---- Queue discipline

TEST(ShortestFirst, DeliversEverythingWithPausesChannelsAndCircuits) {
  const auto all = [](const std::string& yaml, std::uint32_t hosts) {
    PacketFixture f(yaml);
    for (std::uint32_t i = 0; i < hosts; ++i) {
      for (std::uint32_t k = 1; k < hosts; ++k) f.send_class(i, (i + k) % hosts, 100'000 * k, k % 2);
      if (i > 0) f.send_class(i, 0, 500'000, i % 2);  // more than the port of host 0 can carry
    }
    f.loop.run();
    EXPECT_TRUE(f.all_delivered()) << yaml;
    EXPECT_EQ(f.network->counters().drops, 0u) << yaml;
    return f.network->counters();
  };
  const std::string two = "network: {switch: {classes: 2, scheduler: shortest_first";
  const NetworkCounters paused =
      all("topology: {kind: star, hosts: 9, rate: 100 Gbps, delay: 1 us}\ntransport: {congestion_control: "
          "none}\n" +
              two + ", buffer: 2 MB}}\n",
          9);
  EXPECT_GT(paused.pfc_pauses, 0u);
  all("topology: {kind: torus, sizes: [4], rate: 100 Gbps, delay: 1 us}\n" + two + "}}\n", 4);
  for (const std::string control : {"pfc", "credits", "none"}) {
    const NetworkCounters moved =
        all("topology: {kind: optical_circuits, switches: 8, servers: true, degree: 4, configurations: "
            "[{name: a, "
            "jumps: [1, 3]}, {name: b, jumps: [1], matchings: [0, 3]}]}\n"
            "transport: {congestion_control: none, reliability: irn}\n" +
                two + ", buffer: 100 MB, flow_control: " + control +
                "}, circuits: {reconfiguration: 10 us, schedule: [{at: 8 us, configuration: b}]}}\n",
            8);
    EXPECT_EQ(moved.circuit_changes, 1u);
    EXPECT_EQ(moved.lost + moved.no_route, 0u);
  }
}

TEST(Scheduler, HearsOfEveryPacketOfItsPort) {
  counts = {};
  PacketFixture f(
      "topology: {kind: star, hosts: 3, rate: 100 Gbps, delay: 1 us}\nnetwork: {switch: {scheduler: "
      "counting}}\n"
      "transport: {congestion_control: none, acknowledge: {every: 1}}\n");
  f.send(0, 2, 100 * 4096);
  f.send(1, 2, 100 * 4096);
  f.loop.run();
  EXPECT_TRUE(f.all_delivered());
  EXPECT_EQ(counts.joined + counts.at_once, 400u) << "200 packets and 200 ACKs";
  EXPECT_EQ(counts.selected, counts.joined);
  EXPECT_GT(counts.joined, 90u) << "one of two packets waits";
  EXPECT_GT(counts.at_once, 190u) << "ACKs find the ports free";
}

TEST(ShortestFirst, DoesNotFitEscapeChannels) {
  try {
    const PacketFixture f(
        "topology: {kind: torus, sizes: [4, 4], rate: 100 Gbps, delay: 1 us}\n"
        "transport: {reliability: irn}\nnetwork: {switch: {routing: adaptive, scheduler: shortest_first}}\n");
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("escape channels"), std::string::npos) << error.what();
  }
}

// ---- Marker

TEST(Codel, MarksOnlyWhereAQueueStands) {
  const auto marks = [](std::uint32_t senders) {
    PacketFixture f(
        "topology: {kind: star, hosts: 4, rate: 100 Gbps, delay: 1 us}\ntransport: {congestion_control: "
        "none}\n"
        "network: {switch: {marker: {kind: codel, target: 5 us, interval: 20 us}}}\n");
    for (std::uint32_t i = 0; i < senders; ++i) f.send(i, 3, 2'000'000);
    f.loop.run();
    EXPECT_TRUE(f.all_delivered());
    return f.network->counters().ecn_marks;
  };
  EXPECT_EQ(marks(1), 0u);
  // The queue stands for 320 us. The marks come at 20 us x (1 + 1 + 1/sqrt 2 + 1/sqrt 3 + ...) after 5 us.
  EXPECT_GT(marks(2), 20u);
  EXPECT_LT(marks(2), 90u);
}

// ---- Routing

TEST(Flowlets, TakeAnotherWayAfterAGap) {
  const auto used = [](const std::string& gap) {
    PacketFixture f(
        "topology: {kind: fat_tree, k: 4, rate: 100 Gbps, delay: 1 us}\nnetwork: {switch: {routing: {kind: "
        "flowlets, gap: " +
        gap + "}}}\ntransport: {congestion_control: none}\n");
    for (int i = 0; i < 40; ++i) f.send(0, 15, 40'000, i * 50 * kMicrosecond);
    f.loop.run();
    EXPECT_TRUE(f.all_delivered());
    EXPECT_EQ(f.network->counters().retransmissions, 0u) << "packets of a burst stay in order";
    std::size_t links = 0;
    for (PortId port = 0; port < f.cluster.graph.port_count(); ++port) {
      const PortSpec& spec = f.cluster.graph.port(port);
      const bool up =
          f.cluster.graph.node(spec.node).tier == 1 && f.cluster.graph.node(spec.peer_node).tier == 2;
      links += up && f.network->port_counters(port).data_packets > 0 ? 1 : 0;
    }
    return links;
  };
  EXPECT_EQ(used("1 s"), 1u);
  EXPECT_EQ(used("20 us"), 4u);
}

// ---- Reliability

TEST(TimedAcks, HoldsAnAckBackForItsTimeOrItsNumber) {
  const auto wait = [](const std::string& reliability, Bytes bytes) {
    PacketFixture f(
        "topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 1 us}\ntransport: {congestion_control: "
        "none, "
        "acknowledge: {every: 1}, reliability: " +
        reliability + "}\n");
    f.send(0, 1, bytes);
    f.loop.run();
    return f.sent[0] - f.delivered[0];
  };
  const Time at_once = wait("irn", 4096);
  EXPECT_EQ(wait("{kind: timed_acks, every: 8, delay: 50 us}", 4096), at_once + 50 * kMicrosecond);
  EXPECT_EQ(wait("{kind: timed_acks, every: 8, delay: 50 us}", 8 * 4096), at_once);
  EXPECT_EQ(wait("{kind: timed_acks, every: 1, delay: 50 us}", 4096), at_once);
}

TEST(OwnReliability, RepairsLosses) {
  for (const std::string reliability : {"timed_acks", "mirror_irn", "own_go_back_n"}) {
    PacketFixture f(
        "topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 1 us}\ntransport: {congestion_control: "
        "none, "
        "retransmission_timeout: 1 ms, retries: 1000, reliability: " +
        reliability +
        "}\nnetwork: {faults: [{link: host0->switch0, loss: 0.01}, {link: host1->switch0, loss: 0.01}]}\n");
    f.send(0, 1, 2000 * 4096);
    f.loop.run();
    EXPECT_TRUE(f.all_delivered()) << reliability;
    EXPECT_GE(f.sent[0], f.delivered[0]) << reliability;
    const NetworkCounters n = f.network->counters();
    EXPECT_EQ(n.packets, 2000u) << reliability;
    EXPECT_GT(n.lost, 0u);
    if (reliability == "timed_acks") {
      EXPECT_LE(n.retransmissions, n.lost + 30) << "only what is lost";
    }
    if (reliability == "own_go_back_n") {
      EXPECT_GT(n.retransmissions, 4 * n.lost) << "all behind a loss";
    }
  }
}

// A queue pair that ends with its message is reused only when its receiver's timer is over.
TEST(TimedAcks, QueuePairsAreReusedAfterTheirTimers) {
  PacketFixture f(
      "topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 1 us}\ntransport: {congestion_control: none, "
      "reliability: {kind: timed_acks, every: 2, delay: 30 us}}\n");
  for (std::uint32_t i = 0; i < 200; ++i) {
    Message message;
    message.source = 0;
    message.destination = 1;
    message.bytes = 1000 + 4096 * (i % 3);
    message.traits.channel = i;
    message.traits.own_queue_pair = message.traits.only_message = true;
    f.send(message, i * 3 * kMicrosecond);
  }
  f.loop.run();
  EXPECT_TRUE(f.all_delivered());
  for (const Time at : f.sent) EXPECT_GE(at, 0);
  EXPECT_EQ(f.network->counters().retransmissions, 0u);
}

}  // namespace
}  // namespace netsim::plugin_policies_test
