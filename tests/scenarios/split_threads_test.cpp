// Do splits give the same run for any number of sets and threads, and is every byte carried once?
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "sim/core/random.h"
#include "tests/support/run_in_sets.h"
#include "tests/support/test_size.h"

namespace netsim::split_threads_test {
namespace {

constexpr std::uint32_t kGpus = 16, kOfHost = 4;

// The workload of a run, with the bytes that cross the fabric and those of messages that may be split.
struct Traffic {
  std::string text = "kind: flows\nflows:\n";
  Bytes over_fabric = 0, splittable = 0;
};

Traffic random_traffic(std::uint64_t seed) {
  RandomStream random(seed, "split traffic");
  Traffic traffic;
  for (int flow = 0; flow < 20; ++flow) {
    const auto from = static_cast<std::uint32_t>(random.below(kGpus));
    const auto to = static_cast<std::uint32_t>(from + 1 + random.below(kGpus - 1)) % kGpus;
    const auto bytes = static_cast<Bytes>(1000 + random.below(400'000));
    traffic.text += "  - {from: " + std::to_string(from) + ", to: " + std::to_string(to) +
                    ", bytes: " + std::to_string(bytes) + " B, start: " + std::to_string(random.below(30)) +
                    " us}\n";
    if (from / kOfHost == to / kOfHost) continue;
    traffic.over_fabric += bytes;
    if (bytes >= 50'000) traffic.splittable += bytes;
  }
  return traffic;
}

Results run(const std::string& workload, const std::string& scheduling, std::uint32_t sets,
            std::uint32_t threads) {
  return test::run_in_sets(
      "topology: {kind: star, hosts: 16, rate: 100 Gbps, delay: 1 us}\n"
      "hosts: [{kind: full_mesh, count: 4, gpus: 4}]\nscheduling: {" +
          scheduling + "}\n",
      workload, sets, threads);
}

TEST(SplitThreads, SetsAndThreadsDoNotMatter) {
  const std::string by = "splits: {kind: proportional, least: 50 KB, chunk: 16 KiB, by: ";
  for (std::uint64_t seed = 0; seed < (test::full_size() ? 20U : 3U); ++seed) {
    const Traffic traffic = random_traffic(seed);
    for (const std::string& scheduling :
         {by + "links}", by + "measured}", by + "links}, flows: max_min, interval: 2 us"}) {
      const Results one = run(traffic.text, scheduling, 1, 1);
      EXPECT_EQ(one.splits.own + one.splits.nvlink + one.splits.pcie, traffic.splittable) << scheduling;
      EXPECT_GT(one.splits.nvlink, 0) << scheduling;
      EXPECT_EQ(one.network.bytes_delivered, traffic.over_fabric) << scheduling;
      for (const std::uint32_t threads : {1U, 2U, 5U, 8U}) {
        const Results other = run(traffic.text, scheduling, 5, threads);
        EXPECT_EQ(one.fingerprints.results, other.fingerprints.results) << scheduling << threads;
        EXPECT_EQ(one.fingerprints.packets, other.fingerprints.packets) << scheduling << threads;
        EXPECT_EQ(one.splits.nvlink, other.splits.nvlink) << scheduling << threads;
      }
    }
  }
}

// Messages end sooner when they also use the NICs of GPUs that have nothing to send.
TEST(SplitThreads, MessagesUseIdleNics) {
  const std::string ring =
      "kind: flows\nflows:\n"
      "  - {from: 0, to: 4, bytes: 16 MB}\n  - {from: 4, to: 8, bytes: 16 MB}\n"
      "  - {from: 8, to: 12, bytes: 16 MB}\n  - {from: 12, to: 0, bytes: 16 MB}\n";
  const Results whole = run(ring, "", 1, 1), split = run(ring, "splits: proportional", 1, 1);
  EXPECT_EQ(split.splits.split, 4U);
  EXPECT_LT(split.simulated, whole.simulated / 3);  // four NICs, and the chunks of relays
}

}  // namespace
}  // namespace netsim::split_threads_test
