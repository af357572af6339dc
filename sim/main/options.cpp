#include "sim/main/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>

#include "sim/core/config.h"
#include "sim/core/errors.h"
#include "sim/core/text.h"
#include "sim/main/command_words.h"
#include "sim/main/subcommands.h"

namespace netsim {
namespace {

namespace po = boost::program_options;

po::options_description described_options(std::size_t width = kDefaultWidth) {
  const auto columns = static_cast<unsigned>(width);
  po::options_description all("Options", columns, columns - 28);
  const auto text = [] { return po::value<std::string>(); };
  auto add = all.add_options();
  add("config", text()->value_name("C.yaml"),
      "the cluster: topology, hosts, network, transport, ...; also a config.txt of HPCC's ns-3");
  add("workload", po::value<std::vector<std::string>>()->composing()->value_name("W"),
      "the workload: a .pb, a .yaml that describes it, or a flow list (--list workload_reader); a folder, or "
      "several files if repeated, are one workload");
  add("set", po::value<std::vector<std::string>>()->composing()->value_name("PATH=VALUE"),
      "overlay one value of the configuration, e.g. network.switch.buffer=16MB, or of the workload's "
      "description, e.g. workload.microbatches=16; may be repeated");
  add("plugin", po::value<std::vector<std::string>>()->composing()->value_name("LIB.so"),
      "load a shared library with your own components; may be repeated");
  add("out", text()->value_name("DIR"),
      "write summary.json, manifest.json and the tables there; the file of --show-schedule (.svg) and "
      "--write-program (.xml)");
  add("report", text()->value_name("yes|no"),
      "write report.html there too, a page that shows the run and works offline (default yes)");
  add("seed", text()->value_name("N"), "seed of all random streams (default 1)");
  add("threads", text()->value_name("N"),
      "threads of the simulation (default: one per core); the results are the same");
  add("until", text()->value_name("TIME"), "stop at this simulated time, e.g. 2ms; exit code 6");
  add("quiet", "no progress and no screen; errors are still printed");
  add("log", text()->value_name("LEVEL"),
      "level of the log on stderr and in DIR/run.log: trace, debug, info, warn (default), error, off; also "
      "for one topic: warn,transport=info");
  add("json", text()->value_name("-"), "print summary.json to stdout instead of the screen");
  add("dry-run",
      "describe the cluster; with a workload also predict time, memory and sizes, from about a second of "
      "simulation; with --print-config print the configuration too");
  add("worth",
      "run as configured, then without each piece of information that the schedulers use (scheduling.views), "
      "and say what each was worth; --worth ages=0,10us,1ms also with values of these ages; DIR has a folder "
      "for each run; with --dry-run list the runs");
  add("draw", text()->value_name("OUT.svg"), "draw the cluster that the configuration describes");
  add("prove", text()->value_name("FILE"),
      "read a program of a collective (MSCCL XML; SCCL, TACCL, TE-CCL JSON; Chakra NAME.0.et), print what it "
      "does, and prove it; exit code 3 with the reason if the proof fails");
  add("show-schedule", text()->value_name("PLAN"),
      "print when each rank sends which chunks to which rank, by an algorithm (with --ranks; ring, or {kind: "
      "multi_ring, rings: 4}) or a program's file; with --out draw a picture too");
  add("write-program", text()->value_name("PLAN"),
      "write the same plan as MSCCL XML, to the file of --out or to stdout");
  add("write-graph", text()->value_name("OUT.xml"),
      "write the rings and trees of all GPUs that the configuration describes, or of the first --ranks, as "
      "NCCL does (NCCL_GRAPH_DUMP_FILE)");
  add("kind", text()->value_name("K"),
      "collective of that algorithm, e.g. all_gather (default: the first one that it supports)");
  add("ranks", text()->value_name("P"), "ranks of that algorithm, or of that graph");
  add("root", text()->value_name("R"), "root of its broadcast, reduce, gather or scatter (default 0)");
  add("print-config",
      "print every value of the configuration and where it came from; with --json - and a workload the "
      "manifest of the run, without running it");
  add("list", "list the components by kind; --list KIND for one kind");
  add("describe", text()->value_name("NAME"),
      "describe a section, a key (transport.mtu, mtu) or a component (dcqcn) with its parameters");
  add("schema",
      "print the JSON schema of the configuration, for editors; --schema workload that of workloads");
  add("completion", text()->value_name("SHELL"),
      "print the script by which bash or zsh complete options, keys, names and files");
  add("man", "print the manual page, for man -l");
  add("compile", text()->value_name("OUT.pb"), "compile the description given with --workload into a .pb");
  add("version", "print the version");
  add("help", "print this");
  return all;
}

// Returns the message about a word that belongs to no option.
std::string unexpected_argument(const std::string& given, Options::Action action) {
  const std::string message = "unexpected argument '" + given + "'";
  if (const Subcommand* command = find_subcommand({given}))
    return message + ": it comes first, before all options: netsim " + command->name;
  if (action == Options::Action::schema)
    return message + " of --schema (allowed: workload, or nothing for the schema of the configuration)";
  return message + " (options start with --; --help lists them)";
}

InputPaths paths_of(const po::variables_map& values, const char* name) {
  if (values.count(name) == 0) return {};
  auto paths = values[name].as<std::vector<std::string>>();
  if (std::find(paths.begin(), paths.end(), "") != paths.end())
    throw ConfigError(std::string("--") + name + ": the value is empty");
  return paths;
}

std::uint64_t whole_number(const char* option, const std::string& text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) {
    throw ConfigError(std::string(option) + ": '" + text + "' is not a whole number from 0 to 2^64 - 1");
  }
  return value;
}

std::uint32_t rank_number(const char* option, const std::string& text) {
  const std::uint64_t number = whole_number(option, text);
  if (number > UINT32_MAX) throw ConfigError(fmt::format("{}: {} is too large", option, number));
  return static_cast<std::uint32_t>(number);
}

std::uint32_t thread_count(const std::string& text) {
  constexpr std::uint64_t kMost = 1024;
  const std::uint64_t count = whole_number("--threads", text);
  if (count == 0 || count > kMost)
    throw ConfigError(fmt::format("--threads: {} was given, allowed is 1 to {}", count, kMost));
  return static_cast<std::uint32_t>(count);
}

Time time_limit(const std::string& text) {
  Place place;
  place.file = "--until";
  const Time limit = read_time(ConfigNode::scalar(text, place));
  if (limit <= 0) throw ConfigError("--until: '" + text + "' is not a time above 0");
  return limit;
}

// Returns the selected action and its argument. Throws ConfigError for two actions.
std::pair<Options::Action, std::string> chosen_action(const po::variables_map& values) {
  using Action = Options::Action;
  static constexpr std::pair<const char*, Action> kActions[] = {{"help", Action::help},
                                                                {"version", Action::version},
                                                                {"schema", Action::schema},
                                                                {"completion", Action::completion},
                                                                {"man", Action::man},
                                                                {"list", Action::list},
                                                                {"describe", Action::describe},
                                                                {"compile", Action::compile},
                                                                {"dry-run", Action::dry_run},
                                                                {"draw", Action::draw},
                                                                {"prove", Action::prove},
                                                                {"show-schedule", Action::show_schedule},
                                                                {"write-program", Action::write_program},
                                                                {"write-graph", Action::write_graph},
                                                                {"print-config", Action::print_config}};
  std::pair<Action, std::string> chosen{Action::run, ""};
  for (const auto& [name, action] : kActions) {
    if (values.count(name) == 0) continue;
    if (chosen.first == Action::dry_run && action == Action::print_config) continue;
    if (!chosen.second.empty()) {
      throw ConfigError("--" + chosen.second + " and --" + name + " exclude each other");
    }
    chosen = {action, name};
  }
  return chosen;
}

bool is_of_a_plan(Options::Action action) {
  return action == Options::Action::show_schedule || action == Options::Action::write_program;
}

bool has_subject(Options::Action action) {
  using Action = Options::Action;
  return action == Action::describe || action == Action::completion || action == Action::compile ||
         action == Action::draw || action == Action::prove || action == Action::write_graph ||
         is_of_a_plan(action);
}

void read_assignments(const std::vector<std::string>& given, Options& options) {
  constexpr std::string_view kWorkload = "workload.";
  for (const std::string& assignment : given) {
    const bool of_workload = assignment.starts_with(kWorkload);
    if (of_workload) {
      options.workload_assignments.push_back(assignment.substr(kWorkload.size()));
    } else {
      options.assignments.push_back(assignment);
    }
    if (of_workload && is_of_a_plan(options.action))
      throw ConfigError("--set " + assignment + ": --show-schedule and --write-program read no workload");
    if (!of_workload && options.action == Options::Action::compile)
      throw ConfigError("--set " + assignment + ": --compile reads no configuration, only workload.*");
  }
}

// Reads the ages of --worth: "ages=0,10us,1ms".
std::vector<Time> ages_of(const std::string& operand) {
  constexpr std::string_view kKey = "ages=";
  if (!operand.starts_with(kKey)) {
    throw ConfigError("--worth: '" + operand +
                      "' was given; only ages=LIST may follow, e.g. --worth ages=0,10us,1ms");
  }
  Place place;
  place.file = "--worth ages";
  std::vector<Time> ages;
  std::istringstream list(operand.substr(kKey.size()) + ",");
  for (std::string word; std::getline(list, word, ',');) {
    ages.push_back(read_time(ConfigNode::scalar(word, place)));
  }
  std::sort(ages.begin(), ages.end());
  if (const auto twice = std::adjacent_find(ages.begin(), ages.end()); twice != ages.end())
    throw ConfigError("--worth ages: " + format_time(*twice) + " was given twice");
  return ages;
}

// Reads --worth, and takes its ages from the words that belong to no option.
void read_worth(CommandWords& parsed, const std::string& action_name, Options& options) {
  if (parsed.values.count("worth") == 0) return;
  options.worth = true;
  if (options.action != Options::Action::run && options.action != Options::Action::dry_run)
    throw ConfigError("--worth and --" + action_name + " exclude each other");
  if (parsed.values.count("print-config") != 0)
    throw ConfigError("--worth and --print-config exclude each other");
  if (parsed.operands.size() != 1) return;
  options.ages = ages_of(parsed.operands.front());
  parsed.operands.clear();
}

// Reads --report. Like --out it has no effect where nothing is run.
bool wants_report(const po::variables_map& values) {
  const std::string given = text_of(values, "report");
  if (!given.empty() && given != "yes" && given != "no")
    throw ConfigError("--report: '" + given + "' was given, allowed is yes or no");
  return given != "no";
}

// Reads the options that select a plan of an algorithm.
void read_plan_options(const po::variables_map& values, Options& options) {
  for (const char* name : {"kind", "ranks", "root"}) {
    const bool of_graph = options.action == Options::Action::write_graph && std::string(name) == "ranks";
    if (values.count(name) != 0 && !is_of_a_plan(options.action) && !of_graph) {
      throw ConfigError(
          std::string("--") + name +
          " belongs to --show-schedule and --write-program; a run's collectives are in its workload");
    }
  }
  options.kind = text_of(values, "kind");
  if (const auto ranks = text_of(values, "ranks"); !ranks.empty())
    options.ranks = rank_number("--ranks", ranks);
  if (const auto root = text_of(values, "root"); !root.empty()) options.root = rank_number("--root", root);
}

void require_config(const Options& options) {
  if (options.config.empty()) {
    throw ConfigError(
        "--config is missing: the cluster, e.g. --config configs/fat_tree.yaml (--help lists all)");
  }
}

void check_complete(const Options& options) {
  using Action = Options::Action;
  switch (options.action) {
    case Action::run:
    case Action::dry_run:
    case Action::draw:
    case Action::write_graph:
    case Action::print_config:
      return require_config(options);
    case Action::compile:
      return require_workload(options);
    default:
      return;
  }
}

}  // namespace

void require_workload(const Options& options) {
  if (options.workload.empty()) {
    const std::string on = options.config.empty() ? "" : " on " + printable(options.config);
    throw ConfigError("--workload is missing: the workload to run" + on +
                      ", e.g. --workload traces/gpt3_ptdp.pb (--help lists all)");
  }
}

Options parse_options(const std::vector<std::string>& arguments) {
  CommandWords parsed = parse_words(arguments, described_options(), {"", "--help lists all"});
  const po::variables_map& values = parsed.values;
  Options options;
  const auto [action, action_name] = chosen_action(values);
  options.action = action;
  if (has_subject(action)) options.subject = text_of(values, action_name.c_str());
  const bool list = action == Options::Action::list;
  const bool schema =
      action == Options::Action::schema && parsed.operands == std::vector<std::string>{"workload"};
  if ((list && parsed.operands.size() == 1) || schema) {
    options.subject = parsed.operands.front();
    parsed.operands.clear();
  }
  read_worth(parsed, action_name, options);
  if (!parsed.operands.empty()) throw ConfigError(unexpected_argument(parsed.operands.front(), action));
  options.config = text_of(values, "config");
  options.workload = paths_of(values, "workload");
  options.output = text_of(values, "out");
  options.report = wants_report(values);
  read_plan_options(values, options);
  if (values.count("set") != 0) read_assignments(values["set"].as<std::vector<std::string>>(), options);
  if (values.count("plugin") != 0) options.plugins = values["plugin"].as<std::vector<std::string>>();
  if (const auto seed = text_of(values, "seed"); !seed.empty()) options.seed = whole_number("--seed", seed);
  if (const auto threads = text_of(values, "threads"); !threads.empty())
    options.threads = thread_count(threads);
  if (const auto until = text_of(values, "until"); !until.empty()) options.until = time_limit(until);
  if (const auto log = text_of(values, "log"); !log.empty()) options.log = read_log_levels(log);
  options.quiet = values.count("quiet") != 0;
  if (const auto json = text_of(values, "json"); !json.empty()) {
    if (json != "-")
      throw ConfigError("--json: '" + json + "' was given, only - (stdout) is allowed; files: --out DIR");
    options.json = true;
  }
  options.with_configuration = action == Options::Action::dry_run && values.count("print-config") != 0;
  if (options.with_configuration && options.json)
    throw ConfigError("--print-config and --json exclude each other");
  check_complete(options);
  return options;
}

std::string form_of(const OptionInfo& option) {
  return "--" + option.name + (option.value.empty() ? "" : " " + option.value);
}

std::vector<OptionInfo> option_infos() { return infos_of(described_options()); }

std::span<const ExitCodeInfo> exit_code_infos() {
  static constexpr ExitCodeInfo kExitCodes[] = {
      {0, "done"},
      {1, "a bug of netsim"},
      {2, "command line or configuration"},
      {3, "workload or program"},
      {4, "files or memory"},
      {5, "stalled"},
      {6, "--until reached"},
      {130, "interrupted (with the report of what was done)"},
  };
  return kExitCodes;
}

std::string usage(std::size_t width) {
  width = std::clamp<std::size_t>(width, 60, 120);
  std::string codes;
  for (const ExitCodeInfo& info : exit_code_infos())
    append_item(codes, fmt::format("{} {}", info.code, info.meaning));
  std::ostringstream text;
  text << "netsim: a packet-level simulator of distributed DNN training\n\n  "
       << wrapped("netsim --config C.yaml --workload W [--set path=value]... [--out DIR] [options]", 2, 9,
                  width)
       << "\n  " << wrapped(kExampleCommand, 2, 9, width) << "\n";
  for (const Subcommand& command : subcommands())
    text << "  " << wrapped(command.usage(), 2, 9, width) << "\n";
  text << "\n"
       << options_text(described_options(width)) << "\nExit codes: " << wrapped(codes, 12, 12, width) << "\n";
  return text.str();
}

std::vector<std::string> arguments_of_run(const Options& options) {
  std::vector<std::string> words;
  const auto add = [&words](const char* option, const std::string& value) {
    words.emplace_back(option);
    words.push_back(value);
  };
  for (const std::string& plugin : options.plugins) add("--plugin", plugin);
  add("--config", options.config);
  for (const std::string& path : options.workload.all()) add("--workload", path);
  for (const std::string& assignment : options.assignments) add("--set", assignment);
  for (const std::string& assignment : options.workload_assignments) add("--set", "workload." + assignment);
  if (options.seed != 1) add("--seed", std::to_string(options.seed));
  if (options.threads != 0) add("--threads", std::to_string(options.threads));
  if (options.until != kNever) add("--until", format_time(options.until));
  if (!options.output.empty()) add("--out", options.output);
  if (!options.report) add("--report", "no");
  return words;
}

std::string quote_command(const std::vector<std::string>& arguments) {
  std::string line = "netsim";
  for (const std::string& argument : arguments) {
    const bool plain =
        !argument.empty() && argument.find_first_of(" \t\n'\"\\$&|;<>()*?[]{}#~`!") == std::string::npos;
    line += ' ';
    if (plain) {
      line += argument;
      continue;
    }
    line += '\'';
    for (const char c : argument) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

}  // namespace netsim
