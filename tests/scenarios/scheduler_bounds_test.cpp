// Runs that are compared with other runs: what the order of messages is worth on a chain (TicTac), and what
// every task scheduler keeps to. tests/scenarios/declared/schedulers.yaml has runs with one number each.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/random.h"
#include "sim/core/registry.h"
#include "sim/simulation/simulation.h"
#include "sim/workload/workload.h"
#include "tests/support/test_size.h"

namespace netsim::scheduler_bounds_test {
namespace {

constexpr const char* kTwoHosts =
    "topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 1 ns, overhead: 0}\n"
    "host: single_nic\n"
    "transport: {mtu: 16 KiB, queue_pairs: 1, acknowledge: {every: 256}}\n"
    "collectives: {library: as_configured, base_latency_ring: 0, hop_latency_net_ring: 0}\n";

// Runs a workload on two hosts with a task scheduler and returns the ends of its iterations.
std::vector<Time> iteration_ends(const std::string& workload, const std::string& scheduler) {
  SimulationSetup setup;
  setup.config =
      parse_config(kTwoHosts + ("scheduling: {latency: 1 ns, tasks: " + scheduler + "}\n"), "two_hosts.yaml");
  JobDescription job;
  job.name = "job";
  job.source =
      Registry<WorkloadKind>::instance().create(parse_config(workload, "workload.yaml"), "")->tasks(2);
  setup.jobs.push_back(std::move(job));
  setup.threads = 1;
  const Results results = Simulation(std::move(setup)).run({});
  EXPECT_EQ(results.outcome, Outcome::done) << scheduler << "\n" << workload;
  return results.jobs.front().iteration_ends;
}

// ---- The order of messages on a chain

struct ChainTimes {
  Time message = 0, computation = 0;
};

// A rank computes four times in order, each time after a message. The messages become ready in this order.
std::string chain_of_messages(const std::vector<int>& order, const ChainTimes& times) {
  const Bytes bytes = times.message / kMillisecond * 12'451'840;  // 1 ms of wire time with headers
  std::string text = "kind: tasks\nranks: 2\ntasks:\n";
  for (const int i : order) {
    text += "  - {name: message_" + std::to_string(i) + ", from: 0, to: 1, bytes: " + format_bytes(bytes) +
            ", raw: true}\n";
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    text += "  - {name: compute_" + std::to_string(i) +
            ", on: 1, compute: " + format_time(times.computation) + ", after: message_" + std::to_string(i) +
            "}\n";
  }
  return text;
}

// Returns the mean time over all orders of four messages, as a multiple of that in TAC's order.
double worth_of_order(const ChainTimes& times) {
  std::vector<int> order(4);
  std::iota(order.begin(), order.end(), 0);
  Time sum = 0, runs = 0, best = 0;
  do {
    sum += iteration_ends(chain_of_messages(order, times), "fifo").front();
    best = iteration_ends(chain_of_messages(order, times), "{kind: priority, order: tac, part: 0}").front();
    ++runs;
    const Time expected =
        std::max(4 * times.message + times.computation, times.message + 4 * times.computation);
    EXPECT_NEAR(static_cast<double>(best), static_cast<double>(expected),
                1e-3 * static_cast<double>(expected));
  } while (std::next_permutation(order.begin(), order.end()));
  return static_cast<double>(sum) / static_cast<double>(runs) / static_cast<double>(best);
}

// The means over all 24 orders of the model are 1.375 and 1.176.
TEST(TaskSchedulerWorth, IsTheOrderOfFourMessages) {
  EXPECT_NEAR(worth_of_order({2 * kMillisecond, 2 * kMillisecond}), 1.375, 0.003);
  EXPECT_NEAR(worth_of_order({4 * kMillisecond, 2 * kMillisecond}), 1.176, 0.003);
  EXPECT_NEAR(worth_of_order({2 * kMillisecond, 4 * kMillisecond}), 1.176, 0.003);
}

// ---- Bounds

// The rules whose plans do not depend on the times of computations.
const std::vector<std::string>& schedulers() {
  static const std::vector<std::string> all{"fifo",
                                            "{kind: fifo, part: 1 MB}",
                                            "{kind: fifo, part: 1 MB, in_flight: 3}",
                                            "{kind: priority, part: 0}",
                                            "{kind: priority, part: 1 MB}",
                                            "{kind: priority, order: tail, part: 1 MB}",
                                            "{kind: credit, part: 1 MB, credit: 2 MB}",
                                            "{kind: preferred, prefer: ep, part: 1 MB}",
                                            "{kind: trirace, part: 1 MB}",
                                            "{kind: ddp, first_bucket: 1 MB, bucket: 6 MB}"};
  return all;
}

struct RandomChain {
  std::string layers;
  Time computing = 0;
};

RandomChain random_chain(RandomStream& random) {
  RandomChain chain;
  const std::uint64_t count = 2 + random.below(6);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Time forward = static_cast<Time>(random.below(500)) * kMicrosecond;
    const Time backward = static_cast<Time>(random.below(1000)) * kMicrosecond;
    const auto bytes = static_cast<Bytes>(100'000 + random.below(8'000'000));
    chain.computing += forward + backward;
    chain.layers += "  - {forward: " + format_time(forward) + ", backward: " + format_time(backward) +
                    ", bytes: " + format_bytes(bytes) + "}\n";
  }
  return chain;
}

// Time between the ends of the second and the last of four iterations, for each.
double steady_time(const std::string& layers, const std::string& scheduler, bool computes) {
  const std::string scale = computes ? "" : "scale: {forward: 0, backward: 0}\n";
  const std::vector<Time> ends =
      iteration_ends("kind: layers\nreplicas: 2\niterations: 4\n" + scale + "layers:\n" + layers, scheduler);
  return static_cast<double>(ends.at(3) - ends.at(1)) / 2;
}

// An iteration takes at least the longer of computing and communication, and at most both after each other.
// Communication is that of the same plan, with its parts, where nothing is computed.
TEST(TaskSchedulerBounds, AreComputingAndCommunication) {
  const std::uint64_t chains = test::by_size<std::uint64_t>(30, 4, 1);
  for (std::uint64_t number = 0; number < chains; ++number) {
    RandomStream random(number, "chain");
    const RandomChain chain = random_chain(random);
    const auto computing = static_cast<double>(chain.computing);
    for (const std::string& scheduler : schedulers()) {
      SCOPED_TRACE(scheduler + "\n" + chain.layers);
      const double communication = steady_time(chain.layers, scheduler, false);
      const double both = steady_time(chain.layers, scheduler, true);
      EXPECT_GE(both, 0.999 * std::max(computing, communication));
      EXPECT_LE(both, 1.001 * (computing + communication));
    }
  }
}

}  // namespace
}  // namespace netsim::scheduler_bounds_test
