#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "sim/core/text.h"
#include "sim/report/compare/set_comparison.h"
#include "sim/report/compare/settings.h"
#include "sim/report/compare/stored_files.h"

namespace netsim::compare {
namespace {

const std::string kSweepTable = "results.csv";
const std::string kDone = "done";  // to_string(Outcome::done)
// Columns of the table of a sweep that follow the axes. Figures come behind `message`.
const std::vector<std::string> kSweepColumns{"run", "outcome", "message"};

// Returns the names of the folders in a directory, sorted.
std::vector<std::string> folders_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    std::error_code ignored;
    if (entry.is_directory(ignored)) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Returns the name of a workload. A sweep writes workloads under the hash of their content. That name is the
// same in every folder, so the folder is left out.
std::string workload_name(const std::string& path) {
  const std::filesystem::path file(path);
  const bool is_hash = file.stem().string().size() == 16 &&
                       file.stem().string().find_first_not_of("0123456789abcdef") == std::string::npos;
  return is_hash ? file.filename().string() : path;
}

// Returns the settings on the command line of a run of a sweep. They are none if its record has gone.
Settings arguments_of(const std::string& directory, const std::string& key) {
  const std::string record = "runs/" + key + ".json";
  if (!has_file(directory, record)) return {};
  const StoredValue value = read_json(path_in(directory, record));
  std::vector<std::string> words;
  for (const StoredValue& word : value.at("arguments").list()) words.push_back(word.text());
  Settings settings;
  for (const char* option : {"config", "workload", "until", "seed"}) {
    for (const std::string& each : values_of(words, std::string("--") + option)) settings[option] = each;
  }
  if (const auto workload = settings.find("workload"); workload != settings.end())
    workload->second = workload_name(workload->second);
  for (const std::string& path : values_of(words, "--plugin")) settings["plugin " + path] = "loaded";
  for (const std::string& assignment : values_of(words, "--set")) {
    const std::size_t equals = std::min(assignment.find('='), assignment.size());
    settings[assignment.substr(0, equals)] = assignment.substr(std::min(equals + 1, assignment.size()));
  }
  return settings;
}

// Reads a row of the table of a sweep.
Observation observation_of(const StoredTable& table, std::size_t row, std::size_t run, std::size_t message) {
  const std::vector<std::string>& cells = table.rows[row];
  Observation result;
  result.name = cells[run];
  for (std::size_t i = 0; i < run; ++i) result.axes[table.header[i]] = cells[i];
  for (std::size_t i = message + 1; i < cells.size(); ++i) {
    const bool is_figure =
        !table.header[i].starts_with("collectives.") && !table.header[i].starts_with("fingerprint.");
    if (!is_figure) continue;
    if (const std::optional<double> value = number_of(cells[i]); value)
      result.figures[table.header[i]] = *value;
  }
  return result;
}

// Returns whether an axis is that of the seeds: its cells are the seeds of the command lines.
bool is_axis_of_seeds(const std::string& axis, const std::vector<Observation>& runs) {
  if (axis == "seed") return true;
  std::set<std::string> seeds;
  for (const Observation& run : runs) {
    const auto seed = run.settings.find("seed");
    if (seed == run.settings.end() || seed->second != run.axes.at(axis)) return false;
    seeds.insert(seed->second);
  }
  return seeds.size() > 1;
}

void add_run(const StoredRun& run, const std::string& name, StoredSet& set) {
  set.runs.push_back({name, settings_of(run, true), {}, run.figures});
  if (run.outcome != kDone)
    set.notes.push_back(run.directory + " ended as '" + run.outcome + "': its times are totals so far.");
  const std::string program = run.version + (run.commit.empty() ? "" : " (commit " + run.commit + ")");
  if (std::find(set.programs.begin(), set.programs.end(), program) == set.programs.end())
    set.programs.push_back(program);
}

}  // namespace

bool is_sweep(const std::string& directory) { return has_file(directory, kSweepTable); }

bool is_folder_of_runs(const std::string& directory) {
  const std::vector<std::string> folders = folders_in(directory);
  return std::any_of(folders.begin(), folders.end(),
                     [&](const std::string& name) { return is_run(path_in(directory, name)); });
}

StoredSet read_sweep(const std::string& directory) {
  const StoredTable table = read_table(path_in(directory, kSweepTable));
  const std::size_t run = table.column(kSweepColumns[0]), outcome = table.column(kSweepColumns[1]),
                    message = table.column(kSweepColumns[2]);
  StoredSet set;
  set.directory = directory;
  set.is_sweep = true;
  std::size_t failed = 0, cut = 0;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    if (table.rows[row][outcome] == "failed") {
      ++failed;
      continue;
    }
    if (table.rows[row][outcome] != kDone) ++cut;
    set.runs.push_back(observation_of(table, row, run, message));
    set.runs.back().settings = arguments_of(directory, set.runs.back().name);
  }
  for (std::size_t i = 0; i < run; ++i) {
    if (!is_axis_of_seeds(table.header[i], set.runs)) set.axes.push_back(table.header[i]);
  }
  if (failed > 0)
    set.notes.push_back(directory + " is compared without " + counted(failed, "run") + " that failed.");
  if (cut > 0)
    set.notes.push_back(
        fmt::format("{}: runs that did not end: {}. Their times are totals so far.", directory, cut));
  return set;
}

StoredSet read_runs(const std::string& directory) {
  StoredSet set;
  set.directory = directory;
  if (is_run(directory)) {
    add_run(read_run(directory), "", set);
    return set;
  }
  for (const std::string& name : folders_in(directory)) {
    const std::string folder = path_in(directory, name);
    if (is_run(folder)) {
      add_run(read_run(folder), name, set);
    } else if (has_file(folder, "manifest.json")) {
      set.notes.push_back(folder + " is left out, because no run has ended there.");
    }
  }
  return set;
}

}  // namespace netsim::compare
