// Compares the counts that --dry-run derives from the tasks with the counts of the same run packet by packet.
// Tests also its use of a calibration.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/errors.h"
#include "sim/report/prediction.h"
#include "sim/simulation/simulation.h"
#include "tests/collectives/algorithms/algorithm_cases.h"
#include "tests/report/fixtures.h"
#include "tests/support/paths.h"

namespace netsim::prediction_test {
namespace {

struct PredictedRun {
  const char* name;
  std::string cluster;   // YAML
  std::string workload;  // YAML, or a path below the source directory
};

void PrintTo(const PredictedRun& run, std::ostream* out) { *out << run.name; }

// No test here times anything: a calibration of a day is the whole run.
constexpr double kToTheEnd = 86'400;

Prediction predict(const PredictedRun& run) {
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

class PredictedVolume : public ::testing::TestWithParam<PredictedRun> {};

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

const std::vector<PredictedRun>& runs() {
  static const std::vector<PredictedRun> all = {
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
      {"in_parts", kDgx + "scheduling: {tasks: {kind: fifo, part: 300 KB}}\n",
       "configs/workloads/small_gpt_ptdp.yaml"},
      {"fused_and_in_parts", kTree + "scheduling: {tasks: {kind: priority, part: 1 MB, fuse: true}}\n",
       "kind: layers\nreplicas: 4\niterations: 2\nexchange: {kind: all_reduce, bucket: 0}\n"
       "layers: [{count: 6, forward: 20 us, backward: 40 us, bytes: 700 KB}]\n"},
  };
  return all;
}

INSTANTIATE_TEST_SUITE_P(Workloads, PredictedVolume, ::testing::ValuesIn(runs()),
                         [](const auto& chosen) { return std::string(chosen.param.name); });

// ---- All algorithms

struct Hosts {
  const char* name;
  std::uint32_t ranks;
  const char* cluster;
};

// Hosts with NVSwitches that add up on rails whose switches add up; with links of their own; several NICs for
// a GPU; none of these.
constexpr Hosts kHosts[] = {
    {"plain", 8,
     "topology: {kind: fat_tree, k: 4, rate: 100 Gbps}\nhost: single_nic\nhosts: 8\nnetwork: {switch: "
     "{aggregation: true}}\n"},
    {"three", 3, "topology: {kind: star, hosts: 3, rate: 100 Gbps}\n"},
    {"a100", 16, "topology: {kind: fat_tree, k: 4, rate: 200 Gbps}\nhost: dgx_a100\nhosts: 2\n"},
    {"v100", 16, "topology: {kind: star, hosts: 8, rate: 100 Gbps}\nhost: dgx_1v\nhosts: 2\n"},
    {"h100", 16,
     "topology: {kind: rail_optimized, hosts_per_leaf: 2, units: 1, spines: 2, link: infiniband, rate: 400 "
     "Gbps}\nhost: dgx_h100\nhosts: 2\nnetwork: {switch: {flow_control: credits, marker: none, aggregation: "
     "true}}\ntransport: {framing: infiniband, congestion_control: none}\n"},
    {"one_h100", 8, "topology: {kind: star, hosts: 8, rate: 400 Gbps}\nhost: dgx_h100\nhosts: 1\n"},
    {"two_nics", 8,
     "topology: {kind: fat_tree, k: 4, rate: 100 Gbps}\nhost: {kind: pcie_server, cpus: 1, switches: 1, "
     "gpus: 2, "
     "nics: 4}\nhosts: 4\n"},
};

std::string workload_of(CollectiveKind kind, const std::string& bytes) {
  std::string text = std::string("kind: collective\ncollective: ") + to_string(kind) + "\n";
  if (has_tokens(kind))
    return text +
           "tokens: {per_rank: 50, bytes: 1001 B, ranks_per_host: 4, experts: {count: 48, top_k: 3}}\n";
  if (has_counts(kind)) return text + "counts: next\nbytes: " + bytes + "\n";
  return has_bytes(kind) ? text + "bytes: " + bytes + "\n" : text;
}

// Besides those that all tests of algorithms have: for the groups and switches that these hosts have.
std::vector<std::pair<std::string, CollectiveKind>> algorithms_for(const Hosts& hosts) {
  using Kind = CollectiveKind;
  std::vector<std::pair<std::string, Kind>> all;
  for (const test::AlgorithmCase& one : test::algorithm_cases()) {
    if (one.suits(hosts.ranks)) all.emplace_back(one.algorithm, one.kind);
  }
  for (const Kind kind :
       {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather, Kind::broadcast, Kind::reduce}) {
    for (const char* algorithm : {"sharp", "{kind: sharp, nvls: true}", "nccl"})
      all.emplace_back(algorithm, kind);
  }
  for (const char* algorithm : {"collnet_chain", "nvls_tree"}) all.emplace_back(algorithm, Kind::all_reduce);
  return all;
}

// Packets, bytes and links crossed, by kind, are those of the run. Returns how many algorithms ran.
std::uint32_t expect_exact(const Hosts& hosts, const char* bytes) {
  std::uint32_t played = 0;
  for (const auto& [algorithm, kind] : algorithms_for(hosts)) {
    const std::string what = algorithm + " " + to_string(kind) + " " + hosts.name;
    Prediction prediction;
    try {
      prediction = predict(
          {"", std::string(hosts.cluster) + "collectives: {" + to_string(kind) + ": " + algorithm + "}\n",
           workload_of(kind, bytes)});
    } catch (const Error&) {
      continue;  // it needs other groups or switches
    }
    ++played;
    const Volume& actual = prediction.calibration.end.done;
    EXPECT_EQ(prediction.volume.scale_out_bytes, actual.scale_out_bytes) << what;
    EXPECT_EQ(prediction.volume.flows, actual.flows) << what;
    EXPECT_EQ(prediction.volume.packets, actual.packets) << what;
    EXPECT_EQ(prediction.volume.packet_hops, actual.packet_hops) << what;
    EXPECT_EQ(prediction.least_hops, prediction.most_hops) << what;
  }
  return played;
}

TEST(PredictedVolume, IsExactForAllAlgorithms) { EXPECT_GE(expect_exact(kHosts[0], "100003 B"), 60u); }

TEST(PredictedVolume, IsExactForAlgorithmsThroughSwitches) {
  std::uint32_t played = 0;
  for (const Hosts& hosts : kHosts) {
    if (std::string(hosts.name) != "h100") continue;
    played = expect_exact(hosts, "100003 B");
  }
  EXPECT_GE(played, 60u);
}

TEST(LongPredictedVolume, IsExactForAllAlgorithmsOnAllHosts) {
  std::uint32_t played = 0;
  for (const Hosts& hosts : kHosts) played += expect_exact(hosts, "3000001 B");
  EXPECT_GT(played, 450u);
}

// 1 GiB by NVLS on one DGX H100 is 594 k packets, where 23 k were predicted when aggregation groups were
// counted as messages.
TEST(PredictedVolume, CountsPacketsThroughSwitchesThatAddUp) {
  const Prediction prediction =
      predict({"", std::string(kHosts[5].cluster) + "collectives: {all_reduce: nvls}\n",
               collective("all_reduce", "64 MiB")});
  // Each of 8 GPUs gives 8 heads a message, which come as one; 8 heads send one, which comes to 8 GPUs.
  EXPECT_EQ(prediction.volume.packets, prediction.calibration.end.done.packets);
  EXPECT_EQ(prediction.volume.hops(), prediction.calibration.end.done.hops());
  EXPECT_EQ(prediction.volume.queue_pairs, prediction.calibration.end.done.queue_pairs);
}

// ---- Detours

std::string dragonfly(const char* routing) {
  return std::string(
             "topology: {kind: dragonfly, p: 2, a: 4, h: 2, g: 9, rate: 100 Gbps}\n"
             "network: {switch: {flow_control: credits, routing: ") +
         routing +
         "}}\ntransport: {reliability: {kind: irn, reorder_tolerance: 1000000}, congestion_control: none}\n";
}

// A packet draws its intermediate at random. On average each is drawn equally often.
TEST(PredictedVolume, CountsDetoursAsOnAverage) {
  const char* all = "kind: all_to_all\nbytes: 100 KB\nranks: 32\n";
  const Prediction always = predict({"", dragonfly("valiant"), all});
  const auto hops = static_cast<double>(always.calibration.end.done.hops());
  EXPECT_EQ(always.volume.packets, always.calibration.end.done.packets);
  EXPECT_NEAR(static_cast<double>(always.volume.hops()) / hops, 1, 0.01);
  EXPECT_EQ(always.least_hops, always.most_hops);
  const Prediction straight = predict({"", dragonfly("ecmp"), all});
  EXPECT_EQ(straight.volume.hops(), straight.calibration.end.done.hops());
  EXPECT_GT(hops, 1.2 * static_cast<double>(straight.volume.hops()));
  // A flow's intermediate is its hash's.
  const Prediction flows = predict({"", dragonfly("{kind: valiant, per: flow}"), all});
  EXPECT_EQ(flows.volume.hops(), flows.calibration.end.done.hops());
}

// By the queues that packets meet: between none and all, and in all of the run as many as in its beginning.
TEST(PredictedVolume, SaysBetweenWhatDetoursByQueuesAre) {
  const Prediction by_queue = predict({"", dragonfly("ugal"), "kind: permutation\nshift: 8\nbytes: 1 MB\n"});
  const auto hops = by_queue.calibration.end.done.hops();
  EXPECT_LT(by_queue.least_hops, hops);
  EXPECT_GT(by_queue.most_hops, hops);
  EXPECT_NEAR(static_cast<double>(by_queue.volume.hops()) / static_cast<double>(hops), 1, 0.01);
}

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

// The progress display relies on this. At every sample the share of work that is reported as done is roughly
// that of the events, for any workload.
class ToldProgress : public ::testing::TestWithParam<PredictedRun> {};

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

const std::vector<PredictedRun>& long_runs() {
  static const std::vector<PredictedRun> all = {
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

INSTANTIATE_TEST_SUITE_P(Workloads, ToldProgress, ::testing::ValuesIn(long_runs()),
                         [](const auto& chosen) { return std::string(chosen.param.name); });

}  // namespace
}  // namespace netsim::prediction_test
