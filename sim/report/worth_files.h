// WorthFiles: the files that `--worth` writes into its output directory, beside the directories of its runs.
#pragma once

#include <string>

#include "sim/core/output.h"
#include "sim/report/summary.h"
#include "sim/report/worth.h"

namespace netsim {

class WorthFiles {
 public:
  // Locks the directory until the object is destroyed. Throws IoError as ResultSinks does.
  explicit WorthFiles(const std::string& directory);
  // Removes the files of earlier runs there. Directories of earlier runs stay. Called when `all` was played.
  void begin() { directory_.clear(); }
  // Writes manifest.json, worth.csv, worth.svg and, last, worth.json.
  void finish(const Worth& worth, Manifest manifest);

 private:
  OutputDirectory directory_;
};

}  // namespace netsim
