// Tests optical circuits that change: when they carry packets, to the picosecond, and what a change costs.
// Nothing is lost if they are drained; otherwise the test counts the loss.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "tests/support/packet_fixture.h"

namespace netsim::circuits_test {
namespace {

using test::PacketFixture;

// On 100 Gb/s: a full packet, and a message's first one, which is the largest; of 4096 B of payload.
constexpr Time kFull = 80 * (4096 + 82), kLargest = kFull + 80 * 16, kDelay = 500 * kNanosecond;

// Four switches; `circuits`: the section network.circuits.
std::string four_switches(const std::string& ways, const std::string& circuits,
                          const std::string& flow_control = "none") {
  return "topology: {kind: optical_circuits, switches: 4, degree: 2, delay: 500 ns, ways: " + ways +
         ", configurations: [{name: a, circuits: [[0, 1], [2, 3]]}, {name: b, circuits: [[1, 2], [0, 3]]}, "
         "{name: all, jumps: [1]}]}\n"
         "transport: {congestion_control: none, retransmission_timeout: 500 us, retries: 1000}\n"
         "network: {switch: {marker: none, buffer: 1 GB, flow_control: " +
         flow_control + "}, circuits: {" + circuits + "}}\n";
}

std::string error_of(const std::string& yaml) {
  try {
    PacketFixture f(yaml);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

// ---- When

TEST(Circuits, CarryPacketsOnceTheMirrorsStand) {
  PacketFixture f(four_switches(
      "direct", "reconfiguration: 20 us, guard: 3 us, schedule: [{at: 100 us, configuration: b}]"));
  f.send(0, 1, 4096);  // up from the start
  f.send(1, 2, 4096);
  f.loop.run();
  const Time hop = kLargest + kDelay;
  EXPECT_EQ(f.delivered[0], 3 * hop);
  // Counted from the request: packets in flight on the old circuits, the mirrors, the guard.
  const Time up = 100 * kMicrosecond + hop + 23 * kMicrosecond;
  EXPECT_EQ(f.delivered[1], up + 2 * hop);
  EXPECT_EQ(f.network->counters().circuit_changes, 1u);
}

// Circuits that are part of both configurations stay up. Two requests are carried out one after the other.
TEST(Circuits, ThatStayAreNotInterrupted) {
  PacketFixture f(four_switches("direct",
                                "reconfiguration: 20 us, schedule: [{at: 50 us, configuration: all}, {at: 51 "
                                "us, configuration: b}]"));
  f.send(0, 1, 4096, 55 * kMicrosecond);  // `a` and `all` have it
  f.send(1, 2, 4096);
  f.loop.run();
  const Time hop = kLargest + kDelay;
  EXPECT_EQ(f.delivered[0], 55 * kMicrosecond + 3 * hop);
  EXPECT_EQ(f.delivered[1], 70 * kMicrosecond + 2 * hop) << "nothing goes, so nothing is drained";
  EXPECT_EQ(f.network->counters().circuit_changes, 2u);
}

TEST(Circuits, ARequestIsAnsweredWhenTheyAreLit) {
  PacketFixture f(four_switches("direct", "reconfiguration: 20 us, guard: 3 us"));
  CircuitControl* control = f.network->circuits();
  ASSERT_NE(control, nullptr);
  EXPECT_EQ(control->configurations(), (std::vector<std::string>{"a", "b", "all"}));
  std::vector<Time> up;
  const auto note = [&] { up.push_back(f.loop.now()); };
  f.loop.call_at(10 * kMicrosecond, [&] {
    control->configure(0, note);  // it is set already
    control->configure(1, note);
  });
  f.loop.run();
  const Time drained = kLargest + kDelay;
  EXPECT_EQ(up, (std::vector<Time>{10 * kMicrosecond, 33 * kMicrosecond + drained}));
  PacketFixture star("topology: {kind: star, hosts: 2}\n");
  EXPECT_EQ(star.network->circuits(), nullptr);
}

// ---- How much

// One matching after the other, each full all the time: a circuit carries its rate but for the drain, the
// mirrors and the guard.
TEST(Circuits, GoodputIsWhatChangesLeave) {
  for (const Time rotation : {50 * kMicrosecond, 100 * kMicrosecond, 400 * kMicrosecond}) {
    PacketFixture f(
        "topology: {kind: rotor, switches: 4, rotors: 1, rate: 400 Gbps, switch_rate: 100 Gbps, "
        "delay: 500 ns}\n"
        "transport: {congestion_control: none, retransmission_timeout: 1 s}\n"
        "network: {switch: {marker: none, buffer: 10 GB, flow_control: none}, circuits: "
        "{reconfiguration: 5 us, guard: 1 us, rotation: " +
        format_time(rotation) + "}}\n");
    for (std::uint32_t from = 0; from < 4; ++from) {
      for (std::uint32_t to = 0; to < 4; ++to) {
        if (from != to) f.send(from, to, 200'000'000);
      }
    }
    constexpr Time kRounds = 10;
    const Time begin = 3 * rotation, end = 3 * (kRounds + 1) * rotation;
    const auto carried = [&] {
      Bytes sum = 0;
      for (PortId port = 0; port < f.cluster.graph.port_count(); ++port) {
        const PortSpec& spec = f.cluster.graph.port(port);
        const bool circuit = f.cluster.graph.node(spec.node).kind == NodeKind::fabric_switch &&
                             f.cluster.graph.node(spec.peer_node).kind == NodeKind::fabric_switch;
        if (circuit) sum += f.network->port_counters(port).wire_bytes;
      }
      return sum;
    };
    f.loop.run(begin);
    const Bytes before = carried();
    f.loop.run(end);
    const double goodput =
        static_cast<double>(carried() - before) * 80 / static_cast<double>(4 * (end - begin));
    const Time dead = 6 * kMicrosecond + kLargest + kDelay;
    const double theory = 1 - static_cast<double>(dead) / static_cast<double>(rotation);
    EXPECT_NEAR(goodput, theory, 0.01 * theory) << format_time(rotation);
  }
}

// When the mirrors move and the ends were not told, packets on the circuit are lost: those of one delay. They
// are sent again.
TEST(Circuits, LoseWhatIsUnderWayWhereNobodyDrainsThem) {
  PacketFixture f(
      four_switches("direct",
                    "law: lose, reconfiguration: 20 us, schedule: [{at: 50 us, configuration: b}, "
                    "{at: 200 us, configuration: a}]"));
  f.send(0, 1, 4096 * 1000);
  f.loop.run(150 * kMicrosecond);
  const Time down = 50 * kMicrosecond + kLargest + kDelay;
  const auto start = [](Time i) { return kLargest + kDelay + (i == 0 ? 0 : i * kFull + 16 * 80); };
  std::uint64_t on_the_way = 0;
  for (Time i = 0; i < 1000; ++i) {
    if (start(i) < down && start(i) + kFull + kDelay > down) ++on_the_way;
  }
  EXPECT_GE(on_the_way, 2u);
  EXPECT_EQ(f.at("switch0", "switch1").lost, on_the_way);
  f.loop.run();
  EXPECT_TRUE(f.all_delivered());
}

// ---- Routes over the circuits that are up

// Every pair sends while the circuits change and change back. Packets that wait for a removed circuit are
// rerouted, so nothing is lost, and all arrive.
TEST(Circuits, LeadPacketsOnWhereTheyChange) {
  for (const std::string control : {"pfc", "credits", "none"}) {
    for (const std::string routing : {"ecmp", "spray", "adaptive"}) {
      PacketFixture f(
          "topology: {kind: optical_circuits, switches: 8, servers: true, degree: 4, "
          "configurations: [{name: a, jumps: [1, 3]}, {name: b, jumps: [1], matchings: [0, 3]}, "
          "{name: c, jumps: [3, 2]}]}\n"
          "transport: {congestion_control: none, reliability: irn}\n"
          "network: {switch: {marker: none, buffer: 100 MB, routing: " +
          routing + ", flow_control: " + control +
          "}, circuits: {reconfiguration: 10 us, schedule: [{at: 20 us, configuration: b}, {at: "
          "60 us, configuration: c}, {at: 110 us, configuration: a}]}}\n");
      for (std::uint32_t from = 0; from < 8; ++from) {
        for (std::uint32_t to = 0; to < 8; ++to) {
          if (from != to) f.send(from, to, 300'000, from * 10 * kMicrosecond);
        }
      }
      f.loop.run();
      const NetworkCounters n = f.network->counters();
      EXPECT_TRUE(f.all_delivered()) << control << " " << routing;
      EXPECT_EQ(n.lost + n.drops + n.no_route, 0u) << control << " " << routing;
      EXPECT_EQ(n.circuit_changes, 3u);
      EXPECT_EQ(n.pfc_pauses, n.pfc_resumes);
    }
  }
}

// Where the present circuits leave no way, packets wait for those that come.
TEST(Circuits, WaitWhereNothingLitLeadsOn) {
  PacketFixture f(
      "topology: {kind: optical_circuits, switches: 4, degree: 2, delay: 500 ns, configurations: "
      "[{name: ring, jumps: [1]}, {name: pairs, circuits: [[0, 1], [2, 3]]}]}\n"
      "transport: {congestion_control: none}\n"
      "network: {circuits: {reconfiguration: 5 us, schedule: [{at: 0 s, configuration: pairs}, "
      "{at: 80 us, configuration: ring}]}}\n");
  f.send(0, 2, 100'000, 10 * kMicrosecond);
  f.send(0, 1, 100'000, 10 * kMicrosecond);
  f.loop.run();
  EXPECT_LT(f.delivered[1], 30 * kMicrosecond);
  EXPECT_GT(f.delivered[0], 85 * kMicrosecond);
  EXPECT_EQ(f.network->counters().no_route, 0u);
}

// Compares rings for all-reduce on a number of ports with a switch whose links have any rate. Each server
// sends to both neighbours of each ring at once.
TEST(Circuits, RingsOfTopooptCarryWhatTheirPortsDo) {
  constexpr Bytes kEach = 2'000'000;
  const auto time_of = [](const std::string& topology, const std::vector<std::uint32_t>& jumps) {
    PacketFixture f("topology: " + topology +
                    "\ntransport: {congestion_control: none}\nnetwork: {switch: "
                    "{marker: none, buffer: 1 GB, flow_control: none}}\n");
    for (std::uint32_t i = 0; i < 16; ++i) {
      for (const std::uint32_t jump : jumps) {
        f.send(i, (i + jump) % 16, kEach);
        f.send(i, (i + 16 - jump) % 16, kEach);
      }
    }
    f.loop.run();
    EXPECT_TRUE(f.all_delivered());
    return static_cast<double>(*std::max_element(f.delivered.begin(), f.delivered.end()));
  };
  struct Case {
    int degree;
    std::vector<std::uint32_t> jumps;
  };
  for (const Case& c : {Case{2, {1}}, Case{4, {1, 3}}}) {
    const std::string degree = std::to_string(c.degree);
    const double direct = time_of(
        "{kind: topoopt, servers: 16, degree: " + degree + ", rate: 100 Gbps, delay: 100 ns}", c.jumps);
    for (const int rate : {40, 100, 200}) {
      const double tree =
          time_of("{kind: star, hosts: 16, rate: " + std::to_string(rate) + " Gbps, delay: 100 ns}", c.jumps);
      EXPECT_NEAR(tree / direct, c.degree * 100.0 / rate, 0.02 * c.degree * 100 / rate)
          << degree << " " << rate;
    }
  }
}

// ---- At random

TEST(Circuits, DeliverEverythingWhateverChanges) {
  rc::check("every message arrives once, and nothing is left", [] {
    const auto any = [](std::vector<std::string> texts) { return *rc::gen::elementOf(texts); };
    const std::string switches = any({"4", "5", "6", "9"});
    const std::string ways = any({"direct", "lit"});
    // With `direct`, packets would wait in vain for a circuit that no rotation brings up.
    const std::string rotation =
        ways == "direct" ? any({"40 us", "100 us"}) : any({"0 s", "40 us", "100 us"});
    std::string yaml = "topology: {kind: optical_circuits, switches: " + switches +
                       ", degree: 6, ways: " + ways +
                       ", configurations: [{name: a, jumps: [1]}, {name: b, jumps: [1, 2]}, {name: c, jumps: "
                       "[2], matchings: [0, 1]}]}\n";
    if (*rc::gen::arbitrary<bool>()) {
      yaml = "topology: {kind: rotor, switches: " + switches + ", rotors: " + any({"1", "2", "3"}) +
             ", hosts_per_switch: " + any({"1", "2"}) + ", ways: " + ways +
             ", packet_rate: " + any({"10 Gbps", "100 Gbps"}) + "}\n";
    }
    yaml += "transport: {congestion_control: " + any({"none", "dcqcn"}) +
            ", reliability: " + any({"go_back_n", "irn"}) +
            ", retransmission_timeout: 1 ms, retries: 1000}\n";
    yaml += "network: {switch: {buffer: 50 MB, flow_control: " + any({"pfc", "credits", "none"}) +
            ", routing: " + any({"ecmp", "spray", "adaptive"}) +
            "}, deadlock_check: note, circuits: {rotation: " + rotation +
            ", stagger: " + any({"true", "false"}) + ", reconfiguration: " + any({"0 s", "1 us", "9 us"}) +
            ", guard: " + any({"0 s", "100 ns"}) + ", law: " + any({"drain", "lose"}) + "}}\n";
    RC_LOG() << yaml;
    PacketFixture f(yaml);
    const auto hosts = static_cast<std::uint32_t>(f.cluster.gpus.size());
    for (int i = 0; i < 12; ++i) {
      const std::uint32_t from = *rc::gen::inRange(0U, hosts), to = *rc::gen::inRange(0U, hosts);
      if (from != to)
        f.send(from, to, *rc::gen::inRange(1, 200'000), *rc::gen::inRange(0, 300) * kMicrosecond);
    }
    f.loop.run();
    RC_ASSERT(f.all_delivered());
    const NetworkCounters n = f.network->counters();
    RC_ASSERT(n.bytes_delivered == n.bytes_sent);
    if (yaml.find("law: drain") != std::string::npos) RC_ASSERT(n.lost + n.no_route == 0u);
    RC_ASSERT(n.pfc_pauses == n.pfc_resumes);
    for (PortId port = 0; port < f.cluster.graph.port_count(); ++port)
      RC_ASSERT(f.network->queued(port) == 0);
  });
}

// ---- Errors

TEST(CircuitsConfig, SaysWhatDoesNotFit) {
  const auto with = [](const std::string& circuits) { return error_of(four_switches("direct", circuits)); };
  EXPECT_NE(with("schedule: [{at: 1 us, configuration: alll}]")
                .find("no configuration 'alll', did you mean 'all'?"),
            std::string::npos);
  EXPECT_NE(with("schedule: [{at: 1 us, configuration: a, switch: optica}]")
                .find("no optical switch 'optica', did you mean 'optical'?"),
            std::string::npos);
  EXPECT_NE(with("schedule: [{configuration: a}]").find("'at' and 'configuration' are required"),
            std::string::npos);
  EXPECT_NE(with("schedule: [{at: 1 us, configuration: a, every: 0 s}]").find("out of range"),
            std::string::npos);
  EXPECT_NE(with("schedule: 7").find("expected a list"), std::string::npos);
  EXPECT_NE(with("reconfiguration: 20 us, rotation: 20 us").find("leaves no time for packets"),
            std::string::npos);
  EXPECT_NE(error_of("topology: {kind: star, hosts: 2}\nnetwork: {circuits: {rotation: 1 ms}}\n")
                .find("no optical switches"),
            std::string::npos);
  EXPECT_NE(error_of("topology: {kind: rotor, switches: 4, rotors: 1, ways: lit, packet_rate: 10 "
                     "Gbps}\nnetwork: {switch: {routing: {kind: valiant, per: flow}}}\n")
                .find("circuits that change"),
            std::string::npos);
}

// Nothing turns them: the run ends, and says what waits for what.
TEST(Circuits, SaysWhatWaitsInTheDark) {
  PacketFixture f(four_switches("direct", "reconfiguration: 1 us", "pfc"));
  f.send(1, 2, 4096);
  f.loop.run(10 * kMillisecond);
  const std::vector<std::string> waiting = f.network->waiting(10);
  const bool told = std::any_of(waiting.begin(), waiting.end(), [](const std::string& line) {
    return line.starts_with("port switch1->switch2: ") &&
           line.find("wait, for a circuit that is down") != std::string::npos;
  });
  EXPECT_TRUE(told) << (waiting.empty() ? "" : waiting.front());
}

}  // namespace
}  // namespace netsim::circuits_test
