#include "sim/main/subcommands.h"

#include "sim/core/text.h"
#include "sim/main/compare_command.h"
#include "sim/main/convert_command.h"
#include "sim/main/describe_trace_command.h"

namespace netsim {

std::span<const Subcommand> subcommands() {
  static constexpr Subcommand kSubcommands[] = {
      {"describe-trace", "DESCRIBING TRACES",
       "netsim describe-trace: what a trace or another workload has, and how long it takes where "
       "communication takes no time",
       trace_option_infos, trace_usage, run_trace_description},
      {"convert", "CONVERTING WORKLOADS",
       "netsim convert: write any workload that netsim reads as its own .pb, as Chakra traces or in GOAL",
       conversion_option_infos, conversion_usage, run_conversion},
      {"compare", "COMPARING RUNS",
       "netsim compare: what changed between two runs, folders of runs, or sweeps, and what that did",
       comparison_option_infos, comparison_usage, run_comparison, true}};
  return kSubcommands;
}

const Subcommand* find_subcommand(const std::vector<std::string>& arguments) {
  for (const Subcommand& command : subcommands()) {
    if (!arguments.empty() && arguments.front() == command.name) return &command;
  }
  return nullptr;
}

std::string usage_of(const std::string& operands, const std::vector<OptionInfo>& options) {
  std::string usage = operands;
  for (const OptionInfo& option : options)
    usage += " [" + form_of(option) + "]" + (option.repeated ? "..." : "");
  return usage;
}

std::string allowed_options(const std::vector<OptionInfo>& options) {
  std::string allowed;
  for (const OptionInfo& option : options) append_item(allowed, form_of(option));
  return "allowed: " + allowed;
}

}  // namespace netsim
