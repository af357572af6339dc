// Tests training whose communication overlaps by other schedules and graphs, on packets. No product of
// parallelism stalls under jitter, times add up, and the number of threads does not show.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/scenarios/jittered_star.h"
#include "tests/support/test_size.h"

namespace netsim::overlap_seeds_test {
namespace {

std::string gpt(const std::string& parallel, const std::string& more) {
  return "{kind: ptdp, model: {layers: 4, hidden: 256, heads: 4, sequence: 64, vocabulary: 1024}, "
         "microbatch: 2, "
         "microbatches: 4, iterations: 2, parallel: {" +
         parallel + "}" + more + "}";
}
std::string experts(const std::string& more) {
  return "{kind: ptdp, model: {kind: llama, layers: 4, hidden: 128, heads: 4, groups: 4, inner: 256, "
         "sequence: "
         "64, vocabulary: 1024, experts: {count: 4, top_k: 2}}, microbatch: 2, microbatches: 2, iterations: "
         "2, "
         "parallel: {tensor: 2, sequence: true, pipeline: 2, data: 2, expert: 2}" +
         more + "}";
}

// Two ranks count as a host, so that collectives have groups.
const std::string kGroups =
    "{kind: partitioned_collectives, per_host: 2, within: {startup: 1 us, rate: 400 Gbps}, between: "
    "{startup: 1 us, "
    "rate: 50 Gbps}}";

// Workloads of eight ranks.
const std::vector<std::string> kWorkloads{
    gpt("tensor: 2, pipeline: 2, data: 2", ", recompute: none, strategies: [sub_batches]"),
    gpt("tensor: 2, sequence: true, data: 4",
        ", strategies: [{kind: sub_batches, weight_gradients: behind_communication}]"),
    gpt("tensor: 2, context: 2, data: 2, context_exchange: all_gather", ", strategies: [sub_batches]"),
    experts(", recompute: none, strategies: [sub_batches]"),
    gpt("tensor: 2, pipeline: 2, data: 2", ", strategies: [recompute_windows]"),
    gpt("tensor: 2, sequence: true, data: 4",
        ", optimizer: distributed_adam, sharding: {what: parameters}, strategies: [recompute_windows]"),
    experts(", strategies: [recompute_windows]"),
    gpt("tensor: 2, pipeline: 2, data: 2, virtual_stages: 2, schedule: fold3d", ""),
    gpt("pipeline: 4, data: 2, schedule: fold3d", ", optimizer: distributed_adam"),
    gpt("tensor: 2, pipeline: 2, data: 2", ", strategies: [sliced_boundaries]"),
    "{kind: layers, replicas: 8, iterations: 3, layers: [{count: 4, forward: 100 us, backward: 200 us, "
    "bytes: 1 "
    "MB}], exchange: {kind: centauri, per_host: 2, within: {startup: 5 us, rate: 100 Gbps}, between: "
    "{startup: 5 us, "
    "rate: 100 Gbps}}}",
    gpt("tensor: 4, pipeline: 2", ", recompute: none, strategies: [sliced_boundaries, sub_batches]"),
    gpt("tensor: 2, pipeline: 2, data: 2, schedule: {kind: pipedream_2bw, batch: 2}", ""),
    gpt("tensor: 2, sequence: true, pipeline: 2, data: 2, schedule: {kind: pipedream_2bw, batch: 2}",
        ", optimizer: distributed_adam"),
    gpt("tensor: 4, pipeline: 2", ", strategies: [recompute_windows, " + kGroups + "]"),
    gpt("data: 8",
        ", optimizer: distributed_adam, overlap_parameter_gather: true, gradient: {bucket: 200 KB, overlap: "
        "true}, strategies: [" +
            kGroups + "]"),
    experts(", recompute: none, strategies: [sub_batches, " + kGroups + "]"),
};

class OverlapSeeds : public test::JitteredStar {};
class OverlapThreads : public test::JitteredStar {};

TEST_F(OverlapSeeds, NeverStall) {
  const std::uint64_t seeds = test::by_size<std::uint64_t>(50, 1, 1);
  for (const std::string& workload : kWorkloads) {
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      SCOPED_TRACE(workload + ", seed " + std::to_string(seed));
      Results results;
      ASSERT_NO_THROW(results = run({workload, seed}));
      ASSERT_EQ(results.outcome, Outcome::done) << (results.waiting.empty() ? "" : results.waiting.front());
      test::expect_rank_times_add_up(results.jobs[0]);
      if (HasFailure()) return;
    }
  }
}

TEST_F(OverlapThreads, DoNotShow) {
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> all{{0, 3}, {5, 1}, {2, 2}, {8, 4}};
  const std::size_t count = test::by_size<std::size_t>(all.size(), 1, 1);
  const std::vector<std::string> workloads = test::share_of(kWorkloads, 2, 4);
  for (std::size_t i = 0; i < workloads.size(); ++i) {
    test::JitteredRun scenario{workloads[i]};
    const Results one = run(scenario);
    for (std::size_t j = 0; j < count; ++j) {
      std::tie(scenario.sets, scenario.threads) = all[(i + j) % all.size()];
      const Results other = run(scenario);
      EXPECT_EQ(one.fingerprints.results, other.fingerprints.results) << scenario.workload;
      EXPECT_EQ(one.fingerprints.packets, other.fingerprints.packets) << scenario.workload;
    }
  }
}

}  // namespace
}  // namespace netsim::overlap_seeds_test
