// Do the task and job schedulers of docs/how-to/extend.md and of the plugins here act in a run, on any number
// of threads?
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "sim/core/config.h"
#include "sim/simulation/simulation.h"

namespace netsim::plugin_schedulers_test {
namespace {

// A large and a small gradient of one computation, on two hosts.
Results run(const std::string& scheduler, std::uint32_t threads) {
  const std::string path = testing::TempDir() + "schedulers_" + std::to_string(getpid()) + ".yaml";
  std::ofstream(path) << "kind: tasks\nranks: 2\ntasks:\n"
                         "  - {name: backward, compute: 1 ms}\n"
                         "  - {name: large, collective: all_reduce, bytes: 20 MB, after: backward}\n"
                         "  - {name: small, collective: all_reduce, bytes: 2 MB, after: backward}\n";
  SimulationSetup setup;
  setup.config = parse_config(
      "topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 1 us}\nhost: single_nic\nscheduling: "
      "{tasks: " +
          scheduler + "}\nengine: {sets: 2}\n",
      "schedulers.yaml");
  setup.workload = path;
  setup.threads = threads;
  Simulation simulation(std::move(setup));
  Results results = simulation.run({});
  std::filesystem::remove(path);
  EXPECT_EQ(to_string(results.outcome), std::string("done"));
  return results;
}

// The small one overtakes the large one at both ranks.
TEST(SchedulerPlugins, SmallestFirstReorders) {
  const Results results = run("{kind: smallest_first, part: 2 MB}", 1);
  const SchedulingSummary& all = results.jobs.at(0).scheduling;
  EXPECT_EQ(all.launches, 4U);
  EXPECT_EQ(all.parts, 22U);
  EXPECT_EQ(all.reordered, 2U);
  EXPECT_EQ(all.by_name.at("small").held_by_scheduler, 0);
  EXPECT_GT(all.by_name.at("large").held_by_scheduler, 0);
  EXPECT_EQ(run("fifo", 1).jobs.at(0).scheduling.reordered, 0U);
}

// The second launch of the first rank comes an interval after the first, and its decision 10 us later.
TEST(SchedulerPlugins, PacedHoldsForAnInterval) {
  const Results results = run("{kind: paced, interval: 100 us}", 1);
  const SchedulingSummary& all = results.jobs.at(0).scheduling;
  EXPECT_EQ(all.held_by_scheduler, 100 * kMicrosecond);
  EXPECT_EQ(all.held_by_agreement, 120 * kMicrosecond);
  EXPECT_EQ(all.longest_held, 110 * kMicrosecond);
  EXPECT_EQ(all.reordered, 0U);
}

// The second flow of an incast waits until the first is over.
TEST(SchedulerPlugins, OneAtATimeHoldsTheSecondFlow) {
  SimulationSetup setup;
  setup.config = parse_config(
      "topology: {kind: star, hosts: 3, rate: 100 Gbps, delay: 1 us}\nhost: single_nic\n"
      "scheduling: {flows: one_at_a_time}\n",
      "flows.yaml");
  const std::string path = testing::TempDir() + "one_at_a_time_" + std::to_string(getpid()) + ".yaml";
  std::ofstream(path) << "{kind: incast, senders: 2, receiver: 2, bytes: 1 MB}\n";
  setup.workload = path;
  setup.threads = 1;
  Simulation simulation(std::move(setup));
  const Results results = simulation.run({});
  std::filesystem::remove(path);
  EXPECT_EQ(results.flow_scheduling.scheduler, "one_at_a_time");
  EXPECT_EQ(results.flow_scheduling.flows, 2U);
  EXPECT_EQ(results.flow_scheduling.held, 2U);
  EXPECT_GT(results.flow_scheduling.held_time, 80 * kMicrosecond);  // 1 MB at 100 Gb/s
  EXPECT_LT(results.flows.maximum, 180 * kMicrosecond);
}

// Flows send at half of their rate while ranks 0 and 1 wait for rank 2, and shortly before `late` should
// begin. Where congestion control has lowered a rate, they send at half of that.
Results run_give_way(const std::string& views, const std::string& network, const std::string& workload,
                     std::uint32_t threads) {
  const std::string path = testing::TempDir() + "give_way_" + std::to_string(getpid()) + ".yaml";
  std::ofstream(path) << workload;
  SimulationSetup setup;
  setup.config = parse_config(network +
                                  "host: single_nic\nscheduling: {flows: {kind: give_way, window: 500 us}, "
                                  "interval: 10 us, views: " +
                                  views + "}\nengine: {sets: 2}\n",
                              "give_way.yaml");
  setup.workload = path;
  setup.threads = threads;
  const Results results = Simulation(std::move(setup)).run({});
  std::filesystem::remove(path);
  EXPECT_EQ(to_string(results.outcome), std::string("done"));
  return results;
}

// Each of the fields that no scheduler of netsim reads acts: without it the run differs. Ranks 0 and 1 wait
// for rank 2, and `late` should begin at 2 ms. Two messages meet at rank 4, and circuits move from 60 to 110
// us.
TEST(SchedulerPlugins, GiveWayReadsTheFieldsThatNoOtherReads) {
  const std::string star = "topology: {kind: star, hosts: 5, rate: 100 Gbps, delay: 1 us}\n";
  const std::string waiting =
      "{kind: tasks, ranks: 5, groups: {main: 0-2}, tasks: [{name: long, compute: 2 ms, on: 2}, "
      "{name: late, collective: all_reduce, on: main, bytes: 2 MB, after: long}, "
      "{name: a, from: 2, to: 4, bytes: 20 MB}, {name: b, from: 3, to: 4, bytes: 20 MB}]}\n";
  std::string flows = "kind: flows\nflows:\n";
  for (int i = 0; i < 40; ++i)
    flows += "  - {from: " + std::to_string(i % 8) + ", to: " + std::to_string((i + 1) % 8) +
             ", bytes: 400 KB, start: " + std::to_string(5 * i) + " us}\n";
  const std::string circuits =
      "topology: {kind: optical_circuits, switches: 8, servers: true, degree: 4, configurations: [{name: "
      "rings, "
      "jumps: [1, 3]}, {name: across, jumps: [1], matchings: [0, 3]}]}\n"
      "network: {circuits: {reconfiguration: 50 us, schedule: [{at: 60 us, configuration: across}]}}\n";
  struct Case {
    std::string field, network, workload;
    std::string others;  // fields that are off, too
  };
  for (const Case& c :
       {Case{"stalls", star, waiting, ""}, Case{"coming", star, waiting, ", stalls: {on: false}"},
        Case{"rates", star, waiting, ""},
        Case{"circuits", circuits, flows, ", coming: {on: false}, stalls: {on: false}"}}) {
    const auto run_with = [&](const char* on, std::uint32_t threads) {
      return run_give_way("{" + c.field + ": {on: " + on + "}" + c.others + "}", c.network, c.workload,
                          threads)
          .fingerprints.results;
    };
    EXPECT_NE(run_with("true", 1), run_with("false", 1)) << c.field;
    EXPECT_EQ(run_with("true", 1), run_with("true", 2)) << c.field;
  }
}

TEST(SchedulerPluginThreads, DoNotShow) {
  for (const char* kind : {"smallest_first", "paced", "compiler_overlap"}) {
    const Results one = run(kind, 1), two = run(kind, 2);
    EXPECT_EQ(one.fingerprints.results, two.fingerprints.results) << kind;
    EXPECT_EQ(one.fingerprints.packets, two.fingerprints.packets) << kind;
  }
}

// A job of one GPU comes after one of two, and begins before it when the first job has ended.
TEST(SchedulerPlugins, FewGpusFirstLetsASmallJobOvertake) {
  const std::string path = testing::TempDir() + "few_gpus_" + std::to_string(getpid()) + ".yaml";
  std::ofstream(path)
      << "jobs:\n"
         "- {name: first, workload: {kind: busy, ranks: 2, duration: 1 ms}}\n"
         "- {name: large, arrival: 100 us, workload: {kind: busy, ranks: 2, duration: 1 ms}}\n"
         "- {name: small, arrival: 200 us, workload: {kind: busy, duration: 1 ms}}\n";
  SimulationSetup setup;
  setup.config = parse_config(
      "topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 1 us}\nhost: single_nic\nnetwork: ideal\n"
      "scheduling: {jobs: few_gpus_first}\n",
      "schedulers.yaml");
  setup.workload = path;
  const Results results = Simulation(std::move(setup)).run({});
  std::filesystem::remove(path);
  EXPECT_EQ(to_string(results.outcome), std::string("done"));
  EXPECT_LT(results.jobs[2].begin, results.jobs[1].begin);
  EXPECT_GE(results.jobs[1].begin, results.jobs[2].end);
}

}  // namespace
}  // namespace netsim::plugin_schedulers_test
