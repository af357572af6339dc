// SetComparison: what changed between two sets of runs, over the seeds of each point, as plain data, and the
// texts that are made of it. A set is a sweep of scripts/sweep.py, or a folder with an output directory for
// each run.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/text.h"
#include "sim/report/compare/run_comparison.h"
#include "sim/report/compare/stored_run.h"
#include "sim/report/compare/welch.h"

namespace netsim::compare {

// Largest probability at which a difference counts as significant, unless --significance says another one.
inline constexpr double kSignificance = 0.05;

// Observation: one run of a set.
struct Observation {
  std::string name;   // of its folder, or its key in the sweep's runs/
  Settings settings;  // for a run of a sweep those of its command line
  Settings axes;      // for a run of a sweep the cells of its axes; else empty
  Figures figures;
};

struct StoredSet {
  std::string directory;
  bool is_sweep = false;
  std::vector<std::string> axes;  // of a sweep, without that of the seeds, in the order of its table
  std::vector<Observation> runs;
  std::vector<std::string> programs;  // versions and commits of the runs, each once; empty for a sweep
  std::vector<std::string> notes;
};

// Returns whether the folder has the table of a sweep.
bool is_sweep(const std::string& directory);
// Returns whether the folder has output directories of runs.
bool is_folder_of_runs(const std::string& directory);
// Reads results.csv and the command lines in runs/. Throws as read_run() does.
StoredSet read_sweep(const std::string& directory);
// Reads the runs in the folders of a directory, or one run as a set of one. Folders in which no run has ended
// are left out with a note.
StoredSet read_runs(const std::string& directory);

// SpreadDifference: a figure over the seeds of a point in both sets.
struct SpreadDifference {
  std::string name;
  Spread a, b;
  std::optional<double> probability;  // by welch_test()

  // Returns the means.
  Difference means() const { return {name, a.mean, b.mean}; }
  bool is_significant(double level) const { return probability && *probability <= level; }
};

// ComparedPoint: the values of the axes, and all figures that both sets have there.
struct ComparedPoint {
  std::vector<std::string> values;
  std::vector<SpreadDifference> figures;

  // Returns the figure of a name, or nullptr.
  const SpreadDifference* find(const std::string& name) const;
};

struct SetComparison {
  std::string a, b;  // the directories
  double significance = kSignificance;
  std::vector<std::string> axes;
  std::vector<SettingChange>
      settings;                       // those that are the same in all runs of a set, and differ between them
  std::vector<ComparedPoint> points;  // in the order of the first set
  std::vector<std::string> only_a, only_b;  // points that only one set has
  std::vector<std::string> notes;
};

// Values of workloads' descriptions count if all runs of both sets have them.
SetComparison compare_sets(StoredSet a, StoredSet b, double significance = kSignificance);

// Returns the figures that the screen shows, the most important one first.
std::vector<std::string> leading_figures(const SetComparison& comparison);
// Returns the text of the screen, in lines of at most `width` columns.
std::string render_comparison(const SetComparison& comparison, std::size_t width = kDefaultWidth);
// Return the content of compare.json and compare.csv.
std::string comparison_json(const SetComparison& comparison);
std::string comparison_csv(const SetComparison& comparison);

}  // namespace netsim::compare
