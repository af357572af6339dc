// `netsim compare A B`: the command that says what changed between two runs, or two sets of runs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/main/options.h"
#include "sim/main/subcommands.h"

namespace netsim {

// CompareOptions: the command line behind `compare`.
struct CompareOptions {
  std::string a, b;            // folders: of a run, of a sweep, or with the folders of several runs
  std::string json;            // --json: the file for compare.json; "-" for stdout, "" for none
  std::string output;          // --out: the directory for compare.json and compare.csv; "" for none
  double significance = 0.05;  // --significance: above 0, below 1
  bool quiet = false;
  bool help = false;  // --help: nothing else is read
};

// Reads the command line from `compare` on. Throws ConfigError for an unknown or repeated option, a wrong
// value, or a number of folders other than two.
CompareOptions parse_comparison(const std::vector<std::string>& arguments);

// Returns the options of `netsim compare`, in the order of its usage.
std::vector<OptionInfo> comparison_option_infos();
// Returns the line of --help: "netsim compare DIR DIR [--json FILE] ...".
std::string comparison_usage();
// Returns the text of `netsim compare --help`.
std::string comparison_help(std::size_t width);

// Compares the two folders, writes the files, hands what belongs on stdout to `print`, and returns the exit
// code. That is 0 whatever differs. Throws IoError for a folder without results, and InputError for a torn
// file.
int run_comparison(const std::vector<std::string>& arguments, const PrintText& print);

}  // namespace netsim
