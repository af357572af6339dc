// Tests a benchmark of several sizes and algorithms over real packets. Each size takes as long as alone,
// however early some ranks end the size before. Covers the reported times of consecutive sizes, and that
// results are the same for any number of sets and threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/errors.h"
#include "sim/report/summary.h"
#include "sim/simulation/simulation.h"
#include "tests/report/fixtures.h"

namespace netsim::collective_sizes_test {
namespace {

using test::Directory;
using ::testing::HasSubstr;

constexpr const char* kTwoDgx =
    "topology: {kind: star, hosts: 16, rate: 200 Gbps}\nhosts: 2\nhost: dgx_a100\n";

struct Division {
  std::uint32_t sets = 0, threads = 1;
};

Results play(const Directory& directory, const std::string& workload, Division division = {},
             const std::string& cluster = kTwoDgx) {
  const std::string path = directory.path() + "/workload.yaml";
  std::ofstream(path) << workload << "\n";
  SimulationSetup setup;
  setup.config =
      parse_config(cluster + ("engine: {sets: " + std::to_string(division.sets)) + "}\n", "cluster");
  setup.workload = path;
  setup.threads = division.threads;
  setup.output_directory = directory.path() + "/out";
  std::filesystem::remove_all(
      setup.output_directory);  // a run replaces no tables that lie without a manifest
  Simulation simulation(std::move(setup));
  Results results = simulation.run({});
  simulation.finish_files(results);
  return results;
}

// By algorithm that the workload names, and bytes.
std::map<std::pair<std::string, Bytes>, Time> times(const Results& results) {
  std::map<std::pair<std::string, Bytes>, Time> all;
  for (const CollectiveTimes& row : results.collectives) {
    EXPECT_EQ(row.count, 1u);
    all[{row.choice.own, row.bytes}] = row.time;
  }
  return all;
}

class EachSize : public ::testing::TestWithParam<const char*> {};

// Without the pause a broadcast of 16 KiB would take 15 us instead of 76, because 15 ranks are far ahead.
TEST_P(EachSize, TakesWhatItTakesAlone) {
  const std::string what = std::string("{kind: collective, collective: ") + GetParam();
  const Directory directory;
  const auto together = times(play(directory, what + ", sizes: {from: 8 KiB, to: 32 KiB}}"));
  EXPECT_EQ(together.size(), 3u);
  for (const auto& [key, time] : together) {
    const auto alone = times(play(directory, what + ", bytes: " + std::to_string(key.second) + " B}"));
    EXPECT_EQ(alone.at(key), time) << key.second << " B";
    EXPECT_GT(time, 10 * kMicrosecond);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, EachSize,
                         ::testing::Values("broadcast", "reduce", "gather", "scatter", "all_reduce",
                                           "all_gather", "reduce_scatter", "all_to_all"),
                         [](const auto& kind) { return std::string(kind.param); });

// Congestion control starts afresh with each size. The incast of one gather cuts rates, but the next gather
// takes as long as alone. With DCQCN it used to take 3.1 times as long. A ring after a tree of NVLink SHARP
// on four DGX B200 took 1.27 times. Marks come from a threshold, so that no draw differs.
class EachCongestionControl : public ::testing::TestWithParam<const char*> {};

TEST_P(EachCongestionControl, IsAsNewForEachSizeAndAlgorithm) {
  const std::string cluster =
      std::string(
          "topology: {kind: star, hosts: 8, rate: 100 Gbps}\nnetwork: {switch: {marker: {kind: step, "
          "threshold: 40 KB}}}\ntransport: {congestion_control: ") +
      GetParam() + "}\ncollectives: {slice: 64 KiB}\n";
  const std::string what = "{kind: collective, collective: gather, algorithms: ";
  const Directory directory;
  const Results all =
      play(directory, what + "[direct, binomial_tree], sizes: {from: 1 MiB, to: 4 MiB}}", {}, cluster);
  EXPECT_EQ(all.collectives.size(), 6u);
  for (const auto& [key, time] : times(all)) {
    const auto alone = times(play(
        directory, what + "[" + key.first + "], bytes: " + std::to_string(key.second) + " B}", {}, cluster));
    EXPECT_EQ(alone.at(key), time) << key.first << " " << key.second << " B";
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, EachCongestionControl,
                         ::testing::Values("dcqcn", "hpcc", "timely", "swift", "dctcp", "ib_cct", "none"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST(CollectiveSizes, BeginAPauseAfterTheLastRankEnded) {
  const Directory directory;
  const Results results = play(directory,
                               "{kind: collective, collective: broadcast, sizes: {from: 8 KiB, to: 32 KiB, "
                               "pause: 7 us}}");
  EXPECT_EQ(results.outcome, Outcome::done);
  std::istringstream table(directory.text("out/collectives.csv"));
  std::string line;
  std::getline(table, line);
  Time end = -7 * kMicrosecond;
  std::size_t rows = 0;
  for (; std::getline(table, line); ++rows) {
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
    EXPECT_EQ(std::stoll(cells[8]), end + 7 * kMicrosecond) << line;  // first_start_ps
    EXPECT_EQ(cells[9], cells[8]) << line;                            // last_start_ps
    end = std::stoll(cells[10]);
  }
  EXPECT_EQ(rows, 3u);
}

// Three broadcasts overlap: the last one alone, from its last start on, is not what one of them takes.
TEST(CollectiveSizes, OfOneSizeAreTimedFromTheFirstStartToTheLastEnd) {
  const Directory directory;
  const Results results =
      play(directory, "{kind: collective, collective: broadcast, bytes: 64 KiB, repeat: 3}");
  ASSERT_EQ(results.collectives.size(), 1u);
  EXPECT_EQ(results.collectives[0].count, 3u);
  EXPECT_EQ(results.collectives[0].time, results.jobs[0].end - results.jobs[0].begin);
  const Results one = play(directory, "{kind: collective, collective: broadcast, bytes: 64 KiB}");
  EXPECT_GT(results.collectives[0].time, one.collectives[0].time);
  EXPECT_LT(results.collectives[0].time, 3 * one.collectives[0].time);
}

TEST(CollectiveSizeThreads, DoNotShowInAnyNumberOfSets) {
  const std::string cluster = "topology: {kind: fat_tree, k: 4, rate: 100 Gbps}\nhost: single_nic\n";
  const std::string workload =
      "{kind: collective, collective: reduce, sizes: {from: 8 KiB, to: 32 KiB}, repeat: 2, algorithms: "
      "[chain, binomial_tree]}";
  const Directory directory;
  const auto answers = [&](Division division) {
    const Results results = play(directory, workload, division, cluster);
    return std::tuple(results.events, results.fingerprints.results, results.fingerprints.packets,
                      results.fingerprints.events, summary_json(results),
                      directory.text("out/collectives.csv"), directory.text("out/tasks.csv"));
  };
  const auto one = answers({1, 1});
  for (const Division division : {Division{2, 1}, Division{4, 1}, Division{4, 2}, Division{8, 3}})
    EXPECT_EQ(answers(division), one) << division.sets << " sets, " << division.threads << " threads";
}

// Each by itself, under the workload's name for it, and no other way than if the configuration named it.
TEST(CollectiveAlgorithms, PlayAllSizesInTurn) {
  const Directory directory;
  const std::string sizes = "{kind: collective, sizes: {from: 4 KiB, to: 64 MiB, factor: 128}";
  const std::string automatic = std::string(kTwoDgx) + "collectives: {protocol: auto";
  const Results all =
      play(directory, sizes + ", algorithms: [ring, tree, {kind: nccl}, {kind: nccl, tree: false}]}", {},
           automatic + "}\n");
  const auto found = times(all);
  EXPECT_EQ(found.size(), 12u);
  const std::pair<const char*, const char*> names[] = {
      {"ring", "ring"}, {"tree", "tree"}, {"nccl", "nccl"}, {"nccl 2", "{kind: nccl, tree: false}"}};
  for (const auto& [own, configured] : names) {
    const Results alone = play(directory, sizes + "}", {}, automatic + ", all_reduce: " + configured + "}\n");
    EXPECT_EQ(alone.collectives.size(), 3u);
    for (const CollectiveTimes& row : alone.collectives) {
      EXPECT_EQ(row.choice.own, "");
      EXPECT_EQ(found.at({own, row.bytes}), row.time) << own << " " << row.bytes;
    }
  }
  EXPECT_THAT(directory.text("out/bandwidths.csv"), HasSubstr(",configured; NCCL's cost model: "));
  play(directory, sizes + ", algorithms: [ring, nccl]}", {}, automatic + "}\n");
  EXPECT_THAT(directory.text("out/bandwidths.csv"), HasSubstr(",workload: nccl; NCCL's cost model: "));
  EXPECT_THAT(directory.text("out/bandwidths.csv"), HasSubstr(",workload: ring; NCCL's cost model: "));
}

TEST(CollectiveAlgorithms, AreRefusedWhereTheyStand) {
  const Directory directory;
  const auto error = [&](const std::string& algorithms, const std::string& cluster = kTwoDgx,
                         const char* collective = "broadcast") {
    try {
      play(directory,
           std::string("kind: collective\ncollective: ") + collective + "\nalgorithms: " + algorithms, {},
           cluster);
    } catch (const InputError& refused) {
      return std::string(refused.what());
    }
    return std::string("nothing was refused");
  };
  EXPECT_THAT(error("[chain, rong]"), HasSubstr("workload.yaml:3:21"));
  EXPECT_THAT(error("[chain, rong]"), HasSubstr("rong"));
  EXPECT_THAT(error("[chain, swing]"), HasSubstr("workload.yaml:3:21"));
  EXPECT_THAT(error("[chain, swing]"), HasSubstr("'swing' does not do broadcast (allowed: binary_tree"));
  EXPECT_THAT(error("[{kind: chain, colour: red}]"), HasSubstr("unknown key 'colour'"));
  EXPECT_THAT(
      error("[ring, {kind: torus_2d, dimensions: [3, 4]}]", kTwoDgx, "all_reduce"),
      AllOf(HasSubstr("workload.yaml:3:20"), HasSubstr("all_reduce of 16 ranks: 'torus_2d' needs as many "
                                                       "as its dimensions, 3 x 4, have")));
  EXPECT_THAT(error("[]"), HasSubstr("a list of algorithms is expected"));
  EXPECT_THAT(error("chain"), HasSubstr("a list of algorithms is expected"));
  EXPECT_THAT(error("[nccl]", "topology: {kind: star, hosts: 4}\nhost: single_nic\n"),
              HasSubstr("set collectives.gpu_generation (allowed: volta, ampere, hopper, blackwell)"));
}

}  // namespace
}  // namespace netsim::collective_sizes_test
