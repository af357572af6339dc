// netsim compare: two real runs, seeds in folders, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/text.h"
#include "tests/support/program.h"

namespace netsim::compare_runs_test {
namespace {

using nlohmann::json;
using test::Ended;
using test::NetsimProgram;
using ::testing::HasSubstr;
using ::testing::Not;

class CompareProgram : public NetsimProgram {
 protected:
  void play(const std::string& out, const std::string& more = "") const {
    const Ended ended = run("--config star.yaml --workload incast.yaml --quiet --out " + out + " " + more);
    ASSERT_EQ(ended.code, 0) << ended.err;
  }
  json file(const std::string& name) const { return json::parse(directory_.text(name)); }
};

// Returns the entry of a list whose `key` is `value`.
json entry_of(const json& list, const std::string& key, const std::string& value) {
  for (const json& entry : list) {
    if (entry[key] == value) return entry;
  }
  return nullptr;
}

TEST_F(CompareProgram, NamesWhatWasChangedAndAgreesWithBothSummaries) {
  play("a");
  play("b", "--set 'topology.rate=50 Gbps' --set 'workload.bytes=2 MB' --seed 7");
  const Ended ended = run("compare a b --json all.json --out both");
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("  topology.rate: 100 Gbps -> 50 Gbps\n"));
  EXPECT_THAT(ended.out, HasSubstr("  workload.bytes: 1 MB -> 2 MB\n"));
  EXPECT_THAT(ended.out, HasSubstr("  seed: 1 -> 7\n"));
  EXPECT_THAT(ended.out, Not(HasSubstr("Note: The runs are of different versions")));
  std::istringstream lines(ended.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(columns(line), 80U) << line;

  const json comparison = file("all.json"), a = file("a/summary.json"), b = file("b/summary.json");
  EXPECT_EQ(comparison, file("both/compare.json"));
  EXPECT_THAT(directory_.text("both/compare.csv"), HasSubstr("input,topology.rate,,100 Gbps,50 Gbps,,\n"));
  EXPECT_FALSE(comparison["same_results"]);
  const json time = entry_of(comparison["jobs"][0]["times"], "name", "jct_s");
  EXPECT_EQ(time["a"], a["jobs"][0]["jct_s"]);
  EXPECT_EQ(time["b"], b["jobs"][0]["jct_s"]);
  EXPECT_GT(time["change"].get<double>(), 1);
  const json p99 = entry_of(comparison["figures"], "name", "flows.fct_p99_s");
  EXPECT_EQ(p99["b"], b["flows"]["fct_p99_s"]);
  double share = 0;
  for (const json& part : comparison["jobs"][0]["parts"]) share += part["share_b"].get<double>();
  EXPECT_NEAR(share, 1, 1e-9);
}

TEST_F(CompareProgram, FindsNoDifferenceBetweenEqualRuns) {
  play("a");
  play("b", "--threads 1");
  const Ended ended = run("compare a b --json -");
  ASSERT_EQ(ended.code, 0) << ended.err;
  const json comparison = json::parse(ended.out);
  EXPECT_TRUE(comparison["same_results"]);
  for (const char* list : {"inputs", "figures", "collectives", "links", "notes"})
    EXPECT_EQ(comparison[list].size(), 0U) << list << ": " << comparison[list];
  EXPECT_THAT(run("compare a b").out, HasSubstr("The results are the same"));
}

TEST_F(CompareProgram, ComparesTheSeedsOfTwoFolders) {
  for (const std::string seed : {"1", "2"}) {
    play("slow/" + seed, "--set 'topology.rate=50 Gbps' --seed " + seed);
    play("fast/" + seed, "--seed " + seed);
  }
  const Ended ended = run("compare slow fast --json all.json --significance '1 %'");
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("  topology.rate: 50 Gbps -> 100 Gbps\n"));
  EXPECT_THAT(ended.out, HasSubstr("Welch's"));
  const json point = file("all.json")["points"][0];
  const json time = entry_of(point["figures"], "name", "jobs.0.jct_s");
  EXPECT_EQ(time["a"]["count"], 2);
  const double first = file("slow/1/summary.json")["jobs"][0]["jct_s"],
               second = file("slow/2/summary.json")["jobs"][0]["jct_s"];
  EXPECT_NEAR(time["a"]["mean"].get<double>(), (first + second) / 2, 1e-12);
  EXPECT_LT(time["change"].get<double>(), -0.2);
}

TEST_F(CompareProgram, RefusesWhatIsNoResult) {
  play("a");
  expect_error("compare a nowhere", ExitCode::io, {"nowhere: holds no results"});
  expect_error("compare a", ExitCode::usage, {"1 folder given, two are expected"});
  expect_error("compare a a --worth", ExitCode::usage, {"unknown option '--worth' of compare (allowed: "});
  expect_error("compare a a --jsonx=abcdefgh", ExitCode::usage,
               {"unknown option '--jsonx' of compare, did you mean '--json'? (allowed: "});
  expect_error("compare a a --json a/summary.json", ExitCode::io, {"summary.json"});
  play("torn");
  write("torn/summary.json", "{\n\"outcome\": ");
  expect_error("compare a torn", ExitCode::input, {"torn/summary.json:2:", "the file is torn"});
  play("b");
  write("b/results.csv", "");
  EXPECT_EQ(run("compare a b --quiet").code, 0);  // a run stays one beside other files
}

}  // namespace
}  // namespace netsim::compare_runs_test
