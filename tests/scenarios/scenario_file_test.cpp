// Tests the reader of scenario files and the checks of values. A wrong file is refused with its place.
#include "tests/support/scenario_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/paths.h"
#include "tests/support/test_size.h"

namespace netsim::scenario_file_test {
namespace {

using test::ActualValue;
using test::DeclaredScenario;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string refusal(const std::string& text) {
  try {
    test::parse_scenarios(text, "wrong.yaml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

// A scenario `a` with these lines.
std::string scenario(const std::string& lines) { return "scenarios:\n  a:\n    source: x\n" + lines; }

TEST(ScenarioFile, GivesEveryScenarioTheSharedKeys) {
  const std::vector<DeclaredScenario> all = test::parse_scenarios(
      "every: {source: closed form, set: [a=1, b=2], files: {c.yaml: '{}'}, expect: {exit: 2, stdout: x}}\n"
      "scenarios:\n"
      "  one: {configuration: c.yaml, threads: [1, 3], expect: {error: [y, z]}}\n"
      "  two: {source: paper, set: d=4, workload: \"kind: incast\\n\", threads: 2, expect: {exit: 0}}\n",
      "file.yaml");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "one");
  EXPECT_EQ(all[0].source, "closed form");
  EXPECT_EQ(all[0].configuration.path, "c.yaml");
  EXPECT_EQ(all[0].expected.exit, 2);
  EXPECT_EQ(all[0].expected.error.size(), 2u);
  EXPECT_EQ(all[0].expected.stdout_text.size(), 1u);
  EXPECT_EQ(all[0].place.line, 3);
  EXPECT_THAT(all[0].assignments, ElementsAre("a=1", "b=2"));
  EXPECT_THAT(all[0].threads, ElementsAre(1, 3));
  EXPECT_EQ(all[1].source, "paper");
  EXPECT_EQ(all[1].workload.path, "workload.yaml");
  EXPECT_EQ(all[1].workload.text, "kind: incast\n");
  EXPECT_EQ(all[1].expected.exit, 0);
  EXPECT_THAT(all[1].assignments, ElementsAre("d=4"));
  EXPECT_THAT(all[1].threads, ElementsAre(2));
}

TEST(ScenarioFile, SaysWhichShareOfItTheQuickSuiteRuns) {
  const std::string path = source_directory() + "/tests/scenarios/declared/schedulers.yaml";
  const std::vector<DeclaredScenario> all = test::read_scenarios(path),
                                      some = test::read_share_of_scenarios(path);
  const std::size_t each = test::by_size(1U, 2U, 4U);
  ASSERT_EQ(some.size(), (all.size() + each - 1) / each);
  for (std::size_t i = 0; i < some.size(); ++i) EXPECT_EQ(some[i].name, all[i * each].name);
}

TEST(ScenarioFile, HasAScenarioForEachCase) {
  const std::vector<DeclaredScenario> all = test::parse_scenarios(
      "every: {threads: 2}\n"
      "scenarios:\n"
      "  chain:\n"
      "    source: closed form\n"
      "    workload: \"kind: layers\\n\"\n"
      "    expect: {summary: {packets: 1}}\n"
      "    cases:\n"
      "      fifo: {set: a=1}\n"
      "      whole: {set: a=2, expect: {summary: {packets: 3}}}\n",
      "file.yaml");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "chain_fifo");
  EXPECT_EQ(all[0].source, "closed form");
  EXPECT_EQ(all[0].workload.text, "kind: layers\n");
  EXPECT_EQ(all[0].expected.summary[0].second[0].text, "1");
  EXPECT_THAT(all[0].threads, ElementsAre(2));
  EXPECT_EQ(all[1].name, "chain_whole");
  EXPECT_THAT(all[1].assignments, ElementsAre("a=2"));
  EXPECT_EQ(all[1].expected.summary[0].second[0].text, "3");
  EXPECT_EQ(all[1].place.line, 9);
}

TEST(ScenarioFile, IsRefusedAtTheLine) {
  EXPECT_THAT(refusal("scenario: {}\n"), StartsWith("wrong.yaml:1:1: scenario: unknown key"));
  EXPECT_THAT(refusal("every: {}\n"), HasSubstr("'scenarios' is missing"));
  EXPECT_THAT(refusal("scenarios:\n  a: {expect: {exit: 0}}\n"), HasSubstr("wrong.yaml:2:"));
  EXPECT_THAT(refusal("scenarios:\n  a: {expect: {exit: 0}}\n"), HasSubstr("'source' is missing"));
  EXPECT_THAT(refusal("scenarios:\n  a b: {source: x, expect: {}}\n"), HasSubstr("letters, digits and _"));
  EXPECT_THAT(refusal(scenario("")), HasSubstr("'expect' is missing"));
  EXPECT_THAT(refusal(scenario("    expct: {}\n")), HasSubstr("wrong.yaml:4:5"));
  EXPECT_THAT(refusal(scenario("    cases: {b: {expct: {}}}\n")), HasSubstr("wrong.yaml:4:17"));
  EXPECT_THAT(refusal(scenario("    cases: {b: {cases: {}}}\n")), HasSubstr("unknown key"));
  EXPECT_THAT(refusal(scenario("    expect: {exti: 2}\n")), HasSubstr("did you mean 'exit'"));
  EXPECT_THAT(refusal(scenario("    expect: {exit: two}\n")), HasSubstr("wrong.yaml:4:20"));
  EXPECT_THAT(refusal(scenario("    expect: {error: x}\n")), HasSubstr("needs its 'exit' code"));
  EXPECT_THAT(refusal(scenario("    configuration: nowhere.yaml\n    expect: {exit: 0}\n")),
              StartsWith("wrong.yaml:4:20: scenarios.a.configuration: 'nowhere.yaml' is neither"));
}

TEST(ScenarioFile, IsRefusedAtAWrongCheck) {
  const auto refused = [](const std::string& check) {
    return refusal(scenario("    expect:\n      summary:\n        packets: " + check + "\n"));
  };
  EXPECT_EQ(refused("{above: 1, below: 3}"), "accepted");
  EXPECT_THAT(refused("{above: x}"), StartsWith("wrong.yaml:6:26: "));
  EXPECT_THAT(refused("{above: x}"), HasSubstr("'x' is no number"));
  EXPECT_THAT(refused("{abov: 1}"), HasSubstr("did you mean 'above'"));
  EXPECT_THAT(refused("{near: 1}"), HasSubstr("needs 'within'"));
  EXPECT_THAT(refused("{within: 1}"), HasSubstr("nothing is expected"));
  EXPECT_THAT(refusal(scenario("    expect: {tables: {flows.csv: {rows: [{where: {a: b}}]}}}\n")),
              HasSubstr("no cell is expected"));
}

// Returns whether a value passes the checks that `text` writes.
bool passes(const std::string& text, const ActualValue& actual) {
  for (const test::Check& check : test::read_checks(parse_config(text, "c"), test::Check::Kind::is)) {
    if (!check.failure_of(actual).empty()) return false;
  }
  return true;
}

TEST(ScenarioCheck, ComparesNumbers) {
  const ActualValue value = ActualValue::of(nlohmann::json(2.0e-5));
  for (const char* right : {"20e-6", "2e-05", "{above: 1e-5, below: 3e-5}", "{near: 2.1e-5, within: 5 %}",
                            "{near: 0, within: 1}", "{at_least: 2e-5, at_most: 2e-5}", "{not: 2}"})
    EXPECT_TRUE(passes(right, value)) << right;
  for (const char* wrong : {"21e-6", "{above: 2e-5}", "{below: 2e-5}", "{near: 2.2e-5, within: 5 %}",
                            "{not: 20e-6}", "{count: 2}", "text"})
    EXPECT_FALSE(passes(wrong, value)) << wrong;
  // A double does not tell these two apart.
  EXPECT_FALSE(passes("9007199254740993", ActualValue::of(std::string("9007199254740992"))));
}

TEST(ScenarioCheck, ComparesTexts) {
  const ActualValue text = ActualValue::of(std::string("one two"));
  for (const char* right :
       {"one two", "{contains: [one, two]}", "{lacks: three}", "{begins: one, contains: two}"})
    EXPECT_TRUE(passes(right, text)) << right;
  for (const char* wrong : {"one", "{contains: [one, three]}", "{lacks: two}", "{begins: two}", "{above: 1}"})
    EXPECT_FALSE(passes(wrong, text)) << wrong;
  EXPECT_TRUE(passes("null", ActualValue::of(nlohmann::json())));
  EXPECT_TRUE(passes("{count: 2, contains: b}", ActualValue::of(nlohmann::json{"a", "b"})));
}

TEST(ScenarioCheck, SaysWhatItFound) {
  const test::Check check = test::read_checks(parse_config("{above: 3}", "c"), test::Check::Kind::is).at(0);
  EXPECT_EQ(check.failure_of(ActualValue::of(std::string("2"))),
            "c:1:9: above: expected: above '3'; found: '2'");
}

}  // namespace
}  // namespace netsim::scenario_file_test
