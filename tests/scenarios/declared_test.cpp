// Runs the scenario files of tests/scenarios/declared/, one suite for each file and one test for each
// scenario. NETSIM_RECORD=1 writes the fingerprints that the runs have into the files; then the commit says
// why they changed.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "sim/core/errors.h"
#include "tests/report/fixtures.h"
#include "tests/support/paths.h"
#include "tests/support/scenario_file.h"

namespace netsim::declared_test {
namespace {

using nlohmann::json;
using test::ActualValue;
using test::Check;
using test::DeclaredScenario;
using test::ExpectedRows;
using test::ExpectedTable;
using test::NamedChecks;

void expect(const std::vector<Check>& checks, const ActualValue& actual) {
  for (const Check& check : checks) {
    const std::string failure = check.failure_of(actual);
    if (!failure.empty()) ADD_FAILURE() << failure;
  }
}

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// ---- Fields of JSON

// Returns the value at a dotted path whose numbers are indices of arrays, or nothing where there is none.
std::optional<json> field_of(json value, const std::string& path) {
  std::istringstream parts(path);
  for (std::string part; std::getline(parts, part, '.');) {
    if (value.is_object() && value.contains(part)) {
      value = json(value[part]);
    } else if (value.is_array() && part.find_first_not_of("0123456789") == part.npos &&
               std::stoul(part) < value.size()) {
      value = json(value[std::stoul(part)]);
    } else {
      return std::nullopt;
    }
  }
  return value;
}

void expect_fields(const NamedChecks& fields, const std::string& text) {
  if (fields.empty()) return;
  const json all = json::parse(text, nullptr, false);
  for (const auto& [path, checks] : fields) {
    const std::optional<json> value = all.is_discarded() ? std::nullopt : field_of(all, path);
    if (value) {
      expect(checks, ActualValue::of(*value));
    } else {
      ADD_FAILURE() << checks.at(0).place.to_string() << ": there is no such field";
    }
  }
}

// ---- Tables

using Row = std::map<std::string, std::string>;

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
  return cells;
}

// Reads a table of netsim's; cells that scenarios look at are not quoted.
std::vector<Row> rows_of(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> columns = cells_of(line);
  std::vector<Row> rows;
  while (std::getline(lines, line)) {
    std::vector<std::string> cells = cells_of(line);
    cells.resize(columns.size());
    Row& row = rows.emplace_back();
    for (std::size_t i = 0; i < columns.size(); ++i) row[columns[i]] = cells[i];
  }
  return rows;
}

bool selected(const ExpectedRows& expected, const Row& row) {
  return std::all_of(expected.where.begin(), expected.where.end(), [&](const auto& condition) {
    const auto cell = row.find(condition.first);
    return cell != row.end() && cell->second == condition.second;
  });
}

void expect_rows(const ExpectedRows& expected, const std::vector<Row>& rows) {
  bool found = false;
  for (const Row& row : rows) {
    if (!selected(expected, row)) continue;
    found = true;
    for (const auto& [column, checks] : expected.cells) {
      const auto cell = row.find(column);
      if (cell == row.end()) {
        ADD_FAILURE() << checks.at(0).place.to_string() << ": there is no such column";
      } else {
        expect(checks, ActualValue::of(cell->second));
      }
    }
  }
  EXPECT_TRUE(found) << expected.place.to_string() << ": there is no such row";
}

void expect_table(const ExpectedTable& expected, const std::string& text) {
  const std::vector<Row> rows = rows_of(text);
  expect(expected.count, {"", std::nullopt, rows.size()});
  for (const auto& [column, checks] : expected.sums) {
    std::int64_t sum = 0;
    for (const Row& row : rows) sum += row.count(column) > 0 ? std::atoll(row.at(column).c_str()) : 0;
    expect(checks, ActualValue::of(std::to_string(sum)));
  }
  for (const ExpectedRows& selection : expected.rows) expect_rows(selection, rows);
}

// ---- Runs

// The fingerprints of a run, and the summary that they are part of.
struct Kept {
  std::string results, packets, summary;
};

class ScenarioRun {
 public:
  explicit ScenarioRun(const DeclaredScenario& scenario) : scenario_(scenario) {
    for (const auto& [name, text] : scenario.files) write(name, text);
    for (const test::ScenarioInput* input : {&scenario.configuration, &scenario.workload}) {
      if (!input->text.empty()) write(input->path, input->text);
    }
  }

  // Runs netsim and compares all but fingerprints. `threads`: 0: netsim's own choice.
  Kept run(std::uint32_t threads) {
    const std::string words = command(threads);
    SCOPED_TRACE("netsim" + words);
    const int status = std::system(
        ("cd " + quoted(directory_.path()) + " && " + quoted(netsim_binary()) + words + " >out.txt 2>err.txt")
            .c_str());
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    EXPECT_EQ(code, scenario_.expected.exit) << scenario_.place.to_string() << "\n"
                                             << directory_.text("err.txt");
    expect_texts();
    expect_files();
    return kept();
  }

 private:
  bool writes_results() const {
    const test::Expected& e = scenario_.expected;
    return !e.results.empty() || !e.packets.empty() || !e.summary.empty() || !e.tables.empty();
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_.path() + "/" + name) << text;
  }
  std::string command(std::uint32_t threads) const {
    std::string words;
    if (!scenario_.configuration.path.empty()) words += " --config " + quoted(scenario_.configuration.path);
    if (!scenario_.workload.path.empty()) words += " --workload " + quoted(scenario_.workload.path);
    for (const std::string& assignment : scenario_.assignments) words += " --set " + quoted(assignment);
    if (!scenario_.arguments.empty()) words += " " + scenario_.arguments;
    if (threads > 0) words += " --threads " + std::to_string(threads);
    if (writes_results()) words += " --out results";
    return words;
  }
  void expect_texts() const {
    const test::Expected& e = scenario_.expected;
    const std::string out = directory_.text("out.txt"), err = directory_.text("err.txt");
    expect(e.stdout_text, ActualValue::of(out));
    expect(e.stderr_text, ActualValue::of(err));
    expect_fields(e.json, out);
    if (e.error.empty()) return;
    expect(e.error, ActualValue::of(err));
    EXPECT_TRUE(err.starts_with("netsim: error: ")) << err;
    EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 1) << "an error is one line\n" << err;
    EXPECT_EQ(out, "") << scenario_.place.to_string();
  }
  void expect_files() const {
    const test::Expected& e = scenario_.expected;
    expect_fields(e.summary, directory_.text("results/summary.json"));
    for (const auto& [name, checks] : e.files) expect(checks, ActualValue::of(directory_.text(name)));
    for (const Check& name : e.absent) EXPECT_FALSE(directory_.has(name.text)) << name.place.to_string();
    for (const ExpectedTable& table : e.tables) {
      EXPECT_TRUE(directory_.has("results/" + table.name))
          << table.place.to_string() << ": there is no such table";
      expect_table(table, directory_.text("results/" + table.name));
    }
  }
  Kept kept() const {
    Kept kept;
    if (!writes_results()) return kept;
    kept.summary = directory_.text("results/summary.json");
    const json summary = json::parse(kept.summary, nullptr, false);
    if (summary.is_discarded()) return kept;
    kept.results = summary["fingerprint"]["results"];
    kept.packets = summary["fingerprint"]["packets"];
    return kept;
  }

  const DeclaredScenario& scenario_;
  test::Directory directory_;
};

// ---- Recording

bool recording() {
  const char* value = std::getenv("NETSIM_RECORD");
  return value != nullptr && std::string(value) == "1";
}

// Replaces the fingerprint that stands at the place of the check.
void record(const std::vector<Check>& checks, const std::string& value) {
  if (checks.empty() || value.empty()) return;
  const Place& place = checks.front().place;
  std::ifstream file(place.file);
  std::ostringstream changed;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    const auto column = static_cast<std::size_t>(place.column - 1);
    if (++number == place.line) {
      const std::size_t at = line.find(checks.front().text, column);
      ASSERT_NE(at, std::string::npos) << place.to_string();
      line.replace(at, checks.front().text.size(), value);
    }
    changed << line << "\n";
  }
  file.close();
  std::ofstream(place.file) << changed.str();
}

// ---- Tests

// Runs a scenario with each of its numbers of threads. The summary is the same for all of them.
class ScenarioTest : public ::testing::Test {
 public:
  explicit ScenarioTest(DeclaredScenario scenario) : scenario_(std::move(scenario)) {}
  void TestBody() override {
    const std::vector<std::uint32_t> threads =
        scenario_.threads.empty() ? std::vector<std::uint32_t>{0} : scenario_.threads;
    std::optional<Kept> first;
    for (const std::uint32_t number : threads) {
      const Kept kept = ScenarioRun(scenario_).run(number);
      if (!first) first = kept;
      EXPECT_EQ(kept.summary, first->summary) << "with " << number << " threads as with " << threads[0];
    }
    if (recording()) {
      record(scenario_.expected.results, first->results);
      record(scenario_.expected.packets, first->packets);
    } else {
      expect(scenario_.expected.results, ActualValue{first->results, {}, {}});
      expect(scenario_.expected.packets, ActualValue{first->packets, {}, {}});
    }
    if (HasFailure()) ADD_FAILURE() << scenario_.place.to_string() << "\nsource: " << scenario_.source;
  }

 private:
  DeclaredScenario scenario_;
};

// Stands for the scenarios of a file that cannot be read, and fails.
class UnreadableFile : public ::testing::Test {
 public:
  explicit UnreadableFile(std::string message) : message_(std::move(message)) {}
  void TestBody() override { FAIL() << message_; }

 private:
  std::string message_;
};

void register_file(const std::string& path) {
  const std::string suite = "Scenarios/" + std::filesystem::path(path).stem().string();
  try {
    for (const DeclaredScenario& scenario : test::read_share_of_scenarios(path)) {
      ::testing::RegisterTest(suite.c_str(), scenario.name.c_str(), nullptr, scenario.source.c_str(),
                              path.c_str(), scenario.place.line,
                              [scenario]() -> ScenarioTest* { return new ScenarioTest(scenario); });
    }
  } catch (const Error& error) {
    const std::string message = error.what();
    ::testing::RegisterTest((suite + "_unreadable").c_str(), "IsAScenarioFile", nullptr, nullptr,
                            path.c_str(), 1,
                            [message]() -> UnreadableFile* { return new UnreadableFile(message); });
  }
}

// Registers before main, as the tests of GoogleTest's macros do.
const bool registered = [] {
  for (const std::string& path : test::scenario_files()) register_file(path);
  return true;
}();

}  // namespace
}  // namespace netsim::declared_test
