// summary.json and manifest.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/output.h"
#include "sim/core/plugin_loader.h"
#include "sim/core/read_log.h"
#include "sim/core/units.h"
#include "sim/report/prediction.h"
#include "sim/report/results.h"
#include "sim/topology/structure.h"

namespace netsim {

// The part of a run that scripts rely on. All keys are always there; jct_s, iteration_time_s and
// tflops_per_gpu are null where a job did not get that far. The same run gives the same bytes: nothing here
// depends on the machine.
std::string summary_json(const Results& results);

// What --dry-run found out; minutes, memory and calibration are this machine's.
std::string prediction_json(const Prediction& prediction, const Structure& structure);
// What it says where there is no workload: `cluster` only.
std::string structure_json_text(const Structure& structure);

// How to repeat a run.
struct Manifest {
  std::string commit;   // that the program was built from; "": not known
  std::string command;  // the command line
  std::uint64_t seed = 0;
  Time until = kNever;                // simulated time at which it ends at the latest
  std::string configuration;          // resolved, as YAML with the origin of every value
  std::vector<ReadLog::File> inputs;  // every file that was read
  std::vector<Plugin> plugins;        // in the order of loading
  std::vector<WrittenFile> files;     // that the run wrote beside the manifest
};
std::string manifest_json(const Manifest& manifest, const Results& results);
// Of a run that has not been played: without fingerprint, outcome and time.
std::string manifest_json(const Manifest& manifest);
// Returns the files that the manifest with this text names; nothing for a text that is no manifest of netsim.
// Older versions named no files: then all output_files() are returned, without sizes.
std::optional<std::vector<WrittenFile>> files_in_manifest(const std::string& text);

}  // namespace netsim
