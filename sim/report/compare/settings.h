// The inputs of a run as settings, from its manifest.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/report/compare/stored_files.h"
#include "sim/report/compare/stored_run.h"

namespace netsim::compare {

// Returns the words of a command line as quote_command() writes it.
std::vector<std::string> words_of(const std::string& command);
// Returns the values that an option has on a command line: "--set a=1 --set=b=2" has two.
std::vector<std::string> values_of(const std::vector<std::string>& words, const std::string& option);

// Returns the settings that a manifest names, without the values of the workload's description.
Settings manifest_settings(const StoredValue& manifest);
// Returns the values of the workload's description, with those of --set laid over it, as StoredRun::workload
// says.
std::optional<Settings> workload_settings(const StoredValue& manifest);

}  // namespace netsim::compare
