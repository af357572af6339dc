// Do aged, periodic and hidden views give the same run for any number of sets and threads? Does a field that
// no scheduler uses change nothing?
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/random.h"
#include "sim/simulation/simulation.h"
#include "tests/report/fixtures.h"
#include "tests/support/test_size.h"

namespace netsim::view_threads_test {
namespace {

// Flows of random sizes and starts over a fat tree.
std::string random_flows(std::uint64_t seed) {
  RandomStream random(seed, "flows of a test of views");
  std::string text = "kind: flows\nflows:\n";
  for (std::uint64_t i = 0, last = 4 + random.below(8); i <= last; ++i) {
    const std::uint64_t from = random.below(16), to = (from + 1 + random.below(15)) % 16;
    text += "  - {name: " + std::string(1, "abc"[random.below(3)]) + ", from: " + std::to_string(from) +
            ", to: " + std::to_string(to) + ", bytes: " + std::to_string(1 + random.below(900)) +
            " KB, start: " + std::to_string(random.below(60)) + " us}\n";
  }
  return text;
}

std::string random_setting(RandomStream& random, const std::string& field) {
  const std::uint64_t age = random.below(4) * 7, every = random.below(3) * 10;
  return field + ": {age: " + std::to_string(age) + " us, every: " + std::to_string(every) + " us}";
}

std::string random_views(std::uint64_t seed) {
  RandomStream random(seed, "views of a test");
  return "{" + random_setting(random, "sizes") + ", " + random_setting(random, "loads") + ", " +
         random_setting(random, "deadlines") + "}";
}

Results run(const std::string& scheduling, const std::string& workload, std::uint32_t sets,
            std::uint32_t threads) {
  const test::Directory directory;
  SimulationSetup setup;
  setup.workload = directory.path() + "/flows.yaml";
  std::ofstream(setup.workload.text()) << workload;
  setup.config =
      parse_config("topology: {kind: fat_tree, k: 4, rate: 100 Gbps, delay: 1 us}\nhost: single_nic\n" +
                       scheduling + "engine: {sets: " + std::to_string(sets) + "}\n",
                   "views.yaml");
  setup.threads = threads;
  Results results = Simulation(std::move(setup)).run({});
  EXPECT_EQ(to_string(results.outcome), std::string("done")) << scheduling;
  return results;
}

void expect_equal(const Results& a, const Results& b, const std::string& what) {
  EXPECT_EQ(a.fingerprints.results, b.fingerprints.results) << what;
  EXPECT_EQ(a.fingerprints.packets, b.fingerprints.packets) << what;
  EXPECT_EQ(a.flow_scheduling.decisions, b.flow_scheduling.decisions) << what;
  EXPECT_EQ(a.flow_scheduling.intervals, b.flow_scheduling.intervals) << what;
}

const std::vector<std::string> kSchedulers{
    "max_min",
    "srpt",
    "las",
    "{kind: varys, coflow: name}",
    "{kind: paths, by: loads, avoid_failed: true}",
    "{kind: deadline, deadlines: [{name: a, after: 50 us}]}",
};

TEST(ViewThreads, SetsAndThreadsDoNotMatterAtAnyAge) {
  for (std::uint64_t seed = 0; seed < test::by_size<std::uint64_t>(40, 6, 3); ++seed) {
    const std::string& flows = kSchedulers[seed % kSchedulers.size()];
    const std::string scheduling = "scheduling: {interval: 1 us, flow_delay: 500 ns, flows: " + flows +
                                   ", views: " + random_views(seed) + "}\n";
    const std::string workload = random_flows(seed);
    const Results one = run(scheduling, workload, 1, 1);
    EXPECT_GT(one.flow_scheduling.intervals, 0U) << scheduling;
    expect_equal(one, run(scheduling, workload, 5, 1), scheduling);
    expect_equal(one, run(scheduling, workload, 4, 2), scheduling);
    expect_equal(one, run(scheduling, workload, 8, 8), scheduling);
  }
}

TEST(ViewThreads, AFieldThatNoSchedulerUsesChangesNothing) {
  const std::string workload = random_flows(1);
  const auto with = [&](const std::string& views) {
    return run("scheduling: {flows: max_min, views: " + views + "}\n", workload, 1, 1);
  };
  const Results all = with("{}");
  expect_equal(all, with("{queues: {on: false}, loads: {on: false}, jobs: {on: false}}"), "off");
  expect_equal(all, with("{queues: {age: 5 us}, loads: {every: 10 us}, stalls: {age: 1 ms}}"), "aged");
  EXPECT_NE(all.fingerprints.results, with("{sizes: {age: 5 us}}").fingerprints.results);
}

TEST(ViewThreads, AgeOfSizesDelaysAFlowExactly) {
  const std::string flow = "kind: flows\nflows:\n  - {from: 0, to: 4, bytes: 100 KB}\n";
  const Results now = run("scheduling: {flows: max_min}\n", flow, 1, 1);
  const Results later = run("scheduling: {flows: max_min, views: {sizes: {age: 100 us}}}\n", flow, 1, 1);
  EXPECT_EQ(later.flows.maximum - now.flows.maximum, 100 * kMicrosecond);
}

}  // namespace
}  // namespace netsim::view_threads_test
