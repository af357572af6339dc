#include "sim/main/worth_study.h"

#include <cstdio>
#include <string>
#include <utility>

#include "sim/core/terminal.h"
#include "sim/main/interruption.h"
#include "sim/main/terminal_output.h"
#include "sim/simulation/worth_runs.h"

namespace netsim {
namespace {

// Returns the options of one of the runs of --worth.
Options options_of(Options options, const WorthRun& run) {
  options.worth = false;
  options.assignments.insert(options.assignments.end(), run.assignments.begin(), run.assignments.end());
  if (!options.output.empty()) options.output += "/" + run.name;
  return options;
}

}  // namespace

WorthStudy::WorthStudy(const Options& options, const Call& call, RunPlayer play)
    : options_(options), call_(call), play_(std::move(play)) {
  worth_.runs = worth_runs(read_configuration(options).config, options.ages);
}

ExitCode WorthStudy::play_all() {
  if (!options_.output.empty()) files_.emplace(options_.output);
  play_worth(worth_, [this](WorthRun& run) { play_one(run); });
  finish();
  return worth_.interrupted() ? ExitCode::interrupted : code_;
}

void WorthStudy::show_plan() const {
  print(options_.json ? worth_json(worth_) : render_worth_plan(worth_, line_width(stdout)));
}

void WorthStudy::play_one(WorthRun& run) {
  const bool first = &run == &worth_.runs.front();
  if (!first && interrupted()) {
    run.state = to_string(Outcome::interrupted);
    run.message = "interrupted before it began";
    return;
  }
  if (!options_.quiet) {
    std::fprintf(stderr, "netsim: run %td of %zu: %s\n", &run - worth_.runs.data() + 1, worth_.runs.size(),
                 run.title.c_str());
  }
  const Options options = options_of(options_, run);
  Call call{quote_command(arguments_of_run(options)), call_.plugins, Log(options.log, true)};
  const ExitCode code = play_(options, call, [&](const Results& results, const Manifest& manifest) {
    if (first) begin_files(manifest);
    record_worth(worth_, run, results);
    if (results.outcome != Outcome::interrupted) return;
    finish();
    end_interrupted();
  });
  if (first) code_ = code;
}

void WorthStudy::begin_files(const Manifest& manifest) {
  manifest_ = manifest;
  manifest_.command = call_.command;
  if (files_) files_->begin();
}

void WorthStudy::finish() {
  if (files_) files_->finish(worth_, manifest_);
  show_all();
}

void WorthStudy::show_all() const {
  if (options_.json) {
    print(worth_json(worth_));
  } else if (!options_.quiet) {
    print(render_worth(worth_, line_width(stdout)));
  }
  for (const WorthRun& run : worth_.runs) {
    const bool ends = &run == &worth_.runs.front() || run.state == to_string(Outcome::interrupted);
    if (ends && !run.message.empty()) complain(run.title + ": " + run.message);
  }
}

}  // namespace netsim
