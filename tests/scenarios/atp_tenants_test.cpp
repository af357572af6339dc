// Do ATP's tenants share the aggregators of a switch so that nobody loses? No job is slower than in the same
// run without aggregators, and the share that switches add up does not fall as their memory grows.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "sim/core/random.h"
#include "tests/support/run_in_sets.h"
#include "tests/support/test_size.h"

namespace netsim::atp_tenants_test {
namespace {

constexpr std::uint32_t kSizes[] = {1, 4, 8, 16, 32, 64, 128, 1024};  // aggregators of the switch

std::uint64_t seeds() { return test::by_size<std::uint64_t>(100, 5, 2); }

// Returns the results of a switch with so many aggregators. All hosts have links of 100 Gb/s to it.
Results results(std::uint32_t aggregators, std::uint32_t hosts, std::uint64_t window,
                const std::string& workload) {
  return test::run_in_sets(
      fmt::format("topology: {{kind: star, hosts: {}, rate: 100 Gbps, delay: 100 ns, overhead: 0}}\n"
                  "host: single_nic\n"
                  "network: {{switch: {{aggregation: true, aggregators: {}}}}}\n"
                  "transport: {{congestion_control: none, mtu: 4096 B}}\n"
                  "collectives: {{all_reduce: {{kind: atp, window: {}}}}}\n",
                  hosts, aggregators, window),
      workload);
}

std::uint64_t added_up(const Results& results) {
  std::uint64_t packets = 0;
  for (const AggregationResult& one : results.aggregation) packets += one.use.counters.packets;
  return packets;
}

TEST(AtpTenants, AreNeverSlowerThanWithoutAggregators) {
  for (std::uint64_t seed = 0; seed < seeds(); ++seed) {
    RandomStream draws(seed, "tenants of atp");
    const auto first = static_cast<std::uint32_t>(3 + draws.below(6));
    const auto second = static_cast<std::uint32_t>(3 + draws.below(6));
    const std::uint64_t window = 8 + draws.below(60);
    const std::string jobs = fmt::format(
        "jobs:\n"
        "  - {{name: a, workload: {{kind: collective, collective: all_reduce, bytes: {} B, ranks: {}}}}}\n"
        "  - {{name: b, arrival: {} us, workload: {{kind: collective, collective: all_reduce, bytes: {} B, "
        "ranks: {}}}}}\n",
        50'000 + draws.below(100'000), first, draws.below(20), 50'000 + draws.below(100'000), second);
    SCOPED_TRACE(fmt::format("seed {}, window {}\n{}", seed, window, jobs));
    const Results none = results(0, first + second, window, jobs);
    ASSERT_EQ(added_up(none), 0U);
    for (const std::uint32_t size : kSizes) {
      const Results some = results(size, first + second, window, jobs);
      for (const std::size_t job : {0U, 1U})
        EXPECT_LE(some.jobs[job].end, none.jobs[job].end) << size << " aggregators, job " << job;
    }
  }
}

TEST(AtpTenants, AddUpNoLessWithMoreMemory) {
  for (std::uint64_t seed = 0; seed < seeds(); ++seed) {
    RandomStream draws(seed, "memory for atp");
    const auto hosts = static_cast<std::uint32_t>(3 + draws.below(10));
    const std::uint64_t window = 8 + draws.below(100), packets = 1000 + draws.below(1000);
    const std::string job =
        fmt::format("{{kind: collective, collective: all_reduce, bytes: {} B}}\n", 248 * packets);
    SCOPED_TRACE(fmt::format("seed {}, window {}, {} hosts\n{}", seed, window, hosts, job));
    std::uint64_t before = 0;
    for (const std::uint32_t size : kSizes) {
      const Results run = results(size, hosts, window, job);
      EXPECT_GE(added_up(run), before) << size << " aggregators";
      before = added_up(run);
    }
    EXPECT_EQ(before, (hosts - 1) * packets) << "there are as many aggregators as packets in flight";
  }
}

}  // namespace
}  // namespace netsim::atp_tenants_test
