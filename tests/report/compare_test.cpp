// netsim compare: are differences, shares and tests of significance right, and is a torn file named?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/core/errors.h"
#include "sim/core/text.h"
#include "sim/main/compare_command.h"
#include "sim/main/options.h"
#include "sim/report/compare/run_comparison.h"
#include "sim/report/compare/set_comparison.h"
#include "sim/report/compare/settings.h"
#include "sim/report/compare/welch.h"
#include "tests/report/fixtures.h"
#include "tests/support/fits.h"

namespace netsim::compare_test {
namespace {

using namespace netsim::compare;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// Returns the message of an InputError that `act` throws.
template <class Act>
std::string wrong_input(Act act) {
  try {
    act();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no InputError";
}

TEST(WelchTest, AgreesWithClosedForms) {
  // Equal variances and sizes give 4 degrees of freedom. Student's distribution then has a closed form.
  // P(|T| > t) is 1 - sin(x) (1 + cos(x)^2 / 2) with tan(x) = t / 2.
  const Spread low = spread_of({1, 2, 3}), high = spread_of({4, 5, 6});
  EXPECT_DOUBLE_EQ(low.deviation, 1);
  const double angle = std::atan(3 / std::sqrt(2.0 / 3) / 2), cosine = std::cos(angle);
  EXPECT_NEAR(*welch_test(low, high), 1 - std::sin(angle) * (1 + cosine * cosine / 2), 1e-12);
  EXPECT_NEAR(*welch_test(low, high), 0.0213, 5e-5);
  // Where only a sample of two varies there is 1 degree of freedom.
  EXPECT_NEAR(*welch_test(spread_of({0, 2}), spread_of({10, 10})), 1 - 2 / M_PI * std::atan(9), 1e-12);
  EXPECT_NEAR(*welch_test(high, low), *welch_test(low, high), 1e-15);
}

TEST(WelchTest, KnowsItsLimits) {
  EXPECT_FALSE(welch_test(spread_of({1}), spread_of({1, 2})));
  EXPECT_FALSE(welch_test(spread_of({}), spread_of({})));
  EXPECT_EQ(*welch_test(spread_of({0.1, 0.1, 0.1}), spread_of({0.1, 0.1})), 1);
  EXPECT_EQ(*welch_test(spread_of({3, 3}), spread_of({4, 4, 4})), 0);
  EXPECT_EQ(*welch_test(spread_of({1, 3}), spread_of({2, 2})), 1);
}

TEST(CompareSettings, ReadsTheCommandThatAManifestNames) {
  const std::vector<std::string> words{"--set", "a=it's \"b\" \\ c", "--out", "two words", "--set=x=", ""};
  std::vector<std::string> expected{"netsim"};
  expected.insert(expected.end(), words.begin(), words.end());
  EXPECT_EQ(words_of(quote_command(words)), expected);
  EXPECT_THAT(values_of(words, "--set"), ElementsAre("a=it's \"b\" \\ c", "x="));
}

TEST(CompareSettings, NamesWhatOneSideLacks) {
  const std::vector<SettingChange> changes =
      setting_changes({{"a", "1"}, {"b", "2"}, {"c", "3"}}, {{"b", "2"}, {"c", "4"}, {"d", "5"}});
  ASSERT_THAT(changes, SizeIs(3));
  EXPECT_EQ(changes[0].name, "a");
  EXPECT_FALSE(changes[0].b);
  EXPECT_EQ(changes[1].a, "3");
  EXPECT_EQ(changes[1].b, "4");
  EXPECT_FALSE(changes[2].a);
}

// Returns the settings of a manifest with this configuration.
Settings settings_with(const std::string& configuration) {
  const std::string path =
      (std::filesystem::path(::testing::TempDir()) / "netsim_compare_names.json").string();
  std::ofstream(path) << json{{"configuration", configuration},
                              {"seed", 1},
                              {"until_s", nullptr},
                              {"plugins", json::array()},
                              {"inputs", json::array()},
                              {"command", "netsim"}};
  Settings settings = manifest_settings(read_json(path));
  std::filesystem::remove(path);
  return settings;
}

TEST(CompareSettings, MatchItemsOfListsByTheirNames) {
  const Settings a = settings_with("jobs: [{name: a, x: 1}]\n"),
                 b = settings_with("jobs: [{name: b, x: 2}, {name: a, x: 1}]\n");
  std::vector<std::string> names;
  for (const SettingChange& each : setting_changes(a, b)) names.push_back(each.name);
  EXPECT_THAT(names, ElementsAre("jobs", "jobs.b.name", "jobs.b.x"));
  EXPECT_EQ(b.at("jobs"), "b, a");
  // Names that are missing or repeated do not tell items apart.
  EXPECT_EQ(settings_with("l: [{name: a}, {x: 1}]\n").count("l.1.x"), 1U);
  EXPECT_EQ(settings_with("l: [{name: a}, {name: a}]\n").count("l.1.name"), 1U);
}

TEST(CompareFigures, AreNotableAboveOnePercent) {
  EXPECT_FALSE((Difference{"x", 100, 101}).is_notable());
  EXPECT_TRUE((Difference{"x", 100, 101.1}).is_notable());
  EXPECT_TRUE((Difference{"x", 100, 98.9}).is_notable());
  EXPECT_TRUE((Difference{"x", 0, 1e-9}).is_notable());
  EXPECT_FALSE((Difference{"x", 0, 0}).is_notable());
  EXPECT_TRUE((Difference{"x", 5, std::nullopt}).is_notable());
  EXPECT_FALSE((Difference{"x", 0, 1}).change());
  EXPECT_DOUBLE_EQ(*(Difference{"x", -4, -3}).change(), 0.25);
}

// An iteration of 10 ms of which 6 ms are compute, and one of 12 ms with the same compute.
StoredRun run_of(double idle_ms, const std::string& classes) {
  StoredRun run;
  run.directory = "results/" + classes;
  run.version = "0.1.0";
  run.outcome = "done";
  run.results = classes;
  run.settings = {{"network.switch.classes", classes}, {"seed", "1"}};
  run.jobs.push_back(
      {"job",
       0,
       0.01,
       0.006 + 0.001 + idle_ms * 1e-3,
       std::nullopt,
       0.001,
       {{"compute", 0.006}, {"exposed tp", 0.001}, {"idle", idle_ms * 1e-3}, {"exposed io", 0}}});
  run.figures = {
      {"jobs.0.jct_s", 0.01 * idle_ms}, {"network.drops", idle_ms}, {"network.cnps", 1000 + idle_ms}};
  run.links.emplace();
  return run;
}

TEST(CompareRuns, SaysWhereTheTimeWent) {
  const RunComparison comparison = compare_runs(run_of(3, "1"), run_of(5, "2"));
  ASSERT_THAT(comparison.settings, SizeIs(1));
  ASSERT_THAT(comparison.jobs, SizeIs(1));
  const std::vector<PartDifference>& parts = comparison.jobs[0].parts;
  ASSERT_THAT(parts, SizeIs(3));  // what is 0 in both is left out
  EXPECT_EQ(parts[2].time.name, "idle");
  EXPECT_NEAR(*parts[2].time.difference(), 0.002, 1e-15);
  EXPECT_NEAR(parts[2].share_a, 3.0 / 10, 1e-12);
  EXPECT_NEAR(parts[2].share_b, 5.0 / 12, 1e-12);
  ASSERT_THAT(comparison.figures, SizeIs(1));  // 1003 to 1005 is below 1 %, and times of jobs stand above
  EXPECT_EQ(comparison.figures[0].name, "network.drops");
  EXPECT_THAT(comparison.notes, IsEmpty());
  const std::string screen = render_comparison(comparison);
  test::expect_fits(screen, 80);
  EXPECT_THAT(screen, HasSubstr("network.switch.classes: 1 -> 2\n"));
  EXPECT_THAT(screen, HasSubstr("+11.7"));  // points of the idle share
  EXPECT_THAT(screen, HasSubstr("+2.00 ms"));
}

TEST(CompareRuns, CountsTheParametersOfOneKind) {
  StoredRun a = run_of(3, "1"), b = run_of(3, "1");
  a.settings = {{"cc.kind", "dcqcn"}, {"cc.g", "1"}, {"cc.timer", "null"}, {"cc.rate", "1"}, {"mtu", "1"}};
  b.settings = {{"cc.kind", "hpcc"}, {"cc.eta", "1"}, {"cc.rate", "2"}};
  const RunComparison comparison = compare_runs(a, b);
  EXPECT_THAT(comparison.settings, SizeIs(6));  // files have all
  const std::string screen = render_comparison(comparison, 200);
  EXPECT_THAT(screen, HasSubstr("  cc.kind: dcqcn -> hpcc (3 parameters of one kind only; "));
  EXPECT_THAT(screen, HasSubstr("  cc.rate: 1 -> 2\n"));
  EXPECT_THAT(screen, HasSubstr("  mtu: 1 -> (none)\n"));
  EXPECT_THAT(screen, Not(HasSubstr("cc.eta")));
}

TEST(CompareRuns, ShowsNoIterationsOfTraffic) {
  StoredRun a = run_of(3, "1"), b = run_of(5, "2");
  EXPECT_THAT(render_comparison(compare_runs(a, b)), HasSubstr("iteration, mean"));
  for (StoredRun* run : {&a, &b}) run->jobs.front().parts = {{"compute", 0}, {"exposed dp", 0.01}};
  const std::string screen = render_comparison(compare_runs(a, b));
  EXPECT_THAT(screen, HasSubstr("\n  time  10.0 ms"));
  for (const char* word : {"JCT", "iteration", "exposed"}) EXPECT_THAT(screen, Not(HasSubstr(word)));
}

TEST(CompareRuns, NotesOtherVersionsAndRunsThatDidNotEnd) {
  StoredRun a = run_of(3, "1"), b = run_of(3, "1");
  b.commit = "abc";
  b.outcome = "limit reached";
  b.links.reset();
  const RunComparison comparison = compare_runs(a, b);
  EXPECT_TRUE(comparison.same_results);
  ASSERT_THAT(comparison.notes, SizeIs(3));
  EXPECT_THAT(comparison.notes[0], HasSubstr("commit abc"));
  EXPECT_THAT(comparison.notes[1], HasSubstr("B ended as 'limit reached'"));
  EXPECT_THAT(comparison.notes[2], HasSubstr("B has no links.csv"));
  EXPECT_THAT(render_comparison(comparison), HasSubstr("The results are the same"));
}

TEST(CompareRuns, MatchesJobsByName) {
  StoredRun a = run_of(3, "1"), b = run_of(5, "2");
  a.jobs.push_back(a.jobs[0]);
  a.jobs[1].name = "gone";
  b.jobs.insert(b.jobs.begin(), b.jobs[0]);
  b.jobs[0].name = "new";
  const RunComparison comparison = compare_runs(a, b);
  ASSERT_THAT(comparison.jobs, SizeIs(1));
  EXPECT_EQ(comparison.jobs[0].name, "job");
  EXPECT_THAT(comparison.notes, ElementsAre("Only A has the jobs gone.", "Only B has the jobs new."));
  a.jobs = {a.jobs[1]};
  b.jobs = {b.jobs[0]};
  EXPECT_EQ(compare_runs(a, b).jobs[0].name, "gone -> new");
}

TEST(CompareRuns, ShowsCollectivesThatChangedTheirAlgorithm) {
  StoredRun a = run_of(3, "1"), b = run_of(5, "2");
  a.collectives = {{"all_reduce, 8 ranks, 1.00 MB", "ring Simple, 4 channels", 2, 1e-3, 10},
                   {"all_gather, 8 ranks, 1.00 MB", "ring Simple, 4 channels", 2, 1e-3, 10}};
  b.collectives = a.collectives;
  b.collectives[0].algorithm = "tree LL, 4 channels";
  b.collectives[1].busbw_GBps = 10.05;
  RunComparison comparison = compare_runs(a, b);
  ASSERT_THAT(comparison.collectives, SizeIs(1));
  EXPECT_THAT(render_comparison(comparison, 120),
              HasSubstr("ring Simple, 4 channels -> tree LL, 4 channels"));
  b.collectives[1].busbw_GBps = 12;
  EXPECT_THAT(compare_runs(a, b).collectives, SizeIs(2));
}

TEST(CompareRuns, GroupsLinksThatChangedAlike) {
  StoredRun a = run_of(3, "1"), b = run_of(5, "2");
  for (int i = 0; i < 4; ++i) {
    a.links->push_back({"host" + std::to_string(i) + "->switch", "ethernet", 0.5, 1e6, 0});
    b.links->push_back({"host" + std::to_string(i) + "->switch", "ethernet", i == 3 ? 0.9 : 0.6, 1e6, 0});
  }
  const RunComparison comparison = compare_runs(a, b);
  ASSERT_THAT(comparison.links, SizeIs(4));
  EXPECT_EQ(comparison.links[0].name, "host3->switch");
  const std::string screen = render_comparison(comparison);
  EXPECT_THAT(screen, HasSubstr("host0->switch     +2"));
  EXPECT_THAT(screen, Not(HasSubstr("host1")));
  EXPECT_EQ(json::parse(comparison_json(comparison))["links"].size(), 4U);
}

// CompareFolders: small output directories as a run and a sweep leave them.
class CompareFolders : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = std::filesystem::path(directory_.path()) / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }
  void write_run(const std::string& name, const std::string& seed, double time_s,
                 const std::string& rate) const {
    const json job = {{"name", "job"},       {"warm_up", 1},
                      {"jct_s", 3 * time_s}, {"iteration_time_s", time_s},
                      {"compute_s", 0.5},    {"exposed_communication_s", time_s - 0.5},
                      {"idle_s", 0.0},       {"exposed_by", {{"tp", time_s - 0.5}}}};
    const json summary = {{"outcome", "done"},
                          {"fingerprint", {{"results", seed + rate}}},
                          {"jobs", json::array({job})},
                          {"collectives", json::array()},
                          {"network", {{"drops", 3}}}};
    const json manifest = {{"netsim", "0.1.0"},
                           {"commit", nullptr},
                           {"command", "netsim --config c.yaml --workload w.pb"},
                           {"seed", std::stoi(seed)},
                           {"until_s", nullptr},
                           {"inputs", json::array({{{"path", "w.pb"}, {"hash", "77"}}})},
                           {"plugins", json::array()},
                           {"configuration", "topology:\n  rate: " + rate + "  # default\n"}};
    write(name + "/summary.json", summary.dump(2));
    write(name + "/manifest.json", manifest.dump(2));
    write(name + "/iterations.csv",
          "job,iteration,duration_ps\njob,0,9000000000000\njob,1,2000000000000\njob,2,1000000000000\n");
    write(name + "/links.csv", "link,kind,utilisation,wire_bytes,max_queue_bytes\na->b,ethernet,0.5,100,7\n");
  }
  test::Directory directory_;
};

TEST_F(CompareFolders, AreReadWithTheirTables) {
  write_run("a", "1", 2, "100 Gbps");
  const StoredRun run = read_run(path("a"));
  EXPECT_EQ(run.settings.at("topology.rate"), "100 Gbps");
  EXPECT_EQ(run.settings.at("workload"), "w.pb");
  EXPECT_EQ(run.settings.at("workload content"), "77");
  EXPECT_EQ(run.settings.at("seed"), "1");
  EXPECT_EQ(run.figures.at("network.drops"), 3);
  EXPECT_FALSE(run.workload);
  ASSERT_THAT(run.jobs, SizeIs(1));
  EXPECT_DOUBLE_EQ(*run.jobs[0].iteration_p99_s, 2);  // the warm-up is no iteration of means
  ASSERT_THAT(*run.links, SizeIs(1));
  EXPECT_EQ(run.links->front().max_queue_bytes, 7);
}

TEST_F(CompareFolders, TornFilesAreNamedWithTheirLine) {
  write_run("a", "1", 2, "100 Gbps");
  write("a/links.csv", "link,kind,utilisation,wire_bytes,max_queue_bytes\na->b,ethernet,0.5,100,7\na->c,eth");
  EXPECT_THAT(wrong_input([&] { read_run(path("a")); }), HasSubstr("links.csv:3:1: the row is torn"));
  write("a/links.csv", "link,kind,utilisation,wire_bytes,max_queue_bytes\na->b,ethernet,much,100,7\n");
  EXPECT_THAT(wrong_input([&] { read_run(path("a")); }), HasSubstr("links.csv:2:1: 'much' in column"));
  write("a/summary.json", "{\n  \"outcome\": \"done\",\n  \"fing");
  EXPECT_THAT(wrong_input([&] { read_run(path("a")); }), HasSubstr("summary.json:3:"));
  write("a/summary.json", "{\"outcome\": 7}");
  EXPECT_THAT(wrong_input([&] { read_run(path("a")); }),
              HasSubstr("summary.json: outcome: a text is expected"));
}

TEST_F(CompareFolders, OfSeveralSeedsAreMatchedByWhatVaries) {
  for (const char* seed : {"1", "2", "3"}) {
    const double more = std::stod(seed) * 1e-3;
    write_run(std::string("a/slow_") + seed, seed, 2 + more, "100 Gbps");
    write_run(std::string("a/fast_") + seed, seed, 1 + more, "200 Gbps");
    write_run(std::string("b/slow_") + seed, seed, 2 + more, "100 Gbps");
    write_run(std::string("b/fast_") + seed, seed, 0.9 + more, "200 Gbps");
  }
  write("b/torn/manifest.json", "{}");
  ASSERT_TRUE(is_folder_of_runs(path("a")));
  const SetComparison comparison = compare_sets(read_runs(path("a")), read_runs(path("b")));
  EXPECT_THAT(comparison.axes, ElementsAre("topology.rate"));
  EXPECT_THAT(comparison.settings, IsEmpty());
  ASSERT_THAT(comparison.points, SizeIs(2));
  EXPECT_THAT(comparison.points[0].values, ElementsAre("200 Gbps"));
  const SpreadDifference* fast = comparison.points[0].find("jobs.0.iteration_time_s");
  ASSERT_NE(fast, nullptr);
  EXPECT_EQ(fast->a.count, 3U);
  EXPECT_NEAR(fast->a.mean, 1.002, 1e-12);
  EXPECT_NEAR(fast->a.deviation, 1e-3, 1e-12);
  EXPECT_TRUE(fast->is_significant(0.05));
  EXPECT_EQ(*comparison.points[1].find("jobs.0.iteration_time_s")->probability, 1);
  EXPECT_THAT(comparison.notes, ElementsAre(HasSubstr("torn is left out")));
  const std::string screen = render_comparison(comparison);
  test::expect_fits(screen, 80);
  EXPECT_THAT(screen, HasSubstr("1.00 s ± 0.1 %"));
  EXPECT_THAT(screen, HasSubstr("<0.001  *"));
  const json all = json::parse(comparison_json(comparison));
  EXPECT_EQ(all["points"][0]["axes"]["topology.rate"], "200 Gbps");
  EXPECT_THAT(comparison_csv(comparison), HasSubstr("100 Gbps,network.drops,3,3,0,3,3,0,0,0,1,false\n"));
}

TEST_F(CompareFolders, OfSweepsAreMatchedByTheirAxes) {
  const std::string columns = "senders,number,run,outcome,message,network.drops,flows.fct_mean_s,done\n";
  write("a/results.csv",
        columns + "2,1,r1,done,,0,0.5,true\n2,2,r2,done,,1,0.7,true\n4,1,r3,failed,why,,,\n");
  write("b/results.csv",
        columns + "2,1,r1,done,,0,0.9,true\n2,2,r2,done,,1,1.1,true\n8,1,r3,done,,1,1,true\n");
  const auto record = [](const std::string& seed, const std::string& mtu) {
    const json arguments = {"--config", "c.yaml", "--seed", seed, "--set", "transport.mtu=" + mtu};
    return json{{"arguments", arguments}}.dump();
  };
  for (const char* sweep : {"a", "b"}) {
    const std::string mtu = std::string(sweep) == "a" ? "1 KiB" : "4 KiB",
                      runs = std::string(sweep) + "/runs/";
    write(runs + "r1.json", record("1", mtu));
    write(runs + "r2.json", record("2", mtu));
    write(runs + "r3.json", record("1", mtu));
  }
  const SetComparison comparison = compare_sets(read_sweep(path("a")), read_sweep(path("b")));
  EXPECT_THAT(comparison.axes, ElementsAre("senders"));  // `number` has the seeds
  ASSERT_THAT(comparison.settings, SizeIs(1));
  EXPECT_EQ(comparison.settings[0].name, "transport.mtu");
  ASSERT_THAT(comparison.points, SizeIs(1));
  const SpreadDifference* mean = comparison.points[0].find("flows.fct_mean_s");
  ASSERT_NE(mean, nullptr);
  EXPECT_NEAR(*mean->means().change(), 0.4 / 0.6, 1e-12);
  EXPECT_EQ(mean->a.count, 2U);
  EXPECT_EQ(comparison.points[0].find("done"), nullptr);
  EXPECT_THAT(comparison.only_b, ElementsAre("8"));
  EXPECT_THAT(comparison.notes, ElementsAre(HasSubstr("1 run that failed")));
  test::expect_fits(render_comparison(comparison), 80);
}

TEST(CompareCommand, SaysWhatIsWrong) {
  const auto refusal = [](const std::vector<std::string>& words) {
    try {
      parse_comparison(words);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(refusal({"compare", "a"}), HasSubstr("1 folder given, two are expected"));
  EXPECT_THAT(refusal({"compare", "a", "b", "--jso", "x"}), HasSubstr("did you mean '--json'?"));
  EXPECT_THAT(refusal({"compare", "a", "b", "--out"}), HasSubstr("--out: the value is missing"));
  EXPECT_THAT(refusal({"compare", "a", "b", "--out="}), HasSubstr("--out: the value is empty"));
  EXPECT_THAT(refusal({"compare", "a", "b", "--significance", "1"}), HasSubstr("above 0 and below 1"));
  EXPECT_THAT(refusal({"compare", "a", "b", "--quiet=no"}), HasSubstr("--quiet takes no value"));
  EXPECT_THAT(refusal({"compare", "a", "b", "--out", "x", "--out", "y"}),
              HasSubstr("--out is given more than once"));
  EXPECT_TRUE(parse_comparison({"compare", "--help"}).help);
  EXPECT_THAT(comparison_help(80), HasSubstr("\n  --significance P "));
  EXPECT_THAT(comparison_help(80), Not(HasSubstr(" \n")));
  test::expect_fits(comparison_help(80), 80);
  const CompareOptions options = parse_comparison({"compare", "--json=-", "a", "--significance", "1 %", "b"});
  EXPECT_EQ(options.a + options.b + options.json, "ab-");
  EXPECT_DOUBLE_EQ(options.significance, 0.01);
}

}  // namespace
}  // namespace netsim::compare_test
