#include "sim/main/convert_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "sim/configuration/load_run.h"
#include "sim/core/config.h"
#include "sim/core/errors.h"
#include "sim/core/terminal.h"
#include "sim/core/text.h"
#include "sim/main/command_words.h"
#include "sim/main/model_times.h"
#include "sim/simulation/system.h"
#include "sim/workload/convert/convert.h"
#include "sim/workload/workload.h"

namespace netsim {
namespace {

boost::program_options::options_description conversion_options(std::size_t width = kDefaultWidth) {
  namespace po = boost::program_options;
  const auto columns = static_cast<unsigned>(std::clamp<std::size_t>(width, 60, 120));
  po::options_description all("Options", columns, columns - 28);
  const auto text = [] { return po::value<std::string>(); };
  const auto texts = [] { return po::value<std::vector<std::string>>()->composing(); };
  auto add = all.add_options();
  add("to", text()->value_name("FILE"),
      "file to write: X.pb; X.et for Chakra, which becomes X.0.et, X.1.et, ... and X.json; X.goal; X.bin for "
      "GOAL's binary form");
  add("config", text()->value_name("C.yaml"),
      "cluster whose section collectives tells the messages of each communication in GOAL; rank r is on GPU "
      "r");
  add("algorithm", texts()->value_name("KIND=PLAN"),
      "algorithm that replaces collectives of this kind in GOAL, e.g. all_reduce=ring; may be repeated "
      "(default: that of netsim)");
  add("gpu", text()->value_name("MODEL"),
      "compute model that tells the times of computations for GOAL, e.g. h100_sxm (--list compute_model)");
  add("set", texts()->value_name("KEY=VALUE"),
      "overlay one value of the workload's description; may be repeated");
  add("quiet", "print nothing");
  add("help", "print this");
  return all;
}

std::vector<std::string> texts_of(const CommandWords& words, const char* name) {
  if (words.values.count(name) == 0) return {};
  return words.values[name].as<std::vector<std::string>>();
}

std::map<std::string, std::string> algorithms_of(const std::vector<std::string>& given) {
  std::map<std::string, std::string> algorithms;
  for (const std::string& choice : given) {
    const std::size_t equals = choice.find('=');
    const std::string kind = choice.substr(0, equals);
    std::string kinds;
    bool known = false;
    for (const CollectiveKindInfo& info : kCollectiveKinds) {
      known = known || kind == info.name;
      append_item(kinds, info.name);
    }
    if (equals == std::string::npos || !known)
      throw ConfigError("--algorithm: '" + choice + "' was given; allowed is KIND=PLAN with a kind of " +
                        kinds);
    if (!algorithms.try_emplace(kind, choice.substr(equals + 1)).second)
      throw ConfigError("--algorithm: " + kind + " was given twice");
  }
  return algorithms;
}

// Returns the system that --config describes, on which the workload must have room.
std::unique_ptr<System> system_of(const ConfigNode& config, std::uint32_t ranks) {
  auto system = std::make_unique<System>(config, 1, 1, nullptr);
  const std::size_t gpus = system->cluster().gpus.size();
  if (ranks > gpus)
    throw ConfigError(fmt::format("--config: the workload has {}, and the cluster {}", counted(ranks, "rank"),
                                  counted(gpus, "GPU")));
  return system;
}

void convert(const CommandWords& words, const PrintText& print) {
  if (words.operands.empty())
    throw ConfigError("convert: the workload is missing: netsim convert trace.0.et --to trace.pb");
  const std::string target = text_of(words.values, "to");
  if (target.empty()) throw ConfigError("convert: --to is missing: the file to write, e.g. --to trace.pb");
  ConversionRules rules;
  rules.algorithms = algorithms_of(texts_of(words, "algorithm"));
  rules.duration = ModelTimes(text_of(words.values, "gpu"));
  WorkloadContext context = WorkloadContext::without_cluster();
  context.assignments = texts_of(words, "set");
  const std::unique_ptr<TaskSource> source = load_workload(words.operands, context);
  source->open();
  ConfiguredRun run;
  std::unique_ptr<System> system;
  if (const std::string config = text_of(words.values, "config"); !config.empty()) {
    if (!rules.algorithms.empty())
      throw ConfigError(
          "--algorithm and --config exclude each other: the configuration names the algorithms");
    run = load_run(config);
    system = system_of(run.config, source->ranks());
    rules.steps = [&](const CommunicationRequest& request) { return system->executor().steps(request); };
  }
  const Conversion conversion = convert_workload(*source, target, rules);
  if (words.values.count("quiet") != 0) return;
  std::string text = conversion.files.size() == 1
                         ? printable(conversion.files.front())
                         : fmt::format("{} to {}", printable(conversion.files.front()),
                                       printable(conversion.files[conversion.files.size() - 2]));
  text += fmt::format(": {}\n", counted(source->ranks(), "rank"));
  for (const std::string& note : conversion.notes)
    text += wrapped("note: " + printable(note), 0, 6, line_width(stdout)) + "\n";
  print(text);
}

}  // namespace

std::vector<OptionInfo> conversion_option_infos() { return infos_of(conversion_options()); }

std::string conversion_usage() { return usage_of("netsim convert FILE...", conversion_option_infos()); }

int run_conversion(const std::vector<std::string>& arguments, const PrintText& print) {
  const CommandWords words = parse_words({arguments.begin() + 1, arguments.end()}, conversion_options(),
                                         {" of convert", allowed_options(conversion_option_infos())});
  if (words.values.count("help") != 0) {
    const std::size_t width = line_width(stdout);
    print(wrapped(find_subcommand(arguments)->what, 0, 2, width) + "\n\n  " +
          wrapped(conversion_usage(), 2, 9, width) + "\n\n" + options_text(conversion_options(width)));
  } else {
    convert(words, print);
  }
  return static_cast<int>(ExitCode::done);
}

}  // namespace netsim
