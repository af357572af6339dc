// The files summary.json and manifest.json.
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

// Returns summary.json, the part of the results that scripts rely on. All keys are always present but those
// of what the run does not have (`aggregation`, `faults`, `scheduling`, `waiting`). jct_s, iteration_time_s
// and tflops_per_gpu are null if a job did not get that far. The same run gives the same bytes: nothing
// depends on the machine.
std::string summary_json(const Results& results);

// Returns the results of --dry-run. Minutes, memory and calibration depend on this machine.
std::string prediction_json(const Prediction& prediction, const Structure& structure);
// Returns the results of --dry-run without a workload: `cluster` only.
std::string structure_json_text(const Structure& structure);

// Manifest: the information needed to repeat a run.
struct Manifest {
  std::string commit;   // commit that the program was built from; "": unknown
  std::string command;  // the command line
  std::uint64_t seed = 0;
  Time until = kNever;                // simulated time at which the run ends at the latest
  std::string configuration;          // resolved, as YAML with the origin of every value
  std::vector<ReadLog::File> inputs;  // every file that was read
  std::vector<Plugin> plugins;        // in the order of loading
  std::vector<WrittenFile> files;     // files that the run wrote beside the manifest
};
std::string manifest_json(const Manifest& manifest, const Results& results);
// Returns the manifest of a run that was not simulated, or of several runs (--worth). It has no fingerprint,
// outcome and time.
std::string manifest_json(const Manifest& manifest);
// Returns the files that the manifest with this text names, or nothing if the text is no manifest of netsim.
// Manifests of older versions name no files; then all output_files() are returned, without sizes.
std::optional<std::vector<WrittenFile>> files_in_manifest(const std::string& text);

}  // namespace netsim
