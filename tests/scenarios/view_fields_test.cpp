// Does a scheduler that names all fields see what the network and the jobs do, and at the age that is set?
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/registry.h"
#include "sim/scheduling/flow/flow_scheduler.h"
#include "sim/simulation/simulation.h"
#include "tests/report/fixtures.h"

namespace netsim::view_fields_test {
namespace {

// Glance: copies of what one decision saw.
struct Glance {
  Time now = 0;
  std::size_t flows = 0;
  std::vector<double> loads;
  std::vector<Bytes> queues;
  std::vector<SendRate> rates;
  std::vector<std::uint8_t> down;
  std::vector<Stall> stalls;
  std::vector<JobProgress> jobs;
  std::vector<ComingCommunication> coming;
  std::vector<CommunicationSlack> slack;
  std::vector<std::uint8_t> failed;
  std::vector<CircuitState> circuits;
};

// Returns the glances of the present run.
std::vector<Glance>& glances() {
  static std::vector<Glance> all;
  return all;
}

template <class T>
std::vector<T> copy(std::span<const T> values) {
  return {values.begin(), values.end()};
}

class Glances final : public FlowScheduler {
 public:
  FlowNeeds needs() const override { return {.central = true, .sizes = true, .views = ViewFields::all()}; }
  void decide(const FlowsView& view, FlowDecisions&) override {
    const NetworkView& network = view.network;
    const DemandView& demand = view.demand;
    glances().push_back({view.now, view.flows.size(), copy(network.loads), copy(network.queues),
                         copy(network.rates), copy(network.down), copy(network.stalls), copy(demand.jobs),
                         copy(demand.coming), copy(demand.slack), copy(network.failed),
                         copy(network.circuits)});
  }
};

const Registration<FlowScheduler> kGlances{
    "test_glances", "notes what it sees, and decides nothing", Parameters<NoParameters>(),
    [](const NoParameters&, const ConfigNode&) { return std::make_unique<Glances>(); }};

// Ranks 0 and 1 wait in `late` for ranks 2 and 3, which compute for 3 ms. Ranks 4 and 5 send all the time.
const std::string kWorkload =
    "{kind: tasks, ranks: 6, groups: {low: 0-1, high: 2-3, main: 0-3, other: 4-5}, tasks: ["
    "{name: long, compute: 3 ms, on: high}, {name: first, collective: all_reduce, on: low, bytes: 10 MB}, "
    "{name: late, collective: all_reduce, on: main, bytes: 2 MB, after: [long, first]}, "
    "{name: busy, collective: all_reduce, on: other, bytes: 60 MB}]}\n";

void run(const std::string& views, const std::string& cluster, const std::string& workload) {
  const test::Directory directory;
  SimulationSetup setup;
  setup.workload = directory.path() + "/tasks.yaml";
  std::ofstream(setup.workload.text()) << workload;
  setup.config =
      parse_config(cluster + "transport: {congestion_control: none}\n" +
                       "scheduling: {flows: test_glances, interval: 10 us, views: " + views + "}\n",
                   "views.yaml");
  glances().clear();
  const Results results = Simulation(std::move(setup)).run({});
  EXPECT_EQ(to_string(results.outcome), std::string("done"));
  ASSERT_FALSE(glances().empty());
}

void run(const std::string& views) {
  run(views, "topology: {kind: star, hosts: 6, rate: 100 Gbps, delay: 1 us}\nhost: single_nic\n", kWorkload);
}

const Glance& first_after(Time time) {
  const auto found =
      std::find_if(glances().begin(), glances().end(), [&](const Glance& one) { return one.now >= time; });
  return found != glances().end() ? *found : glances().back();
}

TEST(ViewsSeen, ShowTheNetworkAndTheJobs) {
  run("{}");
  const Glance& middle = first_after(2 * kMillisecond);
  EXPECT_EQ(middle.loads.size(), middle.queues.size());
  EXPECT_GT(*std::max_element(middle.loads.begin(), middle.loads.end()), 0.5);
  EXPECT_LE(*std::max_element(middle.loads.begin(), middle.loads.end()), 1.0);
  EXPECT_FALSE(middle.rates.empty());
  EXPECT_EQ(std::count(middle.down.begin(), middle.down.end(), 1), 0);
  ASSERT_EQ(middle.stalls.size(), 2U);
  EXPECT_EQ(middle.stalls[0].rank, 0U);
  EXPECT_EQ(middle.stalls[0].peer, 2U);
  EXPECT_EQ(middle.stalls[0].waits_for, 2U);
  EXPECT_GT(middle.stalls[0].since, 800 * kMicrosecond);
  EXPECT_LT(middle.stalls[0].since, kMillisecond);
  ASSERT_EQ(middle.jobs.size(), 1U);
  EXPECT_EQ(middle.jobs[0].gpus_held, 6U);
  EXPECT_EQ(middle.jobs[0].iteration_began, 0);
  ASSERT_EQ(middle.coming.size(), 1U);
  EXPECT_EQ(middle.coming[0].bytes, 2 * kMegabyte);
  EXPECT_EQ(middle.coming[0].expected, 3 * kMillisecond);
  EXPECT_EQ(middle.slack.size(), 3U);  // by name
  EXPECT_TRUE(first_after(4 * kMillisecond).coming.empty());
  EXPECT_TRUE(first_after(4 * kMillisecond).stalls.empty());
}

TEST(ViewsSeen, ShowWhatWas) {
  run("{stalls: {age: 1500 us}, jobs: {age: 1 ms}, loads: {every: 100 us, age: 1 ms}}");
  // Ranks 0 and 1 wait from 0.88 ms on, and until 3 ms at least.
  for (const Glance& one : glances()) {
    const Time seen = one.now - 1500 * kMicrosecond;
    if (seen < 870 * kMicrosecond) {
      EXPECT_TRUE(one.stalls.empty()) << one.now;
    } else if (seen > 890 * kMicrosecond && seen < 3 * kMillisecond) {
      EXPECT_EQ(one.stalls.size(), 2U) << one.now;
    }
  }
  EXPECT_EQ(first_after(2500 * kMicrosecond).stalls.size(), 2U);
  EXPECT_TRUE(first_after(500 * kMicrosecond).jobs.empty());
  const Glance& later = first_after(2 * kMillisecond);
  ASSERT_EQ(later.jobs.size(), 1U);
  EXPECT_NEAR(later.jobs[0].gpu_seconds, 6 * to_seconds(later.now - kMillisecond), 1e-9 + 60e-6);
  EXPECT_TRUE(first_after(kMillisecond).loads.empty());
  EXPECT_FALSE(later.loads.empty());
}

// From 60 to 110 us the switch moves circuits.
TEST(ViewsSeen, ShowCircuits) {
  std::string flows = "kind: flows\nflows:\n";
  for (int i = 0; i < 40; ++i) {
    flows += "  - {from: " + std::to_string(i % 8) + ", to: " + std::to_string((i + 1) % 8) +
             ", bytes: 400 KB, start: " + std::to_string(5 * i) + " us}\n";
  }
  run("{}",
      "topology: {kind: optical_circuits, switches: 8, servers: true, degree: 4, configurations: [{name: "
      "rings, "
      "jumps: [1, 3]}, {name: across, jumps: [1], matchings: [0, 3]}]}\n"
      "network: {circuits: {reconfiguration: 50 us, schedule: [{at: 60 us, configuration: across}]}}\n",
      flows);
  const auto count = [](const Glance& one, CircuitState state) {
    return std::count(one.circuits.begin(), one.circuits.end(), state);
  };
  const Glance& before = first_after(20 * kMicrosecond);
  const auto up = count(before, CircuitState::up), all = up + count(before, CircuitState::down);
  EXPECT_GT(up, 0);
  for (const Glance& one : glances()) {
    EXPECT_EQ(count(one, CircuitState::up) + count(one, CircuitState::down), all) << one.now;
    const bool moves = one.now > 60 * kMicrosecond && one.now < 110 * kMicrosecond;
    if (one.now < 60 * kMicrosecond || moves) {
      EXPECT_EQ(count(one, CircuitState::up) < up, moves) << one.now;
    }
  }
}

TEST(ViewsSeen, ShowFailedHosts) {
  run("{failures: {age: 200 us}}",
      "topology: {kind: star, hosts: 8, rate: 100 Gbps, delay: 1 us}\nhost: single_nic\n"
      "gpus: {failures: [{host: host7, at: 1 ms}]}\n",
      kWorkload);
  for (const Glance& one : glances()) {
    if (one.now < 200 * kMicrosecond) continue;
    ASSERT_EQ(one.failed.size(), 8U);
    EXPECT_EQ(std::count(one.failed.begin(), one.failed.end(), 1), one.failed[7]);
    if (one.now < 1200 * kMicrosecond || one.now >= 1210 * kMicrosecond) {
      EXPECT_EQ(one.failed[7], one.now > 1200 * kMicrosecond ? 1 : 0) << one.now;
    }
  }
}

TEST(ViewsSeen, HideWhatIsOff) {
  run("{stalls: {on: false}, coming: {on: false}, loads: {on: false}, sizes: {on: false}}");
  for (const Glance& one : glances()) {
    EXPECT_TRUE(one.stalls.empty() && one.coming.empty() && one.loads.empty());
    EXPECT_FALSE(one.jobs.empty() || one.queues.empty());
  }
}

}  // namespace
}  // namespace netsim::view_fields_test
