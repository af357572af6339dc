// Tests that `kind: layers` takes the same multiples of a measured communication on two hosts and packets as
// in closed forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "sim/core/registry.h"
#include "sim/simulation/simulation.h"
#include "sim/workload/workload.h"

namespace netsim::layers_network_test {
namespace {

constexpr const char* kTwoHosts =
    "topology: {kind: star, hosts: 2, rate: 100 Gbps, delay: 1 us}\nhost: single_nic\n";

// Time between the ends of the last two iterations.
Time steady_time(const std::string& workload, const std::string& more = {}) {
  SimulationSetup setup;
  setup.config = parse_config(kTwoHosts + more, "two_hosts.yaml");
  JobDescription job;
  job.name = "layers";
  job.source =
      Registry<WorkloadKind>::instance()
          .create(parse_config("kind: layers\nreplicas: 2\niterations: 3\n" + workload, "layers.yaml"), "")
          ->tasks(2);
  setup.jobs.push_back(std::move(job));
  setup.threads = 1;
  const Results results = Simulation(std::move(setup)).run({});
  EXPECT_EQ(results.outcome, Outcome::done);
  const auto& ends = results.jobs.front().iteration_ends;
  return ends[ends.size() - 1] - ends[ends.size() - 2];
}

std::string chain(int count, Time forward, Time backward, Bytes bytes) {
  return "layers: [{count: " + std::to_string(count) + ", forward: " + format_time(forward) +
         ", backward: " + format_time(backward) + ", bytes: " + format_bytes(bytes) + "}]\n";
}

void expect_within_a_thousandth(Time actual, Time expected) {
  EXPECT_NEAR(static_cast<double>(actual), static_cast<double>(expected),
              1e-3 * static_cast<double>(expected));
}

// Four layers with f = 1, b = 2, c = 3 take 18 units: those of one unit are a third of an all-reduce.
TEST(LayersOnTwoHosts, TakeEighteenUnitsByWaitFreeBackpropagation) {
  const Bytes bytes = 30 * kMegabyte;
  const Time unit = steady_time(chain(1, 0, 0, bytes)) / 3;
  expect_within_a_thousandth(steady_time(chain(4, unit, 2 * unit, bytes)), 18 * unit);
}

// With launch_latency, each bucket has a start-up time. T = F + max(n b + buckets c(n), Bk + c(n)).
TEST(LayersOnTwoHosts, PayTheStartUpOfEachBucket) {
  const std::string startup = "collectives: {launch_latency: 400 us}\n";
  const Bytes bytes = 2 * kMegabyte;
  const Time forward = 100 * kMicrosecond, backward = 200 * kMicrosecond;
  constexpr int kLayers = 20;
  for (const int layers : {1, 5, 20}) {
    const Time reduced = steady_time(chain(1, 0, 0, layers * bytes), startup);
    const Time expected = kLayers * forward + std::max(layers * backward + kLayers / layers * reduced,
                                                       kLayers * backward + reduced);
    const std::string exchange =
        "exchange: {kind: all_reduce, bucket: " + format_bytes(layers * bytes) + "}\n";
    expect_within_a_thousandth(steady_time(chain(kLayers, forward, backward, bytes) + exchange, startup),
                               expected);
  }
}

}  // namespace
}  // namespace netsim::layers_network_test
