// RunComparison: what changed between two runs, as plain data, and the texts that are made of it. A
// difference is the value of the second run less that of the first one.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/text.h"
#include "sim/report/compare/stored_run.h"

namespace netsim::compare {

// Relative change of a figure from which it is reported.
inline constexpr double kLeastChange = 0.01;

// SettingChange: an input that differs. A side is empty where it has no such input.
struct SettingChange {
  std::string name;
  std::optional<std::string> a, b;
};
// Returns the settings that differ, in the order of their names.
std::vector<SettingChange> setting_changes(const Settings& a, const Settings& b);

// Difference: a figure of both sides. A side is empty where it has no such figure.
struct Difference {
  std::string name;
  std::optional<double> a, b;

  // Returns b - a, or nothing where a side is empty.
  std::optional<double> difference() const;
  // Returns (b - a) / |a|, or nothing where that is not defined. It is 0 where both are 0.
  std::optional<double> change() const;
  // Returns whether the sides differ by more than kLeastChange, or only one has the figure.
  bool is_notable() const;
};

// PartDifference: a part of the time of a mean rank, in seconds and as a share of all parts.
struct PartDifference {
  Difference time;
  double share_a = 0, share_b = 0;
};

struct JobDifference {
  std::string name;               // "one -> other" where a run's only job has another name
  std::vector<Difference> times;  // jct_s, iteration_time_s, iteration_p99_s, exposed_communication_s
  std::vector<PartDifference> parts;
  bool computes = true;  // false: a job of traffic only in both runs
};

// CollectiveDifference: collectives of one kind and size that took another algorithm, or whose bandwidth
// changed by more than kLeastChange.
struct CollectiveDifference {
  std::string name;
  std::string algorithm_a, algorithm_b;
  Difference busbw_GBps, time_s;
};

struct LinkDifference {
  std::string name, kind;
  Difference utilisation, wire_bytes, max_queue_bytes;
};

struct RunComparison {
  std::string a, b;           // the directories
  bool same_results = false;  // the fingerprints of the results are equal
  std::vector<SettingChange> settings;
  std::vector<JobDifference> jobs;
  std::vector<Difference> figures;  // those that changed by more than kLeastChange, without the times of jobs
  std::vector<CollectiveDifference> collectives;
  std::vector<LinkDifference> links;  // those that changed; the largest change of utilisation first
  std::vector<std::string> notes;
};

RunComparison compare_runs(const StoredRun& a, const StoredRun& b);

// Returns the text of the screen, in lines of at most `width` columns.
std::string render_comparison(const RunComparison& comparison, std::size_t width = kDefaultWidth);
// Return the content of compare.json and compare.csv.
std::string comparison_json(const RunComparison& comparison);
std::string comparison_csv(const RunComparison& comparison);

// Returns a note if the programs of the two sides are of different versions or commits, else "".
std::string version_note(const StoredRun& a, const StoredRun& b);

}  // namespace netsim::compare
