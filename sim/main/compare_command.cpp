#include "sim/main/compare_command.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "sim/core/config.h"
#include "sim/core/errors.h"
#include "sim/core/output.h"
#include "sim/core/terminal.h"
#include "sim/core/text.h"
#include "sim/main/command_words.h"
#include "sim/main/subcommands.h"
#include "sim/report/compare/run_comparison.h"
#include "sim/report/compare/set_comparison.h"

namespace netsim {
namespace {

namespace po = boost::program_options;

po::options_description compare_options(std::size_t width = kDefaultWidth) {
  const auto columns = static_cast<unsigned>(std::clamp<std::size_t>(width, 60, 120));
  po::options_description all("Options", columns, columns - 28);
  const auto text = [] { return po::value<std::string>(); };
  auto add = all.add_options();
  add("json", text()->value_name("FILE"), "write what differs to a file; - prints it instead of the screen");
  add("out", text()->value_name("DIR"), "write compare.json and compare.csv there");
  add("significance", text()->value_name("P"),
      "level of the test of differences between means, above 0 and below 1 (default 0.05)");
  add("quiet", "no screen; errors are still printed");
  add("help", "print this");
  return all;
}

double significance_of(const std::string& text) {
  Place place;
  place.file = "--significance";
  const double level = read_real(ConfigNode::scalar(text, place));
  if (level <= 0 || level >= 1)
    throw ConfigError("--significance: " + text + " was given, allowed is a number above 0 and below 1");
  return level;
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

std::vector<OptionInfo> comparison_option_infos() { return infos_of(compare_options()); }

std::string comparison_usage() { return usage_of("netsim compare DIR DIR", comparison_option_infos()); }

std::string comparison_help(std::size_t width) {
  return wrapped(
             "netsim compare: what changed between two runs, folders of runs, or sweeps, and what that did",
             0, 2, width) +
         "\n\n  " + wrapped(comparison_usage(), 2, 9, width) + "\n\n" + options_text(compare_options(width));
}

CompareOptions parse_comparison(const std::vector<std::string>& arguments) {
  const CommandWords words = parse_words({arguments.begin() + 1, arguments.end()}, compare_options(),
                                         {" of compare", allowed_options(comparison_option_infos())});
  CompareOptions options;
  options.help = words.values.count("help") != 0;
  if (options.help) return options;
  if (words.operands.size() != 2) {
    throw ConfigError("compare: " + counted(words.operands.size(), "folder") +
                      " given, two are expected: netsim compare results/a results/b");
  }
  options.a = words.operands[0];
  options.b = words.operands[1];
  options.json = text_of(words.values, "json");
  options.output = text_of(words.values, "out");
  options.quiet = words.values.count("quiet") != 0;
  if (const auto level = text_of(words.values, "significance"); !level.empty())
    options.significance = significance_of(level);
  return options;
}

int run_comparison(const std::vector<std::string>& arguments, const PrintText& print) {
  const CompareOptions options = parse_comparison(arguments);
  if (options.help) {
    print(comparison_help(line_width(stdout)));
    return static_cast<int>(ExitCode::done);
  }
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
