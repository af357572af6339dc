// StoredRun: the results of a run as they lie in its output directory, as plain data for `netsim compare`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace netsim::compare {

// Settings: the inputs of a run by name, in the words of the configuration: "network.switch.classes" -> "1".
// The names "seed", "until", "workload", "workload content", "plugin NAME" and "file NAME" stand for the
// rest.
using Settings = std::map<std::string, std::string>;
// Figures: the numbers of a summary by path: "network.drops", "jobs.0.jct_s", "flows.by_size.30000.count".
// Those of collectives are left out.
using Figures = std::map<std::string, double>;

// StoredJob: the times of a job in seconds. Compute, exposed and idle times are means of a rank and
// iteration.
struct StoredJob {
  std::string name;
  std::uint64_t warm_up = 0;  // iterations that means leave out
  std::optional<double> jct_s, iteration_time_s;
  std::optional<double> iteration_p99_s;  // empty without iterations.csv
  std::optional<double> exposed_s;
  // The parts of the time of a mean rank: "compute", "exposed tp" and so on, "idle".
  std::vector<std::pair<std::string, double>> parts;
};

// StoredCollective: all collectives of one kind, number of ranks, size and own algorithm.
struct StoredCollective {
  std::string name;       // "all_reduce, 8 ranks, 1.05 MB", with the workload's name of the algorithm
  std::string algorithm;  // "ring Simple, 24 channels"; several are joined by " + "
  std::uint64_t count = 0;
  double time_s = 0, busbw_GBps = 0;  // means
};

struct StoredLink {
  std::string name, kind;  // as in links.csv
  double utilisation = 0, wire_bytes = 0, max_queue_bytes = 0;
};

struct StoredRun {
  std::string directory;
  std::string version, commit;  // of the program; the commit is "" for a build outside git
  std::string outcome;          // to_string(Outcome)
  std::string results;          // fingerprint.results
  Settings settings;
  // The values of the workload's description, "workload.model.layers". Empty unless the workload is one YAML
  // file that still has the content that the run has read.
  std::optional<Settings> workload;
  Figures figures;
  std::vector<StoredJob> jobs;
  std::vector<StoredCollective> collectives;
  std::optional<std::vector<StoredLink>> links;  // empty without links.csv
};

// Returns whether a run has ended in the directory.
bool is_run(const std::string& directory);
// Reads summary.json, manifest.json, iterations.csv and links.csv. Throws IoError if one of the first two
// cannot be read. Throws InputError with the place where a file is torn or is not that of a run.
StoredRun read_run(const std::string& directory);

// Returns the settings of a run, with those of the workload's description if `with_workload`.
Settings settings_of(const StoredRun& run, bool with_workload);

}  // namespace netsim::compare
