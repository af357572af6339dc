// WorthStudy: the runs of --worth, with the files about all of them.
#pragma once

#include <optional>

#include "sim/main/play_run.h"
#include "sim/report/worth.h"
#include "sim/report/worth_files.h"

namespace netsim {

class WorthStudy {
 public:
  // `options` and `call` must outlive the study. Throws ConfigError as worth_runs() does.
  WorthStudy(const Options& options, const Call& call, RunPlayer play);

  // Plays all runs, writes the files about all of them and prints the table. Returns the exit code of `all`,
  // or that of an interrupted study.
  ExitCode play_all();
  // Prints which runs there are, without playing them.
  void show_plan() const;

 private:
  void play_one(WorthRun& run);
  void begin_files(const Manifest& manifest);
  void finish();
  void show_all() const;

  const Options& options_;
  const Call& call_;
  RunPlayer play_;
  Worth worth_;
  std::optional<WorthFiles> files_;
  Manifest manifest_;  // of `all`, with the command of --worth
  ExitCode code_ = ExitCode::done;
};

}  // namespace netsim
