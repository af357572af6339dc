// Do aged, periodic and hidden views give the same run for any number of sets and threads? Does a field that
// no scheduler uses change nothing?
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/random.h"
#include "sim/core/registry.h"
#include "sim/scheduling/flow/flow_scheduler.h"
#include "tests/support/run_in_sets.h"
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
         random_setting(random, "deadlines") + ", " + random_setting(random, "queues") + "}";
}

const std::string kFatTree =
    "topology: {kind: fat_tree, k: 4, rate: 100 Gbps, delay: 1 us}\nhost: single_nic\n";

Results run(const std::string& scheduling, const std::string& workload, std::uint32_t sets = 1,
            std::uint32_t threads = 1) {
  return test::run_in_sets(kFatTree + scheduling, workload, sets, threads);
}

const std::vector<std::string> kSchedulers{
    "max_min",
    "srpt",
    "las",
    "{kind: varys, coflow: name}",
    "{kind: paths, by: loads, avoid_failed: true}",
    "{kind: deadline, deadlines: [{name: a, after: 50 us}]}",
    "{kind: paths, by: queues}",
};

TEST(ViewThreads, SetsAndThreadsDoNotMatterAtAnyAge) {
  for (std::uint64_t seed = 0; seed < test::by_size<std::uint64_t>(42, 7, 3); ++seed) {
    const std::string& flows = kSchedulers[seed % kSchedulers.size()];
    const std::string scheduling = "scheduling: {interval: 1 us, flow_delay: 500 ns, flows: " + flows +
                                   ", views: " + random_views(seed) + "}\n";
    const std::string workload = random_flows(seed);
    const Results one = run(scheduling, workload);
    EXPECT_GT(one.flow_scheduling.intervals, 0U) << scheduling;
    test::expect_same_flows(one, run(scheduling, workload, 5, 1), scheduling);
    test::expect_same_flows(one, run(scheduling, workload, 4, 2), scheduling);
    test::expect_same_flows(one, run(scheduling, workload, 8, 8), scheduling);
  }
}

// Returns settings of fields that the scheduler does not use, each with these keys.
std::string unused_views(const std::string& flows, const std::string& keys, ViewFields besides) {
  const ViewFields used =
      Registry<FlowScheduler>::instance().create(parse_config(flows, "flows.yaml"), "")->needs().views;
  std::string views;
  for (const ViewField field : fields_in(ViewFields::all() - used - besides))
    views += (views.empty() ? "" : ", ") + std::string(name_of(field)) + ": " + keys;
  return "{" + views + "}";
}

TEST(ViewThreads, AFieldThatNoSchedulerUsesChangesNothing) {
  const ViewFields ageless{ViewField::topology, ViewField::phases};
  for (std::uint64_t seed = 0; seed < test::by_size<std::uint64_t>(21, 7, 3); ++seed) {
    const std::string& flows = kSchedulers[seed % kSchedulers.size()];
    const std::string workload = random_flows(seed);
    const auto with = [&](const std::string& views) {
      return run("scheduling: {flows: " + flows + ", views: " + views + "}\n", workload);
    };
    const std::string aged = "{age: " + std::to_string(5 + seed) + " us, every: 10 us}";
    const Results all = with("{}");
    test::expect_same_flows(all, with(unused_views(flows, "{on: false}", {})), flows + " without");
    test::expect_same_flows(all, with(unused_views(flows, aged, ageless)), flows + " aged");
  }
  const auto aged_sizes = [](const std::string& views) {
    return run("scheduling: {flows: max_min, views: " + views + "}\n", random_flows(1)).fingerprints.results;
  };
  EXPECT_NE(aged_sizes("{}"), aged_sizes("{sizes: {age: 5 us}}"));
}

TEST(ViewThreads, AgeOfSizesDelaysAFlowExactly) {
  const std::string flow = "kind: flows\nflows:\n  - {from: 0, to: 4, bytes: 100 KB}\n";
  const Results now = run("scheduling: {flows: max_min}\n", flow);
  const Results later = run("scheduling: {flows: max_min, views: {sizes: {age: 100 us}}}\n", flow);
  EXPECT_EQ(later.flows.maximum - now.flows.maximum, 100 * kMicrosecond);
}

}  // namespace
}  // namespace netsim::view_threads_test
