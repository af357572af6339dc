// Options: the command line as plain data (command_words.h reads it).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/core/input_set.h"
#include "sim/core/log.h"
#include "sim/core/text.h"
#include "sim/core/units.h"

namespace netsim {

struct Options {
  enum class Action {
    run,
    dry_run,
    draw,
    prove,
    show_schedule,
    write_program,
    write_graph,
    print_config,
    list,
    describe,
    schema,
    completion,
    man,
    compile,
    version,
    help
  };

  Action action = Action::run;
  std::string config;                    // --config: the cluster's YAML file
  InputPaths workload;                   // --workload: what to run; empty: the configuration may name it
  std::vector<std::string> assignments;  // --set path=value, in order
  // Assignments that begin with "workload.", without that prefix. They change the workload's description.
  std::vector<std::string> workload_assignments;
  std::vector<std::string> plugins;  // --plugin, in order
  // --out: the directory of a run's files, or the single file; "" = none.
  std::string output;
  bool report = true;  // --report: the run also writes report.html into `output`
  std::uint64_t seed = 1;
  std::uint32_t threads = 0;        // 0: one for each core
  Time until = kNever;              // simulated time limit; above 0
  bool quiet = false;               // no progress display, no screen
  bool with_configuration = false;  // --dry-run --print-config: prints the configuration too
  // --worth: plays the run without each field of scheduling.views too, and with these ages (rising).
  bool worth = false;
  std::vector<Time> ages;
  bool json = false;  // --json -: the summary goes to stdout instead of the screen
  LogLevels log;      // --log
  // The argument of the action: --list KIND ("" = all), --describe NAME, --compile OUT.pb, --draw OUT.svg,
  // --prove FILE, --show-schedule PLAN, --write-program PLAN, --write-graph OUT.xml, --completion SHELL.
  // It is "workload" or "" (the configuration) for --schema.
  std::string subject;
  std::string kind;                          // --kind of a plan's collective; "" = not given
  std::optional<std::uint32_t> ranks, root;  // --ranks and --root of a plan; --ranks of a graph
};

// Reads the command line (without the program's name). Throws ConfigError for an unknown option (with the
// nearest name) and a missing or wrong value. Throws it for missing options of an action, except a run's
// workload, which the configuration may name. Throws it for actions that exclude each other; --dry-run
// --print-config do not.
Options parse_options(const std::vector<std::string>& arguments);
// Throws ConfigError if no workload is known.
void require_workload(const Options& options);

// OptionInfo: the declaration of an option.
struct OptionInfo {
  std::string name;   // without the dashes
  std::string value;  // what follows it, "C.yaml"; "" = nothing has to
  std::string doc;
  bool repeated = false;  // may be given several times
};
// Returns an option as it is written: "--config C.yaml".
std::string form_of(const OptionInfo& option);
// Returns all options in the order of --help.
std::vector<OptionInfo> option_infos();

struct ExitCodeInfo {
  int code = 0;
  const char* meaning;
};
// Returns what the exit codes mean, ascending.
std::span<const ExitCodeInfo> exit_code_infos();

// The command of --help that runs as it is in a clone.
inline constexpr const char* kExampleCommand =
    "netsim --config configs/fat_tree.yaml --workload traces/gpt3_ptdp.pb";

// Returns the text of --help, in lines of at most `width` columns (at least 60).
std::string usage(std::size_t width = kDefaultWidth);

// Returns the command line of a plain run with these options, without --log, --quiet and --json.
std::vector<std::string> arguments_of_run(const Options& options);
// Returns the command line so that it can be typed again, for the manifest and for reproducing a bug.
std::string quote_command(const std::vector<std::string>& arguments);

}  // namespace netsim
