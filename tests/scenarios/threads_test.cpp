// The numbers of logical processes and threads decide only how fast a run is. All results, to the byte of its
// tables, are the same for every number of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/fingerprint.h"
#include "sim/report/summary.h"
#include "sim/simulation/simulation.h"
#include "tests/report/fixtures.h"
#include "tests/scenarios/golden_scenarios.h"
#include "tests/support/paths.h"
#include "tests/support/test_size.h"

namespace netsim::threads_test {
namespace {

using test::Directory;
using Scenario = test::ShippedRun;

// All output of a run by name: fingerprints, summary, waiting lines, every table.
using Answers = std::map<std::string, std::string>;

struct Division {
  std::uint32_t sets, threads;  // sets: 0: as many as the engine wants
};

Answers run(const Scenario& scenario, Division division, Time until = kNever) {
  const Directory directory;
  SimulationSetup setup = test::setup_of(scenario);
  overlay_config(setup.config, "engine.sets=" + std::to_string(division.sets));
  setup.threads = division.threads;
  setup.output_directory = directory.path();
  Simulation simulation(std::move(setup));
  Watch watch;
  watch.until = until;
  const Results results = simulation.run(watch);
  simulation.finish_files(results);
  Answers answers;
  answers["summary"] = summary_json(results);
  answers["results"] = std::to_string(results.fingerprints.results);
  answers["packets"] = std::to_string(results.fingerprints.packets);
  answers["events"] = std::to_string(results.fingerprints.events);
  answers["number of events"] = std::to_string(results.events);
  answers["simulated"] = std::to_string(results.simulated);
  answers["outcome"] = to_string(results.outcome);
  for (const std::string& line : results.waiting) answers["waiting"] += line + "\n";
  for (const std::string& line : results.notes) answers["notes"] += line + "\n";
  for (const auto& file : std::filesystem::directory_iterator(directory.path()))
    answers[file.path().filename()] = directory.text(file.path().filename());
  return answers;
}

// The first place where they differ, for the message.
std::string difference(const std::string& a, const std::string& b) {
  const auto [at, in_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  const auto from = static_cast<std::size_t>(at - a.begin());
  const std::size_t line = a.rfind('\n', from == 0 ? 0 : from - 1);
  const std::size_t begin = line == std::string::npos ? 0 : line + 1;
  return "'" + a.substr(begin, 120) + "'\n  and\n'" + b.substr(begin, 120) + "'";
}

void expect_same(const Scenario& scenario, const std::vector<Division>& divisions, Time until = kNever) {
  const Answers one = run(scenario, {1, 1}, until);
  for (const Division division : divisions) {
    const std::string name = scenario.name + ", " + std::to_string(division.sets) + " sets, " +
                             std::to_string(division.threads) + " threads: ";
    const Answers other = run(scenario, division, until);
    ASSERT_EQ(one.size(), other.size()) << name << "there are not the same tables";
    for (const auto& [what, text] : one) {
      if (other.at(what) != text)
        ADD_FAILURE() << name << what << " differs\n" << difference(text, other.at(what));
    }
  }
}

const std::vector<Division> kSets{{2, 1}, {5, 1}, {16, 1}};
const std::vector<Division> kSetsAndThreads{{2, 1}, {5, 1}, {16, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 8}, {16, 3}};
const std::vector<Division> kSomeSetsAndThreads{{5, 1}, {16, 1}, {0, 2}, {16, 3}};

// Small enough for every day: a workload of the same kind with fewer bytes.
class Threads : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(directory_.path() + "/" + name) << text;
    return directory_.path() + "/" + name;
  }
  std::string permutation(const std::string& bytes) {
    return write("permutation_" + bytes + ".yaml",
                 "{kind: permutation, ranks: 4, shift: 2, bytes: " + bytes + "}");
  }
  std::string small_gpt() {
    return write("gpt.yaml",
                 "kind: ptdp\n"
                 "model: {layers: 4, hidden: 512, heads: 8, sequence: 256, vocabulary: 8192}\n"
                 "parallel: {tensor: 4, pipeline: 2, data: 2, virtual_stages: 2}\n"
                 "microbatch: 1\n"
                 "microbatches: 2\n");
  }
  // The golden scenario with less to send.
  Scenario smaller(Scenario scenario) {
    const auto is = [&](const char* workload) { return scenario.workload == test::below_configs(workload); };
    if (is("network/permutation.yaml")) {
      scenario.workload = permutation("1 MB");
    } else if (is("bench/incast_8to1_10MB.yaml")) {
      scenario.workload = "workloads/incast_1MB.yaml";
    } else if (is("workloads/small_gpt_ptdp.yaml")) {
      scenario.workload = small_gpt();
    }
    return scenario;
  }

  Directory directory_;
};

TEST_F(Threads, DoNotShowInTheGoldenScenarios) {
  for (const Scenario& scenario : test::golden_scenarios())
    expect_same(smaller(scenario), kSomeSetsAndThreads);
}

const std::vector<std::string> kSmallRacks = {"fabrics.rack.racks=3", "fabrics.rack.gpus=8",
                                              "fabrics.scale_out.k=6", "hosts=6"};

// Racks with NVLinks between hosts, and hosts of several kinds.
TEST_F(Threads, DoNotShowInRacksAndGroupsOfHosts) {
  expect_same({"racks", "topologies/gb200.yaml", "collectives/all_reduce.yaml", kSmallRacks},
              {{5, 1}, {0, 3}});
  expect_same({"mixed", "topologies/mixed.yaml", "collectives/all_to_all.yaml", {}}, {{0, 3}});
  expect_same({"two_fabrics", "topologies/two_fabrics.yaml", "collectives/all_reduce.yaml", {}}, {{0, 3}});
}

TEST(LongThreads, DoNotShowInRacksAndGroupsOfHosts) {
  for (const char* workload : {"collectives/all_reduce.yaml", "collectives/all_to_all.yaml"}) {
    expect_same({"racks", "topologies/gb200.yaml", workload, kSmallRacks}, {{2, 1}, {5, 1}, {0, 3}});
    expect_same({"mixed", "topologies/mixed.yaml", workload, {}}, {{5, 1}, {0, 3}});
    expect_same({"two_fabrics", "topologies/two_fabrics.yaml", workload, {}}, {{5, 1}, {0, 3}});
  }
}

// Circuits that come and go.
TEST_F(Threads, DoNotShowInOpticalCircuits) {
  const char *shift = "topologies/shift.yaml", *all_to_all = "traffic/all_to_all_64KiB.yaml";
  for (const auto& [config, workload] :
       {std::pair("topologies/rotor.yaml", shift), std::pair("topologies/opera.yaml", all_to_all),
        std::pair("topologies/optical_circuits.yaml", all_to_all)})
    expect_same({config, config, workload, {}}, {{5, 1}, {0, 3}});
}

TEST(LongThreads, DoNotShowInOpticalCircuits) {
  for (const char* config :
       {"topologies/rotor.yaml", "topologies/opera.yaml", "topologies/optical_circuits.yaml"}) {
    for (const char* workload : {"topologies/shift.yaml", "traffic/all_to_all_64KiB.yaml"})
      expect_same({config, config, workload, {}}, {{2, 1}, {5, 1}, {0, 3}});
  }
}

// Covers the ports at which the ends of iterations waited, with every step.
TEST_F(Threads, DoNotShowInCriticalPaths) {
  for (Scenario scenario : test::golden_scenarios()) {
    if (scenario.name == "ptdp_ideal") continue;
    scenario.overlays.push_back("output.critical_path=true");
    expect_same(smaller(scenario),
                test::by_size<std::vector<Division>>({{2, 1}, {16, 1}, {0, 2}, {16, 3}}, {{16, 1}, {16, 3}},
                                                     {{16, 1}, {16, 3}}));
  }
}

// Two simulations in one process, each in a thread that has threads of its own, answer as each does alone.
TEST_F(Threads, DoNotShowInAnotherSimulation) {
  const std::vector<Scenario>& all = test::golden_scenarios();
  const auto scenario = [&](const char* name) {
    return *std::find_if(all.begin(), all.end(), [&](const Scenario& s) { return s.name == name; });
  };
  const Scenario one = smaller(scenario("irn_with_loss")), two = scenario("ptdp_two_dgx");
  const Division division{0, 2};
  const Answers one_alone = run(one, division), two_alone = run(two, division);
  for (int repetition = 0; repetition < test::by_size(3, 1, 3); ++repetition) {
    Answers one_beside, two_beside;
    std::thread other([&] { one_beside = run(one, division); });
    two_beside = run(two, division);
    other.join();
    EXPECT_EQ(one_beside, one_alone);
    EXPECT_EQ(two_beside, two_alone);
  }
}

TEST_F(Threads, DoNotShowInCongestionControl) {
  for (const char* name : {"hpcc", "swift", "timely", "dctcp", "ib_cct"}) {
    expect_same({name, std::string("congestion/") + name + ".yaml", "workloads/incast_1MB.yaml", {}},
                {{2, 1}, {16, 2}});
  }
  // Telemetry and time stamps of several hops, with packets on many ways and losses.
  for (const char* control : {"hpcc", "swift"}) {
    expect_same({control,
                 "network/spray.yaml",
                 permutation("500 KB"),
                 {std::string("transport.congestion_control=") + control, "transport.acknowledge.every=1",
                  "network.faults=[{link: agg0-core0, loss: 1e-2}]"}},
                {{5, 1}, {16, 1}, {16, 2}, {0, 4}});
  }
}

TEST_F(Threads, DoNotShowInTraffic) {
  const std::vector<Scenario> scenarios{
      {"poisson", "traffic/star17.yaml", "traffic/poisson.yaml", {}},
      {"all_to_all", "traffic/star17.yaml", "traffic/all_to_all.yaml", {}},
      {"ring", "traffic/star17.yaml", "traffic/ring.yaml", {}},
      {"list", "traffic/custom.yaml", "traffic/flows.csv", {}},
      {"tree", "collectives/tree.yaml", "collectives/all_reduce.yaml", {}},
      {"pairwise", "collectives/ring.yaml", "collectives/all_to_all.yaml", {}},
      {"line", "collectives/line.yaml", "collectives/broadcast.yaml", {}},
      {"pipeline", "two_dgx.yaml", "pipeline/interleaved.yaml", {}},
      {"htsim", "import/htsim.yaml", "import/htsim/connections.cm", {}},
      {"ns3", "import/ns3.yaml", "import/ns3/flow.txt", {}},
  };
  for (const Scenario& scenario : scenarios) expect_same(scenario, {{2, 1}, {7, 1}, {16, 2}});
}

// Covers the state that a packet carries along its path, and escapes from one channel to another at the edges
// of sets.
TEST_F(Threads, DoNotShowInVirtualChannels) {
  const std::string all_to_all = write("all_to_all.yaml", "{kind: all_to_all, bytes: 20 KB}");
  const std::vector<std::string> small{"network.switch.flow_control=credits",
                                       "network.switch.credit_buffer=10 KB"};
  for (const char* routing : {"ecmp", "adaptive", "valiant", "ugal"}) {
    std::vector<std::string> overlays = small;
    overlays.push_back(std::string("network.switch.routing=") + routing);
    for (const char* config : {"network/valiant.yaml", "network/ugal.yaml"})
      expect_same({routing, config, all_to_all, overlays}, {{2, 1}, {5, 1}, {16, 1}, {16, 2}});
  }
  std::vector<std::string> overlays = small;
  overlays.push_back("network.faults=[{link: router0_0-router1_0, down: 10 us, up: 60 us}]");
  overlays.push_back("network.detection_delay=5 us");
  expect_same({"outage", "network/valiant.yaml", all_to_all, overlays}, {{5, 1}, {16, 2}});
}

// Covers links that go down in one direction or both, more than once, during PFC and credits. Some parts of
// the network cannot be reached.
TEST_F(Threads, DoNotShowInOutages) {
  const std::string often =
      "network.faults=[{link: edge0->agg0, down: 30 us, up: 30100 ns}, {link: agg0->edge0, down: 40 us, up: "
      "70 us}, {link: edge0-agg0, down: 60 us, up: 90 us}, {link: core0->agg2, down: 25 us}, {link: "
      "host3-edge1, down: 20 us, up: 35 us}, {link: edge1->agg1, rate: 25 Gbps, at: 50 us}]";
  for (const char* control : {"pfc", "credits", "none"}) {
    expect_same({control,
                 "network/faults.yaml",
                 permutation("500 KB"),
                 {often, "network.detection_delay=10 us", "network.switch.buffer=700 KB",
                  std::string("network.switch.flow_control=") + control}},
                kSetsAndThreads);
  }
  expect_same({"incast",
               "sampling.yaml",
               "workloads/incast_1MB.yaml",
               {"network={switch: {buffer: 700 KB}, faults: [{link: host0->switch0, down: 50 us, up: 50100 "
                "ns}, {link: switch0->host8, down: 70 us, up: 71 us}]}",
                "transport={congestion_control: none, retransmission_timeout: 300 us}"}},
              kSetsAndThreads);
  expect_same(
      {"parted",
       "network/spray.yaml",
       permutation("500 KB"),
       {"network.detection_delay=10 us",
        "network.faults=[{link: edge0-agg0, down: 20 us, up: 200 us}, {link: edge0-agg1, down: 20 us, "
        "up: 200 us}]"}},
      {{2, 1}, {5, 1}, {0, 4}});
  expect_same({"static",
               "network/static.yaml",
               permutation("500 KB"),
               {"network.switch.routing.reroute=true", "network.detection_delay=10 us",
                "network.faults=[{link: agg0->core0, down: 20 us, up: 100 us}]"}},
              {{2, 1}, {5, 1}, {0, 4}});
}

// Samples are taken between events, and must not depend on where the engine stops.
TEST_F(Threads, DoNotShowInSamples) {
  const std::string all =
      "output.sample={interval: 3 us, queues: true, links: true, flows: true, ports: all}";
  expect_same({"incast", "sampling.yaml", "workloads/incast_1MB.yaml", {all}}, kSetsAndThreads);
  expect_same({"gpt", "fat_tree.yaml", small_gpt(), {"hosts=2", all}}, {{5, 1}, {16, 2}});
  expect_same({"deadlock", "deadlock_ring.yaml", "workloads/deadlock_ring.yaml", {all}},
              {{2, 1}, {8, 1}, {8, 2}});
}

using Sets = Threads;  // with one thread

// Runs that do not come to their end end at the same event.
TEST_F(Sets, DoNotShowInRunsThatAreCut) {
  const Scenario incast{"incast", "sampling.yaml", "workloads/incast_1MB.yaml", {}};
  for (const Time until : {1 * kNanosecond, 100 * kMicrosecond, 100 * kMicrosecond + 1, 317'123'457L})
    expect_same(incast, kSets, until);
  Scenario unsampled = incast;
  unsampled.overlays.push_back("output.sample.interval=0");
  expect_same(unsampled, kSets, 100 * kMicrosecond);
  expect_same({"faults", "network/faults.yaml", permutation("1 MB"), {}}, kSets, 100 * kMicrosecond);
  expect_same({"gpt", "two_dgx.yaml", small_gpt(), {}}, kSets, 500 * kMicrosecond);
}

TEST_F(Threads, DoNotShowInRunsThatStall) {
  expect_same({"deadlock", "deadlock_ring.yaml", "workloads/deadlock_ring.yaml", {}}, kSetsAndThreads);
  expect_same({"deadlock", "deadlock_ring.yaml", "workloads/deadlock_ring.yaml", {}}, kSets,
              10 * kMillisecond);
  expect_same({"losses",
               "sampling.yaml",
               "workloads/incast_1MB.yaml",
               {"network={switch: {flow_control: none, buffer: 64 KB, reserve: 0, headroom: 1 B}}",
                "transport={congestion_control: none, retries: 0, retransmission_timeout: 10 us}"}},
              kSetsAndThreads);
}

// A message that begins while a port is blocked for good is reported to the other end, but nothing follows.
TEST_F(Sets, DoNotShowWhereMessagesBeginBehindADeadlock) {
  std::string flows = "kind: flows\nflows:\n";
  for (int i = 0; i < 4; ++i) {
    const std::string ends = "{from: " + std::to_string(i) + ", to: " + std::to_string((i + 2) % 4);
    flows += "  - " + ends + ", bytes: 10 MB}\n";
    flows += "  - " + ends + ", bytes: 1 MB, start: 900 us}\n";
  }
  const Scenario late{"late", "deadlock_ring.yaml", write("late.yaml", flows), {}};
  expect_same(late, kSets);
  expect_same(late, kSets, 20 * kMillisecond);
  Scenario sampled = late;
  sampled.overlays.push_back("output.sample={interval: 10 us, ports: all}");
  expect_same(sampled, kSets);
  expect_same(sampled, kSets, 20 * kMillisecond);
}

// A network that repeats the same without end is stopped at the same time. This holds if it gives up by
// itself, and if no one waits for that.
class StoppedRuns : public Threads {
 protected:
  void expect_same_nowhere(const std::string& timeout, const std::vector<Division>& divisions,
                           const char* sample) {
    expect_same({"nowhere, " + timeout,
                 "network/faults.yaml",
                 permutation("10 MB"),
                 {"network.faults=[{link: edge0-agg0, loss: 1}, {link: edge0-agg1, loss: 1}]",
                  "transport.retries=1000", "transport.retransmission_timeout=" + timeout, sample}},
                divisions);
  }
};
using SetsOfStoppedRuns = StoppedRuns;
using LongSets = StoppedRuns;

TEST_F(SetsOfStoppedRuns, DoNotShow) { expect_same_nowhere("4 ms", {{5, 1}}, "output.sample.interval=1 s"); }

TEST_F(LongSets, DoNotShowInRunsThatGetNowhere) {
  expect_same_nowhere("1 ms", {{2, 1}}, "output.sample.interval=0");
  expect_same_nowhere("4 ms", {{5, 1}}, "output.sample.interval=0");
}

// The golden scenarios as they are, and one that keeps several threads busy.
TEST(LongThreads, DoNotShowInTheGoldenScenarios) {
  for (const Scenario& scenario : test::golden_scenarios()) expect_same(scenario, kSetsAndThreads);
}

TEST(LongThreads, DoNotShowInAPermutation) {
  expect_same({"P128", "bench/permutation_k8.yaml", "bench/permutation_10MB.yaml", {}}, kSetsAndThreads);
}

}  // namespace
}  // namespace netsim::threads_test
