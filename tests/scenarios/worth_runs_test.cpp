// --worth: which runs there are, how they are played, and whether its files agree with those of its runs.
#include "sim/simulation/worth_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "sim/core/config.h"
#include "sim/core/errors.h"
#include "sim/core/text.h"
#include "tests/support/program.h"

namespace netsim::worth_runs_test {
namespace {

using nlohmann::json;
using test::Ended;
using test::NetsimProgram;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kStar = "topology: {kind: star, hosts: 4}\nhost: single_nic\n";

std::vector<WorthRun> runs_of(const std::string& scheduling, const std::vector<Time>& ages = {}) {
  return worth_runs(parse_config(kStar + "scheduling: " + scheduling + "\n", "c.yaml"), ages);
}

std::vector<std::string> names_of(const std::vector<WorthRun>& runs) {
  std::vector<std::string> names;
  for (const WorthRun& run : runs) names.push_back(run.name);
  return names;
}

std::string refusal_of(const std::string& scheduling) {
  try {
    runs_of(scheduling);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(WorthRuns, AreOneWithoutEachFieldAndOneForEachAge) {
  EXPECT_THAT(names_of(runs_of("{flows: srpt}")), ElementsAre("all", "without_topology", "without_sizes"));
  const std::vector<WorthRun> runs =
      runs_of("{flows: srpt, views: {topology: {on: false}, sizes: {age: 10 us}}}",
              {0, 10 * kMicrosecond, 1500 * kMicrosecond});
  EXPECT_THAT(names_of(runs),
              ElementsAre("all", "without_sizes", "age_sizes_0", "age_sizes_10us", "age_sizes_1.5ms"));
  EXPECT_THAT(runs[0].assignments, IsEmpty());
  EXPECT_THAT(runs[1].assignments, ElementsAre("scheduling.views.sizes.on=false"));
  EXPECT_THAT(runs[4].assignments, ElementsAre("scheduling.views.sizes.age=1.5 ms"));
  EXPECT_FALSE(runs[2].same_as_all);
  EXPECT_TRUE(runs[3].same_as_all);
  for (const WorthRun& run : runs) {
    ConfigNode root = parse_config(kStar, "c.yaml");
    for (const std::string& assignment : run.assignments) overlay_config(root, assignment);
  }
}

TEST(WorthRuns, SaysWhatIsMissing) {
  EXPECT_THAT(refusal_of("{interval: 1 us}"), HasSubstr("names no scheduler"));
  EXPECT_THAT(refusal_of("{flows: fair}"), HasSubstr("use no field of scheduling.views"));
  EXPECT_THAT(refusal_of("{flows: srpt, views: {topology: {on: false}, sizes: {on: false}}}"),
              HasSubstr("are off (scheduling.views): topology, sizes"));
}

// Plays the runs of srpt. The run without topology is refused; the run `interrupted_at` is interrupted.
struct Played {
  Worth worth;
  std::vector<std::string> names;

  explicit Played(const std::string& interrupted_at = "") {
    worth.runs = runs_of("{flows: srpt}", {0, kMicrosecond});
    play_worth(worth, [&](WorthRun& run) {
      names.push_back(run.name);
      if (run.name == "without_topology") throw ConfigError("srpt cannot do without topology");
      run.state = to_string(run.name == interrupted_at ? Outcome::interrupted : Outcome::done);
      run.jobs = {{"a", 1e-3, 0}};
    });
  }
  const WorthRun& run(const std::string& name) const {
    return *std::find_if(worth.runs.begin(), worth.runs.end(),
                         [&](const WorthRun& each) { return each.name == name; });
  }
};

TEST(WorthRuns, GoOnAfterARefusedRunAndPlayNothingTwice) {
  const Played played;
  EXPECT_THAT(played.names,
              ElementsAre("all", "without_topology", "without_sizes", "age_topology_1us", "age_sizes_1us"));
  EXPECT_EQ(played.run("without_topology").state, "refused");
  EXPECT_EQ(played.run("without_topology").message, "srpt cannot do without topology");
  EXPECT_EQ(played.run("age_sizes_0").state, "done");
  EXPECT_EQ(played.run("age_sizes_0").jobs.size(), 1U);
}

TEST(WorthRuns, EndWithAnInterruptedRun) {
  const Played played("without_sizes");
  EXPECT_THAT(played.names, ElementsAre("all", "without_topology", "without_sizes"));
  EXPECT_TRUE(played.worth.interrupted());
  EXPECT_EQ(played.run("age_sizes_1us").state, "not run");
  EXPECT_THAT(render_worth(played.worth), HasSubstr("not run"));
}

TEST(WorthRuns, AnErrorOfTheFirstRunIsThatOfTheCall) {
  Worth worth;
  worth.runs = runs_of("{flows: srpt}");
  EXPECT_THROW(play_worth(worth, [](WorthRun&) { throw ConfigError("wrong"); }), ConfigError);
  EXPECT_THROW(play_worth(worth,
                          [](WorthRun& run) {
                            if (run.name != "all") throw IoError("disk full");
                          }),
               IoError);
}

// Two jobs share the link between two racks. The long one comes later, and has sent less.
class WorthProgram : public NetsimProgram {
 protected:
  void SetUp() override {
    NetsimProgram::SetUp();
    write("racks.yaml",
          "topology: {kind: custom, rate: 100 Gbps, delay: 1 us, switches: [a, b], links: ["
          "{from: host0, to: a}, {from: host1, to: a}, {from: host2, to: b}, {from: host3, to: b}, "
          "{from: a, to: b}]}\n"
          "hosts: 4\nhost: single_nic\ntransport: {congestion_control: none}\n"
          "scheduling: {interval: 1 us, flows: {kind: srpt, use: 0.98}}\n");
    write("long.csv", "rank,host,gpu\n0,0,0\n1,2,0\n");
    write("short.csv", "rank,host,gpu\n0,1,0\n1,3,0\n");
    write("jobs.yaml",
          "jobs:\n"
          "  - {name: long, placement: {kind: file, file: long.csv}, arrival: 20 us,\n"
          "     workload: {kind: tasks, tasks: [{name: x, from: 0, to: 1, bytes: 2 MB}]}}\n"
          "  - {name: short, placement: {kind: file, file: short.csv},\n"
          "     workload: {kind: tasks, tasks: [{name: y, from: 0, to: 1, bytes: 500 KB}]}}\n");
  }
  const std::string call_ = "--config racks.yaml --workload jobs.yaml ";
};

TEST_F(WorthProgram, AgreesWithTheSummaryOfEachRun) {
  const Ended ended = run(call_ + "--out w --json - --quiet --worth ages=0,20us");
  ASSERT_EQ(ended.code, 0) << ended.err;
  const json worth = json::parse(directory_.text("w/worth.json"));
  EXPECT_EQ(worth, json::parse(ended.out));
  std::vector<std::string> names, done;
  std::map<std::string, json> all;  // jobs of `all`
  for (const json& run : worth["runs"]) {
    names.push_back(run["run"]);
    if (run["state"] != "done" || run["same_as_all"]) continue;
    done.push_back(run["run"]);
    const json summary = json::parse(directory_.text("w/" + run["run"].get<std::string>() + "/summary.json"));
    ASSERT_EQ(summary["jobs"].size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) {
      const json &job = summary["jobs"][i], &time = run["times"][i];
      all.try_emplace(job["name"], job);
      const json& before = all[job["name"]];
      EXPECT_EQ(time["name"], job["name"]);
      EXPECT_EQ(time["time_s"], job["jct_s"]);
      EXPECT_EQ(time["exposed_communication_s"], job["exposed_communication_s"]);
      EXPECT_DOUBLE_EQ(time["difference_s"].get<double>(),
                       job["jct_s"].get<double>() - before["jct_s"].get<double>());
    }
  }
  EXPECT_THAT(names, ElementsAre("all", "without_topology", "without_sizes", "age_topology_0",
                                 "age_topology_20us", "age_sizes_0", "age_sizes_20us"));
  EXPECT_THAT(done, Contains("without_sizes"));
  EXPECT_THAT(done, Contains("age_sizes_20us"));
  EXPECT_FALSE(directory_.has("w/age_sizes_0"));
  const json manifest = json::parse(directory_.text("w/manifest.json"));
  EXPECT_THAT(manifest["command"].get<std::string>(), HasSubstr("--worth ages=0,20us"));
  const json one = json::parse(directory_.text("w/without_sizes/manifest.json"));
  EXPECT_THAT(one["command"].get<std::string>(), HasSubstr("--set scheduling.views.sizes.on=false"));
  EXPECT_THAT(directory_.text("w/worth.svg"), HasSubstr("<svg"));
}

TEST_F(WorthProgram, ShowsATableAndRefusesToDoWithoutTheTopology) {
  const Ended ended = run(call_ + "--worth");
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("without sizes"));
  EXPECT_THAT(ended.out, HasSubstr("without topology: refused: "));
  EXPECT_THAT(ended.out, HasSubstr("`sizes` was worth most"));
  EXPECT_THAT(ended.err, HasSubstr("netsim: run 2 of 3: without topology\n"));
  std::istringstream lines(ended.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(columns(line), 80U) << line;
}

TEST_F(WorthProgram, TheRunAsConfiguredIsThatWithoutWorth) {
  ASSERT_EQ(run(call_ + "--out w --quiet --worth").code, 0);
  ASSERT_EQ(run(call_ + "--out plain --quiet").code, 0);
  EXPECT_EQ(directory_.text("w/all/summary.json"), directory_.text("plain/summary.json"));
  EXPECT_EQ(directory_.text("w/all/flows.csv"), directory_.text("plain/flows.csv"));
  // A later run of one kind replaces the files of the other kind, and only these.
  ASSERT_EQ(run(call_ + "--out w --quiet").code, 0);
  EXPECT_FALSE(directory_.has("w/worth.json"));
  ASSERT_EQ(run(call_ + "--out w --quiet --worth").code, 0);
  EXPECT_FALSE(directory_.has("w/summary.json"));
  EXPECT_TRUE(directory_.has("w/worth.json"));
}

TEST_F(WorthProgram, ListsItsRunsWithoutPlayingThem) {
  const Ended ended = run(call_ + "--out w --dry-run --worth ages=20us");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("5 runs for --worth\n"));
  EXPECT_THAT(ended.out, HasSubstr("scheduling.views.sizes.age=20 us"));
  EXPECT_FALSE(directory_.has("w"));
}

TEST_F(WorthProgram, EndsAtTheLimitWithItsExitCode) {
  const Ended ended = run(call_ + "--until 30us --worth");
  EXPECT_EQ(ended.code, 6);
  EXPECT_THAT(ended.err, HasSubstr("netsim: error: all: limit reached (--until)"));
  EXPECT_THAT(ended.out, HasSubstr("No run without a field can be compared"));
}

TEST_F(WorthProgram, IsRefusedWhereNobodyUsesInformation) {
  expect_error("--config star.yaml --workload incast.yaml --worth", ExitCode::usage,
               {"--worth: the configuration names no scheduler", "scheduling.flows"});
  expect_error(call_ + "--worth --set scheduling.flows=fair", ExitCode::usage,
               {"use no field of scheduling.views"});
}

}  // namespace
}  // namespace netsim::worth_runs_test
