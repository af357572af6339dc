// Options: the command line as plain data (Boost.Program_options stays inside options.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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
    compile,
    version,
    help
  };

  Action action = Action::run;
  std::string config;                    // --config: cluster, YAML
  std::string workload;                  // --workload: what runs on it; "" = the configuration may say
  std::vector<std::string> assignments;  // --set path=value, in order
  // Those of them that begin with "workload.", without that: of the workload's description.
  std::vector<std::string> workload_assignments;
  std::vector<std::string> plugins;  // --plugin, in order
  std::string output;                // --out: the directory of a run's files, or the one file; "" = none
  std::uint64_t seed = 1;
  std::uint32_t threads = 0;        // 0: one per core
  Time until = kNever;              // simulated time; > 0
  bool quiet = false;               // no progress, no screen
  bool with_configuration = false;  // --dry-run --print-config: what --print-config says too
  bool json = false;                // --json -: the summary goes to stdout instead of the screen
  LogLevels log;                    // --log
  std::string subject;              // --list KIND ("" = all), --describe NAME, --compile OUT.pb,
                        // --draw OUT.svg, --prove FILE, --show-schedule PLAN, --write-program PLAN,
                        // --write-graph OUT.xml
  std::string kind;                          // --kind, of a plan's collective; "" = not given
  std::optional<std::uint32_t> ranks, root;  // --ranks, --root, of a plan; --ranks of a graph
};

// Reads the command line (without the program's name). ConfigError for an unknown option (with the nearest
// name), a missing or wrong value, options that an action needs and that are absent (but for the workload of
// a run, which the configuration may name), and actions that exclude each other (--dry-run --print-config do
// not).
Options parse_options(const std::vector<std::string>& arguments);
// ConfigError where no workload is known.
void require_workload(const Options& options);

// What --help prints, in lines of at most `width` columns (or 60, if that is more).
std::string usage(std::size_t width = kDefaultWidth);

// The command line as one could type it again (for the manifest, and to reproduce a bug).
std::string quote_command(const std::vector<std::string>& arguments);

}  // namespace netsim
