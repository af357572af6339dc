// Do flow schedulers give the same run for any number of sets and threads, and does `fair` change nothing?
#include <gtest/gtest.h>

#include <string>

#include "tests/support/run_in_sets.h"

namespace netsim::flow_scheduler_threads_test {
namespace {

const std::string kAllReduce = "{kind: collective, collective: all_reduce, bytes: 2 MB}\n";
const std::string kFlows =
    "kind: flows\nflows:\n"
    "  - {name: a, from: 0, to: 4, bytes: 300 KB}\n  - {name: a, from: 1, to: 5, bytes: 200 KB}\n"
    "  - {name: b, from: 2, to: 4, bytes: 500 KB, start: 3 us}\n  - {name: c, from: 0, to: 5, bytes: 1 MB}\n";

const std::string kFatTree =
    "topology: {kind: fat_tree, k: 4, rate: 100 Gbps, delay: 1 us}\nhost: single_nic\n";

Results run(const std::string& scheduling, const std::string& workload, std::uint32_t sets = 1,
            std::uint32_t threads = 1) {
  return test::run_in_sets(kFatTree + scheduling, workload, sets, threads);
}

TEST(FlowSchedulerThreads, SetsAndThreadsDoNotMatter) {
  for (const char* flows :
       {"max_min", "{kind: strict, by: size, act: rates, first: 1 KB}", "srpt", "las",
        "{kind: varys, coflow: name}", "sincronia", "{kind: echelon, spacing: 5 us}",
        "{kind: deadline, deadlines: [{name: a, after: 50 us}], admission: true}", "fastpass", "paths"}) {
    for (const std::string& workload : {kAllReduce, kFlows}) {
      const std::string scheduling =
          "scheduling: {flows: " + std::string(flows) + ", interval: 2 us, flow_delay: 1500 ns}\n";
      const Results one = run(scheduling, workload);
      EXPECT_GT(one.flow_scheduling.intervals, 0U) << flows;
      test::expect_same_flows(one, run(scheduling, workload, 5, 1), flows);
      test::expect_same_flows(one, run(scheduling, workload, 5, 2), flows);
    }
  }
}

TEST(FlowSchedulerThreads, FairIsNoScheduler) {
  for (const std::string& workload : {kAllReduce, kFlows}) {
    const Results without = run("", workload), fair = run("scheduling: {flows: fair}\n", workload);
    EXPECT_EQ(without.fingerprints.results, fair.fingerprints.results);
    EXPECT_EQ(without.fingerprints.packets, fair.fingerprints.packets);
    EXPECT_EQ(without.flow_scheduling.scheduler, "");
    EXPECT_EQ(fair.flow_scheduling.scheduler, "fair");
    EXPECT_GT(fair.flow_scheduling.flows, 0U);
  }
}

// Each of the 16 GPUs has one flow into the trees of switches.
TEST(FlowSchedulerThreads, FlowsIntoTreesAreScheduledAlike) {
  const std::string sharp = "network: {switch: {aggregation: true}}\ncollectives: {all_reduce: sharp}\n";
  const Results without = run(sharp, kAllReduce),
                fair = run(sharp + "scheduling: {flows: fair}\n", kAllReduce);
  EXPECT_EQ(without.fingerprints.results, fair.fingerprints.results);
  EXPECT_EQ(without.fingerprints.packets, fair.fingerprints.packets);
  EXPECT_EQ(fair.flow_scheduling.flows, 16U);
  for (const char* flows : {"max_min", "srpt", "fastpass", "paths"}) {
    const std::string scheduled =
        sharp + "scheduling: {flows: " + flows + ", interval: 2 us, flow_delay: 1500 ns}\n";
    const Results one = run(scheduled, kAllReduce);
    EXPECT_EQ(one.flow_scheduling.flows, 16U) << flows;
    EXPECT_GT(one.flow_scheduling.held_time, 0) << flows;
    test::expect_same_flows(one, run(scheduled, kAllReduce, 5, 2), flows);
  }
}

// A new flow waits for the next interval and the delay.
TEST(FlowSchedulerThreads, DecisionsActAfterTheDelay) {
  const std::string one_flow = "kind: flows\nflows:\n  - {from: 0, to: 4, bytes: 100 KB}\n";
  const Results now = run("scheduling: {flows: max_min, interval: 2 us}\n", one_flow);
  const Results later = run("scheduling: {flows: max_min, interval: 2 us, flow_delay: 7 us}\n", one_flow);
  EXPECT_EQ(now.flow_scheduling.held_time, 2 * kMicrosecond);
  EXPECT_EQ(later.flow_scheduling.held_time, 9 * kMicrosecond);
  EXPECT_EQ(later.flows.maximum - now.flows.maximum, 7 * kMicrosecond);
}

}  // namespace
}  // namespace netsim::flow_scheduler_threads_test
