// Scenario files: tests that need no C++. A file of tests/scenarios/declared/ holds scenarios, each of which
// is a run of netsim and what is expected of it. docs/how-to/test.md describes the format.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/scenario_check.h"

namespace netsim::test {

// A configuration or workload: a file that is shipped, one of the scenario's own files, or the text itself.
struct ScenarioInput {
  std::string path;  // absolute, or relative to the folder of the run; empty: the run is given none
  std::string text;  // what netsim's input file `path` of the folder of the run will hold, if it is not there
};

// Named values of a run and the checks of each.
using NamedChecks = std::vector<std::pair<std::string, std::vector<Check>>>;

// Rows of a table: those whose cells are as `where` says, or all. At least one has to be there.
struct ExpectedRows {
  std::vector<std::pair<std::string, std::string>> where;
  NamedChecks cells;
  Place place;
};

struct ExpectedTable {
  std::string name;  // the file, for example flows.csv
  std::vector<Check> count;
  NamedChecks sums;  // of columns
  std::vector<ExpectedRows> rows;
  Place place;
};

struct Expected {
  int exit = 0;
  std::vector<Check> results, packets;  // fingerprints; empty or one
  // If there is any, standard error is one line that begins with "netsim: error: ", and standard output is
  // empty.
  std::vector<Check> error;
  std::vector<Check> stdout_text, stderr_text;
  NamedChecks json;     // fields of the JSON on standard output
  NamedChecks summary;  // fields of summary.json
  NamedChecks files;    // texts of files in the folder of the run
  std::vector<ExpectedTable> tables;
  std::vector<Check> absent;  // names of files that the run must not write
};

struct DeclaredScenario {
  std::string name;
  std::string source;  // where the expected values come from
  ScenarioInput configuration, workload;
  std::vector<std::string> assignments;      // for --set
  std::string arguments;                     // more words of the command line, as in a shell
  std::vector<std::uint32_t> threads;        // a run for each; empty: one run with netsim's own choice
  std::map<std::string, std::string> files;  // written into the folder of the run before it starts
  Expected expected;
  Place place;
};

// Reads a scenario file. Throws ConfigError or IoError with the place of what is wrong.
std::vector<DeclaredScenario> read_scenarios(const std::string& path);
// Reads those scenarios of a file that the size of this run has. The key `quick_share` at the top of the file
// says that the quick suite runs each n-th one; under a sanitizer, half as many run.
std::vector<DeclaredScenario> read_share_of_scenarios(const std::string& path);
// Reads scenarios from a text; `name` stands for the file in messages.
std::vector<DeclaredScenario> parse_scenarios(const std::string& text, const std::string& name);

// Returns the paths of all shipped scenario files, sorted.
std::vector<std::string> scenario_files();

}  // namespace netsim::test
