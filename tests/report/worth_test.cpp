// Are the differences of --worth those of the runs' results, and do table, files and picture hold them?
#include "sim/report/worth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/report/worth_files.h"
#include "tests/report/fixtures.h"

namespace netsim::worth_test {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

WorthRun run_of(const std::string& name, const std::string& field, std::vector<WorthJob> jobs) {
  WorthRun run;
  run.name = name;
  run.title = field.empty() ? "all" : "without " + field;
  run.field = field;
  run.state = "done";
  run.jobs = std::move(jobs);
  return run;
}

// Two jobs of 2 and 4 ms. Without sizes the first takes 3 ms; without loads the second takes 3 ms; the
// scheduler cannot do without deadlines.
Worth two_jobs() {
  Worth worth;
  worth.runs = {run_of("all", "", {{"a", 2e-3, 1e-3}, {"b", 4e-3, 0}}),
                run_of("without_sizes", "sizes", {{"a", 3e-3, 1.5e-3}, {"b", 4e-3, 0}}),
                run_of("without_loads", "loads", {{"a", 2e-3, 1e-3}, {"b", 3e-3, 0}}),
                run_of("without_deadlines", "deadlines", {})};
  worth.runs[3].state = "refused";
  worth.runs[3].message = "c.yaml:2:1: 'edf' cannot do without deadlines";
  return worth;
}

// Returns the study of two_jobs() with two more runs, in which `sizes` is 1 us and 1 ms old. At 1 us nothing
// changes, and at 1 ms job a takes 2.5 ms.
Worth with_ages() {
  Worth worth = two_jobs();
  worth.runs.push_back(run_of("age_sizes_1us", "sizes", worth.runs[0].jobs));
  worth.runs.push_back(run_of("age_sizes_1ms", "sizes", {{"a", 2.5e-3, 1e-3}, {"b", 4e-3, 0}}));
  worth.runs[4].age = kMicrosecond;
  worth.runs[5].age = kMillisecond;
  worth.runs[4].title = "sizes, age 1 us";
  worth.runs[5].title = "sizes, age 1 ms";
  return worth;
}

std::vector<std::string> lines_in(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(Worth, ComparesJobsAndTheirMeanWithAll) {
  const Worth worth = two_jobs();
  const std::vector<WorthLine> lines = worth_lines(worth, worth.runs[1]);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].name, "a");
  EXPECT_DOUBLE_EQ(lines[0].time_s.value(), 3e-3);
  EXPECT_DOUBLE_EQ(lines[0].difference_s.value(), 1e-3);
  EXPECT_DOUBLE_EQ(lines[0].change.value(), 0.5);
  EXPECT_DOUBLE_EQ(lines[0].exposed_difference_s.value(), 0.5e-3);
  EXPECT_DOUBLE_EQ(lines[1].difference_s.value(), 0);
  EXPECT_EQ(lines[2].kind, WorthLine::Kind::mean_jct);
  EXPECT_DOUBLE_EQ(lines[2].time_s.value(), 3.5e-3);
  EXPECT_DOUBLE_EQ(lines[2].difference_s.value(), 0.5e-3);
  EXPECT_NEAR(lines[2].change.value(), 1.0 / 6, 1e-12);
  EXPECT_EQ(deciding_line(lines), &lines[2]);
  EXPECT_TRUE(worth_lines(worth, worth.runs[3]).empty());
}

TEST(Worth, ComparesOnlyJobsThatAreDoneInBothRuns) {
  Worth worth = two_jobs();
  worth.runs[1].jobs[1].jct_s.reset();
  const std::vector<WorthLine> lines = worth_lines(worth, worth.runs[1]);
  EXPECT_FALSE(lines[1].difference_s);
  EXPECT_DOUBLE_EQ(lines[2].time_s.value(), 3e-3);
  EXPECT_DOUBLE_EQ(lines[2].difference_s.value(), 1e-3);
  EXPECT_DOUBLE_EQ(lines[2].change.value(), 0.5);
  worth.runs[1].jobs[0].jct_s.reset();
  EXPECT_FALSE(worth_lines(worth, worth.runs[1])[2].time_s);
}

TEST(Worth, FindsJobsByNameAndNotByPlace) {
  Worth worth = two_jobs();
  worth.runs[1].jobs.insert(worth.runs[1].jobs.begin(), {"a again", 1e-3, 0});
  const std::vector<WorthLine> lines = worth_lines(worth, worth.runs[1]);
  EXPECT_FALSE(lines[0].difference_s);
  EXPECT_DOUBLE_EQ(lines[1].difference_s.value(), 1e-3);
}

TEST(Worth, OfTrafficIsThatOfItsFlows) {
  Worth worth;
  worth.only_traffic = true;
  worth.runs = {run_of("all", "", {{"flows", 4e-3, 0}}),
                run_of("without_sizes", "sizes", {{"flows", 4e-3, 0}})};
  worth.runs[0].flows = {3, 2e9, 2 * kMillisecond, 4 * kMillisecond, 4 * kMillisecond};
  worth.runs[1].flows = {3, 3e9, 2 * kMillisecond, 4 * kMillisecond, 4 * kMillisecond};
  const std::vector<WorthLine> lines = worth_lines(worth, worth.runs[1]);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(deciding_line(lines), &lines[1]);
  EXPECT_DOUBLE_EQ(lines[1].difference_s.value(), 1e-3);
  EXPECT_DOUBLE_EQ(lines[2].difference_s.value(), 0);
  EXPECT_THAT(render_worth(worth),
              HasSubstr("`sizes` was worth most: without it the mean flow completion time is "
                        "50.00 %"));
}

TEST(Worth, TakesTheResultsOfARun) {
  Worth worth;
  worth.runs.resize(1);
  const Results results = test::two_rank_results();
  record_worth(worth, worth.runs[0], results);
  EXPECT_EQ(worth.runs[0].state, "done");
  EXPECT_EQ(worth.runs[0].message, "");
  ASSERT_EQ(worth.runs[0].jobs.size(), 1U);
  EXPECT_EQ(worth.runs[0].jobs[0].name, "pair");
  EXPECT_EQ(worth.runs[0].jobs[0].jct_s, summarise(results.jobs[0]).jct_s);
  EXPECT_EQ(worth.runs[0].jobs[0].exposed_s, summarise(results.jobs[0]).exposed_s);
  EXPECT_FALSE(worth.interrupted());
  Results cut = results;
  cut.outcome = Outcome::interrupted;
  record_worth(worth, worth.runs[0], cut);
  EXPECT_TRUE(worth.interrupted());
}

TEST(Worth, NamesTheJobsThatChangeMost) {
  const Worth worth = two_jobs();
  EXPECT_THAT(most_changed_jobs(worth, 1), ElementsAre("a"));
  EXPECT_THAT(most_changed_jobs(worth, 5), ElementsAre("a", "b"));
}

TEST(WorthTable, FitsTheWidthAndSaysWhatWasWorthMost) {
  const std::string text = render_worth(with_ages(), 80);
  for (const std::string& line : lines_in(text)) EXPECT_LE(columns(line), 80U) << line;
  EXPECT_THAT(text, HasSubstr("+50.00 %"));
  EXPECT_THAT(text, HasSubstr("-25.00 %"));
  EXPECT_THAT(text, HasSubstr("without deadlines: refused: c.yaml:2:1"));
  EXPECT_THAT(text, HasSubstr("`sizes` was worth most: without it the mean JCT is 16.67 %"));
  EXPECT_THAT(render_worth(with_ages(), 200), HasSubstr("The schedulers cannot do without `deadlines`."));
}

TEST(WorthTable, CutsLongNamesOfJobs) {
  Worth worth = two_jobs();
  worth.runs.resize(2);
  for (WorthRun& run : worth.runs) {
    run.jobs[0].name = std::string(90, 'x');
    run.jobs[1].name = "\xc3\xbc\xc3\xbc\xc3\xbc and a long name of a job";
  }
  const std::string text = render_worth(worth, 80);
  for (const std::string& line : lines_in(text)) EXPECT_LE(columns(line), 80U) << line;
  EXPECT_THAT(text, HasSubstr(" " + std::string(17, 'x') + "... "));
  EXPECT_THAT(text, HasSubstr("\xc3\xbc\xc3\xbc\xc3\xbc and a long na... "));
}

TEST(WorthTable, SaysWhereNothingWasWorthAnything) {
  Worth worth = two_jobs();
  worth.runs.resize(2);
  worth.runs[1].jobs = worth.runs[0].jobs;
  EXPECT_THAT(render_worth(worth), HasSubstr("No field was worth anything here: the mean JCT is the same"));
  worth.runs[1].jobs[0].jct_s = 1e-3;
  EXPECT_THAT(render_worth(worth),
              HasSubstr("No field shortened the mean JCT: without `sizes` it is 16.67 %"));
  worth.runs.resize(1);
  EXPECT_THAT(render_worth(worth), HasSubstr("No run without a field can be compared"));
}

TEST(WorthTable, ListsTheRunsBeforehand) {
  WorthRun run = run_of("without_sizes", "sizes", {});
  run.assignments = {"scheduling.views.sizes.on=false"};
  Worth worth;
  worth.runs = {run_of("all", "", {}), run};
  EXPECT_EQ(render_worth_plan(worth),
            "2 runs for --worth\n"
            "  run            set over the configuration\n"
            "  all\n"
            "  without_sizes  scheduling.views.sizes.on=false\n");
}

TEST(WorthFiles, HoldAllTimes) {
  const json all = json::parse(worth_json(with_ages()));
  ASSERT_EQ(all["runs"].size(), 6U);
  EXPECT_EQ(all["runs"][0]["field"], nullptr);
  EXPECT_EQ(all["runs"][1]["times"][0]["name"], "a");
  EXPECT_DOUBLE_EQ(all["runs"][1]["times"][0]["difference_s"].get<double>(), 1e-3);
  EXPECT_EQ(all["runs"][3]["state"], "refused");
  EXPECT_DOUBLE_EQ(all["runs"][5]["age_s"].get<double>(), 1e-3);
  const std::vector<std::string> rows = lines_in(worth_csv(with_ages()));
  ASSERT_EQ(rows.size(), 1U + 5 * 3 + 1);
  EXPECT_THAT(rows[0], StartsWith("run,field,age_ps,state,message,what,name,time_s,"));
  EXPECT_THAT(rows[1], StartsWith("all,,,done,,job,a,0.002,0,0,0.001,0"));
  EXPECT_EQ(rows[10],
            "without_deadlines,deadlines,,refused,c.yaml:2:1: 'edf' cannot do without deadlines,,,,,,,");
  EXPECT_THAT(rows[11], StartsWith("age_sizes_1us,sizes,1000000,done,,job,a,0.002,0,0,"));
}

TEST(WorthFiles, ReplaceOnlyTheirOwn) {
  const test::Directory directory;
  Manifest manifest;
  manifest.command = "netsim --worth";
  manifest.configuration = "topology: star\n";
  for (int i = 0; i < 2; ++i) {
    WorthFiles files(directory.path());
    files.begin();
    EXPECT_FALSE(directory.has("worth.json"));
    files.finish(two_jobs(), manifest);
  }
  EXPECT_EQ(directory.text("worth.json"), worth_json(two_jobs()));
  EXPECT_EQ(directory.text("worth.csv"), worth_csv(two_jobs()));
  EXPECT_EQ(directory.text("worth.svg"), draw_worth(two_jobs()));
  EXPECT_EQ(json::parse(directory.text("manifest.json"))["files"].size(), 3U);
  std::ofstream(directory.path() + "/worth.csv") << "mine\n";
  EXPECT_THROW(WorthFiles{directory.path()}, IoError);
  EXPECT_EQ(directory.text("worth.csv"), "mine\n");
}

TEST(WorthPicture, HasABarForEachTimeAndCurvesOverAge) {
  const std::string bars = draw_worth(two_jobs());
  EXPECT_THAT(bars, HasSubstr("<title>without sizes, a: 3.00 ms (+50.00 %)</title>"));
  EXPECT_THAT(bars, HasSubstr("<title>without loads, mean of 2: 2.50 ms (-16.67 %)</title>"));
  EXPECT_THAT(bars, HasSubstr(">refused</text>"));
  EXPECT_THAT(bars, Not(HasSubstr("by the age")));
  const std::string curves = draw_worth(with_ages());
  EXPECT_THAT(curves, HasSubstr("JCT of a by the age of each field (2.00 ms with all)"));
  EXPECT_THAT(curves, HasSubstr("<title>sizes, age 1 ms, a: 2.50 ms (+25.00 %)</title>"));
  EXPECT_THAT(curves, HasSubstr(">1 us</text>"));
  EXPECT_THAT(curves, HasSubstr(">without</text>"));
  EXPECT_EQ(curves, draw_worth(with_ages()));
}

}  // namespace
}  // namespace netsim::worth_test
