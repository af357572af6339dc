// A run with samples is the same run as one without, and its samples add up to its counters.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "sim/core/config.h"
#include "sim/report/summary.h"
#include "sim/simulation/simulation.h"
#include "tests/report/fixtures.h"
#include "tests/support/paths.h"

namespace netsim::sampling_test {
namespace {

using test::Directory;

const std::string kConfigs = source_directory() + "/configs/";

struct Run {
  Results results;
  Directory directory;
};

// configs/sampling.yaml with `overlays`.
std::unique_ptr<Run> run(const std::vector<std::string>& overlays, Time until = kNever,
                         const std::string& workload = "workloads/incast_1MB.yaml") {
  auto run = std::make_unique<Run>();
  SimulationSetup setup;
  setup.config = load_config(kConfigs + "sampling.yaml");
  for (const std::string& overlay : overlays) overlay_config(setup.config, overlay);
  setup.workload = workload[0] == '/' ? workload : kConfigs + workload;
  setup.output_directory = run->directory.path();
  Simulation simulation(std::move(setup));
  Watch watch;
  watch.until = until;
  run->results = simulation.run(watch);
  simulation.finish_files(run->results);
  return run;
}

std::vector<std::vector<std::string>> rows(const std::string& csv) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::istringstream cells(line);
    rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, ',');) rows.back().push_back(cell);
  }
  return rows;
}

void expect_same_run(const Results& with, const Results& without) {
  EXPECT_EQ(with.outcome, without.outcome);
  EXPECT_EQ(with.fingerprints.results, without.fingerprints.results);
  EXPECT_EQ(with.fingerprints.packets, without.fingerprints.packets);
  EXPECT_EQ(with.fingerprints.events, without.fingerprints.events);
  EXPECT_EQ(with.events, without.events);
  EXPECT_EQ(with.simulated, without.simulated);
  EXPECT_EQ(with.notes, without.notes);
}

const std::vector<std::string> kOff{"output.sample.interval=0"};

TEST(Sampling, ChangesNothing) {
  const auto without = run(kOff);
  EXPECT_FALSE(without->results.sampled_queues.has_value());
  EXPECT_FALSE(without->directory.has("queue_samples.csv"));
  for (const char* interval : {"1 us", "37 ns", "300 us"}) {
    const auto with = run({std::string("output.sample.interval=") + interval, "output.sample.ports=all"});
    expect_same_run(with->results, without->results);
    EXPECT_GT(with->results.sampled_queues->count, 0u) << interval;
  }
}

TEST(Sampling, ChangesNothingOfARunThatIsCut) {
  const auto with = run({}, 100 * kMicrosecond), without = run(kOff, 100 * kMicrosecond);
  EXPECT_EQ(with->results.outcome, Outcome::limit);
  expect_same_run(with->results, without->results);
  EXPECT_EQ(rows(with->directory.text("queue_samples.csv")).back()[0], "100000000");
}

// Collectives, compute and idle stretches of milliseconds between packets.
TEST(Sampling, ChangesNothingOfATrainingJob) {
  const std::vector<std::string> cluster{"topology={kind: star, hosts: 16, rate: 200 Gbps}",
                                         "host={kind: dgx_a100}", "hosts=2"};
  std::vector<std::string> off = cluster;
  off.push_back(kOff[0]);
  std::vector<std::string> on = cluster;
  on.push_back("output.sample.interval=10 us");
  const std::string job = "workloads/small_gpt_ptdp.yaml";
  const auto with = run(on, kNever, job), without = run(off, kNever, job);
  expect_same_run(with->results, without->results);
  EXPECT_GT(rows(with->directory.text("link_samples.csv")).size(), 0u);
}

// Samples must not keep a network going in which nothing else happens.
TEST(Sampling, AStallStaysAStall) {
  const std::vector<std::string> lossy{
      "network={switch: {flow_control: none, buffer: 64 KB, reserve: 0, headroom: 1 B}}",
      "transport={congestion_control: none, retries: 0, retransmission_timeout: 10 us}"};
  std::vector<std::string> off = lossy;
  off.push_back(kOff[0]);
  const auto with = run(lossy), without = run(off);
  EXPECT_EQ(with->results.outcome, Outcome::stalled);
  expect_same_run(with->results, without->results);
}

// The network itself stops the run there, with events left.
TEST(Sampling, ADeadlockStaysADeadlock) {
  const std::vector<std::string> ring{
      "topology={kind: custom, channels: 1, rate: 100 Gbps, delay: 1 us, switches: [s0, s1, s2, s3], links: ["
      "{from: host0, to: s0}, {from: host1, to: s1}, {from: host2, to: s2}, {from: host3, to: s3}, "
      "{from: s0, to: s1}, {from: s1, to: s2}, {from: s2, to: s3}, {from: s3, to: s0}]}",
      "network={deadlock_check: off, switch: {buffer: 4 MB, routing: {kind: static, paths: ["
      "{from: host0, to: host2, through: [s0, s1, s2]}, {from: host1, to: host3, through: [s1, s2, s3]}, "
      "{from: host2, to: host0, through: [s2, s3, s0]}, {from: host3, to: host1, through: [s3, s0, s1]}]}}}",
      "transport.congestion_control=none"};
  const Directory directory;
  const std::string workload = directory.path() + "/opposite.yaml";
  std::ofstream(workload) << "kind: permutation\nranks: 4\nshift: 2\nbytes: 10 MB\n";
  std::vector<std::string> off = ring;
  off.push_back(kOff[0]);
  const auto with = run(ring, kNever, workload), without = run(off, kNever, workload);
  EXPECT_EQ(with->results.outcome, Outcome::stalled);
  expect_same_run(with->results, without->results);
  EXPECT_EQ(with->results.waiting, without->results.waiting);
}

TEST(Sampling, LinkSamplesAddUpToTheCounters) {
  const auto sampled = run({"output.sample.ports=all"});
  Bytes wire = 0;
  std::int64_t marks = 0;
  for (const auto& row : rows(sampled->directory.text("link_samples.csv"))) {
    wire += std::stoll(row.at(2));
    marks += std::stoll(row.at(6));
  }
  Bytes all = 0;
  for (const LinkResult& link : sampled->results.links) all += link.counters.wire_bytes;
  EXPECT_EQ(wire, all);
  EXPECT_EQ(marks, static_cast<std::int64_t>(sampled->results.network.ecn_marks));
  EXPECT_GT(marks, 0);
}

TEST(Sampling, FlowSamplesAddUpToTheMessages) {
  const auto sampled = run({"transport.mtu=1000 B"});
  std::map<std::string, double> bytes;
  for (const auto& row : rows(sampled->directory.text("flow_samples.csv"))) {
    bytes[row.at(1)] += std::stod(row.at(4)) * 1e-6 / 8;
  }
  ASSERT_EQ(bytes.size(), 8u);
  for (const auto& [source, sum] : bytes) EXPECT_NEAR(sum, 1e6, 1) << source;
}

TEST(Sampling, TheSummaryIsThatOfTheTable) {
  const auto sampled = run({"output.sample.interval=100 ns"});
  std::vector<Bytes> lengths;
  for (const auto& row : rows(sampled->directory.text("queue_samples.csv"))) {
    if (row.at(2) != "0") lengths.push_back(std::stoll(row.at(2)));
  }
  std::sort(lengths.begin(), lengths.end());
  const QueueStatistics queues = *sampled->results.sampled_queues;
  ASSERT_EQ(queues.count, lengths.size());
  EXPECT_EQ(queues.p95, lengths[(lengths.size() * 95 + 99) / 100 - 1]);
  EXPECT_EQ(queues.maximum, lengths.back());
  EXPECT_LE(queues.maximum, sampled->results.network.max_queue);
  EXPECT_GE(queues.maximum, sampled->results.network.max_queue - 2 * 4174);
}

TEST(Sampling, IsNotThereWhereTheNetworkIsIdeal) {
  const auto ideal = run({"network=ideal"});
  EXPECT_EQ(ideal->results.outcome, Outcome::done);
  EXPECT_FALSE(ideal->directory.has("queue_samples.csv"));
  EXPECT_EQ(std::count_if(ideal->results.notes.begin(), ideal->results.notes.end(),
                          [](const std::string& note) {
                            return note.find("`output.sample` was not used") != std::string::npos;
                          }),
            1);
}

}  // namespace
}  // namespace netsim::sampling_test
