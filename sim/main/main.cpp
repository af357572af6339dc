// The main program: from argv to an exit code.

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <iterator>
#include <new>
#include <numeric>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "sim/collectives/programs/named_plan.h"
#include "sim/collectives/programs/program_file.h"
#include "sim/collectives/schedule.h"
#include "sim/configuration/configuration.h"
#include "sim/configuration/load_run.h"
#include "sim/core/config.h"
#include "sim/core/errors.h"
#include "sim/core/log.h"
#include "sim/core/output.h"
#include "sim/core/plugin_loader.h"
#include "sim/core/progress.h"
#include "sim/core/read_log.h"
#include "sim/core/registry.h"
#include "sim/core/terminal.h"
#include "sim/core/text.h"
#include "sim/main/allocation.h"
#include "sim/main/command_help.h"
#include "sim/main/commit.h"
#include "sim/main/interruption.h"
#include "sim/main/options.h"
#include "sim/main/play_run.h"
#include "sim/main/subcommands.h"
#include "sim/main/terminal_output.h"
#include "sim/main/worth_study.h"
#include "sim/report/drawing.h"
#include "sim/report/schedule_drawing.h"
#include "sim/report/screen/screen.h"
#include "sim/report/structure_report.h"
#include "sim/report/summary.h"
#include "sim/simulation/decisions.h"
#include "sim/simulation/simulation.h"
#include "sim/topology/structure.h"
#include "sim/workload/workload.h"

namespace {

using namespace netsim;

// Wall time in seconds for which --dry-run simulates the run.
constexpr double kCalibrationSeconds = 1;

// Opens those of the descriptors 0 to 2 that are closed. Otherwise a table could get such a number and
// receive the progress display and the log.
void open_standard_descriptors() {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
    if (::fcntl(number, F_GETFD) < 0) static_cast<void>(::open("/dev/null", O_RDWR));
  }
}

// Builds the configured system, to find errors, and prints the configuration with all defaults.
void print_configuration(const Options& options) {
  const ConfigNode root = read_configuration(options).config;
  const System system(root, options.seed, 1, nullptr);
  print(resolved_configuration(root, system.cluster()));
}

void require_ending(const char* option, const std::string& path, const char* ending) {
  if (path.ends_with(ending)) return;
  throw ConfigError(std::string(option) + ": '" + path + "' was given; the name of an " + ending +
                    " file is expected");
}

void write_file(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

void compile(const Options& options) {
  const std::string bytes = compile_workload(options.workload, options.workload_assignments);
  write_file(options.subject, bytes);
  if (!options.quiet) print(fmt::format("{}: {} bytes\n", printable(options.subject), bytes.size()));
}

// Completes `options` from the configuration.
SimulationSetup setup_of(Options& options) {
  ConfiguredRun run = read_configuration(options);
  if (options.workload.empty()) options.workload = run.workload;
  if (options.until == kNever) options.until = run.until;
  require_workload(options);
  SimulationSetup setup;
  setup.config = std::move(run.config);
  setup.workload = options.workload;
  setup.workload_assignments = options.workload_assignments;
  setup.seed = options.seed;
  setup.threads = options.threads;
  setup.output_directory = options.output;
  setup.report = options.report;
  setup.notes = std::move(run.notes);
  return setup;
}

void draw(const Options& options) {
  require_ending("--draw", options.subject, ".svg");
  const System system(read_configuration(options).config, options.seed, 1, nullptr);
  write_file(options.subject, draw_cluster(system.cluster()));
}

// Proves a program and prints its description.
void prove_program(const Options& options) {
  const CollectiveProgram program =
      read_program(read_file(options.subject, kLargestProgram), options.subject);
  const std::string what = options.subject + ": " + describe(program);
  if (const std::string wrong = prove(program); !wrong.empty())
    throw InputError(what + ": refused: " + wrong);
  if (!options.quiet) print(printable(what) + ": proved\n");
}

PlanName plan_name(const Options& options) {
  return {options.subject, options.assignments, options.kind, options.ranks, options.root};
}

// Shows a plan's schedule. A wrong plan is shown up to its first error, followed by the error.
void show_schedule(const Options& options) {
  if (!options.output.empty()) require_ending("--out", options.output, ".svg");
  const PlanSchedule schedule = schedule_of(*plan_named(plan_name(options)));
  if (!options.output.empty()) write_file(options.output, draw_schedule(schedule));
  if (!options.quiet) print(render_schedule(schedule, line_width(stdout)));
  if (!schedule.wrong.empty()) throw InputError(options.subject + ": refused: " + schedule.wrong);
}

void write_program(const Options& options) {
  if (!options.output.empty()) require_ending("--out", options.output, ".xml");
  const std::string text = program_named(plan_name(options));
  if (options.output.empty()) return print(text);
  write_file(options.output, text);
  if (!options.quiet)
    print(printable(options.output) + ": " + describe(read_program(text, options.output)) + "\n");
}

void write_graph(const Options& options) {
  require_ending("--write-graph", options.subject, ".xml");
  const ConfiguredRun run = read_configuration(options);
  System system(run.config, options.seed, 1, nullptr);
  const auto gpus = static_cast<std::uint32_t>(system.cluster().gpus.size());
  const std::uint32_t ranks = options.ranks.value_or(gpus);
  if (ranks < 2 || ranks > gpus) {
    throw ConfigError(
        fmt::format("--ranks: {} for a graph of a cluster of {} GPUs (allowed: 2 to {})", ranks, gpus, gpus));
  }
  std::vector<GpuId> members(ranks);
  std::iota(members.begin(), members.end(), 0U);
  write_file(options.subject, system.executor().nccl_graph(members));
}

// Prints the structure of the cluster alone, if no workload was given.
void show_structure(const Options& options, const ConfigNode& config) {
  const System system(config, options.seed, 1, nullptr);
  const Structure structure = system.structure();
  print(options.json ? structure_json_text(structure) : render_structure(structure, line_width(stdout)));
  if (options.with_configuration) print("\n" + resolved_configuration(config, system.cluster()));
}

void dry_run(Options options) {
  const ConfiguredRun run = read_configuration(options);
  if (options.workload.empty() && run.workload.empty()) return show_structure(options, run.config);
  SimulationSetup setup = setup_of(options);
  setup.output_directory.clear();  // nothing is written
  Simulation simulation(std::move(setup));
  Watch watch;
  watch.until = options.until;
  const Prediction prediction = simulation.predict(kCalibrationSeconds, watch);
  const Structure structure = simulation.system().structure();
  if (options.json) {
    print(prediction_json(prediction, structure));
    return;
  }
  print(render_prediction(prediction, static_cast<std::uint32_t>(simulation.cluster().gpus.size()),
                          line_width(stdout)));
  print("\n" + render_structure(structure, line_width(stdout)));
  if (options.with_configuration)
    print("\n" + resolved_configuration(simulation.configuration(), simulation.cluster()));
}

// `log` holds all files that were read for the simulation.
Manifest manifest_of(const Options& options, const Call& call, const Simulation& simulation,
                     const ReadLog& log) {
  Manifest manifest;
  manifest.commit = commit();
  manifest.command = call.command;
  manifest.seed = options.seed;
  manifest.configuration = resolved_configuration(simulation.configuration(), simulation.cluster());
  manifest.until = options.until;
  manifest.inputs = log.files();
  manifest.plugins = call.plugins;
  return manifest;
}

// Prints the manifest of this run without running it.
void print_manifest(Options options, const Call& call) {
  const ReadLog log;
  SimulationSetup setup = setup_of(options);
  setup.output_directory.clear();  // nothing is written
  const Simulation simulation(std::move(setup));
  print(manifest_json(manifest_of(options, call, simulation, log)));
}

// Prints the results for the user at the end, besides the files.
void show(const Options& options, const Results& results) {
  if (options.json) {
    print(summary_json(results));
  } else if (!options.quiet) {
    print(render_screen(results, line_width(stdout)));
  }
  if (results.outcome == Outcome::done) return;
  complain(explain(results));
  if (!options.quiet) return;  // the screen and the summary list them
  for (const std::string& line : results.waiting) std::fprintf(stderr, "  %s\n", printable(line).c_str());
}

// Plays a run and hands over its results while the simulation is still there.
ExitCode play(Options options, Call& call, const RunEnded& ended) {
  const ReadLog log;
  Simulation simulation(setup_of(options));
  log_decisions(call.log, simulation);
  Manifest manifest = manifest_of(options, call, simulation, log);
  Watch watch;
  watch.until = options.until;
  watch.interrupted = [] { return interrupted(); };
  Progress progress(Progress::style_for(stderr, options.quiet));
  if (!options.quiet) {
    watch.report = [&progress](const Advance& at) { progress.update(at.fraction, at.simulated, at.events); };
  }
  const Results results = simulation.run(watch);
  progress.finish();
  log_results(call.log, results);
  const RunText text{call.log.text(), std::move(manifest)};
  simulation.finish_files(results, &text);
  ended(results, text.manifest);
  return exit_code(results.outcome);
}

ExitCode run(const Options& options, Call& call) {
  return play(options, call, [&options](const Results& results, const Manifest&) {
    show(options, results);
    if (results.outcome == Outcome::interrupted) end_interrupted();
  });
}

// Returns the message for lack of memory: the requested size, the size in use, and the limit.
std::string out_of_memory() {
  const auto bytes = [](auto count) { return human_bytes(static_cast<double>(count)); };
  rlimit limit{};
  const bool limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  const std::uint64_t used = limited ? peak_address_space() : peak_memory();
  const std::size_t more = refused_request();
  return "out of memory: " +
         (more > 0 ? bytes(more) + " more were needed than the " + bytes(used) + " in use"
                   : "more was needed than the " + bytes(used) + " in use") +
         (limited ? ", and " + bytes(limit.rlim_cur) + " is the limit (ulimit -v)" : "") +
         ". What helps: more memory or a higher limit, fewer threads (--threads 1), a smaller network or "
         "workload; "
         "--dry-run says what a run needs";
}

// Returns the kinds and names of all registered components.
std::vector<std::string> component_names() {
  std::vector<std::string> names;
  for (const ComponentInfo* info : Catalogue::instance().all())
    names.push_back(info->kind + " " + info->name);
  return names;
}

void load_plugins(const Options& options, Call& call) {
  for (const std::string& path : options.plugins) {
    const std::vector<std::string> before = component_names();
    call.plugins.push_back(load_plugin(path));
    const std::vector<std::string> after = component_names();
    std::vector<std::string> added;
    std::set_difference(after.begin(), after.end(), before.begin(), before.end(), std::back_inserter(added));
    if (added.empty()) call.log.warn(LogTopic::core, "the plugin " + path + " registers no component");
    for (const std::string& name : added)
      call.log.info(LogTopic::core, fmt::format("{} is of the plugin {}", name, path));
  }
}

ExitCode act(const Options& options, Call& call) {
  using Action = Options::Action;
  switch (options.action) {
    case Action::run:
      return options.worth ? WorthStudy(options, call, play).play_all() : run(options, call);
    case Action::dry_run:
      options.worth ? WorthStudy(options, call, play).show_plan() : dry_run(options);
      break;
    case Action::draw:
      draw(options);
      break;
    case Action::prove:
      prove_program(options);
      break;
    case Action::show_schedule:
      show_schedule(options);
      break;
    case Action::write_program:
      write_program(options);
      break;
    case Action::write_graph:
      write_graph(options);
      break;
    case Action::print_config:
      options.json ? print_manifest(options, call) : print_configuration(options);
      break;
    case Action::list:
      print(list_components(options.subject, line_width(stdout)));
      break;
    case Action::describe:
      print(describe_subject(options.subject, line_width(stdout)));
      break;
    case Action::schema:
      print(options.subject.empty() ? configuration_schema() : workload_schema());
      break;
    case Action::completion:
      print(completion_script(options.subject));
      break;
    case Action::man:
      print(manual_page());
      break;
    case Action::compile:
      compile(options);
      break;
    case Action::version:
      print("netsim " NETSIM_VERSION ", " + (commit().empty() ? "built outside git" : "commit " + commit()) +
            "\n");
      break;
    case Action::help:
      print(usage(line_width(stdout)));
      break;
  }
  return ExitCode::done;
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_descriptors();
  set_reserve();
  catch_signals();
  std::string command = "netsim";
  try {
    const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    command = quote_command(arguments);
    const ReadLog inputs;  // inputs that no output may replace
    if (const Subcommand* command_of = find_subcommand(arguments)) return command_of->run(arguments, print);
    const Options options = parse_options(arguments);
    Call call{command, {}, Log(options.log, true)};
    load_plugins(options, call);
    return static_cast<int>(act(options, call));
  } catch (const InternalError& error) {
    return report_bug(error.what(), command);
  } catch (const Error& error) {
    complain(error.what());
    return static_cast<int>(error.code());
  } catch (const std::bad_alloc&) {
    release_reserve();
    complain(out_of_memory());
    return static_cast<int>(ExitCode::io);
  } catch (const std::system_error& error) {
    const bool threads = error.code() == std::errc::resource_unavailable_try_again;
    complain(fmt::format("the system refused: {}{}", error.what(),
                         threads ? " (a thread: fewer with --threads)" : ""));
    return static_cast<int>(ExitCode::io);
  } catch (const std::exception& error) {
    return report_bug(std::string("this is a bug in netsim: unexpected: ") + error.what(), command);
  }
}
