#include "sim/main/compare_command.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <utility>

#include "sim/core/config.h"
#include "sim/core/errors.h"
#include "sim/core/output.h"
#include "sim/core/terminal.h"
#include "sim/core/text.h"
#include "sim/report/compare/run_comparison.h"
#include "sim/report/compare/set_comparison.h"

namespace netsim {
namespace {

const std::vector<std::string> kCompareOptions{"json", "out", "significance", "quiet"};

double significance_of(const std::string& text) {
  Place place;
  place.file = "--significance";
  const double level = read_real(ConfigNode::scalar(text, place));
  if (level <= 0 || level >= 1)
    throw ConfigError("--significance: " + text + " was given, allowed is a number above 0 and below 1");
  return level;
}

void set_compare_option(const std::string& name, const std::string& value, CompareOptions& options) {
  if (value.empty()) throw ConfigError("--" + name + ": the value is empty");
  if (name == "json") options.json = value;
  if (name == "out") options.output = value;
  if (name == "significance") options.significance = significance_of(value);
}

// Reads the option at `at` and moves `at` to its last word.
void read_compare_option(const std::vector<std::string>& arguments, std::size_t& at,
                         CompareOptions& options) {
  const std::string word = arguments[at].substr(2);
  const std::size_t equals = std::min(word.find('='), word.size());
  const std::string name = word.substr(0, equals);
  if (std::find(kCompareOptions.begin(), kCompareOptions.end(), name) == kCompareOptions.end()) {
    throw ConfigError("unknown option '" + arguments[at] + "' of compare" +
                      did_you_mean(name, kCompareOptions) +
                      " (allowed: --json FILE, --out DIR, --significance P, --quiet)");
  }
  if (name == "quiet") {
    if (equals < word.size()) throw ConfigError("--quiet takes no value");
    options.quiet = true;
  } else if (equals < word.size()) {
    set_compare_option(name, word.substr(equals + 1), options);
  } else if (at + 1 < arguments.size()) {
    set_compare_option(name, arguments[++at], options);
  } else {
    throw ConfigError("--" + name + ": the value is missing");
  }
}

// ComparisonTexts: the three forms of a comparison.
struct ComparisonTexts {
  std::string screen, json, csv;
};

template <class Comparison>
ComparisonTexts texts_of_comparison(const Comparison& comparison) {
  return {compare::render_comparison(comparison, line_width(stdout)), compare::comparison_json(comparison),
          compare::comparison_csv(comparison)};
}

enum class FolderKind { run, runs, sweep };

FolderKind kind_of_folder(const std::string& folder) {
  if (compare::is_run(folder)) return FolderKind::run;
  if (compare::is_sweep(folder)) return FolderKind::sweep;
  if (compare::is_folder_of_runs(folder)) return FolderKind::runs;
  throw IoError(
      folder +
      ": holds no results: neither summary.json of a run that has ended, nor results.csv of a sweep, "
      "nor folders of runs");
}

ComparisonTexts compared_texts(const CompareOptions& options) {
  const FolderKind a = kind_of_folder(options.a), b = kind_of_folder(options.b);
  if (a == FolderKind::run && b == FolderKind::run)
    return texts_of_comparison(
        compare::compare_runs(compare::read_run(options.a), compare::read_run(options.b)));
  if ((a == FolderKind::sweep) != (b == FolderKind::sweep)) {
    throw ConfigError((a == FolderKind::sweep ? options.a : options.b) +
                      " is a sweep, and the other folder is none: name two sweeps, or two runs");
  }
  const auto read = a == FolderKind::sweep ? compare::read_sweep : compare::read_runs;
  return texts_of_comparison(compare::compare_sets(read(options.a), read(options.b), options.significance));
}

void write_json_file(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

// Returns the other files of the comparison whose compare.json has this text, or nothing for another text.
// compare.json is written last, so its presence means that they are complete.
std::optional<std::vector<WrittenFile>> files_of_comparison(const std::string& text) {
  if (text.find("\"compared\": ") == std::string::npos) return std::nullopt;
  return std::vector<WrittenFile>{{"compare.csv", std::nullopt}};
}

void write_comparison(const std::string& path, const ComparisonTexts& texts) {
  const OutputDirectory directory(path,
                                  {{"compare.csv", "compare.json"}, "compare.json", files_of_comparison});
  directory.clear();
  OutputFile csv(directory, "compare.csv"), json(directory, "compare.json");
  csv.write(texts.csv);
  json.write(texts.json);
  json.commit();
  csv.commit();
}

}  // namespace

bool is_comparison(const std::vector<std::string>& arguments) {
  return !arguments.empty() && arguments.front() == "compare";
}

CompareOptions parse_comparison(const std::vector<std::string>& arguments) {
  CompareOptions options;
  std::vector<std::string> folders;
  for (std::size_t at = 1; at < arguments.size(); ++at) {
    if (arguments[at].starts_with("--")) {
      read_compare_option(arguments, at, options);
    } else {
      folders.push_back(arguments[at]);
    }
  }
  if (folders.size() != 2) {
    throw ConfigError("compare: " + counted(folders.size(), "folder") +
                      " given, two are expected: netsim compare results/a results/b");
  }
  options.a = folders[0];
  options.b = folders[1];
  return options;
}

int run_comparison(const std::vector<std::string>& arguments,
                   const std::function<void(const std::string&)>& print) {
  const CompareOptions options = parse_comparison(arguments);
  const ComparisonTexts texts = compared_texts(options);
  if (!options.output.empty()) write_comparison(options.output, texts);
  if (options.json == "-") {
    print(texts.json);
  } else {
    if (!options.json.empty()) write_json_file(options.json, texts.json);
    if (!options.quiet) print(texts.screen);
  }
  return static_cast<int>(ExitCode::done);
}

}  // namespace netsim
