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
      "cluster on which the workload runs; in GOAL its section collectives tells the messages of "
      "communications, and its compute models the times of computations; rank r is on GPU r");
  add("algorithm", texts()->value_name("KIND=PLAN"),
      "algorithm that replaces collectives of this kind in GOAL, e.g. all_reduce=ring; may be repeated "
      "(default: that of netsim)");
  add("gpu", text()->value_name("MODEL"),
      "compute model that tells the times of computations for GOAL, e.g. h100_sxm (--list compute_model; "
      "default: those of --config)");
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

// ConversionCluster: the cluster that --config describes, if it is given.
class ConversionCluster {
 public:
  explicit ConversionCluster(const std::string& config) {
    if (config.empty()) return;
    run_ = load_run(config);
    system_ = std::make_unique<System>(run_.config, 1, 1, nullptr);
  }

  // Returns the context in which the workload is read. Some workloads have as many ranks as the cluster has
  // GPUs.
  WorkloadContext context() const {
    return system_ ? system_->workload_context(1) : WorkloadContext::without_cluster();
  }
  // Lets the library of the cluster tell the messages of the workload's communications.
  void tell_steps(const TaskSource& source, ConversionRules& rules) const {
    if (!system_) return;
    const std::size_t gpus = system_->cluster().gpus.size();
    if (source.ranks() > gpus)
      throw ConfigError(fmt::format("--config: the workload has {}, and the cluster {}",
                                    counted(source.ranks(), "rank"), counted(gpus, "GPU")));
    rules.steps = [this](const CommunicationRequest& request) { return system_->executor().steps(request); };
  }
  // Lets the compute models of the cluster tell the times of computations, where they know kernels.
  void tell_times(ConversionRules& rules) const {
    if (!system_) return;
    rules.duration = [this](RankId rank, const Work& work) {
      return time_of_work(system_->models().of_gpu(GpuId(rank + 0U)), work);
    };
  }

 private:
  ConfiguredRun run_;  // the system refers to it
  std::unique_ptr<System> system_;
};

void convert(const CommandWords& words, const PrintText& print) {
  if (words.operands.empty())
    throw ConfigError("convert: the workload is missing: netsim convert trace.0.et --to trace.pb");
  const std::string target = text_of(words.values, "to");
  if (target.empty()) throw ConfigError("convert: --to is missing: the file to write, e.g. --to trace.pb");
  ConversionRules rules;
  rules.algorithms = algorithms_of(texts_of(words, "algorithm"));
  const std::string gpu = text_of(words.values, "gpu");
  rules.duration = [times = ModelTimes(gpu)](RankId, const Work& work) { return times(work); };
  const std::string config = text_of(words.values, "config");
  if (!config.empty() && !rules.algorithms.empty())
    throw ConfigError("--algorithm and --config exclude each other: the configuration names the algorithms");
  const ConversionCluster cluster(config);
  WorkloadContext context = cluster.context();
  context.assignments = texts_of(words, "set");
  const std::unique_ptr<TaskSource> source = load_workload(words.operands, context);
  source->open();
  cluster.tell_steps(*source, rules);
  if (gpu.empty()) cluster.tell_times(rules);
  const Conversion conversion = convert_workload(*source, target, rules);
  if (words.values.count("quiet") != 0) return;
  // The list of communicators, if any, is the last file.
  const bool listed = conversion.files.back().ends_with(".json");
  const std::string& last = conversion.files[conversion.files.size() - (listed ? 2 : 1)];
  std::string text = conversion.files.size() == 1
                         ? printable(last)
                         : fmt::format("{} to {}", printable(conversion.files.front()), printable(last));
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
