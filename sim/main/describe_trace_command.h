// `netsim describe-trace FILE`: the command that says what a workload has, and how long it takes where
// communication takes no time.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/main/options.h"
#include "sim/main/subcommands.h"
#include "sim/workload/convert/workload_facts.h"

namespace netsim {

std::vector<OptionInfo> trace_option_infos();
std::string trace_usage();

// Returns the text on the screen, in lines of at most `width` columns, and the JSON form.
std::string render_facts(const WorkloadFacts& facts, std::size_t width);
std::string facts_json(const WorkloadFacts& facts);

// Carries out a command line that begins with describe-trace. Throws InputError for a workload that cannot be
// read.
int run_trace_description(const std::vector<std::string>& arguments, const PrintText& print);

}  // namespace netsim
