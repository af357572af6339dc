// `netsim convert INPUT --to FILE`: the command that writes a workload in another notation.
#pragma once

#include <string>
#include <vector>

#include "sim/main/options.h"
#include "sim/main/subcommands.h"

namespace netsim {

std::vector<OptionInfo> conversion_option_infos();
std::string conversion_usage();
// Carries out a command line that begins with convert. Throws ConfigError for a wrong one, InputError for a
// workload that the notation cannot hold, and IoError.
int run_conversion(const std::vector<std::string>& arguments, const PrintText& print);

}  // namespace netsim
