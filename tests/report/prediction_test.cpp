// What --dry-run counts from the tasks against what the same run counts packet by packet, and what it makes
// of a calibration.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/report/prediction.h"
#include "sim/simulation.h"
#include "tests/report/fixtures.h"
#include "tests/support/paths.h"

namespace netsim {
namespace {

struct Run {
  const char* name;
  std::string cluster;   // YAML
  std::string workload;  // YAML, or a path below the source directory
};

void PrintTo(const Run& run, std::ostream* out) { *out << run.name; }

// No test here times anything: a calibration of a day is the whole run.
constexpr double kToTheEnd = 86'400;

Prediction predict(const Run& run) {
  const test::Directory directory;
  std::string path = source_directory() + "/" + run.workload;
  if (run.workload.find('\n') != std::string::npos) {
    path = directory.path() + "/workload.yaml";
    std::ofstream(path) << run.workload;
  }
  SimulationSetup setup;
  setup.config = parse_config(run.cluster, "cluster.yaml");
  setup.workload = path;
  Simulation simulation(std::move(setup));
  return simulation.predict(kToTheEnd, {});
}

const std::string kTree = "topology: {kind: fat_tree, k: 4, rate: 100 Gbps}\nhost: single_nic\n";
const std::string kDgx = "topology: {kind: fat_tree, k: 4, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 2\n";

class PredictedVolume : public testing::TestWithParam<Run> {};

TEST_P(PredictedVolume, IsThatOfTheRun) {
  const Prediction prediction = predict(GetParam());
  ASSERT_TRUE(prediction.calibration.complete);
  const Volume& predicted = prediction.volume;
  const Volume& actual = prediction.calibration.end.done;
  EXPECT_GT(actual.packets, 0u);
  EXPECT_EQ(predicted.tasks, actual.tasks);
  EXPECT_EQ(predicted.scale_out_bytes, actual.scale_out_bytes);
  EXPECT_EQ(predicted.flows, actual.flows);
  EXPECT_EQ(predicted.packets, actual.packets);
  if (predicted.single_flows == 0) {
    EXPECT_EQ(predicted.queue_pairs, actual.queue_pairs);
  }
  EXPECT_LE(predicted.queue_pairs, actual.queue_pairs);
  EXPECT_LE(actual.queue_pairs, predicted.queue_pairs + predicted.single_flows);
  EXPECT_EQ(predicted.packet_hops, actual.packet_hops);
  EXPECT_EQ(prediction.share, 1);
}

std::string collective(const char* kind, const char* bytes) {
  return std::string("kind: collective\ncollective: ") + kind + "\nbytes: " + bytes + "\n";
}

const std::vector<Run>& runs() {
  static const std::vector<Run> all = {
      {"permutation", kTree, "kind: permutation\nbytes: 100001 B\n"},
      {"permutation_small_mtu", kTree + "transport: {mtu: 1000 B}\n", "kind: permutation\nbytes: 100001 B\n"},
      {"incast", kTree, "kind: incast\nsenders: 7\nreceiver: 3\nbytes: 12345 B\n"},
      {"all_to_all_messages", kTree, "kind: all_to_all\nbytes: 10 KB\n"},
      {"poisson", kTree, "configs/traffic/poisson_inline.yaml"},
      {"ring_all_reduce", kTree, collective("all_reduce", "1000003 B")},
      {"ring_all_reduce_many_rounds", kTree + "collectives: {slice: 4 KiB}\n",
       collective("all_reduce", "1000003 B")},
      {"ring_all_reduce_few_bytes", kTree, collective("all_reduce", "37 B")},
      {"tree_all_reduce", kTree + "collectives: {all_reduce: double_binary_tree}\n",
       collective("all_reduce", "3000001 B")},
      {"all_gather", kTree, collective("all_gather", "777777 B")},
      {"pairwise_all_to_all", kTree, collective("all_to_all", "999999 B")},
      {"broadcast", kTree, collective("broadcast", "2000001 B")},
      {"reduce", kTree, collective("reduce", "2000001 B") + "root: 5\n"},
      {"ring_over_dgx", kDgx, collective("all_reduce", "12345678 B")},
      {"tree_over_dgx", kDgx + "collectives: {all_reduce: double_binary_tree}\n",
       collective("all_reduce", "12345678 B")},
      {"all_to_all_over_dgx", kDgx, collective("all_to_all", "12345678 B")},
      {"within_one_dgx", "topology: {kind: star, hosts: 8, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 1\n",
       collective("all_reduce", "12345678 B")},
      {"ptdp", kDgx, "configs/workloads/small_gpt_ptdp.yaml"},
  };
  return all;
}

INSTANTIATE_TEST_SUITE_P(Workloads, PredictedVolume, testing::ValuesIn(runs()),
                         [](const auto& chosen) { return std::string(chosen.param.name); });

TEST(PredictedVolume, IsNothingOnAnIdealNetwork) {
  const Prediction prediction =
      predict({"", kTree + "network: {kind: ideal}\n", collective("all_reduce", "1 MB")});
  EXPECT_EQ(prediction.volume.packets, 0u);
  EXPECT_EQ(prediction.volume.hops(), 0u);
  EXPECT_EQ(prediction.volume.tasks, 16u);
}

Volume volume(std::uint64_t ethernet_hops) {
  Volume result;
  result.packet_hops[static_cast<std::size_t>(LinkKind::ethernet)] = ethernet_hops;
  return result;
}

// Two seconds of set-up, then a million hops in the first second and three in the next two.
Calibration calibration() {
  Calibration result;
  result.setup_seconds = 2;
  result.early = {1, volume(1'000'000), 40'000'000};
  result.end = {3, volume(4'000'000), 40'000'000};
  result.memory = 50'000'000;
  return result;
}

TEST(Extrapolation, GoesOnAtTheLatestSpeed) {
  const Prediction prediction = extrapolate(8, volume(34'000'000), calibration());
  EXPECT_DOUBLE_EQ(prediction.minutes * 60, 2 + 3 + 20);
  EXPECT_DOUBLE_EQ(prediction.share, 4.0 / 34);
  EXPECT_EQ(prediction.memory, 50'000'000u);
}

TEST(Extrapolation, AddsNothingToAWholeRun) {
  Calibration whole = calibration();
  whole.complete = true;
  const Prediction prediction = extrapolate(8, volume(34'000'000), whole);
  EXPECT_DOUBLE_EQ(prediction.minutes * 60, 2 + 3);
  EXPECT_EQ(prediction.share, 1);
  EXPECT_EQ(prediction.memory, 50'000'000u);
}

TEST(Extrapolation, CountsWhatFlowsAndQueuePairsToComeWillLeave) {
  Volume all = volume(34'000'000);
  const std::uint64_t none = extrapolate(8, all, calibration()).memory;
  all.flows = 1'000'000;
  const std::uint64_t flows = extrapolate(8, all, calibration()).memory;
  EXPECT_GE(flows, none + 16 * all.flows);  // a completion time and a slowdown
  all.queue_pairs = 1'000;
  EXPECT_GT(extrapolate(8, all, calibration()).memory, flows + 400 * all.queue_pairs);
}

TEST(Extrapolation, GoesOnGrowingByEachDoublingOfTheWork) {
  Calibration growing = calibration();
  growing.end.memory += 6'000'000;  // in two doublings; from 4 to 32 million hops there are three more
  const Prediction prediction = extrapolate(8, volume(32'000'000), growing);
  EXPECT_NEAR(static_cast<double>(prediction.memory), 59e6, 10);
}

TEST(Extrapolation, KnowsASpeedWhereNothingWasCounted) {
  Calibration idle = calibration();
  idle.early.done = idle.end.done = {};
  const Prediction prediction = extrapolate(8, volume(34'000'000), idle);
  EXPECT_GT(prediction.minutes * 60, 5);
  EXPECT_LT(prediction.minutes, 10);
  EXPECT_EQ(prediction.share, 0);
}

TEST(Memory, HasAPeak) { EXPECT_GT(peak_memory(), 1'000'000u); }

// What the progress display promises rests on this: at every look the share of the work that is said to be
// done is that of the events that are, roughly, whatever the workload is.
class ToldProgress : public testing::TestWithParam<Run> {};

TEST_P(ToldProgress, FollowsTheEvents) {
  const test::Directory directory;
  std::string path = source_directory() + "/" + GetParam().workload;
  if (GetParam().workload.find('\n') != std::string::npos) {
    path = directory.path() + "/workload.yaml";
    std::ofstream(path) << GetParam().workload;
  }
  SimulationSetup setup;
  setup.config = parse_config(GetParam().cluster, "cluster.yaml");
  setup.workload = path;
  Simulation simulation(std::move(setup));
  std::vector<Advance> told;
  Watch watch;
  watch.report_every = 0;
  watch.report = [&](const Advance& advance) { told.push_back(advance); };
  const Results results = simulation.run(watch);
  ASSERT_GE(told.size(), 5u);
  for (std::size_t i = 0; i < told.size(); ++i) {
    const double events = static_cast<double>(told[i].events) / static_cast<double>(results.events);
    EXPECT_NEAR(told[i].fraction, events, 0.1) << "after " << told[i].events << " events";
    EXPECT_GE(told[i].fraction, told[i > 0 ? i - 1 : 0].fraction);
  }
}

const std::vector<Run>& long_runs() {
  static const std::vector<Run> all = {
      {"few_large_flows", kTree, "kind: permutation\nbytes: 20 MB\n"},
      {"many_small_flows", kTree, "kind: all_to_all\nbytes: 500 KB\n"},
      {"incast", kTree, "kind: incast\nsenders: 7\nreceiver: 3\nbytes: 30 MB\n"},
      {"poisson", kTree,
       "kind: poisson\nrate: 100 Gbps\nload: 30 %\nduration: 3 ms\ncdf: [[1 KB, 0], [10 KB, 90], [1 MB, "
       "100]]\n"},
      {"one_collective", kTree, collective("all_reduce", "100 MB")},
      {"collective_over_dgx", kDgx, collective("all_reduce", "300 MB")},
      {"within_one_dgx", "topology: {kind: star, hosts: 8, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 1\n",
       "kind: collective\ncollective: all_reduce\nbytes: 1 GB\nrepeat: 16\n"},
      {"ptdp", kDgx, "configs/workloads/small_gpt_ptdp.yaml"},
  };
  return all;
}

INSTANTIATE_TEST_SUITE_P(Workloads, ToldProgress, testing::ValuesIn(long_runs()),
                         [](const auto& chosen) { return std::string(chosen.param.name); });

}  // namespace
}  // namespace netsim
