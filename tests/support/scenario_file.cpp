#include "tests/support/scenario_file.h"

#include <algorithm>
#include <filesystem>

#include "tests/support/paths.h"
#include "tests/support/test_size.h"

namespace netsim::test {
namespace {

// Functions, because runners read scenario files before constants of this file are made.
std::vector<std::string> scenario_keys() {
  return {"source", "configuration", "workload", "set", "arguments", "threads", "files", "expect"};
}
std::vector<std::string> expect_keys() {
  return {"exit", "results", "packets", "error",  "stdout", "stderr",
          "json", "summary", "files",   "tables", "absent"};
}

void need_map(const ConfigNode& node, const std::string& what) {
  if (!node.is_map()) node.fail("a map of " + what + " is expected here");
}

// Returns the texts of a scalar or of a sequence of scalars.
std::vector<std::string> read_texts(const ConfigNode& node) {
  if (!node.is_sequence()) return {read_text(node)};
  std::vector<std::string> texts;
  for (const ConfigNode& item : node.items()) texts.push_back(read_text(item));
  return texts;
}

NamedChecks read_named_checks(const ConfigNode& node, Check::Kind plain) {
  need_map(node, "names and expected values");
  NamedChecks all;
  for (const auto& [name, value] : node.entries()) all.emplace_back(name, read_checks(value, plain));
  return all;
}

ExpectedRows read_rows(const ConfigNode& node) {
  need_map(node, "columns and expected values");
  ExpectedRows rows{
      .where = {}, .cells = read_named_checks(node.without("where"), Check::Kind::is), .place = node.place()};
  for (const auto& [column, value] : section_of(node, "where").entries())
    rows.where.emplace_back(column, read_text(value));
  if (rows.cells.empty()) node.fail("no cell is expected here");
  return rows;
}

ExpectedTable read_table(const std::string& name, const ConfigNode& node) {
  need_map(node, "count, sums and rows");
  node.allow_keys({"count", "sums", "rows"});
  ExpectedTable table{.name = name, .count = {}, .sums = {}, .rows = {}, .place = node.place()};
  if (const ConfigNode* count = node.find("count")) table.count = read_checks(*count, Check::Kind::count);
  if (const ConfigNode* sums = node.find("sums")) table.sums = read_named_checks(*sums, Check::Kind::is);
  const ConfigNode& rows = section_of(node, "rows");
  if (!rows.is_null() && !rows.is_sequence()) rows.fail("a sequence of rows is expected here");
  for (const ConfigNode& row : rows.items()) table.rows.push_back(read_rows(row));
  return table;
}

Expected read_expected(const ConfigNode& node) {
  need_map(node, "expected values");
  node.allow_keys(expect_keys());
  Expected expected;
  const auto checks = [&](const char* key, Check::Kind plain, std::vector<Check>& all) {
    if (const ConfigNode* value = node.find(key)) all = read_checks(*value, plain);
  };
  const auto named = [&](const char* key, Check::Kind plain, NamedChecks& all) {
    if (const ConfigNode* value = node.find(key)) all = read_named_checks(*value, plain);
  };
  if (const ConfigNode* exit = node.find("exit")) expected.exit = static_cast<int>(read_integer(*exit));
  checks("results", Check::Kind::is, expected.results);
  checks("packets", Check::Kind::is, expected.packets);
  checks("error", Check::Kind::contains, expected.error);
  checks("stdout", Check::Kind::contains, expected.stdout_text);
  checks("stderr", Check::Kind::contains, expected.stderr_text);
  checks("absent", Check::Kind::is, expected.absent);
  named("json", Check::Kind::is, expected.json);
  named("summary", Check::Kind::is, expected.summary);
  named("files", Check::Kind::contains, expected.files);
  for (const auto& [name, table] : section_of(node, "tables").entries())
    expected.tables.push_back(read_table(name, table));
  if (!expected.error.empty() && expected.exit == 0)
    node.fail("a run that ends with an error needs its 'exit' code");
  return expected;
}

// Reads a configuration or workload. A text of several lines is the input itself, written to the file `name`.
ScenarioInput read_input(const ConfigNode& node, const char* name,
                         const std::map<std::string, std::string>& files) {
  if (node.is_null()) return {};
  const std::string text = read_text(node);
  if (text.find('\n') != std::string::npos) return {name, text};
  if (files.contains(text)) return {text, ""};
  const std::string shipped = source_directory() + "/configs/" + text;
  if (!std::filesystem::exists(shipped)) node.fail("'" + text + "' is neither below configs/ nor in 'files'");
  return {shipped, ""};
}

std::string read_source(const ConfigNode& scenario) {
  const ConfigNode* source = scenario.find("source");
  if (source == nullptr) scenario.fail("'source' is missing: say where the expected values come from");
  const std::string text = read_text(*source);
  if (text.empty()) source->fail("say where the expected values come from");
  return text;
}

DeclaredScenario read_scenario(const std::string& name, const ConfigNode& node, const Place& place) {
  DeclaredScenario scenario;
  scenario.name = name;
  scenario.place = place;
  scenario.source = read_source(node);
  for (const auto& [file, text] : section_of(node, "files").entries()) scenario.files[file] = read_text(text);
  scenario.configuration =
      read_input(section_of(node, "configuration"), "configuration.yaml", scenario.files);
  scenario.workload = read_input(section_of(node, "workload"), "workload.yaml", scenario.files);
  if (const ConfigNode* set = node.find("set")) scenario.assignments = read_texts(*set);
  if (const ConfigNode* arguments = node.find("arguments")) scenario.arguments = read_text(*arguments);
  const ConfigNode& threads = section_of(node, "threads");
  if (threads.is_scalar()) scenario.threads = {static_cast<std::uint32_t>(read_integer(threads))};
  for (const ConfigNode& item : threads.items())
    scenario.threads.push_back(static_cast<std::uint32_t>(read_integer(item)));
  const ConfigNode* expect = node.find("expect");
  if (expect == nullptr) node.fail("'expect' is missing");
  scenario.expected = read_expected(*expect);
  return scenario;
}

// Returns whether values are those of an error that the others do not expect.
bool is_other_exit(const ConfigNode& own, const ConfigNode& others) {
  const auto exit_of = [](const ConfigNode& values) {
    const ConfigNode* exit = values.find("exit");
    return exit == nullptr ? std::int64_t{0} : read_integer(*exit);
  };
  return own.find("exit") != nullptr && exit_of(own) != exit_of(others);
}

// Returns the scenario with those entries of `every` that it does not have itself. `expect` is completed in
// the same way, unless its `exit` is another one.
ConfigNode completed(const ConfigNode& scenario, const ConfigNode& every) {
  ConfigNode result = scenario;
  for (const auto& [key, value] : every.entries()) {
    const ConfigNode* own = scenario.find(key);
    if (own == nullptr) {
      result.at_or_add(key) = value;
    } else if (own->is_map() && value.is_map() && !(key == "expect" && is_other_exit(*own, value))) {
      result.at_or_add(key) = completed(*own, value);
    }
  }
  return result;
}

bool is_name(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

[[noreturn]] void refuse_name(const std::string& name, const ConfigNode& where) {
  where.fail("'" + name + "' was given as a name; allowed are letters, digits and _");
}

// Appends a scenario, or one for each of its cases: the case with those entries of the scenario that it does
// not have itself.
void add_scenarios(const std::string& name, const ConfigNode& node,
                   std::vector<DeclaredScenario>& scenarios) {
  const ConfigNode* cases = node.find("cases");
  if (cases == nullptr) {
    scenarios.push_back(read_scenario(name, node, node.key_place()));
    return;
  }
  need_map(*cases, "names and cases");
  for (const auto& [suffix, one] : cases->entries()) {
    if (!is_name(suffix)) refuse_name(suffix, one);
    need_map(one, "the keys of a scenario");
    one.allow_keys(scenario_keys());
    scenarios.push_back(
        read_scenario(name + "_" + suffix, completed(one, node.without("cases")), one.key_place()));
  }
}

std::vector<DeclaredScenario> scenarios_of(const ConfigNode& root) {
  root.allow_keys({"every", "quick_share", "scenarios"});
  const ConfigNode &every = section_of(root, "every"), &all = section_of(root, "scenarios");
  every.allow_keys(scenario_keys());
  if (!all.is_map()) root.fail("'scenarios' is missing: a map of names and scenarios");
  std::vector<DeclaredScenario> scenarios;
  for (const auto& [name, node] : all.entries()) {
    if (!is_name(name)) refuse_name(name, node);
    need_map(node, "the keys of a scenario");
    std::vector<std::string> keys = scenario_keys();
    keys.push_back("cases");
    node.allow_keys(keys);
    add_scenarios(name, completed(node, every), scenarios);
  }
  return scenarios;
}

}  // namespace

std::vector<DeclaredScenario> read_scenarios(const std::string& path) {
  return scenarios_of(load_config(path));
}

std::vector<DeclaredScenario> read_share_of_scenarios(const std::string& path) {
  const ConfigNode root = load_config(path);
  const ConfigNode* share = root.find("quick_share");
  const auto each =
      static_cast<std::size_t>(share == nullptr ? 1 : std::max(read_integer(*share), std::int64_t{1}));
  return share_of(scenarios_of(root), each, 2 * each);
}

std::vector<DeclaredScenario> parse_scenarios(const std::string& text, const std::string& name) {
  return scenarios_of(parse_config(text, name));
}

std::vector<std::string> scenario_files() {
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(source_directory() + "/tests/scenarios/declared")) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace netsim::test
